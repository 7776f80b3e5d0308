//go:build linux

package discover

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tsgtop/internal/rm"
	"tsgtop/internal/rmdev"
	"tsgtop/internal/rmdev/rmfake"
	"tsgtop/internal/sched"
)

// collector keeps what Run sends.
type collector struct {
	mu     sync.Mutex
	events []sched.Event
}

func (c *collector) sink(e []sched.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, e...)
}

func (c *collector) find(f func(sched.Event) bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.events, f)
}

// wait gives the probe ten seconds, which is no measure of how long it takes.
func wait(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func TestRunFollowsTheStream(t *testing.T) {
	d := rmfake.New()
	g := d.AddGPU()
	_, c1, t1 := cuda(d, g, 479)
	x := discoverer(t, d, Options{Delay: 2 * time.Millisecond, Recheck: 10 * time.Millisecond})
	var got collector
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- x.Run(ctx, got.sink) }()
	inventory := func(f func(sched.Inventory) bool) func() bool {
		return func() bool {
			return got.find(func(e sched.Event) bool {
				inv, ok := e.(sched.Inventory)
				return ok && f(inv)
			})
		}
	}
	has := func(c *rmfake.Client, tsg rmfake.TSG) func(sched.Inventory) bool {
		return func(inv sched.Inventory) bool {
			return slices.ContainsFunc(inv.TSGs, func(f sched.FoundTSG) bool {
				return uint32(f.Client) == c.Handle && uint32(f.Handle) == tsg.Handle && f.Runlist == int(tsg.Runlist) && f.Number != nil
			})
		}
	}
	wait(t, "the first inventory", inventory(has(c1, t1[0])))
	if !got.find(func(e sched.Event) bool { g, ok := e.(sched.GPU); return ok && g.Index == 0 }) {
		t.Error("no GPU came before the inventory")
	}
	if !got.find(func(e sched.Event) bool { s, ok := e.(sched.ProbeStatus); return ok && s.State == sched.ProbeOK }) {
		t.Error("no status came")
	}

	// A new process: the stream shows its allocations, the rest is asked for.
	_, c2, t2 := cuda(d, g, 480)
	x.Observe([]sched.Call{{Kind: sched.CallAlloc, Number: rm.ClassTSG, Client: sched.Handle(c2.Handle), Object: sched.Handle(t2[0].Handle), PID: 480, Start: sched.Now(), End: sched.Now()}})
	wait(t, "the new TSG", inventory(has(c2, t2[3])))

	// One more TSG, far away, in a client that is known.
	far := c1.AddTSG(0x7000_0000, t1[0].Device, 3, 1)
	x.Observe([]sched.Call{{Kind: sched.CallAlloc, Number: rm.ClassTSG, Client: sched.Handle(c1.Handle), Object: sched.Handle(far.Handle), PID: 479, Start: sched.Now(), End: sched.Now()}})
	wait(t, "the far TSG", inventory(has(c1, far)))

	// A process ends without a word in the stream.
	p2 := sched.Handle(c2.Handle)
	d.Kill(480)
	wait(t, "the end of a client", inventory(func(inv sched.Inventory) bool { return slices.Contains(inv.Gone, p2) }))

	x.Release()
	wait(t, "the status of the release", func() bool {
		return got.find(func(e sched.Event) bool {
			s, ok := e.(sched.ProbeStatus)
			return ok && s.State == sched.ProbeReleased
		})
	})
	x.Resume()
	before := len(got.events)
	wait(t, "a new inventory", func() bool {
		got.mu.Lock()
		defer got.mu.Unlock()
		return slices.ContainsFunc(got.events[before:], func(e sched.Event) bool {
			inv, ok := e.(sched.Inventory)
			return ok && len(inv.TSGs) == 5
		})
	})
	// In the end the whole ring has been walked.
	wait(t, "a complete inventory", inventory(func(inv sched.Inventory) bool { return inv.Complete }))
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A call that overlaps a scan touches what the scan found: it is looked at again.
func TestCallsThatOverlapAScan(t *testing.T) {
	var n news
	n.init()
	n.begin(1000)
	free := func(start, end sched.Time) *sched.Call {
		return &sched.Call{Kind: sched.CallFree, Client: 7, Object: 9, Start: start, End: end}
	}
	if n.take(free(900, 999)) {
		t.Error("a call before the scan")
	}
	if !n.take(free(990, 1001)) {
		t.Error("a call that overlaps the running scan")
	}
	n.end(2000)
	n.dirty = map[uint32]*change{}
	if !n.take(free(1999, 2100)) {
		t.Error("a call that overlaps the scan's end")
	}
	n.dirty = map[uint32]*change{}
	if n.take(free(2001, 2100)) {
		t.Error("a call after the scan")
	}
	if n.take(&sched.Call{Kind: sched.CallControl, Number: rm.CtrlTSGInfo, Client: 7, Start: 1500, End: 1600}) {
		t.Error("a call that changes nothing")
	}
}

func TestNewsIsBounded(t *testing.T) {
	d := rmfake.New()
	x := New(rmdev.New(d), Options{})
	for i := range 3 * maxDirty {
		for j := range 3 {
			x.Observe([]sched.Call{{Kind: sched.CallAlloc, Number: rm.ClassTSG, Client: sched.Handle(i), Object: sched.Handle(j), PID: i}})
		}
	}
	for j := range 3 * maxHints {
		x.Observe([]sched.Call{{Kind: sched.CallAlloc, Number: rm.ClassTSG, Client: 1, Object: sched.Handle(j)}})
	}
	n := &x.news
	if len(n.dirty) > maxDirty || len(n.hints) > maxDirty || len(n.hints[1]) > maxHints || len(n.pids) > maxDirty {
		t.Errorf("%d dirty, %d hints, %d of one, %d pids", len(n.dirty), len(n.hints), len(n.hints[1]), len(n.pids))
	}
	if full, _ := n.takeFlags(); !full {
		t.Error("too many to list, and everything is not looked at")
	}
}

// Run shows at once what it has, and then looks for what a wrap hides.
func TestRunLooksBehindAWrap(t *testing.T) {
	d := rmfake.New()
	g := d.AddGPU()
	d.NextIndex = 0x40
	_, c1, _ := cuda(d, g, 479) // older than the wrap
	d.NextIndex = 0x20
	_, c2, _ := cuda(d, g, 480)
	x := discoverer(t, d, Options{})
	var got collector
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- x.Run(ctx, got.sink) }()
	inventories := func() (out []sched.Inventory) {
		got.mu.Lock()
		defer got.mu.Unlock()
		for _, e := range got.events {
			if inv, ok := e.(sched.Inventory); ok {
				out = append(out, inv)
			}
		}
		return out
	}
	wait(t, "a complete inventory", func() bool {
		all := inventories()
		return len(all) > 0 && all[len(all)-1].Complete
	})
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	all := inventories()
	first, last := all[0], all[len(all)-1]
	if first.Complete || len(first.Clients) != 1 || uint32(first.Clients[0].Client) != c2.Handle || !strings.Contains(first.Why, "1 processes") {
		t.Errorf("first: %+v", first)
	}
	if len(last.Clients) != 2 || uint32(last.Clients[1].Client) != c1.Handle || last.Why != "" || len(last.TSGs) != 8 {
		t.Errorf("last: %+v", last.Clients)
	}
}

// TestRunPatches: a scan whose time was up before it was through, as on a busy
// machine, is made again long before the next would be due.
func TestRunPatches(t *testing.T) {
	d := rmfake.New()
	g := d.AddGPU()
	cuda(d, g, 479)
	x := discoverer(t, d, Options{Budget: time.Nanosecond, Period: time.Hour, Recheck: 10 * time.Millisecond})
	scans := make(chan sched.Inventory, 100)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		done <- x.Run(ctx, func(es []sched.Event) {
			for _, e := range es {
				if inv, ok := e.(sched.Inventory); ok && len(inv.Clients) > 0 {
					scans <- inv
				}
			}
		})
	}()
	for range 3 {
		select {
		case inv := <-scans:
			if !inv.Partial {
				t.Error("a scan without time was through")
			}
		case <-time.After(20 * time.Second):
			t.Fatal("it is not made again")
		}
	}
	cancel()
	<-done
}
