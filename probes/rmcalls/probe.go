package rmcalls

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"

	"tsgtop/bpf"
	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
)

// Auto climbs the ladder: the best rung that works here.
const Auto Rung = "auto"

// Options say how to observe. The zero value is right for a live machine.
type Options struct {
	Rung      Rung   // Auto or "": the best that works; otherwise only this one
	RingBytes int    // size of the kernel's ring, a power of two, at least a page; 0: 4 MiB
	Major     uint32 // major number of the driver's devices (RungTPBTF only); 0: 195
	// SkipSelf leaves out this process's own calls, but for those that Expect
	// announced. Not in a pid namespace of our own: our number is another
	// process's there.
	SkipSelf bool
	QueueLen int // batches of at most 1024 calls between ring and sink; 0: 64
	// ToTime converts CLOCK_MONOTONIC in ns; nil: by the difference to the
	// wall clock, read again each second.
	ToTime func(monotonic uint64) sched.Time

	attach func(program string, p *ebpf.Program) ([]link.Link, error) // of a test
}

// Probe is the set of attached programs. Its methods can be called from any
// goroutine; Run by one at a time.
type Probe struct {
	opts     Options
	rung     Rung
	refusals []*Refusal
	noClose  error // the rung's hook for the last close of a file could not be had
	noExit   error // so for the end of processes

	coll  *ebpf.Collection
	links []link.Link
	clock clock
	ring  *ringbuf.Reader
	own   *witness

	queueLost atomic.Uint64
	malformed atomic.Uint64

	mu        sync.RWMutex // closed is written, and so the collection closed, by none that reads it
	closed    bool
	closeOnce sync.Once
	closeErr  error
}

var (
	_ sched.Source = (*Probe)(nil)
	_ sched.Looker = (*Probe)(nil)
)

// use runs f, which talks to the kernel's maps and programs, unless they are
// closed.
func (p *Probe) use(f func() error) error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.closed {
		return errClosed
	}
	return f()
}

var errClosed = fmt.Errorf("the probe of RM calls: %w", os.ErrClosed)

// Open loads the programs and attaches them by the best rung that works. Where
// none does, the error is an *Unavailable with the reason of each.
func Open(o Options) (*Probe, error) {
	if o.RingBytes == 0 {
		o.RingBytes = 4 << 20
	}
	if o.Major == 0 {
		o.Major = rm.Major
	}
	if o.QueueLen == 0 {
		o.QueueLen = 64
	}
	if o.attach == nil {
		o.attach = attach
	}
	lockMemory()
	rungs := Rungs()
	if o.Rung != "" && o.Rung != Auto {
		rungs = []Rung{o.Rung}
	}
	spec, err := bpf.LoadRMCalls()
	if err != nil {
		return nil, fmt.Errorf("reading the eBPF object: %w", err)
	}
	p := &Probe{opts: o}
	p.clock.tie()
	cache := btf.NewCache()
	for _, r := range rungs {
		refusal := r.foresee()
		if refusal == nil {
			err := p.climb(r, spec.Copy(), cache)
			if err == nil {
				return p, nil
			}
			refusal = r.refuse(err)
		}
		p.refusals = append(p.refusals, refusal)
	}
	return nil, &Unavailable{Refusals: p.refusals}
}

// Unavailable says why no rung can be used.
type Unavailable struct {
	Refusals []*Refusal
}

func (u *Unavailable) Error() string {
	return "observing RM calls by eBPF: no hook works here: " + together(u.Refusals)
}

// Unwrap gives the refusals.
func (u *Unavailable) Unwrap() []error {
	errs := make([]error, len(u.Refusals))
	for i, r := range u.Refusals {
		errs[i] = r
	}
	return errs
}

// climb loads and attaches one rung.
func (p *Probe) climb(r Rung, spec *ebpf.CollectionSpec, cache *btf.Cache) error {
	needed, optional := r.programs()
	if len(optional) > 0 && !hasFunction("nvidia_close") {
		p.noClose = errors.New("the nvidia module has no function nvidia_close")
		optional = nil
	}
	keep := slices.Concat(needed, optional, []string{exitProgram})
	for name := range spec.Programs {
		if !slices.Contains(keep, name) {
			delete(spec.Programs, name)
		}
	}
	if err := p.configure(spec); err != nil {
		return err
	}
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Cache: cache})
	if err != nil {
		return fmt.Errorf("loading the programs: %w", err)
	}
	p.coll, p.rung = coll, r
	all := func() error { return p.attachAll(needed, optional) }
	if r == RungTP {
		err = withTracefs(all)
	} else {
		err = all()
	}
	if err != nil {
		// As if it had not been tried, for the next rung.
		err = errors.Join(err, p.release())
		p.links, p.ring, p.own, p.coll, p.closed = nil, nil, nil, nil, false
		p.noClose, p.noExit = nil, nil
	}
	return err
}

