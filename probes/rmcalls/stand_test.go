package rmcalls

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
)

// Without an NVIDIA device, /dev/null stands in for one: the programs are told
// its major number. Its ioctls fail with ENOTTY, so the structures come back
// as they went in, which is what a test wants to see decoded.
const (
	standIn      = "/dev/null"
	standInMajor = 1
)

// oldestKernel has all that RungTPBTF needs; on this one and newer no test
// here may be skipped for the kernel's sake.
var oldestKernel = [2]int{5, 11}

func kernelVersion(t testing.TB) [2]int {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	parts := strings.SplitN(unix.ByteSliceToString(u.Release[:]), ".", 3)
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(strings.TrimRight(parts[1], "-+abcdefghijklmnopqrstuvwxyz"))
	if err1 != nil || err2 != nil {
		t.Fatalf("kernel release %q", u.Release)
	}
	return [2]int{major, minor}
}

// eachRung runs a test at each rung that needs no driver. The others need a
// kernel module by the driver's name.
func eachRung(t *testing.T, test func(*testing.T, Rung)) {
	for _, rung := range []Rung{RungTP, RungTPBTF} {
		t.Run(string(rung), func(t *testing.T) { test(t, rung) })
	}
}

// open attaches one rung to the stand-in, or skips where it cannot.
func open(t testing.TB, o Options) *Probe {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("skip: needs root: loading eBPF programs")
	}
	if o.Major == 0 {
		o.Major = standInMajor
	}
	p, err := Open(o)
	var r *Refusal
	if errors.As(err, &r) && (r.Reason == OldKernel || r.Reason == NoBTF) {
		v := kernelVersion(t)
		if v[0] < oldestKernel[0] || v[0] == oldestKernel[0] && v[1] < oldestKernel[1] {
			t.Skipf("skip: needs Linux 5.11 with BTF: %v", err)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("closing the probe: %v", err)
		}
	})
	return p
}

// caller makes RM calls on the stand-in, from memory that does not move.
type caller struct {
	t    testing.TB
	fd   int
	mem  []byte
	base uintptr
}

// Offsets in a caller's memory.
const (
	argAt    = 0
	paramsAt = 256
)

func newCaller(t testing.TB) *caller {
	t.Helper()
	fd, err := unix.Open(standIn, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatalf("opening the stand-in: %v", err)
	}
	mem, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd); _ = unix.Munmap(mem) })
	return &caller{t: t, fd: fd, mem: mem, base: uintptr(unsafe.Pointer(&mem[0]))}
}

// put writes a layout or bytes at an offset and gives its address.
func (c *caller) put(at int, v any) uint64 {
	c.t.Helper()
	if b, ok := v.([]byte); ok {
		copy(c.mem[at:], b)
		return uint64(c.base) + uint64(at)
	}
	b, err := rm.Encode(v)
	if err != nil {
		c.t.Fatal(err)
	}
	copy(c.mem[at:], b)
	return uint64(c.base) + uint64(at)
}

func (c *caller) ioctl(word uint32, arg uintptr) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(c.fd), uintptr(word), arg)
	return errno
}

// call makes one call with arg as the ioctl's structure.
func (c *caller) call(nr uint32, arg any) {
	c.t.Helper()
	b, err := rm.Encode(arg)
	if err != nil {
		c.t.Fatal(err)
	}
	copy(c.mem[argAt:], b)
	if errno := c.ioctl(rm.Ioctl(nr, uint32(len(b))), c.base+argAt); errno != unix.ENOTTY {
		c.t.Fatalf("ioctl on the stand-in: %v, want ENOTTY", errno)
	}
}

// control makes a control call with params as its parameters.
func (c *caller) control(cmd uint32, params []byte) {
	c.t.Helper()
	p := rm.ControlParams{Client: 0xc1d00001, Object: 0x5c000015, Cmd: cmd, ParamsSize: uint32(len(params))}
	if len(params) > 0 {
		p.Params = c.put(paramsAt, params)
	}
	c.call(rm.EscControl, p)
}

