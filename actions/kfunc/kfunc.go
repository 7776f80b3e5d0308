//go:build linux

// Package kfunc acts through the companion kernel module: an eBPF program, run
// with BPF_PROG_RUN, calls one of the module's sleepable kfuncs, which asks the
// Resource Manager with kernel privilege. The stock nvidia.ko stays as it is.
//
// The program writes a record of its own before and after the call; these are
// the witness RAN. The NV_STATUS comes back unchanged beside an errno.
package kfunc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"

	"tsgtop/bpf"
	"tsgtop/internal/sched"
)

// slice is how long one run of the program may wait for RM. It holds back the
// kernel's RCU for sleepable programs meanwhile, so it is short, and asked again.
const slice = 100 * time.Millisecond

// ErrAbsent: the program is loaded, but the module that it calls is not there.
var ErrAbsent = errors.New("the kernel module tsgtop is not there")

// Kfunc is the loaded program. Safe for use by several goroutines: a call that
// waits for RM does not keep another from being made.
type Kfunc struct {
	mu   sync.Mutex // one run at a time; each is short
	objs bpf.ActionObjects
	ring *ringbuf.Reader
	have bool
	why  string

	waiting sync.Map // ids of calls that the module has taken on and RM has not answered
}

// Result is what came of one command, each part from its own witness.
type Result struct {
	// RanBefore and RanAfter are the program's own records, CLOCK_MONOTONIC
	// nanoseconds; 0: no record. Of a call that took several runs, because RM did
	// not answer at once, they are the first run's and the last one's.
	RanBefore, RanAfter int64
	// Sent: the module handed the call to RM. Answered: RM came back, and Status
	// is its NV_STATUS. A Status without Sent is that of the identity check.
	Sent, Answered bool
	Status         uint32
	// Checked: the TSG's never-reused id was right just before the call; Same: it
	// still was just after.
	Checked, Same bool
	// Errno is the kfunc's own; EINPROGRESS: no answer within the limit, ask Wait.
	Errno syscall.Errno
	// Why says in a sentence why nothing was sent, or why there is no answer.
	Why string
	// Refusal is the module's own reason, bpf.ActionTsgtopWhyTSGTOP_WHY_….
	Refusal bpf.ActionTsgtopWhy
	// Cookie names the call to Wait.
	Cookie uint64
	// SentNS and AnsweredNS are CLOCK_MONOTONIC; DurNS is between them.
	SentNS, AnsweredNS, DurNS int64
}

// Open loads the program. It loads where the module is absent too; WhyNot then
// says why it cannot act. Needs CAP_SYS_ADMIN (or CAP_BPF and CAP_PERFMON).
func Open() (*Kfunc, error) {
	k := &Kfunc{}
	_, err := os.Stat("/sys/kernel/btf/tsgtop")
	k.have = err == nil
	spec, err := bpf.LoadAction()
	if err != nil {
		return nil, fmt.Errorf("read the action program: %w", err)
	}
	if err := spec.Variables[bpf.ActionVarHaveKfunc].Set(k.have); err != nil {
		return nil, fmt.Errorf("set up the action program: %w", err)
	}
	if err := spec.LoadAndAssign(&k.objs, nil); err != nil {
		return nil, fmt.Errorf("load the action program (root is needed, and Linux 5.14): %w", err)
	}
	if k.ring, err = ringbuf.NewReader(k.objs.ActionRan); err != nil {
		return nil, errors.Join(fmt.Errorf("open the action program's ring: %w", err), k.objs.Close())
	}
	if !k.have {
		k.why = ThisMachine().WhyNot()
	}
	return k, nil
}

// WhyNot is empty where the actuator can be used, else a sentence.
func (k *Kfunc) WhyNot() string {
	if !k.have {
		return k.why
	}
	return ThisMachine().WhyNot()
}

// Close unloads the program, which also lets the module be unloaded.
func (k *Kfunc) Close() error {
	return errors.Join(k.ring.Close(), k.objs.Close())
}

// Do makes one command and waits for RM's answer up to limit. value is the
// timeslice in microseconds or the interleave level; wait is for a preempt. A
// result with Errno EINPROGRESS can be asked about with Wait. The error is for
// what kept the program from running at all.
func (k *Kfunc) Do(id uint64, op sched.Op, target sched.Target, value uint64, wait bool, limit time.Duration) (Result, error) {
	a := bpf.ActionActionArgs{Id: id, Value: value, Target: targetOf(target)}
	switch op {
	case sched.OpPreempt:
		a.Op, a.Value = bpf.ActionActionOpACTION_PREEMPT, 0
		if wait {
			a.Value = 1
		}
	case sched.OpTimeslice:
		a.Op = bpf.ActionActionOpACTION_TIMESLICE
	case sched.OpInterleave:
		a.Op = bpf.ActionActionOpACTION_INTERLEAVE
	default:
		return Result{}, fmt.Errorf("operation %q: this actuator knows preempt, timeslice and interleave", op)
	}
	r, _, err := k.call(a, limit)
	return r, err
}

// Wait asks again, up to limit, about a call that had not answered.
func (k *Kfunc) Wait(id, cookie uint64, limit time.Duration) (Result, error) {
	r, _, err := k.call(bpf.ActionActionArgs{Id: id, Op: bpf.ActionActionOpACTION_WAIT, Cookie: cookie}, limit)
	return r, err
}

