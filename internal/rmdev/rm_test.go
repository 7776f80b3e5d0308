//go:build linux

package rmdev_test

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"unsafe"

	"tsgtop/internal/rm"
	"tsgtop/internal/rmdev"
	"tsgtop/internal/rmdev/rmfake"
)

func open(t *testing.T, d *rmfake.Driver) *rmdev.Device {
	t.Helper()
	dev, err := rmdev.New(d).Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	return dev
}

func TestGPUsAreInPCIOrder(t *testing.T) {
	d := rmfake.New()
	for i := range 8 {
		d.AddGPU().Minor = uint32(7 - i) // the minors run the other way
	}
	dev := open(t, d)
	gpus, err := dev.GPUs()
	if err != nil {
		t.Fatal(err)
	}
	if len(gpus) != 8 {
		t.Fatalf("%d GPUs, want 8", len(gpus))
	}
	for i, g := range gpus {
		if g.Index != i || g.Minor != 7-i || g.DeviceInstance != i || g.Information.Model != "NVIDIA H200" || !g.Information.GSP() {
			t.Errorf("GPU %d: %+v", i, g)
		}
	}
	if gpus[1].PCI != "0000:20:00.0" {
		t.Errorf("PCI %q", gpus[1].PCI)
	}
}

// RM must not be asked about a GPU that it has not initialised, until we do.
func TestAttachInitialises(t *testing.T) {
	d := rmfake.New()
	d.AddGPU().Attached = false
	dev := open(t, d)
	gpus, err := dev.GPUs()
	if err != nil {
		t.Fatal(err)
	}
	if gpus[0].DeviceInstance != -1 || d.Calls(rm.CtrlGPUIDInfo) != 0 {
		t.Fatalf("instance %d, %d questions about it", gpus[0].DeviceInstance, d.Calls(rm.CtrlGPUIDInfo))
	}
	a, err := dev.Attach(gpus[0])
	if err != nil {
		t.Fatal(err)
	}
	if a.DeviceInstance != 0 || a.Subdevice == 0 || a.Subdevice == a.Device {
		t.Errorf("attached %+v", a)
	}
	var id rm.GPUIDParams
	if err := dev.Control(a.Subdevice, rm.CtrlGPUID, rmdev.Bytes(&id)); err != nil || id.GPUID != gpus[0].ID {
		t.Errorf("gpu id %#x, %v", id.GPUID, err)
	}
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
	if n := d.OpenFiles(); n != 0 {
		t.Errorf("%d descriptors left open", n)
	}
	if err := dev.Close(); err != nil {
		t.Error("closing twice:", err)
	}
}

func TestNoDriver(t *testing.T) {
	d := rmfake.New()
	d.Missing = true
	if _, err := rmdev.New(d).Open(); !errors.Is(err, rmdev.ErrNoDriver) || !strings.Contains(err.Error(), "modprobe") {
		t.Errorf("open: %v", err)
	}
	if _, err := rmdev.New(d).Driver(); !errors.Is(err, rmdev.ErrNoDriver) {
		t.Errorf("driver: %v", err)
	}
}

func TestStatusError(t *testing.T) {
	dev := open(t, rmfake.New())
	var want *rmdev.StatusError
	err := dev.Control(dev.Client(), 0xa06c0177, nil)
	if !errors.As(err, &want) || want.Status != 0x56 || !strings.Contains(err.Error(), "NV_ERR_NOT_SUPPORTED") {
		t.Errorf("%v", err)
	}
}

