package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

func (s System) privilege() Check {
	c := Check{Name: "privilege", State: OK}
	caps := s.Caps()
	if s.UID() == 0 && caps.Has(CapSysAdmin) {
		c.What = "root, with CAP_SYS_ADMIN"
		return c
	}
	var lacks []string
	for _, w := range []struct {
		cap  Cap
		name string
	}{{CapBPF, "CAP_BPF"}, {CapPerfmon, "CAP_PERFMON"}, {CapSysPtrace, "CAP_SYS_PTRACE"}, {CapSysAdmin, "CAP_SYS_ADMIN"}} {
		if !caps.Has(w.cap) {
			lacks = append(lacks, w.name)
		}
	}
	c.What = fmt.Sprintf("user id %d, without %s", s.UID(), strings.Join(lacks, ", "))
	if len(lacks) == 0 {
		c.What = fmt.Sprintf("user id %d, with the capabilities that are needed", s.UID())
		return c
	}
	c.State = Missing
	c.Why = "the probes, the trace of all users and other processes' descriptors need them; recordings work without"
	c.Help = "run it with sudo"
	return c
}

var release = regexp.MustCompile(`^(\d+)\.(\d+)`)

func (s System) kernel() Check {
	c := Check{Name: "kernel", State: OK}
	v, err := s.read("/proc/sys/kernel/osrelease")
	m := release.FindStringSubmatch(v)
	if err != nil || m == nil {
		c.State, c.What = Limited, "version not known: /proc/sys/kernel/osrelease cannot be read"
		return c
	}
	c.What = "Linux " + v
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	switch {
	case major < 5 || major == 5 && minor < 8:
		c.State = Missing
		c.Why = "the probes need BPF ring buffers, which came with 5.8; pidfd_getfd came with 5.6"
		c.Help = "a kernel of 5.8 or newer; recordings can be looked at on this one"
	case major == 5 && minor < 11:
		c.State = Limited
		c.Why = "RM calls are not seen: the probes keep a thread's call in BPF task storage, which came with 5.11; so a command's RAN stays unknown"
		c.Help = "a kernel of 5.11 or newer"
	case major < 6 || major == 6 && minor < 1:
		c.State = Limited
		c.Why = "sleepable kernel functions from modules need 6.1: commands go through a borrowed descriptor"
	}
	return c
}

func (s System) vmlinuxBTF() Check {
	c := Check{Name: "kernel BTF", State: OK, What: "/sys/kernel/btf/vmlinux"}
	if !s.exists("/sys/kernel/btf/vmlinux") {
		c.State = Missing
		c.What = "no /sys/kernel/btf/vmlinux"
		c.Why = "the probes find the kernel's structures by it"
		c.Help = "a kernel with CONFIG_DEBUG_INFO_BTF=y"
	}
	return c
}

var chosen = regexp.MustCompile(`\[(\w+)\]`)

func (s System) lockdown() Check {
	c := Check{Name: "lockdown", State: OK, What: "not locked down"}
	v, err := s.read("/sys/kernel/security/lockdown")
	if err != nil {
		c.What = "this kernel has no lockdown, or securityfs is not mounted"
		return c
	}
	if m := chosen.FindStringSubmatch(v); m != nil && m[1] != "none" {
		c.What = "lockdown: " + m[1]
		c.State = Limited
		c.Why = "modules without a signature are refused; so may be probes on functions"
		if m[1] == "confidentiality" {
			c.State = Missing
			c.Why = "BPF programs may not read kernel memory: no probe can work"
		}
		c.Help = "the kernel's lockdown= parameter or Secure Boot sets it; tsgtop does not go round it"
	}
	return c
}

func (s System) kprobes() Check {
	c := Check{Name: "kprobes", State: OK, What: "kprobe events"}
	if !s.exists("/sys/bus/event_source/devices/kprobe") {
		c.State = Limited
		c.What = "this kernel has no kprobes"
		c.Why = "the rung of the probes in the middle is not to be had: all system calls pass the lowest one (36 ns each)"
		c.Help = "a kernel with CONFIG_KPROBES=y and CONFIG_KPROBE_EVENTS=y, or BTF of the nvidia module"
	}
	return c
}

var driverVersion = regexp.MustCompile(`\b(\d{3}\.\d+(?:\.\d+)?)\b`)

// Driver gives the driver's version and whether it is the open flavour, from
// /proc/driver/nvidia/version.
func (s System) Driver() (version string, open bool, err error) {
	v, err := s.read("/proc/driver/nvidia/version")
	if err != nil {
		return "", false, err
	}
	m := driverVersion.FindString(v)
	return m, strings.Contains(v, "Open Kernel Module"), nil
}

