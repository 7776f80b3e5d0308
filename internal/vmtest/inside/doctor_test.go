//go:build vmtest

package inside

import (
	"strings"
	"syscall"
	"testing"
)

// says checks the doctor's sentences, and its exit code.
func says(t *testing.T, attr *syscall.SysProcAttr, wantCode int, wants ...string) {
	t.Helper()
	out, errs, code := toolAs(t, attr, "doctor")
	if code != wantCode {
		t.Errorf("doctor ended with %d, want %d", code, wantCode)
	}
	for _, w := range wants {
		if !strings.Contains(unfold(out), w) {
			t.Errorf("doctor does not say %q:\n%s\n%s", w, out, errs)
		}
	}
}

// TestToolDoctor: in each crippled configuration doctor says what is not to be had,
// and what is there all the same.
func TestToolDoctor(t *testing.T) {
	t.Run("no driver", func(t *testing.T) { says(t, nil, 2, "driver") })
	t.Run("driver without BTF", func(t *testing.T) {
		loadModel(t, "nvidia-nobtf", "")
		says(t, nil, 0, "BTF", "the module tsgtop is not installed; commands go by fd instead")
	})
	t.Run("module", func(t *testing.T) {
		loadModel(t, "nvidia", "")
		loadTsgtop(t, "")
		says(t, nil, 0, "ok actuator kfunc", "ok actuator fd", "580.159.04")
	})
	t.Run("MIG", func(t *testing.T) {
		loadModel(t, "nvidia", "")
		knobFor(t, "mig", 1)
		says(t, nil, 0, "MIG")
	})
	t.Run("module without BTF", func(t *testing.T) {
		loadModel(t, "nvidia", "")
		if err := insmod("tsgtop-nobtf", ""); err == nil {
			t.Fatal(rmmod("tsgtop"), "a module without BTF was loaded")
		}
		says(t, nil, 0, "the module tsgtop is not installed")
	})
	t.Run("proprietary", func(t *testing.T) {
		loadModel(t, "nvidia-proprietary", "")
		says(t, nil, 0, "the proprietary nvidia.ko is loaded; the module works with the open one") // calls can still be seen
	})
	t.Run("unknown version under the module", func(t *testing.T) {
		loadTsgtop(t, "")
		loadModel(t, "nvidia", "version=999.10")
		says(t, nil, 0, "999.10", "this driver version's layout is not known here")
	})
}
