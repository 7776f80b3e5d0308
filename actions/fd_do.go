//go:build linux

package actions

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tsgtop/internal/rm"
	"tsgtop/internal/rmdev"
	"tsgtop/internal/sched"
)

// witnessPatience is how long the RAN witness may take to tell of a call that
// has come back.
const witnessPatience = 500 * time.Millisecond

// Do sends one call. It blocks until RM has answered: an RPC to a GSP that does
// not answer is given up by the driver after up to 45 s. ctx is looked at only
// before the call: nothing can call it back.
func (f *FD) Do(ctx context.Context, q Request) (r Result) {
	// The witness knows the call by its thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	m, err := f.meet(q.Target)
	if err != nil {
		return Result{Err: err}
	}
	defer m.close()
	cmd, params, err := callOf(q)
	if err != nil {
		return Result{Err: err}
	}
	client, object := uint32(q.Target.Object.Client), uint32(q.Target.Object.Handle)
	if q.Op == sched.OpTimeslice {
		if r.WasNow, err = m.expects(q); err != nil {
			r.Err = err
			return r
		}
	}
	caller, err := f.caller()
	if err != nil {
		return Result{Err: err}
	}
	defer f.giveCaller(caller)
	r.NoGSP = m.gpu.Information.Firmware == "N/A"
	if q.MeterRPC {
		r.Before = m.counters()
	}
	var disarm disarm
	defer func() { disarm.drop() }() // whatever happens
	r.RPC.Why = unwatched
	if r.NoGSP {
		r.RPC.Why = ""
	} else if q.MeterRPC {
		disarm, r.RPC.Why = f.meter.arm(m.session.dev)
	}
	if err := ctx.Err(); err != nil {
		r.Err = err
		return r
	}
	witness := f.expect(&r, q, m.borrowed.FD(), caller)
	before := readClocks()
	status, err := caller.Control(m.borrowed.FD(), client, object, cmd, params)
	after := readClocks()
	r.Sent, r.Start, r.End = true, before.wall, after.wall
	if disarm != nil {
		entries := disarm()
		disarm = nil
		r.RPC = m.witnessed(callRPC(entries, before, after))
	}
	var e syscall.Errno
	switch {
	case errors.As(err, &e):
		r.Errno, r.Err = int(e), fmt.Errorf("%s on %s: %w", rm.ControlName(cmd), q.Target.Object, err)
	case err != nil:
		r.Sent, r.Err = false, err
	default:
		r.Status, r.Answered = status, true
	}
	if q.MeterRPC {
		r.After = m.counters()
	}
	m.close() // nothing of the target's is held while the witness is waited for
	if witness {
		f.seen(&r, q, cmd)
	}
	return r
}

// unwatched is why nothing is known of the RPC of a call in the middle of a series.
const unwatched = "the call was one of a series, of which the first and the last are watched"

// expects reads the timeslice just before the call: one that has moved is not
// overwritten.
func (m *meeting) expects(q Request) (now *uint64, err error) {
	var p rm.TimesliceParams
	st, err := m.borrowed.Control(uint32(q.Target.Object.Client), uint32(q.Target.Object.Handle), rm.CtrlTSGGetTimeslice, rmdev.Bytes(&p))
	if err == nil && st == 0 {
		now = sched.Ptr(p.TimesliceUS)
	}
	if q.Expect != nil && (now == nil || *now != *q.Expect) {
		return now, fmt.Errorf("timeslice of %s: %w: it is %s us now, not %d us", q.Target.Object, ErrMoved, numberOr(now, "unknown"), *q.Expect)
	}
	return now, nil
}

// witnessed is what the meter saw, with what it cannot know on this machine.
func (m *meeting) witnessed(r RPC) RPC {
	if !r.Seen && len(m.session.gpus) > 1 {
		r.Exact, r.Why = false, "this machine has several GPUs, and RM's RPC meter can lose an RPC where two GPUs' race"
	}
	return r
}

// expect tells the witness what is about to be sent.
func (f *FD) expect(r *Result, q Request, fd int, c *rmdev.Caller) bool {
	if f.witness == nil {
		r.Ran.Why = f.whyBlind
		return false
	}
	arg, params := c.Addresses()
	if err := f.witness.Expect(q.ID, q.Command, unix.Gettid(), fd, arg, params); err != nil {
		r.Ran.Why = "the eBPF program could not be told what to look for: " + err.Error()
		return false
	}
	r.Ran.Have = true
	return true
}

// seen asks the witness what it saw.
func (f *FD) seen(r *Result, q Request, cmd uint32) {
	own, err := f.witness.Wait(q.ID, witnessPatience)
	f.witness.Forget(unix.Gettid())
	r.Ran.Entry, r.Ran.Exit, r.Ran.At, r.Ran.Took = own.Entry, own.Exit, own.At, own.Took
	if err != nil {
		r.Ran.Why = err.Error()
	}
	if !own.Read {
		return
	}
	switch {
	case own.Number != cmd:
		r.Ran.Other = fmt.Sprintf("control 0x%x, not 0x%x", own.Number, cmd)
	case own.Client != q.Target.Object.Client || own.Object != q.Target.Object.Handle:
		r.Ran.Other = fmt.Sprintf("on object %s/%s", own.Client, own.Object)
	case own.Exit && r.Answered && own.Status != r.Status:
		r.Ran.Other = fmt.Sprintf("status 0x%x, not 0x%x", own.Status, r.Status)
	}
}

// callOf is the control that a request stands for. Its parameters' memory is
// copied by the Caller to where it does not move.
func callOf(q Request) (cmd uint32, params []byte, err error) {
	switch q.Op {
	case sched.OpTimeslice:
		return rm.CtrlTSGSetTimeslice, rmdev.Bytes(&rm.TimesliceParams{TimesliceUS: q.Value}), nil
	case sched.OpInterleave:
		return rm.CtrlTSGSetInterleave, rmdev.Bytes(&rm.InterleaveParams{Level: uint32(q.Value)}), nil
	case sched.OpPreempt:
		p := &rm.PreemptParams{}
		if q.Wait {
			p.Wait = 1
		}
		return rm.CtrlTSGPreempt, rmdev.Bytes(p), nil
	}
	return 0, nil, fmt.Errorf("operation %q: %w: there is none of that name", q.Op, ErrUnfit)
}

func numberOr(n *uint64, or string) string {
	if n == nil {
		return or
	}
	return fmt.Sprint(*n)
}

// Entered tells whether the witness saw a call go into the driver, and in which
// words.
func (f *FD) Entered(id uint64) (why string, ok bool) {
	if f.witness == nil {
		return "", false
	}
	own, _ := f.witness.Wait(id, 0)
	return sawEntry, own.Entry
}