func (s System) driver() Check {
	c := Check{Name: "driver", State: OK}
	v, open, err := s.Driver()
	if err != nil {
		c.State = Missing
		c.What = "no NVIDIA driver is loaded (/proc/driver/nvidia/version is not there)"
		c.Why = "there is nothing to observe here; recordings and the simulated GPU work"
		c.Help = "modprobe nvidia, or tsgtop demo"
		return c
	}
	c.What = "driver version " + v
	if open {
		c.What += ", open flavour"
	} else {
		c.What += ", proprietary flavour"
		c.State = Limited
		c.Why = "the kfunc actuator needs the open flavour; everything else works"
	}
	return c
}

func (s System) gsp() Check {
	c := Check{Name: "GSP", State: OK, What: "no driver, not known"}
	files, _ := filepath.Glob(s.Root + "/proc/driver/nvidia/gpus/*/information")
	if len(files) == 0 {
		c.State = Limited
		c.Why = "no GPU is listed under /proc/driver/nvidia/gpus"
		return c
	}
	with := 0
	for _, f := range files {
		b, _ := os.ReadFile(f)
		for line := range strings.Lines(string(b)) {
			if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "GPU Firmware" && strings.TrimSpace(v) != "N/A" {
				with++
			}
		}
	}
	c.What = fmt.Sprintf("%d of %d GPUs run RM on the GSP", with, len(files))
	if with < len(files) {
		c.State = Limited
		c.Why = "where RM does not run on the GSP, no RPC can witness ACCEPTED"
	}
	return c
}

func (s System) moduleBTF() Check {
	c := Check{Name: "nvidia module BTF", State: OK, What: "/sys/kernel/btf/nvidia"}
	if !s.exists("/sys/kernel/btf/nvidia") {
		c.State = Limited
		c.What = "no /sys/kernel/btf/nvidia"
		c.Why = "the best rung of the probes (fentry) is not to be had; a lower one is used"
		c.Help = "build the driver's module where pahole and the kernel's vmlinux are installed (DKMS often prints 'Skipping BTF generation')"
	}
	return c
}

func (s System) devices() Check {
	c := Check{Name: "device nodes", State: OK}
	nodes, _ := filepath.Glob(s.Root + "/dev/nvidia[0-9]*")
	if !s.exists("/dev/nvidiactl") {
		c.State = Missing
		c.What = "no /dev/nvidiactl"
		c.Why = "the driver cannot be asked anything: no discovery, no trace, no commands"
		c.Help = "nvidia-modprobe -c 0, or in a container give it the devices"
		return c
	}
	c.What = fmt.Sprintf("/dev/nvidiactl and %d GPU nodes", len(nodes))
	if len(nodes) == 0 {
		c.State, c.Why, c.Help = Missing, "no GPU node: no trace", "nvidia-modprobe -c 0, or in a container give it the devices"
	}
	return c
}

func (s System) yama() Check {
	c := Check{Name: "ptrace scope", State: OK}
	v, err := s.read("/proc/sys/kernel/yama/ptrace_scope")
	if err != nil {
		c.What = "no Yama"
		return c
	}
	c.What = "Yama ptrace_scope " + v
	if v == "3" {
		c.State = Limited
		c.Why = "no process may take another's descriptor: what ran before tsgtop is not found, and the fd actuator cannot act"
		c.Help = "ptrace_scope 3 stays until the next boot; boot with kernel.yama.ptrace_scope=2 or lower"
	}
	return c
}

func (s System) pidNamespace() Check {
	c := Check{Name: "pid namespace", State: OK, What: "the machine's own"}
	v, err := s.read("/proc/self/status")
	if err != nil {
		c.State, c.What = Limited, "/proc/self/status cannot be read"
		return c
	}
	for line := range strings.Lines(v) {
		if rest, ok := strings.CutPrefix(line, "NSpid:"); ok && len(strings.Fields(rest)) > 1 {
			c.What = "nested"
		}
	}
	// The initial pid namespace has a fixed inode number (PROC_PID_INIT_INO).
	if l, err := os.Readlink(s.Root + "/proc/self/ns/pid"); err == nil && l != "pid:[4026531836]" {
		c.State = Limited
		c.What = "one of our own (" + l + ")"
		c.Why = "pids from the probes and the trace are the machine's and do not fit our /proc: nothing is attributed to processes, and nothing is acted on"
		c.Help = "in a container: --pid=host"
	}
	return c
}

func (s System) secureBoot() Check {
	c := Check{Name: "Secure Boot", State: OK, What: "off, or no EFI"}
	vars, _ := filepath.Glob(s.Root + "/sys/firmware/efi/efivars/SecureBoot-*")
	for _, f := range vars {
		if b, err := os.ReadFile(f); err == nil && len(b) == 5 && b[4] == 1 {
			c.What = "on"
			c.State = Limited
			c.Why = "the companion module must be signed with an enrolled key"
			c.Help = "mokutil --import /var/lib/dkms/mok.pub, reboot, enrol it, then dkms install tsgtop"
		}
	}
	return c
}
