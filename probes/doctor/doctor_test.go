package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// machine lays out a fake root file system.
func machine(t *testing.T, files map[string]string) System {
	t.Helper()
	root := t.TempDir()
	for p, content := range files {
		full := filepath.Join(root, p)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if target, ok := strings.CutPrefix(content, "-> "); ok {
			if err := os.Symlink(target, full); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return System{Root: root, UID: func() int { return 0 }, Caps: func() Caps { return ^Caps(0) }}
}

// good is a machine on which everything works.
func good() map[string]string {
	return map[string]string{
		"/proc/sys/kernel/osrelease":                        "6.12.5-amd64\n",
		"/sys/kernel/btf/vmlinux":                           "",
		"/sys/kernel/security/lockdown":                     "[none] integrity confidentiality\n",
		"/sys/bus/event_source/devices/kprobe/type":         "8\n",
		"/proc/driver/nvidia/version":                       "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\n",
		"/proc/driver/nvidia/gpus/0000:01:00.0/information": "Model: \t\t NVIDIA H200\nGPU Firmware: \t 580.159.04\n",
		"/sys/kernel/btf/nvidia":                            "",
		"/dev/nvidiactl":                                    "",
		"/dev/nvidia0":                                      "",
		"/proc/sys/kernel/yama/ptrace_scope":                "1\n",
		"/proc/self/status":                                 "Name:\tx\nNSpid:\t7\n",
		"/proc/self/ns/pid":                                 "-> pid:[4026531836]",
		"/sys/module/tsgtop/refcnt":                         "0",
		"/sys/kernel/btf/tsgtop":                            "",
	}
}

func TestGoodMachine(t *testing.T) {
	for _, c := range Machine(machine(t, good())) {
		if c.State != OK || c.What == "" || c.Why != "" {
			t.Errorf("%s: %+v, want ok with what was found and nothing to complain of", c.Name, c)
		}
	}
}

func TestEachLackIsASentence(t *testing.T) {
	for _, tc := range []struct {
		name, check string
		change      map[string]string // "-": remove
		uid         int
		caps        Caps
		state       State
		why, help   string // parts of the sentences
	}{
		{name: "not root", check: "privilege", uid: 1000, state: Missing, why: "recordings work", help: "sudo"},
		{name: "old kernel", check: "kernel", change: map[string]string{"/proc/sys/kernel/osrelease": "5.4.0-150-generic"}, state: Missing, why: "ring buffers", help: "5.8"},
		{name: "no task storage", check: "kernel", change: map[string]string{"/proc/sys/kernel/osrelease": "5.10.0-46-amd64"}, state: Limited, why: "RM calls are not seen", help: "5.11"},
		{name: "no kfuncs", check: "kernel", change: map[string]string{"/proc/sys/kernel/osrelease": "5.15.0"}, state: Limited, why: "6.1"},
		{name: "no BTF", check: "kernel BTF", change: map[string]string{"/sys/kernel/btf/vmlinux": "-"}, state: Missing, help: "CONFIG_DEBUG_INFO_BTF"},
		{name: "lockdown", check: "lockdown", change: map[string]string{"/sys/kernel/security/lockdown": "none [integrity] confidentiality"}, state: Limited, why: "modules"},
		{name: "confidential", check: "lockdown", change: map[string]string{"/sys/kernel/security/lockdown": "none integrity [confidentiality]"}, state: Missing, why: "no probe"},
		{name: "no kprobes", check: "kprobes", change: map[string]string{"/sys/bus/event_source/devices/kprobe/type": "-"}, state: Limited, help: "CONFIG_KPROBES"},
		{name: "no driver", check: "driver", change: map[string]string{"/proc/driver/nvidia/version": "-"}, state: Missing, help: "tsgtop demo"},
		{name: "proprietary", check: "driver", change: map[string]string{"/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri"}, state: Limited, why: "open flavour"},
		{name: "no GSP", check: "GSP", change: map[string]string{"/proc/driver/nvidia/gpus/0000:01:00.0/information": "GPU Firmware: N/A\n"}, state: Limited, why: "RPC"},
		{name: "no module BTF", check: "nvidia module BTF", change: map[string]string{"/sys/kernel/btf/nvidia": "-"}, state: Limited, why: "fentry", help: "pahole"},
		{name: "no node", check: "device nodes", change: map[string]string{"/dev/nvidiactl": "-"}, state: Missing, help: "nvidia-modprobe"},
		{name: "Yama 3", check: "ptrace scope", change: map[string]string{"/proc/sys/kernel/yama/ptrace_scope": "3"}, state: Limited, why: "fd actuator", help: "boot"},
		{name: "own pid namespace", check: "pid namespace", change: map[string]string{"/proc/self/ns/pid": "-> pid:[4026532000]"}, state: Limited, why: "nothing is attributed", help: "--pid=host"},
		{name: "Secure Boot", check: "Secure Boot", change: map[string]string{"/sys/firmware/efi/efivars/SecureBoot-8be4df61": "\x06\x00\x00\x00\x01"}, state: Limited, why: "signed", help: "mokutil"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			files := good()
			for p, content := range tc.change {
				if content == "-" {
					delete(files, p)
				} else {
					files[p] = content
				}
			}
			s := machine(t, files)
			if tc.name == "not root" {
				s.UID, s.Caps = func() int { return tc.uid }, func() Caps { return tc.caps }
			}
			for _, c := range Machine(s) {
				if c.Name != tc.check {
					continue
				}
				if c.State != tc.state || !strings.Contains(c.Why+c.What, tc.why) || !strings.Contains(c.Help, tc.help) || c.What == "" {
					t.Errorf("got %+v, want state %s, why with %q, help with %q", c, tc.state, tc.why, tc.help)
				}
				return
			}
			t.Fatalf("no check named %q", tc.check)
		})
	}
}

func TestSysAdminIncludesBPF(t *testing.T) {
	if !Caps(1<<CapSysAdmin).Has(CapBPF) || Caps(1<<CapSysAdmin).Has(CapSysPtrace) || Caps(0).Has(CapBPF) {
		t.Error("CAP_SYS_ADMIN stands for CAP_BPF and CAP_PERFMON, and for nothing else")
	}
}
