//go:build linux

package actions

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"tsgtop/actions/journal"
	"tsgtop/internal/rm"
	"tsgtop/internal/rmdev"
	"tsgtop/internal/rmdev/rmfake"
	"tsgtop/internal/sched"
)

func TestFDSetsATimeslice(t *testing.T) {
	d := newDesk(t)
	in, err := d.fd.Inspect(context.Background(), d.target)
	if err != nil || in.Timeslice == nil || *in.Timeslice != 2048 || *in.Target.UniqueID != *d.target.UniqueID || len(in.Target.Contexts) != 8 {
		t.Fatalf("%+v, %v", in, err)
	}
	r := d.fd.Do(context.Background(), Request{ID: 7, Command: "c1", Op: sched.OpTimeslice, Target: in.Target, Value: 200, Expect: in.Timeslice, MeterRPC: true})
	if r.Err != nil || !r.Sent || !r.Answered || r.Status != 0 {
		t.Fatalf("%+v", r)
	}
	if l := ranOf([]Result{r}); l.State != sched.LampYes {
		t.Errorf("RAN %+v", l)
	}
	if a := acceptedOf(r); a.State != sched.LampYes || a.Where != "gsp" || a.RPCus == nil || *a.RPCus < 250 || a.Inferred {
		t.Errorf("ACCEPTED %+v", a)
	}
	if r.RPC.Start < r.Start.Add(-50*time.Microsecond) || r.RPC.Start.Add(r.RPC.Took) > r.End.Add(50*time.Microsecond) {
		t.Errorf("the RPC, %d for %v, is not within the call, %d to %d", r.RPC.Start, r.RPC.Took, r.Start, r.End)
	}
	if r.Before == nil || r.After == nil || r.After.Save <= r.Before.Save {
		t.Errorf("counters %+v %+v", r.Before, r.After)
	}
	in, err = d.fd.Inspect(context.Background(), d.target)
	if err != nil || *in.Timeslice != 200 {
		t.Errorf("now %+v, %v", in, err)
	}
	if want := []uint32{rm.RPCMeterOn, rm.RPCMeterOff, rm.RPCMeterReset}; !slices.Equal(d.card.history, want) {
		t.Errorf("the meter was told %v, want %v", d.card.history, want)
	}
	d.quiet(t)
}

// Each status, from the driver and from the GSP: where it was answered is told.
func TestFDStatuses(t *testing.T) {
	for _, c := range []struct {
		op     sched.Op
		cmd    uint32
		status uint32 // 0: success
		local  bool   // the GSP is not asked
		state  sched.LampState
		where  string
		words  string
	}{
		{sched.OpTimeslice, rm.CtrlTSGSetTimeslice, 0, true, sched.LampNo, "driver", "a stub"},
		{sched.OpPreempt, rm.CtrlTSGPreempt, 0, false, sched.LampYes, "gsp", "NV_OK"},
		{sched.OpInterleave, rm.CtrlTSGSetInterleave, 0x56, false, sched.LampNo, "gsp", "GSP refused"},
		{sched.OpInterleave, rm.CtrlTSGSetInterleave, 0x56, true, sched.LampNo, "driver", "driver refused"},
		{sched.OpTimeslice, rm.CtrlTSGSetTimeslice, 0x1b, true, sched.LampNo, "driver", "0x1b"},
		{sched.OpTimeslice, rm.CtrlTSGSetTimeslice, 0x23, true, sched.LampNo, "driver", "0x23"},
		{sched.OpTimeslice, rm.CtrlTSGSetTimeslice, 0x1f, false, sched.LampNo, "gsp", "0x1f"},
		{sched.OpPreempt, rm.CtrlTSGPreempt, 0x65, false, sched.LampNo, "gsp", "TIMEOUT"},
		{sched.OpPreempt, rm.CtrlTSGPreempt, 0xfff0, false, sched.LampNo, "gsp", "0xfff0"},
	} {
		d := newDesk(t)
		if c.status != 0 {
			d.card.answers[c.cmd] = c.status
		}
		d.card.local[c.cmd] = c.local
		a := acceptedOf(d.do(c.op, 2))
		if a.State != c.state || a.Where != c.where || a.StatusCode != c.status || !strings.Contains(a.Why, c.words) {
			t.Errorf("%s, status 0x%x, local %v: %+v", c.op, c.status, c.local, a)
		}
		d.quiet(t)
	}
}

