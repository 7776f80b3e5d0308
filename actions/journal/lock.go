//go:build linux

package journal

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"sync"

	"golang.org/x/sys/unix"

	"tsgtop/internal/sched"
)

// ErrBusy: another tsgtop acts on this TSG, or uses the meter, right now.
var ErrBusy = errors.New("busy")

// held are the locks that this journal holds: the kernel's byte locks belong to
// the open file, not to a goroutine.
type held struct {
	mu sync.Mutex
	n  map[int64]bool
}

// meterByte is the byte of the lock file that stands for the RPC meter; TSGs
// have those from tsgBytes on.
const (
	meterByte = 1
	tsgBytes  = 1 << 32
)

// LockTSG claims a TSG for one command. The kernel gives it back when the
// process ends, however it does. ErrBusy where another process has it.
func (j *Journal) LockTSG(t sched.Target) (unlock func(), err error) {
	h := fnv.New32a()
	k := KeyOf("", t)
	fmt.Fprint(h, k.GPU, k.Unique, k.Known, k.Object, k.PID, k.Start)
	return j.lockByte(tsgBytes+int64(h.Sum32()), "a command on TSG "+t.TSGID.String())
}

// LockMeter claims the machine's RPC meter. ErrBusy where another has it, also
// inside this process.
func (j *Journal) LockMeter() (unlock func(), err error) {
	return j.lockByte(meterByte, "the RPC meter")
}

func (j *Journal) lockByte(at int64, what string) (func(), error) {
	locks := &j.held
	locks.mu.Lock()
	defer locks.mu.Unlock()
	if locks.n[at] {
		return nil, fmt.Errorf("%s is under way in this tsgtop: %w", what, ErrBusy)
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: at, Len: 1}
	if j.path != "" {
		err := unix.FcntlFlock(j.lock.Fd(), unix.F_OFD_SETLK, &lock)
		if err == unix.EAGAIN || err == unix.EACCES {
			return nil, fmt.Errorf("%s is under way in another tsgtop on this machine: %w", what, ErrBusy)
		}
		if err != nil {
			return nil, fmt.Errorf("journal %s: lock for %s: %w", j.path, what, err)
		}
	}
	if locks.n == nil {
		locks.n = map[int64]bool{}
	}
	locks.n[at] = true
	return sync.OnceFunc(func() {
		locks.mu.Lock()
		defer locks.mu.Unlock()
		delete(locks.n, at)
		if j.path != "" {
			free := lock
			free.Type = unix.F_UNLCK
			unix.FcntlFlock(j.lock.Fd(), unix.F_OFD_SETLK, &free)
		}
	}), nil
}
