package recording

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"time"

	"tsgtop/internal/sched"
)

// PlayerOptions say how a recording is played.
type PlayerOptions struct {
	Label string   // what the source calls itself; empty: RECORDING
	Notes []string // sentences to show with the source, before the recording's own
	// Speed is how much faster than the recording's clock; 0: 1.
	Speed            float64
	AsFastAsPossible bool          // as the sink takes the events, whatever Speed is
	Start            time.Duration // after the recording's first instant: seek here first
	Paused           bool
	Loop             bool // begin again at the end
	Hold             bool // at the end wait, so that one can still seek
}

// Player plays a recording as a source of events, at their own times. It
// implements sched.Source and sched.Player.
type Player struct {
	opts        PlayerOptions
	name        string
	src         io.ReaderAt
	size        int64
	close       io.Closer
	header      Header
	first, last sched.Time
	wake        chan struct{}
	reset       func()

	mu     sync.Mutex
	clock  clock
	seek   *sched.Time // asked for
	mark   bool        // asked for: go on to the next mark
	ending bool        // Run is at the end
}

// quantum is the shortest wait: events that are due within it come together.
const quantum = 25 * time.Millisecond

// OpenPlayer makes a player of a file. Close it after use.
func OpenPlayer(path string, opts PlayerOptions) (*Player, error) {
	f, err := OpenFile(path)
	if err != nil {
		return nil, err
	}
	p, err := NewPlayer(f, path, opts)
	if err != nil {
		f.Close()
		return nil, err
	}
	p.close = f
	return p, nil
}

// NewPlayer makes a player of a recording that can be read from any place: r
// must be an io.ReaderAt and an io.Seeker, as files and bytes.Reader are. name
// is for errors. r stays open until the player is no longer used.
func NewPlayer(r io.Reader, name string, opts PlayerOptions) (*Player, error) {
	src, at := r.(io.ReaderAt)
	seeker, seeks := r.(io.Seeker)
	if !at || !seeks {
		return nil, fmt.Errorf("playing the recording %s: it is a stream, and playing reads more than once; put it into a file first", name)
	}
	size, err := seeker.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, fmt.Errorf("playing the recording %s: it cannot be read more than once; put it into a file first: %w", name, err)
	}
	return newPlayer(src, size, name, opts)
}

func newPlayer(src io.ReaderAt, size int64, name string, opts PlayerOptions) (*Player, error) {
	p := &Player{opts: opts, name: name, src: src, size: size, wake: make(chan struct{}, 1)}
	r, err := p.open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	p.header = r.Header()
	p.first = p.header.From
	for p.first == 0 {
		e, err := r.Next()
		if err != nil {
			break // Run says it, after what is good
		}
		p.first = e.When()
	}
	p.last = max(p.first, lastInstant(src, size))
	if p.opts.Label == "" {
		p.opts.Label = "RECORDING"
	}
	speed := cleanSpeed(opts.Speed)
	switch {
	case opts.AsFastAsPossible:
		speed = 0
	case speed == 0:
		speed = 1
	}
	p.clock = clock{at: p.first, speed: speed, paused: opts.Paused, wall: time.Now()}
	if opts.Start > 0 {
		p.Seek(p.first.Add(opts.Start))
	}
	return p, nil
}

func (p *Player) open() (*Reader, error) {
	return newReader(io.NewSectionReader(p.src, 0, p.size), p.name)
}

// Close releases the file. Run must have returned.
func (p *Player) Close() error {
	if p.close == nil {
		return nil
	}
	return p.close.Close()
}

// OnReset sets what is called, by the goroutine that runs, before the events
// come again from the beginning: whoever folds them begins anew. Call it
// before Run.
func (p *Player) OnReset(f func()) { p.reset = f }

// ReadUntil gives the events up to and including an instant (0: the end) to
// sink, as fast as it takes them, without the player's clock: see ReadAll.
func (p *Player) ReadUntil(ctx context.Context, until sched.Time, sink func([]sched.Event)) error {
	r, err := p.open()
	if err != nil {
		return err
	}
	defer r.Close()
	own := false
	return ReadAll(ctx, r, until, func(events []sched.Event) {
		for i, e := range events {
			s, ok := e.(sched.SourceInfo)
			if ok {
				events[i] = p.relabel(s)
			}
			if !own && !ok {
				sink([]sched.Event{p.sourceInfo()})
			}
			own = true
		}
		sink(events)
	})
}

