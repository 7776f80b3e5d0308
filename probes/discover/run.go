//go:build linux

package discover

import (
	"context"
	"errors"
	"slices"
	"time"

	"tsgtop/internal/rmdev"
	"tsgtop/internal/sched"
)

// Run sends what exists to sink until ctx ends: the probe's status, the GPUs,
// the inventory of the machine, and from then on inventories of what the calls
// given to Observe have touched, of clients that ended, and now and then of
// everything. It returns nil when ctx ends, and an error where there is no
// driver to ask. Nothing is sent while the devices are released.
func (d *Discoverer) Run(ctx context.Context, sink func([]sched.Event)) error {
	d.news.mu.Lock()
	d.news.init()
	wake := d.news.wake
	d.news.full = true
	d.news.mu.Unlock()
	r := &runner{d: d, sink: sink}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-wake:
		}
		wait, err := r.step(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, ErrReleased):
			r.status()
			wait = time.Hour // Resume wakes us
		case errors.Is(err, rmdev.ErrNoDriver), errors.Is(err, rmdev.ErrNotRoot):
			r.status()
			return err
		case err != nil:
			r.failed(err)
			wait = d.opts.Recheck
		}
		timer.Reset(wait)
	}
}

// runner is the state of Run.
type runner struct {
	d       *Discoverer
	sink    func([]sched.Event)
	last    sched.ProbeStatus
	gpus    bool          // have been sent
	fullAt  time.Time     // when everything was last looked at
	recheck time.Time     // when all clients were last asked whether they live
	patch   time.Duration // after a scan that left objects out: from it to the next
}

// patchFirst is the pause after the first scan that left objects out, because its
// time was up on a busy machine; each further one doubles it, up to the Period.
const patchFirst = 100 * time.Millisecond

// step does what is due and says when to come again.
func (r *runner) step(ctx context.Context) (time.Duration, error) {
	d := r.d
	full, recheck := d.news.takeFlags()
	now := time.Now()
	if full || now.Sub(r.fullAt) >= d.opts.Period || r.patch > 0 && now.Sub(r.fullAt) >= r.patch {
		inv, err := r.scan(func() (sched.Inventory, error) {
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.full(ctx, false)
		})
		if err != nil {
			d.news.restoreFull()
			return 0, err
		}
		if !r.gpus {
			gpus, err := d.GPUs(ctx)
			if err != nil {
				return 0, err
			}
			events := make([]sched.Event, len(gpus))
			for i, g := range gpus {
				events[i] = g
			}
			r.sink(events)
			r.gpus = true
		}
		r.status()
		r.sink([]sched.Event{inv})
		r.fullAt, r.recheck = time.Now(), time.Now()
		switch {
		case !inv.Partial:
			r.patch = 0
		case r.patch == 0:
			r.patch = patchFirst
		default:
			r.patch = min(2*r.patch, d.opts.Period)
		}
		return d.opts.Delay, nil
	}
	if recheck || now.Sub(r.recheck) >= d.opts.Recheck {
		r.recheck = now
		gone, err := d.ended(ctx)
		if err != nil {
			return 0, err
		}
		if len(gone) > 0 {
			t := d.opts.Now()
			r.sink([]sched.Event{sched.Inventory{Start: t, End: t, Gone: gone}})
		}
	}
	hints, pids, next := d.news.due(now, d.opts.Delay)
	if len(hints) > 0 {
		inv, err := r.scan(func() (sched.Inventory, error) {
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.some(ctx, hints, pids)
		})
		if err != nil {
			d.news.restoreFull()
			return 0, err
		}
		r.sink([]sched.Event{inv})
		return min(next, d.opts.Recheck), nil
	}
	// With nothing else to do, a piece of what a wrap can hide. Once that is
	// through, all is looked at again and the inventory is complete.
	walked, whole, hurry, err := d.walkBehind(ctx)
	switch {
	case err != nil:
		return 0, err
	case whole:
		d.news.restoreFull()
		return 0, nil
	case hurry: // some 15 seconds and a quarter of a core
		next = min(next, d.opts.Behind/10)
	case walked:
		next = min(next, d.opts.Behind)
	}
	if r.patch > 0 {
		next = min(next, max(0, r.patch-time.Since(r.fullAt)))
	}
	return min(next, d.opts.Recheck), nil
}

// scan runs one scan between two stamps.
func (r *runner) scan(f func() (sched.Inventory, error)) (sched.Inventory, error) {
	r.d.news.begin(r.d.opts.Now())
	inv, err := f()
	r.d.news.end(r.d.opts.Now())
	return inv, err
}

// status sends the probe's status where it has changed.
func (r *runner) status() {
	s := r.d.Status()
	if s.State != r.last.State || s.Why != r.last.Why {
		r.last = s
		r.sink([]sched.Event{s})
	}
}

// failed says that a scan failed for a reason that may pass.
func (r *runner) failed(err error) {
	s := sched.ProbeStatus{Time: r.d.opts.Now(), Probe: "discover", GPU: sched.Unknown, State: sched.ProbeLimited, Why: err.Error()}
	if s.Why != r.last.Why {
		r.last = s
		r.sink([]sched.Event{s})
	}
}

// Pieces of the walk behind the wrap: of about 3 ms each, 100 ms apart, so
// that the million questions take about two minutes and 3% of a core. Each takes
// RM's API lock for a moment; applications must not feel it.
const behindPiece = 1024

// walkBehind walks a piece of the rest of the ring. walked is false where there
// is none left, whole says that this was the last, and hurry that a process is
// known to have older clients.
func (d *Discoverer) walkBehind(ctx context.Context) (walked, whole, hurry bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.open(); err != nil || d.ring.whole {
		return false, false, false, err
	}
	err = d.lookBehind(ctx, behindPiece)
	return true, d.ring.whole, d.clientless > 0, err
}

// ended asks all known clients whether they live and returns those that do not.
func (d *Discoverer) ended(ctx context.Context) ([]sched.Handle, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.open(); err != nil {
		return nil, err
	}
	var gone []sched.Handle
	for _, c := range slices.Clone(d.ring.known) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		live, err := alive(d.dev, c)
		if err != nil {
			return nil, err
		}
		if !live {
			gone = append(gone, sched.Handle(c))
			d.forget(c)
		}
	}
	return gone, nil
}
