//go:build vmtest

package inside

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOldKernel: before Linux 6.1 the module compiles, and refuses to load with one
// line; the tool says so, finds what runs, and acts through a borrowed descriptor.
// Before 5.11 it cannot see its own call, so RAN stays unknown.
func TestOldKernel(t *testing.T) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	release := unix.ByteSliceToString(u.Release[:])
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil || major > 6 || major == 6 && minor >= 1 {
		t.Skipf("skip: Linux %s has sleepable kfuncs: this is about kernels older than 6.1", release)
	}
	loadModel(t, "nvidia", "")
	mark := markLog(t)
	err := insmod("tsgtop", "")
	if err == nil {
		rmmod("tsgtop")
	}
	if log := dmesgSince(t, mark); !errors.Is(err, syscall.EOPNOTSUPP) || strings.Count(log, "tsgtop: sleepable kfuncs need Linux 6.1") != 1 {
		t.Errorf("%v; log: %s", err, log)
	}
	says(t, nil, 0, "tp_btf: the kernel is too old", "use Linux 5.11 or newer", "has no sleepable kfuncs; commands go by fd instead", "Linux 6.1 or newer")
	p := startProcess(t, 0, nil)
	target := fmt.Sprintf("pid:%d", p.PID)
	ran, want := `"ran":{"state":"yes"`, 5
	if major == 5 && minor < 11 {
		ran, want = `"ran":{"state":"unknown","why":"no eBPF program is attached to see the call`, 6
	}
	out, errs, code := tool(t, "timeslice", target, "300", "--yes", "--keep", "--wait", "1s", "--json")
	for _, w := range []string{`"actuator":"fd"`, ran, `"accepted":{"state":"yes"`} {
		if code != want || !strings.Contains(out, w) {
			t.Errorf("by fd: code %d, want %d and %s\n%s%s", code, want, w, out, errs)
		}
	}
	if r := effective(t, p); r.effective != 300 {
		t.Errorf("by fd: %+v", r)
	}
	if _, errs, code := tool(t, "timeslice", target, "300", "--yes", "--actuator", "kfunc"); code != 2 || !strings.Contains(errs, "has no sleepable kfuncs") {
		t.Errorf("by kfunc: code %d\n%s", code, errs)
	}
	if _, errs, code := tool(t, "restore"); code != 0 {
		t.Errorf("restore: code %d\n%s", code, errs)
	}
	if r := effective(t, p); r.effective != 2048 {
		t.Errorf("after restore: %+v", r)
	}
}
