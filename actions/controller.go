//go:build linux

package actions

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"tsgtop/actions/audit"
	"tsgtop/actions/journal"
	"tsgtop/internal/crash"
	"tsgtop/internal/sched"
)

// Options are what a Controller is made of. Board, Actuator, Journal and Clock
// are required.
type Options struct {
	Board    Board
	Actuator Actuator
	Journal  *journal.Journal
	Audit    *audit.Log // nil: none is kept, for a simulated GPU
	Clock    Clock      // the source's
	Self     journal.Owner
	ReadOnly string        // why control is never armed; empty: it can be
	Wait     time.Duration // longest wait for CHANGED, by Clock; 0: 3 s
	// Patience is how long RM may take to answer before a command is given up
	// as unanswered, by Clock; 0: 2 minutes.
	Patience time.Duration
	Force    bool // wider bounds
	Keep     bool // what is changed stays when the Controller is closed
	DryRun   bool // nothing is sent
	// Watch has values put back by a process of its own if this one is killed.
	Watch     bool
	WatchArgs []string // more arguments for it, for tests
	Me        string   // user who asks; empty: as the system tells
}

// Controller takes commands, and puts back what they changed. Its methods can be
// called by several goroutines.
type Controller struct {
	o     Options
	tape  tape
	untap func()

	mu     sync.Mutex
	armed  bool
	closed bool
	number int
	runs   map[string]*run
	order  []*run
	flying map[sched.Object]*run  // one command at a time for each TSG
	stacks map[journal.Key][]*run // who changed a value, in order
	calm   map[int]sched.Time     // GPU -> until when its schedule was last disturbed by a command

	watching sync.Mutex // one starts the watcher
	watcher  *watcher
	keeper   *Keeper // nil until it is asked for

	why     string // of the actuator, asked for at most once a second: the screen asks at each frame
	whyTime time.Time

	foreign foreign
	steady  *steady
}

// Intent is what the operator asks for.
type Intent struct {
	Op    sched.Op
	Gen   uint64        // of the TSG, as in snapshots
	Value *uint64       // timeslice in us, or interleave level
	Count int           // preempt: how often; 0 is once
	Every time.Duration // preempt: from one to the next
	Undo  string        // id of the command that this one is to undo; then the rest is not looked at
}

// Preview is a command that was prepared and not sent.
type Preview struct {
	Intent
	Target   sched.Target
	Cgroup   string
	Old, New *uint64
	Warnings []string
	Cost     string
	Undo     string
	Actuator string
	DryRun   bool
}

// New makes a Controller, not armed.
func New(o Options) *Controller {
	if o.Wait <= 0 {
		o.Wait = 3 * time.Second
	}
	if o.Patience <= 0 {
		o.Patience = 2 * time.Minute
	}
	if o.Clock == nil {
		o.Clock = WallClock{}
	}
	if o.Me == "" {
		o.Me = me(audit.Whoami())
	}
	c := &Controller{o: o, runs: map[string]*run{}, flying: map[sched.Object]*run{}, stacks: map[journal.Key][]*run{}, calm: map[int]sched.Time{}, steady: newSteady(o.Clock)}
	c.steady.look()
	c.untap = o.Board.Tap(func(events []sched.Event) {
		c.steady.look()
		c.tape.take(events)
		c.foreign.note(events, c.overtake)
	})
	return c
}

func me(w audit.Who) string {
	for _, n := range []string{w.Login, w.SudoUser, w.User} {
		if n != "" {
			return n
		}
	}
	return ""
}

// Armed tells whether commands can be sent.
func (c *Controller) Armed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.armed
}

// Why says why it cannot act, in a sentence; empty when it can once armed.
func (c *Controller) Why() string {
	if c.o.ReadOnly != "" {
		return c.o.ReadOnly
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.whyTime) > time.Second {
		c.why, c.whyTime = c.o.Actuator.Why(), time.Now()
	}
	return c.why
}

