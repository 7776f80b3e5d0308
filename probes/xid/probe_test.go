package xid

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"tsgtop/bpf"
	"tsgtop/internal/sched"
)

func at(ms int) time.Time { return time.UnixMilli(int64(ms)) }

func TestMergerTellsEachXidOnce(t *testing.T) {
	var m merger
	trace := sched.Xid{Time: 1, PCI: "0000:01:00.0", GPU: 0, Code: 31, Text: "Ch 00000008, intr 0", Channel: sched.Ptr(8), From: "tracepoint"}
	log := sched.Xid{Time: 2, PCI: "0000:01:00.0", GPU: 0, Code: 31, PID: 7, Name: "a", Text: "Ch 00000008, intr 0", Channel: sched.Ptr(8), From: "kernel log"}
	want := trace
	want.PID, want.Name = 7, "a"
	for _, order := range [][2]source{{fromTracepoint, fromLog}, {fromLog, fromTracepoint}} {
		xids := map[source]sched.Xid{fromTracepoint: trace, fromLog: log}
		if got := m.add(order[0], xids[order[0]], at(0)); got != nil {
			t.Errorf("told before the other witness: %+v", got)
		}
		if got := m.add(order[1], xids[order[1]], at(10)); len(got) != 1 || !reflect.DeepEqual(got[0], want) {
			t.Errorf("order %v: %+v, want %+v", order, got, want)
		}
		if got := m.expired(at(10_000)); got != nil {
			t.Errorf("left over: %+v", got)
		}
	}

	// Different ones are not paired, and each comes when its time is over.
	other := log
	other.Code = 45
	elsewhere := log
	elsewhere.PCI = "0000:02:00.0"
	m.add(fromTracepoint, trace, at(0))
	if got := append(m.add(fromLog, other, at(1)), m.add(fromLog, elsewhere, at(2))...); got != nil {
		t.Errorf("paired with another: %+v", got)
	}
	if got := m.expired(at(249)); got != nil {
		t.Errorf("too early: %+v", got)
	}
	if got := m.expired(at(250)); len(got) != 1 || got[0].Code != 31 || got[0].From != "tracepoint" {
		t.Errorf("expired: %+v", got)
	}
	if got := m.rest(); len(got) != 2 {
		t.Errorf("rest: %+v", got)
	}

	// Two alike are two.
	for i, s := range []source{fromTracepoint, fromTracepoint, fromLog, fromLog} {
		x := trace
		if s == fromLog {
			x = log
		}
		if got := m.add(s, x, at(i)); len(got) != i/2 {
			t.Errorf("step %d: %+v", i, got)
		}
	}
}

func record(pci, text string, textLen uint32) []byte {
	e := bpf.XidXidEvent{When: 1000, Code: 79, TextLen: textLen}
	copy(e.Pci[:], pci)
	copy(e.Text[:], text)
	return append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(&e)), unsafe.Sizeof(e))...)
}

func TestDecode(t *testing.T) {
	toTime := func(m uint64) sched.Time { return sched.Time(m) + 5 }
	text := "Ch 0000000c, GPU has fallen off the bus.\n"
	got, err := decode(record("0000:C1:00.0", text, uint32(len(text))), toTime)
	want := sched.Xid{Time: 1005, GPU: sched.Unknown, PCI: "0000:c1:00.0", Code: 79, Channel: sched.Ptr(12), Text: "Ch 0000000c, GPU has fallen off the bus.", From: "tracepoint"}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	text = "pid=7, name=a b, Graphics Exception"
	got, err = decode(record("", text, uint32(len(text))), toTime)
	if err != nil || got.PID != 7 || got.Name != "a b" || got.Text != "Graphics Exception" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := decode(record("", "", 0), toTime); err != nil || got.PCI != "" || got.Text != "" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := decode(record("", "", 481), toTime); err == nil {
		t.Error("text longer than the record: no error")
	}
	if _, err := decode(record("", "", 0)[:100], toTime); err == nil {
		t.Error("short record: no error")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(record("0000:01:00.0", "Ch 8", 4))
	f.Add(record("0123456789abcdef", "", 480))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := decode(b, func(m uint64) sched.Time { return sched.Time(m) })
		if err == nil && x.Code != binary.NativeEndian.Uint32(b[8:]) {
			t.Errorf("code %d", x.Code)
		}
	})
}

// TestKernelLog writes Xids into this machine's kernel log, as a process may,
// and wants them read when processes are listened to and ignored when they are
// not.
func TestKernelLog(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skip: needs root: writing to " + kernelLog)
	}
	w, err := os.OpenFile(kernelLog, os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("skip: needs a writable kernel log: %v", err)
	}
	defer w.Close()
	p, err := Open(Options{GPUByPCI: func(pci string) int {
		if pci == "0000:01:00.0" {
			return 3
		}
		return sched.Unknown
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if p.log == nil {
		t.Fatal(p.noLog)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	found := make(chan sched.Xid, 10)
	done := make(chan error, 1)
	forged := fmt.Sprint(os.Getpid())
	say := func(code int) {
		if _, err := fmt.Fprintf(w, "<4>NVRM: Xid (PCI:0000:01:00): %d, pid=%s, name=test, Ch 00000008\n", code, forged); err != nil {
			t.Fatal(err)
		}
	}
	p.log.facility = 1 // where the kernel puts what processes write
	go func() {
		done <- p.Run(ctx, func(events []sched.Event) {
			for _, e := range events {
				if x, ok := e.(sched.Xid); ok && fmt.Sprint(x.PID) == forged {
					found <- x
				}
			}
		})
	}()
	say(13)
	select {
	case x := <-found:
		if x.Code != 13 || x.GPU != 3 || x.Name != "test" || x.Channel == nil || *x.Channel != 8 || x.From != "kernel log" || x.Time == 0 {
			t.Errorf("%+v", x)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the Xid in the kernel log was not told")
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}

	real, err := openLog(kernelLog)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- real.run(func(x sched.Xid, _ string) {
			if fmt.Sprint(x.PID) == forged {
				t.Errorf("an Xid that a process wrote was believed: %+v", x)
			}
		}, func() {})
	}()
	say(14)
	time.Sleep(20 * time.Millisecond)
	if err := real.file.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("reading after Close: %v", err)
	}
}

// TestProgramLoads: the kernel takes the eBPF program; without a driver there
// is no tracepoint, and that is what the status says.
func TestProgramLoads(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skip: needs root: loading eBPF programs")
	}
	p, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if p.trace == nil {
		t.Fatalf("the program did not load: %v", p.noTrace)
	}
	s := p.Status()
	if _, err := os.Stat("/sys/module/nvidia"); errors.Is(err, unix.ENOENT) {
		if !errors.Is(p.noTrace, errNoTracepoint) || !strings.Contains(s.Why, "575") || s.State != sched.ProbeOK {
			t.Errorf("%+v, %v", s, p.noTrace)
		}
	}
	p.Release()
	if s := p.Status(); p.noTrace == nil {
		t.Errorf("released, and still attached: %+v", s)
	}
	p.Resume()
}

func TestNeitherWitness(t *testing.T) {
	if _, err := openLog("/nonexistent/kmsg"); err == nil || !strings.Contains(err.Error(), "/nonexistent/kmsg") {
		t.Errorf("error %v: want it to name the file", err)
	}
	p := &Probe{noLog: errors.New("no log"), noTrace: errors.New("no tracepoint")}
	if s := p.Status(); s.State != sched.ProbeMissing || !strings.Contains(s.Why, "no log") || !strings.Contains(s.Why, "no tracepoint") {
		t.Errorf("%+v", s)
	}
}
