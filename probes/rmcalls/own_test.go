package rmcalls

import (
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
)

// soon is how long something that must not come is waited for.
const soon = 50 * time.Millisecond

func locked(t *testing.T) (tid int) {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	return unix.Gettid()
}

func (c *caller) timeslice(us uint64) {
	c.control(rm.CtrlTSGSetTimeslice, u64(us))
}

func TestOwnCallIsWitnessed(t *testing.T) { eachRung(t, testOwnCallIsWitnessed) }

func testOwnCallIsWitnessed(t *testing.T, rung Rung) {
	p := open(t, Options{Rung: rung})
	c := newCaller(t)
	got := collect(t, p)
	tid := locked(t)
	before := sched.Now()
	if err := p.Expect(Expected{ID: 7, Command: "c-7", TID: tid, FD: c.fd, Arg: c.base, Params: c.base + paramsAt}); err != nil {
		t.Fatal(err)
	}
	c.timeslice(200)
	entry, err := p.WaitOwn(7, OwnEntry, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	exit, err := p.WaitOwn(7, OwnExit, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	c.timeslice(300) // one announcement is for one call
	if err := p.Forget(tid); err != nil {
		t.Fatal(err)
	}
	if entry.Time < before.Add(-time.Second) || exit.Time < entry.Time || exit.Time.Sub(entry.Time) != exit.Duration {
		t.Errorf("entry %+v, exit %+v", entry, exit)
	}
	if !exit.Read || exit.Number != rm.CtrlTSGSetTimeslice || exit.Client != 0xc1d00001 || exit.Object != 0x5c000015 || exit.Errno != int(unix.ENOTTY) {
		t.Errorf("exit %+v", exit)
	}
	calls := got.take()
	if len(calls) != 2 || calls[0].Command != "c-7" || calls[1].Command != "" {
		t.Errorf("calls %+v, want the first marked as the command's", calls)
	}
	if err := p.Expect(Expected{ID: 7, TID: tid, FD: c.fd, Arg: c.base}); err == nil {
		t.Error("an id was accepted twice")
	}
}

// TestOthersCallsAreNotOurs: a call that differs in any one thing from what was
// announced is not witnessed as ours.
func TestOthersCallsAreNotOurs(t *testing.T) { eachRung(t, testOthersCallsAreNotOurs) }

func testOthersCallsAreNotOurs(t *testing.T, rung Rung) {
	p := open(t, Options{Rung: rung})
	c := newCaller(t)
	tid := locked(t)
	id := uint64(100)
	elsewhere := newCaller(t)
	cases := map[string]func(e *Expected){
		"another thread":      func(e *Expected) { e.TID = os.Getppid() },
		"another descriptor":  func(e *Expected) { e.FD = elsewhere.fd },
		"no such descriptor":  func(e *Expected) { e.FD = 1 << 20 },
		"another argument":    func(e *Expected) { e.Arg = elsewhere.base },
		"other parameters":    func(e *Expected) { e.Params = elsewhere.base + paramsAt },
		"parameters are none": func(e *Expected) { e.Params = 1 },
	}
	for name, change := range cases {
		id++
		e := Expected{ID: id, TID: tid, FD: c.fd, Arg: c.base, Params: c.base + paramsAt}
		change(&e)
		if err := p.Expect(e); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		c.timeslice(200)
		if o, err := p.WaitOwn(id, OwnEntry, soon); !errors.Is(err, ErrNotSeen) {
			t.Errorf("%s: witnessed as ours: %+v, %v", name, o, err)
		}
		if err := p.Forget(e.TID); err != nil {
			t.Error(err)
		}
	}

	// The same call from another thread of ours, while this one is announced.
	id++
	if err := p.Expect(Expected{ID: id, TID: tid, FD: c.fd, Arg: c.base, Params: c.base + paramsAt}); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer close(done)
		c.timeslice(200)
	}()
	<-done
	if o, err := p.WaitOwn(id, OwnEntry, soon); !errors.Is(err, ErrNotSeen) {
		t.Errorf("another thread's call witnessed as ours: %+v, %v", o, err)
	}
	c.timeslice(200)
	if _, err := p.WaitOwn(id, OwnExit, 10*time.Second); err != nil {
		t.Errorf("the announced call itself: %v", err)
	}

	// Taken back.
	id++
	if err := p.Expect(Expected{ID: id, TID: tid, FD: c.fd, Arg: c.base, Params: c.base + paramsAt}); err != nil {
		t.Fatal(err)
	}
	if err := p.Forget(tid); err != nil {
		t.Fatal(err)
	}
	c.timeslice(200)
	if o, err := p.WaitOwn(id, OwnEntry, soon); !errors.Is(err, ErrNotSeen) {
		t.Errorf("a call that was taken back is witnessed: %+v, %v", o, err)
	}
}

// TestOwnCallInFlood: other processes fill the ring of calls; ours has its own.
func TestOwnCallInFlood(t *testing.T) { eachRung(t, testOwnCallInFlood) }

func testOwnCallInFlood(t *testing.T, rung Rung) {
	p := open(t, Options{Rung: rung, RingBytes: os.Getpagesize()})
	c := newCaller(t)
	tid := locked(t)
	_, end := startChild(t, "flood", nil) // and nobody reads the ring of calls
	const n = 500
	for id := uint64(1); id <= n; id++ {
		if err := p.Expect(Expected{ID: id, TID: tid, FD: c.fd, Arg: c.base, Params: c.base + paramsAt}); err != nil {
			t.Fatal(err)
		}
		c.timeslice(id)
	}
	end()
	for id := uint64(1); id <= n; id++ {
		for _, phase := range []OwnPhase{OwnEntry, OwnExit} {
			if _, err := p.WaitOwn(id, phase, 10*time.Second); err != nil {
				t.Fatal(err)
			}
		}
	}
	loss, err := p.Losses()
	if err != nil || loss.Ring == 0 {
		t.Errorf("losses %+v, %v: the flood did not fill the ring, so this shows nothing", loss, err)
	}
}

func TestExpectRefusesHalfAnAnnouncement(t *testing.T) {
	eachRung(t, testExpectRefusesHalfAnAnnouncement)
}

func testExpectRefusesHalfAnAnnouncement(t *testing.T, rung Rung) {
	p := open(t, Options{Rung: rung})
	for _, e := range []Expected{{}, {ID: 1}, {ID: 1, TID: 1}, {TID: 1, FD: 1, Arg: 1}, {ID: 1, TID: 1, FD: -1, Arg: 1}} {
		if err := p.Expect(e); err == nil {
			t.Errorf("%+v accepted", e)
		}
	}
}