// A witness is told the addresses before the call is made.
func TestCallerAddressesAreTheCallsOwn(t *testing.T) {
	d := rmfake.New()
	spy := &spy{Driver: d}
	r := rmdev.New(spy)
	dev, err := r.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	c, err := r.NewCaller()
	if err != nil {
		t.Fatal(err)
	}
	arg, params := c.Addresses()
	for range 3 {
		if _, err := c.Control(dev.FD(), dev.Client(), dev.Client(), rm.CtrlClientDatabaseInfo, make([]byte, 16)); err != nil {
			t.Fatal(err)
		}
		if spy.arg != arg || spy.params != uint64(params) {
			t.Fatalf("argument at %#x, want %#x; parameters at %#x, want %#x", spy.arg, arg, spy.params, params)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.Control(dev.FD(), dev.Client(), dev.Client(), rm.CtrlClientDatabaseInfo, make([]byte, 16)); err == nil {
		t.Error("a closed caller made a call")
	}
}

type spy struct {
	*rmfake.Driver
	arg    uintptr
	params uint64
}

func (s *spy) Ioctl(fd int, request uint32, arg unsafe.Pointer) (e errno) {
	s.arg = uintptr(arg)
	if nr, _, _ := rm.IoctlParts(request); nr == rm.EscControl {
		s.params = (*rm.ControlParams)(arg).Params
	}
	return s.Driver.Ioctl(fd, request, arg)
}

func TestParametersThatDoNotFit(t *testing.T) {
	dev := open(t, rmfake.New())
	if err := dev.Control(dev.Client(), rm.CtrlClientDatabaseInfo, make([]byte, rmdev.MaxParams+1)); err == nil {
		t.Error("no error")
	}
}

func TestVersions(t *testing.T) {
	for _, c := range []struct {
		text, version string
		open, fails   bool
	}{
		{"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (dvs-builder@U22-I3-AM02-20-3)  Thu\nGCC version:  gcc\n", "580.159.04", true, false},
		{"NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\n", "535.104.05", false, false},
		{"NVRM version: NVIDIA UNIX aarch64 Kernel Module  390.157  x\n", "390.157", false, false},
		{"NVRM version: something else\n", "", false, true},
		{"", "", false, true},
	} {
		d, err := rmdev.ParseVersion(c.text)
		if d.Version != c.version || d.Open != c.open || (err != nil) != c.fails {
			t.Errorf("%q: %+v, %v", c.text, d, err)
		}
	}
	i := rmdev.ParseInformation("Model: \t\t NVIDIA A100\nGPU UUID: \t GPU-1\nGPU Firmware: \t N/A\nDevice Minor: \t x\n")
	if i.Model != "NVIDIA A100" || i.UUID != "GPU-1" || i.GSP() || i.Minor != -1 {
		t.Errorf("%+v", i)
	}
}

func TestBorrow(t *testing.T) {
	d := rmfake.New()
	g := d.AddGPU()
	p := d.AddProcess(479, "train.py")
	p.Open(5)
	c := p.NewClient(5)
	tsg := c.CUDA(g, 0x5c000000)[0]
	dev := open(t, d)
	own := d.OpenFiles()

	// Through our own file RM refuses; through the borrowed one it answers.
	if st, err := dev.ControlOn(c.Handle, tsg.Handle, rm.CtrlTSGInfo, make([]byte, 4)); err != nil || st != 0x23 {
		t.Errorf("own file: status %#x, %v", st, err)
	}
	b, err := dev.RM().Borrow(479, 5)
	if err != nil {
		t.Fatal(err)
	}
	us := make([]byte, 8)
	if st, err := b.Control(c.Handle, tsg.Handle, rm.CtrlTSGGetTimeslice, us); err != nil || st != 0 || binary.LittleEndian.Uint64(us) != 2048 {
		t.Errorf("timeslice %d, status %#x, %v", binary.LittleEndian.Uint64(us), st, err)
	}
	b.Close()
	b.Close()
	dev.RM().WaitCloses()
	if d.OpenFiles() != own {
		t.Errorf("%d descriptors open, want %d", d.OpenFiles(), own)
	}
	p.Exit()
	if d.Alive(c.Handle) {
		t.Error("the client outlived its process")
	}
}

func TestBorrowErrors(t *testing.T) {
	d := rmfake.New()
	p := d.AddProcess(10, "x")
	p.Open(3)
	p.OpenOther(4, "/dev/null")
	r := rmdev.New(d)
	own := d.OpenFiles()
	for _, c := range []struct {
		name    string
		prepare func()
		pid, fd int
		is      error
		text    string
	}{
		{"no such process", nil, 11, 3, rmdev.ErrGone, "process has ended"},
		{"closed descriptor", nil, 10, 9, rmdev.ErrGone, "closed"},
		{"reused descriptor", nil, 10, 4, rmdev.ErrGone, "not /dev/nvidiactl any more"},
		{"no right", func() { d.RefuseBorrow = true }, 10, 3, rmdev.ErrRefused, "CAP_SYS_PTRACE"},
		{"yama", func() { d.Yama = "3" }, 10, 3, rmdev.ErrRefused, "ptrace_scope is 3"},
	} {
		if c.prepare != nil {
			c.prepare()
		}
		_, err := r.Borrow(c.pid, c.fd)
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	r.WaitCloses()
	if d.OpenFiles() != own {
		t.Errorf("%d descriptors left open", d.OpenFiles()-own)
	}
}

// The last close of a dead process's file tears its client down: that must not
// hold up who borrowed it.
func TestCloseOfADeadProcessDoesNotBlock(t *testing.T) {
	d := rmfake.New()
	p := d.AddProcess(10, "x")
	p.Open(3)
	c := p.NewClient(3)
	r := rmdev.New(d)
	b, err := r.Borrow(10, 3)
	if err != nil {
		t.Fatal(err)
	}
	release := p.HangClose(3)
	p.Exit()
	if !d.Alive(c.Handle) {
		t.Error("the borrowed descriptor should keep the client")
	}
	b.Close() // would hang
	if r.PendingCloses() != 1 {
		t.Errorf("%d closes pending, want 1", r.PendingCloses())
	}
	release()
	r.WaitCloses()
	if d.Alive(c.Handle) || r.PendingCloses() != 0 {
		t.Error("not closed")
	}
}

func TestMapMemory(t *testing.T) {
	d := rmfake.New()
	dev := open(t, d)
	p := rm.MemoryAlloc{Attr: rm.MemoryCached, Attr2: rm.MemoryUserReadOnly, Size: 4096}
	h, err := dev.Alloc(dev.Client(), rm.ClassDevicelessMemory, rmdev.Bytes(&p))
	if err != nil {
		t.Fatal(err)
	}
	mem, err := dev.MapMemory(h, 4096)
	if err != nil || len(mem) != 4096 {
		t.Fatal(len(mem), err)
	}
	if err := dev.Free(dev.Client(), h); err != nil {
		t.Error(err)
	}
	if _, err := dev.MapMemory(h, 4096); err == nil {
		t.Error("mapped freed memory")
	}
	dev.Close()
	if d.OpenFiles() != 0 {
		t.Errorf("%d descriptors left open", d.OpenFiles())
	}
}

func TestMIG(t *testing.T) {
	for _, version := range []string{"570.211.01", "575.57.08", "580.159.04", "620.10"} {
		d := rmfake.New()
		d.Version = version
		d.AddGPU()
		d.AddGPU().MIG = true
		dev := open(t, d)
		gpus, err := dev.GPUs()
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []bool{false, true} {
			a, err := dev.Attach(gpus[i])
			if err != nil {
				t.Fatal(err)
			}
			if on, err := dev.MIG(a); err != nil || on != want {
				t.Errorf("driver %s, GPU%d: MIG %v, %v", version, i, on, err)
			}
		}
		// A driver that nobody compared is not asked in a layout that may be wrong.
		if asked := d.Calls(rm.CtrlGPUInfo); (asked == 0) != (version == "620.10") {
			t.Errorf("driver %s: asked %d times", version, asked)
		}
	}
}
