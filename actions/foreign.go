//go:build linux

package actions

import (
	"fmt"
	"os"
	"slices"
	"sync"

	"tsgtop/actions/journal"
	"tsgtop/internal/crash"
	"tsgtop/internal/sched"
)

// foreign knows who else set values that commands had set: the stream of RM
// calls shows it, also where the value is the same, or cannot be read back.
type foreign struct {
	mu   sync.Mutex
	last map[valueOf]setting
	own  map[valueOf]owned // what tsgtop set last; only these are kept
}

// owned is what this tsgtop set, on which process's TSG. value nil: it let go.
type owned struct {
	at    sched.Time
	pid   int
	value *uint64
}

type valueOf struct {
	op     sched.Op
	object sched.Object
}

type setting struct {
	at    sched.Time
	pid   int
	value *uint64
}

// set notes that tsgtop set a value.
func (f *foreign) set(op sched.Op, t sched.Target, value *uint64, at sched.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.own == nil {
		f.own, f.last = map[valueOf]owned{}, map[valueOf]setting{}
	}
	if op != sched.OpPreempt {
		f.own[valueOf{op, t.Object}] = owned{at, t.PID, value}
	}
}

// handsBack tells whether a setting is another tsgtop's, or its watcher's, that
// gives ours back after it had set another: neither is the TSG's own process.
func (f *foreign) handsBack(v valueOf, l sched.Lifecycle) bool {
	own, last := f.own[v], f.last[v]
	return own.value != nil && l.Value != nil && *l.Value == *own.value && l.PID != own.pid && last.at > own.at && last.pid != own.pid
}

// note looks for settings by others of what tsgtop had set, and tells of each.
func (f *foreign) note(events []sched.Event, tell func(valueOf)) {
	for _, e := range events {
		l, ok := e.(sched.Lifecycle)
		if !ok || l.Status != 0 || l.Command != "" || l.PID == os.Getpid() {
			continue
		}
		v := valueOf{sched.OpTimeslice, l.Object}
		switch l.Kind {
		case sched.TimesliceSet:
		case sched.InterleaveSet:
			v.op = sched.OpInterleave
		default:
			continue
		}
		f.mu.Lock()
		own, held := f.own[v]
		held = held && l.Time > own.at
		switch {
		case held && f.handsBack(v, l):
			delete(f.last, v)
			held = false
		case held:
			f.last[v] = setting{l.Time, l.PID, l.Value}
		}
		f.mu.Unlock()
		if held {
			tell(v)
		}
	}
}

// since says who else set a value after tsgtop did.
func (f *foreign) since(op sched.Op, o sched.Object) (words string, yes bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	v := valueOf{op, o}
	s, seen := f.last[v]
	if !seen || s.at <= f.own[v].at {
		return "", false
	}
	value := ""
	if s.value != nil {
		value = " to " + valueText(op, *s.value)
	}
	return fmt.Sprintf("pid %d has set it%s itself since: it is left alone", s.pid, value), true
}

// overtake takes what others have set since out of the journal: there is nothing
// left to put back, also if tsgtop is killed. It does not wait: it is called
// while the board hands out events.
func (c *Controller) overtake(v valueOf) {
	crash.Go(func() {
		c.mu.Lock()
		var runs []*run
		for k, stack := range c.stacks {
			if k.Op == v.op && k.Object == v.object {
				runs = slices.Clone(stack)
			}
		}
		c.mu.Unlock()
		for i := len(runs) - 1; i >= 0; i-- {
			select {
			case <-runs[i].done:
				runs[i].overtaken()
			default: // under way: its undo will see it
				return
			}
		}
	})
}

// overtaken lets go of a command's value, which somebody else has set since.
func (r *run) overtaken() {
	r.turn.Lock()
	defer r.turn.Unlock()
	by, since := r.c.foreign.since(r.cmd.Op, r.cmd.Target.Object)
	if !since || !r.life.changed || !r.life.answered {
		return
	}
	s, err := r.c.o.Journal.State()
	if err != nil {
		return // the undo will see it
	}
	if e := s.Find(journal.KeyOf(r.cmd.Op, r.cmd.Target)); e != nil {
		if _, inForce := e.Without(r.c.o.Self); !inForce {
			return // it was another tsgtop, which knows what to put back
		}
	}
	if r.c.o.Journal.Release(r.cmd.Op, r.cmd.Target, r.c.o.Self, by) != nil {
		return
	}
	r.setOutcome(Outcome{Op: r.cmd.Op, Target: r.cmd.Target, Was: r.cmd.New, Commands: []string{r.cmd.ID}, State: OutcomeForeign, Why: by})
	r.c.drop(r)
	r.life, _ = next(r.life, takenOver)
	r.change(func(cmd *sched.Command) { cmd.Undo, cmd.Restored = by, sched.Ptr(false) })
}

// commanded tells whether a command is under way on a TSG, or has its value.
func (c *Controller) commanded(op sched.Op, t sched.Target) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.flying[t.Object] != nil || len(c.stacks[journal.KeyOf(op, t)]) > 0
}
