//go:build linux

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"

	"tsgtop/actions"
	"tsgtop/internal/sched"
)

// tsgtop runs the program as a shell would.
func tsgtop(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = run(context.Background(), env{strings.NewReader(""), &o, &e}, args)
	return code, o.String(), e.String()
}

// Each exit code and the three lamps, on a simulated GPU.
func TestCommandExitCodes(t *testing.T) {
	for _, c := range []struct {
		knobs string
		args  string
		code  int
		want  string // in what is printed
	}{
		{"", "timeslice 0:0:7 200 --yes", exitOK, "CHANGED   yes"},
		{"", "timeslice 0:0:7 200us --yes", exitOK, "put back to 2048 us"},
		{"", "timeslice pid:479 200 --yes", exitOK, "TSG 0:0:7"},
		{"", "preempt 0:0:7 --yes --count 200 --every 2ms", exitOK, "200 of 200 calls"},
		{"", "timeslice 0:0:7 2048 --yes", exitUnchanged, "CHANGED   no"},
		{"", "interleave 0:0:7 high --yes", exitUnchanged, "an assumption"},
		{"timeslice=ignore", "timeslice 0:0:7 200 --yes", exitUnchanged, "stayed at"},
		{"alone", "timeslice 0:0:7 200 --yes", exitUnknown, "CHANGED   unknown"},
		{"", "timeslice 0:1:7 200 --yes", exitUnknown, "copy engine: no trace"},
		{"timeslice=refuse", "timeslice 0:0:7 200 --yes", exitRefused, "0x56"},
		{"timeslice=stub", "timeslice 0:0:7 200 --yes", exitRefused, "a stub"},
		{"hang=60s", "timeslice 0:0:7 200 --yes --wait 1s", exitNoAnswer, "has not answered"},
		{"", "timeslice 0:0:99 200 --yes", exitTarget, "there is no such TSG"},
		{"", "preempt pid:4 --yes", exitTarget, "no compute TSG"},
		{"", "timeslice 0:0:7 10 --yes", exitUsage, "want 50 to 1000000 us"},
		{"", "timeslice 0:0:7 10 --yes --force", exitOK, "2048 us -> 10 us"},
		{"", "timeslice 0:0:7 fast --yes", exitUsage, "whole number"},
		{"", "timeslice 0:7 200 --yes", exitUsage, "GPU:RUNLIST:TSG"},
		{"", "timeslice 0:0:-7 200 --yes", exitUsage, "GPU:RUNLIST:TSG"},
		{"", "interleave 0:0:7 higher --yes", exitUsage, "low, medium or high"},
		{"", "preempt 0:0:7 --yes --count 3 --every 1ms", exitUsage, "1.5ms"},
		{"", "timeslice 0:0:7 200", exitUsage, "give --yes"},
		{"", "timeslice 0:0:7 200 --keep --for 1s --yes", exitUsage, "keep"},
		{"", "timeslice 0:0:7 200 --yes --read-only", exitUsage, "--read-only"},
		{"", "timeslice 0:0:7 200 --yes --actuator magic", exitUsage, "auto, kfunc or fd"},
		{"", "timeslice 0:0:7 200 --dry-run", exitOK, "nothing was sent"},
	} {
		knobs := "sim:speed=40"
		if c.knobs != "" {
			knobs += "," + c.knobs
		}
		code, out, errs := tsgtop(append(strings.Fields(c.args), "--source", knobs)...)
		if code != c.code || !strings.Contains(out+errs, c.want) {
			t.Errorf("%s, %s: code %d, want %d and %q in\n%s%s", c.knobs, c.args, code, c.code, c.want, out, errs)
		}
		if strings.Contains(c.args, "dry-run") && strings.Contains(out+errs, "RAN") {
			t.Errorf("%s: lamps of what was not sent:\n%s", c.args, out)
		}
	}
}

