//go:build vmtest

package inside

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// tool runs the product itself and gives what it printed and its exit code.
func tool(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return toolAs(t, nil, args...)
}

// toolAs is the same for another user or in other namespaces.
func toolAs(t *testing.T, attr *syscall.SysProcAttr, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.Command("/tsgtop", args...)
	if attr != nil && attr.Cloneflags&syscall.CLONE_NEWPID != 0 {
		cmd = exec.Command(os.Args[0], args...) // which mounts a /proc of its own first
		cmd.Env = append(os.Environ(), asTool+"=1")
	}
	cmd.SysProcAttr = attr
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), code
}

// verdictLine is what a command prints with --json, as far as this test looks.
type verdictLine struct {
	Actuator string
	Old, New *uint64
	Restored bool
	Ran      struct{ State, Why string }
	Accepted struct {
		State, Where, Status, Why string
	}
	Changed struct{ State, Why string }
}

// TestTool: the whole product against the stand-in: it finds what runs, changes a
// timeslice, and tells obeying hardware, ignoring hardware, a stub and a refusal apart.
func TestTool(t *testing.T) {
	loadModel(t, "nvidia", "")
	loadTsgtop(t, "")
	a, b := startProcess(t, 0, nil), startProcess(t, 0, nil)
	startFeeder(t, a, b)
	out, errs, code := tool(t, "ls", "--json")
	var ls struct {
		GPUs []struct{ Name string }
		TSGs []struct {
			TSG, PID int
		}
	}
	if err := json.Unmarshal([]byte(out), &ls); err != nil || code != 0 || len(ls.GPUs) != 1 || len(ls.TSGs) < 8 {
		t.Fatalf("ls: code %d, %v\n%s\n%s", code, err, out, errs)
	}
	target := fmt.Sprintf("0:0:%d", targetOf(t, a).TSG)
	// What hardware does to the trace is judged only where emulation leaves the
	// time for it; that it never claims a change that there was not is judged always.
	for _, x := range []struct {
		actuator string
		what     string
		mode     int
		accepted string
		changed  string // one of these
		codes    string
	}{
		{"fd", "obeys", 0, "yes", "yes unknown", "0 5"},
		{"kfunc", "obeys", 0, "yes", "yes unknown", "0 5"},
		{"fd", "ignores", 1, "yes", "no unknown", "4 5"},
		{"kfunc", "ignores", 1, "yes", "no unknown", "4 5"},
		{"fd", "stub", 2, "no", "no unknown", "3"},
		{"kfunc", "stub", 2, "no", "no unknown", "3"},
		{"fd", "refuses", 3, "no", "no unknown", "3"},
		{"kfunc", "refuses", 3, "no", "no unknown", "3"},
		{"fd", "obeys, and the trace loses records", 0, "yes", "unknown", "5"},
	} {
		t.Run(x.actuator+" "+x.what, func(t *testing.T) {
			knobFor(t, "timeslice_mode", x.mode)
			if strings.Contains(x.what, "loses") {
				knobFor(t, "lose_every", 3)
			}
			wait := "5s"
			if x.accepted == "no" {
				wait = "1s" // the answer is known by then
			}
			out, errs, code := tool(t, "timeslice", target, "300", "--yes", "--json", "--actuator", x.actuator, "--wait", wait)
			var v verdictLine
			if err := json.Unmarshal([]byte(out), &v); err != nil {
				t.Fatalf("code %d, %v\n%s\n%s", code, err, out, errs)
			}
			t.Logf("code %d; ran %s; accepted %s at %s; changed %s: %s", code, v.Ran.State, v.Accepted.State, v.Accepted.Where, v.Changed.State, v.Changed.Why)
			if v.Actuator != x.actuator {
				t.Errorf("actuator %q", v.Actuator)
			}
			if v.Ran.State != "yes" || v.Accepted.State != x.accepted {
				t.Errorf("ran %+v, accepted %+v", v.Ran, v.Accepted)
			}
			if !strings.Contains(x.changed, v.Changed.State) || !strings.Contains(x.codes, fmt.Sprint(code)) {
				t.Errorf("changed %+v, code %d", v.Changed, code)
			}
			knob(t, "timeslice_mode", 0)
			if r := effective(t, a); r.timeslice != 2048 {
				t.Errorf("a trial left its value behind: %+v", r)
			}
		})
	}
}
