//go:build linux

package actions

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"tsgtop/actions/audit"
	"tsgtop/actions/journal"
	"tsgtop/actions/verdict"
	"tsgtop/internal/crash"
	"tsgtop/internal/sched"
)

// Paces, by the source's clock.
const (
	look          = 5 * time.Millisecond   // how often the trace and the answer are looked at
	say           = 250 * time.Millisecond // how often a lamp that waits says for how long
	baselineLimit = verdict.Baseline + 500*time.Millisecond
	countersEvery = 500 * time.Millisecond
	settleAfter   = 50 * time.Millisecond // after a set value, until the schedule is taken to follow it
)

// run is one command on its way.
type run struct {
	c     *Controller
	done  chan struct{} // closed when the command has come to an end
	over  bool          // it is
	begun time.Time     // when it was asked for, by this process's clock

	turn sync.Mutex // one happening at a time
	life life

	mu       sync.Mutex // guards what follows
	cmd      sched.Command
	requests []happening // undo or cancel, asked for while it is under way

	judge    *verdict.Judge
	seen     uint64     // of the tape
	calm     sched.Time // trace before this is of another regime
	gone     string     // the target ended: when
	results  []Result
	refusal  error    // why nothing was sent
	outcome  *Outcome // of its undo
	original *uint64  // as the journal has it
	unlock   func()
	keep     bool
	shown    string
	countAt  sched.Time
}

func newJudge(c *Controller, cmd sched.Command) *verdict.Judge {
	return verdict.New(planOf(cmd, c.o.Wait, c.o.Board.Snapshot(sched.SnapshotOptions{})))
}

// command gives the command as it stands.
func (r *run) command() sched.Command {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.copied()
}

// copied is the command with nothing in it that changes later. r.mu is held.
func (r *run) copied() sched.Command {
	cmd := r.cmd
	cmd.Xid = slices.Clone(r.cmd.Xid)
	cmd.Calls.ByStatus = maps.Clone(r.cmd.Calls.ByStatus)
	return cmd
}

func (r *run) setOutcome(o Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outcome = &o
}

// undoOutcome is what came of its undo so far, or nil.
func (r *run) undoOutcome() *Outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.outcome
}

// change changes the command and publishes it.
func (r *run) change(f func(*sched.Command)) {
	r.mu.Lock()
	f(&r.cmd)
	r.mu.Unlock()
	r.show()
}

// show publishes the command, if it is not as it was shown last.
func (r *run) show() {
	r.mu.Lock()
	r.cmd.Time = r.c.o.Clock.Now()
	cmd := r.copied()
	if cmd.Calls.ByStatus == nil {
		cmd.Calls.ByStatus = map[string]int{}
	}
	now := fmt.Sprint(cmd.Step, cmd.Calls, cmd.Ran, cmd.Accepted.Lamp, cmd.Changed.Lamp, cmd.Restored != nil, cmd.Xid, cmd.Undo, cmd.Why)
	same := now == r.shown
	r.shown = now
	r.mu.Unlock()
	if !same {
		r.c.o.Board.Feed([]sched.Event{cmd})
	}
}

// begin runs the command from the operator's yes to its end.
func (r *run) begin() {
	r.show()
	r.happen(confirmed)
}

// happen lets something happen, and does what then is to be done, until nothing
// more is.
func (r *run) happen(h happening) {
	r.turn.Lock()
	defer r.turn.Unlock()
	queue := []happening{h}
	for len(queue) > 0 {
		h, queue = queue[0], queue[1:]
		var demands []demand
		r.life, demands = next(r.life, h)
		r.change(func(c *sched.Command) { c.Step = r.life.step })
		for _, d := range demands {
			queue = append(queue, r.do(d)...)
		}
		if r.life.ended() && (r.life.answered || !r.life.issued) {
			r.c.landed(r)
		}
		if r.life.ended() && !r.over && len(queue) == 0 {
			r.over = true
			close(r.done)
		}
	}
}

// request asks a command that is under way for something, or has it happen now.
func (r *run) request(h happening) {
	select {
	case <-r.done:
		r.happen(h)
	default:
		r.mu.Lock()
		r.requests = append(r.requests, h)
		r.mu.Unlock()
	}
}

func (r *run) asked() (happening, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.requests) == 0 {
		return 0, false
	}
	h := r.requests[0]
	r.requests = r.requests[1:]
	return h, true
}

// do does what the life demands, and gives its outcome.
func (r *run) do(d demand) []happening {
	switch d {
	case wantAudit:
		if err := r.c.o.Audit.Write(r.line(audit.Intent)); err != nil {
			r.refuse(fmt.Errorf("not sent, because the audit log could not be written: %w", err))
			return []happening{auditFailed}
		}
		return []happening{audited}
	case wantJournal:
		if err := r.journal(); err != nil {
			r.refuse(fmt.Errorf("not sent, because it could not be made sure that it can be put back: %w", err))
			return []happening{journalFailed}
		}
		return []happening{journaled}
	case wantBaseline:
		// Also where there is no value to put back, RM's RPC meter must not stay on.
		if err := r.c.watch(); err != nil {
			r.refuse(fmt.Errorf("not sent: %w: %w", ErrNoWatcher, err))
			return []happening{targetGone}
		}
		return []happening{r.baseline()}
	case wantIssue:
		return []happening{r.issue()}
	case wantJudge:
		return []happening{r.judged()}
	case wantResult:
		r.result(audit.Result)
	case wantRefusal:
		r.refuse(nil)
		r.result(audit.Refused)
	case wantUndo:
		return []happening{r.putBack()}
	case wantRelease:
		r.c.drop(r)
		if err := r.c.o.Journal.Release(r.cmd.Op, r.cmd.Target, r.c.o.Self, "nothing was changed"); err != nil {
			r.change(func(c *sched.Command) { c.Undo = "nothing was changed; the journal could not be told: " + err.Error() })
		}
	}
	return nil
}

