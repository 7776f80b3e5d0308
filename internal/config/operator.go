package config

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Operator is the person who runs the program: under sudo the one who called
// sudo, otherwise whom the process belongs to.
type Operator struct {
	UID, GID int
	Groups   []int
	Home     string
	// Other: the operator is not whom the process belongs to, so that the
	// operator's files are opened with the operator's rights (Do).
	Other bool
	xdg   string // XDG_CONFIG_HOME, where it is the operator's
}

// WhoOperates tells who the operator is.
func WhoOperates() (Operator, error) {
	return whoOperates(os.Geteuid(), os.Getenv, user.LookupId)
}

func whoOperates(euid int, getenv func(string) string, lookup func(string) (*user.User, error)) (Operator, error) {
	by := getenv("SUDO_UID")
	uid, err := strconv.Atoi(by)
	if euid != 0 || err != nil || uid <= 0 {
		// sudo's variables say nothing where we are not root, or where root called it.
		home := getenv("HOME")
		if !filepath.IsAbs(home) {
			home = ""
		}
		return Operator{UID: euid, GID: os.Getegid(), Home: home, xdg: getenv("XDG_CONFIG_HOME")}, nil
	}
	u, err := lookup(by)
	if err != nil {
		return Operator{}, fmt.Errorf("who called sudo: user %d: %w", uid, err)
	}
	o := Operator{UID: uid, Home: u.HomeDir, Other: true}
	if o.GID, err = strconv.Atoi(u.Gid); err != nil {
		return Operator{}, fmt.Errorf("who called sudo: user %d: their group is no number: %w", uid, err)
	}
	ids, err := u.GroupIds()
	if err != nil {
		ids = nil // their own group has to do
	}
	for _, g := range ids {
		if n, err := strconv.Atoi(g); err == nil {
			o.Groups = append(o.Groups, n)
		}
	}
	return o, nil
}

// Dir is the operator's configuration folder; empty where there is no home.
func (o Operator) Dir() string {
	switch {
	case filepath.IsAbs(o.xdg):
		return filepath.Join(o.xdg, "tsgtop")
	case o.Home != "":
		return filepath.Join(o.Home, ".config", "tsgtop")
	default:
		return ""
	}
}

// Do calls f with the operator's rights to files: what the operator may not
// open, f cannot either. f must not start goroutines that open files.
func (o Operator) Do(f func() error) error {
	if !o.Other {
		return f()
	}
	done := make(chan error, 1)
	go func() {
		// Never unlocked: the thread ends with the goroutine, and its rights with it.
		runtime.LockOSThread()
		defer func() {
			if r := recover(); r != nil {
				done <- fmt.Errorf("with the rights of user %d: %v", o.UID, r)
			}
		}()
		if err := o.become(); err != nil {
			done <- err
			return
		}
		done <- f()
	}()
	return <-done
}

// become gives this thread the operator's rights to files. The kernel takes
// the capabilities to override file permissions away with them.
func (o Operator) become() error {
	groups := make([]uint32, 0, len(o.Groups)+1)
	for _, g := range append([]int{o.GID}, o.Groups...) {
		groups = append(groups, uint32(g))
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(unsafe.Pointer(&groups[0])), 0); errno != 0 {
		return fmt.Errorf("take the groups of user %d: %w", o.UID, errno)
	}
	_, errGID := unix.SetfsgidRetGid(o.GID)
	_, errUID := unix.SetfsuidRetUid(o.UID)
	if err := errors.Join(errGID, errUID); err != nil {
		return fmt.Errorf("take the rights of user %d: %w", o.UID, err)
	}
	// These calls never fail; asking again tells what holds.
	gid, _ := unix.SetfsgidRetGid(-1)
	uid, _ := unix.SetfsuidRetUid(-1)
	if gid != o.GID || uid != o.UID {
		return fmt.Errorf("take the rights of user %d: the kernel does not let this process (CAP_SETUID and CAP_SETGID are needed)", o.UID)
	}
	return nil
}
