package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"tsgtop/internal/recording"
	"tsgtop/internal/sched"
)

// Every command in docs/export.md runs as it stands there.
func TestExportDocument(t *testing.T) {
	b, err := os.ReadFile("../../docs/export.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	n := 0
	for line := range strings.Lines(string(b)) {
		cmd, ok := strings.CutPrefix(strings.TrimSpace(line), "$ tsgtop ")
		if !ok {
			continue
		}
		n++
		args := strings.Fields(cmd)
		code, out, errs := runTool(args...)
		if code != 0 {
			t.Errorf("%s: code %d: %s", cmd, code, errs)
			continue
		}
		to := args[len(args)-1]
		for i, a := range args[:len(args)-1] {
			if a == "-o" {
				to = args[i+1]
			}
		}
		if to == "-" {
			if len(out) < 1000 {
				t.Errorf("%s prints %d bytes", cmd, len(out))
			}
			continue
		}
		if st, err := os.Stat(to); err != nil || st.Size() < 500 {
			t.Errorf("%s: %v", cmd, err)
		}
	}
	if n < 8 {
		t.Errorf("%d commands", n)
	}
}

// The trace line that docs/export.md explains is one, and means what it says.
func TestExportDocumentTraceLine(t *testing.T) {
	b, err := os.ReadFile("../../docs/export.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "```json\n")
	line, _, ok := strings.Cut(rest, "\n```")
	if !ok {
		t.Fatal("no trace line in docs/export.md")
	}
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := recording.NewReader(bytes.NewReader(enc.EncodeAll([]byte(`{"k":"header","schema":1}`+"\n"+line+"\n"), nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	e, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	batch, ok := e.(sched.TraceBatch)
	if !ok || len(batch.Records) != 2 {
		t.Fatalf("%+v", e)
	}
	const at = sched.Time(1_800_000_000e9)
	want := []sched.TraceRecord{
		{Time: at - 2_000_000, Context: 63, PID: 479, Tag: sched.TagStart, Gap: 5},
		{Time: at - 2_000, Context: 63, PID: 479, Tag: sched.TagEnd},
	}
	if batch.Time != at || batch.Records[0] != want[0] || batch.Records[1] != want[1] {
		t.Errorf("%+v", batch)
	}
}
