// Package nvml asks NVIDIA's management library what the GPUs are called, how
// busy, hot and full they are, and how much memory each process has.
//
// It does so in a child process of the own binary. The library is loaded from
// the machine at run time and talks to a driver that may be of another
// version, hung or half gone: whatever becomes of the child, the parent says
// so in one sentence and goes on.
package nvml

import (
	"context"
	"fmt"
	"sync"
	"time"

	"tsgtop/internal/sched"
)

// Options say what is known of the machine already.
type Options struct {
	// GPUs are the machine's, as the driver itself counts them. NVML's are
	// matched with them by PCI address or UUID; one that is not among them is
	// left out. Empty: NVML's own count stands.
	GPUs []sched.GPU
	// Current, where it is set, gives the same, as it is now.
	Current func() []sched.GPU
}

// Probe runs the child. It implements sched.Source and sched.Releaser.
type Probe struct {
	opts    Options
	command []string // what to run as the child
	env     []string // for the child, beyond our own
	limits  limits
	builtIn bool

	mu       sync.Mutex
	released bool
	changed  chan struct{} // closed, and made anew, when released changes
	stop     context.CancelFunc
	idle     chan struct{} // closed while no child holds the devices
}

// limits are the times that the parent waits.
type limits struct {
	start  time.Duration // from one line to the next until the first device: the driver may have to wake GPUs
	hang   time.Duration // from one line to the next then
	die    time.Duration // from the kill to the end
	first  time.Duration // from a child's end to the next child
	most   time.Duration // the same, after doubling
	steady time.Duration // a child that lived so long was a good one
	failed time.Duration // from "NVML cannot be used" to the next try
}

var defaultLimits = limits{
	start: 30 * time.Second, hang: 5 * time.Second, die: 2 * time.Second,
	first: time.Second, most: time.Minute, steady: time.Minute, failed: time.Minute,
}

// New makes a probe; nothing is started before Run.
func New(o Options) *Probe {
	idle := make(chan struct{})
	close(idle)
	return &Probe{opts: o, command: []string{"/proc/self/exe", childArg}, limits: defaultLimits, builtIn: builtIn,
		changed: make(chan struct{}), idle: idle}
}

// Release ends the child, which holds the driver's devices open, and starts
// none until Resume. It waits for the child's end, or for a few seconds where
// it does not end because the driver does not let it.
func (p *Probe) Release() {
	p.mu.Lock()
	if !p.released {
		p.released = true
		close(p.changed)
		p.changed = make(chan struct{})
	}
	if p.stop != nil {
		p.stop()
	}
	idle := p.idle
	p.mu.Unlock()
	select {
	case <-idle:
	case <-time.After(p.limits.die + time.Second):
	}
}

// Resume starts the child again.
func (p *Probe) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.released {
		p.released = false
		close(p.changed)
		p.changed = make(chan struct{})
	}
}

// Run keeps a child running until ctx ends, and sends what it says: GPU,
// GPUSample, and a ProbeStatus whenever that changes. It gives no error: what
// is wrong with NVML is a ProbeStatus.
func (p *Probe) Run(ctx context.Context, sink func([]sched.Event)) error {
	r := &running{probe: p, sink: sink}
	if !p.builtIn {
		r.say(status(sched.ProbeMissing, failure{Reason: failNotBuiltIn}))
		<-ctx.Done()
		return nil
	}
	wait := p.limits.first
	for ctx.Err() == nil {
		childCtx, changed, ok := p.begin(ctx)
		if !ok {
			r.say(sched.ProbeStatus{State: sched.ProbeReleased, What: gives, Why: "let go on request"})
			sleep(ctx, changed, 0)
			continue
		}
		began := time.Now()
		err := r.child(childCtx)
		released := childCtx.Err() != nil
		p.end()
		if released { // or at the end of Run
			continue
		}
		if time.Since(began) >= p.limits.steady {
			wait = p.limits.first
		}
		pause := wait
		if f, ok := err.(failure); ok {
			r.say(status(sched.ProbeMissing, f))
			pause = p.limits.failed
		} else {
			r.say(sched.ProbeStatus{State: sched.ProbeLimited, What: gives, Why: fmt.Sprintf("NVML's process %v; it is started again", err)})
			wait = min(2*wait, p.limits.most)
		}
		sleep(ctx, changed, pause)
	}
	return nil
}

// begin takes note of a child's start; ok is false while the probe is released.
func (p *Probe) begin(ctx context.Context) (child context.Context, changed <-chan struct{}, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.released {
		return nil, p.changed, false
	}
	child, p.stop = context.WithCancel(ctx)
	p.idle = make(chan struct{})
	return child, p.changed, true
}

func (p *Probe) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stop()
	p.stop = nil
	close(p.idle)
}

// sleep waits for d (0: without end), for ctx, or for a change.
func sleep(ctx context.Context, changed <-chan struct{}, d time.Duration) {
	var due <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		due = t.C
	}
	select {
	case <-ctx.Done():
	case <-changed:
	case <-due:
	}
}

func status(state sched.ProbeState, f failure) sched.ProbeStatus {
	why, help := f.sentence()
	return sched.ProbeStatus{State: state, What: gives, Why: why, Help: help}
}

func (p *Probe) known() []sched.GPU {
	if p.opts.Current != nil {
		return p.opts.Current()
	}
	return p.opts.GPUs
}

// Error makes a failure an error, for the way from the child to Run.
func (f failure) Error() string {
	why, _ := f.sentence()
	return why
}
