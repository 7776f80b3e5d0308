package actions

import (
	"context"
	"fmt"
	"testing"
	"time"

	"tsgtop/actions/journal"
	"tsgtop/internal/sched"
	"tsgtop/internal/sim"
	"tsgtop/internal/sim/simtest"
)

// bench is a simulated GPU with a controller on it.
type bench struct {
	*simtest.GPU
	t *testing.T
	m *sim.Machine
	b *sched.Board
	c *Controller
	j *journal.Journal

	seen []sched.Command
}

func simulated(t *testing.T, knobs string, change func(*Options)) *bench {
	t.Helper()
	g := simtest.New(t, knobs)
	s := &bench{GPU: g, t: t, m: g.Machine, b: g.Board, j: journal.Memory()}
	self, err := journal.Self()
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Board: s.b, Actuator: NewSimulated(s.m), Journal: s.j, Clock: s, Self: self, Me: "ada"}
	if change != nil {
		change(&o)
	}
	s.c = New(o)
	s.b.Tap(func(es []sched.Event) {
		for _, e := range es {
			if c, ok := e.(sched.Command); ok {
				s.seen = append(s.seen, c)
			}
		}
	})
	if err := s.c.Arm(true); err != nil && o.ReadOnly == "" {
		t.Fatal(err)
	}
	s.Sleep(context.Background(), 4500*time.Millisecond)
	return s
}

// gen finds the row of a TSG.
func (s *bench) gen(id sched.TSGID) uint64 {
	s.t.Helper()
	for _, v := range s.b.Snapshot(sched.SnapshotOptions{}).TSGs {
		if v.ID == id {
			return v.Gen
		}
	}
	s.t.Fatalf("no TSG %s on the board", id)
	return 0
}

var first = sched.TSGID{GPU: 0, Runlist: 0, TSG: 7}

func (s *bench) prepare(op sched.Op, value uint64) Preview {
	s.t.Helper()
	p, err := s.c.Prepare(Intent{Op: op, Gen: s.gen(first), Value: &value})
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

// command sends a command and waits for its end.
func (s *bench) command(p Preview) sched.Command {
	s.t.Helper()
	id, err := s.c.Submit(p)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.wait(id)
}

func (s *bench) wait(id string) sched.Command {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cmd, err := s.c.Wait(ctx, id)
	if err != nil {
		s.t.Fatalf("command %+v: %v", cmd, err)
	}
	return cmd
}

// slice is the timeslice that the simulated RM has for the first target.
func (s *bench) slice() uint64 {
	us, _ := s.m.Timeslice(s.m.Targets()[0])
	return us
}

func (s *bench) holds() int {
	s.t.Helper()
	st, err := s.j.State()
	if err != nil {
		s.t.Fatal(err)
	}
	return len(st.Entries)
}

func lamps(c sched.Command) string {
	return fmt.Sprintf("%s/%s@%s/%s", c.Ran.State, c.Accepted.State, c.Accepted.Where, c.Changed.State)
}
