//go:build linux

package actions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tsgtop/actions/audit"
	"tsgtop/actions/journal"
	"tsgtop/internal/crash"
	"tsgtop/internal/sched"
)

// push notes that a command is about to change a value.
func (c *Controller) push(r *run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := journal.KeyOf(r.cmd.Op, r.cmd.Target)
	c.stacks[k] = append(c.stacks[k], r)
}

// drop notes that it did not, or that it is undone.
func (c *Controller) drop(r *run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := journal.KeyOf(r.cmd.Op, r.cmd.Target)
	c.stacks[k] = slices.DeleteFunc(c.stacks[k], func(x *run) bool { return x == r })
	if len(c.stacks[k]) == 0 {
		delete(c.stacks, k)
	}
}

// ours notes that tsgtop itself has just set a value, or preempted: the GPU's
// schedule was disturbed, so that a baseline begins after it, and what others
// set before it does not count as set since. value is what it holds then; nil:
// nothing.
func (c *Controller) ours(op sched.Op, t sched.Target, value *uint64) {
	now := c.o.Clock.Now()
	c.foreign.set(op, t, value, now)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calm[t.GPU] = now.Add(settleAfter)
}

// below is the command whose value comes back when r is undone, or nil; above is
// the one that changed it after r, or nil.
func (c *Controller) neighbours(r *run) (below, above *run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stacks[journal.KeyOf(r.cmd.Op, r.cmd.Target)]
	i := slices.Index(s, r)
	if i > 0 {
		below = s[i-1]
	}
	if i >= 0 && i < len(s)-1 {
		above = s[i+1]
	}
	return below, above
}

// putBack undoes the command: the value that the command before it set, or what
// it was at first.
func (r *run) putBack() happening {
	below, above := r.c.neighbours(r)
	if above != nil {
		r.change(func(c *sched.Command) {
			c.Restored = sched.Ptr(false)
			c.Undo = fmt.Sprintf("not undone: command #%d has set it since; undo that one first", above.cmd.Number)
		})
		return undoFailed
	}
	cmd := r.command()
	ours := []uint64{*cmd.New}
	if cmd.Old != nil {
		ours = append(ours, *cmd.Old)
	}
	want, inForce := r.before()
	if below != nil {
		want = below.cmd.New
	}
	o := Outcome{Op: cmd.Op, Target: cmd.Target, Was: cmd.New, Commands: []string{cmd.ID}, State: OutcomeShared, Why: sharedWhy}
	if by, since := r.c.foreign.since(cmd.Op, cmd.Target.Object); inForce && since {
		o.State, o.Why = OutcomeForeign, by
	} else if inForce {
		o = putBack(context.Background(), r.c.o.Actuator, cmd.Op, cmd.Target, cmd.ID, ours, want)
	}
	r.setOutcome(o)
	held := cmd.New
	switch {
	case !o.Done():
	case below != nil:
		held = below.cmd.New
	default:
		held = nil
	}
	r.c.ours(cmd.Op, cmd.Target, held)
	if o.Done() {
		r.c.drop(r)
		if err := r.tellJournal(o, below); err != nil {
			o.Why += "; but the journal could not be told: " + err.Error()
			r.setOutcome(o)
		}
	}
	r.change(func(c *sched.Command) {
		c.Undo = o.Why
		c.Restored = sched.Ptr(o.State == OutcomeRestored || o.State == OutcomeAlready)
	})
	line := r.line(audit.Undo)
	line.Why = string(o.State) + ": " + o.Why
	if err := r.c.o.Audit.Write(line); err != nil {
		r.change(func(c *sched.Command) { c.Why = "its undo is not in the audit log: " + err.Error() })
	}
	if !o.Done() {
		return undoFailed
	}
	return undone
}

// before is what the value was before this tsgtop changed it, and whether what
// it made of it is in force: another tsgtop can have changed it since.
func (r *run) before() (value *uint64, inForce bool) {
	s, err := r.c.o.Journal.State()
	if err != nil {
		return r.original, true
	}
	e := s.Find(journal.KeyOf(r.cmd.Op, r.cmd.Target))
	if e == nil || e.HeldBy(r.c.o.Self) == nil {
		return r.original, true
	}
	return e.Without(r.c.o.Self)
}

