package sim

import (
	"context"
	"fmt"
	"time"

	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
)

// Statuses that the simulated RM answers, as the real one does.
const (
	statusOK             uint32 = 0x00
	statusObjectNotFound uint32 = 0x57
	statusNotSupported   uint32 = 0x56
	statusInvalidClient  uint32 = 0x23
	statusCounterRefused uint32 = 0x1a // 0x20801215 on a copy engine's TSG
)

// Request is one command to a TSG.
type Request struct {
	ID     string // of the command: the calls that it makes carry it
	Op     sched.Op
	Target sched.Target
	Value  uint64 // timeslice in us, or interleave level
	Wait   bool   // preempt: wait for it (bWait)
}

// Result is what RM answered and how long it took, in simulated time. RPC is 0
// and Where is the driver where the GSP was not asked.
type Result struct {
	Status uint32
	Where  sched.Where
	Begin  sched.Time // of the call
	End    sched.Time
	RPC    time.Duration
	RPCAt  sched.Time // when the RPC began; 0: there was none
}

// Do sends a command. While Run runs, it returns when the call would; stepped
// by Advance, it returns at once, and its effects and its call's record come at
// their times. The error is only ever that ctx ended first; what RM thinks of
// the command is in the result's status.
func (m *Machine) Do(ctx context.Context, q Request) (Result, error) {
	m.mu.Lock()
	r := m.do(q)
	running := !m.wall.IsZero()
	m.mu.Unlock()
	if running {
		if err := m.Sleep(ctx, r.End.Sub(m.Now())); err != nil {
			return r, fmt.Errorf("%s of TSG %v on the simulated GPU: waiting for RM's answer: %w", q.Op, q.Target.TSGID, err)
		}
	}
	return r, nil
}

func (m *Machine) do(q Request) Result {
	begin := m.clock()
	took := func(r Result, rpc time.Duration) Result {
		// The ioctl and RM's own part: 10 to 25 us; a hung GSP answers late.
		r.Begin, r.RPC = begin, rpc
		r.End = begin.Add(m.config.Hang + rpc + time.Duration(10e3+m.rand.IntN(15e3)))
		if rpc > 0 {
			r.Where, r.RPCAt = sched.WhereGSP, begin.Add(m.config.Hang+6*time.Microsecond)
		} else {
			r.Where = sched.WhereDriver
		}
		m.calls = append(m.calls, m.callOf(q, r))
		return r
	}
	p, g := m.find(q.Target)
	if g == nil {
		status := statusInvalidClient
		if p != nil {
			status = statusObjectNotFound
		}
		return took(Result{Status: status}, 0)
	}
	behaviour := m.config.Preempt
	switch q.Op {
	case sched.OpTimeslice:
		behaviour = m.config.Timeslice
	case sched.OpInterleave:
		behaviour = m.config.Interleave
	}
	if behaviour == Stub {
		return took(Result{}, 0)
	}
	r := took(Result{}, m.rpcTime(q))
	if behaviour == Refuse || q.Op == sched.OpInterleave && q.Value > 2 {
		r.Status = statusNotSupported
		m.calls[len(m.calls)-1].Status = r.Status
		return r
	}
	if q.Op == sched.OpTimeslice {
		g.slice = q.Value // RM's own copy, which it reads back from, whatever the hardware does
	}
	if behaviour == Obey && g.engine == engineGR0 {
		m.effect(q, p.compute, r)
	}
	return r
}

// effect has the hardware do what was asked, when the GSP gets to it.
func (m *Machine) effect(q Request, g *tsg, r Result) {
	e := m.gpus[q.Target.GPU].engine
	switch q.Op {
	case sched.OpTimeslice:
		e.at(int64(r.RPCAt.Add(r.RPC/2)), func(*engine) { g.slice = q.Value })
	case sched.OpInterleave:
		e.at(int64(r.RPCAt.Add(r.RPC/2)), func(*engine) { g.slots = 1 << q.Value })
	case sched.OpPreempt:
		// A run that was on ended 395 to 430 us after the call began: p10 250
		// to 410, p90 424 to 459.
		after := 412e3 + 14e3*max(-2, min(2.5, m.rand.NormFloat64()))
		if m.rand.Float64() < 0.1 {
			after = 240e3 + 150e3*m.rand.Float64()
		}
		ends := int64(r.Begin.Add(m.config.Hang)) + int64(after)
		e.at(int64(r.RPCAt.Add(60*time.Microsecond)), func(e *engine) { e.preempt(g, ends) })
	}
}

