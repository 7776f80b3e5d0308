package steward

import (
	"context"
	"slices"
	"testing"
	"time"

	"tsgtop/actions"
	"tsgtop/actions/journal"
	"tsgtop/internal/sched"
	"tsgtop/internal/sim"
	"tsgtop/internal/sim/simtest"
	"tsgtop/internal/steer"
)

// bench is a simulated GPU with a steward on it.
type bench struct {
	*simtest.GPU
	t     *testing.T
	m     *sim.Machine
	b     *sched.Board
	j     *journal.Journal
	c     *actions.Controller
	s     *Steward
	roles *steer.Roles
	said  []string
	lines []string
}

// simulated is a machine whose first target is latency-critical, all others
// best-effort.
func simulated(t *testing.T, knobs string, change func(*Options, *actions.Options)) *bench {
	t.Helper()
	g := simtest.New(t, knobs)
	s := &bench{GPU: g, t: t, m: g.Machine, b: g.Board, j: journal.Memory()}
	self, err := journal.Self()
	if err != nil {
		t.Fatal(err)
	}
	ao := actions.Options{Board: s.b, Actuator: actions.NewSimulated(s.m), Journal: s.j, Clock: s, Self: self, Me: "ada"}
	s.roles = &steer.Roles{Rules: []steer.Rule{{Role: steer.LC, PID: s.m.Targets()[0].PID}, {Role: steer.BE, Others: true}}}
	so := Options{Board: s.b, Clock: s, Roles: s.roles, Say: func(l string) { s.said = append(s.said, l) }}
	if change != nil {
		change(&so, &ao)
	}
	s.c = actions.New(ao)
	so.Keeper = s.c.Keeper(nil)
	s.s = New(so)
	if err := s.c.Arm(true); err != nil {
		t.Fatal(err)
	}
	s.Sleep(context.Background(), 200*time.Millisecond)
	return s
}

// launches are the latency-critical process's own numbers.
func (s *bench) launches() []steer.Reading {
	var out []steer.Reading
	for _, l := range s.m.Launches(s.m.Targets()[0].PID, 0) {
		out = append(out, steer.Reading{At: l.At, Value: float64(l.Took) / 1e3})
	}
	return out
}

func (s *bench) protect(before, hold time.Duration) *steer.Report {
	p := &Protection{Steward: s.s, Clock: s, Before: before, For: hold, Readings: s.launches, Line: func(l string) { s.lines = append(s.lines, l) }}
	return p.Run(context.Background())
}

// slices are RM's own copies of the compute TSGs' timeslices.
func (s *bench) slices() (us []uint64) {
	for _, t := range s.m.Targets() {
		v, _ := s.m.Timeslice(t)
		us = append(us, v)
	}
	return us
}

// closed puts everything back, and sees that it is.
func (s *bench) closed() []actions.Outcome {
	s.t.Helper()
	out := s.c.Close(context.Background())
	st, err := s.j.State()
	if err != nil || len(st.Entries) > 0 {
		s.t.Errorf("the journal has %d entries at the end, %v", len(st.Entries), err)
	}
	for _, o := range out {
		if o.State == actions.OutcomeFailed || o.State == actions.OutcomePending {
			s.t.Errorf("%s: %s", o.State, o)
		}
	}
	return out
}

func (s *bench) allAt(want ...uint64) {
	s.t.Helper()
	if got := s.slices(); !slices.Equal(got, want) {
		s.t.Errorf("timeslices %v, want %v", got, want)
	}
}
