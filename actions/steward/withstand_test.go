package steward

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"tsgtop/actions"
	"tsgtop/actions/journal"
	"tsgtop/internal/sched"
	"tsgtop/internal/steer"
)

// at calls f once, when the machine's clock is so far.
func (s *bench) at(d time.Duration, f func()) {
	due, before := s.Now().Add(d), s.Wakeup
	done := false
	s.Wakeup = func() {
		if before != nil {
			before()
		}
		if !done && s.Now() >= due {
			done = true
			f()
		}
	}
}

func (s *bench) spoke(about string) bool { return strings.Contains(strings.Join(s.said, "\n"), about) }

// A process that sets its own timeslice gets its role's again, counted; what it
// set is what it gets back.
func TestProcessSetsItsOwn(t *testing.T) {
	s := simulated(t, "lc", nil)
	s.at(3*time.Second, func() { s.m.Interfere(s.m.Targets()[1], 700) })
	s.at(4*time.Second, func() { s.m.Interfere(s.m.Targets()[1], 2048) })
	r := s.protect(time.Second, 5*time.Second)
	s.allAt(2048, steer.DefaultBE)
	if r.Totals.Again != 2 || r.Totals.Calls != 6 || r.Totals.Failed != 0 {
		t.Errorf("%+v", r.Totals)
	}
	s.closed()
	s.allAt(2048, 2048)
}

// TSGs that appear later get the role: a best-effort process that is started
// again, whose libcuda sets 2048 us first.
func TestLateTSG(t *testing.T) {
	s := simulated(t, "lc", nil)
	pid := s.m.Targets()[1].PID
	s.at(2500*time.Millisecond, func() { s.m.Kill(pid) })
	s.at(3*time.Second, func() { s.m.Respawn(pid) })
	r := s.protect(time.Second, 5*time.Second)
	s.allAt(2048, steer.DefaultBE)
	if r.Totals.TSGs != 8 {
		t.Errorf("%+v", r.Totals)
	}
	s.closed()
	s.allAt(2048, 2048)
}

// LC dies, or BE does: the others get back what they had.
func TestDeaths(t *testing.T) {
	s := simulated(t, "lc,tsgs=3", nil)
	s.at(3*time.Second, func() { s.m.Kill(s.m.Targets()[0].PID) })
	r := s.protect(time.Second, 4*time.Second)
	s.allAt(2048, 2048)
	if !strings.Contains(strings.Join(r.Notes, "\n"), "latency-critical process has ended") {
		t.Errorf("%q", r.Notes)
	}
	s.closed()

	s = simulated(t, "lc,tsgs=3", nil)
	s.at(3*time.Second, func() { s.m.Kill(s.m.Targets()[2].PID) })
	s.protect(time.Second, 4*time.Second)
	s.allAt(2048, steer.AutoBE(1)) // alone now: shorter
	s.closed()
	s.allAt(2048, 2048)
}

// Twenty best-effort processes.
func TestTwenty(t *testing.T) {
	s := simulated(t, "lc,tsgs=21", nil)
	r := s.protect(4*time.Second, 4*time.Second)
	if r.Totals.TSGs != 20 || r.Totals.Calls != 20 || r.Totals.Failed != 0 || r.Changed.State == sched.LampNo {
		t.Errorf("%+v %+v", r.Totals, r.Changed)
	}
	s.closed()
	for _, us := range s.slices() {
		if us != 2048 {
			t.Fatalf("timeslices %v", s.slices())
		}
	}
}

// BE that really is the only work, and an LC that is alone: nothing competes.
func TestOnlyWork(t *testing.T) {
	s := simulated(t, "lc,alone", nil)
	r := s.protect(time.Second, 2*time.Second)
	if r.Totals.Calls != 0 || r.Changed.State != sched.LampUnknown || !strings.Contains(strings.Join(r.Notes, "\n"), "nothing to change") {
		t.Errorf("%+v %+v %q", r.Totals, r.Changed, r.Notes)
	}
	s.closed()
}