// Header is the recording's.
func (p *Player) Header() Header { return p.header }

// Pause stops the clock, or lets it go on.
func (p *Player) Pause(on bool) { p.steer(func() { p.clock.pause(on) }) }

// Paused tells whether the clock stands.
func (p *Player) Paused() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.clock.paused
}

// SetSpeed sets how much faster than the recording's clock; 0: as fast as possible.
func (p *Player) SetSpeed(x float64) { p.steer(func() { p.clock.setSpeed(cleanSpeed(x)) }) }

// Seek goes to an instant. Going back resets whoever folds the events
// (OnReset) and gives them all again up to there, as fast as possible.
func (p *Player) Seek(t sched.Time) {
	p.steer(func() {
		t = min(max(t, p.first), p.last)
		p.seek, p.mark = &t, false
	})
}

// NextMark goes on, as fast as possible, until the next command or Xid has
// been given, or the recording ends.
func (p *Player) NextMark() { p.steer(func() { p.mark = true }) }

// Position tells where the player is, and the recording's first and last instant.
func (p *Player) Position() (at, first, last sched.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seek != nil {
		return *p.seek, p.first, p.last
	}
	return min(max(p.clock.now(), p.first), p.last), p.first, p.last
}

// AtEnd tells whether everything was given and the player waits (Hold).
func (p *Player) AtEnd() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ending && p.seek == nil
}

func (p *Player) steer(f func()) {
	p.mu.Lock()
	f()
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func cleanSpeed(x float64) float64 {
	if math.IsNaN(x) || x < 0 {
		return 0
	}
	return min(x, 1e6)
}

// Run plays until the recording or ctx ends. An error is one of the
// recording: everything before it was played, and a note says so.
func (p *Player) Run(ctx context.Context, sink func([]sched.Event)) error {
	for {
		again, err := p.pass(ctx, sink)
		if !again {
			return err
		}
		if p.reset != nil {
			p.reset()
		}
	}
}

// pass is one reading from the beginning. again: read it again.
func (p *Player) pass(ctx context.Context, sink func([]sched.Event)) (again bool, err error) {
	r, err := p.open()
	if err != nil {
		return false, err
	}
	defer r.Close()
	p.mu.Lock()
	p.clock.set(p.first)
	p.ending = false
	p.mu.Unlock()
	f := &feed{p: p, reader: r, sink: sink, commands: make(map[string]bool)}
	return f.run(ctx)
}

// sourceInfo is the first event of a recording that does not begin with one.
func (p *Player) sourceInfo() sched.SourceInfo {
	return p.relabel(sched.SourceInfo{Time: p.first, Label: p.header.Label, Host: p.header.Host, Tool: p.header.Tool,
		Notes: p.header.Notes, Started: p.header.Started})
}

// relabel is what a recording's own source said of itself, as said by the
// player: a recording must not pass for a live machine, nor a recorded
// simulation for a recorded machine.
func (p *Player) relabel(s sched.SourceInfo) sched.SourceInfo {
	notes := slices.Clone(p.opts.Notes)
	switch s.Label {
	case "", "LIVE", "RECORDING", "DEMO", p.opts.Label:
	default:
		notes = append(notes, "recorded from a source that called itself "+s.Label)
	}
	for _, n := range s.Notes {
		if !slices.Contains(notes, n) {
			notes = append(notes, n)
		}
	}
	s.Label, s.Notes = p.opts.Label, notes
	return s
}

// clock is the recording's clock.
type clock struct {
	at     sched.Time // at wall
	wall   time.Time
	speed  float64
	paused bool
	held   bool // does not run by itself: fast forward, or the end
}

func (c *clock) now() sched.Time {
	if c.paused || c.held || c.speed == 0 {
		return c.at
	}
	return c.at + sched.Time(min(float64(time.Since(c.wall))*c.speed, 1e18))
}

func (c *clock) set(t sched.Time) { c.at, c.wall = t, time.Now() }

func (c *clock) pause(on bool) { c.set(c.now()); c.paused = on }

func (c *clock) setSpeed(x float64) { c.set(c.now()); c.speed = x }

func (c *clock) hold(on bool) { c.set(c.now()); c.held = on }
