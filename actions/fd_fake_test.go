//go:build linux

package actions

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"tsgtop/actions/journal"
	"tsgtop/internal/rm"
	"tsgtop/internal/rmdev"
	"tsgtop/internal/rmdev/rmfake"
	"tsgtop/internal/sched"
)

// card is the fake driver with what commands meet besides: a GSP behind an RPC
// meter, switch counters, and statuses that a test asks for.
type card struct {
	*rmfake.Driver
	mu      sync.Mutex
	starts  map[int]uint64    // of processes
	answers map[uint32]uint32 // control -> status
	local   map[uint32]bool   // controls that the driver answers without the GSP
	on      bool              // the meter
	entries []rm.RPCMeterEntry
	locked  bool // somebody else has the meter on
	stuck   bool // the meter cannot be turned off
	history []uint32
	stolen  int // RPCs of other clients within each call
	witness *fakeWitness
	before  func(cmd uint32)
	saves   uint32
}

func (c *card) ReadFile(path string) ([]byte, error) {
	var pid int
	if n, _ := fmt.Sscanf(path, "/proc/%d/stat", &pid); n == 1 && strings.HasSuffix(path, "/stat") {
		c.mu.Lock()
		defer c.mu.Unlock()
		if start, ok := c.starts[pid]; ok {
			return fmt.Appendf(nil, "%d (a) b) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %d 0 0", pid, start), nil
		}
		return nil, syscall.ENOENT
	}
	return c.Driver.ReadFile(path)
}

func (c *card) Ioctl(fd int, request uint32, arg unsafe.Pointer) syscall.Errno {
	nr, _, _ := rm.IoctlParts(request)
	if nr != rm.EscControl {
		return c.Driver.Ioctl(fd, request, arg)
	}
	a := (*rm.ControlParams)(arg)
	if c.before != nil {
		c.before(a.Cmd)
	}
	params := unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&a.Params))), a.ParamsSize)
	switch a.Cmd {
	case rm.CtrlRPCMeter:
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.stuck && params32(params) == rm.RPCMeterOff {
			a.Status = 0x65
			return 0
		}
		c.history = append(c.history, params32(params))
		switch params32(params) {
		case rm.RPCMeterOn:
			c.on = true
		case rm.RPCMeterOff:
			c.on = false
		case rm.RPCMeterReset:
			c.entries = nil
		}
		a.Status = 0
		return 0
	case rm.CtrlRPCMeterDump:
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.on || c.locked {
			a.Status = 0x40 // NV_ERR_INVALID_STATE
			return 0
		}
		d := (*rm.RPCMeterDumpParams)(unsafe.Pointer(unsafe.SliceData(params)))
		d.Count = uint32(copy(d.Entries[:], c.entries))
		d.Remaining = uint32(len(c.entries)) - d.Count
		a.Status = 0
		return 0
	case rm.CtrlContextSwitchStats:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.saves += 3
		p := (*rm.ContextSwitchStatsParams)(unsafe.Pointer(unsafe.SliceData(params)))
		p.Save, p.CILP = c.saves, c.saves
		a.Status = 0
		return 0
	case rm.CtrlTSGSetTimeslice, rm.CtrlTSGSetInterleave, rm.CtrlTSGPreempt:
	default:
		return c.Driver.Ioctl(fd, request, arg)
	}
	phase := c.witness.entry(fd, uintptr(arg), uintptr(a.Params))
	start := rawClock()
	time.Sleep(300 * time.Microsecond)
	end := rawClock()
	c.mu.Lock()
	status, refused := c.answers[a.Cmd]
	if !c.local[a.Cmd] && c.on {
		for range c.stolen {
			c.entries = append(c.entries, rm.RPCMeterEntry{Start: uint64(start), End: uint64(start) + 1000, Function: rm.RPCControl})
		}
		c.entries = append(c.entries, rm.RPCMeterEntry{Start: uint64(start) + 2000, End: uint64(end), Function: rm.RPCControl})
	}
	c.mu.Unlock()
	var e syscall.Errno
	if refused {
		a.Status = status
	} else {
		e = c.Driver.Ioctl(fd, request, arg)
	}
	c.witness.exit(phase, a)
	return e
}

func params32(b []byte) uint32 { return *(*uint32)(unsafe.Pointer(unsafe.SliceData(b))) }

// fakeWitness is the eBPF program: it knows a call by thread, descriptor and
// both addresses.
type fakeWitness struct {
	mu       sync.Mutex
	expected map[int]expected
	seen     map[uint64]*OwnCall
	blind    bool
	waiting  func()

	expecting func()
}

