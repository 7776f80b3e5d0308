package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"tsgtop/internal/crash"
	"tsgtop/internal/privdrop"
	"tsgtop/internal/recording"
	"tsgtop/internal/sched"
	"tsgtop/internal/text"
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
	o.lookFlags(c)
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
			if kind, _, _ := strings.Cut(args[0], ":"); kind == "live" || kind == "sim" {
				return fail(exitUsage, "replay %s: that is no recording; tsgtop --source %s opens it (a file of that name: ./%s)", args[0], args[0], args[0])
			}
			o.source, o.look.speed = args[0], speed
			return o.play(c.Context(), recording.PlayerOptions{Speed: speed, Hold: true}, at)
		},
	}
	c.Flags().Float64Var(&speed, "speed", 1, "times the recording's own pace")
	c.Flags().StringVar(&at, "at", "", "start here: seconds from the recording's start, or a time")
	o.lookFlags(c)
	return c
}

// screen opens the live screen on the chosen source.
func (o *options) screen(ctx context.Context) error {
	return o.play(ctx, recording.PlayerOptions{Speed: 1, Loop: o.source == "demo" || o.source == "live"}, "")
}

func (o *options) play(ctx context.Context, po recording.PlayerOptions, at string) error {
	if !isTerminal(o.out) {
		return fail(exitUsage, "the screen needs a terminal, and the output is none; without one there are tsgtop ls, score, calls and record")
	}
	if _, file := o.out.(*os.File); file && os.Getenv("TERM") == "dumb" {
		return fail(exitUsage, "the screen needs a terminal that can move its cursor, and TERM says that this is a dumb one; without a screen there are tsgtop ls, score, calls and record")
	}
	uo, err := o.screenOptions()
	if err != nil {
		return err
	}
	s, err := o.open(true, po)
	if err != nil {
		return err
	}
	broken := false // what failed may hold a lock: the program's end then closes what is open
	defer func() {
		if !broken {
			s.close()
		}
	}()
	if at != "" && s.player != nil {
		t, err := s.until(at)
		if err != nil {
			return err
		}
		s.player.Seek(t)
	}
	if err := ctx.Err(); err != nil {
		return err // interrupted before there was a screen
	}
	// The screen has the signals to itself from here on.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	failed, stop := crash.Take()
	defer stop()
	uo.Failed = failed
	crash.Go(func() {
		if err := s.board.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
			s.board.Feed([]sched.Event{sched.ProbeStatus{Time: sched.Now(), Probe: "source", GPU: sched.Unknown, State: sched.ProbeMissing, Why: err.Error()}})
		}
	})
	if s.player != nil {
		// The ready file is made with the rights of whoever asked for it.
		o.sayReady(ctx, s)
	} else {
		crash.Go(func() { o.sayReady(ctx, s) })
	}
	acting, why, said, done := o.screenController(ctx, s, controlOptions{wait: screenWait, actuator: "auto", keep: o.keep})
	uo.ReadOnly = why
	if acting != nil {
		uo.Controller = acting
		uo.Roles = o.keepRoles(ctx, s, acting)
	}
	if err := s.seal(privdrop.Options{}); err != nil {
		return err
	}
	uo.Board = s.board
	if s.player != nil {
		uo.Player = s.player
	} else {
		rec := newRecorder(s.board, o.recordDir, recording.WriterOptions{Args: o.args, ToolVersion: version})
		uo.Recorder = rec
		defer func() {
			if !broken {
				rec.end(func(l string) { fmt.Fprintln(o.err, "tsgtop: "+text.Clean(l)) })
			}
		}()
	}
	if l, ok := s.src.(sched.Looker); ok {
		uo.Looker = l
	}
	if l, ok := s.src.(sched.CounterLooker); ok {
		uo.Counters = l
	}
	if s.live != nil {
		r := releaser{s.live, acting}
		uo.Releaser = r
		crash.Go(func() { o.releaseOnSignal(ctx, r) })
	}
	if len(said) > 0 {
		s.board.Feed([]sched.Event{sched.ProbeStatus{Time: sched.Now(), Probe: "undo", GPU: sched.Unknown, State: sched.ProbeLimited, Why: strings.Join(said, "; ")}})
	}
	err = screenError(ui.Run(ctx, uo))
	broken = codeOf(err) == exitInternal
	// What was changed is put back, or named, also where the screen broke.
	left, undoErr := undone(done, broken)
	for _, l := range append(said, left...) {
		fmt.Fprintln(o.err, "tsgtop: "+text.Clean(l))
	}
	switch {
	case undoErr == nil:
	case broken: // what failed is told too, and has the exit code
		fmt.Fprintln(o.err, "tsgtop: "+text.Clean(undoErr.Error()))
	default:
		err = undoErr
	}
	return err
}

// brokenUndo is how long putting back may take where something failed, and
// with it perhaps what is needed for it.
var brokenUndo = 10 * time.Second

// undone puts back what was changed. It waits as long as that takes, unless the
// program is broken.
func undone(done func() ([]string, error), broken bool) (left []string, err error) {
	if !broken {
		return done()
	}
	type answer struct {
		left []string
		err  error
	}
	c := make(chan answer, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				c <- answer{err: fmt.Errorf("putting back what was changed failed: %v; see tsgtop restore", r)}
			}
		}()
		l, err := done()
		c <- answer{l, err}
	}()
	select {
	case a := <-c:
		return a.left, a.err
	case <-time.After(brokenUndo):
		return nil, errors.New("what was changed could not be put back in time; see tsgtop restore")
	}
}

// screenWait is the longest wait for CHANGED of a command from the screen.
const screenWait = 3 * time.Second

// screenError gives the end of the screen its exit code: a signal ends with
// 128 and its number, as it would have ended us.
func screenError(err error) error {
	var sig *ui.SignalError
	var broken *crash.Error
	var torn *ui.PanicError
	switch {
	case errors.As(err, &sig):
		if n, ok := sig.Signal.(syscall.Signal); ok {
			return &exitError{code: 128 + int(n)}
		}
		return &exitError{code: exitInternal, err: err}
	case errors.As(err, &broken), errors.As(err, &torn):
		return fail(exitInternal, "%w\nplease report this with the lines above", err)
	default:
		return err
	}
}

// isTerminal tells whether a screen can be drawn on w. What is no file is a
// test's, and can.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return true
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// releaser lets go of the driver's devices wherever this process holds them.
type releaser struct {
	live   *probes.Live
	acting ui.Controller // nil: read-only
}

func (r releaser) Release() {
	r.live.Release()
	if c, ok := r.acting.(interface{ Release() }); ok {
		c.Release()
	}
}

// Resume takes the probes' devices again; commands take theirs when they need them.
func (r releaser) Resume() { r.live.Resume() }

// releaseOnSignal lets go of the GPUs' devices on SIGUSR1, and takes them again
// on SIGUSR2.
func (o *options) releaseOnSignal(ctx context.Context, l sched.Releaser) {
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
		o.say("--ready-file: %v", err)
		return
	}
	fmt.Fprintln(f, os.Getpid())
	f.Close()
}
