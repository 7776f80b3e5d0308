//go:build linux

// Package discover finds the TSGs and channels that exist already: it walks the
// machine's RM clients, learns through borrowed descriptors whose they are and
// what they have, and asks again about what the stream of calls touches.
//
// It only reads. No question that it asks leaves a line in the kernel log
// (seen on an H200, driver 580.159.04): a client that may not exist is asked
// about by the access-rights control on our own client alone, and everything
// else goes to clients that have just answered.
package discover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"tsgtop/internal/rm"
	"tsgtop/internal/rmdev"
	"tsgtop/internal/sched"
)

// Options are knobs; the zero value is right for a live machine.
type Options struct {
	Delay   time.Duration // from news of the stream to looking again; 25 ms
	Recheck time.Duration // how often known clients are asked whether they live; 1 s
	Period  time.Duration // how often everything is looked at again; 30 s
	MissRun int           // so many handles in a row that are no object end a walk; 512
	Objects int           // so many handles are asked about at most in one client; 65,536
	Behind  time.Duration // between two pieces of the walk of what a wrap can hide; 100 ms
	Budget  time.Duration // longest walk of one client while its file is borrowed; 20 ms
	Now     func() sched.Time
}

func (o *Options) defaults() {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&o.Delay, 25*time.Millisecond)
	set(&o.Recheck, time.Second)
	set(&o.Period, 30*time.Second)
	set(&o.Behind, 100*time.Millisecond)
	set(&o.Budget, 20*time.Millisecond)
	if o.MissRun == 0 {
		o.MissRun = 512
	}
	if o.Objects == 0 {
		o.Objects = 65536
	}
	if o.Now == nil {
		o.Now = sched.Now
	}
}

// Discoverer finds what exists. Its methods can be called from any goroutine;
// one scan runs at a time.
type Discoverer struct {
	rm   *rmdev.RM
	opts Options

	mu         sync.Mutex // one scan at a time; guards what follows
	dev        *rmdev.Device
	gpus       []gpu
	layout     rm.LayoutInfo
	ring       ring
	owners     map[uint32]holder // of clients, as last seen
	seen       map[fileKey]bool  // files of the last full look
	tried      map[uint32]bool   // clients that are of none of them
	released   bool
	refused    string               // why a process could not be looked into, in the last scan
	counted    map[uint32][]counted // TSGs with switch counters, by client
	clientless int                  // processes without a client, in the last full scan of a part of the ring

	news           news
	counterLookers lookers // at the switch counters
}

// gpu is a GPU with our own objects on it.
type gpu struct {
	rmdev.GPU
	attached *rmdev.AttachedGPU // nil where it could not be attached
	why      string
	mig      *bool
	runlists []sched.Runlist
}

// New makes a Discoverer. All of a program's Devices should come from the same
// RM: their own clients are then left out of what is found.
func New(r *rmdev.RM, opts Options) *Discoverer {
	opts.defaults()
	return &Discoverer{rm: r, opts: opts, owners: map[uint32]holder{}, seen: map[fileKey]bool{}, tried: map[uint32]bool{}, counted: map[uint32][]counted{}}
}

// ErrReleased: the devices were let go of on request.
var ErrReleased = errors.New("released on request")

// open opens the driver and attaches the GPUs, once. d.mu is held.
func (d *Discoverer) open() error {
	if d.released {
		return ErrReleased
	}
	if d.dev != nil {
		return nil
	}
	layout, err := d.rm.Layout()
	if err != nil && layout.Branch == 0 {
		// An older or unreadable version: the oldest known ABI, and nothing newer.
		layout = rm.LayoutInfo{}
	}
	dev, err := d.rm.Open()
	if err != nil {
		return err
	}
	list, err := dev.GPUs()
	if err != nil {
		dev.Close()
		return err
	}
	d.dev, d.layout, d.gpus = dev, layout, nil
	for _, g := range list {
		d.gpus = append(d.gpus, d.attach(g))
	}
	return nil
}

