//go:build vmtest

package inside

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tsgtop/actions/kfunc"
	"tsgtop/bpf"
	"tsgtop/internal/sched"
)

// loadTsgtop loads the companion module for the length of the test.
func loadTsgtop(t *testing.T, params string) {
	t.Helper()
	if err := insmod("tsgtop", params); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rmmod("tsgtop"); err != nil {
			t.Error(err)
		}
	})
}

func openKfunc(t *testing.T) *kfunc.Kfunc {
	t.Helper()
	k, err := kfunc.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	return k
}

// tsgRow is one line of the stand-in's tsgs file.
type tsgRow struct {
	client, tsg, number, unique, runlist   uint32
	timeslice, effective                   uint64
	level, effectiveLevel, preempts, saves uint32
	pid, gpu                               int
	engine                                 uint32
}

func tsgRows(t *testing.T) []tsgRow {
	t.Helper()
	b, err := os.ReadFile(knobDir + "tsgs")
	if err != nil {
		t.Fatal(err)
	}
	var out []tsgRow
	for line := range strings.Lines(string(b)) {
		var r tsgRow
		_, err := fmt.Sscanf(line, "client=%x tsg=%x pid=%d gpu=%d runlist=%d number=%d unique=%d engine=%d timeslice=%d effective=%d level=%d effective_level=%d preempts=%d saves=%d",
			&r.client, &r.tsg, &r.pid, &r.gpu, &r.runlist, &r.number, &r.unique, &r.engine, &r.timeslice, &r.effective, &r.level, &r.effectiveLevel, &r.preempts, &r.saves)
		if err != nil {
			t.Fatalf("tsgs line %q: %v", line, err)
		}
		out = append(out, r)
	}
	return out
}

func (c *cudaProcess) row(t *testing.T) tsgRow {
	t.Helper()
	for _, r := range tsgRows(t) {
		if r.client == c.client && r.tsg == c.tsg {
			return r
		}
	}
	t.Fatalf("client %x has no TSG %x", c.client, c.tsg)
	return tsgRow{}
}

// target is the compute TSG with all that names it.
func (c *cudaProcess) target(t *testing.T) sched.Target {
	t.Helper()
	r := c.row(t)
	return sched.Target{
		TSGID:    sched.TSGID{GPU: r.gpu, Runlist: int(r.runlist), TSG: int(r.number)},
		Object:   sched.Object{Client: sched.Handle(c.client), Handle: sched.Handle(c.tsg)},
		UniqueID: &r.unique,
		PID:      os.Getpid(),
	}
}

func do(t *testing.T, k *kfunc.Kfunc, op sched.Op, target sched.Target, value uint64) kfunc.Result {
	t.Helper()
	r, err := k.Do(uint64(time.Now().UnixNano()), op, target, value, true, 5*time.Second)
	if err != nil {
		t.Fatalf("%s %d: %v", op, value, err)
	}
	if r.RanBefore == 0 || r.RanAfter < r.RanBefore {
		t.Errorf("%s: no RAN records: %+v", op, r)
	}
	return r
}