// rpcTime is how long the GSP takes over a command.
func (m *Machine) rpcTime(q Request) time.Duration {
	low, high := 370, 470
	switch {
	case q.Op == sched.OpInterleave:
		low, high = 210, 340
	case q.Op == sched.OpPreempt && q.Wait:
		low, high = 515, 555
	case q.Op == sched.OpPreempt:
		low, high = 325, 345
	}
	return time.Duration(low+m.rand.IntN(high-low)) * time.Microsecond
}

// find gives the process that owns the target's client, and the TSG.
func (m *Machine) find(t sched.Target) (*process, *group) {
	for _, p := range m.procs {
		if p.closed || p.gpu != t.GPU {
			continue
		}
		for i := range p.groups {
			g := &p.groups[i]
			if g.runlist == t.Runlist && g.number == t.TSG {
				if t.Object.Client != 0 && (t.Object.Client != p.client || t.Object.Handle != g.object) {
					continue
				}
				return p, g
			}
		}
		if t.Object.Client == p.client {
			return p, nil
		}
	}
	return nil, nil
}

// callOf is the record of a command's call, as a probe would have seen it.
func (m *Machine) callOf(q Request, r Result) sched.Call {
	c := sched.Call{Start: r.Begin, End: r.End, PID: 1, TID: 1, Comm: "tsgtop", File: 1, Kind: sched.CallControl, Client: q.Target.Object.Client,
		Object: q.Target.Object.Handle, Status: r.Status, Where: r.Where, RPC: int64(r.RPC), Command: q.ID, Params: &sched.Params{}}
	switch q.Op {
	case sched.OpTimeslice:
		c.Number, c.Params.Timeslice = rm.CtrlTSGSetTimeslice, sched.Ptr(q.Value)
	case sched.OpInterleave:
		c.Number, c.Params.Interleave = rm.CtrlTSGSetInterleave, sched.Ptr(uint32(q.Value))
	case sched.OpPreempt:
		c.Number, c.Params.Wait = rm.CtrlTSGPreempt, sched.Ptr(q.Wait)
	}
	return c
}

// Timeslice is RM's own copy of a TSG's timeslice in us, as GET_TIMESLICE gives
// it: what was last set, whether or not the hardware does it.
func (m *Machine) Timeslice(t sched.Target) (us uint64, status uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, g := m.find(t); g != nil {
		return g.slice, statusOK
	}
	return 0, statusObjectNotFound
}

// Counters are the GSP's own counts of a TSG's switches, as 0x20801215 gives
// them: saves by WFI (the kernel had ended) and by CILP (in the middle of one).
type Counters struct{ Save, Restore, WFI, CTA, CILP, GFXP uint32 }

// Counters reads a TSG's switch counters. The GSP has none for copy engines.
func (m *Machine) Counters(t sched.Target) (Counters, uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, g := m.find(t)
	switch {
	case g == nil:
		return Counters{}, statusObjectNotFound
	case g.engine != engineGR0:
		return Counters{}, statusCounterRefused
	}
	if m.wall.IsZero() {
		return p.compute.counters, statusOK
	}
	m.advance(m.clock()) // the counters are the GSP's of this very moment
	return p.compute.counters, statusOK
}

// switchCounters is a reading of the compute TSG's counters.
func (p *process) switchCounters(at sched.Time) sched.SwitchCounters {
	c := &p.compute.counters
	return sched.SwitchCounters{Time: at, TSG: p.target().Object, Save: c.Save, Restore: c.Restore, WFI: c.WFI, CTA: c.CTA, CILP: c.CILP, GFXP: c.GFXP}
}

// Targets are the compute TSGs of the living processes, the first target first.
func (m *Machine) Targets() []sched.Target {
	m.mu.Lock()
	defer m.mu.Unlock()
	var targets []sched.Target
	for _, p := range m.procs {
		if !p.closed {
			targets = append(targets, p.target())
		}
	}
	return targets
}

// Interfere lets a process set its own TSG's timeslice, as others' tools can.
func (m *Machine) Interfere(t sched.Target, us uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, g := m.find(t)
	if g == nil {
		return
	}
	r := Result{Begin: m.clock(), Where: sched.WhereGSP, RPC: 400 * time.Microsecond}
	r.RPCAt, r.End = r.Begin.Add(6*time.Microsecond), r.Begin.Add(415*time.Microsecond)
	q := Request{Op: sched.OpTimeslice, Target: p.target(), Value: us}
	c := m.callOf(q, r)
	c.PID, c.TID, c.Comm, c.File = p.pid, p.pid, p.identity(0).Comm, uint32(p.pid)
	m.calls = append(m.calls, c)
	g.slice = us
	if m.config.Timeslice == Obey && g.engine == engineGR0 {
		m.effect(q, p.compute, r)
	}
}
