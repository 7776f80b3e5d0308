//go:build linux

package kfunc

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Machine is what decides whether the module can be had. Root is where its
// files are looked for, "/" for the real one.
type Machine struct {
	Root    string
	Release string // uname -r
}

// ThisMachine is the running one.
func ThisMachine() Machine {
	m := Machine{Root: "/"}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Release = unix.ByteSliceToString(u.Release[:])
	}
	return m
}

// Reason is one reason why the module cannot be used, and what would help.
type Reason struct{ Why, Help string }

func (m Machine) read(path string) string {
	b, err := os.ReadFile(filepath.Join(m.Root, path))
	if err != nil {
		return ""
	}
	return string(b)
}

func (m Machine) exists(path string) bool {
	_, err := os.Stat(filepath.Join(m.Root, path))
	return err == nil
}

// WhyNot gives the reasons as one sentence; empty where the module is usable.
func (m Machine) WhyNot() string {
	var all []string
	for _, r := range m.Reasons() {
		all = append(all, r.Why)
	}
	return strings.Join(all, "; ")
}

// Reasons says why the module cannot be used, the nearest reason first: empty
// where it can.
func (m Machine) Reasons() []Reason {
	if m.exists("sys/module/tsgtop") {
		return m.loaded()
	}
	return m.absent()
}

// loaded: the module is there; does eBPF see it, does it see the driver?
func (m Machine) loaded() []Reason {
	if !m.exists("sys/kernel/btf/tsgtop") {
		return []Reason{{"the module tsgtop is loaded without BTF, so eBPF cannot call it",
			"build it again where pahole (package dwarves) is installed"}}
	}
	for line := range strings.Lines(m.read("sys/module/tsgtop/parameters/status")) {
		if why, bad := strings.CutPrefix(strings.TrimSpace(line), "driver: not usable ("); bad {
			return []Reason{{strings.TrimSuffix(why, ")"), "see the table of drivers in docs/drivers.md"}}
		}
	}
	return nil
}

// absent: the module is not there; what stands in its way?
func (m Machine) absent() []Reason {
	var out []Reason
	if major, minor := m.version(); major < 6 || major == 6 && minor < 1 {
		return []Reason{{fmt.Sprintf("Linux %s has no sleepable kfuncs", m.Release), "Linux 6.1 or newer"}}
	}
	if m.installed() {
		out = append(out, Reason{"the module tsgtop is installed and not loaded", "modprobe tsgtop"})
	} else {
		out = append(out, Reason{"the module tsgtop is not installed", "make -C kmod install, or the DKMS package"})
	}
	if m.read("proc/modules") == "" && !m.exists("proc/modules") {
		return append(out, Reason{"this kernel takes no modules (CONFIG_MODULES)", "another kernel"})
	}
	if mode := selected(m.read("sys/kernel/security/lockdown")); mode != "" && mode != "none" {
		out = append(out, Reason{"the kernel is locked down (" + mode + ") and takes signed modules only", enrol})
	} else if m.secureBoot() {
		out = append(out, Reason{"Secure Boot is on: the kernel may take signed modules only", enrol})
	}
	if strings.TrimSpace(m.read("proc/sys/kernel/modules_disabled")) == "1" {
		out = append(out, Reason{"loading modules was switched off until the next boot (kernel.modules_disabled)", "boot without it"})
	}
	if v := m.read("proc/driver/nvidia/version"); v != "" && !strings.Contains(v, "Open Kernel Module") {
		out = append(out, Reason{"the proprietary nvidia.ko is loaded; the module works with the open one", "install the driver's open kernel modules"})
	}
	if !m.exists("sys/kernel/btf/vmlinux") {
		out = append(out, Reason{"the kernel has no BTF (CONFIG_DEBUG_INFO_BTF)", "another kernel"})
	}
	return out
}

// enrol is how a machine's owner makes its firmware trust a key of their own.
const enrol = "sign it with a key that the firmware trusts: " +
	"openssl req -new -x509 -newkey rsa:2048 -nodes -days 3650 -subj /CN=tsgtop/ -outform DER -keyout mok.key -out mok.der; " +
	"mokutil --import mok.der; reboot and confirm; then scripts/sign-file sha256 mok.key mok.der tsgtop.ko"

func (m Machine) version() (major, minor int) {
	if _, err := fmt.Sscanf(m.Release, "%d.%d", &major, &minor); err != nil {
		return 0, 0
	}
	return major, minor
}

func (m Machine) installed() bool {
	for _, dir := range []string{"updates/dkms", "updates", "extra", "kernel/drivers"} {
		found, _ := filepath.Glob(filepath.Join(m.Root, "lib/modules", m.Release, dir, "tsgtop.ko*"))
		if len(found) > 0 {
			return true
		}
	}
	return false
}

// secureBoot reads the firmware's variable: four bytes of attributes, then 0 or 1.
func (m Machine) secureBoot() bool {
	v := m.read("sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c")
	return len(v) == 5 && v[4] == 1
}

// selected is the word in brackets: "none [integrity] confidentiality".
func selected(s string) string {
	_, s, _ = strings.Cut(s, "[")
	s, _, found := strings.Cut(s, "]")
	if !found {
		return ""
	}
	return s
}