// TestKfuncCommands: each command reaches the TSG that is meant, the status comes
// back as RM gave it, and the stand-in shows the effect, or none.
func TestKfuncCommands(t *testing.T) {
	loadModel(t, "nvidia", "")
	loadTsgtop(t, "")
	c := startCUDA(t, 0)
	k := openKfunc(t)
	if w := k.WhyNot(); w != "" {
		t.Fatal("not usable: ", w)
	}
	target := c.target(t)
	answered := func(r kfunc.Result, status uint32) {
		t.Helper()
		if !r.Sent || !r.Answered || r.Errno != 0 || r.Status != status || !r.Checked || !r.Same {
			t.Errorf("want status %#x, sent, answered, checked, same: %+v", status, r)
		}
		if r.DurNS <= 0 || r.SentNS < r.RanBefore || r.AnsweredNS > r.RanAfter {
			t.Errorf("times out of order: %+v", r)
		}
	}
	answered(do(t, k, sched.OpTimeslice, target, 200), 0)
	if r := c.row(t); r.timeslice != 200 || r.effective != 200 {
		t.Errorf("timeslice 200: %+v", r)
	}
	answered(do(t, k, sched.OpPreempt, target, 0), 0)
	if r := c.row(t); r.preempts != 1 {
		t.Errorf("preempt: %+v", r)
	}
	answered(do(t, k, sched.OpInterleave, target, 2), 0)
	if r := c.row(t); r.level != 2 || r.effectiveLevel != 0 {
		t.Errorf("interleave is accepted and ignored: %+v", r)
	}
	for _, x := range []struct {
		mode, status, want uint32
	}{{1, 0, 0}, {2, 0, 0}, {3, 0x56, 0x56}, {3, 0x1234, 0x1234}, {4, 0x65, 0x65}} {
		knobFor(t, "timeslice_mode", x.mode)
		knobFor(t, "status", fmt.Sprintf("%#x", x.status))
		answered(do(t, k, sched.OpTimeslice, target, 4096), x.want)
		if r := c.row(t); r.effective != 200 {
			t.Errorf("mode %d changed the hardware: %+v", x.mode, r)
		}
	}
	knob(t, "gpu_lost", 1)
	r := do(t, k, sched.OpPreempt, target, 0)
	knob(t, "gpu_lost", 0)
	if r.Sent || r.Status != 0xf {
		t.Errorf("a lost GPU: %+v", r)
	}
}

// TestKfuncBounds: what RM would take and the module does not.
func TestKfuncBounds(t *testing.T) {
	loadModel(t, "nvidia", "")
	loadTsgtop(t, "")
	c := startCUDA(t, 0)
	k := openKfunc(t)
	for _, x := range []struct {
		op    sched.Op
		value uint64
	}{{sched.OpTimeslice, 0}, {sched.OpTimeslice, 100_000_001}, {sched.OpTimeslice, 1 << 63}, {sched.OpInterleave, 3}, {sched.OpInterleave, 0xffffffff}} {
		r := do(t, k, x.op, c.target(t), x.value)
		if r.Errno != syscall.EINVAL || r.Sent || r.Refusal != bpf.ActionTsgtopWhyTSGTOP_WHY_BOUNDS {
			t.Errorf("%s %d: %+v", x.op, x.value, r)
		}
	}
	if r := c.row(t); r.timeslice != 2048 || r.level != 0 {
		t.Errorf("something got through: %+v", r)
	}
}

// TestKfuncIdentity: nothing is sent to a TSG that is gone or took the handle of
// the one that was meant.
func TestKfuncIdentity(t *testing.T) {
	loadModel(t, "nvidia", "")
	loadTsgtop(t, "")
	k := openKfunc(t)
	c := startCUDA(t, 0)
	target := c.target(t)
	id, r, err := k.Identity(1, target.Object, time.Second)
	if err != nil || r.Errno != 0 || r.Status != 0 {
		t.Fatalf("identity: %+v, %v", r, err)
	}
	if id.Class != 0xa06c || id.Device != c.device || id.Subdevice != c.subdevice || id.Unique != *target.UniqueID ||
		int(id.Number) != target.TSG || id.N_contexts != 8 || id.Contexts[0] != c.contexts[0] {
		t.Errorf("identity: %+v", id)
	}
	stale := target
	stale.UniqueID = sched.Ptr(*target.UniqueID + 1)
	if r := do(t, k, sched.OpTimeslice, stale, 300); r.Errno != syscall.ESTALE || r.Sent || !r.Vanished() {
		t.Errorf("another's unique id: %+v", r)
	}
	number := target
	number.UniqueID, number.TSG = nil, target.TSG+1
	if r := do(t, k, sched.OpTimeslice, number, 300); r.Errno != syscall.ESTALE || r.Sent {
		t.Errorf("another's number: %+v", r)
	}
	// not a TSG at all
	channel := target
	channel.UniqueID, channel.Object.Handle = nil, sched.Handle(c.channels[0])
	if r := do(t, k, sched.OpPreempt, channel, 0); r.Errno != syscall.ESTALE || r.Sent {
		t.Errorf("a channel: %+v", r)
	}
	// the process dies and its copy takes handles and number
	c.ctl.f.Close()
	if r := do(t, k, sched.OpTimeslice, target, 300); r.Errno != syscall.ESRCH || r.Sent || !r.Vanished() {
		t.Errorf("a dead client: %+v", r)
	}
	knob(t, "next_client", fmt.Sprintf("%#x", c.client&0xfffff))
	copied := startCUDA(t, 0)
	if copied.client != c.client || copied.tsg != c.tsg || copied.target(t).TSG != target.TSG {
		t.Fatal("the copy did not take the handles over")
	}
	if r := do(t, k, sched.OpTimeslice, target, 300); r.Errno != syscall.ESTALE || r.Sent {
		t.Errorf("the restarted copy: %+v", r)
	}
	if r := copied.row(t); r.timeslice != 2048 {
		t.Errorf("the copy was changed: %+v", r)
	}
}

