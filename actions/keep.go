//go:build linux

package actions

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"tsgtop/actions/audit"
	"tsgtop/actions/journal"
	"tsgtop/internal/crash"
	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
)

// Keeper keeps values at TSGs for as long as somebody wants them there: what
// roles and experiments are made of. Each is journaled before it is set and put
// back like a command's, also if tsgtop is killed; unlike a command it is not
// judged one by one. It belongs to a Controller, and ends with it.
type Keeper struct {
	c *Controller

	mu   sync.Mutex
	kept map[keepKey]*kept
	busy int    // tries under way: the end waits for them
	undo func() // called when the operator undoes one of ours
}

type keepKey struct {
	op  sched.Op
	gen uint64
}

// kept is one value that is kept, or was tried.
type kept struct {
	cmd     sched.Command // as it is shown
	target  sched.Target
	value   uint64
	old     *uint64
	held    bool // the journal has it
	again   int
	all     []Result // first and latest
	ours    bool     // what the latest call found was set by us
	waiting bool     // a call is under way
	err     error    // of the latest try
	quiet   sched.Time
	pause   time.Duration
}

// Wish is a value that is to be kept at a TSG.
type Wish struct {
	Op    sched.Op
	Gen   uint64
	Value uint64
	Why   string // for whom: "best-effort beside pid 479"
}

// Kept is what came of a Wish so far.
type Kept struct {
	Op      sched.Op
	Target  sched.Target
	Value   uint64
	Old     *uint64
	Held    bool // it was set, and is to be put back
	Calls   int
	Again   int // how often it had been set otherwise meanwhile, and was set again
	Results []Result
	Err     error // of the latest try
}

// Errors of a Keeper.
var (
	// ErrOthers: a tsgtop that runs, or a command of this one, has the value.
	ErrOthers = errors.New("somebody else of tsgtop has it")
	// ErrQuiet: it was tried a moment ago; it is tried again later.
	ErrQuiet = errors.New("tried a moment ago")
)

// Pauses between tries at one TSG: a process that sets its value all the time
// does not make tsgtop do so too.
const (
	keepPause     = 100 * time.Millisecond
	keepPauseMost = 5 * time.Second
	keepAnswer    = 2 * time.Second // how long one call is waited for; it goes on by itself
)

// Keeper gives the Controller's. undo is called when the operator undoes one of
// its values, and should give up all of them; it can be nil.
func (c *Controller) Keeper(undo func()) *Keeper {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.keeper == nil {
		c.keeper = &Keeper{c: c, kept: map[keepKey]*kept{}}
	}
	if undo != nil {
		c.keeper.undo = undo
	}
	return c.keeper
}

// Ensure sees to it that a TSG has a value. row is the TSG's in a snapshot of
// now. nil: it has. The journal's first original wins, unless the TSG's process
// itself sets another meanwhile: then that is what will be put back.
func (k *Keeper) Ensure(ctx context.Context, w Wish, row *sched.TSGView) error {
	c := k.c
	in := Intent{Op: w.Op, Gen: w.Gen, Value: &w.Value}
	if err := checkIntent(&in, c.o.Force); err != nil {
		return err
	}
	if err := checkRow(row); err != nil {
		return err
	}
	if why := c.Why(); why != "" {
		return errors.New(why)
	}
	k.mu.Lock()
	k.busy++ // before it is looked whether tsgtop is ending
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		k.busy--
		k.mu.Unlock()
	}()
	x, err := k.claim(w, row)
	if err != nil {
		return err
	}
	err = k.ensure(ctx, x, w)
	k.mu.Lock()
	defer k.mu.Unlock()
	x.err = err
	if err != nil && !errors.Is(err, ErrQuiet) && !errors.Is(err, context.DeadlineExceeded) {
		x.back(c.o.Clock.Now())
	}
	if !x.waiting && !x.held && (errors.Is(err, ErrGone) || errors.Is(err, ErrReplaced)) {
		delete(k.kept, keepKey{w.Op, w.Gen})
	}
	return err
}

func (x *kept) back(now sched.Time) {
	x.pause = min(keepPauseMost, max(keepPause, 2*x.pause))
	x.quiet = now.Add(x.pause)
}

