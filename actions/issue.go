//go:build linux

package actions

import (
	"context"
	"fmt"
	"strings"
	"time"

	"tsgtop/actions/audit"
	"tsgtop/actions/verdict"
	"tsgtop/internal/crash"
	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
)

// issue sends the command's calls, and waits for RM.
func (r *run) issue() happening {
	cmd := r.command()
	n := max(1, cmd.Count)
	r.count(r.c.o.Actuator.Counters(context.Background(), cmd.Target))
	start := r.c.o.Clock.Now()
	r.change(func(c *sched.Command) { c.Issued = start; c.Ran.Why = "the call is on its way" })
	for i := range n {
		if i > 0 {
			if pause := start.Add(time.Duration(i) * cmd.Every).Sub(r.c.o.Clock.Now()); pause > 0 {
				r.c.o.Clock.Sleep(context.Background(), pause)
			}
			if h, ok := r.asked(); ok && h == cancelled {
				break
			}
		}
		began := r.c.o.Clock.Now()
		q := Request{ID: callID(), Command: cmd.ID, Op: cmd.Op, Target: cmd.Target, Wait: n > 1, MeterRPC: i == 0 || i == n-1}
		if cmd.New != nil {
			q.Value = *cmd.New
		}
		if cmd.Op == sched.OpTimeslice {
			q.Expect = cmd.Old
		}
		answer := make(chan Result, 1)
		crash.Go(func() { answer <- r.c.o.Actuator.Do(context.Background(), q) })
		res, ok := r.await(answer, q, began)
		if !ok {
			r.late(answer)
			return unanswered
		}
		r.take(res, i == n-1)
		r.observe()
		if !res.Sent || i < n-1 && r.due(say) {
			r.show()
		}
		if !res.Sent {
			break
		}
		if rest := MinPreemptGap - r.c.o.Clock.Now().Sub(began); i < n-1 && rest > 0 {
			r.c.o.Clock.Sleep(context.Background(), rest)
		}
	}
	return r.answered()
}

// await waits for RM's answer, and says for how long.
func (r *run) await(answer chan Result, q Request, began sched.Time) (Result, bool) {
	ctx := context.Background()
	// It mostly comes within a millisecond.
	select {
	case res := <-answer:
		return res, true
	case <-time.After(3 * time.Millisecond):
	}
	for {
		select {
		case res := <-answer:
			return res, true
		default:
		}
		r.observe()
		waited := r.c.o.Clock.Now().Sub(began)
		if waited > r.c.o.Patience {
			r.change(func(c *sched.Command) {
				c.Ran = r.entered(q)
				why := fmt.Sprintf("RM has not answered for %.1f s; the driver gives up a GSP that does not answer after up to 45 s", waited.Seconds())
				c.Accepted.Lamp = sched.Lamp{State: sched.LampUnknown, Why: why}
				c.Changed.Lamp = sched.Lamp{State: sched.LampUnknown, Why: "RM has not answered, so that it is not known when the hardware was asked"}
			})
			return Result{}, false
		}
		if waited > say && r.due(say) {
			r.change(func(c *sched.Command) {
				c.Accepted.Lamp = sched.Lamp{State: sched.LampWaiting, Why: fmt.Sprintf("RM has not answered for %.1f s", waited.Seconds())}
				if l := r.entered(q); l.State == sched.LampYes {
					c.Ran = l
				}
			})
		}
		r.c.o.Clock.Sleep(ctx, look)
	}
}

// entered is the lamp RAN of a call that has not come back.
func (r *run) entered(q Request) sched.Lamp {
	if a, ok := r.c.o.Actuator.(interface {
		Entered(id uint64) (why string, ok bool)
	}); ok {
		if why, ok := a.Entered(q.ID); ok {
			return sched.Lamp{State: sched.LampYes, Why: why}
		}
	}
	return sched.Lamp{State: sched.LampUnknown, Why: "the call has not come back, and it cannot be told whether it got into the driver"}
}

// late takes an answer that comes when patience is at an end.
func (r *run) late(answer chan Result) {
	crash.Go(func() {
		res := <-answer
		<-r.done
		r.take(res, true)
		r.change(func(c *sched.Command) {
			c.Accepted.Why += fmt.Sprintf(" (%.1f s after it was sent)", res.End.Sub(res.Start).Seconds())
		})
		r.happen(r.answered())
		r.result(audit.Result)
		if h, ok := r.asked(); ok {
			r.happen(h)
		}
	})
}

// take notes what came of one call.
func (r *run) take(res Result, last bool) {
	if res.Sent && res.End == 0 { // RM has not answered, and will not be asked again
		res.End = r.c.o.Clock.Now()
		res.Start = max(res.Start, r.command().Issued)
	}
	r.results = append(r.results, res)
	call := verdict.Call{Begin: res.Start, End: res.End}
	if res.RPC.Seen {
		call.RPCAt, call.RPCDone = res.RPC.Start, res.RPC.Start.Add(res.RPC.Took)
	}
	if res.Sent {
		r.count(res.Before)
		r.judge.Issue(call, last)
		r.count(res.After)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if res.Sent {
		r.cmd.Calls.Sent++
		if len(r.results) == 1 && res.Start > 0 {
			r.cmd.Issued = res.Start
		}
	}
	if res.Answered {
		if res.Status == 0 {
			r.cmd.Calls.OK++
		}
		if r.cmd.Calls.ByStatus == nil {
			r.cmd.Calls.ByStatus = map[string]int{}
		}
		r.cmd.Calls.ByStatus[rm.StatusName(res.Status)]++
	}
	r.cmd.Ran, r.cmd.Accepted = ranOf(r.results), acceptedOfAll(r.results)
}

// answered is what RM's answers come to.
func (r *run) answered() happening {
	if r.life.value || len(r.results) > 1 {
		r.c.ours(r.cmd.Op, r.cmd.Target, r.cmd.New)
	}
	last := r.results[len(r.results)-1]
	sent := false
	for _, res := range r.results {
		sent = sent || res.Sent
	}
	switch {
	case !sent:
		r.refuse(fmt.Errorf("nothing was sent: %w", last.Err))
		return notSent
	case !last.Answered && last.Sent:
		return unclear
	case last.Answered && last.Status != 0:
		if n := rm.StatusName(last.Status); strings.Contains(n, "TIMEOUT") || strings.Contains(n, "LOST") || strings.Contains(n, "RESET") {
			return unclear // it may still be done
		}
		return refusedByRM
	}
	return acceptedByRM
}
