//go:build vmtest

package inside

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestZLocked is the last of all, for the kernel stays as it makes it until the
// next boot: locked down, and with no taking of other processes' descriptors.
// What is there then: the tool observes, and acts by the kfunc alone; without the
// module it says why it cannot act, and why the module cannot be loaded.
func TestZLocked(t *testing.T) {
	loadModel(t, "nvidia", "")
	loadTsgtop(t, "")
	if err := os.WriteFile("/proc/sys/kernel/yama/ptrace_scope", []byte("3"), 0); err != nil {
		t.Fatal(err)
	}
	t.Run("killed", func(t *testing.T) { // the watcher has nothing but the kfunc
		x := inTerminal(t)
		x.wait("RUNLIST/TSG")
		p := startProcess(t, 0, nil) // what was there before the tool cannot be found
		arm(x, p, "kfunc")
		set(x, p, 300)
		if err := x.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		until(t, p, "what the watcher puts back", func(r tsgRow) bool { return r.effective == 2048 })
	})
	t.Run("no descriptors", func(t *testing.T) {
		says(t, nil, 0, "Yama ptrace_scope 3", "no process may take another's descriptor")
		_, errs, code := tool(t, "timeslice", "0:0:0", "300", "--yes", "--actuator", "fd")
		if code != 2 || !strings.Contains(errs, "ptrace_scope is 3") {
			t.Errorf("fd: code %d\n%s", code, errs)
		}
	})
	t.Run("lockdown", func(t *testing.T) {
		const lockdown = "/sys/kernel/security/lockdown"
		if err := os.WriteFile(lockdown, []byte("integrity"), 0); err != nil {
			t.Fatal(err)
		}
		says(t, nil, 0, "lockdown: integrity", "ok probe rm", "ok actuator kfunc")
		if err := rmmod("tsgtop"); err != nil {
			t.Fatal(err)
		}
		if err := insmod("tsgtop", ""); !errors.Is(err, syscall.EPERM) {
			t.Errorf("an unsigned module into a locked kernel: %v", err)
		}
		says(t, nil, 0, "the kernel is locked down (integrity) and takes signed modules only", "mokutil --import")
		_, errs, code := tool(t, "preempt", "0:0:0", "--yes")
		if code != 2 || !strings.Contains(errs, "locked down (integrity)") || !strings.Contains(errs, "ptrace_scope is 3") {
			t.Errorf("with neither actuator: code %d\n%s", code, errs)
		}
	})
}
