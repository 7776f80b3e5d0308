//go:build linux

package actions

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"tsgtop/actions/journal"
	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
)

// The meter is left alone where it is another's, and then nothing is claimed.
func TestFDMeterOfAnother(t *testing.T) {
	t.Run("on", func(t *testing.T) {
		d := newDesk(t)
		d.card.locked = true
		a := acceptedOf(d.do(sched.OpTimeslice, 200))
		if a.State != sched.LampYes || a.Where != "gsp" || !a.Inferred || !strings.Contains(a.Why, "in use by another tool") {
			t.Errorf("%+v", a)
		}
		if len(d.card.history) != 0 {
			t.Errorf("it was told %v", d.card.history)
		}
		d.quiet(t)
	})
	t.Run("unread log", func(t *testing.T) {
		d := newDesk(t)
		d.card.entries = []rm.RPCMeterEntry{{Start: 1, End: 2, Function: 76}}
		a := acceptedOf(d.do(sched.OpTimeslice, 200))
		if !a.Inferred || !strings.Contains(a.Why, "left alone") || len(d.card.history) != 0 || len(d.card.entries) != 1 {
			t.Errorf("%+v, history %v", a, d.card.history)
		}
		d.quiet(t)
	})
	t.Run("of another tsgtop", func(t *testing.T) {
		d := newDesk(t)
		other, err := journal.Open(d.journal.Path())
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		unlock, err := other.LockMeter()
		if err != nil {
			t.Fatal(err)
		}
		a := acceptedOf(d.do(sched.OpTimeslice, 200))
		if !a.Inferred || !strings.Contains(a.Why, "another tsgtop") {
			t.Errorf("%+v", a)
		}
		unlock()
		if a := acceptedOf(d.do(sched.OpTimeslice, 300)); a.Inferred || a.Where != "gsp" {
			t.Errorf("once it is free: %+v", a)
		}
		d.quiet(t)
	})
	t.Run("left on by a crash", func(t *testing.T) {
		d := newDesk(t)
		d.card.on = true
		d.card.entries = []rm.RPCMeterEntry{{Start: 1, End: 2, Function: 76}}
		dead := journal.Owner{PID: 1 << 22, Start: 1}
		if err := d.journal.Meter(dead, true); err != nil {
			t.Fatal(err)
		}
		if _, err := RestoreAll(context.Background(), d.fd, d.journal, false); err != nil {
			t.Fatal(err)
		}
		if d.card.on || len(d.card.entries) != 0 {
			t.Error("it is on still")
		}
		d.quiet(t)
	})
	t.Run("of another call that RM does not answer", func(t *testing.T) {
		d := newDesk(t)
		unlock := make(chan struct{})
		d.fd.meter.mu.Lock()
		time.AfterFunc(5*time.Second, func() { close(unlock); d.fd.meter.mu.Unlock() })
		a := acceptedOf(d.do(sched.OpTimeslice, 200))
		select {
		case <-unlock:
			t.Error("it waited for it, with what it knew of its target")
		default:
		}
		if a.State != sched.LampYes || !a.Inferred || !strings.Contains(a.Why, "another command") {
			t.Errorf("%+v", a)
		}
	})
	t.Run("not to be turned off for a while", func(t *testing.T) {
		d := newDesk(t)
		d.card.stuck = true
		if a := acceptedOf(d.do(sched.OpTimeslice, 200)); !a.Inferred {
			t.Errorf("%+v", a)
		}
		if s, err := d.journal.State(); err != nil || s.Meter == nil || *s.Meter != d.fd.self {
			t.Errorf("the journal does not know that it is on: %+v, %v", s.Meter, err)
		}
		if a := acceptedOf(d.do(sched.OpTimeslice, 300)); !strings.Contains(a.Why, "left on") {
			t.Errorf("%+v", a)
		}
		d.card.stuck = false
		if a := acceptedOf(d.do(sched.OpTimeslice, 400)); a.State != sched.LampYes || a.Inferred {
			t.Errorf("once it can be: %+v", a)
		}
		d.quiet(t)
	})
	t.Run("of a call that panics", func(t *testing.T) {
		d := newDesk(t)
		d.card.witness.expecting = func() { panic("torn") }
		func() {
			defer func() { recover() }()
			d.do(sched.OpTimeslice, 200)
			t.Error("it did not panic")
		}()
		d.card.witness.expecting = nil
		if a := acceptedOf(d.do(sched.OpTimeslice, 300)); a.State != sched.LampYes || a.Inferred {
			t.Errorf("the next call: %+v", a)
		}
		d.quiet(t)
	})
	t.Run("of a call that is cancelled", func(t *testing.T) {
		d := newDesk(t)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		r := d.fd.Do(ctx, Request{ID: 1, Op: sched.OpTimeslice, Target: d.target, Value: 200, MeterRPC: true})
		if r.Sent || r.Err == nil || !slices.Contains(d.card.history, rm.RPCMeterOff) {
			t.Errorf("%+v, the meter was told %v", r, d.card.history)
		}
		d.quiet(t)
	})
	t.Run("several GPUs", func(t *testing.T) {
		d := newDesk(t)
		d.card.AddGPU()
		d.card.local[rm.CtrlTSGSetTimeslice] = true
		if a := acceptedOf(d.do(sched.OpTimeslice, 200)); a.State == sched.LampNo || a.Where == "driver" && !a.Inferred || !strings.Contains(a.Why, "several GPUs") {
			t.Errorf("no RPC seen on a machine of several GPUs: %+v", a)
		}
		d.card.local[rm.CtrlTSGSetTimeslice] = false
		if a := acceptedOf(d.do(sched.OpTimeslice, 300)); a.State != sched.LampYes || a.Where != "gsp" || a.Inferred {
			t.Errorf("an RPC seen: %+v", a)
		}
		d.quiet(t)
	})
	t.Run("the journal is full", func(t *testing.T) {
		d := newDesk(t)
		d.journal.Close()
		a := acceptedOf(d.do(sched.OpTimeslice, 200))
		if !a.Inferred || len(d.card.history) != 0 {
			t.Errorf("the meter was turned on without a note of it: %+v, %v", a, d.card.history)
		}
	})
}

// A meter that could not be turned off is left to the watcher, not forgotten.
func TestMeterIsLeftToTheWatcher(t *testing.T) {
	dir, g := newGPU(t)
	self, _ := journal.Self()
	c, j, err := fileController(dir, g, self, func(o *Options) { o.Watch, o.WatchArgs = true, []string{"stay"} })
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	t.Setenv("TSGTOP_TEST_GPU", g.path)
	if err := c.watch(); err != nil {
		t.Fatal(err)
	}
	if err := j.Meter(self, true); err != nil {
		t.Fatal(err)
	}
	c.Close(context.Background())
	for i := 0; i < 2000; i++ {
		if s, err := j.State(); err == nil && s.Meter == nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Error("nobody has turned it off")
}
