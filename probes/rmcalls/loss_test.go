package rmcalls

import (
	"context"
	"os"
	"strings"
	"testing"

	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
)

// about tells whether what came and what was lost are n calls, none of them
// counted twice. Other processes' last closes of the stand-in are among them.
func about(seen int, lost, n uint64) bool {
	all := uint64(seen) + lost
	return all >= n && all <= n+n/10
}

// TestRingOverflow: with nobody reading, a full ring drops and counts; what
// came and what was lost make up all.
func TestRingOverflow(t *testing.T) { eachRung(t, testRingOverflow) }

func testRingOverflow(t *testing.T, rung Rung) {
	p := open(t, Options{Rung: rung, RingBytes: os.Getpagesize()})
	c := newCaller(t)
	const n = 1000
	for range n {
		c.control(rm.CtrlTSGPreempt, nil)
	}
	loss, err := p.Losses()
	if err != nil || loss.Ring == 0 {
		t.Fatalf("losses %+v, %v: want a full ring", loss, err)
	}
	got := collect(t, p)
	got.mu.Lock()
	got.all = true
	got.mu.Unlock()
	if seen := len(got.take()); seen == 0 || !about(seen, loss.Ring, n) {
		t.Errorf("%d came and %d were lost, want %d together", seen, loss.Ring, n)
	}
	if got.loss.Ring < loss.Ring {
		t.Errorf("Run sent %+v, want the ring's loss %d", got.loss, loss.Ring)
	}
	s := p.Status()
	if s.State != sched.ProbeLimited || !strings.Contains(s.Why, "ring was full") {
		t.Errorf("status %+v: want it limited by the loss", s)
	}
}

// TestQueueOverflow: a sink that does not come back costs calls, counted, and
// no more memory than the queue has.
func TestQueueOverflow(t *testing.T) { eachRung(t, testQueueOverflow) }

func testQueueOverflow(t *testing.T, rung Rung) {
	p := open(t, Options{Rung: rung, QueueLen: 1})
	c := newCaller(t)
	const n = 20_000
	release := make(chan struct{})
	blocked := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	seen := 0
	first := true
	go func() {
		done <- p.Run(ctx, func(events []sched.Event) {
			for _, e := range events {
				if b, ok := e.(sched.CallBatch); ok {
					seen += len(b.Calls)
				}
			}
			if first {
				first = false
				close(blocked)
				<-release
			}
		})
	}()
	<-blocked
	for range n {
		c.control(rm.CtrlTSGPreempt, nil)
	}
	// The ring has room for all of them; wait for the reader to have them.
	for p.ring.AvailableBytes() > 0 {
	}
	close(release)
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	loss, err := p.Losses()
	if err != nil || loss.Queue == 0 || loss.Ring != 0 || !about(seen, loss.Queue, n) {
		t.Errorf("%d came, losses %+v, %v: want the queue's loss to make up %d", seen, loss, err, n)
	}
}

// TestFaults: reads of a caller's memory that fault are counted by what was
// read; of a call whose parameters fault the rest is still told.
func TestFaults(t *testing.T) { eachRung(t, testFaults) }

func testFaults(t *testing.T, rung Rung) {
	p := open(t, Options{Rung: rung})
	c := newCaller(t)
	got := collect(t, p)
	word := rm.Ioctl(rm.EscControl, 32)
	c.ioctl(word, 0)
	c.ioctl(word, 0xdead000)
	c.ioctl(rm.Ioctl(rm.EscXfer, 16), 8)
	c.call(rm.EscXfer, rm.XferParams{Cmd: rm.EscControl, Size: 32, Ptr: 0xdead000})
	c.call(rm.EscControl, rm.ControlParams{Client: 3, Cmd: rm.CtrlTSGSetTimeslice, Params: 0xdead000, ParamsSize: 8})
	calls := got.take()
	if len(calls) != 1 || calls[0].Client != 3 || calls[0].Params == nil || !calls[0].Params.Faulted || calls[0].Params.Timeslice != nil {
		t.Errorf("calls %+v, want the one whose parameters faulted", calls)
	}
	if got.loss.Faults != 5 {
		t.Errorf("losses %+v, want 5 faults", got.loss)
	}
}