// collector runs a probe and keeps what it sends; of calls, only this process's.
type collector struct {
	t      testing.TB
	mu     sync.Mutex
	all    bool // keep every process's calls
	calls  []sched.Call
	exits  []sched.ProcessExit
	counts map[sched.CallCount]sched.CallCount // by kind and number
	loss   sched.Loss
	status []sched.ProbeStatus
	stop   func() error
}

func collect(t testing.TB, p *Probe) *collector {
	t.Helper()
	c := &collector{t: t, counts: map[sched.CallCount]sched.CallCount{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx, c.sink) }()
	c.stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() {
		if err := c.stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return c
}

func (c *collector) sink(events []sched.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range events {
		switch e := e.(type) {
		case sched.CallBatch:
			for _, call := range e.Calls {
				if c.all || call.PID == os.Getpid() {
					c.calls = append(c.calls, call)
				}
			}
		case sched.ProcessExit:
			c.exits = append(c.exits, e)
		case sched.CallCounts:
			for _, n := range e.Counts {
				k := sched.CallCount{Kind: n.Kind, Number: n.Number}
				s := c.counts[k]
				s.N, s.Failed, s.NS = s.N+n.N, s.Failed+n.Failed, s.NS+n.NS
				c.counts[k] = s
			}
		case sched.Loss:
			c.loss = e
		case sched.ProbeStatus:
			c.status = append(c.status, e)
		}
	}
}

// take ends the run and gives all calls: those made before it are all in it.
func (c *collector) take() []sched.Call {
	c.t.Helper()
	if err := c.stop(); err != nil {
		c.t.Fatalf("Run: %v", err)
	}
	return c.calls
}

// until waits for something that must come; the limit only ends a failing test.
func (c *collector) until(what string, ok func() bool) {
	c.t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		c.mu.Lock()
		done := ok()
		c.mu.Unlock()
		if done {
			return
		}
		if time.Now().After(end) {
			c.t.Fatalf("%s: did not come in 10 s", what)
		}
	}
}

// Children of the tests are this test binary again, told what to do by the
// environment.
const childEnv = "RMCALLS_TEST_CHILD"

func TestMain(m *testing.M) {
	if what := os.Getenv(childEnv); what != "" {
		child(what)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child makes one GET_INFO ("one"), calls without end ("flood") or none
// ("none") on descriptor 3 (the parent's) or the stand-in opened anew, and
// ends when its input does.
func child(what string) {
	runtime.LockOSThread()
	fd := 3
	if os.Getenv("RMCALLS_TEST_FD") == "" {
		var err error
		if fd, err = unix.Open(standIn, unix.O_RDWR, 0); err != nil {
			os.Exit(3)
		}
	}
	mem, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		os.Exit(3)
	}
	b, _ := rm.Encode(rm.ControlParams{Client: 0xc1d000ff, Object: 0x5c000001, Cmd: rm.CtrlTSGPreempt})
	copy(mem, b)
	word := rm.Ioctl(rm.EscControl, uint32(len(b)))
	one := func() {
		_, _, _ = unix.RawSyscall(unix.SYS_IOCTL, uintptr(fd), uintptr(word), uintptr(unsafe.Pointer(&mem[0])))
	}
	ended := make(chan struct{})
	go func() { _, _ = os.Stdin.Read(make([]byte, 1)); close(ended) }()
	switch what {
	case "one":
		one()
	case "flood":
		for range 1000 {
			one()
		}
		_, _ = os.Stdout.Write([]byte("."))
		for {
			select {
			case <-ended:
				return
			default:
				for range 1000 {
					one()
				}
			}
		}
	}
	_, _ = os.Stdout.Write([]byte("."))
	<-ended
}

// startChild starts a child and waits until it has done what it was told. end
// lets it end and waits for that.
func startChild(t testing.TB, what string, file *os.File) (pid int, end func()) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run=^$")
	cmd.Env = append(os.Environ(), childEnv+"="+what)
	if file != nil {
		cmd.ExtraFiles = []*os.File{file}
		cmd.Env = append(cmd.Env, "RMCALLS_TEST_FD=3")
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatalf("child %q: %v", what, err)
	}
	end = sync.OnceFunc(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("child %q: %v", what, err)
		}
	})
	t.Cleanup(end)
	return cmd.Process.Pid, end
}
