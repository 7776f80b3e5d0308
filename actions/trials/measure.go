//go:build linux

package trials

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"tsgtop/actions"
	"tsgtop/internal/sched"
	"tsgtop/internal/steer"
	"tsgtop/internal/trial"
)

// measure warms up and measures.
func (r *runner) measure(ctx context.Context, arm trial.Arm, runs []trial.Run, series []*actions.Series) error {
	if err := r.wait(ctx, arm, r.Plan.WarmUp, series, nil); err != nil {
		return err
	}
	from := r.Clock.Now()
	r.st.Look()
	r.st.Locked(func() {
		for _, m := range r.meters {
			m.Begin(from)
		}
	})
	broken := func() string {
		if r.Clock.Now().Sub(from) < min(firstStop, r.Plan.Measure/2) || arm.Idle() {
			return ""
		}
		return r.broken(from, runs)
	}
	err := r.wait(ctx, arm, r.Plan.Measure, series, broken)
	var stop *stopError
	if errors.As(err, &stop) {
		r.stopped[arm.Name] = true
		for i := range runs {
			runs[i].Stopped = stop.why
		}
		err = nil
	}
	to := r.Clock.Now()
	r.st.Locked(func() {
		for _, m := range r.meters {
			m.End(to)
		}
	})
	// What has not been read of the trace yet.
	r.Clock.Sleep(context.Background(), lookEvery)
	r.st.Look()
	spans := map[int]*steer.Span{}
	r.st.Locked(func() {
		for gpu, m := range r.meters {
			spans[gpu] = m.Begin(to)
		}
	})
	snap := r.Board.Snapshot(sched.SnapshotOptions{})
	for i, t := range r.Targets {
		r.numbers(&runs[i], spans[t.GPU], t, from, to)
		if why := r.changedByOthers(ctx, snap, arm, t); why != "" && runs[i].Useless == "" {
			runs[i].Useless = why
		}
		if _, gone := row(snap, t); gone != nil {
			runs[i].Useless = "the target is gone"
			err = errors.Join(err, gone)
		}
		if err != nil && runs[i].Useless == "" {
			runs[i].Useless = "it was broken off"
		}
	}
	return err
}

// stopError: an arm broke a bound.
type stopError struct{ why string }

func (e *stopError) Error() string { return e.why }

// wait lets time pass, preempts, looks at the trace, and asks whether to stop.
func (r *runner) wait(ctx context.Context, arm trial.Arm, d time.Duration, series []*actions.Series, broken func() string) error {
	begin := r.Clock.Now()
	end, look, shot := begin.Add(d), begin.Add(lookEvery), begin
	for now := begin; now < end; now = r.Clock.Now() {
		if err := ctx.Err(); err != nil {
			return err
		}
		next := min(end, look)
		if arm.Preempt > 0 {
			next = min(next, shot)
		}
		if next > now {
			r.Clock.Sleep(ctx, next.Sub(now))
			now = r.Clock.Now()
		}
		if arm.Preempt > 0 && now >= shot {
			for _, s := range series {
				if s != nil {
					if res := s.Once(ctx); errors.Is(res.Err, actions.ErrGone) || errors.Is(res.Err, actions.ErrReplaced) {
						return fmt.Errorf("%w: %w", ErrGone, res.Err)
					}
				}
			}
			shot = max(shot.Add(arm.Preempt), now.Add(actions.MinPreemptGap))
		}
		if now < look {
			continue
		}
		look = now.Add(lookEvery)
		if arm.Roles {
			r.st.Step(ctx)
		} else {
			r.st.Look()
		}
		if broken != nil {
			if why := broken(); why != "" {
				return &stopError{why}
			}
		}
	}
	return nil
}

// broken tells which bound a run breaks by now.
func (r *runner) broken(from sched.Time, runs []trial.Run) string {
	for i, t := range r.Targets {
		var v trial.Values
		r.st.Locked(func() { v = trial.Measure(r.meters[t.GPU].Peek(), t.Proc, r.readings(from, r.Clock.Now())) })
		for _, b := range r.Plan.StopIf {
			x, ok := v[b.Metric]
			if !ok {
				continue
			}
			base := r.base(t, b.Metric)
			if !b.Broken(&x, base) {
				continue
			}
			if b.Relative {
				return fmt.Sprintf("%s of %s was %.4g, against %.4g in the baseline: %s", b.Metric, runs[i].Target, x, *base, b)
			}
			return fmt.Sprintf("%s of %s was %.4g: %s", b.Metric, runs[i].Target, x, b)
		}
	}
	return ""
}

// base is the mean of a metric over the baseline's runs so far; nil: none yet.
func (r *runner) base(t Target, metric string) *float64 {
	sum, n := 0.0, 0
	for i := range r.runs {
		if x := &r.runs[i]; x.Arm == r.Plan.Arms[0].Name && x.Target == t.Text && x.Useless == "" {
			if v, ok := x.Values[metric]; ok {
				sum, n = sum+v, n+1
			}
		}
	}
	if n == 0 {
		return nil
	}
	return sched.Ptr(sum / float64(n))
}

func (r *runner) readings(from, to sched.Time) (out []steer.Reading) {
	if r.Readings == nil {
		return nil
	}
	all := r.Readings()
	for i := len(all) - 1; i >= 0 && all[i].At >= from; i-- {
		if all[i].At < to {
			out = append(out, all[i])
		}
	}
	slices.Reverse(out)
	return out
}

// mostTorn is the part of the turns that may touch a gap in the trace.
const mostTorn = 0.2

// numbers are what a run's trace comes to for one target.
func (r *runner) numbers(run *trial.Run, s *steer.Span, t Target, from, to sched.Time) {
	run.Seconds, run.Torn = s.Read.Seconds(), s.TornShare()
	run.Values = trial.Measure(s, t.Proc, r.readings(from, to))
	u := s.Uses[t.Proc]
	switch {
	case run.Useless != "":
	case run.Torn > mostTorn:
		run.Useless = "more than 20% of the turns touch a gap in the trace"
	case u == nil || u.Clean == 0 || s.Competed == 0:
		run.Useless = "the target had no turn that ended: nothing competed with it"
	default:
		run.Forced = float64(u.Forced) / float64(u.Clean)
		run.Useless = r.others(s)
	}
}

// others compares who competed with the first run: what comes and goes by itself
// is no effect of an arm.
func (r *runner) others(s *steer.Span) string {
	var company []steer.Proc
	for _, p := range slices.SortedFunc(maps.Keys(s.Uses), func(a, b steer.Proc) int { return a.PID - b.PID }) {
		if s.Uses[p].Turns >= 3 {
			company = append(company, p)
		}
	}
	if r.company == nil {
		r.company = company
	}
	if !slices.Equal(r.company, company) {
		return "other processes competed than in the first run"
	}
	return ""
}

// changedByOthers tells whether the target's timeslice is not what the arm leaves
// or makes it, by RM's own copy.
func (r *runner) changedByOthers(ctx context.Context, snap *sched.Snapshot, arm trial.Arm, t Target) string {
	v, err := row(snap, t)
	if err != nil || arm.Roles || t.Timeslice == nil {
		return ""
	}
	now, err := r.Keeper.Timeslice(ctx, v)
	if err != nil || now == nil || *now == *t.Timeslice || arm.Timeslice > 0 && *now == arm.Timeslice {
		return ""
	}
	return "the target's timeslice was changed by somebody else during the run"
}
