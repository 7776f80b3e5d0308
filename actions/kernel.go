//go:build linux

package actions

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"tsgtop/actions/kfunc"
	"tsgtop/internal/sched"
)

// module is the loaded program that calls the companion module.
type module interface {
	WhyNot() string
	Do(id uint64, op sched.Op, target sched.Target, value uint64, wait bool, limit time.Duration) (kfunc.Result, error)
	Wait(id, cookie uint64, limit time.Duration) (kfunc.Result, error)
}

// Kernel acts through the companion kernel module, by an eBPF program. The
// program's own records are the witness RAN. What only reads (who the target is,
// its timeslice, the GSP's counters, RM's RPC meter) goes the way of FD.
type Kernel struct {
	*FD
	module module
}

// NewKernel makes the actuator. reader is how the target is looked at.
func NewKernel(m *kfunc.Kfunc, reader *FD) *Kernel { return &Kernel{FD: reader, module: m} }

// Name is "kfunc".
func (k *Kernel) Name() string { return "kfunc" }

// Why says why the module cannot be used.
func (k *Kernel) Why() string {
	if why := k.module.WhyNot(); why != "" {
		return why
	}
	return k.FD.Why()
}

// How long one wait for the module is, and how long it is asked again at most:
// the driver gives up a GSP that does not answer after up to 45 s.
const (
	moduleWait     = time.Second
	modulePatience = 2 * time.Minute
)

// Do sends one call, and blocks until RM has answered.
func (k *Kernel) Do(ctx context.Context, q Request) (r Result) {
	m, err := k.meet(q.Target)
	if err != nil {
		return Result{Err: err}
	}
	defer m.close()
	if q.Op == sched.OpTimeslice {
		if r.WasNow, err = m.expects(q); err != nil {
			r.Err = err
			return r
		}
	}
	r.NoGSP = m.gpu.Information.Firmware == "N/A"
	r.RPC.Why = unwatched
	var disarm disarm
	if q.MeterRPC {
		r.Before = m.counters()
		if r.NoGSP {
			r.RPC.Why = ""
		} else {
			disarm, r.RPC.Why = k.meter.arm(m.session.dev)
		}
	}
	if err := ctx.Err(); err != nil {
		disarm.drop()
		r.Err = err
		return r
	}
	before := readClocks()
	res, err := k.module.Do(q.ID, q.Op, m.target, q.Value, q.Wait, moduleWait)
	sent := res.Sent // once it is, a failure to ask about it does not call it back
	for until := time.Now().Add(modulePatience); err == nil && res.Errno == syscall.EINPROGRESS && time.Now().Before(until); {
		first := res
		if res, err = k.module.Wait(q.ID, first.Cookie, moduleWait); err == nil {
			res.RanBefore, res.RanAfter = first.RanBefore, first.RanAfter
		} else {
			res = first
		}
		sent = sent || res.Sent
	}
	after := readClocks()
	r.Sent, r.Start, r.End = sent, before.wall, after.wall
	r.Ran = Ran{Have: true, Entry: res.RanBefore > 0, Exit: res.RanAfter > 0, Took: after.wall.Sub(before.wall)}
	if disarm != nil {
		r.RPC = m.witnessed(callRPC(disarm(), before, after))
	}
	switch {
	case err != nil:
		r.Err = err
	case res.Vanished():
		r.Sent, r.Err = false, fmt.Errorf("%w: %s", ErrReplaced, res.Why)
	case res.Answered && res.Sent:
		r.Status, r.Answered = res.Status, true
	default:
		r.Err = errors.New(res.Why)
	}
	if q.MeterRPC {
		r.After = m.counters()
	}
	return r
}
