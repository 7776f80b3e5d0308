//go:build linux

package kfunc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tsgtop/bpf"
	"tsgtop/internal/sched"
)

// TestAbsentModule: the same program loads where the module is absent, runs, says
// that it ran, and that nothing was called.
func TestAbsentModule(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to load eBPF")
	}
	if _, err := os.Stat("/sys/kernel/btf/tsgtop"); err == nil {
		t.Skip("the module is loaded here")
	}
	k, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if k.WhyNot() == "" {
		t.Error("no module and no reason")
	}
	t.Log(k.WhyNot())
	r, err := k.Do(7, sched.OpPreempt, sched.Target{}, 0, true, time.Second)
	if !errors.Is(err, ErrAbsent) {
		t.Errorf("Do without the module: %v", err)
	}
	if r.RanBefore == 0 || r.RanAfter < r.RanBefore {
		t.Errorf("the program's own records: before %d, after %d", r.RanBefore, r.RanAfter)
	}
	if r.Sent || r.Answered {
		t.Error("sent without a module")
	}
	if _, err := k.Do(8, "frobnicate", sched.Target{}, 0, true, time.Second); err == nil {
		t.Error("an unknown operation was taken")
	}
}

func TestReasons(t *testing.T) {
	const lockdown = "sys/kernel/security/lockdown"
	base := map[string]string{"proc/modules": "x 1 0 - Live 0x0\n", "sys/kernel/btf/vmlinux": "btf"}
	for _, c := range []struct {
		name, release string
		files         map[string]string
		want          string // part of the first reasons; "" for none
		help          string
	}{
		{"usable", "6.12.0", map[string]string{"sys/module/tsgtop/x": "", "sys/kernel/btf/tsgtop": "b",
			"sys/module/tsgtop/parameters/status": "abi: 1\ndriver: 580.159.04\n"}, "", ""},
		{"no BTF", "6.12.0", map[string]string{"sys/module/tsgtop/x": ""}, "without BTF", "pahole"},
		{"driver", "6.12.0", map[string]string{"sys/module/tsgtop/x": "", "sys/kernel/btf/tsgtop": "b",
			"sys/module/tsgtop/parameters/status": "abi: 1\ndriver: not usable (nvidia.ko is not loaded)\n"}, "nvidia.ko is not loaded", ""},
		{"old", "5.15.0-91", nil, "no sleepable kfuncs", "6.1"},
		{"not installed", "6.8.0", nil, "not installed", "make -C kmod"},
		{"not loaded", "6.8.0", map[string]string{"lib/modules/6.8.0/updates/dkms/tsgtop.ko.xz": ""}, "not loaded", "modprobe"},
		{"lockdown", "6.8.0", map[string]string{lockdown: "none [integrity] confidentiality\n"}, "locked down (integrity)", "mokutil --import"},
		{"no lockdown", "6.8.0", map[string]string{lockdown: "[none] integrity confidentiality\n"}, "not installed", ""},
		{"secure boot", "6.8.0", map[string]string{"sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c": "\x06\x00\x00\x00\x01"}, "Secure Boot", "mokutil"},
		{"proprietary", "6.8.0", map[string]string{"proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.1\n"}, "proprietary", "open"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			for _, files := range []map[string]string{base, c.files} {
				for name, text := range files {
					p := filepath.Join(root, name)
					if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
			m := Machine{Root: root, Release: c.release}
			if c.want == "" {
				if r := m.Reasons(); len(r) != 0 {
					t.Errorf("usable, but: %v", r)
				}
				return
			}
			if !strings.Contains(m.WhyNot(), c.want) {
				t.Errorf("reasons %q do not say %q", m.WhyNot(), c.want)
			}
			var help string
			for _, r := range m.Reasons() {
				help += r.Help + "\n"
			}
			if !strings.Contains(help, c.help) {
				t.Errorf("help %q does not say %q", help, c.help)
			}
		})
	}
}

// TestSentences: each of the module's reasons has its own sentence.
func TestSentences(t *testing.T) {
	seen := map[string]bpf.ActionTsgtopWhy{}
	for w := bpf.ActionTsgtopWhyTSGTOP_WHY_CAPABILITY; w <= bpf.ActionTsgtopWhyTSGTOP_WHY_UNLOADING; w++ {
		s := sentence(Result{Errno: 22, Refusal: w})
		if other, dup := seen[s]; dup || strings.HasPrefix(s, "the module refused: ") {
			t.Errorf("reason %d has no sentence of its own (%q, as %d)", w, s, other)
		}
		seen[s] = w
	}
}

// TestBounds: this package's bounds are the module's.
func TestBounds(t *testing.T) {
	abi, err := os.ReadFile("../../kmod/tsgtop_abi.h")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"TSGTOP_MIN_TIMESLICE_US": MinTimesliceUS, "TSGTOP_MAX_TIMESLICE_US": MaxTimesliceUS} {
		if line := fmt.Sprintf("\n#define %s %d\n", name, want); !strings.Contains(string(abi), line) {
			t.Errorf("the module's header has no line %q", line)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(make([]byte, 40))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, ok := decode(b); ok && len(b) < 40 {
			t.Error("a short record was taken")
		}
	})
}