// tellJournal writes down what holds after an undo.
func (r *run) tellJournal(o Outcome, below *run) error {
	cmd, j, self := r.command(), r.c.o.Journal, r.c.o.Self
	if below == nil || o.State == OutcomeGone || o.State == OutcomeForeign || o.State == OutcomeShared {
		return j.Release(cmd.Op, cmd.Target, self, o.Why)
	}
	h := journal.Hold{Owner: self, Command: below.cmd.ID, Value: *below.cmd.New, Actuator: cmd.Actuator}
	if below.cmd.Old != nil {
		h.Before = *below.cmd.Old
	}
	_, err := j.Hold(cmd.Op, cmd.Target, r.original, h)
	return err
}

// Undo puts back what a command changed; empty: what the last one did that is
// not undone. It returns when it is done or has failed.
func (c *Controller) Undo(id string) error {
	c.mu.Lock()
	keeper := c.keeper
	c.mu.Unlock()
	if keeper.owns(id) {
		return keeper.takeBack()
	}
	c.mu.Lock()
	var r *run
	if id != "" {
		r = c.runs[id]
	} else {
		for i := len(c.order) - 1; i >= 0 && r == nil; i-- {
			x := c.order[i]
			if slices.Contains(c.stacks[journal.KeyOf(x.cmd.Op, x.cmd.Target)], x) {
				r = x
			}
		}
	}
	c.mu.Unlock()
	if r == nil {
		return errors.New("there is nothing to undo")
	}
	cmd := r.command()
	if cmd.Op == sched.OpPreempt {
		return fmt.Errorf("command #%d: %s", cmd.Number, undoWords(Intent{Op: cmd.Op}, nil, false))
	}
	if cmd.Step == sched.StepUndone {
		return fmt.Errorf("command #%d is undone already", cmd.Number)
	}
	r.request(undoAsked)
	<-r.done
	if r.command().Restored == nil { // asked for while it was under way, and answered before it was looked at
		if h, ok := r.asked(); ok {
			r.happen(h)
		}
	}
	cmd = r.command()
	switch {
	case cmd.Step == sched.StepUndone || cmd.Step == sched.StepRefused:
		return nil
	case cmd.Restored != nil && !*cmd.Restored:
		return fmt.Errorf("command #%d: %s", cmd.Number, cmd.Undo)
	}
	return fmt.Errorf("command #%d: there is nothing to put back: %s", cmd.Number, cmd.Accepted.Why)
}

// prepareUndo is the preview of an undo.
func (c *Controller) prepareUndo(id string) (Preview, error) {
	c.mu.Lock()
	r, keeper := c.runs[id], c.keeper
	c.mu.Unlock()
	if p, ok := keeper.previewUndo(id); ok {
		return p, nil
	}
	if r == nil {
		return Preview{}, fmt.Errorf("there is no command %s to undo", id)
	}
	cmd := r.command()
	return Preview{Intent: Intent{Op: cmd.Op, Undo: id}, Target: cmd.Target, Old: cmd.New, New: cmd.Old, Actuator: cmd.Actuator, Undo: undoWords(Intent{Op: cmd.Op}, cmd.Old, false)}, nil
}

// watch makes sure that somebody puts values back if this process is killed.
func (c *Controller) watch() error {
	if !c.o.Watch {
		return nil
	}
	c.watching.Lock()
	defer c.watching.Unlock()
	c.mu.Lock()
	w := c.watcher
	c.mu.Unlock()
	if w.alive() {
		return nil
	}
	w, err := startWatcher(c.o.Journal, c.o.Self, c.o.Audit.Path(), c.o.WatchArgs...)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.watcher = w
	c.mu.Unlock()
	return nil
}

// closePatience is how long Close waits for RM.
const closePatience = 10 * time.Second