// Close lets go of the driver for good.
func (d *Discoverer) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.released = true
	return d.close()
}

func (d *Discoverer) close() error {
	if d.dev == nil {
		return nil
	}
	err := d.dev.Close()
	d.dev, d.gpus, d.ring = nil, nil, ring{}
	return err
}

// Release closes every descriptor, so that the driver can be unloaded and a GPU
// be reset. Scans fail with ErrReleased until Resume.
func (d *Discoverer) Release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.released = true
	d.close()
}

// Resume takes the devices again, at the next scan.
func (d *Discoverer) Resume() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.released = false
	clear(d.owners)
	clear(d.seen)
	clear(d.tried)
	d.news.all()
}

// Full looks at all clients of the machine. The first scan walks down from our
// own client's handle; where a process that holds the driver open has no client
// there, the rest of the ring of handles is walked too, which takes seconds.
// The inventory is Complete once the whole ring has been walked, in this scan
// or an earlier one. Processes that end meanwhile are no error.
func (d *Discoverer) Full(ctx context.Context) (sched.Inventory, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.full(ctx, true)
}

// Client looks at one client again. hints are handles of its objects that the
// stream has told; they are found wherever they are.
func (d *Discoverer) Client(ctx context.Context, client sched.Handle, hints []sched.Handle) (sched.Inventory, error) {
	return d.Clients(ctx, map[sched.Handle][]sched.Handle{client: hints})
}

// Clients looks at some clients again; see Client. Those that do not exist are
// in Gone.
func (d *Discoverer) Clients(ctx context.Context, hints map[sched.Handle][]sched.Handle) (sched.Inventory, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.some(ctx, hints, nil)
}

// initPIDNamespace is the inode of the machine's own pid namespace; it is the
// same on every kernel (PROC_PID_INIT_INO).
const initPIDNamespace = "pid:[4026531836]"

// foreignNamespace says why pids of our /proc are not those of the kernel; "" where they are.
func (d *Discoverer) foreignNamespace() string {
	link, err := d.rm.System().ReadLink("/proc/self/ns/pid")
	switch {
	case err != nil:
		return fmt.Sprintf("which pid namespace this is could not be read (%v), so no process is named", err)
	case link != initPIDNamespace:
		return "tsgtop runs in a pid namespace of its own, where pids are not those of the machine, so no process is named; run it on the host (docker: --pid=host)"
	}
	return ""
}

// Status says how well the probe works, without scanning.
func (d *Discoverer) Status() sched.ProbeStatus {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := sched.ProbeStatus{
		Time: d.opts.Now(), Probe: "discover", GPU: sched.Unknown, State: sched.ProbeOK,
		What: "TSGs and channels that existed before, through borrowed descriptors; read-only",
	}
	if d.released {
		s.State, s.Why = sched.ProbeReleased, "the devices were let go of on request"
		return s
	}
	if err := d.open(); err != nil {
		s.State, s.Why = sched.ProbeMissing, err.Error() // which says what would help
		return s
	}
	var why []string
	if w := d.foreignNamespace(); w != "" {
		why = append(why, w)
	} else if d.rm.YamaForbids() {
		why = append(why, "the kernel forbids taking other processes' descriptors (kernel.yama.ptrace_scope is 3): TSGs are known only from calls seen since the start")
		s.Help = "boot with kernel.yama.ptrace_scope=1"
	} else if d.refused != "" {
		why = append(why, d.refused)
		if os.Geteuid() != 0 { // else the reason says what would help
			s.Help = "run it with sudo"
		}
	}
	for _, g := range d.gpus {
		if g.attached == nil {
			why = append(why, g.why)
		}
	}
	if len(why) > 0 {
		s.State, s.Why = sched.ProbeLimited, strings.Join(why, "; ")
	}
	return s
}
