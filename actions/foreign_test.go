//go:build linux

package actions

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"tsgtop/actions/journal"
	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
)

// A value that somebody else has set since is theirs, also where it is the very
// value that tsgtop had set, and where it cannot be read back: the stream of
// calls shows it.
func TestForeignSettingIsSeenInTheStream(t *testing.T) {
	for _, c := range []struct {
		op    sched.Op
		value uint64
		set   func(*bench)
	}{
		{sched.OpTimeslice, 200, func(s *bench) { s.m.Interfere(s.m.Targets()[0], 200) }},
		{sched.OpInterleave, 2, func(s *bench) {
			p := s.m.Targets()[0]
			s.b.Feed([]sched.Event{sched.CallBatch{Calls: []sched.Call{{Start: s.Now(), End: s.Now() + 1e5, PID: p.PID, Kind: sched.CallControl,
				Number: rm.CtrlTSGSetInterleave, Client: p.Object.Client, Object: p.Object.Handle, Params: &sched.Params{Interleave: sched.Ptr(uint32(2))}}}}})
		}},
	} {
		s := simulated(t, "interleave=obey", nil)
		cmd := s.command(s.prepare(c.op, c.value))
		c.set(s)
		s.Sleep(context.Background(), 100*time.Millisecond)
		for i := 0; s.holds() > 0 && i < 2000; i++ {
			time.Sleep(time.Millisecond)
		}
		if s.holds() != 0 {
			t.Errorf("%s: the journal has it still", c.op)
		}
		sent := s.slice()
		out := s.c.Close(context.Background())
		if len(out) != 1 || out[0].State != OutcomeForeign || !strings.Contains(out[0].Why, fmt.Sprintf("pid %d has set it", cmd.Target.PID)) || s.slice() != sent {
			t.Errorf("%s: %+v, %d us", c.op, out, s.slice())
		}
	}
}

// Another tsgtop sets a value after us, and hands ours back when it ends: it is
// ours again, to be put back. Its watcher can be who hands it back.
func TestAnotherTsgtopHandsBack(t *testing.T) {
	for _, c := range []struct {
		op     sched.Op
		number uint32
		ours   uint64
		params func(uint32) *sched.Params
	}{
		{sched.OpTimeslice, rm.CtrlTSGSetTimeslice, 200, func(v uint32) *sched.Params { return &sched.Params{Timeslice: sched.Ptr(uint64(v))} }},
		{sched.OpInterleave, rm.CtrlTSGSetInterleave, 2, func(v uint32) *sched.Params { return &sched.Params{Interleave: &v} }},
	} {
		s := simulated(t, "interleave=obey", nil)
		first := s.slice()
		cmd := s.command(s.prepare(c.op, c.ours))
		other := journal.Owner{PID: 999_999, Start: 1}
		hold := journal.Hold{Owner: other, Command: "o", Value: 1, Before: c.ours, Actuator: "fd"}
		if _, err := s.j.Hold(c.op, cmd.Target, &c.ours, hold); err != nil {
			t.Fatal(err)
		}
		set := func(pid int, value uint32) {
			s.b.Feed([]sched.Event{sched.CallBatch{Calls: []sched.Call{{Start: s.Now(), End: s.Now() + 1e5, PID: pid, Kind: sched.CallControl,
				Number: c.number, Client: cmd.Target.Object.Client, Object: cmd.Target.Object.Handle, Params: c.params(value)}}}})
			s.Sleep(context.Background(), 50*time.Millisecond)
		}
		set(other.PID, 1)
		time.Sleep(20 * time.Millisecond) // for what the news sets off
		if s.holds() != 1 {
			t.Fatalf("%s: ours is out of the journal while another tsgtop has it", c.op)
		}
		set(other.PID+1, uint32(c.ours))
		if err := s.j.Release(c.op, cmd.Target, other, "put back"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
		out := s.c.Close(context.Background())
		if len(out) != 1 || out[0].State != OutcomeRestored || s.slice() != first || s.holds() != 0 {
			t.Errorf("%s: %+v, %d us, %d entries", c.op, out, s.slice(), s.holds())
		}
	}
}

// While another tsgtop has it, it is that one that will put it back: not the
// process's own value.
func TestAnotherTsgtopHasIt(t *testing.T) {
	s := simulated(t, "", nil)
	cmd := s.command(s.prepare(sched.OpTimeslice, 200))
	other := journal.Owner{PID: 999_999, Start: 1}
	if _, err := s.j.Hold(cmd.Op, cmd.Target, cmd.New, journal.Hold{Owner: other, Command: "o", Value: 300, Before: 200, Actuator: "fd"}); err != nil {
		t.Fatal(err)
	}
	s.b.Feed([]sched.Event{sched.CallBatch{Calls: []sched.Call{{Start: s.Now(), End: s.Now() + 1e5, PID: other.PID, Kind: sched.CallControl,
		Number: rm.CtrlTSGSetTimeslice, Client: cmd.Target.Object.Client, Object: cmd.Target.Object.Handle, Params: &sched.Params{Timeslice: sched.Ptr(uint64(300))}}}}})
	s.Sleep(context.Background(), 50*time.Millisecond)
	out := s.c.Close(context.Background())
	if len(out) != 1 || out[0].State != OutcomeShared || out[0].Why != sharedWhy || s.holds() != 1 {
		t.Errorf("%+v, %d entries", out, s.holds())
	}
}
