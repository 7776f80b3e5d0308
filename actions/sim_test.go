package actions

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"tsgtop/actions/journal"
	"tsgtop/internal/sched"
)

// The three lamps, on each behaviour of the hardware.
func TestLamps(t *testing.T) {
	for _, c := range []struct {
		knobs string
		op    sched.Op
		value uint64
		want  string
		why   string // part of what the lamps say
	}{
		{"", sched.OpTimeslice, 200, "yes/yes@gsp/yes", ""},
		{"", sched.OpTimeslice, 8192, "yes/yes@gsp/yes", ""},
		{"", sched.OpTimeslice, 2048, "yes/yes@gsp/no", ""},
		{"", sched.OpInterleave, 2, "yes/yes@gsp/no", ""},
		{"timeslice=ignore", sched.OpTimeslice, 200, "yes/yes@gsp/no", ""},
		{"timeslice=stub", sched.OpTimeslice, 200, "yes/no@driver/no", "never asked"},
		{"timeslice=refuse", sched.OpTimeslice, 200, "yes/no@gsp/no", "0x56"},
		{"interleave=refuse", sched.OpInterleave, 1, "yes/no@gsp/no", "0x56"},
		{"alone", sched.OpTimeslice, 200, "yes/yes@gsp/unknown", "nothing competed"},
		{"lose=100", sched.OpTimeslice, 200, "yes/yes@gsp/unknown", ""},
		{"tsgs=64", sched.OpTimeslice, 200, "yes/yes@gsp/unknown", "turns"},
	} {
		s := simulated(t, c.knobs, nil)
		cmd := s.command(s.prepare(c.op, c.value))
		if got := lamps(cmd); got != c.want {
			t.Errorf("%s, %s to %d: %s, want %s\n%+v\n%+v\n%+v", c.knobs, c.op, c.value, got, c.want, cmd.Ran, cmd.Accepted, cmd.Changed)
		}
		if all := cmd.Ran.Why + cmd.Accepted.Why + cmd.Changed.Why; !strings.Contains(all, c.why) {
			t.Errorf("%s, %s: nothing about %q in %q", c.knobs, c.op, c.why, all)
		}
		if cmd.Step != sched.StepJudged || cmd.Calls.Sent != 1 || cmd.Issued == 0 {
			t.Errorf("%s, %s: %+v", c.knobs, c.op, cmd)
		}
		s.c.Close(context.Background())
		if n := s.holds(); n != 0 {
			t.Errorf("%s, %s: %d entries are left in the journal", c.knobs, c.op, n)
		}
		if us := s.slice(); us != 2048 {
			t.Errorf("%s, %s: the timeslice is left at %d us", c.knobs, c.op, us)
		}
	}
}

// A command's steps are published in order, and with a baseline on the tape
// nothing is waited for before the call.
func TestStepsAndNoWaitForABaseline(t *testing.T) {
	s := simulated(t, "", nil)
	cmd := s.command(s.prepare(sched.OpTimeslice, 200))
	var steps []sched.CommandStep
	for _, c := range s.seen {
		if len(steps) == 0 || steps[len(steps)-1] != c.Step {
			steps = append(steps, c.Step)
		}
	}
	want := []sched.CommandStep{sched.StepAsked, sched.StepConfirmed, sched.StepBaseline, sched.StepIssued, sched.StepObserved, sched.StepJudged}
	if !slices.Equal(steps, want) {
		t.Errorf("steps %v, want %v", steps, want)
	}
	if before := cmd.Issued.Sub(cmd.Asked); before > 20*time.Millisecond {
		t.Errorf("%v from the question to the call, with 4.5 s of trace on the tape", before)
	}
	if cmd.Changed.TookNS > int64(1600*time.Millisecond) {
		t.Errorf("the verdict took %v", time.Duration(cmd.Changed.TookNS))
	}
	if cmd.Old == nil || *cmd.Old != 2048 || cmd.Changed.Evidence == "" {
		t.Errorf("%+v", cmd)
	}
}

