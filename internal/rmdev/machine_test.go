//go:build linux

package rmdev_test

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"tsgtop/internal/rmdev"
)

type errno = syscall.Errno

// The calls that need no driver are tried on the machine itself.
func TestMachine(t *testing.T) {
	m := rmdev.Machine
	fd, err := m.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(fd)
	if major, minor, isChar, err := m.Device(fd); err != nil || !isChar || major != 1 || minor != 3 {
		t.Errorf("/dev/null is %d:%d, %v, %v", major, minor, isChar, err)
	}
	pid := os.Getpid()
	pidfd, err := m.PidfdOpen(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(pidfd)
	dup, err := m.PidfdGetFD(pidfd, fd)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(dup)
	other, err := m.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(other)
	switch same, err := m.CompareFiles(pid, fd, pid, dup); {
	case errors.Is(err, syscall.ENOSYS):
		t.Log("this kernel has no kcmp")
	case err != nil || same != 0:
		t.Errorf("a borrowed descriptor compares as %d, %v", same, err)
	default:
		if c, err := m.CompareFiles(pid, fd, pid, other); err != nil || c == 0 {
			t.Errorf("another open file compares as %d, %v", c, err)
		}
	}
	// A descriptor that is not the driver's is refused before anything is sent.
	r := rmdev.New(nil)
	if _, err := r.Borrow(pid, fd); !errors.Is(err, rmdev.ErrGone) {
		t.Errorf("borrowed /dev/null: %v", err)
	}
	r.WaitCloses()
}
