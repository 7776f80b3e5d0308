package actions

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"tsgtop/actions/journal"
	"tsgtop/internal/sched"
)

func (s *bench) row(id sched.TSGID) *sched.TSGView {
	s.t.Helper()
	snap := s.b.Snapshot(sched.SnapshotOptions{})
	for i := range snap.TSGs {
		if snap.TSGs[i].ID == id {
			return &snap.TSGs[i]
		}
	}
	s.t.Fatalf("no TSG %s on the board", id)
	return nil
}

func (s *bench) ensure(k *Keeper, us uint64) error {
	s.t.Helper()
	row := s.row(first)
	return k.Ensure(context.Background(), Wish{Op: sched.OpTimeslice, Gen: row.Gen, Value: us, Why: "a test"}, row)
}

// A value is set, journaled, kept against its own process, and put back.
func TestKeeperKeeps(t *testing.T) {
	s := simulated(t, "", nil)
	k := s.c.Keeper(nil)
	if err := s.ensure(k, 200); err != nil || s.slice() != 200 || s.holds() != 1 {
		t.Fatalf("%v, %d us, %d entries", err, s.slice(), s.holds())
	}
	if err := s.ensure(k, 200); err != nil || k.All()[0].Calls != 1 {
		t.Errorf("it is there already: %v, %+v", err, k.All())
	}
	s.m.Interfere(s.m.Targets()[0], 700)
	s.Sleep(context.Background(), 10*time.Millisecond)
	if err := s.ensure(k, 200); err != nil || s.slice() != 200 || k.All()[0].Again != 1 || k.All()[0].Calls != 2 {
		t.Errorf("set again: %v, %d us, %+v", err, s.slice(), k.All())
	}
	// It sets its own again at once: not answered at once.
	s.m.Interfere(s.m.Targets()[0], 700)
	if err := s.ensure(k, 200); !errors.Is(err, ErrQuiet) {
		t.Errorf("again without a pause: %v", err)
	}
	s.Sleep(context.Background(), 6*time.Second)
	if err := s.ensure(k, 200); err != nil || k.All()[0].Again != 2 {
		t.Errorf("after a pause: %v, %+v", err, k.All())
	}
	out := s.c.Close(context.Background())
	// What the process asked for last is what it gets.
	if s.slice() != 700 || s.holds() != 0 || len(out) != 1 || out[0].State != OutcomeRestored {
		t.Errorf("%d us, %d entries, %+v", s.slice(), s.holds(), out)
	}
}

// The first original wins over whatever roles follow each other.
func TestKeeperFirstOriginalWins(t *testing.T) {
	s := simulated(t, "", nil)
	k := s.c.Keeper(nil)
	for _, us := range []uint64{200, 500, 300} {
		if err := s.ensure(k, us); err != nil || s.slice() != us {
			t.Fatalf("%v, %d us", err, s.slice())
		}
	}
	if a := k.All()[0]; a.Again != 0 || a.Old == nil || *a.Old != 2048 {
		t.Errorf("%+v", a)
	}
	out := k.LetGo(context.Background(), func(sched.Op, sched.Target) bool { return true })
	if s.slice() != 2048 || s.holds() != 0 || len(out) != 1 {
		t.Errorf("%d us, %d entries, %+v", s.slice(), s.holds(), out)
	}
	if err := s.ensure(k, 400); err != nil || s.slice() != 400 {
		t.Errorf("after letting go: %v", err)
	}
}

// What RM refuses, and what a stub answers, is no hold.
func TestKeeperRefused(t *testing.T) {
	s := simulated(t, "timeslice=refuse", nil)
	k := s.c.Keeper(nil)
	if err := s.ensure(k, 200); err == nil || !strings.Contains(err.Error(), "0x56") || s.holds() != 0 || k.All()[0].Held {
		t.Errorf("%v, %d entries, %+v", err, s.holds(), k.All())
	}
	if err := s.ensure(k, 10); !errors.Is(err, ErrBounds) {
		t.Errorf("out of bounds: %v", err)
	}
	s.c.Arm(false)
	s.Sleep(context.Background(), time.Second)
	if err := s.ensure(k, 200); err == nil || !strings.Contains(err.Error(), "not armed") {
		t.Errorf("not armed: %v", err)
	}
}