// Undo puts back what the command before had set, then the first original; the
// newer command first.
func TestUndoGoesBackStepByStep(t *testing.T) {
	s := simulated(t, "", nil)
	a := s.command(s.prepare(sched.OpTimeslice, 500))
	s.Sleep(context.Background(), 4500*time.Millisecond)
	b := s.command(s.prepare(sched.OpTimeslice, 8192))
	if *b.Old != 500 || s.slice() != 8192 {
		t.Fatalf("second command: old %d, now %d", *b.Old, s.slice())
	}
	if err := s.c.Undo(a.ID); err == nil || !strings.Contains(err.Error(), "undo that one first") {
		t.Errorf("undoing the older command first: %v", err)
	}
	if err := s.c.Undo(""); err != nil || s.slice() != 500 || s.holds() != 1 {
		t.Errorf("undo of the last: %v, %d us, %d entries", err, s.slice(), s.holds())
	}
	if err := s.c.Undo(a.ID); err != nil || s.slice() != 2048 || s.holds() != 0 {
		t.Errorf("undo of the first: %v, %d us, %d entries", err, s.slice(), s.holds())
	}
	if c, _ := s.c.Command(a.ID); c.Step != sched.StepUndone || c.Restored == nil || !*c.Restored || c.Changed.State != sched.LampYes {
		t.Errorf("after undo: %+v", c)
	}
	if err := s.c.Undo(""); err == nil {
		t.Error("there was something left to undo")
	}
	if err := s.c.Undo(a.ID); err == nil {
		t.Error("undone twice")
	}
}

// Interleave cannot be read back: undo assumes the default, and says so.
func TestUndoOfInterleaveIsAnAssumption(t *testing.T) {
	s := simulated(t, "interleave=obey", nil)
	p := s.prepare(sched.OpInterleave, 2)
	if p.Old != nil || !strings.Contains(p.Undo, "assumption") {
		t.Errorf("preview: old %v, undo %q", p.Old, p.Undo)
	}
	cmd := s.command(p)
	if cmd.Old != nil {
		t.Errorf("old value %d of what cannot be known", *cmd.Old)
	}
	if err := s.c.Undo(cmd.ID); err != nil {
		t.Fatal(err)
	}
	if c, _ := s.c.Command(cmd.ID); !strings.Contains(c.Undo, "assumption") {
		t.Errorf("undo says %q", c.Undo)
	}
}

// What the process itself has set since is not overwritten, and that is said.
func TestForeignValueIsLeftAlone(t *testing.T) {
	s := simulated(t, "", nil)
	cmd := s.command(s.prepare(sched.OpTimeslice, 200))
	s.m.Interfere(s.m.Targets()[0], 700)
	s.Sleep(context.Background(), 100*time.Millisecond)
	out := s.c.Close(context.Background())
	if s.slice() != 700 || s.holds() != 0 {
		t.Errorf("the process's own value is now %d us; %d entries", s.slice(), s.holds())
	}
	if len(out) != 1 || out[0].State != OutcomeForeign || !strings.Contains(out[0].Why, "left alone") || out[0].Commands[0] != cmd.ID {
		t.Errorf("outcomes %+v", out)
	}
}

// The process sets its own timeslice while the command is judged.
func TestInterferenceIsNotTakenForAnEffect(t *testing.T) {
	s := simulated(t, "timeslice=ignore", nil)
	done := false
	var begin sched.Time
	s.Wakeup = func() {
		c := s.b.Snapshot(sched.SnapshotOptions{}).Commands
		if len(c) == 1 && c[0].Issued > 0 && begin == 0 {
			begin = s.Now()
		}
		if begin > 0 && !done && s.Now().Sub(begin) > 200*time.Millisecond {
			done = true
			s.m.Interfere(s.m.Targets()[0], 700)
		}
	}
	cmd := s.command(s.prepare(sched.OpTimeslice, 200))
	if cmd.Changed.State != sched.LampUnknown || !strings.Contains(cmd.Changed.Why, "set its timeslice to 700") {
		t.Errorf("%+v", cmd.Changed)
	}
}