// An LC process that spins for ever, at one second: BE starves; with a rule, the
// roles are lifted, and that is said.
func TestSpinningLC(t *testing.T) {
	for _, lift := range []bool{false, true} {
		s := simulated(t, "", func(o *Options, _ *actions.Options) {
			o.Roles.LC = 1_000_000
			o.Lift = lift
		})
		s.m.Reprogram(s.m.Targets()[0].PID, 10*time.Second)
		r := s.protect(time.Second, 6*time.Second)
		if len(r.Starving) != 1 || !s.spoke("starves") {
			t.Errorf("lift %v: %q, %q", lift, r.Starving, s.said)
		}
		if lift {
			s.allAt(2048, 2048)
			if !s.spoke("is lifted") || !s.spoke("put back too") || !strings.Contains(strings.Join(r.Notes, "\n"), "was lifted") {
				t.Errorf("%q %q", s.said, r.Notes)
			}
		} else {
			s.allAt(1_000_000, steer.DefaultBE)
			if !strings.Contains(strings.Join(r.Notes, "\n"), "had work all the time") {
				t.Errorf("%q; %+v", r.Notes, r.During)
			}
		}
		s.closed()
		s.allAt(2048, 2048)
	}
}

// Nobody starves in an ordinary run.
func TestNobodyStarves(t *testing.T) {
	s := simulated(t, "lc,tsgs=4", nil)
	if r := s.protect(time.Second, 4*time.Second); len(r.Starving) != 0 {
		t.Errorf("%q", r.Starving)
	}
	s.closed()
}

// Several LC processes are not protected from each other.
func TestTwoLC(t *testing.T) {
	s := simulated(t, "lc,tsgs=3", func(o *Options, _ *actions.Options) {
		o.Roles.Rules = []steer.Rule{{Role: steer.LC, PID: 479}, {Role: steer.LC, PID: 480}, {Role: steer.BE, Others: true}}
	})
	r := s.protect(time.Second, 2*time.Second)
	s.allAt(2048, 2048, steer.DefaultBE)
	if !strings.Contains(strings.Join(r.Notes, "\n"), "not protected from each other") {
		t.Errorf("%q", r.Notes)
	}
	s.closed()
}

// Two tools at once: who came first keeps the value, the other says so and leaves
// it alone.
func TestTwoTools(t *testing.T) {
	s := simulated(t, "lc", nil)
	other := journal.Owner{PID: 1}
	other.Start, _ = journal.ProcessStart(1)
	target := s.m.Targets()[1]
	if _, err := s.j.Hold(sched.OpTimeslice, target, sched.Ptr(uint64(2048)), journal.Hold{Owner: other, Command: "x", Value: 500, Before: 2048}); err != nil {
		t.Fatal(err)
	}
	s.m.Interfere(target, 500)
	s.protect(time.Second, 2*time.Second)
	s.allAt(2048, 500)
	if !s.spoke("somebody else of tsgtop has it: pid 1 has set it to 500 us") {
		t.Errorf("%q", s.said)
	}
	s.c.Close(context.Background())
	s.allAt(2048, 500)
}

// An MPS server is left alone unless it is named.
func TestMPS(t *testing.T) {
	s := simulated(t, "lc,tsgs=3", nil)
	target, client := s.m.Targets()[1], sched.Handle(0xc1dffff0)
	// A client of it: another process, with a handle to the same TSG.
	s.b.Feed([]sched.Event{sched.Process{Time: s.Now(), PID: target.PID, Start: target.Start, Exe: "/usr/bin/nvidia-cuda-mps-server", Comm: "nvidia-cuda-mps"},
		sched.Inventory{Start: s.Now() - 1, End: s.Now(), Partial: true,
			Clients: []sched.FoundClient{{Client: target.Object.Client, PID: target.PID, MPS: true}, {Client: client, PID: 4711, MPS: true}},
			TSGs:    []sched.FoundTSG{{Object: sched.Object{Client: client, Handle: 0x5c00000f}, GPU: 0, Runlist: 0, Contexts: target.Contexts, PID: 4711}}}})
	s.protect(time.Second, 2*time.Second)
	s.allAt(2048, 2048, steer.DefaultBE)
	if !s.spoke("is an MPS server: its clients share one TSG") {
		t.Errorf("%q", s.said)
	}
	s.roles.Rules = append([]steer.Rule{{Role: steer.BE, PID: target.PID}}, s.roles.Rules...)
	s.protect(time.Second, 2*time.Second)
	if !s.spoke("its role hits all of its clients") || s.slices()[1] == 2048 {
		t.Errorf("%q %v", s.said, s.slices())
	}
	s.roles.Rules[0].PID = 4711 // a client: it is the server's TSG that it computes in
	s.protect(time.Second, time.Second)
	if s.slices()[1] == 2048 {
		t.Errorf("%v", s.slices())
	}
	s.closed()
	s.allAt(2048, 2048, 2048)
}

