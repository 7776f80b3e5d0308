package rmcalls

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
)

func exits(got *collector, pid int) int {
	n := 0
	for _, e := range got.exits {
		if e.PID == pid {
			n++
		}
	}
	return n
}

// TestExits: a process that made a call has one exit, when its last thread
// ends; one that made none has an exit only when it was asked for.
func TestExits(t *testing.T) { eachRung(t, testExits) }

func testExits(t *testing.T, rung Rung) {
	p := open(t, Options{Rung: rung})
	got := collect(t, p)
	caller, endCaller := startChild(t, "one", nil)
	silent, endSilent := startChild(t, "none", nil)
	watched, endWatched := startChild(t, "none", nil)
	if err := p.Watch(watched); err != nil {
		t.Fatal(err)
	}
	endSilent()
	endWatched()
	endCaller()
	got.until("the exit of the process that made a call", func() bool { return exits(got, caller) > 0 })
	got.take()
	if n := exits(got, caller); n != 1 {
		t.Errorf("%d exits of the caller, want 1", n)
	}
	if n := exits(got, silent); n != 0 {
		t.Errorf("%d exits of a process without calls, want none", n)
	}
	if n := exits(got, watched); n != 1 {
		t.Errorf("%d exits of the watched process, want 1", n)
	}
}

// TestFileNumbers: one open file has one number in all processes that hold it;
// another has another; the last close is told and ends the number.
func TestFileNumbers(t *testing.T) { eachRung(t, testFileNumbers) }

func testFileNumbers(t *testing.T, rung Rung) {
	p := open(t, Options{Rung: rung})
	c := newCaller(t)
	got := collect(t, p)
	got.mu.Lock()
	got.all = true
	got.mu.Unlock()
	call := func(fd int) {
		c.fd = fd
		c.control(rm.CtrlTSGPreempt, nil)
	}
	reopen := func() int {
		fd, err := unix.Open(standIn, unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		return fd
	}
	first := c.fd
	defer func() { c.fd = first }()
	dup, err := unix.Dup(first)
	if err != nil {
		t.Fatal(err)
	}
	second := reopen()

	call(first)
	call(dup)
	call(second)
	f := os.NewFile(uintptr(dup), standIn)
	pid, end := startChild(t, "one", f)
	end()
	_ = f.Close() // not the last
	call(first)
	_ = unix.Close(second) // the last
	third := reopen()
	call(third)
	_ = unix.Close(third)

	calls := got.take()
	var numbers []uint32
	var closes []uint32
	for _, k := range calls {
		if k.PID != pid && k.PID != os.Getpid() {
			continue
		}
		if k.Kind == sched.CallClose {
			closes = append(closes, k.File)
			continue
		}
		numbers = append(numbers, k.File)
	}
	// first, dup, second, child's, first, third
	if len(numbers) != 6 {
		t.Fatalf("calls on files %v, want six; all: %+v", numbers, calls)
	}
	a, b, d := numbers[0], numbers[2], numbers[5]
	if numbers[1] != a || numbers[3] != a || numbers[4] != a || b == a || d == a || d == b || a == 0 || b == 0 || d == 0 {
		t.Errorf("files %v: want the first, its copy and the child's alike, all others different", numbers)
	}
	told := map[uint32]int{}
	for _, n := range closes {
		told[n]++
	}
	if told[b] != 1 || told[d] != 1 || told[a] != 0 {
		t.Errorf("closes of %v told: want one each of %d and %d, none of %d", closes, b, d, a)
	}
}

// TestFlood: another process's flood takes nothing from this one's calls as
// long as the ring holds.
func TestFlood(t *testing.T) { eachRung(t, testFlood) }

func testFlood(t *testing.T, rung Rung) {
	p := open(t, Options{Rung: rung})
	c := newCaller(t)
	got := collect(t, p)
	_, end := startChild(t, "flood", nil)
	const n = 2000
	for range n {
		c.control(rm.CtrlTSGPreempt, nil)
	}
	end()
	calls := got.take()
	if uint64(len(calls))+got.loss.Ring+got.loss.Queue < n || len(calls) > n {
		t.Errorf("%d of %d calls came, losses %+v", len(calls), n, got.loss)
	}
	if got.loss.Ring+got.loss.Queue == 0 && len(calls) != n {
		t.Errorf("%d of %d calls came and nothing is said to be lost", len(calls), n)
	}
}
