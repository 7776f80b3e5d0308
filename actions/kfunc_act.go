//go:build linux

package actions

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tsgtop/actions/kfunc"
	"tsgtop/bpf"
	"tsgtop/internal/rm"
	"tsgtop/internal/rmdev"
	"tsgtop/internal/sched"
)

// answerPatience is how long a call may take: the driver gives up an RPC to a
// GSP that does not answer after up to 45 s.
const answerPatience = 60 * time.Second

// KFunc acts through the companion kernel module: an eBPF program calls its
// kfuncs, which ask RM with kernel privilege. No descriptor of the target's is
// borrowed. RM's RPC meter, which tells whether the GSP was asked, is read on a
// client of our own, the same as FD's.
type KFunc struct {
	fd *FD

	mu    sync.Mutex
	prog  *kfunc.Kfunc
	calls uint64 // ids of questions that belong to no command
}

// NewKFunc makes the actuator. fd gives the driver's devices and the meter.
func NewKFunc(fd *FD) *KFunc { return &KFunc{fd: fd} }

// Name is "kfunc".
func (k *KFunc) Name() string { return "kfunc" }

// Why says why the module cannot be used here.
func (k *KFunc) Why() string {
	if why := kfunc.ThisMachine().WhyNot(); why != "" {
		return why
	}
	if why := k.fd.foreignPIDs(); why != "" {
		return why
	}
	if _, err := k.program(); err != nil {
		return err.Error()
	}
	return ""
}

// program loads the eBPF program, once.
func (k *KFunc) program() (*kfunc.Kfunc, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.prog == nil {
		prog, err := kfunc.Open()
		if err != nil {
			return nil, err
		}
		if why := prog.WhyNot(); why != "" {
			return nil, fmt.Errorf("%s: %w", why, closed(prog))
		}
		k.prog = prog
	}
	return k.prog, nil
}

func closed(prog *kfunc.Kfunc) error {
	if err := prog.Close(); err != nil {
		return err
	}
	return kfunc.ErrAbsent
}

// Release lets go of the driver and of the module.
func (k *KFunc) Release() {
	k.fd.Release()
	k.mu.Lock()
	prog := k.prog
	k.prog = nil
	k.mu.Unlock()
	if prog != nil {
		prog.Close()
	}
}

// ask is an id for a question that belongs to no command.
func (k *KFunc) ask() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls++
	return 1<<63 | k.calls
}

// meet makes sure that the target is there and the one that is meant, as FD's
// does, without its file. done gives the devices back.
func (k *KFunc) meet(t sched.Target) (in Inspection, s *session, gpu *rmdev.AttachedGPU, prog *kfunc.Kfunc, done func(), err error) {
	if t.PID <= 0 || t.Object.Client == 0 || t.Object.Handle == 0 {
		return in, nil, nil, nil, nil, fmt.Errorf("TSG %s: %w: it belongs to no process that is known; only TSGs of a process's own RM client can be acted on", t.TSGID, ErrUnfit)
	}
	if prog, err = k.program(); err != nil {
		return in, nil, nil, nil, nil, err
	}
	if s, gpu, done, err = k.fd.use(t.GPU); err != nil {
		return in, nil, nil, nil, nil, err
	}
	fail := func(err error) (Inspection, *session, *rmdev.AttachedGPU, *kfunc.Kfunc, func(), error) {
		done()
		return in, nil, nil, nil, nil, fmt.Errorf("TSG %s of pid %d: %w", t.TSGID, t.PID, err)
	}
	rights := rm.AccessRightsParams{Object: uint32(t.Object.Client), Client: uint32(t.Object.Client)}
	if st, err := s.dev.ControlOn(s.dev.Client(), s.dev.Client(), rm.CtrlAccessRights, rmdev.Bytes(&rights)); err != nil {
		return fail(err)
	} else if st != 0 {
		return fail(fmt.Errorf("%w: its RM client %s has ended", ErrGone, t.Object.Client))
	}
	if t.UniqueID == nil || !s.layout.UniqueIDs {
		// Nothing of RM's tells it from a restarted copy: its process must be the same.
		start, err := k.fd.processStart(t.PID)
		if err != nil {
			return fail(fmt.Errorf("%w: when its process started cannot be read: %w", ErrGone, err))
		}
		if t.Start != 0 && start != t.Start {
			return fail(errOther)
		}
		t.Start = start
	}
	id, r, err := prog.Identity(k.ask(), t.Object, time.Second)
	switch {
	case err != nil:
		return fail(err)
	case r.Errno != 0:
		return fail(fmt.Errorf("who it is was not answered: %s", r.Why))
	case r.Status != 0:
		return fail(fmt.Errorf("%w: its class: %s", ErrGone, rm.StatusName(r.Status)))
	}
	if in, err = inspectionOf(t, id); err != nil {
		return fail(err)
	}
	return in, s, gpu, prog, done, nil
}

