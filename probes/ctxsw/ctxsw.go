//go:build linux

// Package ctxsw reads the GPUs' own context-switch trace (FECS): which context
// was on the graphics/compute engine from when to when, by the GPU's clock.
//
// It binds once per GPU and keeps the binding for the whole run. One ticker
// makes the driver copy what the hardware of all GPUs holds. A record comes
// only when contexts switch: a context that is alone makes none.
package ctxsw

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tsgtop/internal/rm"
	"tsgtop/internal/rmdev"
	"tsgtop/internal/sched"
)

const recordBytes = rm.FECSRecordSize

// Options are knobs; the zero value is right for a live machine.
type Options struct {
	Flush      time.Duration // between two flushes while something switches; 5 ms
	Idle       time.Duration // and while nothing does; 33 ms
	Tie        time.Duration // between two comparisons of the clocks; 1 s
	KeepNewest bool          // the driver's other policy for a full buffer, see buffer
	GPUs       []int         // only these, as nvidia-smi counts them; nil: all
	Clocks     Clocks        // the machine's
	Root       func() bool   // whether we have CAP_SYS_ADMIN, as RM asks for it

	sizes []uint32 // of the buffer, for tests
}

func (o *Options) defaults() {
	for _, d := range []struct {
		value *time.Duration
		def   time.Duration
	}{{&o.Flush, 5 * time.Millisecond}, {&o.Idle, 33 * time.Millisecond}, {&o.Tie, time.Second}} {
		if *d.value <= 0 {
			*d.value = d.def
		}
	}
	o.Idle = max(o.Idle, o.Flush)
	if o.Clocks == nil {
		o.Clocks = machineClocks{}
	}
	if o.Root == nil {
		o.Root = isRoot
	}
	if o.sizes == nil {
		o.sizes = sizes
	}
}

// Probe reads the traces of all GPUs.
type Probe struct {
	rm   *rmdev.RM
	opts Options
	wake chan struct{}

	flush     atomic.Int64 // ns between flushes while something switches
	overtaken atomic.Uint64
	gaps      atomic.Uint64
	malformed atomic.Uint64

	mu       sync.Mutex // held while the devices are used
	traces   []*trace
	listed   bool
	released bool
	lost     sched.Loss // as it was last sent
}

// New makes a Probe; it opens nothing. All of a program's Devices should come
// from the same RM.
func New(r *rmdev.RM, opts Options) *Probe {
	opts.defaults()
	p := &Probe{rm: r, opts: opts, wake: make(chan struct{}, 1)}
	p.flush.Store(int64(opts.Flush))
	return p
}

// The bounds of SetFlush.
const (
	MinFlush = time.Millisecond
	MaxFlush = 100 * time.Millisecond
)

// SetFlush sets the time between two flushes while something switches, within
// MinFlush and MaxFlush.
func (p *Probe) SetFlush(d time.Duration) {
	p.flush.Store(int64(min(max(d, MinFlush), MaxFlush)))
	p.poke()
}

func (p *Probe) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Loss is what was seen to be missing since the start: Trace, Overtaken and
// Malformed; the other counters are other probes'.
func (p *Probe) Loss() sched.Loss {
	return sched.Loss{
		Time: sched.Time(p.opts.Clocks.Realtime()), Trace: p.gaps.Load(), Overtaken: p.overtaken.Load(), Malformed: p.malformed.Load(),
	}
}

// Release lets all devices go: every descriptor is closed when it returns, so
// that the driver can be unloaded and a GPU be reset. Resume takes them again.
func (p *Probe) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.released, p.listed = true, false
	for _, t := range p.traces {
		t.stop()
		t.say(sched.ProbeReleased, "the devices were let go of on request", "")
	}
	p.poke()
}

// Resume takes the devices again. The first record after it says that records
// are missing before it.
func (p *Probe) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.released = false
	p.poke()
}

// Status says how well the trace of each GPU works.
func (p *Probe) Status() []sched.ProbeStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]sched.ProbeStatus, 0, len(p.traces))
	for _, t := range p.traces {
		s := t.status
		s.Time = sched.Time(p.opts.Clocks.Realtime())
		out = append(out, s)
	}
	return out
}

// list makes the traces of the GPUs that there are. p.mu is held.
func (p *Probe) list() error {
	dev, err := p.rm.Open()
	if err != nil {
		return err
	}
	defer dev.Close()
	gpus, err := dev.GPUs()
	if err != nil {
		return err
	}
	had := p.traces
	p.traces = nil
	for _, g := range gpus {
		if p.opts.GPUs != nil && !slices.Contains(p.opts.GPUs, g.Index) {
			continue
		}
		t := &trace{}
		if i := slices.IndexFunc(had, func(t *trace) bool { return t.gpu.ID == g.ID }); i >= 0 {
			t = had[i] // with its counters, and what was said
		}
		t.gpu = g
		p.traces = append(p.traces, t)
	}
	p.listed = true
	return nil
}

