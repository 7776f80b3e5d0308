package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tsgtop/internal/recording"
)

// simRecording writes a recording of a simulated GPU and gives its path.
func simRecording(t *testing.T, d time.Duration) string {
	t.Helper()
	m, _ := machine(t)
	path := filepath.Join(t.TempDir(), "r.tsg.zst")
	w, err := recording.Create(path, recording.WriterOptions{Wait: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(m.Advance(d)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func runTool(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = run(context.Background(), env{strings.NewReader(""), &o, &e}, args)
	return code, o.String(), e.String()
}

func TestExport(t *testing.T) {
	rec := simRecording(t, 5*time.Second)
	for to, begins := range map[string]string{"perfetto": "\n", "cast": `{"env"`, "csv": "gpu,runlist,", "json": `{"k":"header"`} {
		path := filepath.Join(t.TempDir(), "out")
		if code, _, errs := runTool("export", rec, "--to", to, "-o", path); code != 0 {
			t.Fatalf("%s: code %d: %s", to, code, errs)
		}
		b, err := os.ReadFile(path)
		if err != nil || !strings.HasPrefix(string(b), begins) || len(b) < 1000 {
			t.Errorf("%s: %v, %d bytes: %.40q", to, err, len(b), b)
		}
		code, out, errs := runTool("export", rec, "--to", to, "-o", "-")
		if code != 0 || out != string(b) {
			t.Errorf("%s to the standard output: code %d, %d bytes, want %d: %s", to, code, len(out), len(b), errs)
		}
		// It never replaces, nor follows a link.
		link := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(path+"-new", link); err != nil {
			t.Fatal(err)
		}
		for _, taken := range []string{path, link} {
			if code, _, errs := runTool("export", rec, "--to", to, "-o", taken); code != exitUsage || !strings.Contains(errs, "exists already") {
				t.Errorf("%s over %s: code %d: %s", to, taken, code, errs)
			}
		}
		if _, err := os.Stat(path + "-new"); err == nil {
			t.Error("it wrote through a link")
		}
	}
}

func TestExportSpan(t *testing.T) {
	rec := simRecording(t, 6*time.Second)
	_, whole, _ := runTool("export", rec, "--to", "csv", "-o", "-")
	_, part, _ := runTool("export", rec, "--to", "csv", "-o", "-", "--at", "2", "--for", "1s")
	n, m := strings.Count(whole, "\n"), strings.Count(part, "\n")
	if m < n/8 || m > n/5 {
		t.Errorf("%d of %d lines for a sixth of the recording", m, n)
	}
}

func TestExportRefuses(t *testing.T) {
	rec := simRecording(t, time.Second)
	notRecording := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(notRecording, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{rec, "-o", out}, "--to is needed"},
		{[]string{rec, "--to", "pdf", "-o", out}, `"pdf"`},
		{[]string{rec, "--to", "csv"}, "-o OUT is needed"},
		{[]string{notRecording, "--to", "csv", "-o", out}, "not a tsgtop recording"},
		{[]string{out + "-none", "--to", "csv", "-o", out}, "no such file"},
		{[]string{rec, "--to", "cast", "-o", out, "--size", "10x5"}, "--size"},
		{[]string{rec, "--to", "cast", "-o", out, "--size", "99999x40"}, "--size"},
		{[]string{rec, "--to", "cast", "-o", out, "--speed", "0"}, "--speed"},
		{[]string{rec, "--to", "cast", "-o", out, "--keys", "x"}, "--keys"},
		{[]string{rec, "--to", "cast", "-o", out, "--theme", "none"}, "theme"},
		{[]string{rec, "--to", "json", "-o", out, "--at", "3"}, "not for json"},
		{[]string{rec, "--to", "csv", "-o", "/proc/nowhere/x"}, "no such file"},
	} {
		code, _, errs := runTool(append([]string{"export"}, c.args...)...)
		if code != exitUsage || !strings.Contains(errs, c.want) {
			t.Errorf("%q: code %d: %s", c.args, code, errs)
		}
		if st, err := os.Stat(out); err == nil {
			t.Errorf("%q left a file of %d bytes", c.args, st.Size())
			os.Remove(out)
		}
	}
}

// A recording that is cut off is exported up to there, and the end is not called good.
func TestExportOfWhatIsCutOff(t *testing.T) {
	rec := simRecording(t, 5*time.Second)
	st, err := os.Stat(rec)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(rec, st.Size()-100); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"perfetto", "cast", "csv", "json"} {
		code, out, errs := runTool("export", rec, "--to", to, "-o", "-")
		if code != exitUsage || len(out) < 1000 || !strings.Contains(errs, "cut off") {
			t.Errorf("%s: code %d, %d bytes: %s", to, code, len(out), errs)
		}
	}
}
