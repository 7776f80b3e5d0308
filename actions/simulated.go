package actions

import (
	"context"
	"fmt"
	"slices"

	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
	"tsgtop/internal/sim"
)

// Simulated acts on a simulated GPU.
type Simulated struct{ machine *sim.Machine }

// NewSimulated makes the actuator of a simulated machine.
func NewSimulated(m *sim.Machine) *Simulated { return &Simulated{m} }

// Name is "sim".
func (s *Simulated) Name() string { return "sim" }

// Why is empty: it always works.
func (s *Simulated) Why() string { return "" }

// Release does nothing: there are no devices.
func (s *Simulated) Release() {}

// Inspect asks the machine for the target.
func (s *Simulated) Inspect(_ context.Context, t sched.Target) (Inspection, error) {
	if t.PID <= 0 || t.Object.Client == 0 || t.Object.Handle == 0 {
		return Inspection{}, fmt.Errorf("TSG %s: %w: it belongs to no process that is known", t.TSGID, ErrUnfit)
	}
	us, status := s.machine.Timeslice(t)
	if status != 0 {
		return Inspection{}, fmt.Errorf("TSG %s of pid %d: %w: %s", t.TSGID, t.PID, ErrGone, rm.StatusName(status))
	}
	in := Inspection{Target: t, Timeslice: &us}
	for _, known := range s.machine.Targets() {
		if known.TSGID != t.TSGID || known.Object != t.Object {
			continue
		}
		if t.UniqueID != nil && *t.UniqueID != *known.UniqueID || t.PID != known.PID {
			return Inspection{}, fmt.Errorf("TSG %s of pid %d: %w: a restarted copy", t.TSGID, t.PID, ErrReplaced)
		}
		in.Target.UniqueID, in.Target.Contexts, in.Target.Start = known.UniqueID, slices.Clone(known.Contexts), known.Start
	}
	return in, nil
}

// Do sends one call to the simulated RM.
func (s *Simulated) Do(ctx context.Context, q Request) Result {
	in, err := s.Inspect(ctx, q.Target)
	if err != nil {
		return Result{Err: err}
	}
	if q.Op == sched.OpTimeslice && q.Expect != nil && *in.Timeslice != *q.Expect {
		return Result{WasNow: in.Timeslice, Err: fmt.Errorf("timeslice of %s: %w: it is %d us now, not %d us", q.Target.Object, ErrMoved, *in.Timeslice, *q.Expect)}
	}
	r := Result{Sent: true, Simulated: true, WasNow: in.Timeslice}
	if q.MeterRPC {
		r.Before = s.Counters(ctx, q.Target)
	}
	a, err := s.machine.Do(ctx, sim.Request{ID: q.Command, Op: q.Op, Target: in.Target, Value: q.Value, Wait: q.Wait})
	r.Start, r.End = a.Begin, a.End
	if err != nil {
		r.Err = err
		return r
	}
	r.Status, r.Answered = a.Status, true
	r.RPC = RPC{Exact: true, Seen: a.RPC > 0, Start: a.RPCAt, Took: a.RPC}
	r.Ran = Ran{Have: true, Entry: true, Exit: true, At: a.Begin, Took: a.End.Sub(a.Begin)}
	if q.MeterRPC {
		r.After = s.Counters(ctx, q.Target)
	}
	return r
}

// Counters reads the simulated GSP's switch counters.
func (s *Simulated) Counters(_ context.Context, t sched.Target) *Counters {
	at := s.machine.Now()
	c, status := s.machine.Counters(t)
	if status != 0 {
		return nil
	}
	return &Counters{At: at, Until: s.machine.Now(), Save: c.Save, WFI: c.WFI, CILP: c.CILP}
}

// Entered tells whether a call got into the driver: a simulated one always does.
func (s *Simulated) Entered(uint64) (why string, ok bool) { return sawEntry, true }
