//go:build vmtest

package inside

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestToolKilled: a tool that is killed leaves nothing behind, by whichever
// actuator it acted.
func TestToolKilled(t *testing.T) {
	loadModel(t, "nvidia", "")
	loadTsgtop(t, "")
	p := startProcess(t, 0, nil)
	for _, actuator := range []string{"fd", "kfunc"} {
		t.Run(actuator, func(t *testing.T) { killed(t, p, actuator) })
	}
}

// killed sets a timeslice, kills the tool that holds it and waits for its watcher.
func killed(t *testing.T, p *process, actuator string) {
	t.Helper()
	audit := t.TempDir() + "/audit"
	cmd := exec.Command("/tsgtop", "timeslice", fmt.Sprintf("pid:%d", p.PID), "300", "--yes", "--for", "10m", "--wait", "1s", "--actuator", actuator, "--audit", audit)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	until(t, p, "the timeslice", func(r tsgRow) bool { return r.effective == 300 })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	until(t, p, "what the watcher puts back", func(r tsgRow) bool { return r.effective == 2048 })
	for range 200 { // the watcher writes its line after the call
		if b, _ := os.ReadFile(audit); strings.Contains(string(b), "restore") {
			t.Logf("%s", b[strings.LastIndexByte(strings.TrimSpace(string(b)), '\n')+1:])
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if out, errs, code := tool(t, "restore"); code != 0 || !strings.Contains(out+errs, "nothing") {
		t.Errorf("after the watcher something is left: code %d\n%s%s", code, out, errs)
	}
}

// TestToolHang: while RM does not answer, what ran is known, and what came of it is
// not; when the answer comes late, the value is put back all the same.
func TestToolHang(t *testing.T) {
	loadModel(t, "nvidia", "")
	loadTsgtop(t, "")
	p := startProcess(t, 0, nil)
	for _, actuator := range []string{"fd", "kfunc"} {
		t.Run(actuator, func(t *testing.T) {
			knobFor(t, "hang_cmd", "0xa06c0103")
			knobFor(t, "hang_ms", 3000)
			out, errs, code := tool(t, "timeslice", fmt.Sprintf("pid:%d", p.PID), "300", "--yes", "--json", "--actuator", actuator, "--wait", "1s")
			var v verdictLine
			if err := json.Unmarshal([]byte(out), &v); err != nil {
				t.Fatalf("code %d, %v\n%s\n%s", code, err, out, errs)
			}
			if code != 9 || v.Ran.State != "yes" || v.Accepted.State != "unknown" || !strings.Contains(v.Accepted.Why, "RM has not answered") || v.Changed.State != "unknown" {
				t.Errorf("code %d: %+v", code, v)
			}
			t.Logf("ran: %s; accepted: %s", v.Ran.Why, v.Accepted.Why)
			knob(t, "hang_ms", 0)
			until(t, p, "what is put back when the answer came", func(r tsgRow) bool { return r.effective == 2048 && r.timeslice == 2048 })
		})
	}
}

// TestToolReplaced: the question is answered after the target was replaced by a
// restarted copy: it ends with 7, and nothing is sent. (By fd: TestScreenReplaced.)
func TestToolReplaced(t *testing.T) {
	loadModel(t, "nvidia", "")
	loadTsgtop(t, "")
	p := startProcess(t, 0, nil)
	x := inTerminal(t, "timeslice", fmt.Sprintf("0:0:%d", effective(t, p).number), "300", "--actuator", "kfunc", "--wait", "1s")
	x.wait("[y/N]")
	again := restarted(t, p)
	x.typeIn("y\r")
	x.ended(7)
	if r := effective(t, again); r.timeslice != 2048 || r.effective != 2048 {
		t.Errorf("the copy was changed: %+v", r)
	}
}

// TestToolUsers: another user's TSG is named as theirs; who is not root is told
// so, and changes nothing.
func TestToolUsers(t *testing.T) {
	nobody := &syscall.Credential{Uid: 65534, Gid: 65534}
	loadModel(t, "nvidia", "")
	p := startProcess(t, 0, &syscall.SysProcAttr{Credential: nobody})
	target := fmt.Sprintf("pid:%d", p.PID)
	out, errs, code := tool(t, "timeslice", target, "300", "--dry-run")
	if code != 0 || !strings.Contains(out+errs, "it belongs to user nobody, not to you (root)") {
		t.Errorf("another user's: code %d\n%s%s", code, out, errs)
	}
	for _, args := range [][]string{{"timeslice", target, "300", "--yes"}, {"ls"}, {"doctor"}} {
		out, errs, code := toolAs(t, &syscall.SysProcAttr{Credential: nobody}, args...)
		if code != 2 || !strings.Contains(out+errs, "root") {
			t.Errorf("%v without root: code %d\n%s%s", args, code, out, errs)
		}
	}
	if r := effective(t, p); r.timeslice != 2048 {
		t.Errorf("without root it was changed: %+v", r)
	}
}

// TestToolPIDNamespace: where the kernel's pids are not those of our /proc nothing
// is attributed to a process, and nothing is sent.
func TestToolPIDNamespace(t *testing.T) {
	loadModel(t, "nvidia", "")
	loadTsgtop(t, "")
	p := startProcess(t, 0, nil)
	inside := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	out, errs, code := toolAs(t, inside, "ls", "--json")
	var ls struct {
		TSGs []struct{ PID int }
	}
	if err := json.Unmarshal([]byte(out), &ls); err != nil || code != 0 {
		t.Fatalf("ls: code %d, %v\n%s%s", code, err, out, errs)
	}
	for _, x := range ls.TSGs {
		if x.PID != 0 {
			t.Errorf("a TSG is given to pid %d", x.PID)
		}
	}
	number := effective(t, p).number
	for _, actuator := range []string{"kfunc", "auto"} { // auto: both were refused
		out, errs, code := toolAs(t, inside, "timeslice", fmt.Sprintf("0:0:%d", number), "300", "--yes", "--actuator", actuator)
		if code != 2 || !strings.Contains(errs, "a pid namespace of its own") {
			t.Errorf("%s: code %d\n%s%s", actuator, code, out, errs)
		}
	}
	if out, _, _ := toolAs(t, inside, "doctor"); !strings.Contains(unfold(out), "nothing is attributed to processes, and nothing is acted on") {
		t.Errorf("doctor: %s", out)
	}
	if r := effective(t, p); r.timeslice != 2048 {
		t.Errorf("it was changed: %+v", r)
	}
}

// unfold makes the doctor's folded lines one.
func unfold(s string) string { return strings.Join(strings.Fields(s), " ") }
