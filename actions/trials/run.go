//go:build linux

// Package trials runs experiments: it gives each arm its values, measures, puts
// everything back, and goes on with the next.
package trials

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tsgtop/actions"
	"tsgtop/actions/steward"
	"tsgtop/internal/sched"
	"tsgtop/internal/steer"
	"tsgtop/internal/trial"
)

// Target is a TSG that an experiment is about.
type Target struct {
	Text      string // as it was asked for
	Gen       uint64
	Proc      steer.Proc
	GPU       int
	Timeslice *uint64
}

// Options are what an experiment is made of.
type Options struct {
	Board    steward.Board
	Keeper   *actions.Keeper
	Clock    actions.Clock
	Plan     trial.Plan
	Targets  []Target
	Machine  trial.Machine
	Readings func() []steer.Reading // of a probe; nil: there is none
	Say      func(string)           // progress, in lines; can be nil
}

// Paces, by the source's clock.
const (
	lookEvery = 50 * time.Millisecond
	settle    = 50 * time.Millisecond  // from putting back to the next arm
	firstStop = 500 * time.Millisecond // what a bound is held against is measured at least that long
)

// ErrGone: a target has ended.
var ErrGone = errors.New("a target of the plan is gone")

// ErrRestore: something could not be put back.
var ErrRestore = errors.New("something could not be put back")

type runner struct {
	Options
	st      *steward.Steward
	roles   *steer.Roles
	meters  map[int]*steer.Meter // by GPU
	runs    []trial.Run
	stopped map[string]bool // arms that are not run again
	company []steer.Proc    // who competed in the first run that tells
	all     []actions.Outcome
}

// Run runs the plan. The report tells of all that was measured, also with an
// error: ErrGone, ErrRestore, or ctx's.
func Run(ctx context.Context, o Options) (*trial.Report, []actions.Outcome, error) {
	if o.Say == nil {
		o.Say = func(string) {}
	}
	r := &runner{Options: o, roles: &steer.Roles{}, meters: map[int]*steer.Meter{}, stopped: map[string]bool{}}
	r.st = steward.New(steward.Options{Board: o.Board, Keeper: o.Keeper, Clock: o.Clock, Roles: r.roles, Say: o.Say})
	defer r.st.Close()
	var slices []uint64
	for _, t := range o.Targets {
		if r.meters[t.GPU] == nil {
			r.meters[t.GPU] = r.st.Watch(t.GPU)
		}
		us := uint64(0)
		if t.Timeslice != nil {
			us = *t.Timeslice
		}
		slices = append(slices, us)
	}
	r.st.Look()
	began := o.Clock.Now()
	err := r.rounds(ctx)
	rep := trial.Analyse(o.Machine, o.Plan, slices, r.runs, !errors.Is(err, ErrRestore), began, o.Clock.Now().Sub(began))
	switch {
	case err == nil:
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		rep.Ended = "it was interrupted"
	default:
		rep.Ended = err.Error()
	}
	return rep, r.all, err
}