// Of several RPCs within the call, its own is the last; one that fills too
// little of the call proves nothing.
func TestCallRPC(t *testing.T) {
	at := func(us int64) clocks { return clocks{sched.Time(1e15 + us*1e3), us * 1e3} }
	e := func(fn, from, to uint64) rm.RPCMeterEntry {
		return rm.RPCMeterEntry{Function: fn, Start: from * 1e3, End: to * 1e3}
	}
	for _, c := range []struct {
		name    string
		entries []rm.RPCMeterEntry
		exact   bool
		seen    bool
		took    time.Duration
	}{
		{"none", []rm.RPCMeterEntry{}, true, false, 0},
		{"unreadable", nil, false, false, 0},
		{"own", []rm.RPCMeterEntry{e(76, 1010, 1400)}, true, true, 390 * time.Microsecond},
		{"another function", []rm.RPCMeterEntry{e(103, 1010, 1400)}, true, false, 0},
		{"before", []rm.RPCMeterEntry{e(76, 900, 1400)}, true, false, 0},
		{"after", []rm.RPCMeterEntry{e(76, 1010, 1500)}, true, false, 0},
		{"another's first", []rm.RPCMeterEntry{e(76, 1001, 1100), e(76, 1110, 1410)}, true, true, 300 * time.Microsecond},
		{"only another's", []rm.RPCMeterEntry{e(76, 1001, 1100)}, false, false, 0},
	} {
		r := callRPC(c.entries, at(1000), at(1420))
		if r.Exact != c.exact || r.Seen != c.seen || r.Took != c.took || !r.Exact && r.Why == "" {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
}

// Whatever does not fit the target that was meant: nothing is sent.
func TestFDIdentity(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*testing.T, *desk)
		want   error
	}{
		{"process gone", func(_ *testing.T, d *desk) { d.process.Exit() }, ErrGone},
		{"another process of that pid", func(_ *testing.T, d *desk) { d.card.starts[400] = 9001 }, ErrReplaced},
		{"client closed", func(_ *testing.T, d *desk) { d.process.Close(9) }, ErrGone},
		{"TSG freed", func(_ *testing.T, d *desk) { d.client.Free(uint32(d.target.Object.Handle)) }, ErrGone},
		{"other unique id", func(_ *testing.T, d *desk) { d.target.UniqueID = sched.Ptr(*d.target.UniqueID + 1) }, ErrReplaced},
		{"other contexts", func(_ *testing.T, d *desk) { d.target.UniqueID, d.target.Contexts = nil, []uint32{0x9999} }, ErrReplaced},
		{"other number", func(_ *testing.T, d *desk) { d.target.TSG++ }, ErrReplaced},
		{"not a TSG", func(_ *testing.T, d *desk) { d.target.Object.Handle = 0x5c000001 }, ErrReplaced},
		{"no such GPU", func(_ *testing.T, d *desk) { d.target.GPU = 3 }, ErrGone},
		{"kernel client", func(_ *testing.T, d *desk) { d.target.PID = 0 }, ErrUnfit},
		{"client of no file", func(_ *testing.T, d *desk) {
			d.target.Object.Client = sched.Handle(d.card.KernelClient().Handle)
		}, ErrGone},
		{"restarted copy", func(t *testing.T, d *desk) {
			// The same handles, number and pid: only what is never reused differs.
			d.card.Lock()
			index := d.client.Handle & 0xfffff
			d.card.NextIndex = index
			d.card.Unlock()
			d.process.Exit()
			p := d.card.AddProcess(400, "train.py")
			p.Open(9)
			c := p.NewClient(9)
			copied := c.CUDA(d.gpu, 0x5c000000)[0]
			if sched.Handle(c.Handle) != d.target.Object.Client || sched.Handle(copied.Handle) != d.target.Object.Handle {
				t.Fatalf("the copy has other handles: %08x/%08x", c.Handle, copied.Handle)
			}
			d.target.TSG = int(copied.Number)
		}, ErrReplaced},
		{"value moved", func(_ *testing.T, d *desk) {}, ErrMoved},
	} {
		d := newDesk(t)
		c.change(t, d)
		expect := uint64(2048)
		if c.want == ErrMoved {
			expect = 1000
		}
		r := d.fd.Do(context.Background(), Request{ID: 9, Command: "c", Op: sched.OpTimeslice, Target: d.target, Value: 200, Expect: &expect, MeterRPC: true})
		if r.Sent || !errors.Is(r.Err, c.want) {
			t.Errorf("%s: %+v, want %v", c.name, r, c.want)
		}
		if n := d.card.Calls(rm.CtrlTSGSetTimeslice); n != 0 {
			t.Errorf("%s: it was sent %d times", c.name, n)
		}
		if c.want == ErrUnfit {
			continue
		}
		d.quiet(t)
	}
}

