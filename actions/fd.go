//go:build linux

package actions

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"tsgtop/actions/journal"
	"tsgtop/internal/rm"
	"tsgtop/internal/rmdev"
	"tsgtop/internal/sched"
)

// FD acts through a descriptor that is borrowed from the target's process: RM
// takes the call for one of the target's own. It works on a stock driver with
// no module at all, for root.
type FD struct {
	rm      *rmdev.RM
	journal *journal.Journal
	self    journal.Owner
	meter   *meter

	mu       sync.Mutex
	witness  RanWitness
	whyBlind string // why there is no witness
	now      *session
	hints    map[sched.Handle]int // descriptor by which a client was found last
	callers  []*rmdev.Caller      // spare
}

// session is the driver held open, with our own objects on the GPUs.
type session struct {
	dev      *rmdev.Device
	gpus     []rmdev.GPU
	attached map[int]*rmdev.AttachedGPU
	layout   rm.LayoutInfo
	users    int
	closing  bool
}

// NewFD makes the actuator. witness may be nil, with the reason why: then RAN
// is unknown. The journal must be the machine's: RM's RPC meter is noted there.
func NewFD(r *rmdev.RM, j *journal.Journal, self journal.Owner, witness RanWitness, whyBlind string) *FD {
	if witness == nil && whyBlind == "" {
		whyBlind = "no eBPF program is attached to see the call"
	}
	return &FD{rm: r, journal: j, self: self, witness: witness, whyBlind: whyBlind, hints: map[sched.Handle]int{},
		meter: &meter{journal: j, self: self}}
}

// Name is "fd".
func (f *FD) Name() string { return "fd" }

// initPIDNamespace is the machine's own pid namespace: the same on every kernel.
const initPIDNamespace = "pid:[4026531836]"

// Why says why descriptors cannot be borrowed here.
func (f *FD) Why() string {
	if _, err := f.rm.Driver(); err != nil {
		return err.Error()
	}
	if why := f.foreignPIDs(); why != "" {
		return why
	}
	if f.rm.YamaForbids() {
		return "the kernel forbids taking other processes' descriptors (kernel.yama.ptrace_scope is 3); boot with kernel.yama.ptrace_scope=1"
	}
	return ""
}

// foreignPIDs says why pids here are not the machine's; empty where they are.
func (f *FD) foreignPIDs() string {
	link, err := f.rm.System().ReadLink("/proc/self/ns/pid")
	switch {
	case err != nil:
		return fmt.Sprintf("which pid namespace this is could not be read: %v", err)
	case link != initPIDNamespace:
		return "tsgtop runs in a pid namespace of its own, where pids are not those of the machine: it could act on the wrong process; run it on the host (docker: --pid=host)"
	}
	return ""
}

// use takes the driver, opened if it was not, and the GPU attached. done gives
// it back.
func (f *FD) use(gpu int) (s *session, a *rmdev.AttachedGPU, done func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now == nil {
		dev, err := f.rm.Open()
		if err != nil {
			return nil, nil, nil, err
		}
		gpus, err := dev.GPUs()
		if err != nil {
			dev.Close()
			return nil, nil, nil, err
		}
		s := &session{dev: dev, gpus: gpus, attached: map[int]*rmdev.AttachedGPU{}}
		if s.layout, err = f.rm.Layout(); err != nil && s.layout.Branch == 0 {
			dev.Close()
			return nil, nil, nil, fmt.Errorf("nothing is sent to a driver whose calls are not known: %w", err)
		}
		f.now = s
	}
	s = f.now
	a = s.attached[gpu]
	if a == nil {
		i := -1
		for k := range s.gpus {
			if s.gpus[k].Index == gpu {
				i = k
			}
		}
		if i < 0 {
			return nil, nil, nil, fmt.Errorf("%w: there is no GPU%d", ErrGone, gpu)
		}
		if a, err = s.dev.Attach(s.gpus[i]); err != nil {
			return nil, nil, nil, err
		}
		s.attached[gpu] = a
	}
	s.users++
	return s, a, sync.OnceFunc(func() { f.done(s) }), nil
}

func (f *FD) done(s *session) {
	f.mu.Lock()
	s.users--
	last := s.closing && s.users == 0
	f.mu.Unlock()
	if last {
		s.dev.Close()
	}
}

// Release lets go of the driver, so that it can be unloaded or a GPU be reset;
// a call that is under way keeps it until RM has answered.
func (f *FD) Release() {
	f.mu.Lock()
	s := f.now
	f.now = nil
	idle := false
	if s != nil {
		s.closing = true
		idle = s.users == 0
	}
	callers := f.callers
	f.callers = nil
	f.mu.Unlock()
	for _, c := range callers {
		c.Close()
	}
	if idle {
		s.dev.Close()
	}
}

// caller takes a spare one: its memory must not be another call's.
func (f *FD) caller() (*rmdev.Caller, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.callers); n > 0 {
		c := f.callers[n-1]
		f.callers = f.callers[:n-1]
		return c, nil
	}
	return f.rm.NewCaller()
}

func (f *FD) giveCaller(c *rmdev.Caller) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.callers = append(f.callers, c)
}

// Inspect finds the target and asks RM who it is.
func (f *FD) Inspect(_ context.Context, t sched.Target) (Inspection, error) {
	m, err := f.meet(t)
	if err != nil {
		return Inspection{}, err
	}
	defer m.close()
	in := Inspection{Target: m.target, Warnings: m.warnings}
	var p rm.TimesliceParams
	st, err := m.borrowed.Control(uint32(t.Object.Client), uint32(t.Object.Handle), rm.CtrlTSGGetTimeslice, rmdev.Bytes(&p))
	if err != nil {
		return in, fmt.Errorf("read the timeslice of %s: %w", t.Object, err)
	}
	if st == 0 {
		in.Timeslice = sched.Ptr(p.TimesliceUS)
	}
	return in, nil
}

// Counters reads the GSP's switch counters of the target, on its own client.
func (f *FD) Counters(_ context.Context, t sched.Target) *Counters {
	m, err := f.meet(t)
	if err != nil {
		return nil
	}
	defer m.close()
	return m.counters()
}

// counters reads the GSP's switch counters; nil where it has none.
func (m *meeting) counters() *Counters {
	client := uint32(m.target.Object.Client)
	if m.subdevice == 0 {
		var err error
		if m.subdevice, err = m.borrowed.Subdevice(client, m.device); err != nil || m.subdevice == 0 {
			return nil
		}
	}
	at := sched.Now()
	p, st, err := m.borrowed.SwitchCounters(client, m.subdevice, uint32(m.target.Object.Handle))
	if err != nil || st != rm.StatusOK {
		return nil
	}
	return &Counters{At: at, Until: sched.Now(), Save: p.Save, WFI: p.WFI, CILP: p.CILP}
}

var errNoFile = errors.New("none of its open files owns the client")

// MeterOff turns off RM's RPC meter where the journal says that a tsgtop that
// has died left it on.
func (f *FD) MeterOff() error {
	dev, err := f.rm.Open()
	if err != nil {
		return fmt.Errorf("RM's RPC meter was left on by a tsgtop that died: %w", err)
	}
	defer dev.Close()
	return meterLeftOn(f.journal, f.self, dev)
}
