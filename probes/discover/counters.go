//go:build linux

package discover

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"tsgtop/internal/rm"
	"tsgtop/internal/rmdev"
	"tsgtop/internal/sched"
)

// counted is a TSG of which the GSP counts the context switches.
type counted struct {
	tsg, device, subdevice uint32 // subdevice 0: to be asked for
}

// How often the switch counters are read while somebody looks. Each reading of
// a TSG is a call to the GSP, for which RM keeps a core busy: where there are
// many, they are read so seldom that this takes a fortieth of a core.
const (
	countersEvery = time.Second
	countersShare = 40
	countersSoon  = 100 * time.Millisecond // while no TSG is known yet
)

// lookers count who looks at the switch counters.
type lookers struct {
	mu   sync.Mutex
	n    int
	wake chan struct{}
}

func (l *lookers) init() chan struct{} {
	if l.wake == nil {
		l.wake = make(chan struct{}, 1)
	}
	return l.wake
}

func (l *lookers) change(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !on {
		l.n = max(0, l.n-1)
		return
	}
	l.n++
	select {
	case l.init() <- struct{}{}:
	default:
	}
}

func (l *lookers) any() (bool, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n > 0, l.init()
}

// LookCounters implements sched.CounterLooker.
func (d *Discoverer) LookCounters(on bool) { d.counterLookers.change(on) }

// RunCounters sends readings of the switch counters of all known TSGs of
// graphics engines to sink, while somebody looks, until ctx ends.
func (d *Discoverer) RunCounters(ctx context.Context, sink func([]sched.Event)) error {
	for {
		looked, wake := d.counterLookers.any()
		if !looked {
			select {
			case <-ctx.Done():
				return nil
			case <-wake:
			}
			continue
		}
		events, took, err := d.readCounters(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if len(events) > 0 {
			sink(events)
		}
		pause := max(countersEvery, countersShare*took)
		if err == nil && len(events) == 0 {
			pause = countersSoon
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// readCounters reads them once: one borrowed file after the other, each held
// for some milliseconds at most. Nothing is reset.
func (d *Discoverer) readCounters(ctx context.Context) ([]sched.Event, time.Duration, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	begin := time.Now()
	if err := d.open(); err != nil {
		return nil, 0, err
	}
	of := map[holder][]uint32{}
	for c := range d.counted {
		if h, ok := d.owners[c]; ok {
			of[h] = append(of[h], c)
		} else {
			delete(d.counted, c)
		}
	}
	files := make([]holder, 0, len(of))
	for h := range of {
		files = append(files, h)
	}
	slices.SortFunc(files, func(a, b holder) int { return a.pid<<16 + a.fd - b.pid<<16 - b.fd })
	s := d.newScan()
	var out []sched.Event
	for _, h := range files {
		if err := ctx.Err(); err != nil {
			return out, time.Since(begin), err
		}
		slices.Sort(of[h])
		out = s.countersOf(out, h, of[h])
	}
	return out, time.Since(begin), nil
}

// countersOf reads the counters of one file's clients.
func (s *scan) countersOf(out []sched.Event, h holder, clients []uint32) []sched.Event {
	d := s.d
	b, err := d.rm.Borrow(h.pid, h.fd)
	if err != nil {
		if errors.Is(err, rmdev.ErrGone) {
			return out // what else holds the file, a scan will find
		}
		for _, c := range clients {
			for _, t := range d.counted[c] {
				out = append(out, sched.SwitchCounters{Time: d.opts.Now(), TSG: t.object(c), Why: err.Error()})
			}
		}
		return out
	}
	defer func() { b.Close() }()
	held := time.Now()
	for _, c := range clients {
		list := d.counted[c]
		for i := range list {
			if time.Since(held) > d.opts.Budget {
				again, err := d.rm.Borrow(h.pid, h.fd)
				if err != nil {
					return out
				}
				b.Close()
				b, held = again, time.Now()
			}
			if !s.lives(c) {
				break
			}
			if e, ok := d.counters(b, c, &list[i]); ok {
				out = append(out, e)
			}
		}
	}
	return out
}

func (t *counted) object(client uint32) sched.Object {
	return sched.Object{Client: sched.Handle(client), Handle: sched.Handle(t.tsg)}
}

// counters reads those of one TSG; ok is false where it is not there any more.
func (d *Discoverer) counters(b *rmdev.Borrowed, client uint32, t *counted) (e sched.SwitchCounters, ok bool) {
	e.TSG = t.object(client)
	if t.subdevice == 0 {
		sub, err := b.Subdevice(client, t.device)
		if err != nil || sub == 0 {
			e.Time, e.Why = d.opts.Now(), "its client has no subdevice on which RM could be asked"
			return e, err == nil
		}
		t.subdevice = sub
	}
	at := d.opts.Now()
	p, status, err := b.SwitchCounters(client, t.subdevice, t.tsg)
	if err != nil || vanished(status) {
		return e, false
	}
	e.Time = at.Add(d.opts.Now().Sub(at) / 2)
	if e.Status = status; status == rm.StatusOK {
		e.Save, e.Restore, e.WFI, e.CTA, e.CILP, e.GFXP = p.Save, p.Restore, p.WFI, p.CTA, p.CILP, p.GFXP
	}
	return e, true
}

// mayCount tells whether the GSP can have counters of a TSG: for all that is
// known it is on a graphics engine. RM refuses the others quietly.
func (s *scan) mayCount(t *sched.FoundTSG) bool {
	if t.Engine != nil {
		return rm.IsGraphicsEngine(*t.Engine)
	}
	engines := s.engines(t.GPU, t.Runlist)
	return len(engines) == 0 || slices.ContainsFunc(engines, rm.IsGraphicsEngine)
}

// noteCounted remembers which of a client's TSGs have switch counters.
func (s *scan) noteCounted(client uint32, tsgs []sched.FoundTSG, found objects) {
	var list []counted
	for i := range tsgs {
		t := &tsgs[i]
		if !s.mayCount(t) {
			continue
		}
		c := counted{tsg: uint32(t.Handle), device: uint32(t.Device)}
		for _, sub := range found.subdevices {
			if sub.parent == c.device {
				c.subdevice = sub.handle
				break
			}
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		delete(s.d.counted, client)
		return
	}
	s.d.counted[client] = list
}