// A channel is freed after the value was changed: it is the same TSG still, by
// its unique id, and the value must come back.
func TestFDChannelsChange(t *testing.T) {
	d := newDesk(t)
	if r := d.do(sched.OpTimeslice, 200); r.Err != nil {
		t.Fatal(r.Err)
	}
	d.target.Contexts = append(d.target.Contexts, 0x9999)
	if o := putBack(context.Background(), d.fd, sched.OpTimeslice, d.target, "c1", []uint64{200}, sched.Ptr(uint64(2048))); o.State != OutcomeRestored {
		t.Errorf("%+v", o)
	}
	d.target.UniqueID = nil // as before the first look at it
	if in, err := d.fd.Inspect(context.Background(), d.target); err != nil || in.Target.UniqueID == nil || slices.Contains(in.Target.Contexts, 0x9999) {
		t.Errorf("%+v, %v", in, err)
	}
	d.quiet(t)
}

// A forked child holds the client's file, and the process that the TSG was known
// by has ended: it is still the same TSG, and what was changed can be put back.
func TestFDForkedChildHoldsTheFile(t *testing.T) {
	d := newDesk(t)
	if r := d.do(sched.OpTimeslice, 200); r.Err != nil {
		t.Fatal(r.Err)
	}
	d.card.AddProcess(402, "other").Open(4)
	d.card.starts[401], d.card.starts[402] = 9100, 9200
	d.process.Fork(401)
	d.process.Exit()
	o := putBack(context.Background(), d.fd, sched.OpTimeslice, d.target, "c1", []uint64{200}, sched.Ptr(uint64(2048)))
	if o.State != OutcomeRestored {
		t.Errorf("%+v", o)
	}
	d.quiet(t)
}

// When a call is back, nothing of the target's process is held: it can end at
// once, all of it. Nor is it while the witness is waited for.
func TestFDHoldsNothingAfterwards(t *testing.T) {
	d := newDesk(t)
	for i := range 50 {
		if r := d.do(sched.OpTimeslice, uint64(200+i)); r.Err != nil {
			t.Fatal(r.Err)
		}
		if n := d.fd.rm.PendingCloses(); n != 0 {
			t.Fatalf("%d descriptors are being closed still", n)
		}
	}
	base := d.card.OpenFiles()
	d.card.witness.waiting = func() {
		if n := d.card.OpenFiles(); n != base {
			t.Errorf("%d descriptors are open while the witness is waited for, want %d", n, base)
		}
	}
	d.do(sched.OpTimeslice, 400)
	d.card.witness.waiting = nil
	d.quiet(t)
}

// A pid that was reused between the look and the call must not be taken: the
// process dies in the middle of being identified.
func TestFDProcessDiesInTheMiddle(t *testing.T) {
	d := newDesk(t)
	d.card.before = func(cmd uint32) {
		if cmd == rm.CtrlTSGInfo {
			d.process.Exit()
		}
	}
	r := d.do(sched.OpTimeslice, 200)
	// The borrowed descriptor keeps the dying process's objects for these
	// milliseconds: the call may reach them, and must reach nothing else.
	if r.Err != nil && !errors.Is(r.Err, ErrGone) {
		t.Errorf("%+v", r)
	}
	d.card.before = nil
	d.quiet(t)
}