// inspectionOf compares what RM says of a TSG with what was meant.
func inspectionOf(t sched.Target, id bpf.ActionTsgtopIdentity) (in Inspection, err error) {
	if id.Class != rm.ClassTSG {
		return in, fmt.Errorf("%w: object %s is of class %s, no TSG", ErrReplaced, t.Object, rm.ClassName(id.Class))
	}
	if t.TSG >= 0 && id.Number != uint32(t.TSG) {
		return in, fmt.Errorf("%w: %s is TSG %d now, not %d", ErrReplaced, t.Object, id.Number, t.TSG)
	}
	t.TSG = int(id.Number)
	if id.Known&bpf.ActionTsgtopKnownTSGTOP_KNOWN_TIMESLICE != 0 {
		in.Timeslice = sched.Ptr(id.TimesliceUs)
	}
	if id.Known&bpf.ActionTsgtopKnownTSGTOP_KNOWN_UNIQUE == 0 {
		if t.UniqueID != nil {
			return in, fmt.Errorf("%w: its unique id cannot be asked for", ErrUnfit)
		}
		in.Warnings = append(in.Warnings, "this TSG gives no id that is never reused: that it is still the same one rests on its process's start time, its handle and its number")
		in.Target = t
		return in, nil
	}
	if t.UniqueID != nil && *t.UniqueID != id.Unique {
		return in, fmt.Errorf("%w: it has the same handle and number and another unique id (%d, not %d): a restarted copy", ErrReplaced, id.Unique, *t.UniqueID)
	}
	now := id.Contexts[:min(int(id.N_contexts), len(id.Contexts))]
	if err := sameContexts(t, now); err != nil {
		return in, err
	}
	t.UniqueID, t.Contexts = sched.Ptr(id.Unique), slices.Clone(now)
	in.Target = t
	return in, nil
}

// Inspect asks who the target is now.
func (k *KFunc) Inspect(_ context.Context, t sched.Target) (Inspection, error) {
	in, _, _, _, done, err := k.meet(t)
	if err != nil {
		return Inspection{}, err
	}
	done()
	return in, nil
}

// Counters reads the GSP's switch counters; nil where they do not answer.
func (k *KFunc) Counters(_ context.Context, t sched.Target) *Counters {
	in, _, _, prog, done, err := k.meet(t)
	if err != nil {
		return nil
	}
	defer done()
	return k.counters(prog, in.Target)
}

func (k *KFunc) counters(prog *kfunc.Kfunc, t sched.Target) *Counters {
	s, r, err := prog.Switches(k.ask(), t, time.Second)
	if err != nil || r.Errno != 0 || !r.Answered || r.Status != 0 {
		return nil
	}
	return &Counters{At: wallOf(r.SentNS), Until: wallOf(r.AnsweredNS), Save: s.Save, WFI: s.Wfi, CILP: s.Cilp}
}

// Do sends one call. The module checks once more, right before it, that the
// target is the one that is meant.
func (k *KFunc) Do(ctx context.Context, q Request) (r Result) {
	in, s, gpu, prog, done, err := k.meet(q.Target)
	if err != nil {
		return Result{Err: err}
	}
	defer done()
	if q.Op == sched.OpTimeslice {
		r.WasNow = in.Timeslice
		if q.Expect != nil && (r.WasNow == nil || *r.WasNow != *q.Expect) {
			r.Err = fmt.Errorf("timeslice of %s: %w: it is %s us now, not %d us", q.Target.Object, ErrMoved, numberOr(r.WasNow, "unknown"), *q.Expect)
			return r
		}
		if err := reversible(r.WasNow); err != nil {
			r.Err = fmt.Errorf("timeslice of %s: %w", q.Target.Object, err)
			return r
		}
	}
	r.NoGSP = gpu.Information.Firmware == "N/A"
	if q.MeterRPC {
		r.Before = k.counters(prog, in.Target)
	}
	var disarm disarm
	defer func() { disarm.drop() }() // whatever happens
	r.RPC.Why = unwatched
	if r.NoGSP {
		r.RPC.Why = ""
	} else if q.MeterRPC {
		disarm, r.RPC.Why = k.fd.meter.arm(s.dev)
	}
	if err := ctx.Err(); err != nil {
		r.Err = err
		return r
	}
	// Around the whole run of the program: what the module asks RM beside the call
	// is answered by the driver itself. The program's own stamps are of another
	// clock than the meter's, and too narrow a window would call an RPC none.
	before := readClocks()
	came, err := prog.Do(q.ID, q.Op, in.Target, q.Value, q.Wait, answerPatience)
	after := readClocks()
	r.take(came, err)
	if disarm != nil {
		entries := disarm()
		disarm = nil
		if r.Answered {
			r.RPC = callRPCWithin(entries, before, after, time.Duration(came.DurNS))
			if !r.RPC.Seen && len(s.gpus) > 1 {
				r.RPC.Exact, r.RPC.Why = false, "this machine has several GPUs, and RM's RPC meter can lose an RPC where two GPUs' race"
			}
		}
	}
	if q.MeterRPC && r.Sent {
		r.After = k.counters(prog, in.Target)
	}
	return r
}

