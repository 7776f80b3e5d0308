//go:build linux

package rmdev

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// System is what this package asks of the kernel. The machine's own is
// Machine; package rmfake has a driver and a /proc in memory for tests.
//
// Errors of calls that have an errno are syscall.Errno values, bare, so that
// the caller can say what was tried.
type System interface {
	// Open opens a device file for reading and writing, not inherited by children.
	Open(path string) (fd int, err error)
	Close(fd int) error
	// Ioctl returns 0 where the ioctl itself went through; RM's status is then
	// in the argument. arg must not move while the call runs.
	Ioctl(fd int, request uint32, arg unsafe.Pointer) syscall.Errno
	// Device tells which character device an open descriptor is of.
	Device(fd int) (major, minor uint32, isChar bool, err error)
	// DeviceAt is Device of what a path leads to, which is not opened.
	DeviceAt(path string) (major, minor uint32, isChar bool, err error)
	// Map maps length bytes of a descriptor, for reading, shared.
	Map(fd, length int) ([]byte, error)
	Unmap([]byte) error

	PidfdOpen(pid int) (pidfd int, err error)
	PidfdGetFD(pidfd, fd int) (int, error)
	// CompareFiles orders two descriptors' open files as kcmp(2) does: 0 the
	// same file, 1 the first is less, 2 it is greater.
	CompareFiles(pidA, fdA, pidB, fdB int) (int, error)

	ReadFile(path string) ([]byte, error)
	ReadLink(path string) (string, error)
	ReadDir(path string) (names []string, err error)
}

// Machine is the machine that the program runs on.
var Machine System = machine{}

type machine struct{}

func (machine) Open(path string) (int, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

func (machine) Close(fd int) error { return unix.Close(fd) }

func (machine) Ioctl(fd int, request uint32, arg unsafe.Pointer) syscall.Errno {
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(request), uintptr(arg))
	return e
}

func (machine) Device(fd int) (uint32, uint32, bool, error) {
	return device(fd, "", unix.AT_EMPTY_PATH)
}

func (machine) DeviceAt(path string) (uint32, uint32, bool, error) {
	return device(unix.AT_FDCWD, path, 0)
}

// device asks what is known already: a file of another process's can be of a
// file system that answers when its owner likes.
func device(fd int, path string, flags int) (uint32, uint32, bool, error) {
	var st unix.Statx_t
	if err := unix.Statx(fd, path, flags|unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE, &st); err != nil {
		return 0, 0, false, err
	}
	return st.Rdev_major, st.Rdev_minor, st.Mode&unix.S_IFMT == unix.S_IFCHR, nil
}

func (machine) Map(fd, length int) ([]byte, error) {
	return unix.Mmap(fd, 0, length, unix.PROT_READ, unix.MAP_SHARED)
}

func (machine) Unmap(b []byte) error { return unix.Munmap(b) }

func (machine) PidfdOpen(pid int) (int, error) { return unix.PidfdOpen(pid, 0) }

func (machine) PidfdGetFD(pidfd, fd int) (int, error) { return unix.PidfdGetfd(pidfd, fd, 0) }

func (machine) CompareFiles(pidA, fdA, pidB, fdB int) (int, error) {
	const kcmpFile = 0
	r, _, e := unix.Syscall6(unix.SYS_KCMP, uintptr(pidA), uintptr(pidB), kcmpFile, uintptr(fdA), uintptr(fdB), 0)
	if e != 0 {
		return 0, e
	}
	return int(r), nil
}

func (machine) ReadFile(path string) ([]byte, error) { return os.ReadFile(path) }

func (machine) ReadLink(path string) (string, error) { return os.Readlink(path) }

func (machine) ReadDir(path string) ([]string, error) {
	d, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

// arena returns memory of whole pages outside of Go's heap and stacks: its
// address stays, so that a probe can be told beforehand what it will see.
func arena(size int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes for call parameters: %w", size, err)
	}
	return b, nil
}

func freeArena(b []byte) error { return unix.Munmap(b) }
