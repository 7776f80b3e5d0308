package xid

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"tsgtop/internal/crash"
	"tsgtop/internal/sched"
)

// Options say how to observe.
type Options struct {
	// GPUByPCI gives the index of the GPU at an address such as
	// "0000:01:00.0", GPUByUUID that of the one with a UUID such as
	// "GPU-8d5d…"; sched.Unknown for others. Nil: none is known.
	GPUByPCI  func(pci string) int
	GPUByUUID func(uuid string) int
	// ToTime converts CLOCK_MONOTONIC in ns; nil: by its difference to the
	// wall clock at that moment.
	ToTime func(monotonic uint64) sched.Time

	logPath string // of a test
}

// Probe observes Xids. Its methods can be called from any goroutine.
type Probe struct {
	opts  Options
	log   *log
	noLog error
	trace *tracepoint
	found chan told
	// Of the goroutines that read the witnesses, which run until Close.
	readers sync.Once
	failed  chan error
	lost    atomic.Uint64 // records of the log overwritten, or Xids that nobody took

	mu       sync.Mutex
	noTrace  error // why the tracepoint is not attached; nil: it is
	released bool
	closed   bool
}

var (
	_ sched.Source   = (*Probe)(nil)
	_ sched.Releaser = (*Probe)(nil)
)

// told is an Xid as one witness told it.
type told struct {
	source
	xid sched.Xid
}

// queueLen is how many Xids can wait for the sink: a GPU that fell off its bus
// makes hundreds.
const queueLen = 1024

// retry is how often a driver that was not there is looked for.
const retry = 5 * time.Second

// Open opens what can be had of the two witnesses; an error says why neither.
func Open(o Options) (*Probe, error) {
	p := &Probe{opts: o, found: make(chan told, queueLen), failed: make(chan error, 2)}
	path := o.logPath
	if path == "" {
		path = kernelLog
	}
	p.log, p.noLog = openLog(path)
	p.trace, p.noTrace = loadTracepoint()
	if p.trace != nil {
		p.noTrace = p.trace.attach()
	}
	if p.log == nil && p.trace == nil {
		return nil, fmt.Errorf("observing Xids: neither the driver's tracepoint nor the kernel log can be read: %w; %w", p.noTrace, p.noLog)
	}
	return p, nil
}

// Run sends each Xid to sink until ctx ends or the probe is closed. A driver
// that is loaded later is found within seconds.
func (p *Probe) Run(ctx context.Context, sink func([]sched.Event)) error {
	p.readers.Do(p.start)
	sink([]sched.Event{p.Status()})
	var m merger
	looking := time.NewTicker(retry)
	defer looking.Stop()
	expiring := time.NewTicker(window)
	expiring.Stop() // until something waits
	send := func(xids []sched.Xid) {
		for _, x := range xids {
			sink([]sched.Event{x})
		}
	}
	for {
		select {
		case t := <-p.found:
			if !p.both() {
				send([]sched.Xid{t.xid})
				continue
			}
			send(m.add(t.source, t.xid, time.Now()))
			expiring.Reset(window)
		case now := <-expiring.C:
			send(m.expired(now))
			if len(m.pending[0])+len(m.pending[1]) == 0 {
				expiring.Stop()
			}
		case <-looking.C:
			if p.look() {
				sink([]sched.Event{p.Status()})
			}
		case err := <-p.failed:
			send(m.rest())
			return err
		case <-ctx.Done():
			send(m.rest())
			return nil
		}
	}
}

// start reads both witnesses until they are closed.
func (p *Probe) start() {
	if p.trace != nil {
		crash.Go(func() {
			p.failed <- p.trace.run(p.toTime, func(x sched.Xid) { p.tell(fromTracepoint, x, "") })
		})
	}
	if p.log != nil {
		crash.Go(func() {
			p.failed <- p.log.run(func(x sched.Xid, uuid string) { p.tell(fromLog, x, uuid) }, func() { p.lost.Add(1) })
		})
	}
}

func (p *Probe) tell(s source, x sched.Xid, uuid string) {
	if x.PCI != "" && p.opts.GPUByPCI != nil {
		x.GPU = p.opts.GPUByPCI(x.PCI)
	} else if uuid != "" && p.opts.GPUByUUID != nil {
		x.GPU = p.opts.GPUByUUID(uuid)
	}
	select {
	case p.found <- told{s, x}:
	default:
		p.lost.Add(1)
	}
}

// both tells whether two witnesses are at work, so that each waits for the
// other.
func (p *Probe) both() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log != nil && p.noTrace == nil
}

// look attaches the tracepoint of a driver that has come.
func (p *Probe) look() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trace == nil || p.noTrace == nil || p.released || p.closed {
		return false
	}
	p.noTrace = p.trace.attach()
	return p.noTrace == nil
}

var errReleased = errors.New("let go on request, so that the driver can be unloaded")

// Release lets the driver's module go; the kernel log is still read. See
// sched.Releaser.
func (p *Probe) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.released = true
	if p.trace != nil && p.noTrace == nil {
		_ = p.trace.detach() // closing a link that is open cannot fail
		p.noTrace = errReleased
	}
}

// Resume takes the driver's tracepoint again.
func (p *Probe) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.released = false
	if p.trace != nil && p.noTrace != nil && !p.closed {
		p.noTrace = p.trace.attach()
	}
}

// Status says which witnesses work.
func (p *Probe) Status() sched.ProbeStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := sched.ProbeStatus{Time: sched.Now(), Probe: "xid", GPU: sched.Unknown, State: sched.ProbeOK}
	lost := p.lost.Load()
	if p.trace != nil {
		lost += p.trace.lost()
	}
	switch {
	case p.noTrace == nil && p.log != nil:
		s.Rung, s.What = "raw_tp nvidia_dev_xid + "+kernelLog, "Xid errors, with their processes"
	case p.noTrace == nil:
		s.Rung, s.What, s.State = "raw_tp nvidia_dev_xid", "Xid errors, without their processes", sched.ProbeLimited
		s.Why = p.noLog.Error()
	case p.log != nil:
		s.Rung, s.What = kernelLog, "Xid errors, from the kernel log"
		s.Why = p.noTrace.Error()
		if p.released {
			s.State = sched.ProbeReleased
		}
	default:
		s.State, s.Why = sched.ProbeMissing, p.noTrace.Error()+"; "+p.noLog.Error()
		if p.released {
			s.State = sched.ProbeReleased
		}
	}
	if lost > 0 {
		s.State = sched.ProbeLimited
		s.Why += fmt.Sprintf("; %d times Xids may have been missed: more came than could be taken", lost)
	}
	return s
}

// Close ends Run and frees everything.
func (p *Probe) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	var errs []error
	if p.log != nil {
		errs = append(errs, p.log.file.Close())
	}
	if p.trace != nil {
		errs = append(errs, p.trace.close())
	}
	return errors.Join(errs...)
}

func (p *Probe) toTime(monotonic uint64) sched.Time {
	if p.opts.ToTime != nil {
		return p.opts.ToTime(monotonic)
	}
	var wall, mono unix.Timespec
	// Both clocks exist on every Linux; the calls cannot fail.
	_ = unix.ClockGettime(unix.CLOCK_REALTIME, &wall)
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono)
	return sched.Time(int64(monotonic) + wall.Nano() - mono.Nano())
}
