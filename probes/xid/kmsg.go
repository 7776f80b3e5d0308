package xid

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"tsgtop/internal/sched"
)

const kernelLog = "/dev/kmsg"

// facilityKernel is the kernel's own; what processes write into the log has
// another, so that nobody can forge an Xid there.
const facilityKernel = 0

// log reads Xids from the kernel log, from now on.
type log struct {
	file     *os.File
	facility int
}

func openLog(path string) (*log, error) {
	// Non-blocking, so that a read can be ended by Close.
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the kernel log %s: %w", path, err)
	}
	if _, err := unix.Seek(fd, 0, io.SeekEnd); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("going to the end of the kernel log %s: %w", path, err)
	}
	return &log{file: os.NewFile(uintptr(fd), path), facility: facilityKernel}, nil
}

// run gives each Xid to report until the log is closed. missed is called where
// records were overwritten before they were read.
func (l *log) run(report func(x sched.Xid, uuid string), missed func()) error {
	b := make([]byte, 8192) // the kernel's longest record
	for {
		n, err := l.file.Read(b)
		switch {
		case errors.Is(err, unix.EPIPE):
			missed()
			continue
		case errors.Is(err, os.ErrClosed):
			return nil
		case err != nil:
			return fmt.Errorf("reading the kernel log %s: %w", l.file.Name(), err)
		}
		r, err := parseRecord(b[:n])
		if err != nil || r.facility != l.facility {
			continue
		}
		x, uuid, err := Parse(r.text)
		if err != nil {
			continue
		}
		x.Time, x.From = sched.Now(), "kernel log"
		report(x, uuid)
	}
}
