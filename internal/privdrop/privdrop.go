//go:build linux

// Package privdrop gives up root. Reading a recording needs none, and a
// recording can come from anybody; a metrics exporter needs only a part of it.
package privdrop

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// nobody is the user and group that own nothing.
const nobody = 65534

// Identity is whom the program becomes.
type Identity struct {
	UID, GID int
	Sudo     bool // it is who ran sudo
}

// Target is whom a program that was started as root becomes: the user who ran
// sudo, or nobody. getenv is os.Getenv.
func Target(getenv func(string) string) Identity {
	uid, err1 := strconv.ParseUint(getenv("SUDO_UID"), 10, 31)
	gid, err2 := strconv.ParseUint(getenv("SUDO_GID"), 10, 31)
	if err1 == nil && err2 == nil && uid > 0 && gid > 0 {
		return Identity{int(uid), int(gid), true}
	}
	return Identity{nobody, nobody, false}
}

// Options say what a program still needs after it gave up root.
type Options struct {
	Network bool // it serves: sockets stay allowed
}

// Drop makes a process that runs as root an ordinary one, with all its threads
// and for good: another user and group, no capabilities, no way to get any by
// executing something, and no system calls that only attacks need. Open what
// must be opened as root before. A process that is not root loses those system
// calls only. The error says what could not be given up; go on only after nil.
func Drop(id Identity, o Options) error {
	if os.Geteuid() == 0 {
		if err := become(id); err != nil {
			return err
		}
	}
	if err := confine(o); err != nil {
		return fmt.Errorf("giving up root: forbid new privileges: %w", err)
	}
	return nil
}

func become(id Identity) error {
	if id.UID <= 0 || id.GID <= 0 {
		return fmt.Errorf("giving up root: to user %d and group %d, which would keep it", id.UID, id.GID)
	}
	// The standard library's calls, unlike those of x/sys, act on all threads.
	if err := syscall.Setgroups(nil); err != nil && !errors.Is(err, syscall.EPERM) {
		return fmt.Errorf("giving up root: leave all groups: %w", err)
	}
	if err := syscall.Setresgid(id.GID, id.GID, id.GID); err != nil {
		return fmt.Errorf("giving up root: become group %d: %w", id.GID, err)
	}
	if err := syscall.Setresuid(id.UID, id.UID, id.UID); err != nil {
		return fmt.Errorf("giving up root: become user %d: %w", id.UID, err)
	}
	r, e, s := unix.Getresuid()
	if !slices.Equal([]int{r, e, s}, []int{id.UID, id.UID, id.UID}) || syscall.Setresuid(0, 0, 0) == nil {
		return fmt.Errorf("giving up root: the kernel gave it back (user ids %d, %d, %d)", r, e, s)
	}
	return nil
}

// confine forbids gaining privileges, and system calls that have no use here.
// The filter goes to all threads at once, and with it the promise that the
// calling thread makes: that is what SECCOMP_FILTER_FLAG_TSYNC does.
func confine(o Options) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return installFilter(denied(o))
}
