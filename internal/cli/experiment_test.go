//go:build linux

package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tsgtop/internal/trial"
)

// quick is a plan that takes a second and a half of a simulated GPU's own time.
const quick = `
name = "quick"
repeats = 3
warm_up = "100ms"
measure = "400ms"

[[arm]]
name = "short"
timeslice = "256us"
`

func planFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "plan.toml")
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestExperimentExitCodes(t *testing.T) {
	for _, c := range []struct {
		knobs, plan, args string
		code              int
		want              string
	}{
		{"", quick, "--yes", exitOK, "| timeslice | **obeyed** | gsp |"},
		// A GB10: accepted, and ignored.
		{"timeslice=ignore", quick, "--yes --target pid:479", exitOK, "| timeslice | **ignored** | gsp |"},
		{"timeslice=stub", quick, "--yes", exitOK, "| timeslice | **stub** | driver |"},
		{"alone", quick, "--yes", exitUnknown, "nothing competed with it"},
		{"", quick, "--yes --stop-if residency_p50_us<0.5x", exitUnknown, "was stopped and not run again"},
		{"", quick, "--dry-run", exitOK, "a dry run"},
		{"", quick, "", exitUsage, "give --yes"},
		{"", quick, "--yes --target pid:4", exitTarget, "no compute TSG"},
		{"", "[[arm]]\ntimeslise = \"1ms\"", "--yes", exitUsage, "line 2: unknown key of an arm; did you mean timeslice?"},
		{"", "[[arm]]\ntimeslice = \"10us\"", "--yes", exitUsage, "want 50 to 1000000 us"},
		{"", quick, "--yes --builtin", exitUsage, "give a plan's file, or --builtin"},
		{"", quick, "--yes --share x", exitUsage, "--share is for --builtin"},
		{"", quick, "--yes --stop-if shar<1", exitUsage, "did you mean share?"},
		{"", quick, "--yes --repeats 2", exitUsage, "3 to 1000 rounds"},
	} {
		code, out, errs := tsgtop(append([]string{"experiment", planFile(t, c.plan), "--source", "sim:speed=20," + c.knobs}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(out+errs, c.want) {
			t.Errorf("%s, %s: code %d, want %d and %q in\n%s%s", c.knobs, c.args, code, c.code, c.want, out, errs)
		}
	}
	for args, want := range map[string]string{"experiment": "give a plan's file", "experiment /no/such.toml --yes": "no such file", "experiment /dev/zero --yes": "no regular file"} {
		if code, _, errs := tsgtop(append(strings.Fields(args), "--source", "sim")...); code != exitUsage || !strings.Contains(errs, want) {
			t.Errorf("%s: %d %s", args, code, errs)
		}
	}
}

// The report's files and the share file; nothing that is there is overwritten.
func TestExperimentFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	share := filepath.Join(t.TempDir(), "share.json")
	args := []string{"experiment", "--builtin", "--repeats", "3", "--measure", "400ms", "--yes", "--source", "sim:speed=20", "--out", dir, "--share", share}
	code, out, errs := tsgtop(args...)
	if code != exitOK || !strings.Contains(out, "timeslice  obeyed") {
		t.Fatalf("%d\n%s%s", code, out, errs)
	}
	b, err := os.ReadFile(filepath.Join(dir, "report.json"))
	var r trial.Report
	if err != nil || json.Unmarshal(b, &r) != nil || !r.Machine.Simulated || len(r.Runs) != 18 || !r.Restored {
		t.Errorf("%v %s", err, b)
	}
	for name, has := range map[string]string{"report.md": "Simulated, not a real GPU", "plot.svg": "</svg>"} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(string(b), has) {
			t.Errorf("%s: %v\n%s", name, err, b)
		}
	}
	b, err = os.ReadFile(share)
	if err != nil {
		t.Fatal(err)
	}
	s, err := trial.ReadShare(bytes.NewReader(b))
	if err != nil || !s.Machine.Simulated || len(s.Answers) != 3 {
		t.Errorf("%v %+v", err, s)
	}
	if code, _, errs := tsgtop(args...); code != exitUsage || !strings.Contains(errs, "exists") {
		t.Errorf("again: %d %s", code, errs)
	}
}
