//go:build linux

package actions

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tsgtop/actions/audit"
	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
)

// Series is a run of preempts of one TSG, at the caller's pace, that is not
// judged by itself. The audit log has a line when it begins and one when it ends.
type Series struct {
	k       *Keeper
	cmd     sched.Command
	unlock  func()
	results []Result
}

// Series begins preempts of a TSG. row is the TSG's in a snapshot of now.
func (k *Keeper) Series(ctx context.Context, row *sched.TSGView, every time.Duration, why string) (*Series, error) {
	c := k.c
	in := Intent{Op: sched.OpPreempt, Gen: row.Gen, Count: 2, Every: every}
	if err := checkIntent(&in, c.o.Force); err != nil {
		return nil, err
	}
	if err := checkRow(row); err != nil {
		return nil, err
	}
	if why := c.Why(); why != "" {
		return nil, errors.New(why)
	}
	c.mu.Lock()
	ok := c.armed && !c.closed
	c.number++
	number := c.number
	c.mu.Unlock()
	if !ok {
		return nil, errors.New("control is not armed: nothing was sent")
	}
	i, err := c.o.Actuator.Inspect(ctx, targetOf(row))
	if err != nil {
		return nil, err
	}
	// RM's RPC meter must not stay on if tsgtop is killed.
	if err := c.watch(); err != nil {
		return nil, fmt.Errorf("not sent: %w: %w", ErrNoWatcher, err)
	}
	i.Target.Gen = row.Gen
	now := c.o.Clock.Now()
	s := &Series{k: k, cmd: sched.Command{Time: now, ID: commandID(), Number: number, Asked: now, Op: sched.OpPreempt, Target: i.Target, Every: every,
		Actuator: c.o.Actuator.Name(), Step: sched.StepConfirmed, Why: why, Undo: undoWords(in, nil, false)}}
	s.cmd.Ran.State, s.cmd.Accepted.State, s.cmd.Accepted.Where = sched.LampWaiting, sched.LampWaiting, "unknown"
	s.cmd.Changed.Lamp = sched.Lamp{State: sched.LampUnknown, Why: "judged together with others, not by itself"}
	if err := c.o.Audit.Write(audit.OfCommand(audit.Intent, s.cmd)); err != nil {
		return nil, fmt.Errorf("not sent, because the audit log could not be written: %w", err)
	}
	if s.unlock, err = c.o.Journal.LockTSG(i.Target); err != nil {
		return nil, err
	}
	c.o.Board.Feed([]sched.Event{s.cmd})
	return s, nil
}

// Once sends one, and waits until RM has answered. Repeated preempts always wait
// (bWait): otherwise they are declared undefined.
func (s *Series) Once(ctx context.Context) Result {
	res := s.k.c.o.Actuator.Do(ctx, Request{ID: callID(), Command: s.cmd.ID, Op: sched.OpPreempt, Target: s.cmd.Target, Wait: true, MeterRPC: len(s.results) == 0})
	if len(s.results) < MaxPreempts {
		s.results = append(s.results, res)
	}
	return res
}

// End ends it and gives what came of each call.
func (s *Series) End() []Result {
	c := s.k.c
	s.unlock()
	s.cmd.Time, s.cmd.Step, s.cmd.Count = c.o.Clock.Now(), sched.StepJudged, len(s.results)
	s.cmd.Calls.ByStatus = map[string]int{}
	for _, r := range s.results {
		if r.Sent {
			s.cmd.Calls.Sent++
		}
		if r.Answered {
			s.cmd.Calls.ByStatus[rm.StatusName(r.Status)]++
			if r.Status == 0 {
				s.cmd.Calls.OK++
			}
		}
	}
	s.cmd.Ran, s.cmd.Accepted = ranOf(s.results), acceptedOfAll(s.results)
	if err := c.o.Audit.Write(audit.OfCommand(audit.Result, s.cmd)); err != nil {
		s.cmd.Why += "; its result is not in the audit log: " + err.Error()
	}
	c.ours(sched.OpPreempt, s.cmd.Target, nil)
	c.o.Board.Feed([]sched.Event{s.cmd})
	return s.results
}
