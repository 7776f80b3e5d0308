package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"tsgtop/internal/recording"
	"tsgtop/internal/recording/demo"
	"tsgtop/internal/sched"
	"tsgtop/internal/sim"
	"tsgtop/probes"
)

// opened is a source with the board that it feeds.
type opened struct {
	src    sched.Source
	board  *sched.Board
	live   *probes.Live      // nil unless the source is this machine
	player *recording.Player // nil unless the source is a recording
	sim    *sim.Machine      // nil unless the source is simulated
	speed  float64           // of the simulated clock
	say    func(line string) // beside the output
	close  func()
}

// isRecording tells whether the whole source can be read at once.
func (s *opened) isRecording() bool { return s.player != nil }

// open opens the source that the flags name. orDemo: where no NVIDIA driver is
// here and the user asked for nothing else, open the built-in recording
// instead, with a note on the screen that says so.
func (o *options) open(orDemo bool, play recording.PlayerOptions) (*opened, error) {
	gpus, err := o.gpuSet()
	if err != nil {
		return nil, err
	}
	kind, rest, _ := strings.Cut(o.source, ":")
	switch {
	case o.source == "live":
		live, err := probes.NewLive(probes.Options{Args: o.args, Tool: version, NVML: true})
		if err == nil {
			return o.opened(live, &opened{live: live, close: live.Close}, gpus), nil
		}
		switch noDriver := errors.Is(err, probes.ErrNoDriver); {
		case !noDriver:
			return nil, &exitError{exitPrivilege, err}
		case !orDemo:
			return nil, fail(exitPrivilege, "%w; without one there are recordings and a simulated GPU (--source FILE, demo or sim)", err)
		}
		play.Notes = append(play.Notes, "no NVIDIA driver answers on this machine: this is the built-in recording")
		return o.openDemo(play, gpus)
	case o.source == "demo":
		return o.openDemo(play, gpus)
	case kind == "sim":
		config, err := sim.ParseKnobs(rest)
		if err != nil {
			return nil, fail(exitUsage, "--source %s: %w", o.source, err)
		}
		m, err := sim.New(config)
		if err != nil {
			return nil, fail(exitUsage, "--source %s: %w", o.source, err)
		}
		return o.opened(m, &opened{sim: m, speed: config.Speed, close: func() {}}, gpus), nil
	default:
		f, err := recording.OpenFile(o.source)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fail(exitUsage, "--source %q: not live, demo or sim, and there is no file of that name", o.source)
		}
		if err != nil {
			return nil, fail(exitUsage, "%w", err)
		}
		p, err := recording.NewPlayer(f, o.source, play)
		if err != nil {
			f.Close()
			return nil, fail(exitUsage, "%w", err) // it names the file
		}
		return o.opened(p, &opened{player: p, close: func() { f.Close() }}, gpus), nil
	}
}

func (o *options) openDemo(play recording.PlayerOptions, gpus map[int]bool) (*opened, error) {
	f, err := demo.Open()
	if err != nil {
		return nil, fail(exitInternal, "built-in recording: %w", err)
	}
	play.Label = "DEMO"
	p, err := recording.NewPlayer(f, "built-in recording", play)
	if err != nil {
		return nil, fail(exitInternal, "built-in recording: %w", err)
	}
	return o.opened(p, &opened{player: p, close: func() {}}, gpus), nil
}

func (o *options) opened(src sched.Source, s *opened, gpus map[int]bool) *opened {
	s.src, s.say = src, o.sayLine
	s.board = sched.NewBoard(src, sched.Options{GPUs: gpus})
	if s.player != nil {
		s.player.OnReset(s.board.Reset)
	}
	return s
}

// settle runs the source until there is something to print: a recording to its
// end or to at, anything else for the duration, counted from when the source
// is ready. It returns the state then.
func (s *opened) settle(ctx context.Context, at string, span time.Duration) (*sched.Snapshot, error) {
	if s.isRecording() {
		until, err := s.until(at)
		if err != nil {
			return nil, err
		}
		if err := s.player.ReadUntil(ctx, until, s.board.Feed); err != nil {
			return s.board.Snapshot(sched.SnapshotOptions{}), fail(exitUsage, "%w (what was good before it is shown)", err)
		}
		if err := ctx.Err(); err != nil {
			return nil, err // a part would pass for the whole
		}
		return s.board.Snapshot(sched.SnapshotOptions{}), nil
	}
	if span < 0 {
		return nil, fail(exitUsage, "--for %v: want a time to watch for", span)
	}
	if at != "" {
		return nil, fail(exitUsage, "--at is for recordings")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.board.Run(ctx) }()
	if s.live != nil {
		select {
		case <-s.live.Ready():
		case err := <-done:
			return nil, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if s.sim != nil {
		span = time.Duration(float64(span) / s.speed)
	}
	select {
	case <-time.After(span):
	case err := <-done:
		if err != nil {
			return nil, err
		}
	case <-ctx.Done():
	}
	if err := ctx.Err(); err != nil { // which ends the source, too
		return nil, err
	}
	snap := s.board.Snapshot(sched.SnapshotOptions{})
	if s.live != nil && !observes(snap) {
		warnings(snap, s.say)
		return nil, errBlind
	}
	return snap, nil
}

// errBlind: the driver is there, and nothing can be learned from it. Why stands
// in what was printed before it.
var errBlind = fail(exitPrivilege, "nothing can be observed on this machine, for the reasons above; tsgtop doctor says more")

// observes tells whether one of the probes works that see TSGs.
func observes(snap *sched.Snapshot) bool {
	for _, p := range snap.Probes {
		if p.State != sched.ProbeMissing && (p.Probe == "rm" || p.Probe == "discover" || p.Probe == "ctxsw") {
			return true
		}
	}
	return false
}

// watchProbes says, once a live source is ready, what of it does not work. Where
// nothing does it stops the source, and ended gives errBlind after that.
func (s *opened) watchProbes(ctx context.Context, stop context.CancelFunc) (ended func() error) {
	if s.live == nil {
		return func() error { return nil }
	}
	blind := make(chan error, 1)
	go func() {
		select {
		case <-s.live.Ready():
		case <-ctx.Done():
		}
		snap := s.board.Snapshot(sched.SnapshotOptions{})
		warnings(snap, s.say)
		if ctx.Err() != nil || observes(snap) {
			blind <- nil
			return
		}
		blind <- errBlind
		stop()
	}()
	return func() error { stop(); return <-blind }
}

// until turns --at into an instant of the recording; zero is its end.
func (s *opened) until(at string) (sched.Time, error) {
	if at == "" {
		return 0, nil
	}
	offset, abs, err := instant(at)
	if err != nil {
		return 0, fail(exitUsage, "--at: %w", err)
	}
	if !abs.IsZero() {
		return sched.Time(abs.UnixNano()), nil
	}
	_, first, _ := s.player.Position()
	return first.Add(offset), nil
}

// warnings prints, for a person, what of the source does not work.
func warnings(snap *sched.Snapshot, w func(string)) {
	for _, p := range snap.Probes {
		if p.State == sched.ProbeMissing || p.State == sched.ProbeLimited && p.Why != "" {
			line := p.Probe
			if p.GPU != sched.Unknown {
				line += fmt.Sprintf(" GPU%d", p.GPU)
			}
			line += ": " + p.Why
			if p.Help != "" {
				line += "; help: " + p.Help
			}
			w(line)
		}
	}
}