// Without a witness, and with one that does not see the call.
func TestFDRanWithoutWitness(t *testing.T) {
	d := newDesk(t)
	d.card.witness.blind = true
	if l := ranOf([]Result{d.do(sched.OpTimeslice, 200)}); l.State != sched.LampNo {
		t.Errorf("a blind program: %+v", l)
	}
	d.fd.witness, d.fd.whyBlind = nil, "the probe of RM calls is not attached: no root"
	if l := ranOf([]Result{d.do(sched.OpTimeslice, 200)}); l.State != sched.LampUnknown || !strings.Contains(l.Why, "no root") {
		t.Errorf("no program: %+v", l)
	}
}

// Why it cannot be used is said beforehand.
func TestFDWhy(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*rmfake.Driver)
		want   string
	}{
		"no driver":         {func(d *rmfake.Driver) { d.Missing = true }, "no NVIDIA"},
		"own pid namespace": {func(d *rmfake.Driver) { d.PIDNamespace = "pid:[4026532999]" }, "pid namespace of its own"},
		"yama":              {func(d *rmfake.Driver) { d.Yama = "3" }, "ptrace_scope is 3"},
	} {
		drv := rmfake.New()
		drv.AddGPU()
		c.change(drv)
		f := NewFD(rmdev.New(drv), journal.Memory(), journal.Owner{}, nil, "")
		if why := f.Why(); !strings.Contains(why, c.want) {
			t.Errorf("%s: %q", name, why)
		}
	}
	d := newDesk(t)
	d.card.RefuseBorrow = true
	if r := d.do(sched.OpPreempt, 0); r.Sent || r.Err == nil || !errors.Is(r.Err, rmdev.ErrRefused) {
		t.Errorf("pidfd_getfd refused: %+v", r)
	}
}

// The lamps by duration, where no RPC was witnessed, are labelled as inferred.
func TestAcceptedInferred(t *testing.T) {
	for _, c := range []struct {
		took  time.Duration
		state sched.LampState
		where string
	}{
		{400 * time.Microsecond, sched.LampYes, "gsp"},
		{20 * time.Microsecond, sched.LampUnknown, "driver"},
		{100 * time.Microsecond, sched.LampUnknown, "unknown"},
	} {
		a := acceptedOf(Result{Sent: true, Answered: true, Start: 1, End: sched.Time(1).Add(c.took), RPC: RPC{Why: "the meter is in use"}})
		if a.State != c.state || a.Where != c.where || a.Inferred != (c.where != "unknown") || !strings.Contains(a.Why, "the meter is in use") {
			t.Errorf("%v: %+v", c.took, a)
		}
	}
	if a := acceptedOf(Result{Sent: true, Errno: 22, Start: 1, End: 2}); a.State != sched.LampNo || !strings.Contains(a.Why, "errno 22") {
		t.Errorf("%+v", a)
	}
	if a := acceptedOf(Result{Sent: true, Answered: true, NoGSP: true, Start: 1, End: 2}); a.State != sched.LampYes || a.Where != "driver" {
		t.Errorf("a GPU without a GSP: %+v", a)
	}
}

// One call of a series of which RM gave no status leaves the lamp unknown; one
// that was refused, no.
func TestAcceptedOfSeries(t *testing.T) {
	good := Result{Sent: true, Answered: true, Start: 1, End: 400_001, RPC: RPC{Exact: true, Seen: true, Took: 300 * time.Microsecond}}
	silent := Result{Sent: true, Start: 1, End: 400_001, Err: errors.New("no answer")}
	refused := good
	refused.Status = 0x56
	for _, c := range []struct {
		results []Result
		state   sched.LampState
		words   string
	}{
		{[]Result{good, good}, sched.LampYes, "2 of 2 calls"},
		{[]Result{good, silent, good}, sched.LampUnknown, "RM gave no status"},
		{[]Result{good, silent, refused}, sched.LampNo, "refused"},
		{[]Result{good, {Err: ErrGone}}, sched.LampYes, "1 of 2 calls"},
	} {
		if a := acceptedOfAll(c.results); a.State != c.state || !strings.Contains(a.Why, c.words) {
			t.Errorf("%+v: %+v", c.results, a.Lamp)
		}
	}
}