// TestKfuncSwitches: the GSP's counters; a copy engine has none, by status.
func TestKfuncSwitches(t *testing.T) {
	loadModel(t, "nvidia", "")
	loadTsgtop(t, "")
	k := openKfunc(t)
	c := startCUDA(t, 0)
	feed(t, 0, record(7, 1, c.contexts[0], 1000), record(6, 2, c.contexts[0], 2000), record(7, 3, c.contexts[0], 3000))
	s, r, err := k.Switches(1, c.target(t), time.Second)
	if err != nil || r.Status != 0 || s.Save != 2 || s.Cilp != 2 || s.Restore != 1 {
		t.Errorf("switches %+v, %+v, %v", s, r, err)
	}
	copyTSG := c.target(t)
	for _, row := range tsgRows(t) {
		if row.client == c.client && row.tsg == c.copyTSGs[0] {
			copyTSG.Object.Handle, copyTSG.TSG, copyTSG.UniqueID = sched.Handle(row.tsg), int(row.number), &row.unique
		}
	}
	if _, r, err := k.Switches(2, copyTSG, time.Second); err != nil || r.Status != 0x1a || !r.Answered {
		t.Errorf("a copy engine's counters: %+v, %v", r, err)
	}
}

// TestKfuncHang: an RPC that takes seconds keeps neither the caller nor the
// kernel's RCU; the cookie finds the answer later.
func TestKfuncHang(t *testing.T) {
	loadModel(t, "nvidia", "")
	loadTsgtop(t, "")
	k := openKfunc(t)
	c := startCUDA(t, 0)
	target := c.target(t)
	knob(t, "hang_ms", 1500)
	r, err := k.Do(1, sched.OpTimeslice, target, 500, false, 300*time.Millisecond)
	knob(t, "hang_ms", 0)
	if err != nil || r.Errno != syscall.EINPROGRESS || r.Answered || r.Cookie == 0 || r.RanAfter == 0 {
		t.Fatalf("a hanging call: %+v, %v", r, err)
	}
	if err := unix.DeleteModule("tsgtop", unix.O_NONBLOCK); err == nil {
		t.Fatal("unloaded in the middle of a call")
	}
	status, err := os.ReadFile("/sys/module/tsgtop/parameters/status")
	if err != nil || !strings.Contains(string(status), "calls in flight: 1") {
		t.Errorf("the status does not say what uses it: %q, %v", status, err)
	}
	r, err = k.Wait(2, r.Cookie, 10*time.Second)
	if err != nil || !r.Answered || r.Status != 0 || r.DurNS < int64(time.Second) {
		t.Errorf("after the hang: %+v, %v", r, err)
	}
	if row := c.row(t); row.effective != 500 {
		t.Errorf("after the hang: %+v", row)
	}
	if r, err = k.Wait(3, 1<<60, time.Second); err != nil || r.Errno != syscall.ENOENT {
		t.Errorf("a cookie that never was: %+v, %v", r, err)
	}
}