type expected struct {
	id          uint64
	fd          int
	arg, params uintptr
}

func (w *fakeWitness) Expect(id uint64, _ string, tid, fd int, arg, params uintptr) error {
	if w.expecting != nil {
		w.expecting()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expected[tid] = expected{id, fd, arg, params}
	return nil
}

func (w *fakeWitness) Forget(tid int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.expected, tid)
}

func (w *fakeWitness) Wait(id uint64, _ time.Duration) (OwnCall, error) {
	if w.waiting != nil {
		w.waiting()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.seen[id]; c != nil {
		return *c, nil
	}
	return OwnCall{}, errors.New("not seen")
}

func (w *fakeWitness) entry(fd int, arg, params uintptr) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	e, ok := w.expected[unix.Gettid()]
	if !ok || w.blind || e.fd != fd || e.arg != arg || e.params != params {
		return 0
	}
	delete(w.expected, unix.Gettid())
	w.seen[e.id] = &OwnCall{Entry: true, At: sched.Now()}
	return e.id
}

func (w *fakeWitness) exit(id uint64, a *rm.ControlParams) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.seen[id]; c != nil {
		c.Exit, c.Read, c.Number, c.Client, c.Object, c.Status = true, true, a.Cmd, sched.Handle(a.Client), sched.Handle(a.Object), a.Status
		c.Took = sched.Now().Sub(c.At)
	}
}

// desk is a fake machine with one CUDA process on it, and the actuator.
type desk struct {
	card    *card
	gpu     *rmfake.GPU
	process *rmfake.Process
	client  *rmfake.Client
	target  sched.Target
	fd      *FD
	journal *journal.Journal
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{card: &card{Driver: rmfake.New(), starts: map[int]uint64{400: 9000}, answers: map[uint32]uint32{}, local: map[uint32]bool{},
		witness: &fakeWitness{expected: map[int]expected{}, seen: map[uint64]*OwnCall{}}}}
	d.gpu = d.card.AddGPU()
	d.process = d.card.AddProcess(400, "train.py")
	d.process.OpenOther(3, "/dev/null")
	d.process.Open(5) // another file of the driver's, with another client
	d.process.NewClient(5)
	d.process.Open(9)
	d.client = d.process.NewClient(9)
	d.target = targetFor(d.client, d.client.CUDA(d.gpu, 0x5c000000)[0], 400, 9000)
	j, err := journal.Open(filepath.Join(rootDir(t), "journal"))
	if err != nil {
		t.Fatal(err)
	}
	d.journal = j
	self, err := journal.Self()
	if err != nil {
		t.Fatal(err)
	}
	d.fd = NewFD(rmdev.New(d.card), j, self, d.card.witness, "")
	if why := d.fd.Why(); why != "" {
		t.Fatal(why)
	}
	t.Cleanup(func() { d.fd.Release(); j.Close() })
	return d
}

// rootDir is a folder such as root's own are: /tmp itself would be refused.
func rootDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func targetFor(c *rmfake.Client, g rmfake.TSG, pid int, start uint64) sched.Target {
	t := sched.Target{TSGID: sched.TSGID{GPU: 0, Runlist: int(g.Runlist), TSG: int(g.Number)}, PID: pid, Start: start, Exe: "/usr/bin/train.py",
		Object: sched.Object{Client: sched.Handle(c.Handle), Handle: sched.Handle(g.Handle)}, UniqueID: &g.Unique}
	for _, ch := range g.Channels {
		t.Contexts = append(t.Contexts, ch.Context)
	}
	return t
}

func (d *desk) do(op sched.Op, value uint64) Result {
	return d.fd.Do(context.Background(), Request{ID: callID(), Command: "c1", Op: op, Target: d.target, Value: value, MeterRPC: true})
}

// quiet checks that nothing is left behind: no line in the kernel log, no meter
// that is on, no note of one, no descriptor.
func (d *desk) quiet(t *testing.T) {
	t.Helper()
	if log := d.card.Log(); len(log) > 0 {
		t.Errorf("lines in the kernel log: %q", log)
	}
	if d.card.on {
		t.Error("the meter is on")
	}
	if s, err := d.journal.State(); err != nil || s.Meter != nil {
		t.Errorf("journal: meter %+v, %v", s.Meter, err)
	}
	d.fd.Release()
	d.fd.rm.WaitCloses()
	if n := d.card.OpenFiles(); n != 0 {
		t.Errorf("%d descriptors are left open", n)
	}
}
