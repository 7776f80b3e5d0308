package rmcalls

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Rung is one way to hook into RM calls.
type Rung string

// The rungs of the ladder, best first.
const (
	RungFentry Rung = "fentry"
	RungKprobe Rung = "kprobe"
	RungTP     Rung = "tracepoint"
	RungTPBTF  Rung = "tp_btf"
)

// Rungs gives all rungs, best first.
func Rungs() []Rung {
	return []Rung{RungFentry, RungKprobe, RungTP, RungTPBTF}
}

// Title is what the rung hooks, in the words that a status shows.
func (r Rung) Title() string {
	switch r {
	case RungFentry:
		return "fentry/fexit nvidia_unlocked_ioctl"
	case RungKprobe:
		return "kprobe/kretprobe nvidia_unlocked_ioctl"
	case RungTP:
		return "tracepoint sys_enter_ioctl/sys_exit_ioctl"
	case RungTPBTF:
		return "tp_btf sys_enter/sys_exit"
	}
	return string(r)
}

// Reason is why a rung cannot be used.
type Reason string

// The reasons.
const (
	NotRoot     Reason = "not root"
	NoBTF       Reason = "the kernel has no BTF"
	NoModule    Reason = "the nvidia module is not loaded"
	NoModuleBTF Reason = "the nvidia module has no BTF"
	NoFunction  Reason = "the nvidia module has no such function"
	NoTracefs   Reason = "tracefs cannot be mounted"
	NoKprobes   Reason = "the kernel has no kprobes"
	Lockdown    Reason = "kernel lockdown forbids it"
	NoRight     Reason = "root without CAP_BPF or CAP_PERFMON"
	Forbidden   Reason = "the kernel forbids it"
	OldKernel   Reason = "the kernel is too old"
	OtherReason Reason = "the kernel refused it"
)

// Refusal says why a rung cannot be used.
type Refusal struct {
	Rung   Rung
	Reason Reason
	Err    error // as the kernel or the loader said it; nil where it was not asked
}

func (r *Refusal) Error() string { return fmt.Sprintf("%s: %s", r.Rung, r.why()) }

// why is the reason and what was said, without the rung.
func (r *Refusal) why() string {
	if r.Err == nil {
		return string(r.Reason)
	}
	return fmt.Sprintf("%s: %v", r.Reason, r.Err)
}

func (r *Refusal) Unwrap() error { return r.Err }

// Help says what would make the rung work.
func (r *Refusal) Help() string {
	switch r.Reason {
	case NotRoot:
		return "run it with sudo"
	case NoBTF:
		return "use a kernel built with CONFIG_DEBUG_INFO_BTF"
	case NoModule:
		return "load the NVIDIA driver first"
	case NoModuleBTF:
		return "build the nvidia module where pahole and the kernel's vmlinux are at hand"
	case NoTracefs:
		return "mount -t tracefs tracefs /sys/kernel/tracing, in a kernel built with CONFIG_FTRACE_SYSCALLS"
	case NoKprobes:
		return "use a kernel built with CONFIG_KPROBES"
	case Lockdown:
		return "it is this machine's policy; the next rung does the same at a small cost to every system call"
	case NoRight:
		return "give it CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN (in a container: --privileged, or --cap-add each)"
	case Forbidden:
		return "let it call bpf() (in a container: a seccomp profile that allows it, or --privileged)"
	case OldKernel:
		return "use Linux 5.11 or newer"
	}
	return ""
}

// programs names a rung's programs in the object. Those that see ends come
// first: attached before the beginnings, they do not miss the end of a call
// whose beginning was seen.
func (r Rung) programs() (needed, optional []string) {
	switch r {
	case RungFentry:
		return []string{"fexit_ioctl", "fentry_ioctl"}, []string{"fentry_close"}
	case RungKprobe:
		return []string{"kretprobe_ioctl", "kprobe_ioctl"}, []string{"kprobe_close"}
	case RungTP:
		return []string{"tp_exit_open", "tp_enter_close", "tp_exit_ioctl", "tp_enter_ioctl"}, nil
	}
	return []string{"sys_exit", "sys_enter"}, nil
}

const exitProgram = "process_exit"

// kretprobes that can be under way at once: a thread holds one for as long as
// its call lasts. The kernel's default is twice the number of CPUs.
const maxActive = 1024

// attach hooks one program in. More than one link: the program serves several
// hooks.
func attach(name string, p *ebpf.Program) ([]link.Link, error) {
	var l link.Link
	var err error
	switch name {
	case "kprobe_ioctl":
		l, err = link.Kprobe("nvidia_unlocked_ioctl", p, nil)
	case "kprobe_close":
		l, err = link.Kprobe("nvidia_close", p, nil)
	case "kretprobe_ioctl":
		l, err = link.Kretprobe("nvidia_unlocked_ioctl", p, &link.KprobeOptions{RetprobeMaxActive: maxActive})
		if err != nil {
			// Only tracefs takes a number; it may not be mounted.
			l, err = link.Kretprobe("nvidia_unlocked_ioctl", p, nil)
		}
	case "tp_enter_ioctl":
		l, err = link.Tracepoint("syscalls", "sys_enter_ioctl", p, nil)
	case "tp_exit_ioctl":
		l, err = link.Tracepoint("syscalls", "sys_exit_ioctl", p, nil)
	case "tp_enter_close":
		l, err = link.Tracepoint("syscalls", "sys_enter_close", p, nil)
	case "tp_exit_open":
		return attachOpens(p)
	default:
		l, err = link.AttachTracing(link.TracingOptions{Program: p})
	}
	if err != nil {
		return nil, err
	}
	return []link.Link{l}, nil
}

