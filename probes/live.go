//go:build linux

// Package probes observes a machine: it runs the probes below it side by side
// and gives their events as one stream.
package probes

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tsgtop/internal/crash"
	"tsgtop/internal/rmdev"
	"tsgtop/internal/sched"
	"tsgtop/probes/ctxsw"
	"tsgtop/probes/discover"
	"tsgtop/probes/nvml"
	"tsgtop/probes/process"
	"tsgtop/probes/rmcalls"
	"tsgtop/probes/xid"
)

// Errors that say that there is nothing to observe with.
var (
	ErrNoDriver  = rmdev.ErrNoDriver
	ErrPrivilege = errors.New("observing this machine needs root: run it with sudo; recordings need none (tsgtop demo, tsgtop replay FILE)")
)

// Options say what to observe, and how.
type Options struct {
	Args bool         // processes' arguments too: they can hold secrets
	Tool string       // version of tsgtop, as recordings show it
	Rung rmcalls.Rung // "" or rmcalls.Auto: the best that works
	NVML bool

	system rmdev.System // of a test; nil: the machine
	procs  *process.Watcher
}

// Live is this machine as a source of events. It holds the driver's devices
// open until Close or Release.
type Live struct {
	opts  Options
	rm    *rmdev.RM
	calls *rmcalls.Probe // nil where no rung works
	why   error          // then: why
	find  *discover.Discoverer
	trace *ctxsw.Probe
	nvml  *nvml.Probe // set in Run
	procs *process.Watcher
	// foreign says why the pids of the kernel and of the driver's trace are not
	// those of our /proc: then no process is looked up there. Empty: they are.
	foreign string
	ready   chan struct{} // see Ready
	traced  chan struct{} // closed once the trace probe has said how it stands
	tracing sync.Once

	mu      sync.Mutex // one event at a time goes to the sink
	sink    func([]sched.Event)
	merged  lossMerger
	met     map[int]bool    // pids that were described
	missing map[string]bool // probes that said themselves that they cannot work
}

// NewLive attaches the probes. What does not work is a ProbeStatus in the
// stream; an error means that nothing can be observed: ErrNoDriver,
// ErrPrivilege.
func NewLive(o Options) (*Live, error) {
	r := rmdev.New(o.system)
	if _, err := r.Driver(); err != nil {
		return nil, err
	}
	if os.Geteuid() != 0 {
		return nil, ErrPrivilege
	}
	l := &Live{opts: o, rm: r, ready: make(chan struct{}), traced: make(chan struct{}), met: map[int]bool{}, missing: map[string]bool{}}
	if l.procs = o.procs; l.procs == nil {
		l.procs = process.New(process.Options{Args: o.Args})
	}
	_, l.foreign = l.procs.SamePIDNamespaceAsInit()
	// The stream first: what the scan then finds can be laid beside it.
	l.calls, l.why = rmcalls.Open(rmcalls.Options{Rung: o.Rung, SkipSelf: l.foreign == ""})
	l.find = discover.New(r, discover.Options{})
	l.trace = ctxsw.New(r, ctxsw.Options{})
	return l, nil
}

// RM is the access to the driver that the probes share.
func (l *Live) RM() *rmdev.RM { return l.rm }

// Calls is the probe of RM calls, which is also the witness of RAN; nil where
// it could not be attached.
func (l *Live) Calls() (*rmcalls.Probe, error) { return l.calls, l.why }

// Discoverer is the probe that scans.
func (l *Live) Discoverer() *discover.Discoverer { return l.find }

// Ready is closed once the probes are attached, the first scan is in the stream,
// or why there is none, and so is how the trace of the GPUs stands: a command
// that is judged before would find no trace.
func (l *Live) Ready() <-chan struct{} { return l.ready }

// Look implements sched.Looker.
func (l *Live) Look(on bool) {
	if l.calls != nil {
		l.calls.Look(on)
	}
}

// LookCounters implements sched.CounterLooker.
func (l *Live) LookCounters(on bool) { l.find.LookCounters(on) }

