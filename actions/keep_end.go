//go:build linux

package actions

import (
	"context"
	"errors"
	"slices"
	"time"

	"tsgtop/actions/audit"
	"tsgtop/actions/journal"
	"tsgtop/internal/sched"
)

// Timeslice reads RM's own copy of a TSG's timeslice, in us; nil: it cannot be read.
func (k *Keeper) Timeslice(ctx context.Context, row *sched.TSGView) (*uint64, error) {
	i, err := k.c.o.Actuator.Inspect(ctx, targetOf(row))
	return i.Timeslice, err
}

// Counters reads the GSP's switch counters of a TSG; nil where they do not answer.
func (k *Keeper) Counters(ctx context.Context, row *sched.TSGView) *Counters {
	return k.c.o.Actuator.Counters(ctx, targetOf(row))
}

// LetGo puts back those values for which drop says so.
func (k *Keeper) LetGo(ctx context.Context, drop func(op sched.Op, t sched.Target) bool) []Outcome {
	k.mu.Lock()
	var go_ []keepKey
	for key, x := range k.kept {
		if drop(key.op, x.target) && !x.waiting {
			go_ = append(go_, key)
		}
	}
	k.mu.Unlock()
	slices.SortFunc(go_, func(a, b keepKey) int { return int(int64(b.gen) - int64(a.gen)) })
	var out []Outcome
	for _, key := range go_ {
		if o, was := k.putBack(ctx, key); was {
			out = append(out, o)
		}
	}
	return out
}

// putBack puts one value back.
func (k *Keeper) putBack(ctx context.Context, key keepKey) (Outcome, bool) {
	c := k.c
	k.mu.Lock()
	x := k.kept[key]
	if x == nil || !x.held {
		delete(k.kept, key)
		k.mu.Unlock()
		return Outcome{}, false
	}
	target, cmd := x.target, x.cmd
	k.mu.Unlock()
	s, err := c.o.Journal.State()
	if err != nil {
		return Outcome{Op: key.op, Target: target, Was: cmd.New, Value: cmd.Old, Commands: []string{cmd.ID}, State: OutcomeFailed, Why: err.Error()}, true
	}
	e := s.Find(journal.KeyOf(key.op, target))
	if e == nil || e.HeldBy(c.o.Self) == nil {
		k.mu.Lock()
		delete(k.kept, key)
		k.mu.Unlock()
		return Outcome{}, false
	}
	o := Outcome{Op: key.op, Target: target, Was: cmd.New, Value: cmd.Old, Commands: []string{cmd.ID}, State: OutcomeForeign}
	// A timeslice is read back: where it still is ours, it is ours. The end of a
	// call that came before ours can be seen after it.
	if by, since := c.foreign.since(key.op, target.Object); since && key.op == sched.OpInterleave {
		o.Why = by
		if err := c.o.Journal.Release(key.op, target, c.o.Self, by); err != nil {
			o.Why += "; but the journal could not be told: " + err.Error()
		}
	} else {
		o = restoreEntry(ctx, c.o.Actuator, c.o.Journal, *e, c.o.Self)
	}
	c.ours(key.op, target, nil)
	k.mu.Lock()
	if o.Done() {
		delete(k.kept, key)
	}
	k.mu.Unlock()
	cmd.Time, cmd.Undo = c.o.Clock.Now(), o.Why
	cmd.Restored = sched.Ptr(o.State == OutcomeRestored || o.State == OutcomeAlready)
	if o.Done() {
		cmd.Step = sched.StepUndone
	}
	line := audit.OfCommand(audit.Undo, cmd)
	line.Why = string(o.State) + ": " + o.Why
	if err := c.o.Audit.Write(line); err != nil {
		o.Why += "; but its undo is not in the audit log: " + err.Error()
	}
	c.o.Board.Feed([]sched.Event{cmd})
	return o, true
}

// owns tells whether a command's id is one of ours.
func (k *Keeper) owns(id string) bool {
	if k == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, x := range k.kept {
		if x.cmd.ID == id {
			return true
		}
	}
	return false
}

// previewUndo is the preview of an undo of one of ours.
func (k *Keeper) previewUndo(id string) (Preview, bool) {
	if k == nil {
		return Preview{}, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, x := range k.kept {
		if x.cmd.ID == id {
			return Preview{Intent: Intent{Op: x.cmd.Op, Undo: id}, Target: x.target, Old: x.cmd.New, New: x.old, Actuator: x.cmd.Actuator,
				Warnings: []string{"all roles are taken back with it"}, Undo: "nothing: the roles are off, and what they set is as it was"}, true
		}
	}
	return Preview{}, false
}

// takeBack is the operator's undo of one of ours: all are put back.
func (k *Keeper) takeBack() error {
	k.mu.Lock()
	undo := k.undo
	k.mu.Unlock()
	if undo != nil {
		undo()
	}
	for _, o := range k.LetGo(context.Background(), func(sched.Op, sched.Target) bool { return true }) {
		if o.State == OutcomeFailed {
			return errors.New(o.String())
		}
	}
	return nil
}

// settle puts everything back at the end. What RM has not answered is pending:
// the watcher puts it back.
func (k *Keeper) settle(ctx context.Context) []Outcome {
	if k == nil {
		return nil
	}
	for ctx.Err() == nil && k.pending() > 0 {
		time.Sleep(2 * time.Millisecond)
	}
	out := k.LetGo(ctx, func(sched.Op, sched.Target) bool { return true })
	return append(out, k.unsettled()...)
}

func (k *Keeper) pending() (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n = k.busy
	for _, x := range k.kept {
		if x.waiting {
			n++
		}
	}
	return n
}

// unsettled lists what may still be changed because RM has not answered.
func (k *Keeper) unsettled() (out []Outcome) {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, x := range k.kept {
		if x.waiting {
			out = append(out, Outcome{Op: key.op, Target: x.target, Was: &x.value, Value: x.old, Commands: []string{x.cmd.ID}, State: OutcomePending, Why: k.c.pendingWhy()})
		}
	}
	return out
}

// All is what is kept, or was tried, in no order.
func (k *Keeper) All() []Kept {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []Kept
	for key, x := range k.kept {
		out = append(out, Kept{Op: key.op, Target: x.target, Value: x.value, Old: x.old, Held: x.held, Calls: x.cmd.Calls.Sent, Again: x.again,
			Results: slices.Clone(x.all), Err: x.err})
	}
	return out
}

// Has tells whether a value is kept at a TSG.
func (k *Keeper) Has(op sched.Op, gen uint64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	x := k.kept[keepKey{op, gen}]
	return x != nil && x.held
}

// Original is what a TSG had before the value that is kept at it; not ok where none
// is kept, or it cannot be read back.
func (k *Keeper) Original(op sched.Op, gen uint64) (old uint64, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	x := k.kept[keepKey{op, gen}]
	if x == nil || !x.held || x.old == nil {
		return 0, false
	}
	return *x.old, true
}

// RanOf and AcceptedOf are the lamps of some calls of a Keeper.
func RanOf(results []Result) sched.Lamp          { return ranOf(results) }
func AcceptedOf(results []Result) sched.Accepted { return acceptedOfAll(results) }
