package rmcalls

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

const tracefs = "/sys/kernel/tracing"

// noTracefs: the numbers of tracepoints cannot be read.
type noTracefs struct{ err error }

func (e *noTracefs) Error() string { return e.err.Error() }
func (e *noTracefs) Unwrap() error { return e.err }

// withTracefs runs f, which attaches to tracepoints, where tracefs can be read.
// Where it is not mounted, it is mounted for f's thread alone, in a mount
// namespace that ends with it: nobody else sees it and nothing is left behind.
func withTracefs(f func() error) error {
	if exists(tracefs+"/events") || exists("/sys/kernel/debug/tracing/events") {
		return f()
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this goroutine
		if err := mountTracefs(); err != nil {
			done <- &noTracefs{err}
			return
		}
		done <- f()
	}()
	return <-done
}

func mountTracefs() error {
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("a mount namespace for tracefs: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private to a thread: %w", err)
	}
	if err := unix.Mount("tracefs", tracefs, "tracefs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting tracefs: %w", err)
	}
	return nil
}