// Arm arms control, or disarms it. Commands under way go on.
func (c *Controller) Arm(on bool) error {
	if on {
		if why := c.Why(); why != "" {
			return fmt.Errorf("control cannot be armed: %s", why)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.armed = on
	return nil
}

// ActuatorName is that of the way commands go.
func (c *Controller) ActuatorName() string { return c.o.Actuator.Name() }

// TimesliceRange is what a timeslice may be, in microseconds.
func (c *Controller) TimesliceRange() (lo, hi uint64) { return timesliceRange(c.o.Force) }

// Release lets go of the driver's devices.
func (c *Controller) Release() { c.o.Actuator.Release() }

// Prepare checks an intent and says what it would do. It reads and changes
// nothing. An error is a refusal.
func (c *Controller) Prepare(in Intent) (Preview, error) {
	if in.Undo != "" {
		return c.prepareUndo(in.Undo)
	}
	if why := c.Why(); why != "" {
		return Preview{}, errors.New(why)
	}
	if err := checkIntent(&in, c.o.Force); err != nil {
		return Preview{}, err
	}
	snap := c.o.Board.Snapshot(sched.SnapshotOptions{})
	row := rowOf(snap, in.Gen)
	if row == nil {
		return Preview{}, fmt.Errorf("%w: it is not on the screen any more", ErrGone)
	}
	if err := checkRow(row); err != nil {
		return Preview{}, err
	}
	i, err := c.o.Actuator.Inspect(context.Background(), targetOf(row))
	if err != nil {
		return Preview{}, err
	}
	p := Preview{Intent: in, Target: i.Target, Cgroup: row.Process.Cgroup, New: in.Value, Actuator: c.o.Actuator.Name(), DryRun: c.o.DryRun}
	switch in.Op {
	case sched.OpTimeslice:
		if p.Old = i.Timeslice; p.Old == nil {
			return Preview{}, fmt.Errorf("timeslice of TSG %s: %w: what it is now cannot be read, so that it could not be put back", row.ID, ErrUnfit)
		}
	case sched.OpInterleave:
		if row.Interleave != nil {
			p.Old = sched.Ptr(uint64(*row.Interleave))
		}
	}
	p.Warnings = append(warningsOf(in, row, p.Old, c.o.Me, snap.Time.Sub(snap.Source.Started) > time.Second), i.Warnings...)
	p.Warnings = append(p.Warnings, c.others(in.Op, p.Target)...)
	p.Cost, p.Undo = costOf(in, row, p.Old), undoWords(in, p.Old, c.o.Keep)
	return p, nil
}

// others says who else holds the value changed.
func (c *Controller) others(op sched.Op, t sched.Target) (warnings []string) {
	s, err := c.o.Journal.State()
	if err != nil {
		return []string{"the journal cannot be read: " + err.Error()}
	}
	e := s.Find(journal.KeyOf(op, t))
	if e == nil {
		return nil
	}
	for _, h := range e.Holds {
		if h.Owner != c.o.Self {
			warnings = append(warnings, fmt.Sprintf("another tsgtop (pid %d) has set it to %s", h.PID, valueText(op, h.Value)))
		}
	}
	return warnings
}

// rowOf finds a TSG of a snapshot.
func rowOf(s *sched.Snapshot, gen uint64) *sched.TSGView {
	for i := range s.TSGs {
		if s.TSGs[i].Gen == gen {
			return &s.TSGs[i]
		}
	}
	return nil
}

// targetOf names a row as a command does.
func targetOf(v *sched.TSGView) sched.Target {
	t := sched.Target{TSGID: v.ID, Gen: v.Gen, Object: v.Object, UniqueID: v.UniqueID, Engine: v.Engine,
		PID: v.Process.PID, Start: v.Process.Start, Exe: v.Process.Exe, User: v.Process.User, Unit: v.Process.Unit}
	for _, ch := range v.Channels {
		if ch.Context != nil {
			t.Contexts = append(t.Contexts, *ch.Context)
		}
	}
	return t
}

// Submit sends a prepared command; it then shows on the board. The id is also
// for Wait and Undo.
func (c *Controller) Submit(p Preview) (id string, err error) {
	if p.Intent.Undo != "" {
		return p.Intent.Undo, c.Undo(p.Intent.Undo)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return "", errors.New("tsgtop is ending: nothing more is sent")
	case !c.armed:
		return "", errors.New("control is not armed: nothing was sent")
	case c.flying[p.Target.Object] != nil:
		return "", fmt.Errorf("command #%d on TSG %s is under way: one at a time", c.flying[p.Target.Object].cmd.Number, p.Target.TSGID)
	}
	c.number++
	now := c.o.Clock.Now()
	r := &run{c: c, begun: time.Now(), life: newLife(p.Op), done: make(chan struct{}), keep: c.o.Keep, calm: c.calm[p.Target.GPU]}
	r.cmd = sched.Command{Time: now, ID: commandID(), Number: c.number, Asked: now, Op: p.Op, Target: p.Target, Old: p.Old, New: p.New,
		Count: p.Count, Every: p.Every, Actuator: c.o.Actuator.Name(), Step: sched.StepAsked, Undo: p.Undo}
	waiting := sched.Lamp{State: sched.LampWaiting}
	r.cmd.Ran, r.cmd.Accepted.Lamp, r.cmd.Changed.Lamp = waiting, waiting, waiting
	r.cmd.Accepted.Where = "unknown"
	c.runs[r.cmd.ID] = r
	c.order = append(c.order, r)
	if c.o.DryRun || p.DryRun {
		r.life.step, r.cmd.Step, r.over = sched.StepRefused, sched.StepRefused, true
		crash.Go(func() {
			r.refuse(errors.New("a dry run: nothing was sent"))
			close(r.done)
		})
		return r.cmd.ID, nil
	}
	unlock, err := c.o.Journal.LockTSG(p.Target)
	if err != nil {
		delete(c.runs, r.cmd.ID)
		c.order = c.order[:len(c.order)-1]
		return "", err
	}
	r.unlock = unlock
	c.flying[p.Target.Object] = r
	r.judge = newJudge(c, r.cmd)
	crash.Go(r.begin)
	return r.cmd.ID, nil
}

// commandID makes an id that no other command has.
func commandID() string {
	var b [4]byte
	rand.Read(b[:])
	return time.Now().UTC().Format("20060102T150405") + "-" + hex.EncodeToString(b[:])
}

// Wait waits until a command has come to an end, and gives it. ctx may end
// earlier: then it is as far as it has come.
func (c *Controller) Wait(ctx context.Context, id string) (sched.Command, error) {
	c.mu.Lock()
	r := c.runs[id]
	c.mu.Unlock()
	if r == nil {
		return sched.Command{}, fmt.Errorf("there is no command %s", id)
	}
	select {
	case <-r.done:
		return r.command(), nil
	case <-ctx.Done():
		return r.command(), ctx.Err()
	}
}

// Command gives a command as it stands.
func (c *Controller) Command(id string) (sched.Command, bool) {
	c.mu.Lock()
	r := c.runs[id]
	c.mu.Unlock()
	if r == nil {
		return sched.Command{}, false
	}
	return r.command(), true
}

// Refusal is why nothing of a command was sent; nil where something was, or may be.
func (c *Controller) Refusal(id string) error {
	c.mu.Lock()
	r := c.runs[id]
	c.mu.Unlock()
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refusal
}

// Unanswered tells whether RM has not answered a command that was given up.
func (c *Controller) Unanswered(id string) bool {
	c.mu.Lock()
	r := c.runs[id]
	c.mu.Unlock()
	return r != nil && r.unanswered()
}

// landed says that nothing of the command is under way any more.
func (c *Controller) landed(r *run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flying[r.cmd.Target.Object] == r {
		delete(c.flying, r.cmd.Target.Object)
	}
	if r.unlock != nil {
		r.unlock()
		r.unlock = nil
	}
}
