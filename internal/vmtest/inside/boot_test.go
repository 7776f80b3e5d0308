//go:build vmtest

package inside

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestBoot: the guest is what the tests take it for.
func TestBoot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Error("the guest's tests do not run as root")
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	t.Log(unix.ByteSliceToString(u.Release[:]))
	for _, f := range []string{"/sys/kernel/btf/vmlinux", "/sys/kernel/tracing/events", "/sys/kernel/debug/tracing"} {
		if _, err := os.Stat(f); err != nil {
			t.Error(err)
		}
	}
}
