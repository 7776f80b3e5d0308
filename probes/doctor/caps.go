package doctor

import (
	"golang.org/x/sys/unix"
)

// Cap is a Linux capability's number.
type Cap uint

// Capabilities that tsgtop uses.
const (
	CapSysPtrace Cap = unix.CAP_SYS_PTRACE
	CapSysAdmin  Cap = unix.CAP_SYS_ADMIN
	CapPerfmon   Cap = unix.CAP_PERFMON
	CapBPF       Cap = unix.CAP_BPF
)

// Caps is a set of capabilities.
type Caps uint64

// Has tells whether c is in the set. CAP_SYS_ADMIN includes CAP_BPF and
// CAP_PERFMON, as the kernel has it for compatibility.
func (s Caps) Has(c Cap) bool {
	if s&(1<<c) != 0 {
		return true
	}
	return (c == CapBPF || c == CapPerfmon) && s&(1<<CapSysAdmin) != 0
}

// effectiveCaps reads our own effective set.
func effectiveCaps() Caps {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&hdr, &data[0]) != nil {
		return 0
	}
	return Caps(uint64(data[1].Effective)<<32 | uint64(data[0].Effective))
}