// TestKfuncCapability: a program run by a thread without CAP_SYS_ADMIN is refused
// by the module itself, though the thread may run eBPF.
func TestKfuncCapability(t *testing.T) {
	loadModel(t, "nvidia", "")
	loadTsgtop(t, "")
	k := openKfunc(t)
	c := startCUDA(t, 0)
	target := c.target(t)
	var r kfunc.Result
	var err error
	done := make(chan struct{})
	go func() { // the thread is thrown away: it never gets its capability back
		defer close(done)
		runtime.LockOSThread()
		hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var caps [2]unix.CapUserData
		if err = unix.Capget(&hdr, &caps[0]); err != nil {
			return
		}
		for i := range caps {
			caps[i].Inheritable = 0
		}
		caps[0].Effective &^= 1 << unix.CAP_SYS_ADMIN
		caps[0].Permitted &^= 1 << unix.CAP_SYS_ADMIN
		if err = unix.Capset(&hdr, &caps[0]); err != nil {
			return
		}
		r, err = k.Do(1, sched.OpTimeslice, target, 300, false, time.Second)
	}()
	<-done
	if err != nil || r.Errno != syscall.EPERM || r.Sent || r.Refusal != bpf.ActionTsgtopWhyTSGTOP_WHY_CAPABILITY {
		t.Errorf("without CAP_SYS_ADMIN: %+v, %v", r, err)
	}
	if row := c.row(t); row.timeslice != 2048 {
		t.Errorf("it got through: %+v", row)
	}
}

// TestKfuncRate: a flood is refused, not queued.
func TestKfuncRate(t *testing.T) {
	loadModel(t, "nvidia", "")
	loadTsgtop(t, "rate=5")
	k := openKfunc(t)
	c := startCUDA(t, 0)
	target := c.target(t)
	refused := 0
	for range 20 {
		if r := do(t, k, sched.OpPreempt, target, 0); r.Errno == syscall.EAGAIN && r.Refusal == bpf.ActionTsgtopWhyTSGTOP_WHY_RATE && !r.Sent {
			refused++
		}
	}
	if refused < 5 {
		t.Errorf("of 20 calls at a rate of 5 a second %d were refused", refused)
	}
	if got := int(c.row(t).preempts); got != 20-refused {
		t.Errorf("%d refused, %d done of 20", refused, got)
	}
}

// TestKmodOrders: loads before and after the driver, holds it only while used,
// unloads in each order, and not under a program that could call it.
func TestKmodOrders(t *testing.T) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	defer rmmod("nvidia")
	defer rmmod("tsgtop")
	must(insmod("tsgtop", ""))
	k := openKfunc(t)
	r := do(t, k, sched.OpPreempt, sched.Target{}, 0)
	if r.Errno != syscall.ENODEV || r.Refusal != bpf.ActionTsgtopWhyTSGTOP_WHY_NO_DRIVER || !strings.Contains(k.WhyNot(), "not loaded") {
		t.Errorf("before the driver: %+v; %s", r, k.WhyNot())
	}
	must(insmod("nvidia", ""))
	c, err := newCUDA(0)
	must(err)
	if r := do(t, k, sched.OpTimeslice, c.target(t), 256); r.Errno != 0 || r.Status != 0 {
		t.Errorf("with the driver: %+v", r)
	}
	c.close()
	must(rmmod("nvidia")) // under a loaded program: nothing holds it
	if r := do(t, k, sched.OpPreempt, sched.Target{}, 0); r.Errno != syscall.ENODEV {
		t.Errorf("after the driver: %+v", r)
	}
	if err := unix.DeleteModule("tsgtop", unix.O_NONBLOCK); !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EWOULDBLOCK) {
		t.Errorf("unloaded under a program that calls it: %v", err)
	}
	must(insmod("nvidia", ""))
	must(k.Close())
	must(rmmod("tsgtop"))
	must(insmod("tsgtop", ""))
	must(rmmod("tsgtop"))
	must(rmmod("nvidia"))
}