// Another tsgtop has it: it is left to that one.
func TestKeeperLeavesOthersAlone(t *testing.T) {
	s := simulated(t, "", nil)
	k := s.c.Keeper(nil)
	other := journal.Owner{PID: 1}
	other.Start, _ = journal.ProcessStart(1)
	in, err := NewSimulated(s.m).Inspect(context.Background(), targetOf(s.row(first)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.j.Hold(sched.OpTimeslice, in.Target, sched.Ptr(uint64(2048)), journal.Hold{Owner: other, Command: "x", Value: 999}); err != nil {
		t.Fatal(err)
	}
	if err := s.ensure(k, 200); !errors.Is(err, ErrOthers) || s.slice() != 2048 {
		t.Errorf("%v, %d us", err, s.slice())
	}
}

// A command of ours has it, and the row does not know all by which it is named.
func TestKeeperLeavesACommandAlone(t *testing.T) {
	s := simulated(t, "", nil)
	s.command(s.prepare(sched.OpTimeslice, 300))
	row := *s.row(first)
	row.UniqueID = nil
	k := s.c.Keeper(nil)
	if err := k.Ensure(context.Background(), Wish{Op: sched.OpTimeslice, Gen: row.Gen, Value: 200}, &row); !errors.Is(err, ErrOthers) || s.slice() != 300 {
		t.Errorf("%v, %d us", err, s.slice())
	}
}

// The target ends while its value is kept; undo of one takes all back.
func TestKeeperEnds(t *testing.T) {
	s := simulated(t, "", nil)
	taken := false
	k := s.c.Keeper(func() { taken = true })
	if err := s.ensure(k, 200); err != nil {
		t.Fatal(err)
	}
	var id string
	for _, c := range s.b.Snapshot(sched.SnapshotOptions{}).Commands {
		id = c.ID
	}
	p, err := s.c.Prepare(Intent{Undo: id})
	if err != nil || len(p.Warnings) == 0 {
		t.Errorf("preview of the undo: %+v, %v", p, err)
	}
	if err := s.c.Undo(id); err != nil || !taken || s.slice() != 2048 || s.holds() != 0 {
		t.Errorf("%v, %d us, %d entries", err, s.slice(), s.holds())
	}
	if err := s.ensure(k, 200); err != nil {
		t.Fatal(err)
	}
	s.m.Kill(s.m.Targets()[0].PID)
	out := s.c.Close(context.Background())
	if len(out) != 1 || out[0].State != OutcomeGone || s.holds() != 0 {
		t.Errorf("%+v, %d entries", out, s.holds())
	}
}

// RM does not answer: the hold stays in the journal, and is pending at the end.
func TestKeeperRMHangs(t *testing.T) {
	hang := make(chan struct{})
	s := simulated(t, "", func(o *Options) { o.Actuator = slow{o.Actuator, hang} })
	k := s.c.Keeper(nil)
	if err := s.ensure(k, 200); !errors.Is(err, context.DeadlineExceeded) || s.holds() != 1 {
		t.Errorf("%v, %d entries", err, s.holds())
	}
	if err := s.ensure(k, 200); !errors.Is(err, ErrQuiet) {
		t.Errorf("while it hangs: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if out := k.settle(ctx); len(out) != 1 || out[0].State != OutcomePending {
		t.Errorf("%+v", out)
	}
	close(hang)
	if out := s.c.Close(context.Background()); len(out) != 1 || out[0].State != OutcomeRestored || s.slice() != 2048 || s.holds() != 0 {
		t.Errorf("%+v, %d us, %d entries", out, s.slice(), s.holds())
	}
}

// What a killed run kept is put back from the journal, as the watcher does it.
func TestKeeperKilled(t *testing.T) {
	s := simulated(t, "", nil)
	k := s.c.Keeper(nil)
	if err := s.ensure(k, 200); err != nil {
		t.Fatal(err)
	}
	s.m.Interfere(s.m.Targets()[0], 700)
	s.Sleep(context.Background(), 200*time.Millisecond)
	if err := s.ensure(k, 200); err != nil || s.slice() != 200 {
		t.Fatalf("%v, %d us", err, s.slice())
	}
	self, _ := journal.Self()
	out, err := RestoreOf(context.Background(), NewSimulated(s.m), s.j, self, false)
	if err != nil || len(out) != 1 || out[0].State != OutcomeRestored || s.slice() != 700 || s.holds() != 0 {
		t.Errorf("%+v, %v, %d us, %d entries", out, err, s.slice(), s.holds())
	}
}
