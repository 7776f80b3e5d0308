//go:build linux

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tsgtop/actions"
	"tsgtop/actions/steward"
	"tsgtop/internal/crash"
	"tsgtop/internal/sched"
	"tsgtop/internal/steer"
	"tsgtop/ui"
)

// screenRoles keeps roles for the screen: those that are marked there, and those
// that root's configuration gives by rule.
type screenRoles struct {
	st    *steward.Steward
	roles *steer.Roles // its timeslices do not change
	board *sched.Board
	ctl   *actions.Controller
}

// idleEvery is how often it is looked whether there are roles to keep.
const idleEvery = 200 * time.Millisecond

// keepRoles makes what keeps roles for the screen, until ctx ends; putting back
// is the Controller's.
func (o *options) keepRoles(ctx context.Context, s *opened, acting ui.Controller) ui.Steerer {
	on, ok := acting.(onScreen)
	if !ok {
		return nil
	}
	r := &screenRoles{board: s.board, ctl: on.Controller, roles: &steer.Roles{BE: o.conf.BE, LC: o.conf.LC, Rules: o.conf.Roles}}
	var clock actions.Clock = actions.WallClock{}
	if s.sim != nil {
		clock = s.sim
	}
	keeper := on.Controller.Keeper(func() { r.st.Clear() })
	r.st = steward.New(steward.Options{Board: s.board, Keeper: keeper, Clock: clock, Roles: r.roles, StarveAfter: o.conf.StarveAfter, Lift: o.conf.StarveAfter > 0,
		Say: func(l string) {
			s.board.Feed([]sched.Event{sched.ProbeStatus{Time: sched.Now(), Probe: "roles", GPU: sched.Unknown, State: sched.ProbeLimited, Why: l}})
		}})
	crash.Go(func() { r.run(ctx, clock) })
	return r
}

// run keeps the roles while control is armed.
func (r *screenRoles) run(ctx context.Context, clock actions.Clock) {
	defer r.st.Close()
	watched := false
	for ctx.Err() == nil {
		if !r.ctl.Armed() || r.st.Idle() {
			clock.Sleep(ctx, idleEvery)
			continue
		}
		if !watched {
			watched = true
			for _, g := range r.board.Snapshot(sched.SnapshotOptions{}).GPUs {
				r.st.Watch(g.Index)
			}
		}
		r.st.On(true)
		r.st.Step(ctx)
		clock.Sleep(ctx, steward.StepEvery)
	}
}

func (r *screenRoles) row(gen uint64) (*sched.TSGView, error) {
	snap := r.board.Snapshot(sched.SnapshotOptions{})
	for i := range snap.TSGs {
		if snap.TSGs[i].Gen == gen {
			return &snap.TSGs[i], nil
		}
	}
	return nil, errors.New("the TSG has ended")
}

// Mark gives the process of a TSG a role, or takes it away.
func (r *screenRoles) Mark(gen uint64, role string) error {
	if !r.ctl.Armed() {
		return errors.New("control is not armed")
	}
	v, err := r.row(gen)
	if err != nil {
		return err
	}
	if v.Process.PID <= 0 {
		return errors.New("its process is not known")
	}
	r.st.Mark(steer.ProcOf(v), steer.Role(role))
	return nil
}

// Role is that of a TSG's process.
func (r *screenRoles) Role(gen uint64) (role, lifted string) {
	x := r.st.RoleOf(gen)
	return string(x.Role), x.Lifted
}

// Explain says what a role would do.
func (r *screenRoles) Explain(gen uint64, role string) string {
	switch steer.Role(role) {
	case steer.BE:
		us := fmt.Sprintf("%d us", r.roles.BE)
		if r.roles.BE == 0 {
			us = fmt.Sprintf("%d us (where several compete among themselves: %d)", steer.AutoBE(1), steer.AutoBE(2))
		}
		return "Its TSGs on runlists that others use get a timeslice of " + us + ", those too that appear later, so that it leaves the engine soon when another comes. " +
			"Put back when its role goes, and when tsgtop ends."
	case steer.LC:
		own := "It keeps its own timeslice"
		if r.roles.LC > 0 {
			own = fmt.Sprintf("Its TSGs on runlists that others use get a timeslice of %d us", r.roles.LC)
		}
		return own + "; best-effort processes are to make room for it. Mark those with B."
	}
	return "What its role set is put back."
}
