package ui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
)

// SignalError: a signal ended the screen. The terminal is as it was; the
// caller puts back what was changed and ends with 128 and the signal's number.
type SignalError struct{ Signal os.Signal }

func (e *SignalError) Error() string { return "ended by signal: " + e.Signal.String() }

// Run shows the screen until the operator quits (nil), ctx ends (nil), a
// signal comes (*SignalError), the screen fails (*PanicError) or something
// outside it does (what came on Options.Failed). The terminal is as it was
// when Run returns, whatever happened.
func Run(ctx context.Context, opts Options) error {
	out := opts.Output
	if out == nil {
		out = os.Stdout
	}
	env := opts.Env
	if env == nil {
		env = os.Environ()
	}
	if opts.Profile == colorprofile.Unknown {
		opts.Profile = detectProfile(out, env)
	}
	m, err := New(opts)
	if err != nil {
		return err
	}
	if !opts.Query {
		out = quiet(out)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sigs := newSignals()
	defer sigs.stop()
	po := []tea.ProgramOption{
		tea.WithContext(ctx), tea.WithOutput(out), tea.WithEnvironment(env), tea.WithColorProfile(m.profile),
		tea.WithFPS(30), tea.WithoutSignalHandler(), tea.WithFilter(sigs.filter),
	}
	if opts.Input != nil {
		po = append(po, tea.WithInput(opts.Input))
	}
	if opts.Width > 0 && opts.Height > 0 {
		po = append(po, tea.WithWindowSize(opts.Width, opts.Height))
	}
	p := tea.NewProgram(m, po...)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { sigs.forward(p, done) })
	_, err = p.Run()
	close(done)
	wg.Wait()
	if opts.Looker != nil && m.on == screenCalls {
		opts.Looker.Look(false)
	}
	switch {
	case m.err != nil:
		return m.err
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return nil
	case errors.Is(err, tea.ErrInterrupted):
		return &SignalError{syscall.SIGINT}
	default:
		return fmt.Errorf("the terminal screen: %w", err)
	}
}

// detectProfile asks the environment, never the terminal. NO_COLOR counts
// with any value, also with none that means "no".
func detectProfile(w io.Writer, env []string) colorprofile.Profile {
	p := colorprofile.Detect(w, env)
	for _, e := range env {
		if len(e) > len("NO_COLOR=") && e[:len("NO_COLOR=")] == "NO_COLOR=" {
			return min(p, colorprofile.ASCII)
		}
	}
	if p == colorprofile.NoTTY {
		return colorprofile.ASCII
	}
	return p
}

// signals turns signals into messages. bubbletea itself knows only the
// interrupt and the termination, and not that a terminal can go away.
type signals struct {
	ends chan os.Signal
	stop func()

	mu   sync.Mutex
	tstp chan os.Signal
}

func newSignals() *signals {
	s := &signals{ends: make(chan os.Signal, 4), tstp: make(chan os.Signal, 1)}
	signal.Notify(s.ends, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT)
	signal.Notify(s.tstp, syscall.SIGTSTP)
	s.stop = func() {
		signal.Stop(s.ends)
		signal.Stop(s.tstp)
	}
	return s
}

// forward sends them to the program until done.
func (s *signals) forward(p *tea.Program, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case sig := <-s.ends:
			p.Send(signalMsg{sig})
		case <-s.tstp:
			p.Send(tea.SuspendMsg{})
		}
	}
}

// filter lets the stop signal have its own way while bubbletea stops the
// process with it, once the terminal was given back.
func (s *signals) filter(_ tea.Model, msg tea.Msg) tea.Msg {
	switch msg.(type) {
	case tea.SuspendMsg:
		s.mu.Lock()
		signal.Stop(s.tstp)
		signal.Reset(syscall.SIGTSTP)
		s.mu.Unlock()
	case tea.ResumeMsg:
		s.mu.Lock()
		signal.Notify(s.tstp, syscall.SIGTSTP)
		s.mu.Unlock()
	}
	return msg
}