// attachOpens hooks into all system calls that open a device by name. Not
// every architecture has open, nor every kernel openat2.
func attachOpens(p *ebpf.Program) ([]link.Link, error) {
	l, err := link.Tracepoint("syscalls", "sys_exit_openat", p, nil)
	if err != nil {
		return nil, err
	}
	links := []link.Link{l}
	for _, name := range []string{"sys_exit_openat2", "sys_exit_open"} {
		if l, err := link.Tracepoint("syscalls", name, p, nil); err == nil {
			links = append(links, l)
		}
	}
	return links, nil
}

// foresee tells why a rung cannot work without asking the kernel to load
// anything, so that the reason is a plain one; nil: it may work.
func (r Rung) foresee() *Refusal {
	no := func(reason Reason) *Refusal { return &Refusal{Rung: r, Reason: reason} }
	if _, err := btf.LoadKernelSpec(); errors.Is(err, btf.ErrNotFound) || errors.Is(err, ebpf.ErrNotSupported) {
		return no(NoBTF)
	} else if err != nil {
		return &Refusal{Rung: r, Reason: NoBTF, Err: err}
	}
	if r == RungTPBTF || r == RungTP {
		return nil
	}
	if !exists("/sys/module/nvidia") {
		return no(NoModule)
	}
	if r == RungFentry && !exists("/sys/kernel/btf/nvidia") {
		return no(NoModuleBTF)
	}
	if r == RungKprobe && !exists("/sys/bus/event_source/devices/kprobe") &&
		!exists("/sys/kernel/tracing/kprobe_events") && !exists("/sys/kernel/debug/tracing/kprobe_events") {
		return no(NoKprobes)
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// refuse finds the reason in an error of the loader or the kernel.
func (r Rung) refuse(err error) *Refusal {
	reason := OtherReason
	// Where bpf() is refused, the loader's own questions are too, and it may
	// then take the kernel for an old one.
	if errors.Is(err, ebpf.ErrNotSupported) && bpfRefused() {
		doing, _, _ := strings.Cut(err.Error(), ": ")
		err = fmt.Errorf("%s: %w", doing, unix.EPERM)
	}
	var none *noTracefs
	switch {
	case errors.As(err, &none):
		reason = NoTracefs
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES):
		switch {
		case os.Geteuid() != 0:
			reason = NotRoot
		case !mayLoad():
			reason = NoRight
		case lockedDown():
			reason = Lockdown
		default:
			reason = Forbidden
		}
	case errors.Is(err, ebpf.ErrNotSupported), errors.Is(err, unix.EINVAL) && noTaskStorage():
		reason = OldKernel
	case errors.Is(err, os.ErrNotExist) || errors.Is(err, btf.ErrNotFound):
		reason = NoFunction
	}
	return &Refusal{Rung: r, Reason: reason, Err: brief(err)}
}

// noTaskStorage tells that the kernel lacks the kind of map that keeps a thread's
// call (Linux 5.11), which it says by calling the map invalid.
func noTaskStorage() bool {
	return errors.Is(features.HaveMapType(ebpf.TaskStorage), ebpf.ErrNotSupported)
}

// lockedDown tells whether kernel lockdown is in force.
func lockedDown() bool {
	b, err := os.ReadFile("/sys/kernel/security/lockdown")
	return err == nil && !strings.Contains(string(b), "[none]")
}

// mayLoad tells whether we have the capabilities to load and attach programs.
func mayLoad() bool {
	h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var d [2]unix.CapUserData
	if unix.Capget(&h, &d[0]) != nil {
		return true // not known: then it is not the reason
	}
	has := func(n uint) bool { return d[n/32].Effective&(1<<(n%32)) != 0 }
	return has(unix.CAP_SYS_ADMIN) || has(unix.CAP_BPF) && has(unix.CAP_PERFMON)
}

// bpfRefused tells whether the kernel lets us make not even the smallest map.
func bpfRefused() bool {
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	if err != nil {
		return errors.Is(err, unix.EPERM)
	}
	m.Close()
	return false
}

// lockMemory lifts the limit of locked memory, by which kernels before 5.11
// count maps and programs, also root's. Where that fails loading them tells.
var lockMemory = sync.OnceFunc(func() {
	_ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY})
})

// brief makes of an error what fits a status line; it keeps its chain. Of the
// verifier's log it is the first line. Of a refusal of the kernel it is what
// was done and the kernel's word, without guesses at the cause that the loader
// puts between: see Reason.
func brief(err error) error {
	var v *ebpf.VerifierError
	var errno unix.Errno
	switch {
	case errors.As(err, &v):
		line, _, _ := strings.Cut(v.Error(), "\n")
		return &briefError{line, err}
	case (errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES)) && errors.As(err, &errno):
		doing, _, _ := strings.Cut(err.Error(), ": ")
		return &briefError{doing + ": " + errno.Error(), err}
	}
	line, _, more := strings.Cut(err.Error(), "\n")
	if more {
		return &briefError{line, err}
	}
	return err
}

type briefError struct {
	text string
	err  error
}

func (e *briefError) Error() string { return e.text }
func (e *briefError) Unwrap() error { return e.err }

// hasFunction tells whether the nvidia module has a function, by the kernel's
// symbol table.
func hasFunction(name string) bool {
	f, err := os.Open("/proc/kallsyms")
	if err != nil {
		return false
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if w := strings.Fields(s.Text()); len(w) == 4 && w[2] == name && w[3] == "[nvidia]" {
			return true
		}
	}
	return false
}
