//go:build vmtest

package inside

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// until waits until a process's TSG is in the stand-in as it should be.
func until(t *testing.T, p *process, what string, ok func(tsgRow) bool) {
	t.Helper()
	for range 2000 {
		if ok(effective(t, p)) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s: it is %+v", what, effective(t, p))
}

// arm shows one process alone, selects its compute TSG and arms control.
func arm(x *terminal, p *process, actuator string) {
	x.t.Helper()
	x.wait("RUNLIST/TSG")
	x.wait(fmt.Sprint(p.PID))
	x.typeIn(fmt.Sprintf("/pid:%d\r", p.PID))
	x.typeIn("F") // a flat list: the compute TSG comes first
	x.wait("5c000015")
	x.typeIn("C")
	x.wait("Cancel")
	x.typeIn("\t\r")
	x.wait("ARMED (" + actuator + ")")
}

// set sets the selected TSG's timeslice, and waits for what is certain of it.
func set(x *terminal, p *process, us int) {
	x.t.Helper()
	x.typeIn("t")
	x.wait("microseconds")
	x.typeIn(fmt.Sprintf("%d\r", us))
	x.wait("[ Cancel ]")
	x.typeIn("\t\r")
	x.wait(fmt.Sprintf("→%dµs", us))
	until(x.t, p, "the timeslice", func(r tsgRow) bool { return r.effective == uint64(us) })
	x.wait("RAN ✓")
	x.wait("ACCEPTED ✓")
}

// TestScreen: a session of the screen by each actuator: a TSG is selected, its
// timeslice is set, the lamps come, undo puts it back; then it is set once more,
// and quitting puts that back.
func TestScreen(t *testing.T) {
	for _, actuator := range []string{"fd", "kfunc"} {
		t.Run(actuator, func(t *testing.T) {
			loadModel(t, "nvidia", "")
			if actuator == "kfunc" {
				loadTsgtop(t, "")
			}
			a, b := startProcess(t, 0, nil), startProcess(t, 0, nil)
			startFeeder(t, a, b)
			x := inTerminal(t)
			arm(x, a, actuator)
			set(x, a, 300)
			x.typeIn("u")
			x.wait("[ Cancel ]")
			x.typeIn("\t\r")
			x.wait("put back")
			until(t, a, "undo", func(r tsgRow) bool { return r.effective == 2048 })
			set(x, a, 400)
			x.typeIn("q")
			x.ended(0)
			if r := effective(t, a); r.effective != 2048 {
				t.Errorf("quitting left the value behind: %+v", r)
			}
			if r := effective(t, b); r.timeslice != 2048 || r.preempts != 0 {
				t.Errorf("the other process was touched: %+v", r)
			}
		})
	}
}

// TestScreenReplaced: between the selection and the call the target is replaced by
// a restarted copy with the same handles and number: nothing is sent to it.
func TestScreenReplaced(t *testing.T) {
	loadModel(t, "nvidia", "")
	a, b := startProcess(t, 0, nil), startProcess(t, 0, nil)
	startFeeder(t, a, b)
	x := inTerminal(t)
	arm(x, a, "fd")
	x.typeIn("t")
	x.wait("microseconds")
	x.typeIn("300\r")
	x.wait("[ Cancel ]")
	again := restarted(t, a)
	x.typeIn("\t\r")
	x.wait("nothing was sent")
	if r := effective(t, again); r.timeslice != 2048 || r.effective != 2048 {
		t.Errorf("the copy was changed: %+v", r)
	}
	x.typeIn("q")
	x.ended(0)
}

// restarted ends a process and starts a copy that gets its handles and its number.
// The tool's own clients can take the handle first; then it is tried again.
func restarted(t *testing.T, p *process) *process {
	t.Helper()
	number := effective(t, p).number
	p.end()
	for range 500 { // what the tool borrowed keeps the client for moments
		if !slices.ContainsFunc(tsgRows(t), func(r tsgRow) bool { return r.client == p.Client }) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	var again *process
	for range 20 {
		knob(t, "next_client", fmt.Sprintf("%#x", p.Client&0xfffff))
		again = startProcess(t, 0, nil)
		if again.Client == p.Client && again.TSG == p.TSG && effective(t, again).number == number {
			return again
		}
		again.end()
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("no copy took the handles: %+v, %+v", again.told, p.told)
	return nil
}
