package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"tsgtop/internal/metrics"
	"tsgtop/internal/privdrop"
	"tsgtop/internal/recording"
	"tsgtop/internal/sched"
	"tsgtop/internal/text"
)

// boundRoot leaves a program that runs as root what observing needs; Main sets
// it. It does not return where it has something to do. Nil in tests.
var boundRoot func() error

func giveUpParts() error {
	if privdrop.Bounded() {
		return nil
	}
	return privdrop.Bound(privdrop.Observing)
}

func newServe(o *options) *cobra.Command {
	var listen string
	var most int
	var speed float64
	var loop bool
	c := &cobra.Command{
		Use:   "serve",
		Short: "A Prometheus exporter: shares, turns, residency, waits, switch tax, Xids",
		Long: `serve answers http://ADDR/metrics for Prometheus, in its text format or as
OpenMetrics. It only reads. By default only this machine can ask; another
address has to be given. What of root it does not need it gives up: all of it
for a recording or the simulated GPU; live, all capabilities but those that
observing needs, which it names.

A recording is played at its own pace (--speed), once, or with --loop for ever.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if most < 1 {
				return fail(exitUsage, "--max-series %d: want at least 1", most)
			}
			if speed <= 0 {
				return fail(exitUsage, "--speed %g: want more than 0", speed)
			}
			return o.serve(c.Context(), listen, most, recording.PlayerOptions{Speed: speed, Loop: loop, Hold: true})
		},
	}
	f := c.Flags()
	f.StringVar(&listen, "listen", "127.0.0.1:9477", "address to serve on")
	f.IntVar(&most, "max-series", metrics.DefaultMaxSeries, "programs with series of their own; the rest are process=\"other\"")
	f.Float64Var(&speed, "speed", 1, "of a recording: times its own pace")
	f.BoolVar(&loop, "loop", false, "of a recording: begin again at its end")
	return c
}

func (o *options) serve(ctx context.Context, listen string, most int, po recording.PlayerOptions) error {
	if o.source == "live" && boundRoot != nil {
		if err := boundRoot(); err != nil {
			return fail(exitPrivilege, "serve: %w", err)
		}
	}
	s, err := o.open(false, po)
	if err != nil {
		return err
	}
	defer s.close()
	l, loopback, err := metrics.Listen(listen)
	if err != nil {
		return fail(exitUsage, "serve: %w", err)
	}
	defer l.Close()
	say := func(format string, args ...any) {
		fmt.Fprintln(o.err, "tsgtop: "+text.Clean(fmt.Sprintf(format, args...)))
	}
	switch {
	case s.live != nil && boundRoot != nil:
		say("kept of root: %s", privdrop.Kept(privdrop.Observing))
	case s.live == nil && dropRoot != nil:
		if err := dropRoot(privdrop.Options{Network: true}); err != nil {
			return fail(exitInternal, "this needs no root, and root could not be given up: %w", err)
		}
	}
	c := metrics.New(s.board, metrics.Options{MaxSeries: most, Version: version})
	detach := c.Attach()
	defer detach()
	if s.player != nil {
		s.player.OnReset(c.Restart)
	}
	h, err := metrics.Handler(c, loopback)
	if err != nil {
		return fail(exitInternal, "serve: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		err := s.board.Run(ctx)
		if err != nil && !errors.Is(err, context.Canceled) {
			cancel() // there is nothing to tell any more
		}
		ended <- err
	}()
	if s.live != nil {
		go o.releaseOnSignal(ctx, s.live)
		go func() {
			select {
			case <-s.live.Ready():
				warnings(s.board.Snapshot(sched.SnapshotOptions{}), func(l string) { say("%s", l) })
			case <-ctx.Done():
			}
		}()
	}
	go o.sayReady(ctx, s)
	say("serving http://%s/metrics", l.Addr())
	if !loopback {
		say("this address can be reached from other machines: names of processes and units are told to whoever asks")
	}
	if err := metrics.Serve(ctx, l, h); err != nil {
		return fail(exitInternal, "%w", err)
	}
	cancel()
	select {
	case err := <-ended:
		if err != nil && !errors.Is(err, context.Canceled) {
			return fail(exitPrivilege, "serve: the source ended: %w", err)
		}
	case <-time.After(5 * time.Second):
		return fail(exitInternal, "serve: the source does not end")
	}
	return nil
}