// idleAfter is how long nothing switches before flushes become rare.
const idleAfter = 250 * time.Millisecond

// listAgain is how soon the GPUs are listed again where that failed.
const listAgain = 5 * time.Second

// Run sends to sink, until ctx ends, the traces' records in batches, the ties
// of the GPUs' clocks, and the probe's status for each GPU and its Loss as they
// change. It
// returns nil when ctx ends, with every descriptor closed, and an error where
// there is no driver to ask.
func (p *Probe) Run(ctx context.Context, sink func([]sched.Event)) error {
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, t := range p.traces {
			t.stop()
		}
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var events []sched.Event
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-p.wake:
		}
		began := time.Now()
		var pause time.Duration
		var err error
		events, pause, err = p.tick(began, events[:0])
		if len(events) > 0 {
			sink(events)
		}
		if err != nil {
			return err
		}
		// The pace is kept whatever the tick took, but RM's locks get a rest.
		timer.Reset(max(pause-time.Since(began), pause/4))
	}
}

// tick does what is due, appends what came of it to events, and says when to
// come again.
func (p *Probe) tick(now time.Time, events []sched.Event) ([]sched.Event, time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.released {
		return p.say(events), time.Hour, nil // Resume wakes us
	}
	if !p.listed {
		if err := p.list(); err != nil {
			status := sched.ProbeStatus{
				Time: sched.Time(p.opts.Clocks.Realtime()), Probe: "ctxsw", GPU: sched.Unknown, State: sched.ProbeMissing, What: whatItGives, Why: err.Error(),
			}
			if errors.Is(err, rmdev.ErrNoDriver) || errors.Is(err, rmdev.ErrNotRoot) {
				return append(events, status), 0, fmt.Errorf("read the context-switch trace: %w", err)
			}
			return append(events, status), listAgain, nil
		}
	}
	for _, t := range p.traces {
		if t.dev == nil && !now.Before(t.retryAt) {
			t.start(p, now)
		}
	}
	flushed := p.flushAll()
	pause, bound := p.opts.Idle, false
	for _, t := range p.traces {
		if t.dev == nil {
			continue
		}
		bound = true
		events = p.read(t, flushed, now, events)
		if now.Sub(t.active) < idleAfter {
			pause = min(pause, time.Duration(p.flush.Load()))
		}
	}
	if !bound {
		pause = time.Second
	}
	return p.say(p.loss(events)), pause, nil
}

// loss appends the counters of what is missing where they have changed.
func (p *Probe) loss(events []sched.Event) []sched.Event {
	now := p.Loss()
	now.Time = p.lost.Time
	if now == p.lost {
		return events
	}
	p.lost = p.Loss()
	return append(events, p.lost)
}

// flushAll makes the driver copy what the hardware holds, through the first
// bound buffer that takes it: one flush is for all GPUs. It returns the wall
// time just before. The driver does the same 30 times a second by itself; that
// is not relied on, since another listener's failure can end it.
func (p *Probe) flushAll() int64 {
	at := p.opts.Clocks.Realtime()
	for _, t := range p.traces {
		if t.dev == nil {
			continue
		}
		if err := t.buf.flush(); err != nil {
			t.fail(err, time.Now())
			continue
		}
		return at
	}
	return at
}

// read appends what one trace has to say.
func (p *Probe) read(t *trace, flushed int64, now time.Time, events []sched.Event) []sched.Event {
	gaps, malformed := t.dec.gaps, t.dec.malformed
	batch, overtaken, ok, err := t.read(flushed, now)
	if err != nil {
		t.fail(err, now)
		return events
	}
	p.overtaken.Add(overtaken)
	p.gaps.Add(t.dec.gaps - gaps)
	p.malformed.Add(t.dec.malformed - malformed)
	if ok {
		events = append(events, batch)
	}
	if now.Sub(t.tieAt) >= p.opts.Tie {
		t.tieAt = now
		tie, err := readTie(t.dev, t.attached, p.opts.Clocks)
		if err != nil {
			t.fail(err, now)
			return events
		}
		t.clock.tie(tie.GPUTime, int64(tie.Time), tie.ErrorNS)
		events = append(events, tie)
	}
	return events
}

// say appends the statuses that have changed.
func (p *Probe) say(events []sched.Event) []sched.Event {
	for _, t := range p.traces {
		if t.status != t.said {
			t.said = t.status
			s := t.status
			s.Time = sched.Time(p.opts.Clocks.Realtime())
			events = append(events, s)
		}
	}
	return events
}