// A fork that goes on with its parent's client keeps the role of a mark.
func TestForkKeepsMark(t *testing.T) {
	s := simulated(t, "lc", func(o *Options, _ *actions.Options) { o.Roles.Rules = nil })
	target := s.m.Targets()[1]
	row := func() *sched.TSGView {
		snap := s.b.Snapshot(sched.SnapshotOptions{})
		for i := range snap.TSGs {
			if snap.TSGs[i].Object == target.Object {
				return &snap.TSGs[i]
			}
		}
		t.Fatal("no row")
		return nil
	}
	s.s.Mark(steer.ProcOf(row()), steer.BE)
	s.s.On(true)
	s.s.Step(context.Background())
	s.allAt(2048, steer.DefaultBE)
	// The child, pid 9999, holds the file; the parent is gone.
	s.b.Feed([]sched.Event{sched.Inventory{Start: s.Now() - 1, End: s.Now(), Clients: []sched.FoundClient{{Client: target.Object.Client, PID: 9999, PIDs: []int{9999}}}, Partial: true}})
	s.s.Step(context.Background())
	if row().Process.PID != 9999 {
		t.Fatalf("the state names pid %d, not the child that holds the file", row().Process.PID)
	}
	s.allAt(2048, steer.DefaultBE)
	s.s.Mark(steer.Proc{PID: target.PID, Start: target.Start}, steer.NoRole)
	s.s.Step(context.Background())
	s.allAt(2048, 2048)
	s.closed()
}

// A mark goes on and off again.
func TestMarkOnAndOff(t *testing.T) {
	s := simulated(t, "lc", func(o *Options, _ *actions.Options) { o.Roles.Rules = nil })
	p := steer.Proc{PID: s.m.Targets()[1].PID, Start: s.m.Targets()[1].Start}
	s.s.On(true)
	s.s.Mark(p, steer.BE)
	s.s.Step(context.Background())
	s.allAt(2048, steer.DefaultBE)
	if role, _ := s.s.Role(p); role != steer.BE {
		t.Errorf("role %q", role)
	}
	s.s.Mark(p, steer.NoRole)
	s.s.Step(context.Background())
	s.allAt(2048, 2048)
	s.s.Mark(p, steer.BE)
	s.s.Step(context.Background())
	s.s.Clear()
	s.s.Step(context.Background())
	s.allAt(2048, 2048)
	s.closed()
}

// The trace loses much: the lamp does not guess.
func TestTornTrace(t *testing.T) {
	s := simulated(t, "lc,lose=40", nil)
	r := s.protect(2*time.Second, 3*time.Second)
	if r.Changed.State != sched.LampUnknown || !strings.Contains(r.Changed.Why, "gap") {
		t.Errorf("%+v", r.Changed)
	}
	s.closed()
}

// An A/A run: roles that give what is there already show no change.
func TestNothingChangedNothingSaid(t *testing.T) {
	for seed := range 20 {
		s := simulated(t, "lc,timeslice=ignore,noise=30,seed="+strconv.Itoa(seed%10)+map[bool]string{true: ",tsgs=3", false: ""}[seed >= 10], nil)
		r := s.protect(2*time.Second, 4*time.Second)
		if r.Changed.State == sched.LampYes || r.Helped.State == sched.LampYes {
			t.Errorf("seed %d: %+v, %+v", seed, r.Changed, r.Helped)
		}
		s.closed()
	}
}

// BE's kernels become short while roles are held: turns are short then for a
// reason of their own.
func TestKernelsBecomeShort(t *testing.T) {
	s := simulated(t, "lc,timeslice=ignore", nil)
	s.at(4*time.Second, func() { s.m.Reprogram(s.m.Targets()[1].PID, 600*time.Microsecond) })
	r := s.protect(4*time.Second, 8*time.Second)
	if r.Changed.State != sched.LampUnknown || !strings.Contains(r.Changed.Why, "kernels have become short") {
		t.Errorf("%+v", r.Changed)
	}
	s.closed()
}