// The target dies before, during, and after.
func TestTargetDies(t *testing.T) {
	t.Run("before", func(t *testing.T) {
		s := simulated(t, "", nil)
		p := s.prepare(sched.OpTimeslice, 200)
		s.m.Kill(p.Target.PID)
		cmd := s.command(p)
		if cmd.Step != sched.StepRefused || cmd.Calls.Sent != 0 || !strings.Contains(cmd.Why, "gone") && !strings.Contains(cmd.Why, "ended") || s.holds() != 0 {
			t.Errorf("%+v", cmd)
		}
	})
	t.Run("replaced by a copy", func(t *testing.T) {
		s := simulated(t, "", nil)
		p := s.prepare(sched.OpTimeslice, 200)
		s.m.Kill(p.Target.PID)
		copied, ok := s.m.Respawn(p.Target.PID)
		if !ok || copied.TSG != p.Target.TSG || copied.Object.Handle != p.Target.Object.Handle {
			t.Fatalf("the copy is %+v", copied)
		}
		cmd := s.command(p)
		if cmd.Step != sched.StepRefused || cmd.Calls.Sent != 0 || s.slice() != 2048 || s.holds() != 0 {
			t.Errorf("%+v, slice %d", cmd, s.slice())
		}
	})
	t.Run("during", func(t *testing.T) {
		s := simulated(t, "", nil)
		p := s.prepare(sched.OpTimeslice, 2048)
		var begin sched.Time
		killed := false
		s.Wakeup = func() {
			if c := s.b.Snapshot(sched.SnapshotOptions{}).Commands; len(c) == 1 && c[0].Issued > 0 && begin == 0 {
				begin = s.Now()
			}
			if begin > 0 && !killed && s.Now().Sub(begin) > 300*time.Millisecond {
				killed = true
				s.m.Kill(p.Target.PID)
			}
		}
		cmd := s.command(p)
		if cmd.Changed.State != sched.LampUnknown || !strings.Contains(cmd.Changed.Why, "ended") {
			t.Errorf("%+v", cmd.Changed)
		}
		out := s.c.Close(context.Background())
		if len(out) != 1 || out[0].State != OutcomeGone || s.holds() != 0 {
			t.Errorf("%+v, %d entries", out, s.holds())
		}
	})
}

// The trace is turned off while the command is judged.
func TestTraceTurnedOff(t *testing.T) {
	s := simulated(t, "", nil)
	off := false
	s.Wakeup = func() {
		c := s.b.Snapshot(sched.SnapshotOptions{}).Commands
		if len(c) == 1 && c[0].Issued > 0 && !off {
			off = true
			s.b.Feed([]sched.Event{sched.ProbeStatus{Time: s.Now(), Probe: "ctxsw", GPU: 0, State: sched.ProbeReleased, Why: "let go of on request"}})
		}
	}
	cmd := s.command(s.prepare(sched.OpTimeslice, 200))
	if cmd.Changed.State != sched.LampUnknown || !strings.Contains(cmd.Changed.Why, "turned off") {
		t.Errorf("%+v", cmd.Changed)
	}
	cmd = s.command(s.prepare(sched.OpTimeslice, 2048))
	if cmd.Changed.State != sched.LampUnknown || !strings.Contains(cmd.Changed.Why, "no context-switch trace") {
		t.Errorf("without a trace from the start: %+v", cmd.Changed)
	}
}

