//go:build linux

package rmdev_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"tsgtop/internal/rm"
	"tsgtop/internal/rmdev"
	"tsgtop/internal/rmdev/rmfake"
)

// refusing is a driver that refuses to allocate one class, and counts what is
// taken of other processes.
type refusing struct {
	*rmfake.Driver
	class uint32
	taken int
}

func (r *refusing) Ioctl(fd int, request uint32, arg unsafe.Pointer) syscall.Errno {
	if nr, _, ok := rm.IoctlParts(request); ok && nr == rm.EscAlloc {
		if a := (*rm.Alloc64Params)(arg); a.Class == r.class {
			a.Status = 0x51
			return 0
		}
	}
	return r.Driver.Ioctl(fd, request, arg)
}

func (r *refusing) PidfdGetFD(pidfd, fd int) (int, error) {
	r.taken++
	return r.Driver.PidfdGetFD(pidfd, fd)
}

// An attempt to attach a GPU that fails, and is made again and again, keeps
// nothing open.
func TestAttachThatFailsLeavesNothing(t *testing.T) {
	for _, class := range []uint32{rm.ClassDevice, rm.ClassSubdevice} {
		d := &refusing{Driver: rmfake.New(), class: class}
		d.AddGPU()
		dev, err := rmdev.New(d).Open()
		if err != nil {
			t.Fatal(err)
		}
		defer dev.Close()
		gpus, err := dev.GPUs()
		if err != nil {
			t.Fatal(err)
		}
		own := d.OpenFiles()
		for range 3 {
			var status *rmdev.StatusError
			if a, err := dev.Attach(gpus[0]); !errors.As(err, &status) || a != nil {
				t.Fatalf("%+v, %v", a, err)
			}
		}
		if n := d.OpenFiles(); n != own {
			t.Errorf("class %#x: %d descriptors more are open", class, n-own)
		}
		d.class = 0
		if _, err := dev.Attach(gpus[0]); err != nil {
			t.Error("once it works:", err)
		}
	}
}

// What is of another's file system is not even taken: closing it can wait for
// its owner for ever.
func TestOnlyTheDriversFilesAreTaken(t *testing.T) {
	d := &refusing{Driver: rmfake.New()}
	p := d.AddProcess(10, "x")
	p.OpenOther(4, "/home/mallory/nvidiactl")
	if _, err := rmdev.New(d).Borrow(10, 4); !errors.Is(err, rmdev.ErrGone) || d.taken != 0 {
		t.Errorf("%v; taken %d times", err, d.taken)
	}
}

// Closes that hang are bounded: each holds a thread.
func TestClosesThatHangAreBounded(t *testing.T) {
	d := rmfake.New()
	r := rmdev.New(d)
	var free []func()
	refused := 0
	for i := range 70 {
		p := d.AddProcess(100+i, "x")
		p.Open(3)
		b, err := r.Borrow(100+i, 3)
		if err != nil {
			if !errors.Is(err, rmdev.ErrClosing) {
				t.Fatal(err)
			}
			if refused++; refused > 1 {
				break
			}
			continue
		}
		free = append(free, p.HangClose(3))
		p.Exit()
		b.Close()
	}
	if refused == 0 || r.PendingCloses() > 64 {
		t.Errorf("%d closes hang, %d refused", r.PendingCloses(), refused)
	}
	for _, f := range free {
		f()
	}
	r.WaitCloses()
	d.AddProcess(500, "x").Open(3)
	b, err := r.Borrow(500, 3)
	if err != nil {
		t.Fatal("once they are closed:", err)
	}
	b.Close()
	r.WaitCloses()
}

// The real system: what a path leads to is told without opening it.
func TestDeviceAt(t *testing.T) {
	m := rmdev.Machine
	if major, minor, char, err := m.DeviceAt("/dev/null"); err != nil || !char || major != 1 || minor != 3 {
		t.Errorf("/dev/null: %d:%d %v, %v", major, minor, char, err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe") // to open it would wait for a writer
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, char, err := m.DeviceAt(pipe); err != nil || char {
		t.Errorf("a pipe: %v, %v", char, err)
	}
	if _, _, _, err := m.DeviceAt(pipe + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
	f, err := os.Open("/dev/zero")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if major, minor, char, err := m.Device(int(f.Fd())); err != nil || !char || major != 1 || minor != 5 {
		t.Errorf("/dev/zero: %d:%d %v, %v", major, minor, char, err)
	}
}
