package ui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"golang.org/x/sys/unix"
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
	opts.ASCII = opts.ASCII || wantsASCII(env)
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
		tea.WithFPS(max(20, m.fps())), tea.WithoutSignalHandler(), tea.WithFilter(sigs.filter),
	}
	if opts.Input != nil {
		po = append(po, tea.WithInput(opts.Input))
	}
	if opts.Width > 0 && opts.Height > 0 {
		po = append(po, tea.WithWindowSize(opts.Width, opts.Height))
	}
	p := tea.NewProgram(m, po...)
	sigs.program = p
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { sigs.forward(done) })
	_, err = p.Run()
	close(done)
	wg.Wait()
	if opts.Looker != nil && m.on == screenCalls {
		opts.Looker.Look(false)
	}
	if opts.Counters != nil && showsSwitches(m.on) {
		opts.Counters.LookCounters(false)
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

// wantsASCII tells from the environment that a terminal cannot be trusted with
// more than ASCII: the Linux console, whose font has few of our signs, and a
// locale that is not UTF-8 (none at all is the C locale).
func wantsASCII(env []string) bool {
	get := func(name string) string {
		for i := len(env) - 1; i >= 0; i-- {
			if v, ok := strings.CutPrefix(env[i], name+"="); ok {
				return v
			}
		}
		return ""
	}
	if term := get("TERM"); term == "linux" || term == "dumb" || strings.HasPrefix(term, "vt") {
		return true
	}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(get(name)); v != "" {
			return !strings.Contains(v, "utf-8") && !strings.Contains(v, "utf8")
		}
	}
	return true
}

// signals turns signals into messages. bubbletea itself knows only the
// interrupt and the termination, and not that a terminal can go away.
type signals struct {
	ends    chan os.Signal
	tstp    chan os.Signal
	stop    func()
	program *tea.Program
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
func (s *signals) forward(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case sig := <-s.ends:
			s.program.Send(signalMsg{sig})
		case <-s.tstp:
			s.program.Send(suspendMsg{})
		}
	}
}

// filter has the program stop and come back. Not by bubbletea's own message:
// it sends the stop signal that we listen for, and that Go, once anybody has
// listened for it, swallows for ever.
func (s *signals) filter(_ tea.Model, msg tea.Msg) tea.Msg {
	if _, ok := msg.(suspendMsg); !ok {
		return msg
	}
	if orphaned() {
		return stuckMsg{}
	}
	if err := s.program.ReleaseTerminal(); err != nil {
		return failedMsg{fmt.Errorf("give the terminal back to suspend: %w", err)}
	}
	cont := make(chan os.Signal, 1)
	signal.Notify(cont, syscall.SIGCONT)
	defer signal.Stop(cont)
	if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err == nil {
		<-cont
	}
	if err := s.program.RestoreTerminal(); err != nil {
		return failedMsg{fmt.Errorf("take the terminal again after a suspension: %w", err)}
	}
	return tea.ResumeMsg{}
}

// orphaned tells whether our process group is orphaned: whether no process of
// it has a parent in the same session and another group. Walks up from us, as
// sudo without a terminal of its own is in our group, and its shell is not.
func orphaned() bool {
	group, err := unix.Getpgid(0)
	if err != nil {
		return true
	}
	session, err := unix.Getsid(0)
	if err != nil {
		return true
	}
	pid := os.Getpid()
	for range 32 {
		parent, ok := parentOf(pid)
		if !ok || parent <= 1 {
			return true
		}
		pg, err1 := unix.Getpgid(parent)
		ps, err2 := unix.Getsid(parent)
		if err1 != nil || err2 != nil || ps != session {
			return true
		}
		if pg != group {
			return false
		}
		pid = parent
	}
	return true
}

// parentOf is field 4 of /proc/PID/stat.
func parentOf(pid int) (int, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(f) < 2 {
		return 0, false
	}
	n, err := strconv.Atoi(f[1])
	return n, err == nil
}