func (r *runner) rounds(ctx context.Context) error {
	for round, order := range r.Plan.Sequence() {
		for _, k := range order {
			arm := r.Plan.Arms[k]
			if r.stopped[arm.Name] {
				continue
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := r.one(ctx, round, arm); err != nil {
				return err
			}
		}
	}
	return nil
}

// one is one run of one arm: set, warm up, measure, put back.
func (r *runner) one(ctx context.Context, round int, arm trial.Arm) error {
	runs := make([]trial.Run, len(r.Targets))
	for i, t := range r.Targets {
		runs[i] = trial.Run{Round: round, Arm: arm.Name, Target: t.Text, Calls: trial.Calls{Where: map[string]int{}, ByStatus: map[string]int{}}}
	}
	series, err := r.set(ctx, arm, runs)
	if err == nil {
		err = r.measure(ctx, arm, runs, series)
	}
	for i, s := range series {
		if s != nil {
			count(&runs[i].Calls, s.End())
		}
	}
	for _, k := range r.Keeper.All() {
		i := slices.IndexFunc(r.Targets, func(t Target) bool { return t.Gen == k.Target.Gen })
		count(&runs[max(0, i)].Calls, k.Results)
	}
	left := r.putBack()
	r.Clock.Sleep(ctx, settle)
	for i := range runs {
		runs[i].Restored = left == ""
	}
	r.runs = append(r.runs, runs...)
	r.Say(line(round, r.Plan.Repeats, arm, runs))
	if left != "" {
		return fmt.Errorf("%w: %s", ErrRestore, left)
	}
	return err
}

// row finds a target in a snapshot.
func row(snap *sched.Snapshot, t Target) (*sched.TSGView, error) {
	for i := range snap.TSGs {
		if snap.TSGs[i].Gen == t.Gen {
			return &snap.TSGs[i], nil
		}
	}
	return nil, fmt.Errorf("%w: %s", ErrGone, t.Text)
}

// set gives the targets what the arm asks for. What RM refuses is no error: it is
// counted.
func (r *runner) set(ctx context.Context, arm trial.Arm, runs []trial.Run) ([]*actions.Series, error) {
	series := make([]*actions.Series, len(r.Targets))
	if arm.Roles {
		r.st.Locked(func() {
			r.roles.BE, r.roles.LC = arm.BE, arm.LC
			r.roles.Rules = []steer.Rule{{Role: steer.BE, Others: true}}
		})
		for _, t := range r.Targets {
			r.st.Mark(t.Proc, steer.LC)
		}
		r.st.On(true)
		r.st.Step(ctx)
	}
	snap := r.Board.Snapshot(sched.SnapshotOptions{})
	for i, t := range r.Targets {
		v, err := row(snap, t)
		if err != nil {
			runs[i].Useless = "the target is gone"
			return series, err
		}
		var wishes []actions.Wish
		if arm.Timeslice > 0 {
			wishes = append(wishes, actions.Wish{Op: sched.OpTimeslice, Gen: t.Gen, Value: arm.Timeslice, Why: "experiment, arm " + arm.Name})
		}
		if arm.Interleave != nil {
			wishes = append(wishes, actions.Wish{Op: sched.OpInterleave, Gen: t.Gen, Value: *arm.Interleave, Why: "experiment, arm " + arm.Name})
		}
		for _, w := range wishes {
			if err := r.Keeper.Ensure(ctx, w, v); err != nil {
				if errors.Is(err, actions.ErrGone) || errors.Is(err, actions.ErrReplaced) {
					runs[i].Useless = "the target is gone"
					return series, fmt.Errorf("%w: %s", ErrGone, t.Text)
				}
				if !answered(r.Keeper, t.Gen) {
					runs[i].Useless = "it could not be set: " + err.Error()
				}
			}
		}
		if arm.Preempt > 0 {
			if series[i], err = r.Keeper.Series(ctx, v, arm.Preempt, "experiment, arm "+arm.Name); err != nil {
				runs[i].Useless = "preempts could not be sent: " + err.Error()
			}
		}
	}
	return series, nil
}

// answered tells whether RM has answered a try at a TSG.
func answered(k *actions.Keeper, gen uint64) bool {
	for _, x := range k.All() {
		if x.Target.Gen == gen && len(x.Results) > 0 && x.Results[len(x.Results)-1].Answered {
			return true
		}
	}
	return false
}

// putBack puts everything back, and says what could not be.
func (r *runner) putBack() string {
	ctx := context.Background()
	r.st.On(false)
	r.st.Locked(func() {
		r.roles.Marks, r.roles.Rules, r.roles.Lifted = nil, nil, nil
	})
	var bad []string
	for _, o := range r.Keeper.LetGo(ctx, func(sched.Op, sched.Target) bool { return true }) {
		r.all = append(r.all, o)
		if o.State == actions.OutcomeFailed {
			bad = append(bad, o.String())
		}
	}
	return strings.Join(bad, "; ")
}

// count adds up what came of calls.
func count(c *trial.Calls, results []actions.Result) {
	var n trial.Calls
	n.Where, n.ByStatus = map[string]int{}, map[string]int{}
	total := 0.0
	for _, x := range results {
		if !x.Sent {
			continue
		}
		n.Sent++
		a := actions.AcceptedOf([]actions.Result{x})
		n.Where[a.Where]++
		if a.Status != "" {
			n.ByStatus[a.Status]++
		}
		if a.CallUS != nil {
			total += float64(*a.CallUS)
		}
		switch {
		case a.State == sched.LampYes:
			n.Accepted++
		case a.State == sched.LampNo && x.Answered && x.Status == 0:
			n.Stub++
		case a.State == sched.LampNo:
			n.Refused++
		default:
			n.Unknown++
		}
	}
	if n.Sent > 0 {
		n.CallUS = sched.Ptr(total / float64(n.Sent))
	}
	c.Add(n)
}

// line is a run in one line.
func line(round, of int, arm trial.Arm, runs []trial.Run) string {
	s := fmt.Sprintf("round %d of %d, %s:", round+1, of, arm.Name)
	for _, x := range runs {
		switch {
		case x.Useless != "":
			s += " does not count: " + x.Useless
		case x.Stopped != "":
			s += " stopped: " + x.Stopped
		default:
			s += fmt.Sprintf(" residency p50 %.0f us, %.0f turns/s, share %.1f%%, tax %.1f%%", x.Values["residency_p50_us"], x.Values["turns_per_s"], 100*x.Values["share"], 100*x.Values["switch_tax"])
		}
	}
	return s
}