func (r *run) line(e audit.Event) audit.Line {
	l := audit.OfCommand(e, r.command())
	l.Force, l.Keep = r.c.o.Force, r.keep
	return l
}

// result writes what came of it to the audit log; that it cannot be is said on
// the command.
func (r *run) result(e audit.Event) {
	r.mu.Lock()
	r.cmd.Time = r.c.o.Clock.Now()
	r.mu.Unlock()
	if err := r.c.o.Audit.Write(r.line(e)); err != nil {
		r.change(func(c *sched.Command) {
			c.Why = strings.TrimPrefix(c.Why+"; its result is not in the audit log: "+err.Error(), "; ")
		})
	}
}

// refuse says of all lamps that nothing was sent, and why; nil: as said before.
func (r *run) refuse(why error) {
	r.change(func(c *sched.Command) {
		if why != nil && r.refusal == nil {
			r.refusal, c.Why = why, why.Error()
		}
		none := sched.Lamp{State: sched.LampUnknown, Why: "nothing was sent"}
		c.Ran, c.Accepted.Lamp, c.Changed.Lamp = none, none, none
	})
}

// journal starts the watcher, if it is not there, and writes the old value down.
func (r *run) journal() error {
	if err := r.c.watch(); err != nil {
		return fmt.Errorf("%w: %w", ErrNoWatcher, err)
	}
	cmd := r.command()
	h := journal.Hold{Owner: r.c.o.Self, Command: cmd.ID, Value: *cmd.New, Actuator: cmd.Actuator}
	if cmd.Old != nil {
		h.Before = *cmd.Old
	}
	e, err := r.c.o.Journal.Hold(cmd.Op, cmd.Target, cmd.Old, h)
	if err != nil {
		return err
	}
	r.original = e.Original
	r.c.push(r)
	return nil
}

// baseline waits until there is enough trace to compare with, or more will not
// come.
func (r *run) baseline() happening {
	r.change(func(c *sched.Command) {
		c.Changed.Why = "looking at the trace before the call"
	})
	begin := r.c.o.Clock.Now()
	r.observe()
	for {
		if h, ok := r.asked(); ok && (h == cancelled || h == undoAsked) {
			r.refuse(errors.New("taken back before anything was sent"))
			return cancelled
		}
		if r.gone != "" {
			r.refuse(fmt.Errorf("nothing was sent: %w: %s", ErrGone, r.gone))
			return targetGone
		}
		ready, missing := r.judge.Ready()
		if ready || r.c.o.Clock.Now().Sub(begin) > baselineLimit {
			return baselineDone
		}
		if r.c.o.Clock.Sleep(context.Background(), look) != nil {
			return targetGone
		}
		r.observe()
		if r.due(say) {
			r.change(func(c *sched.Command) { c.Changed.Why = "looking at the trace before the call: " + missing })
		}
	}
}

// due tells whether so much time has passed since it last said yes.
func (r *run) due(every time.Duration) bool {
	now := r.c.o.Clock.Now()
	if now.Sub(r.countAt) < every {
		return false
	}
	r.countAt = now
	return true
}

// unjudged is the lamp CHANGED of a command that was not waited for.
func (r *run) unjudged(why string) {
	r.change(func(c *sched.Command) { c.Changed.Lamp = sched.Lamp{State: sched.LampUnknown, Why: why} })
}

// count gives the judge the GSP's counters.
func (r *run) count(k *Counters) {
	if k != nil {
		r.judge.Witness(*k)
	}
}

// judged waits until the trace has told whether the hardware changed, or cannot.
func (r *run) judged() happening {
	if n := max(1, r.cmd.Count); r.cmd.Calls.Sent < n {
		why := "it was stopped"
		if last := r.results[len(r.results)-1]; last.Err != nil {
			why = last.Err.Error()
		}
		r.judge.Spoil(fmt.Sprintf("the series was broken off after %d of %d preempts: %s", r.cmd.Calls.Sent, n, why))
	}
	clock := r.c.o.Clock
	counters := make(chan *Counters, 1)
	asking, asked := false, clock.Now()
	for {
		r.observe()
		select {
		case k := <-counters:
			asking = false
			r.count(k)
		default:
		}
		changed, final := r.judge.Look(clock.Now())
		r.change(func(c *sched.Command) {
			c.Changed = changed
			if !final {
				c.Changed.State = sched.LampWaiting
			}
		})
		if final {
			return judgedFinally
		}
		switch h, _ := r.asked(); {
		case h == undoAsked && r.life.value:
			r.unjudged("undone before there was an answer")
			return undoAsked
		case h == cancelled:
			r.unjudged("tsgtop ended before there was an answer")
			return judgedFinally
		}
		if r.life.value && !asking && clock.Now().Sub(asked) >= countersEvery {
			asking, asked = true, clock.Now()
			crash.Go(func() { counters <- r.c.o.Actuator.Counters(context.Background(), r.cmd.Target) })
		}
		clock.Sleep(context.Background(), look)
	}
}
