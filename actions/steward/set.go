//go:build linux

package steward

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tsgtop/actions"
	"tsgtop/internal/sched"
	"tsgtop/internal/steer"
)

// limit notes between which timeslices each best-effort process's short turns are
// to be counted: what its graphics TSG had when its role was first seen.
func (s *Steward) limit() {
	for _, w := range s.now.Wants {
		if w.Role != steer.BE || w.Row.Timeslice == nil || !steer.IsCompute(w.Row) {
			continue
		}
		old := *w.Row.Timeslice
		if was, ok := s.original(w.Row.Gen); ok {
			old = was
		}
		if l, ok := s.limits[w.Proc]; !ok || l.New != w.US {
			s.limits[w.Proc] = steer.Limits{Old: old, New: w.US}
		}
	}
}

// original is what a TSG had before its role, where the Keeper has set another.
func (s *Steward) original(gen uint64) (us uint64, ok bool) {
	return s.o.Keeper.Original(sched.OpTimeslice, gen)
}

// starve shows who starves, and lifts roles.
func (s *Steward) starve() {
	clear(s.starving)
	for m := range s.meters {
		for p, d := range m.Waiting(s.o.StarveAfter) {
			if s.now.Of(p) == steer.BE {
				s.starving[p] = d
				s.starved[p] = max(s.starved[p], d)
			}
		}
	}
	for p, d := range s.starving {
		s.once(fmt.Sprintf("pid %d, best-effort, starves: it had no turn for %v while it had work", p.PID, s.o.StarveAfter))
		if s.o.Lift && s.on {
			s.lift(p, fmt.Sprintf("pid %d had no turn for %v while it had work", p.PID, d.Round(time.Millisecond)))
		}
	}
}

// lift suspends the role of a process that starves, and with it what makes it
// starve where that is a long timeslice of a latency-critical process.
func (s *Steward) lift(p steer.Proc, why string) {
	if s.o.Roles.Lifted == nil {
		s.o.Roles.Lifted = map[steer.Proc]string{}
	}
	if s.o.Roles.Lifted[p] != "" {
		return
	}
	s.o.Roles.Lifted[p] = why
	s.o.Say(fmt.Sprintf("the role of pid %d is lifted: %s", p.PID, why))
	if s.o.Roles.LC == 0 {
		return
	}
	for _, m := range s.now.Members {
		if m.Role == steer.LC && s.o.Roles.Lifted[m.Proc] == "" {
			s.o.Roles.Lifted[m.Proc] = why
			s.o.Say(fmt.Sprintf("the timeslice of pid %d, latency-critical, is put back too: others starve beside it", m.Proc.PID))
		}
	}
}

// set sees to it that each TSG has what its role gives it.
func (s *Steward) set(ctx context.Context, now sched.Time) {
	for _, w := range s.now.Wants {
		if s.o.Roles.Lifted[w.Proc] != "" {
			continue
		}
		v := w.Row
		has := s.o.Keeper.Has(sched.OpTimeslice, v.Gen)
		differs := v.Timeslice == nil || *v.Timeslice != w.US
		// A value that the stream of calls shows to differ is set at once; where only
		// RM's own copy would tell, that is read now and then.
		surely := differs && (!has || v.TimesliceFrom == sched.FromSeen)
		if last, ok := s.checked[v.Gen]; ok && now.Sub(last) < checkEvery && !surely {
			continue
		}
		s.checked[v.Gen] = now
		why := "best-effort: its turns are to be short when a latency-critical process comes"
		if w.Role == steer.LC {
			why = "latency-critical"
		}
		err := s.o.Keeper.Ensure(ctx, actions.Wish{Op: sched.OpTimeslice, Gen: v.Gen, Value: w.US, Why: why}, v)
		switch {
		case err == nil || errors.Is(err, actions.ErrQuiet):
		case errors.Is(err, actions.ErrGone), errors.Is(err, actions.ErrReplaced):
			delete(s.checked, v.Gen)
		case errors.Is(err, context.DeadlineExceeded):
			s.once(err.Error())
			return // the others would wait for RM just as long
		default:
			s.once(err.Error())
		}
	}
}

// release puts back what no role asks for any more.
func (s *Steward) release(ctx context.Context, now sched.Time) {
	wanted := map[uint64]bool{}
	if s.on {
		for _, w := range s.now.Wants {
			wanted[w.Row.Gen] = s.o.Roles.Lifted[w.Proc] == ""
		}
	}
	out := s.o.Keeper.LetGo(ctx, func(op sched.Op, t sched.Target) bool {
		return op == sched.OpTimeslice && !wanted[t.Gen] && now.Sub(s.failed[t.Gen]) >= retryEvery
	})
	for _, o := range out {
		if o.State == actions.OutcomeFailed {
			s.failed[o.Target.Gen] = now
		}
		s.outcomes = append(s.outcomes, o)
		if o.State != actions.OutcomeGone {
			s.o.Say(o.String())
		}
	}
}
