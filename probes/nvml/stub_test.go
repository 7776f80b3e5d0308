//go:build cgo && !nonvml

package nvml

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"tsgtop/internal/sched"
)

// stub builds the stand-in for NVML's library, named as the driver's files are.
func stub(t *testing.T) string {
	t.Helper()
	cc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc here, which builds the stand-in for NVML's library")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "libnvidia-ml.so.570.86.15")
	if out, err := exec.Command(cc, "-shared", "-fPIC", "-O1", "-o", file, "testdata/stub.c").CombinedOutput(); err != nil {
		t.Fatalf("building the stand-in: %v\n%s", err, out)
	}
	if err := os.Symlink(filepath.Base(file), filepath.Join(dir, libraryName)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestRealChild runs the real child with a library that stands in for NVML's.
func TestRealChild(t *testing.T) {
	if os.Getenv("NVML_TEST_REAL_CHILD") != "" {
		os.Exit(ChildMain())
	}
	dir := stub(t)
	run := func(t *testing.T, env ...string) chan sched.Event {
		p, events := fake(t, "", Options{})
		p.command = []string{"/proc/self/exe", "-test.run=^TestRealChild$"}
		p.env = append(env, "NVML_TEST_REAL_CHILD=1", "LD_LIBRARY_PATH="+dir)
		p.limits.hang = 3 * time.Second
		if strings.HasPrefix(strings.Join(env, " "), "NVML_STUB_HANG") {
			p.limits.hang, p.limits.start = 300*time.Millisecond, 300*time.Millisecond
		}
		start(t, p, events)
		return events
	}
	t.Run("works", func(t *testing.T) {
		events := run(t)
		g := await(t, events, anything[sched.GPU])
		g.Time = 0
		if want := (sched.GPU{PCI: "0000:1b:00.0", Minor: sched.Unknown, DeviceInstance: sched.Unknown, UUID: "GPU-1234", Name: "NVIDIA H200", Driver: "580.159.04",
			MIG: sched.Ptr(false), Persistence: sched.Ptr(true), MemoryBytes: 1000}); !reflect.DeepEqual(g, want) {
			t.Errorf("%+v", g)
		}
		s := await(t, events, anything[sched.GPUSample])
		s.Time = 0
		if want := (sched.GPUSample{SMPercent: sched.Ptr(92), MemUsed: sched.Ptr(uint64(600)), MemTotal: sched.Ptr(uint64(1000)), TemperatureC: sched.Ptr(61),
			ProcessMem: []sched.ProcessMemory{{PID: 479, Bytes: 150}, {PID: 481, Bytes: 9}}}); !reflect.DeepEqual(s, want) {
			t.Errorf("%+v", s)
		}
	})
	for _, c := range []struct{ name, env, says string }{
		{"mismatch", "NVML_STUB_INIT=18", "NVML's library is version 570.86.15"},
		{"no driver", "NVML_STUB_INIT=9", "no NVIDIA driver loaded"},
		{"no permission", "NVML_STUB_INIT=4", "may not open"},
		{"another error", "NVML_STUB_INIT=999", "another error"},
		{"crash", "NVML_STUB_CRASH=utilization", "SIGSEGV"},
		{"crash at the start", "NVML_STUB_CRASH=init", "SIGSEGV"},
		{"hang", "NVML_STUB_HANG=utilization", "said nothing for"},
		{"hang at the start", "NVML_STUB_HANG=init", "said nothing for"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := await(t, run(t, c.env), func(s sched.ProbeStatus) bool { return s.State != sched.ProbeOK })
			if !strings.Contains(s.Why, c.says) {
				t.Errorf("%+v", s)
			}
		})
	}
}