// claim finds or makes the entry, where it may be tried now.
func (k *Keeper) claim(w Wish, row *sched.TSGView) (*kept, error) {
	c := k.c
	now := c.o.Clock.Now()
	t := targetOf(row)
	busy := c.commanded(w.Op, t)
	c.mu.Lock()
	armed, closed := c.armed, c.closed
	c.mu.Unlock()
	switch {
	case closed:
		return nil, errors.New("tsgtop is ending: nothing more is sent")
	case !armed:
		return nil, errors.New("control is not armed: nothing was sent")
	case busy:
		return nil, fmt.Errorf("%s of TSG %s: %w: a command", w.Op, t.TSGID, ErrOthers)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	x := k.kept[keepKey{w.Op, w.Gen}]
	if x == nil {
		x = &kept{target: t}
		k.kept[keepKey{w.Op, w.Gen}] = x
	}
	if x.waiting || now < x.quiet {
		return nil, fmt.Errorf("%s of TSG %s: %w", w.Op, t.TSGID, ErrQuiet)
	}
	return x, nil
}

func (k *Keeper) ensure(ctx context.Context, x *kept, w Wish) error {
	c := k.c
	in, err := c.o.Actuator.Inspect(ctx, x.target)
	if err != nil {
		return err
	}
	// The row may not have known all by which it is named.
	if c.commanded(w.Op, in.Target) {
		return fmt.Errorf("%s of TSG %s: %w: a command", w.Op, in.Target.TSGID, ErrOthers)
	}
	var old *uint64
	if w.Op == sched.OpTimeslice {
		if old = in.Timeslice; old == nil {
			return fmt.Errorf("timeslice of TSG %s: %w: what it is now cannot be read, so that it could not be put back", x.target.TSGID, ErrUnfit)
		}
		if *old == w.Value && (!x.held || x.value == w.Value) {
			return nil
		}
	} else if x.held && x.value == w.Value {
		return nil // it cannot be read back
	}
	if err := k.free(w.Op, in.Target); err != nil {
		return err
	}
	if err := c.watch(); err != nil {
		return fmt.Errorf("not sent: %w: %w", ErrNoWatcher, err)
	}
	unlock, err := c.o.Journal.LockTSG(in.Target)
	if err != nil {
		return err
	}
	if err := k.prepare(x, w, in.Target, old); err != nil {
		unlock()
		return err
	}
	return k.send(ctx, x, w, unlock)
}

// free refuses a value that another tsgtop has set last.
func (k *Keeper) free(op sched.Op, t sched.Target) error {
	s, err := k.c.o.Journal.State()
	if err != nil {
		return err
	}
	e := s.Find(journal.KeyOf(op, t))
	if e == nil || len(e.Holds) == 0 {
		return nil
	}
	if h := e.Holds[len(e.Holds)-1]; h.Owner != k.c.o.Self && h.Alive() {
		return fmt.Errorf("%s of TSG %s: %w: pid %d has set it to %s", op, t.TSGID, ErrOthers, h.PID, valueText(op, h.Value))
	}
	return nil
}

// prepare writes the intent and the old value down, before anything is sent.
func (k *Keeper) prepare(x *kept, w Wish, t sched.Target, old *uint64) error {
	c := k.c
	k.mu.Lock()
	defer k.mu.Unlock()
	ours := x.held && old != nil && *old == x.value
	if x.held && old != nil && !ours {
		x.again++
	}
	t.Gen = w.Gen
	now := c.o.Clock.Now()
	if x.cmd.ID == "" {
		c.mu.Lock()
		c.number++
		number := c.number
		c.mu.Unlock()
		x.cmd = sched.Command{ID: commandID(), Number: number, Asked: now, Op: w.Op, Target: t, Actuator: c.o.Actuator.Name(), Step: sched.StepConfirmed,
			Undo: "kept for as long as the role is; undo takes all roles back", Old: old}
		waiting := sched.Lamp{State: sched.LampWaiting}
		x.cmd.Ran, x.cmd.Accepted.Lamp, x.cmd.Accepted.Where = waiting, waiting, "unknown"
		x.cmd.Changed.Lamp = sched.Lamp{State: sched.LampUnknown, Why: "judged together with the others, not one by one"}
	}
	if !x.held {
		x.old, x.cmd.Old = old, old
	}
	x.target, x.cmd.Target, x.cmd.New, x.cmd.Why = t, t, sched.Ptr(w.Value), w.Why
	x.cmd.Time = now
	line := audit.OfCommand(audit.Intent, x.cmd)
	line.Force = c.o.Force
	if err := c.o.Audit.Write(line); err != nil {
		return fmt.Errorf("not sent, because the audit log could not be written: %w", err)
	}
	if x.held && old != nil && !ours {
		// Its process has set it itself: what is there now is its own, and what it
		// gets back.
		if err := c.o.Journal.Release(w.Op, t, c.o.Self, "it was set otherwise meanwhile"); err != nil {
			return err
		}
		x.held, x.old = false, old
	}
	h := journal.Hold{Owner: c.o.Self, Command: x.cmd.ID, Value: w.Value, Actuator: c.o.Actuator.Name()}
	if old != nil {
		h.Before = *old
	}
	e, err := c.o.Journal.Hold(w.Op, t, x.old, h)
	if err != nil {
		return fmt.Errorf("not sent, because it could not be made sure that it can be put back: %w", err)
	}
	x.held, x.value, x.old, x.ours = true, w.Value, e.Original, ours
	return nil
}

// send makes the call. Where RM does not answer in time, it goes on by itself.
func (k *Keeper) send(ctx context.Context, x *kept, w Wish, unlock func()) error {
	c := k.c
	k.mu.Lock()
	q := Request{ID: callID(), Command: x.cmd.ID, Op: w.Op, Target: x.target, Value: w.Value, MeterRPC: len(x.all) == 0}
	if w.Op == sched.OpTimeslice {
		s, _ := c.o.Journal.State()
		if e := s.Find(journal.KeyOf(w.Op, x.target)); e != nil {
			if h := e.HeldBy(c.o.Self); h != nil {
				q.Expect = sched.Ptr(h.Before)
			}
		}
	}
	x.waiting = true
	k.mu.Unlock()
	done := make(chan error, 1)
	crash.Go(func() {
		res := c.o.Actuator.Do(context.Background(), q)
		cmd, err := k.answered(x, w, res)
		unlock()
		c.o.Board.Feed([]sched.Event{cmd})
		done <- err
	})
	began, wall := c.o.Clock.Now(), time.Now()
	select { // it mostly comes within a millisecond
	case err := <-done:
		return err
	case <-time.After(3 * time.Millisecond):
	}
	for {
		select {
		case err := <-done:
			return err
		default:
		}
		// The wall's too: a simulated clock can be far ahead of a busy machine.
		if c.o.Clock.Now().Sub(began) > keepAnswer && time.Since(wall) > keepAnswer/8 || ctx.Err() != nil {
			return fmt.Errorf("%s of TSG %s: RM has not answered for %.1f s: %w", w.Op, x.target.TSGID, c.o.Clock.Now().Sub(began).Seconds(), context.DeadlineExceeded)
		}
		c.o.Clock.Sleep(context.Background(), look)
	}
}

// answered takes RM's answer to one call.
func (k *Keeper) answered(x *kept, w Wish, res Result) (sched.Command, error) {
	c := k.c
	k.mu.Lock()
	defer k.mu.Unlock()
	x.waiting = false
	now := c.o.Clock.Now()
	if len(x.all) < 2 {
		x.all = append(x.all, res)
	} else {
		x.all[1] = res
	}
	var err error
	switch {
	case !res.Sent:
		err = fmt.Errorf("%s of TSG %s: nothing was sent: %w", w.Op, x.target.TSGID, res.Err)
	case res.Answered && res.Status != 0:
		err = fmt.Errorf("%s of TSG %s to %s: RM answered %s (0x%x)", w.Op, x.target.TSGID, valueText(w.Op, w.Value), rm.StatusName(res.Status), res.Status)
	case !res.Answered:
		err = fmt.Errorf("%s of TSG %s: RM gave no status: %w", w.Op, x.target.TSGID, res.Err)
	}
	if res.Sent {
		x.cmd.Calls.Sent++
		if x.cmd.Issued == 0 {
			x.cmd.Issued = res.Start
		}
	}
	if res.Answered {
		if res.Status == 0 {
			x.cmd.Calls.OK++
		}
		status := map[string]int{rm.StatusName(res.Status): 1}
		for name, n := range x.cmd.Calls.ByStatus {
			status[name] += n
		}
		x.cmd.Calls.ByStatus = status
	}
	// Held although nothing was changed: taken out of the journal again, where that is sure.
	if err != nil && !x.ours && (!res.Sent || res.Answered && !mayBeDone(res.Status)) {
		if rerr := c.o.Journal.Release(w.Op, x.target, c.o.Self, "nothing was changed"); rerr == nil {
			x.held = false
		}
	}
	x.cmd.Ran, x.cmd.Accepted = ranOf(x.all), acceptedOfAll(x.all)
	x.cmd.Time, x.cmd.Step = now, sched.StepJudged
	c.ours(w.Op, x.target, sched.Ptr(w.Value))
	if aerr := c.o.Audit.Write(audit.OfCommand(audit.Result, x.cmd)); aerr != nil {
		x.cmd.Why += "; its result is not in the audit log: " + aerr.Error()
	}
	if err == nil {
		if x.quiet > 0 && now.Sub(x.quiet) > 10*keepPauseMost {
			x.pause = 0
		}
		if x.again > 0 {
			x.back(now)
		}
	}
	return x.cmd, err
}

// mayBeDone tells whether RM may do what it answered with this status all the same.
func mayBeDone(status uint32) bool {
	n := rm.StatusName(status)
	return strings.Contains(n, "TIMEOUT") || strings.Contains(n, "LOST") || strings.Contains(n, "RESET")
}