// reversible refuses to change a timeslice that the module would not take back: RM
// takes 0 and numbers without end, the module does not.
func reversible(now *uint64) error {
	if now == nil || *now >= kfunc.MinTimesliceUS && *now <= kfunc.MaxTimesliceUS {
		return nil
	}
	return fmt.Errorf("%w: it is %d us now, which the module would not put back (%d to %d us); --actuator fd can", ErrBounds, *now, kfunc.MinTimesliceUS, kfunc.MaxTimesliceUS)
}

// Entered tells whether the program wrote its record before a call that RM has
// not answered yet, and in which words.
func (k *KFunc) Entered(id uint64) (why string, ok bool) {
	k.mu.Lock()
	prog := k.prog
	k.mu.Unlock()
	if prog == nil || !prog.Waiting(id) {
		return "", false
	}
	return "the eBPF program that makes the call wrote its record before it; RM has not answered yet", true
}

// take reads what the program and the module said of one call.
func (r *Result) take(came kfunc.Result, err error) {
	r.Ran = Ran{Have: true, Made: true, Entry: came.RanBefore != 0, Exit: came.RanAfter != 0}
	if r.Ran.Entry {
		r.Ran.At = wallOf(came.RanBefore)
	}
	if r.Ran.Entry && r.Ran.Exit {
		r.Ran.Took = time.Duration(came.RanAfter - came.RanBefore)
	}
	r.Sent, r.Answered, r.Status = came.Sent, came.Answered, came.Status
	if came.Sent {
		r.Start = wallOf(came.SentNS)
	}
	if came.Answered {
		r.End = wallOf(came.AnsweredNS)
	}
	switch {
	case err != nil:
		r.Err = err
	case came.Refusal == bpf.ActionTsgtopWhyTSGTOP_WHY_GONE:
		r.Err = fmt.Errorf("%w: %s", ErrGone, came.Why)
	case came.Refusal == bpf.ActionTsgtopWhyTSGTOP_WHY_OTHER:
		r.Err = fmt.Errorf("%w: %s", ErrReplaced, came.Why)
	case came.Refusal == bpf.ActionTsgtopWhyTSGTOP_WHY_BOUNDS:
		r.Err = fmt.Errorf("%w: %s", ErrBounds, came.Why)
	case came.Errno == unix.EINPROGRESS:
		// It is in the driver, whatever else we know.
		r.Sent, r.Err = true, fmt.Errorf("RM has not answered within %s", answerPatience)
	case came.Errno != 0:
		r.Err = fmt.Errorf("%s: %w", came.Why, came.Errno)
	}
}

// wallOf is the wall clock's time at an instant of CLOCK_MONOTONIC of moments
// ago. Of a few readings the one counts in which the two clocks were read
// closest together: in between the thread can have been put aside.
func wallOf(monotonic int64) sched.Time {
	var at sched.Time
	narrowest := int64(-1)
	for range 3 {
		a := monotonicClock()
		w := sched.Now()
		b := monotonicClock()
		if narrowest < 0 || b-a < narrowest {
			narrowest = b - a
			at = w.Add(time.Duration(monotonic - (a + (b-a)/2)))
		}
	}
	return at
}

func monotonicClock() int64 {
	var ts unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano()
}

// MeterOff turns off RM's RPC meter where a tsgtop that has died left it on.
func (k *KFunc) MeterOff() error { return k.fd.MeterOff() }