// Identity asks who a TSG is; only its handles are looked at. What is valid of
// the answer beside its number is told by Known.
func (k *Kfunc) Identity(id uint64, object sched.Object, limit time.Duration) (bpf.ActionTsgtopIdentity, Result, error) {
	a := bpf.ActionActionArgs{Id: id, Op: bpf.ActionActionOpACTION_IDENTITY}
	a.Target.Client, a.Target.Tsg = uint32(object.Client), uint32(object.Handle)
	a.LimitMs = millis(limit)
	var who bpf.ActionTsgtopIdentity
	k.mu.Lock()
	defer k.mu.Unlock()
	r, err := k.run(&a)
	if err == nil && r.Errno == 0 {
		err = k.objs.ActionIdentity.Lookup(uint32(0), &who)
	}
	return who, r, err
}

// Switches reads the GSP's context-switch counters of a TSG; they are valid
// where the result is answered with status 0.
func (k *Kfunc) Switches(id uint64, target sched.Target, limit time.Duration) (bpf.ActionTsgtopSwitches, Result, error) {
	a := bpf.ActionActionArgs{Id: id, Op: bpf.ActionActionOpACTION_SWITCHES, Target: targetOf(target)}
	a.LimitMs = millis(limit)
	k.mu.Lock()
	defer k.mu.Unlock()
	r, err := k.run(&a)
	return a.Switches, r, err
}

func targetOf(t sched.Target) bpf.ActionTsgtopTarget {
	out := bpf.ActionTsgtopTarget{Client: uint32(t.Object.Client), Tsg: uint32(t.Object.Handle), Number: uint32(t.TSG)}
	if t.UniqueID != nil {
		out.Unique = *t.UniqueID
	}
	return out
}

// call runs the program, and runs it again with the cookie while RM has not
// answered and the limit allows.
func (k *Kfunc) call(a bpf.ActionActionArgs, limit time.Duration) (Result, bpf.ActionActionArgs, error) {
	deadline := time.Now().Add(limit)
	a.LimitMs = millis(min(limit, slice))
	r, err := k.locked(&a)
	before := r.RanBefore
	if err == nil && r.Errno == syscall.EINPROGRESS && before != 0 {
		k.waiting.Store(a.Id, true)
		defer k.waiting.Delete(a.Id)
	}
	for err == nil && r.Errno == syscall.EINPROGRESS {
		left := time.Until(deadline)
		if left <= 0 {
			break
		}
		again := bpf.ActionActionArgs{Id: a.Id, Op: bpf.ActionActionOpACTION_WAIT, Cookie: r.Cookie, LimitMs: millis(min(left, slice))}
		r, err = k.locked(&again)
	}
	r.RanBefore = before
	return r, a, err
}

// Waiting tells whether the program wrote its record for a call of Do, the module
// took the call on, and RM has not answered yet.
func (k *Kfunc) Waiting(id uint64) bool {
	_, ok := k.waiting.Load(id)
	return ok
}

func (k *Kfunc) locked(a *bpf.ActionActionArgs) (Result, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.run(a)
}

// run is one BPF_PROG_RUN, and the records that the program wrote in it.
func (k *Kfunc) run(a *bpf.ActionActionArgs) (Result, error) {
	ret, err := k.objs.Action.Run(&ebpf.RunOptions{Context: a, ContextOut: a})
	if err != nil {
		return Result{}, fmt.Errorf("run the action program: %w", err)
	}
	r := resultOf(a)
	if err := k.records(a, &r); err != nil {
		return r, err
	}
	if ret != 0 || a.Ran == 0 {
		return r, errors.New("the action program could not write its record, so it sent nothing: the ring is full")
	}
	if syscall.Errno(-a.Err) == syscall.ENOSYS && !k.have {
		return r, ErrAbsent
	}
	return r, nil
}

func resultOf(a *bpf.ActionActionArgs) Result {
	f := a.Result.Flags
	r := Result{
		Sent:     f&bpf.ActionTsgtopFlagTSGTOP_SENT != 0,
		Answered: f&bpf.ActionTsgtopFlagTSGTOP_ANSWERED != 0,
		Checked:  f&bpf.ActionTsgtopFlagTSGTOP_CHECKED != 0,
		Same:     f&bpf.ActionTsgtopFlagTSGTOP_SAME != 0,
		Status:   a.Result.Status,
		Refusal:  a.Result.Why,
		Cookie:   a.Result.Cookie,
		SentNS:   int64(a.Result.SentNs), AnsweredNS: int64(a.Result.AnsweredNs),
	}
	if a.Err < 0 {
		r.Errno = syscall.Errno(-a.Err)
	}
	if r.Answered {
		r.DurNS = r.AnsweredNS - r.SentNS
	}
	r.Why = sentence(r)
	return r
}

// records reads what the program wrote in this run: one record before the call
// and one after. Others' ids in the ring are of runs whose reader gave up.
func (k *Kfunc) records(a *bpf.ActionActionArgs, r *Result) error {
	k.ring.SetDeadline(time.Now().Add(100 * time.Millisecond))
	for r.RanBefore == 0 || r.RanAfter == 0 {
		rec, err := k.ring.Read()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil // what was not written is not there: RAN says so
		}
		if err != nil {
			return fmt.Errorf("read the action program's records: %w", err)
		}
		d, ok := decode(rec.RawSample)
		if !ok || d.Id != a.Id || d.Op != a.Op {
			continue
		}
		switch d.Phase {
		case bpf.ActionActionPhaseACTION_BEFORE:
			r.RanBefore = int64(d.AtNs)
		case bpf.ActionActionPhaseACTION_AFTER:
			r.RanAfter = int64(d.AtNs)
		}
	}
	return nil
}

// decode reads one record of the ring.
func decode(b []byte) (bpf.ActionActionRecord, bool) {
	var d bpf.ActionActionRecord
	if len(b) < binary.Size(d) {
		return d, false
	}
	_, err := binary.Decode(b, binary.NativeEndian, &d)
	return d, err == nil
}

func millis(d time.Duration) uint32 {
	return uint32(max(1, min(d, time.Second).Milliseconds()))
}