// TestKmodRefuses: each flavour and version that it cannot use, with one line.
func TestKmodRefuses(t *testing.T) {
	for _, x := range []struct {
		model, params, tsgtop, line string
		errno                       syscall.Errno
	}{
		{"nvidia-proprietary", "", "tsgtop", "tsgtop: the proprietary nvidia.ko is loaded", syscall.EOPNOTSUPP},
		{"nvidia", "version=999.10", "tsgtop", "tsgtop: this driver version's layout is not known here; tsgtop's module must be updated: 999.10", syscall.EOPNOTSUPP},
		{"nvidia", "version=535.54.03", "tsgtop", "layout is not known here", syscall.EOPNOTSUPP},
		{"nvidia-plain", "version=550.163.01", "tsgtop", "tsgtop: nvidia.ko does not export nvidia_get_rm_ops to GPL modules", syscall.EOPNOTSUPP},
		{"nvidia", "", "tsgtop-nobtf", "tsgtop: built without BTF", syscall.ENOEXEC},
	} {
		t.Run(x.model+x.params+x.tsgtop, func(t *testing.T) {
			loadModel(t, x.model, x.params)
			mark := markLog(t)
			err := insmod(x.tsgtop, "")
			if err == nil {
				rmmod("tsgtop")
			}
			log := dmesgSince(t, mark)
			if !errors.Is(err, x.errno) || strings.Count(log, x.line) != 1 || strings.Count(log, "tsgtop: ") != 1 {
				t.Errorf("%v, want %v and one line %q; log: %s", err, x.errno, x.line, log)
			}
		})
	}
}

// TestKmodDriverChanges: the driver is replaced under the loaded module.
func TestKmodDriverChanges(t *testing.T) {
	loadTsgtop(t, "")
	loadModel(t, "nvidia", "")
	k := openKfunc(t)
	c := startCUDA(t, 0)
	target := c.target(t)
	for _, x := range []struct {
		knob string
		bad  any
		good any
		want bpf.ActionTsgtopWhy
	}{
		{"version", "600.01", "580.159.04", bpf.ActionTsgtopWhyTSGTOP_WHY_VERSION},
		{"shift_layout", 1, 0, bpf.ActionTsgtopWhyTSGTOP_WHY_HANDSHAKE},
	} {
		knob(t, x.knob, x.bad)
		if r := do(t, k, sched.OpPreempt, target, 0); r.Errno != syscall.EOPNOTSUPP || r.Refusal != x.want || r.Sent {
			t.Errorf("%s %v: %+v", x.knob, x.bad, r)
		}
		knob(t, x.knob, x.good)
		if r := do(t, k, sched.OpPreempt, target, 0); r.Errno != 0 || r.Status != 0 {
			t.Errorf("%s %v: %+v", x.knob, x.good, r)
		}
	}
	knob(t, "version", "550.163.01")
	if r := do(t, k, sched.OpPreempt, target, 0); r.Errno != syscall.ENODATA || r.Sent {
		t.Errorf("a driver without unique ids, and one was asked to be checked: %+v", r)
	}
	target.UniqueID = nil
	if r := do(t, k, sched.OpPreempt, target, 0); r.Errno != 0 || r.Checked {
		t.Errorf("a driver without unique ids: %+v", r)
	}
	knob(t, "version", "580.159.04")
}

// TestKmodSuspend: while the system prepares to sleep nothing is sent. Opening
// /dev/snapshot makes the kernel tell its modules so, without going on to sleep.
func TestKmodSuspend(t *testing.T) {
	loadModel(t, "nvidia", "")
	loadTsgtop(t, "")
	k := openKfunc(t)
	c := startCUDA(t, 0)
	f, err := os.OpenFile("/dev/snapshot", os.O_RDONLY, 0)
	if err != nil {
		t.Fatalf("no /dev/snapshot (CONFIG_HIBERNATION): %v", err)
	}
	if r := do(t, k, sched.OpPreempt, c.target(t), 0); r.Errno != syscall.EBUSY || r.Refusal != bpf.ActionTsgtopWhyTSGTOP_WHY_SUSPEND || r.Sent {
		t.Errorf("while suspending: %+v", r)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if r := do(t, k, sched.OpPreempt, c.target(t), 0); r.Errno != 0 || r.Status != 0 {
		t.Errorf("after resuming: %+v", r)
	}
}
