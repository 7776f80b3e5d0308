//go:build linux

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"tsgtop/actions"
	"tsgtop/actions/audit"
	"tsgtop/actions/journal"
	"tsgtop/internal/rmdev"
	"tsgtop/probes/rmcalls"
	"tsgtop/ui"
)

// controlOptions are how commands are to be carried out.
type controlOptions struct {
	wait     time.Duration // longest wait for CHANGED
	patience time.Duration // longest wait for RM's answer; 0: as long as it takes
	actuator string        // auto, kfunc or fd
	force    bool
	keep     bool
	dryRun   bool
}

// controller builds what commands need on a source: the actuator, the journal,
// the audit log. nil with a reason where the source cannot be acted on. close
// lets go of the files, after the Controller's own Close.
func (o *options) controller(s *opened, co controlOptions) (c *actions.Controller, closeFiles func(), why string, err error) {
	if s.player != nil {
		return nil, nil, "a recording cannot be acted on", nil
	}
	if o.readOnly {
		return nil, nil, "--read-only was given", nil
	}
	ao := actions.Options{Board: s.board, Wait: co.wait, Patience: co.patience, Force: co.force, Keep: co.keep, DryRun: co.dryRun}
	var files []interface{ Close() error }
	closeFiles = func() {
		for _, f := range files {
			f.Close()
		}
	}
	fail := func(err error) (*actions.Controller, func(), string, error) {
		closeFiles()
		return nil, nil, "", err
	}
	if ao.Self, err = journal.Self(); err != nil {
		return fail(err)
	}
	auditPath := o.audit
	if s.sim != nil {
		ao.Journal, ao.Clock, ao.Actuator = journal.Memory(), s.sim, actions.NewSimulated(s.sim)
	} else {
		if auditPath == "" {
			auditPath = audit.DefaultPath
		}
		if ao.Journal, err = journal.Open(o.journalPath()); err != nil {
			return fail(err)
		}
		files = append(files, ao.Journal)
		ao.Clock, ao.Watch = actions.WallClock{}, true
		ao.Actuator = actuator(co.actuator, s, ao.Journal, ao.Self)
	}
	if auditPath != "" {
		if ao.Audit, err = audit.Open(auditPath, version); err != nil {
			return fail(err)
		}
		files = append(files, ao.Audit)
	}
	return actions.New(ao), closeFiles, "", nil
}

// actuator picks the way that commands go on a live machine.
func actuator(name string, s *opened, j *journal.Journal, self journal.Owner) actions.Actuator {
	probe, blind := s.live.Calls()
	var w actions.RanWitness
	why := ""
	if probe != nil {
		w = witness{probe}
	} else if blind != nil {
		why = "no eBPF program is attached to see the call: " + blind.Error()
	}
	fd := actions.NewFD(s.live.RM(), j, self, w, why)
	return actions.Choose(name, actions.NewKFunc(fd), fd)
}

// witness is the probe of RM calls as what sees our own.
type witness struct{ probe *rmcalls.Probe }

func (w witness) Expect(id uint64, command string, tid, fd int, arg, params uintptr) error {
	return w.probe.Expect(rmcalls.Expected{ID: id, Command: command, TID: tid, FD: fd, Arg: arg, Params: params})
}

func (w witness) Forget(tid int) { w.probe.Forget(tid) }

func (w witness) Wait(id uint64, limit time.Duration) (actions.OwnCall, error) {
	out, err := w.probe.WaitOwn(id, rmcalls.OwnExit, limit)
	in, entryErr := w.probe.WaitOwn(id, rmcalls.OwnEntry, 0)
	c := actions.OwnCall{Entry: entryErr == nil, Exit: err == nil, At: in.Time}
	if err == nil {
		c.Took, c.Read, c.Number, c.Client, c.Object, c.Status = out.Duration, out.Read, out.Number, out.Client, out.Object, out.Status
	}
	return c, err
}

// onScreen is a Controller as the screen wants it.
type onScreen struct{ *actions.Controller }

var _ ui.Controller = onScreen{}

func (c onScreen) Prepare(in ui.Intent) (ui.Preview, error) {
	p, err := c.Controller.Prepare(actions.Intent{Op: in.Op, Gen: in.Gen, Value: in.Value, Count: in.Count, Every: in.Every, Undo: in.Undo})
	if err != nil {
		return ui.Preview{}, err
	}
	in.Count, in.Every = p.Count, p.Every
	return ui.Preview{Intent: in, Target: p.Target, Container: p.Cgroup, Old: p.Old, New: p.New, Warnings: p.Warnings, Cost: p.Cost,
		UndoWords: p.Undo, Actuator: p.Actuator, DryRun: p.DryRun, Token: p}, nil
}

func (c onScreen) Submit(p ui.Preview) (string, error) {
	prepared, ok := p.Token.(actions.Preview)
	if !ok {
		return "", errors.New("this command was not prepared")
	}
	return c.Controller.Submit(prepared)
}

// screenController builds what the screen needs to act: nil with a reason where
// it cannot. What another run left is put back, or named, in said. done puts
// back what was changed, or lists it with keep, once the screen is gone; it says
// for each value what became of it, and fails where something is still changed.
func (o *options) screenController(ctx context.Context, s *opened, co controlOptions) (c ui.Controller, why string, said []string, done func() ([]string, error)) {
	none := func() ([]string, error) { return nil, nil }
	ctl, closeFiles, why, err := o.controller(s, co)
	switch {
	case err != nil:
		return nil, err.Error(), nil, none
	case ctl == nil:
		return nil, why, nil, none
	}
	out, err := ctl.Recover(ctx)
	for _, x := range out {
		said = append(said, "left by another run: "+outcomeLine(x))
	}
	if err != nil {
		said = append(said, err.Error())
	}
	if o.control {
		if err := ctl.Arm(true); err != nil {
			said = append(said, err.Error())
		}
	}
	return onScreen{ctl}, "", said, func() ([]string, error) {
		out := ctl.Close(context.Background())
		closeFiles()
		var lines []string
		for _, x := range out {
			lines = append(lines, outcomeLine(x))
		}
		if failed(out) {
			return lines, fail(exitRestore, "not everything could be put back: see above, and tsgtop restore")
		}
		return lines, nil
	}
}

// exitOf is the exit code of an error of the actions package.
func exitOf(err error) int {
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, actions.ErrBounds):
		return exitUsage
	case errors.Is(err, actions.ErrGone), errors.Is(err, actions.ErrReplaced):
		return exitTarget
	case errors.Is(err, os.ErrPermission), errors.Is(err, rmdev.ErrNotRoot), errors.Is(err, rmdev.ErrNoDriver), errors.Is(err, rmdev.ErrRefused):
		return exitPrivilege
	}
	return exitRefused
}

// outcomeLine is an outcome for people.
func outcomeLine(out actions.Outcome) string {
	who := ""
	if out.Target.PID > 0 {
		who = fmt.Sprintf(" (pid %d %s)", out.Target.PID, out.Target.Exe)
	}
	return fmt.Sprintf("%s of TSG %s%s: %s", out.Op, out.Target.TSGID, who, out.Why)
}

// failed tells whether an outcome leaves something changed that should not be.
func failed(out []actions.Outcome) bool {
	for _, o := range out {
		if o.State == actions.OutcomeFailed {
			return true
		}
	}
	return false
}
