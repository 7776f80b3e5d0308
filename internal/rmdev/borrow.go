//go:build linux

package rmdev

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"tsgtop/internal/rm"
)

// Borrowed is a descriptor of ours onto another process's open /dev/nvidiactl.
// RM takes calls through it for those of the other process's own: it looks at
// the open file alone. Held, it would keep a dead process's clients and GPU
// memory alive, so it is closed within milliseconds.
type Borrowed struct {
	*borrowCaller
	rm     *RM
	fd     int
	once   sync.Once
	closed <-chan struct{} // set by once
}

// borrowCaller hides the descriptor argument of a Caller.
type borrowCaller struct{ c *Caller }

// Process is a process whose descriptors can be borrowed.
type Process struct {
	rm    *RM
	PID   int
	pidfd int
}

// OpenProcess pins a process by a pidfd, so that a pid that is reused meanwhile
// is not taken for it. ErrGone where it has ended.
func (r *RM) OpenProcess(pid int) (*Process, error) {
	pidfd, err := r.sys.PidfdOpen(pid)
	if err != nil {
		return nil, r.borrowError(fmt.Sprintf("open process %d", pid), err)
	}
	return &Process{rm: r, PID: pid, pidfd: pidfd}, nil
}

// Close lets go of the process.
func (p *Process) Close() error { return p.rm.sys.Close(p.pidfd) }

// Borrow takes a descriptor of the process. It is checked to be of
// /dev/nvidiactl before it is taken, since closing any other file can wait on
// whoever made it (a FUSE daemon's), and again before anything is sent to it.
// Errors: ErrGone, ErrRefused, ErrClosing.
func (p *Process) Borrow(fd int) (*Borrowed, error) {
	what := fmt.Sprintf("borrow descriptor %d of process %d", fd, p.PID)
	if !p.rm.close.room() {
		return nil, fmt.Errorf("%s: %w: %d of them; nothing more is borrowed until then", what, ErrClosing, maxPending)
	}
	if !p.looksRight(fd) {
		return nil, fmt.Errorf("%s: %w: it is not %s any more", what, ErrGone, rm.ControlPath)
	}
	own, err := p.rm.sys.PidfdGetFD(p.pidfd, fd)
	if err != nil {
		return nil, p.rm.borrowError(what, err)
	}
	b := &Borrowed{rm: p.rm, fd: own}
	major, minor, isChar, err := p.rm.sys.Device(own)
	switch {
	case err != nil:
		b.Close()
		return nil, fmt.Errorf("%s: fstat: %w", what, err)
	case !isChar || major != rm.Major || minor != rm.ControlMinor:
		b.Close()
		// It was one when /proc was read: it has been closed and its number reused.
		return nil, fmt.Errorf("%s: %w: it is not %s any more", what, ErrGone, rm.ControlPath)
	}
	caller, _ := p.rm.calls.Get().(*Caller)
	if caller == nil {
		if caller, err = newCaller(p.rm.sys); err != nil {
			b.Close()
			return nil, err
		}
	}
	b.borrowCaller = &borrowCaller{caller}
	return b, nil
}

// looksRight tells whether a descriptor may be of /dev/nvidiactl, without
// opening or taking it. The pid can be another's by now, and the descriptor
// another one a moment later: what counts is looked at once it is ours.
func (p *Process) looksRight(fd int) bool {
	major, minor, isChar, err := p.rm.sys.DeviceAt(fmt.Sprintf("/proc/%d/fd/%d", p.PID, fd))
	switch {
	case errors.Is(err, syscall.EACCES): // its file system refuses root: none of the driver's
		return false
	case err != nil: // gone, or hidden by a filter: taking it gives the reason
		return true
	}
	return isChar && major == rm.Major && minor == rm.ControlMinor
}

// Borrow takes one descriptor of a process; see Process.Borrow.
func (r *RM) Borrow(pid, fd int) (*Borrowed, error) {
	p, err := r.OpenProcess(pid)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return p.Borrow(fd)
}