// The JSON of a command, key by key.
func TestCommandJSON(t *testing.T) {
	code, out, errs := tsgtop("timeslice", "0:0:7", "200", "--yes", "--json", "--source", "sim:speed=40")
	if code != exitOK {
		t.Fatalf("code %d: %s", code, errs)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(out), &got); err != nil || strings.Count(out, "\n") != 1 {
		t.Fatalf("%v in %q", err, out)
	}
	at := func(path string) any {
		var v any = got
		for k := range strings.SplitSeq(path, ".") {
			m, ok := v.(map[string]any)
			if !ok {
				return nil
			}
			v = m[k]
		}
		return v
	}
	for path, want := range map[string]any{
		"schema_version": 1.0, "source": "sim", "op": "timeslice", "old": 2048.0, "new": 200.0, "restored": true, "actuator": "sim",
		"target.gpu": 0.0, "target.runlist": 0.0, "target.tsg": 7.0, "target.pid": 479.0, "target.exe": "/usr/bin/train.py", "target.handles.object": "0x5c000015",
		"calls.sent": 1.0, "calls.ok": 1.0, "calls.by_status.NV_OK": 1.0, "ran.state": "yes",
		"accepted.state": "yes", "accepted.status": "NV_OK", "accepted.status_code": 0.0, "accepted.where": "gsp",
		"changed.state": "yes", "changed.metric": "residency_us", "changed.as_asked": true,
	} {
		if v := at(path); v != want {
			t.Errorf("%s is %v, want %v", path, v, want)
		}
	}
	for _, path := range []string{"id", "time", "sent", "ran.why", "accepted.why", "accepted.rpc_us", "accepted.call_us", "changed.why", "changed.ratio", "changed.ci", "changed.p",
		"changed.before.turns", "changed.before.blocks", "changed.before.p50", "changed.after.p50", "changed.victim.share_before", "changed.victim.share_after"} {
		if at(path) == nil {
			t.Errorf("%s is missing in %s", path, out)
		}
	}
	_, out, _ = tsgtop("interleave", "0:0:7", "high", "--dry-run", "--json", "--source", "sim:speed=40")
	if !strings.Contains(out, `"old":null`) || !strings.Contains(out, `"restored":null`) || !strings.Contains(out, `"ran":{"state":"unknown"`) {
		t.Errorf("a dry run: %s", out)
	}
}

// The question is asked on a terminal, and only yes is a yes.
func TestCommandAsks(t *testing.T) {
	for answer, want := range map[string]string{"\n": "nothing was sent", "n\n": "nothing was sent", "maybe\n": "nothing was sent", "y\n": "CHANGED   yes", "YES\n": "CHANGED   yes"} {
		master, terminal, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := master.WriteString(answer); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		code := run(context.Background(), env{terminal, &out, &errs}, []string{"timeslice", "0:0:7", "200", "--source", "sim:speed=40"})
		if code != exitOK || !strings.Contains(out.String(), want) || !strings.Contains(errs.String(), "Send it?") || !strings.Contains(errs.String(), "train.py") {
			t.Errorf("%q: code %d\n%s%s", answer, code, out.String(), errs.String())
		}
		master.Close()
		terminal.Close()
	}
}

