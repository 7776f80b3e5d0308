package rmcalls

import (
	"context"
	"math"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"tsgtop/bpf"
	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
)

// The cost of the probes on a call is the difference of two sub-benchmarks of
// one run: "bare" and "probed". A call here is an ioctl that fails on the
// stand-in; the driver's own time (2.8 us for a cheap control, measured on an
// H200) is not in it.

// paired measures, at each rung that needs no driver, what one call costs with
// and without the probes, turn and turn about: the least of many short rounds
// of each, so that what else the machine does falls out.
func paired(b *testing.B, call func()) {
	for _, rung := range []Rung{RungTP, RungTPBTF} {
		b.Run(string(rung), func(b *testing.B) { pairedAt(b, rung, call) })
	}
}

func pairedAt(b *testing.B, rung Rung, call func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const turns, round = 5, 500
	least := func() float64 {
		least := math.Inf(1)
		for range max(b.N/turns/round, 20) {
			start := time.Now()
			for range round {
				call()
			}
			least = min(least, float64(time.Since(start))/round)
		}
		return least
	}
	bare, probed := math.Inf(1), math.Inf(1)
	for range turns {
		bare = min(bare, least())
		p := open(b, Options{Rung: rung, RingBytes: 64 << 20})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx, func([]sched.Event) {}) }()
		time.Sleep(5 * time.Millisecond)
		probed = min(probed, least())
		cancel()
		if err := <-done; err != nil {
			b.Fatal(err)
		}
		if err := p.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(bare, "bare-ns")
	b.ReportMetric(probed-bare, "added-ns")
}

func benchmarkControl(b *testing.B, cmd uint32) {
	c := newCaller(b)
	params := c.put(paramsAt, u64(2048))
	c.put(argAt, rm.ControlParams{Client: 1, Object: 2, Cmd: cmd, Params: params, ParamsSize: 8})
	word, fd, arg := uintptr(rm.Ioctl(rm.EscControl, 32)), uintptr(c.fd), c.base
	paired(b, func() { _, _, _ = unix.RawSyscall(unix.SYS_IOCTL, fd, word, arg) })
}

// BenchmarkShapingCall: a call that makes a record each time. To reach: 500 ns.
func BenchmarkShapingCall(b *testing.B) { benchmarkControl(b, rm.CtrlTSGSetTimeslice) }

// BenchmarkCountedCall: a call that is only counted. To reach: 100 ns.
func BenchmarkCountedCall(b *testing.B) { benchmarkControl(b, rm.CtrlGPUID) }

// BenchmarkOtherSyscall: any other system call. To reach: 40 ns at this rung.
func BenchmarkOtherSyscall(b *testing.B) {
	paired(b, func() { _, _, _ = unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0) })
}

// BenchmarkOtherIoctl: an ioctl that is not RM's.
func BenchmarkOtherIoctl(b *testing.B) {
	c := newCaller(b)
	fd := uintptr(c.fd)
	paired(b, func() { _, _, _ = unix.RawSyscall(unix.SYS_IOCTL, fd, unix.TCGETS, 0) })
}

// BenchmarkRingToState: records through decoder, batches and queue to a sink.
// To reach: 1,000,000 a second. The kernel's side is not in it: the records
// are those of one call, over and over.
func BenchmarkRingToState(b *testing.B) {
	k := bpf.RMCallsRmCall{
		Record: uint32(bpf.RMCallsRmRecordRM_RECORD_CALL), Kind: uint8(sched.CallControl), Number: rm.CtrlTSGSetTimeslice,
		Client: 1, Object: 2, Pid: 3, Tid: 4, File: 1, ParamsLen: 8, Params: [8]uint8{200}, Comm: [16]uint8{'a'},
	}
	raw := unsafe.Slice((*byte)(unsafe.Pointer(&k)), callSize)
	queue := make(chan []sched.Event, 64)
	done := make(chan int)
	go func() {
		n := 0
		for events := range queue {
			for _, e := range events {
				n += len(e.(sched.CallBatch).Calls)
			}
		}
		done <- n
	}()
	var c clock
	d := decoder{toTime: c.toTime}
	// Waits where the probe would drop: here all of them are to arrive.
	t := batcher{queue: queue, lost: func(int) { b.Error("dropped") }, wait: true}
	var r record
	b.ReportAllocs()
	for b.Loop() {
		if err := d.decode(raw, &r); err != nil {
			b.Fatal(err)
		}
		t.add(&r)
	}
	t.flush()
	close(queue)
	if n := <-done; n != b.N {
		b.Fatalf("%d of %d arrived", n, b.N)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkKernelToState: another process calls as fast as it can, and Run
// hands its calls to a sink. Reports what came and what was lost.
func BenchmarkKernelToState(b *testing.B) {
	p := open(b, Options{Rung: RungTPBTF, RingBytes: 16 << 20})
	var n atomic.Uint64
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- p.Run(ctx, func(events []sched.Event) {
			for _, e := range events {
				if batch, ok := e.(sched.CallBatch); ok {
					n.Add(uint64(len(batch.Calls)))
				}
			}
		})
	}()
	_, end := startChild(b, "flood", nil)
	start, first := time.Now(), n.Load()
	for n.Load()-first < uint64(b.N) {
		time.Sleep(time.Millisecond)
	}
	rate := float64(n.Load()-first) / time.Since(start).Seconds()
	end()
	cancel()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	loss, err := p.Losses()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(rate, "events/s")
	b.ReportMetric(float64(loss.Ring+loss.Queue), "lost")
}
