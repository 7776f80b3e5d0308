//go:build linux

package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"tsgtop/actions"
	"tsgtop/internal/recording"
	"tsgtop/internal/sched"
	"tsgtop/internal/steer"
	"tsgtop/internal/text"
	"tsgtop/internal/workload"
)

// acting is a source that is acted on.
type acting struct {
	s     *opened
	c     *actions.Controller
	clock actions.Clock
	close func()
}

// openActing opens the source, and what is needed to act on it, and puts back
// what another run left.
func (o *options) openActing(ctx context.Context, what string, co controlOptions) (*acting, error) {
	switch co.actuator {
	case "auto", "kfunc", "fd":
	default:
		return nil, fail(exitUsage, "--actuator %q: want auto, kfunc or fd", co.actuator)
	}
	s, err := o.open(false, recording.PlayerOptions{})
	if err != nil {
		return nil, err
	}
	c, closeFiles, why, err := o.controller(s, co)
	switch {
	case err != nil:
		s.close()
		return nil, &exitError{exitOf(err), err}
	case c == nil:
		s.close()
		return nil, fail(exitUsage, "%s: %s", what, why)
	}
	a := &acting{s: s, c: c, clock: actions.WallClock{}}
	if s.sim != nil {
		a.clock = s.sim
	}
	running, stop := context.WithCancel(context.Background())
	a.close = func() {
		c.Close(context.Background())
		stop()
		closeFiles()
		s.close()
	}
	if why := c.Why(); why != "" {
		a.close()
		return nil, fail(exitPrivilege, "no command can be sent: %s", why)
	}
	// The source goes on while values are put back, also after a signal.
	go s.board.Run(running)
	if s.live != nil {
		select {
		case <-s.live.Ready():
		case <-ctx.Done():
			a.close()
			return nil, ctx.Err()
		}
	}
	// What there is follows within milliseconds.
	for until := time.Now().Add(time.Second); len(s.board.Snapshot(sched.SnapshotOptions{}).TSGs) == 0 && time.Now().Before(until) && ctx.Err() == nil; {
		time.Sleep(5 * time.Millisecond)
	}
	if err := o.recovered(ctx, c); err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

// probe starts what prints the workload's own numbers. A simulated
// latency-critical process tells them itself.
func (o *options) probe(a *acting, command string, readings *func() []steer.Reading) (stop func(), err error) {
	if command != "" {
		p, err := workload.StartProbe(command, a.clock.Now, shared(o.err))
		if err != nil {
			return nil, fail(exitUsage, "%w", err)
		}
		*readings = p.Readings
		return func() {
			if ended, err := p.Ended(); ended && err != nil {
				fmt.Fprintln(o.err, "tsgtop: the probe ended: "+text.Clean(err.Error()))
			}
			p.Stop()
		}, nil
	}
	if a.s.sim != nil {
		pid := a.s.sim.Targets()[0].PID
		if len(a.s.sim.Launches(pid, 0)) > 0 || strings.Contains(o.source, "lc") {
			*readings = func() (out []steer.Reading) {
				for _, l := range a.s.sim.Launches(pid, 0) {
					out = append(out, steer.Reading{At: l.At, Name: "launch_to_finish_us", Value: float64(l.Took) / 1e3})
				}
				return out
			}
		}
	}
	return func() {}, nil
}

// ask asks whether to send; yes: it has been answered by a flag.
func (o *options) ask(ctx context.Context, yes bool) (bool, error) {
	if yes {
		return true, nil
	}
	return o.askPeople(ctx)
}

// shared is an output that another process can write to beside us: a file. What
// is none is a test's, and is not shared.
func shared(w io.Writer) io.Writer {
	if f, ok := w.(*os.File); ok {
		return f
	}
	return io.Discard
}
