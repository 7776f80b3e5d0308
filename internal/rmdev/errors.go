//go:build linux

package rmdev

import (
	"errors"
	"fmt"
	"syscall"

	"tsgtop/internal/rm"
)

// Sentinels for errors.Is. The errors that wrap them say what was tried.
var (
	// ErrNoDriver: no NVIDIA driver is loaded, or its device files are missing.
	ErrNoDriver = errors.New("no NVIDIA driver answers")
	// ErrNotRoot: the kernel or the driver asks for more privilege.
	ErrNotRoot = errors.New("needs root")
	// ErrGone: the process, or its descriptor, ended meanwhile. Never a fault.
	ErrGone = errors.New("gone")
	// ErrRefused: the kernel does not let us take another process's descriptor.
	ErrRefused = errors.New("refused by the kernel")
	// ErrClosing: too many borrowed descriptors do not close.
	ErrClosing = errors.New("borrowed descriptors are still being closed")
)

// StatusError is an RM call that went through and that RM answered with
// something other than NV_OK.
type StatusError struct {
	What   string // what was tried, on what
	Status uint32 // NV_STATUS
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s: %s (0x%x)", e.What, rm.StatusName(e.Status), e.Status)
}

// check makes an error of a status that is not NV_OK.
func check(what string, status uint32, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if status != 0 {
		return &StatusError{What: what, Status: status}
	}
	return nil
}

// openError says what an errno of opening a device file means.
func openError(path string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOENT):
		return fmt.Errorf("%w: there is no %s; load the driver (modprobe nvidia), or run nvidia-smi once to have the file made (in a container: give it the device)", ErrNoDriver, path)
	case errors.Is(err, syscall.ENXIO), errors.Is(err, syscall.ENODEV):
		return fmt.Errorf("%w: %s is there and no driver behind it; load the driver (modprobe nvidia)", ErrNoDriver, path)
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return fmt.Errorf("open %s: %w: it %w; run it with sudo (in a container: give it the device)", path, err, ErrNotRoot)
	case errors.Is(err, syscall.EIO):
		return fmt.Errorf("open %s: the driver could not start the GPU: %w; the kernel log says why", path, err)
	}
	return fmt.Errorf("open %s: %w", path, err)
}
