package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"tsgtop/internal/recording"
	"tsgtop/internal/sched"
	"tsgtop/probes"
	"tsgtop/ui"
)

func newDemo(o *options) *cobra.Command {
	var simulated bool
	c := &cobra.Command{
		Use:   "demo",
		Short: "The built-in H200 recording on the screen; --sim: a simulated GPU that obeys",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o.source = "demo"
			if simulated {
				o.source = "sim"
			}
			return o.screen(c.Context())
		},
	}
	c.Flags().BoolVar(&simulated, "sim", false, "a simulated GPU instead of the recording; commands work on it")
	return c
}

func newReplay(o *options) *cobra.Command {
	var speed float64
	var at string
	c := &cobra.Command{
		Use:   "replay FILE",
		Short: "A recording on the screen",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if speed <= 0 {
				return fail(exitUsage, "--speed %g: want more than 0", speed)
			}
			o.source = args[0]
			return o.play(c.Context(), recording.PlayerOptions{Speed: speed, Hold: true}, at)
		},
	}
	c.Flags().Float64Var(&speed, "speed", 1, "times the recording's own pace")
	c.Flags().StringVar(&at, "at", "", "start here: seconds from the recording's start, or a time")
	return c
}

// screen opens the live screen on the chosen source.
func (o *options) screen(ctx context.Context) error {
	return o.play(ctx, recording.PlayerOptions{Speed: 1, Loop: o.source == "demo" || o.source == "live"}, "")
}

func (o *options) play(ctx context.Context, po recording.PlayerOptions, at string) error {
	s, err := o.open(true, po)
	if err != nil {
		return err
	}
	defer s.close()
	if at != "" && s.player != nil {
		t, err := s.until(at)
		if err != nil {
			return err
		}
		s.player.Seek(t)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sourceErr := make(chan error, 1)
	go func() {
		err := s.board.Run(ctx)
		sourceErr <- err
		if err != nil && !errors.Is(err, context.Canceled) {
			s.board.Feed([]sched.Event{sched.ProbeStatus{Time: sched.Now(), Probe: "source", GPU: sched.Unknown, State: sched.ProbeMissing, Why: err.Error()}})
		}
	}()
	if s.live != nil {
		go o.releaseOnSignal(ctx, s.live)
	}
	go o.sayReady(ctx, s)
	uo := ui.Options{
		Board: s.board, Theme: o.theme, ASCII: o.ascii, NoColor: o.noColor, FPS: o.fps, Query: o.query, Mouse: o.mouse,
		Input: o.in, Output: o.out,
	}
	if s.player != nil {
		uo.Player = s.player
	}
	if l, ok := s.src.(sched.Looker); ok {
		uo.Looker = l
	}
	if r, ok := s.src.(sched.Releaser); ok {
		uo.Releaser = r
	}
	return ui.Run(ctx, uo)
}

// releaseOnSignal lets go of the GPUs' devices on SIGUSR1, and takes them again
// on SIGUSR2.
func (o *options) releaseOnSignal(ctx context.Context, l *probes.Live) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(c)
	for {
		select {
		case sig := <-c:
			if sig == syscall.SIGUSR1 {
				l.Release()
			} else {
				l.Resume()
			}
		case <-ctx.Done():
			return
		}
	}
}

// sayReady creates the --ready-file once the source is ready.
func (o *options) sayReady(ctx context.Context, s *opened) {
	if o.ready == "" {
		return
	}
	if s.live != nil {
		select {
		case <-s.live.Ready():
		case <-ctx.Done():
			return
		}
	}
	f, err := os.OpenFile(o.ready, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o644)
	if err != nil {
		fmt.Fprintf(o.err, "tsgtop: --ready-file: %v\n", err)
		return
	}
	fmt.Fprintln(f, os.Getpid())
	f.Close()
}