// Release implements sched.Releaser: it closes every descriptor of the driver,
// so that an operator can reset a GPU or unload the driver.
func (l *Live) Release() {
	l.trace.Release()
	l.find.Release()
	if n := l.nvmlProbe(); n != nil {
		n.Release()
	}
	l.emit([]sched.Event{l.find.Status()})
}

// Resume takes the devices again.
func (l *Live) Resume() {
	l.find.Resume()
	l.trace.Resume()
	if n := l.nvmlProbe(); n != nil {
		n.Resume()
	}
	l.emit([]sched.Event{l.find.Status()})
}

// Close detaches everything.
func (l *Live) Close() {
	if l.calls != nil {
		l.calls.Close()
	}
	l.find.Close()
}

func (l *Live) nvmlProbe() *nvml.Probe {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.nvml
}

// Run implements sched.Source.
func (l *Live) Run(ctx context.Context, sink func([]sched.Event)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.mu.Lock()
	l.sink = sink
	l.mu.Unlock()
	l.emit([]sched.Event{l.info()})
	if l.foreign != "" {
		l.emit([]sched.Event{sched.ProbeStatus{Time: sched.Now(), Probe: "process", GPU: sched.Unknown, State: sched.ProbeMissing,
			What: "whose TSGs and calls they are", Why: "no process is named, and none can be acted on: " + l.foreign}})
	}

	var wg sync.WaitGroup
	run := func(name string, f func(context.Context, func([]sched.Event)) error) {
		wg.Go(func() {
			defer crash.Guard()
			if err := f(ctx, l.emit); err != nil && ctx.Err() == nil && !l.saidMissing(name) {
				l.emit([]sched.Event{sched.ProbeStatus{Time: sched.Now(), Probe: name, GPU: sched.Unknown, State: sched.ProbeMissing, Why: err.Error()}})
			}
		})
	}
	if l.calls != nil {
		l.emit([]sched.Event{l.calls.Status(), l.calls.ExitStatus()})
		run("rm", l.calls.Run)
	} else {
		l.emit([]sched.Event{rmcalls.Missing(l.why)})
	}
	gpus, err := l.find.GPUs(ctx)
	if err != nil {
		l.emit([]sched.Event{sched.ProbeStatus{Time: sched.Now(), Probe: "discover", GPU: sched.Unknown, State: sched.ProbeMissing, Why: err.Error()}})
	}
	events := []sched.Event{}
	for _, g := range gpus {
		events = append(events, g)
	}
	l.emit(events)
	run("ctxsw", l.trace.Run)
	run("xid", func(ctx context.Context, sink func([]sched.Event)) error {
		x, err := xid.Open(xid.Options{GPUByPCI: byPCI(gpus), GPUByUUID: byUUID(gpus)})
		if err != nil {
			sink([]sched.Event{sched.ProbeStatus{Time: sched.Now(), Probe: "xid", GPU: sched.Unknown, State: sched.ProbeMissing,
				What: "Xid errors of the GPUs", Why: err.Error()}})
			return err
		}
		defer x.Close()
		sink([]sched.Event{x.Status()})
		return x.Run(ctx, sink)
	})
	if l.opts.NVML {
		n := nvml.New(nvml.Options{GPUs: gpus})
		l.mu.Lock()
		l.nvml = n
		l.mu.Unlock()
		run("nvml", n.Run)
	}
	run("discover", l.scan)
	run("switches", l.find.RunCounters)
	wg.Wait()
	return nil
}

// traceWait is how long Ready waits for the trace probe's first word at most.
const traceWait = 2 * time.Second

// scan runs the discoverer and says when its first scan is in the stream.
func (l *Live) scan(ctx context.Context, sink func([]sched.Event)) error {
	var once sync.Once
	ready := func() {
		go once.Do(func() {
			select {
			case <-l.traced:
			case <-time.After(traceWait):
			case <-ctx.Done():
			}
			close(l.ready)
		})
	}
	var hopeless sync.Once
	err := l.find.Run(ctx, func(es []sched.Event) {
		sink(es)
		for _, e := range es {
			switch e := e.(type) {
			case sched.Inventory:
				ready()
			case sched.ProbeStatus:
				if e.State != sched.ProbeOK { // a scan that fails may never come
					hopeless.Do(func() { time.AfterFunc(traceWait, ready) })
				}
			}
		}
	})
	ready()
	return err
}