// Close takes no more commands, takes back those that were not sent yet, and
// puts back what was changed; with Keep, it lists it. Where RM does not answer
// in time, the rest is left to the watcher. The outcomes say what is what;
// OutcomeFailed is still changed.
func (c *Controller) Close(ctx context.Context) []Outcome {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed, c.armed = true, false
	runs, keeper := slices.Clone(c.order), c.keeper
	c.mu.Unlock()
	for _, r := range runs {
		select {
		case <-r.done:
		default:
			r.request(cancelled)
			if !c.o.Keep {
				r.request(undoAsked)
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, closePatience)
	defer cancel()
	out := make(chan []Outcome, 1)
	crash.Go(func() { out <- append(c.settle(ctx, runs), keeper.settle(ctx)...) })
	var outcomes []Outcome
	select {
	case outcomes = <-out:
	case <-ctx.Done():
		outcomes = append(c.unsettled(), keeper.unsettled()...)
	}
	c.untap()
	has := func(s OutcomeState) bool {
		return slices.ContainsFunc(outcomes, func(o Outcome) bool { return o.State == s })
	}
	c.mu.Lock()
	w := c.watcher
	c.mu.Unlock()
	switch {
	case has(OutcomePending) || ctx.Err() != nil:
		// A call is under way, and may change the value yet: the watcher must not
		// begin before this process has ended, which it cannot before the call is back.
	case has(OutcomeFailed) || c.meterLeft():
		w.leave()
	default:
		w.dismiss()
	}
	if ctx.Err() == nil {
		c.o.Actuator.Release()
	}
	return outcomes
}

// meterLeft tells whether RM's RPC meter may be on still.
func (c *Controller) meterLeft() bool {
	s, err := c.o.Journal.State()
	return err == nil && s.Meter != nil && *s.Meter == c.o.Self
}

// settle waits for the commands under way and puts everything back, the latest
// first.
func (c *Controller) settle(ctx context.Context, runs []*run) (out []Outcome) {
	for _, r := range runs {
		select {
		case <-r.done:
		case <-ctx.Done():
		}
	}
	for i := len(runs) - 1; i >= 0; i-- {
		r := runs[i]
		if !c.holds(r) {
			if o := r.undoOutcome(); o != nil {
				out = append(out, *o)
			}
			continue
		}
		cmd := r.command()
		if c.o.Keep {
			o := Outcome{Op: cmd.Op, Target: cmd.Target, Was: cmd.New, Value: r.original, Commands: []string{cmd.ID}, State: OutcomeKept,
				Why: keptWhy(cmd.Op, *cmd.New)}
			if err := c.o.Journal.Keep(cmd.Op, cmd.Target, c.o.Self); err != nil {
				o.Why += "; but the journal could not be told: " + err.Error()
			}
			out = append(out, o)
			continue
		}
		r.happen(undoAsked)
		o := r.undoOutcome()
		if r.unanswered() || o == nil {
			out = append(out, c.pending(r))
			continue
		}
		out = append(out, *o)
	}
	return out
}

func (c *Controller) holds(r *run) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.stacks[journal.KeyOf(r.cmd.Op, r.cmd.Target)], r)
}

// unsettled lists what is still changed, or may be, when time is up.
func (c *Controller) unsettled() (out []Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, stack := range c.stacks {
		for _, r := range stack {
			out = append(out, c.pending(r))
		}
	}
	return out
}

// pending is the outcome of a command to which RM does not answer.
func (c *Controller) pending(r *run) Outcome {
	return Outcome{Op: r.cmd.Op, Target: r.cmd.Target, Was: r.cmd.New, Value: r.original, Commands: []string{r.cmd.ID}, State: OutcomePending, Why: c.pendingWhy()}
}

func (c *Controller) pendingWhy() string {
	if !c.o.Watch {
		return "RM has not answered, and nobody is left to put it back; tsgtop restore does"
	}
	return "RM has not answered; the watcher puts it back as soon as it can"
}

// unanswered tells whether the command's call is still under way.
func (r *run) unanswered() bool {
	r.turn.Lock()
	defer r.turn.Unlock()
	return r.life.issued && !r.life.answered
}