// FD is our own descriptor onto the borrowed file.
func (b *Borrowed) FD() int { return b.fd }

// Control issues a control through the borrowed file. params come back in place.
func (b *Borrowed) Control(client, object, cmd uint32, params []byte) (status uint32, err error) {
	return b.c.Control(b.fd, client, object, cmd, params)
}

// Close gives the descriptor back, at once and without waiting: where it is the
// last one of a file whose process has died, the driver tears down everything
// that the process had inside this close, which can take seconds.
func (b *Borrowed) Close() { b.CloseWithin(0) }

// CloseWithin is Close that waits for at most the limit until the descriptor is
// closed, and tells whether it is: for who says next that nothing is held.
func (b *Borrowed) CloseWithin(limit time.Duration) bool {
	b.once.Do(func() {
		if b.borrowCaller != nil {
			b.rm.calls.Put(b.c)
		}
		b.closed = b.rm.close.start(b.rm.sys, b.fd)
	})
	if limit <= 0 {
		return false
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-b.closed:
		return true
	case <-timer.C:
		return false
	}
}

// maxPending is how many closes may hang: each holds a thread. closePatience is
// how long Borrow waits for one of so many to be done.
const (
	maxPending    = 64
	closePatience = 500 * time.Millisecond
)

// room waits until fewer closes are pending; false where they hang.
func (c *closer) room() bool {
	for until := time.Now().Add(closePatience); c.pending.Load() >= maxPending; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			return false
		}
	}
	return true
}

// closer closes descriptors on goroutines of their own.
type closer struct {
	pending atomic.Int64
	wg      sync.WaitGroup
}

// start begins to close a descriptor; done is closed when it is.
func (c *closer) start(sys System, fd int) (done <-chan struct{}) {
	ch := make(chan struct{})
	c.pending.Add(1)
	c.wg.Go(func() {
		defer close(ch)
		sys.Close(fd)
		c.pending.Add(-1)
	})
	return ch
}

// PendingCloses is how many borrowed descriptors are being closed right now: a
// number that stays is a teardown that hangs in the driver.
func (r *RM) PendingCloses() int { return int(r.close.pending.Load()) }

// WaitCloses waits until all borrowed descriptors are closed.
func (r *RM) WaitCloses() { r.close.wg.Wait() }

// borrowError says what an errno of pidfd_open or pidfd_getfd means.
func (r *RM) borrowError(what string, err error) error {
	switch {
	case errors.Is(err, syscall.ESRCH):
		return fmt.Errorf("%s: %w: the process has ended", what, ErrGone)
	case errors.Is(err, syscall.EBADF):
		return fmt.Errorf("%s: %w: it is closed", what, ErrGone)
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%s: %w: %s", what, ErrRefused, r.refusal())
	case errors.Is(err, syscall.ENOSYS):
		return fmt.Errorf("%s: %w: there is no pidfd_getfd here: it needs Linux 5.6, and a seccomp filter of a container can hide it", what, ErrRefused)
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return fmt.Errorf("%s: too many open files: %w; raise the limit (ulimit -n)", what, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

const yamaPath = "/proc/sys/kernel/yama/ptrace_scope"

// refusal says why the kernel may have answered EPERM.
func (r *RM) refusal() string {
	scope, err := r.sys.ReadFile(yamaPath)
	if err == nil && strings.TrimSpace(string(scope)) == "3" {
		return yamaPath + " is 3, which forbids it to everybody until the next boot; boot with another value (kernel.yama.ptrace_scope=1 in /etc/sysctl.d)"
	}
	return "taking another process's descriptor needs CAP_SYS_PTRACE (run with sudo; in a container: --cap-add SYS_PTRACE), and a seccomp filter or a security module (SELinux, AppArmor) can forbid it too"
}

// YamaForbids tells whether the kernel forbids borrowing to everybody.
func (r *RM) YamaForbids() bool {
	scope, err := r.sys.ReadFile(yamaPath)
	return err == nil && strings.TrimSpace(string(scope)) == "3"
}
