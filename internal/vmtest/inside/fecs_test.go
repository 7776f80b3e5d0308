//go:build vmtest

package inside

import (
	"fmt"
	"os"
	"testing"
)

// record is one trace record as the driver lays it out for user space: tag 6: the
// context became resident; 7: it was saved.
func record(tag byte, seq uint16, context uint32, ns uint64) []byte {
	b := make([]byte, 32)
	b[0] = 2 // FECS, second version
	b[8] = tag
	le.PutUint16(b[10:], seq)
	le.PutUint32(b[12:], context)
	le.PutUint32(b[16:], uint32(os.Getpid()))
	le.PutUint64(b[24:], ns)
	return b
}

// feed gives records to a GPU's trace, as its hardware would write them.
func feed(t testing.TB, gpu int, records ...[]byte) {
	t.Helper()
	var all []byte
	for _, r := range records {
		all = append(all, r...)
	}
	if err := os.WriteFile(fmt.Sprintf("%sfecs%d", knobDir, gpu), all, 0); err != nil {
		t.Fatal(err)
	}
}
