package rmcalls

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"

	"tsgtop/bpf"
	"tsgtop/internal/crash"
	"tsgtop/internal/sched"
)

// Expected announces one call that our own process is about to make: one ioctl
// of thread TID on descriptor FD with argument Arg, and with Params in the
// control's params member. The calling goroutine must be locked to its thread,
// and the memory at both addresses must not move until the call is back.
type Expected struct {
	ID      uint64 // of this one call; not 0, never used before
	Command string // id of the command that it is part of, as Call.Command shows it
	TID     int    // in the machine's pid namespace
	FD      int
	Arg     uintptr // third argument of the ioctl
	Params  uintptr // 0: not compared
}

// OwnPhase is which end of a call was seen.
type OwnPhase uint32

// The phases.
const (
	OwnEntry = OwnPhase(bpf.RMCallsRmPhaseRM_PHASE_ENTRY)
	OwnExit  = OwnPhase(bpf.RMCallsRmPhaseRM_PHASE_EXIT)
)

// OwnCall is what the eBPF program wrote about one of our own calls. Fields
// from Duration on are set for OwnExit only.
type OwnCall struct {
	ID       uint64
	Phase    OwnPhase
	Time     sched.Time
	Duration time.Duration
	Read     bool // the ioctl's structure could be read: the fields below count
	Kind     sched.CallKind
	Number   uint32
	Client   sched.Handle
	Object   sched.Handle
	Status   uint32
	Errno    int // not 0: Status is not valid
}

// ErrNotSeen: the programs did not see the call in the time given.
var ErrNotSeen = errors.New("the eBPF program has not seen the call")

// keptIDs bounds how many past calls of ours are remembered.
const keptIDs = 4096

// witness reads what the programs write about our own calls, from a ring that
// no other traffic can fill.
type witness struct {
	ring      *ringbuf.Reader
	expected  *ebpf.Map
	expecting *ebpf.Variable
	toTime    func(uint64) sched.Time
	done      chan struct{}

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at each record
	seen     map[uint64][]OwnCall
	commands map[uint64]string
	order    []uint64 // ids, oldest first
	waiting  map[int]bool
}

func newWitness(coll *ebpf.Collection, toTime func(uint64) sched.Time) (*witness, error) {
	ring, err := ringbuf.NewReader(coll.Maps["own_calls"])
	if err != nil {
		return nil, fmt.Errorf("opening the ring of our own calls: %w", err)
	}
	w := &witness{
		ring: ring, expected: coll.Maps["expected"], expecting: coll.Variables["expecting"], toTime: toTime,
		done: make(chan struct{}), changed: make(chan struct{}),
		seen: map[uint64][]OwnCall{}, commands: map[uint64]string{}, waiting: map[int]bool{},
	}
	crash.Go(w.run)
	return w, nil
}

func (w *witness) run() {
	defer close(w.done)
	var r ringbuf.Record
	for {
		if err := w.ring.ReadInto(&r); err != nil {
			return // closed
		}
		if len(r.RawSample) < ownSize {
			continue
		}
		var o bpf.RMCallsRmOwn
		overlay(&o, r.RawSample)
		w.note(o)
	}
}

func (w *witness) note(o bpf.RMCallsRmOwn) {
	c := OwnCall{
		ID: o.Id, Phase: OwnPhase(o.Phase), Time: w.toTime(o.When), Duration: time.Duration(o.Duration),
		Read: o.Kind != 0, Kind: sched.CallKind(o.Kind), Number: o.Number,
		Client: sched.Handle(o.Client), Object: sched.Handle(o.Object), Status: o.Status,
	}
	if o.Error < 0 {
		c.Errno = -int(o.Error)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ours := w.commands[c.ID]; !ours {
		return
	}
	w.seen[c.ID] = append(w.seen[c.ID], c)
	close(w.changed)
	w.changed = make(chan struct{})
}

// Expect announces a call to the programs. It must return before the call is
// made. One call uses it up; Forget takes it back.
func (p *Probe) Expect(e Expected) error {
	if e.ID == 0 || e.TID <= 0 || e.FD < 0 || e.Arg == 0 {
		return fmt.Errorf("expecting call %d of thread %d on descriptor %d: an id, thread, descriptor and argument are needed", e.ID, e.TID, e.FD)
	}
	return p.use(func() error { return p.own.expect(e) })
}

func (w *witness) expect(e Expected) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, dup := w.commands[e.ID]; dup {
		return fmt.Errorf("expecting call %d: this id was used before", e.ID)
	}
	k := bpf.RMCallsRmExpected{Id: e.ID, Arg: uint64(e.Arg), Params: uint64(e.Params), Fd: uint32(e.FD)}
	if err := w.expected.Update(uint32(e.TID), &k, ebpf.UpdateAny); err != nil {
		return fmt.Errorf("telling the eBPF program to expect call %d of thread %d: %w", e.ID, e.TID, err)
	}
	w.waiting[e.TID] = true
	if err := w.expecting.Set(uint32(1)); err != nil {
		return fmt.Errorf("telling the eBPF program to expect call %d of thread %d: %w", e.ID, e.TID, err)
	}
	w.commands[e.ID] = e.Command
	w.order = append(w.order, e.ID)
	if len(w.order) > keptIDs {
		delete(w.commands, w.order[0])
		delete(w.seen, w.order[0])
		w.order = w.order[1:]
	}
	return nil
}

// Forget takes back what Expect announced for a thread, seen or not. What was
// seen stays to be asked for.
func (p *Probe) Forget(tid int) error {
	return p.use(func() error { return p.own.forget(tid) })
}

func (w *witness) forget(tid int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.waiting, tid)
	if len(w.waiting) == 0 {
		if err := w.expecting.Set(uint32(0)); err != nil {
			return fmt.Errorf("telling the eBPF program to expect nothing: %w", err)
		}
	}
	if err := w.expected.Delete(uint32(tid)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("taking back the expected call of thread %d: %w", tid, err)
	}
	return nil
}

// WaitOwn waits until the program has seen the given end of call id, at most
// for limit. The error is ErrNotSeen where it has not.
func (p *Probe) WaitOwn(id uint64, phase OwnPhase, limit time.Duration) (OwnCall, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	w := p.own
	for {
		w.mu.Lock()
		for _, c := range w.seen[id] {
			if c.Phase == phase {
				w.mu.Unlock()
				return c, nil
			}
		}
		changed := w.changed
		w.mu.Unlock()
		select {
		case <-changed:
		case <-w.done:
			return OwnCall{}, fmt.Errorf("call %d: %w: the probe is closed", id, ErrNotSeen)
		case <-timer.C:
			return OwnCall{}, fmt.Errorf("call %d: %w in %v", id, ErrNotSeen, limit)
		}
	}
}

// command is the command of one of our calls, or "".
func (w *witness) command(id uint64) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.commands[id]
}

func (w *witness) close() error {
	err := w.ring.Close()
	<-w.done
	return err
}
