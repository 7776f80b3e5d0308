//go:build linux

package kfunc

import (
	"fmt"
	"syscall"

	"tsgtop/bpf"
)

// The module's own bounds of a timeslice, in microseconds. RM has none.
const (
	MinTimesliceUS = 1
	MaxTimesliceUS = 100_000_000
)

// sentence says why a result has no answer; empty where it has one.
func sentence(r Result) string {
	if r.Errno == 0 {
		return ""
	}
	if r.Errno == syscall.EINPROGRESS {
		return "RM has not answered yet"
	}
	switch r.Refusal {
	case bpf.ActionTsgtopWhyTSGTOP_WHY_CAPABILITY:
		return "the module wants CAP_SYS_ADMIN of the thread that runs the program"
	case bpf.ActionTsgtopWhyTSGTOP_WHY_BOUNDS:
		return fmt.Sprintf("the module refuses the value: a timeslice is %d to %d us, an interleave level 0 to 2", MinTimesliceUS, MaxTimesliceUS)
	case bpf.ActionTsgtopWhyTSGTOP_WHY_RATE:
		return "the module refuses more calls: too many in this second, or 16 still without an answer"
	case bpf.ActionTsgtopWhyTSGTOP_WHY_NO_DRIVER:
		return "nvidia.ko is not loaded"
	case bpf.ActionTsgtopWhyTSGTOP_WHY_PROPRIETARY:
		return "the proprietary nvidia.ko is loaded; the module works with the open one"
	case bpf.ActionTsgtopWhyTSGTOP_WHY_NO_SYMBOL:
		return "nvidia.ko does not give its interface to GPL modules; drivers from 570 do"
	case bpf.ActionTsgtopWhyTSGTOP_WHY_VERSION:
		return "the module does not know this driver version's layout"
	case bpf.ActionTsgtopWhyTSGTOP_WHY_HANDSHAKE:
		return "nvidia.ko refused the handshake with its own version"
	case bpf.ActionTsgtopWhyTSGTOP_WHY_SUSPEND:
		return "the system suspends or resumes"
	case bpf.ActionTsgtopWhyTSGTOP_WHY_GONE:
		return fmt.Sprintf("the TSG is gone: its handle answers with status %#x", r.Status)
	case bpf.ActionTsgtopWhyTSGTOP_WHY_OTHER:
		return "the handle belongs to another TSG now than the one that was meant"
	case bpf.ActionTsgtopWhyTSGTOP_WHY_IDENTITY:
		return fmt.Sprintf("who the TSG is could not be asked: status %#x", r.Status)
	case bpf.ActionTsgtopWhyTSGTOP_WHY_NO_COOKIE:
		return "the module knows no such call any more"
	case bpf.ActionTsgtopWhyTSGTOP_WHY_MEMORY:
		return "the kernel had no memory for the call"
	case bpf.ActionTsgtopWhyTSGTOP_WHY_UNLOADING:
		return "the module is being unloaded"
	}
	return "the module refused: " + r.Errno.Error()
}

// Vanished says that nothing was sent because the target is gone or is another.
func (r Result) Vanished() bool {
	return r.Refusal == bpf.ActionTsgtopWhyTSGTOP_WHY_GONE || r.Refusal == bpf.ActionTsgtopWhyTSGTOP_WHY_OTHER
}