// Preempts: one that finds its target, and many.
func TestPreempts(t *testing.T) {
	s := simulated(t, "", nil)
	states := map[sched.LampState]int{}
	for range 12 {
		p, err := s.c.Prepare(Intent{Op: sched.OpPreempt, Gen: s.gen(first)})
		if err != nil {
			t.Fatal(err)
		}
		cmd := s.command(p)
		states[cmd.Changed.State]++
		if cmd.Changed.State == sched.LampUnknown && cmd.Changed.Why == "" {
			t.Errorf("unknown for no reason: %+v", cmd.Changed)
		}
		if cmd.Changed.State == sched.LampNo {
			t.Errorf("the GPU obeys: %+v", cmd.Changed)
		}
		if cmd.Changed.TookNS > int64(50*time.Millisecond) {
			t.Errorf("the verdict took %v", time.Duration(cmd.Changed.TookNS))
		}
		s.Sleep(context.Background(), 37*time.Millisecond)
	}
	if states[sched.LampYes] < 2 || states[sched.LampUnknown] < 1 {
		t.Errorf("of 12 preempts at odd moments: %v", states)
	}
	s.Sleep(context.Background(), 4500*time.Millisecond)
	p, err := s.c.Prepare(Intent{Op: sched.OpPreempt, Gen: s.gen(first), Count: 200, Every: 2 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	cmd := s.command(p)
	if cmd.Calls.Sent != 200 || cmd.Calls.OK != 200 || cmd.Calls.ByStatus["NV_OK"] != 200 || lamps(cmd) != "yes/yes@gsp/yes" {
		t.Errorf("200 preempts: %s %+v %+v", lamps(cmd), cmd.Calls, cmd.Changed)
	}
	if err := s.c.Undo(cmd.ID); err == nil {
		t.Error("a preempt was undone")
	}
}

// A series that is longer than the tape: the trace is read while it is sent.
func TestLongSeriesLosesNoTrace(t *testing.T) {
	s := simulated(t, "", nil)
	p, err := s.c.Prepare(Intent{Op: sched.OpPreempt, Gen: s.gen(first), Count: 200, Every: 40 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	cmd := s.command(p)
	if took := s.Now().Sub(cmd.Issued); took < 7*time.Second {
		t.Fatalf("the series took %v", took)
	}
	if cmd.Changed.State != sched.LampYes {
		t.Errorf("%+v", cmd.Changed)
	}
}

// slow is an actuator whose calls hang until they are let go.
type slow struct {
	Actuator
	hang chan struct{}
}

func (s slow) Do(ctx context.Context, q Request) Result {
	<-s.hang
	return s.Actuator.Do(ctx, q)
}

func (s slow) Entered(uint64) (string, bool) { return sawEntry, true }

// RM hangs: the lamp waits and says for how long, then gives up; the answer
// still counts when it comes, and what it changed is put back.
func TestRMHangs(t *testing.T) {
	hang := make(chan struct{})
	s := simulated(t, "", func(o *Options) {
		o.Actuator = slow{o.Actuator, hang}
		o.Patience = 2 * time.Second
	})
	id, err := s.c.Submit(s.prepare(sched.OpTimeslice, 200))
	if err != nil {
		t.Fatal(err)
	}
	cmd := s.wait(id)
	if lamps(cmd) != "yes/unknown@unknown/unknown" || !strings.Contains(cmd.Accepted.Why, "has not answered for 2.") {
		t.Errorf("%s %+v", lamps(cmd), cmd.Accepted)
	}
	waited := false
	for _, c := range s.seen {
		waited = waited || c.Accepted.State == sched.LampWaiting && strings.Contains(c.Accepted.Why, "has not answered for 1.")
	}
	if !waited {
		t.Error("the lamp did not say how long it waits")
	}
	if _, err := s.c.Submit(s.prepare(sched.OpTimeslice, 300)); err == nil || !strings.Contains(err.Error(), "under way") {
		t.Errorf("a second command was sent while the first hangs: %v", err)
	}
	if s.holds() != 1 {
		t.Errorf("%d entries while the value may change", s.holds())
	}
	close(hang)
	for range 1000 {
		if c, _ := s.c.Command(id); c.Accepted.State == sched.LampYes {
			break
		}
		time.Sleep(time.Millisecond)
	}
	s.Sleep(context.Background(), 10*time.Millisecond)
	out := s.c.Close(context.Background())
	if len(out) != 1 || out[0].State != OutcomeRestored || s.slice() != 2048 || s.holds() != 0 {
		t.Errorf("outcomes %+v, %d us, %d entries", out, s.slice(), s.holds())
	}
}

// Undo while the command is judged does not wait for the verdict.
func TestUndoBeforeTheVerdict(t *testing.T) {
	s := simulated(t, "alone", nil) // never has a verdict
	id, err := s.c.Submit(s.prepare(sched.OpTimeslice, 200))
	if err != nil {
		t.Fatal(err)
	}
	for s.slice() != 200 {
		time.Sleep(time.Millisecond)
	}
	if err := s.c.Undo(id); err != nil {
		t.Fatal(err)
	}
	c, _ := s.c.Command(id)
	if s.slice() != 2048 || c.Step != sched.StepUndone || s.holds() != 0 {
		t.Errorf("%d us, %+v", s.slice(), c)
	}
}

// Kept on purpose: it stays, is listed, and can be put back by hand.
func TestKeep(t *testing.T) {
	s := simulated(t, "", func(o *Options) { o.Keep = true })
	s.command(s.prepare(sched.OpTimeslice, 200))
	out := s.c.Close(context.Background())
	if len(out) != 1 || out[0].State != OutcomeKept || s.slice() != 200 || s.holds() != 1 {
		t.Fatalf("%+v, %d us, %d entries", out, s.slice(), s.holds())
	}
	self, _ := journal.Self()
	out, err := RestoreOf(context.Background(), NewSimulated(s.m), s.j, self, false)
	if err != nil || len(out) != 1 || out[0].State != OutcomeKept || s.slice() != 200 {
		t.Errorf("what is kept was put back unasked: %+v, %v", out, err)
	}
	out, err = RestoreOf(context.Background(), NewSimulated(s.m), s.j, self, true)
	if err != nil || len(out) != 1 || out[0].State != OutcomeRestored || s.slice() != 2048 || s.holds() != 0 {
		t.Errorf("by hand: %+v, %v, %d us", out, err, s.slice())
	}
}
