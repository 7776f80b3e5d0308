//go:build linux

package discover

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"tsgtop/internal/rm"
	"tsgtop/internal/rmdev/rmfake"
	"tsgtop/internal/sched"
)

// readings reads the counters once, as by TSG.
func readings(t *testing.T, x *Discoverer) map[sched.Object]sched.SwitchCounters {
	t.Helper()
	events, _, err := x.readCounters(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	out := map[sched.Object]sched.SwitchCounters{}
	for _, e := range events {
		c := e.(sched.SwitchCounters)
		if _, twice := out[c.TSG]; twice {
			t.Errorf("%v twice", c.TSG)
		}
		out[c.TSG] = c
	}
	return out
}

func objectOf(c *rmfake.Client, tsg rmfake.TSG) sched.Object {
	return sched.Object{Client: sched.Handle(c.Handle), Handle: sched.Handle(tsg.Handle)}
}

// Only compute TSGs are asked about, each through one borrow of its process's
// file, and nothing is reset or logged (the fake logs resets, and discoverer
// fails on any line and on a descriptor that is left open).
func TestReadsSwitchCounters(t *testing.T) {
	d := rmfake.New()
	g := d.AddGPU()
	p1, c1, t1 := cuda(d, g, 479)
	more := c1.CUDA(g, 0x5c001000) // a second context of the same process
	_, c2, t2 := cuda(d, g, 480)
	c1.SetSwitches(t1[0].Handle, rmfake.Switches{878, 877, 118, 3, 760, 1})
	c2.SetSwitches(t2[0].Handle, rmfake.Switches{5, 5, 5, 0, 0, 0})
	x := discoverer(t, d, Options{MissRun: 0x1100, Budget: time.Minute})
	full(t, x)
	before := d.Calls(rm.CtrlContextSwitchStats)
	got := readings(t, x)
	if n := d.Calls(rm.CtrlContextSwitchStats) - before; n != 3 || len(got) != 3 {
		t.Fatalf("%d questions, %d readings, want 3 of each: %v", n, len(got), got)
	}
	r := got[objectOf(c1, t1[0])]
	want := sched.SwitchCounters{Time: r.Time, TSG: objectOf(c1, t1[0]), Save: 878, Restore: 877, WFI: 118, CTA: 3, CILP: 760, GFXP: 1}
	if r != want || r.Time == 0 {
		t.Errorf("read %+v, want %+v", r, want)
	}
	if r := got[objectOf(c2, t2[0])]; r.WFI != 5 || r.CILP != 0 {
		t.Errorf("of the other process: %+v", r)
	}
	if _, ok := got[objectOf(c1, more[0])]; !ok {
		t.Error("the second context was not read")
	}
	// A process that has ended is not asked about, and others still are.
	p1.Exit()
	x.rm.WaitCloses()
	if got := readings(t, x); len(got) != 1 {
		t.Errorf("after one process ended: %v", got)
	}
}

func TestSwitchCountersRefused(t *testing.T) {
	d := rmfake.New()
	g := d.AddGPU()
	_, c, tsgs := cuda(d, g, 479)
	x := discoverer(t, d, Options{})
	full(t, x)
	d.RefuseBorrow = true
	r, ok := readings(t, x)[objectOf(c, tsgs[0])]
	if !ok || !strings.Contains(r.Why, "CAP_SYS_PTRACE") {
		t.Errorf("where borrowing is refused: %+v", r)
	}
}

// Nothing is asked while nobody looks.
func TestCountersOnlyWhileLookedAt(t *testing.T) {
	d := rmfake.New()
	g := d.AddGPU()
	cuda(d, g, 479)
	x := discoverer(t, d, Options{})
	full(t, x)
	ctx, cancel := context.WithCancel(context.Background())
	read := make(chan int, 16)
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := x.RunCounters(ctx, func(es []sched.Event) { read <- len(es) }); err != nil {
			t.Error(err)
		}
	})
	x.LookCounters(true)
	x.LookCounters(true)
	x.LookCounters(false) // one still looks
	if n := <-read; n != 1 {
		t.Errorf("%d readings, want 1", n)
	}
	x.LookCounters(false)
	x.LookCounters(false) // once too often: nothing to turn off
	if any, _ := x.counterLookers.any(); any {
		t.Error("somebody looks, though all have turned away")
	}
	cancel()
	wg.Wait()
	if d.Calls(rm.CtrlContextSwitchStats) == 0 {
		t.Error("never asked")
	}
	// A run that nobody looks at asks nothing.
	n := d.Calls(rm.CtrlContextSwitchStats)
	ctx, cancel = context.WithCancel(context.Background())
	cancel()
	if err := x.RunCounters(ctx, func([]sched.Event) { t.Error("read, though nobody looks") }); err != nil {
		t.Error(err)
	}
	if d.Calls(rm.CtrlContextSwitchStats) != n {
		t.Error("asked, though nobody looks")
	}
}
