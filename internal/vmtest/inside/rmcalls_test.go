//go:build vmtest

package inside

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"tsgtop/internal/sched"
	"tsgtop/probes/rmcalls"
)

// collector keeps a source's events.
type collector struct {
	mu     sync.Mutex
	events []sched.Event
	calls  []sched.Call
}

func (c *collector) sink(events []sched.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range events {
		switch e := e.(type) {
		case sched.CallBatch:
			c.calls = append(c.calls, slices.Clone(e.Calls)...)
		case *sched.CallBatch:
			c.calls = append(c.calls, slices.Clone(e.Calls)...)
		}
		c.events = append(c.events, e)
	}
}

// find waits for a call that matches.
func (c *collector) find(match func(sched.Call) bool) (sched.Call, bool) {
	for range 300 {
		c.mu.Lock()
		i := slices.IndexFunc(c.calls, match)
		var found sched.Call
		if i >= 0 {
			found = c.calls[i]
		}
		c.mu.Unlock()
		if i >= 0 {
			return found, true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return sched.Call{}, false
}

// runProbe runs a source in the background for the length of the test.
func runProbe(t *testing.T, run func(context.Context, func([]sched.Event)) error) *collector {
	t.Helper()
	c := &collector{}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx, c.sink) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	return c
}

func openProbe(t *testing.T, rung rmcalls.Rung) *rmcalls.Probe {
	t.Helper()
	p, err := rmcalls.Open(rmcalls.Options{Rung: rung})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// TestRMCallsRungs: each rung sees the same calls of a process in the same way.
func TestRMCallsRungs(t *testing.T) {
	for _, rung := range rmcalls.Rungs() {
		t.Run(string(rung), func(t *testing.T) {
			loadModel(t, "nvidia", "")
			p := openProbe(t, rung)
			seen := runProbe(t, p.Run)
			time.Sleep(50 * time.Millisecond)
			checkCalls(t, seen)
			if loss, err := p.Losses(); err != nil || loss.Ring+loss.Queue+loss.Faults+loss.Unmatched+loss.Malformed != 0 {
				t.Errorf("losses %+v, %v", loss, err)
			}
		})
	}
}

func checkCalls(t *testing.T, seen *collector) {
	t.Helper()
	c := startProcess(t, 0, nil)
	want := func(what string, match func(sched.Call) bool, check func(sched.Call) bool) sched.Call {
		t.Helper()
		call, ok := seen.find(func(call sched.Call) bool { return call.PID == c.PID && match(call) })
		if !ok {
			t.Errorf("%s was not seen", what)
		} else if check != nil && !check(call) {
			t.Errorf("%s was seen wrong: %+v, params %+v", what, call, call.Params)
		}
		return call
	}
	alloc := func(class uint32, object uint32) func(sched.Call) bool {
		return func(c sched.Call) bool {
			return c.Kind == sched.CallAlloc && c.Number == class && uint32(c.Object) == object
		}
	}
	control := func(cmd uint32, object uint32) func(sched.Call) bool {
		return func(c sched.Call) bool {
			return c.Kind == sched.CallControl && c.Number == cmd && uint32(c.Object) == object
		}
	}
	client := want("the client (whose handle RM chose)", alloc(0x41, c.Client), nil)
	want("the device", alloc(0x80, c.Device), func(x sched.Call) bool { return *x.Params.DeviceInstance == 0 && x.Status == 0 })
	want("the TSG", alloc(0xa06c, c.TSG), func(x sched.Call) bool {
		return *x.Params.Engine == 1 && uint32(x.Parent) == c.Device && uint32(x.Client) == c.Client && x.File == client.File && x.End > x.Start
	})
	want("a channel", alloc(0xc86f, c.Channels[3]), func(x sched.Call) bool {
		return *x.Params.Context == c.Contexts[3] && uint32(x.Parent) == c.TSG
	})
	want("libcuda's timeslice", control(0xa06c0103, c.TSG), func(x sched.Call) bool { return *x.Params.Timeslice == 2048 && x.Status == 0 })
	c.ask("xfer %x a06c0103 %x", c.TSG, le.AppendUint64(nil, 333))
	want("a wrapped call", func(x sched.Call) bool {
		return x.Number == 0xa06c0103 && x.Params != nil && x.Params.Timeslice != nil && *x.Params.Timeslice == 333
	}, func(x sched.Call) bool { return uint32(x.Object) == c.TSG && x.Status == 0 })
	if st, _ := c.ask("control %x a06c0107 %x", c.TSG, u32s(7)); st != 0x56 {
		t.Fatalf("interleave 7: %x", st)
	}
	want("a refused call", control(0xa06c0107, c.TSG), func(x sched.Call) bool { return x.Status == 0x56 && *x.Params.Interleave == 7 })
	c.ask("control %x a06c0105 %x", c.TSG, u32s(1, 0))
	want("a preempt", control(0xa06c0105, c.TSG), func(x sched.Call) bool { return *x.Params.Wait })
	_, num := c.ask("control %x a06c0106 %x", c.TSG, u32s(0xffff))
	want("the TSG's number", control(0xa06c0106, c.TSG), func(x sched.Call) bool { return *x.Params.TSGNumber == le.Uint32(num) })
	_, tok := c.ask("control %x c36f0108 %x", c.Channels[0], u32s(0))
	want("a token", control(0xc36f0108, c.Channels[0]), func(x sched.Call) bool {
		return *x.Params.Runlist == le.Uint32(tok)>>16 && *x.Params.ChID == le.Uint32(tok)&0xfff
	})
	_, h := c.ask("alloc 0 0 00")
	want("an alloc by the short form", alloc(0xa06c, le.Uint32(h)), func(x sched.Call) bool { return *x.Params.Engine == 10 })
	c.ask("free %x 0 00", c.CopyTSGs[2])
	want("a free", func(x sched.Call) bool { return x.Kind == sched.CallFree && uint32(x.Object) == c.CopyTSGs[2] }, nil)
	c.end()
	for range 200 {
		seen.mu.Lock()
		gone := slices.ContainsFunc(seen.events, func(e sched.Event) bool {
			x, ok := e.(sched.ProcessExit)
			return ok && x.PID == c.PID
		})
		seen.mu.Unlock()
		if gone {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the end of the process was not seen")
}

// TestRMCallsLadder: without BTF of the driver the ladder goes on, and says why.
func TestRMCallsLadder(t *testing.T) {
	loadModel(t, "nvidia-nobtf", "")
	p := openProbe(t, rmcalls.Auto)
	if p.Rung() == rmcalls.RungFentry {
		t.Error("fentry without BTF")
	}
	if r := p.Refusals(); len(r) != 1 || r[0].Rung != rmcalls.RungFentry || r[0].Reason != rmcalls.NoModuleBTF {
		t.Errorf("refusals: %v", r)
	}
	seen := runProbe(t, p.Run)
	time.Sleep(50 * time.Millisecond)
	checkCalls(t, seen)
}

// TestRMCallsOwn: the witness for our own call sees it at each rung, and no other.
func TestRMCallsOwn(t *testing.T) {
	for _, rung := range rmcalls.Rungs() {
		t.Run(string(rung), func(t *testing.T) {
			loadModel(t, "nvidia", "")
			p := openProbe(t, rung)
			runProbe(t, p.Run)
			checkOwn(t, p)
		})
	}
}