func (p *Probe) configure(spec *ebpf.CollectionSpec) error {
	spec.Maps["events"].MaxEntries = uint32(p.opts.RingBytes)
	if err := spec.Variables["major"].Set(p.opts.Major); err != nil {
		return fmt.Errorf("setting the major number: %w", err)
	}
	if p.opts.SkipSelf {
		if err := spec.Variables["self"].Set(uint32(os.Getpid())); err != nil {
			return fmt.Errorf("setting the process to leave out: %w", err)
		}
	}
	if err := spec.Variables["wake_bytes"].Set(uint64(p.opts.RingBytes) / 4); err != nil {
		return fmt.Errorf("setting the wakeup threshold: %w", err)
	}
	return nil
}

func (p *Probe) attachAll(needed, optional []string) error {
	var err error
	if p.ring, err = ringbuf.NewReader(p.coll.Maps["events"]); err != nil {
		return fmt.Errorf("opening the ring of calls: %w", err)
	}
	if p.own, err = newWitness(p.coll, p.toTime); err != nil {
		return err
	}
	on := func(name string) error {
		links, err := p.opts.attach(name, p.coll.Programs[name])
		if err != nil {
			return fmt.Errorf("attaching %s: %w", name, err)
		}
		p.links = append(p.links, links...)
		return nil
	}
	if err := on(exitProgram); err != nil {
		p.noExit = err
	}
	for _, name := range optional {
		if err := on(name); err != nil {
			p.noClose = err
		}
	}
	for _, name := range needed {
		if err := on(name); err != nil {
			return err
		}
	}
	return nil
}

// Rung is the rung in use.
func (p *Probe) Rung() Rung { return p.rung }

// Pins tells whether the probe keeps the driver's module from being unloaded:
// then only Close lets it go.
func (p *Probe) Pins() bool { return p.rung == RungFentry || p.rung == RungKprobe }

// Refusals are why each better rung is not in use, best first.
func (p *Probe) Refusals() []*Refusal { return p.refusals }

func (p *Probe) toTime(monotonic uint64) sched.Time {
	if p.opts.ToTime != nil {
		return p.opts.ToTime(monotonic)
	}
	return p.clock.toTime(monotonic)
}

// Look tells whether somebody looks at all calls: then those that do not shape
// scheduling are streamed too, instead of counted.
func (p *Probe) Look(on bool) {
	var v uint32
	if on {
		v = 1
	}
	// Writing to mapped memory of the program's; it fails on a closed probe
	// only, and then there is nothing to look at.
	_ = p.use(func() error { return p.coll.Variables["look"].Set(v) })
}

// Watch asks for the exit of a process that has made no RM call since Open:
// one that was found by a scan.
func (p *Probe) Watch(pid int) error {
	err := p.use(func() error { return p.coll.Maps["pids"].Update(uint32(pid), uint8(1), ebpf.UpdateAny) })
	if err != nil {
		return fmt.Errorf("watching for the exit of process %d: %w", pid, err)
	}
	return nil
}

// Close detaches the programs and frees everything. Run returns.
func (p *Probe) Close() error {
	p.closeOnce.Do(func() { p.closeErr = p.release() })
	return p.closeErr
}

func (p *Probe) release() error {
	var errs []error
	errs = append(errs, detach(p.links)...)
	p.links = nil
	if p.ring != nil {
		errs = append(errs, p.ring.Close())
	}
	if p.own != nil {
		errs = append(errs, p.own.close())
	}
	if p.coll != nil {
		p.mu.Lock()
		p.closed = true
		p.coll.Close()
		p.mu.Unlock()
	}
	return errors.Join(errs...)
}

// detach closes links all at once: each waits for the kernel to be done with
// it, up to 0.1 s.
func detach(links []link.Link) []error {
	errs := make([]error, len(links))
	var wg sync.WaitGroup
	for i, l := range links {
		wg.Go(func() { errs[i] = l.Close() })
	}
	wg.Wait()
	return errs
}