// emit gives events of one probe to the sink, one probe at a time, with the
// identity of each process that they name for the first time before them.
func (l *Live) emit(es []sched.Event) {
	if len(es) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sink == nil {
		return
	}
	var who []sched.Event
	meet := func(pid int) {
		if pid > 0 && !l.met[pid] {
			l.met[pid] = true
			if l.foreign != "" {
				who = append(who, sched.Process{Time: sched.Now(), PID: pid, WhyNull: "not looked up: tsgtop is in a pid namespace of its own"})
			} else {
				who = append(who, l.procs.Describe(pid))
			}
			if l.calls != nil {
				l.calls.Watch(pid)
			}
		}
	}
	traced := false
	for i, e := range es {
		switch e := e.(type) {
		case sched.CallBatch:
			for i := range e.Calls {
				meet(e.Calls[i].PID)
			}
			l.find.Observe(e.Calls)
		case sched.Inventory:
			for i := range e.Clients {
				meet(e.Clients[i].PID)
			}
		case sched.TraceBatch:
			last := uint32(0)
			for i := range e.Records {
				if p := e.Records[i].PID; p != last {
					last = p
					if p < 1<<22 { // larger ones stand for kernel contexts
						meet(int(p))
					}
				}
			}
		case sched.ProcessExit:
			// The pid can come again as another process.
			delete(l.met, e.PID)
			l.procs.Forget(e.PID)
		case sched.GPUSample:
			if l.foreign != "" { // it is not known whose numbers NVML gives in here
				e.ProcessMem = nil
				es[i] = e
			}
		case sched.ProbeStatus:
			if e.GPU == sched.Unknown {
				l.missing[e.Probe] = e.State == sched.ProbeMissing
			}
			traced = traced || e.Probe == "ctxsw"
		case sched.Loss:
			es[i] = l.merged.merge(e)
		}
	}
	if len(who) > 0 {
		l.sink(who)
	}
	l.sink(es)
	if traced {
		l.tracing.Do(func() { close(l.traced) })
	}
}

// saidMissing tells whether a probe has said itself why it cannot work, and
// better than its last error does.
func (l *Live) saidMissing(probe string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.missing[probe]
}

// info describes the machine.
func (l *Live) info() sched.SourceInfo {
	host, _ := os.Hostname()
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	var u unix.Utsname
	_ = unix.Uname(&u)
	now := sched.Now()
	return sched.SourceInfo{
		Time: now, Started: now, Label: "LIVE", Host: host, Tool: l.opts.Tool,
		BootID: strings.TrimSpace(string(boot)), Kernel: unix.ByteSliceToString(u.Release[:]),
	}
}

func byUUID(gpus []sched.GPU) func(string) int {
	return func(uuid string) int {
		for _, g := range gpus {
			if g.UUID != "" && g.UUID == uuid {
				return g.Index
			}
		}
		return sched.Unknown
	}
}

// byPCI finds a GPU's index by its PCI address in any of the driver's spellings.
func byPCI(gpus []sched.GPU) func(string) int {
	return func(pci string) int {
		for _, g := range gpus {
			if xid.NormalPCI(g.PCI) == xid.NormalPCI(pci) {
				return g.Index
			}
		}
		return sched.Unknown
	}
}

// lossMerger adds up the losses that several probes count, each its own
// fields.
type lossMerger struct{ now sched.Loss }

func (m *lossMerger) merge(e sched.Loss) sched.Loss {
	n := &m.now
	n.Time = e.Time
	for _, f := range []struct {
		have *uint64
		got  uint64
	}{
		{&n.Ring, e.Ring}, {&n.Queue, e.Queue}, {&n.Trace, e.Trace}, {&n.Overtaken, e.Overtaken},
		{&n.Faults, e.Faults}, {&n.Compat, e.Compat}, {&n.Unmatched, e.Unmatched}, {&n.Malformed, e.Malformed},
	} {
		*f.have = max(*f.have, f.got) // counters since start: they only grow
	}
	return *n
}