// Interrupted while it waits: the value is put back, and that is said.
func TestCommandInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	var out, errs bytes.Buffer
	stop := writerFunc(func(b []byte) (int, error) {
		if bytes.Contains(b, []byte("holding it")) {
			cancel()
		}
		return errs.Write(b)
	})
	code := run(ctx, env{strings.NewReader(""), &out, stop}, []string{"timeslice", "0:0:7", "200", "--yes", "--for", "1h", "--source", "sim:speed=40"})
	if code != exitInterrupted || !strings.Contains(out.String(), "put back to 2048 us") {
		t.Errorf("code %d\n%s%s", code, out.String(), errs.String())
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// An audit log is kept of a simulated GPU too, where one is asked for; and
// where it cannot be, nothing is sent.
func TestCommandAudit(t *testing.T) {
	dir := t.TempDir()
	os.Chmod(dir, 0o700)
	path := filepath.Join(dir, "audit")
	code, _, errs := tsgtop("timeslice", "0:0:7", "200", "--yes", "--source", "sim:speed=40", "--audit", path)
	b, err := os.ReadFile(path)
	if code != exitOK || err != nil || strings.Count(string(b), "\n") != 3 {
		t.Errorf("code %d, %v, %s\n%s", code, err, errs, b)
	}
	os.Chmod(dir, 0o777)
	code, out, errs := tsgtop("timeslice", "0:0:7", "200", "--yes", "--source", "sim:speed=40", "--audit", path)
	if code == exitOK || strings.Contains(out, "RAN") || !strings.Contains(errs, "written by others") {
		t.Errorf("code %d, %s%s", code, out, errs)
	}
}

// The order of the exit codes: the first that applies.
func TestVerdictCode(t *testing.T) {
	lamp := func(s sched.LampState) sched.Lamp { return sched.Lamp{State: s} }
	cmd := func(step sched.CommandStep, ran, accepted, changed sched.LampState) sched.Command {
		return sched.Command{Step: step, Ran: lamp(ran), Accepted: sched.Accepted{Lamp: lamp(accepted)}, Changed: sched.Changed{Lamp: lamp(changed)}}
	}
	const y, n, u = sched.LampYes, sched.LampNo, sched.LampUnknown
	bad := []actions.Outcome{{State: actions.OutcomeFailed}}
	for _, c := range []struct {
		cmd        sched.Command
		refusal    error
		outcomes   []actions.Outcome
		unanswered bool
		want       int
	}{
		{cmd(sched.StepJudged, y, y, y), nil, nil, false, exitOK},
		{cmd(sched.StepUndone, y, y, y), nil, []actions.Outcome{{State: actions.OutcomeRestored}}, false, exitOK},
		{cmd(sched.StepJudged, y, y, y), nil, bad, false, exitRestore},
		{cmd(sched.StepRefused, u, u, u), actions.ErrGone, bad, false, exitTarget},
		{cmd(sched.StepRefused, u, u, u), actions.ErrReplaced, nil, false, exitTarget},
		{cmd(sched.StepRefused, u, u, u), errors.New("disk full"), nil, false, exitRefused},
		{cmd(sched.StepJudged, n, n, n), nil, nil, false, exitNotRun},
		{cmd(sched.StepJudged, u, y, y), nil, nil, false, exitNotRun},
		{cmd(sched.StepJudged, y, n, y), nil, nil, false, exitRefused},
		{cmd(sched.StepJudged, y, u, u), nil, []actions.Outcome{{State: actions.OutcomePending}}, true, exitNoAnswer},
		{cmd(sched.StepJudged, y, y, n), nil, nil, false, exitUnchanged},
		{cmd(sched.StepJudged, y, y, u), nil, nil, false, exitUnknown},
		{cmd(sched.StepJudged, y, u, y), nil, nil, false, exitUnknown},
	} {
		if got := codeOf(verdictCode(c.cmd, c.refusal, c.outcomes, c.unanswered, nil)); got != c.want {
			t.Errorf("%+v: %d, want %d", c, got, c.want)
		}
	}
}

// Where there is no driver, a command says so before anything else.
func TestCommandWithoutDriver(t *testing.T) {
	if _, err := os.Stat("/proc/driver/nvidia/version"); err == nil {
		t.Skip("skip: driver: this machine has an NVIDIA driver")
	}
	code, out, errs := tsgtop("timeslice", "0:0:7", "200", "--yes")
	if code != exitPrivilege || out != "" || !strings.Contains(errs, "NVIDIA driver") {
		t.Errorf("code %d, %s%s", code, out, errs)
	}
	code, _, errs = tsgtop("restore", "--source", "sim")
	if code != exitUsage || !strings.Contains(errs, "this machine") {
		t.Errorf("restore of a simulated GPU: code %d, %s", code, errs)
	}
}

// A recording cannot be acted on.
func TestCommandOnARecording(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r")
	if code, _, errs := tsgtop("record", "-o", file, "--source", "sim:speed=20", "--for", "100ms"); code != exitOK {
		t.Fatalf("code %d, %s", code, errs)
	}
	if code, _, errs := tsgtop("preempt", "0:0:7", "--yes", "--source", file); code != exitUsage || !strings.Contains(errs, "recording cannot be acted on") {
		t.Errorf("code %d, %s", code, errs)
	}
}

// The pid of a client of MPS means the compute TSG of its server, and nothing else that
// happens to be shared.
func TestTargetOfAnMPSClient(t *testing.T) {
	row := func(tsg, runlist int, engine uint32, pid int, mps bool, clients int, holders ...int) sched.TSGView {
		return sched.TSGView{ID: sched.TSGID{GPU: 0, Runlist: runlist, TSG: tsg}, Engine: &engine, Process: sched.Process{PID: pid}, MPS: mps, Clients: clients, HolderPIDs: holders}
	}
	snap := &sched.Snapshot{TSGs: []sched.TSGView{row(6, 0, 1, 654, true, 2, 649, 650, 654), row(9, 3, 12, 654, true, 1, 650, 654), row(10, 3, 12, 649, false, 0, 649),
		row(7, 0, 1, 479, false, 1, 479, 480)}}
	for target, want := range map[string]int{"pid:649": 6, "pid:650": 6, "pid:654": 6, "pid:479": 7, "pid:480": -1, "pid:1": -1} {
		w, err := parseTarget(target)
		if err != nil {
			t.Fatal(err)
		}
		r, err := w.find(snap)
		if err == nil && r.ID.TSG != want || err != nil && want >= 0 {
			t.Errorf("%s: %+v, %v, want TSG %d", target, r, err, want)
		}
	}
}
