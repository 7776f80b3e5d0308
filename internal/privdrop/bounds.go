//go:build linux

package privdrop

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Capability is one of Linux's pieces of root, with what it is kept for.
type Capability struct {
	Number int
	Name   string
	For    string
}

// Observing are the capabilities without which nothing can be observed live.
// The rest of root is not needed.
var Observing = []Capability{
	{unix.CAP_BPF, "CAP_BPF", "eBPF programs and maps"},
	{unix.CAP_PERFMON, "CAP_PERFMON", "attaching them, tracepoints"},
	{unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN", "the GPU's context-switch trace, which the driver gives to administrators only"},
	{unix.CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "who holds which descriptor, and borrowing it to ask"},
	{unix.CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH", "reading other users' /proc files"},
	{unix.CAP_SYS_RESOURCE, "CAP_SYS_RESOURCE", "locked memory of eBPF on old kernels"},
	{unix.CAP_SYSLOG, "CAP_SYSLOG", "Xids from the kernel log"},
	{unix.CAP_NET_BIND_SERVICE, "CAP_NET_BIND_SERVICE", "a port below 1024, if one was asked for"},
}

// boundMark tells the program that it was executed again with less.
const boundMark = "TSGTOP_CAPABILITIES_BOUND=1"

// Bounded tells whether Bound has done its work already.
func Bounded() bool { return slices.Contains(os.Environ(), boundMark) }

// Bound leaves a process that runs as root no other capabilities than keep,
// and no way to get more: it executes the program again, as only so all threads
// lose them. It does not return where that works. Call it first of all, and not
// where Bounded.
func Bound(keep []Capability) error {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("giving up parts of root: find the program itself: %w", err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	mask := [2]uint32{}
	for _, c := range keep {
		mask[c.Number/32] |= 1 << (c.Number % 32)
	}
	for n := 0; n <= lastCapability(); n++ {
		if mask[n/32]&(1<<(n%32)) != 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(n), 0, 0, 0); err != nil {
			return fmt.Errorf("giving up parts of root: capability %d: %w", n, err)
		}
	}
	h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var d [2]unix.CapUserData
	if err := unix.Capget(&h, &d[0]); err != nil {
		return fmt.Errorf("giving up parts of root: read the capabilities: %w", err)
	}
	for i := range d {
		d[i].Effective &= mask[i]
		d[i].Permitted &= mask[i]
		d[i].Inheritable = 0
	}
	if err := unix.Capset(&h, &d[0]); err != nil {
		return fmt.Errorf("giving up parts of root: set the capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("giving up parts of root: forbid new privileges: %w", err)
	}
	err = unix.Exec(exe, os.Args, append(os.Environ(), boundMark))
	return fmt.Errorf("giving up parts of root: execute %s again: %w", exe, err)
}

// lastCapability is the highest that the running kernel knows.
func lastCapability() int {
	for n := 63; n > 0; n-- {
		if _, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(n), 0, 0, 0); err == nil {
			return n
		}
	}
	return unix.CAP_LAST_CAP
}

// Kept says in words which of keep the process has and what each is for.
func Kept(keep []Capability) string {
	h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var d [2]unix.CapUserData
	if err := unix.Capget(&h, &d[0]); err != nil {
		return "capabilities cannot be read: " + err.Error()
	}
	var l []string
	for _, c := range keep {
		if d[c.Number/32].Permitted&(1<<(c.Number%32)) != 0 {
			l = append(l, c.Name+" ("+c.For+")")
		}
	}
	if len(l) == 0 {
		return "none"
	}
	return strings.Join(l, ", ")
}
