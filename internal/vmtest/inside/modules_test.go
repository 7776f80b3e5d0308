//go:build vmtest

package inside

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const knobDir = "/sys/kernel/debug/nvidia-model/"

// insmod loads /modules/NAME.ko with parameters.
func insmod(name, params string) error {
	f, err := os.Open("/modules/" + name + ".ko")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), params, 0); err != nil {
		return fmt.Errorf("load %s: %w", name, err)
	}
	return nil
}

// rmmod unloads a module by its kernel name; it tries for a while, because eBPF
// programs and files that were just closed hold it for moments.
func rmmod(name string) error {
	var err error
	for range 200 {
		if err = unix.DeleteModule(name, unix.O_NONBLOCK); err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("unload %s: %w", name, err)
}

// rmmodNow tries once.
func rmmodNow(name string) error { return unix.DeleteModule(name, unix.O_NONBLOCK) }

// loadModel loads the stand-in for the length of the test.
func loadModel(t *testing.T, file, params string) {
	t.Helper()
	if err := insmod(file, params); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rmmod("nvidia"); err != nil {
			t.Error(err)
		}
	})
}

// knob sets one knob of the stand-in.
func knob(t *testing.T, name string, value any) {
	t.Helper()
	if err := os.WriteFile(knobDir+name, []byte(fmt.Sprint(value)), 0); err != nil {
		t.Fatalf("knob %s = %v: %v", name, value, err)
	}
}

// knobFor sets a knob and sets it back at the end of the test.
func knobFor(t *testing.T, name string, value any) {
	t.Helper()
	old, err := os.ReadFile(knobDir + name)
	if err != nil {
		t.Fatal(err)
	}
	knob(t, name, value)
	t.Cleanup(func() { knob(t, name, strings.TrimSpace(string(old))) })
}

// dmesg is the kernel's log since a mark that it writes there itself.
func dmesgSince(t *testing.T, mark string) string {
	t.Helper()
	buf := make([]byte, 1<<20)
	n, err := unix.Klogctl(3, buf)
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(buf[:n]), mark)
	if !found {
		t.Fatalf("the mark %q is not in the kernel log", mark)
	}
	return after
}

// markLog writes a line into the kernel log and gives what dmesgSince wants.
func markLog(t *testing.T) string {
	t.Helper()
	mark := fmt.Sprintf("vmtest mark %s %d", t.Name(), time.Now().UnixNano())
	if err := os.WriteFile("/dev/kmsg", []byte("<6>"+mark+"\n"), 0); err != nil {
		t.Fatal(err)
	}
	return mark
}

func TestModelLoads(t *testing.T) {
	loadModel(t, "nvidia", "gpus=8")
	for _, f := range []string{"/dev/nvidiactl", "/dev/nvidia7", "/proc/driver/nvidia/version", "/sys/kernel/btf/nvidia", knobDir + "fecs7"} {
		if _, err := os.Stat(f); err != nil {
			t.Error(err)
		}
	}
	b, err := os.ReadFile("/proc/driver/nvidia/version")
	if err != nil || !strings.Contains(string(b), "580.159.04") {
		t.Errorf("version file: %q, %v", b, err)
	}
	if _, err := os.Stat("/sys/bus/pci/devices/0000:01:00.0"); err != nil {
		t.Error("no PCI device for GPU 0:", err)
	}
}

func TestModelWithoutBTF(t *testing.T) {
	loadModel(t, "nvidia-nobtf", "")
	if _, err := os.Stat("/sys/kernel/btf/nvidia"); err == nil {
		t.Error("the variant without BTF has BTF")
	}
}

// containsModelLine says whether the stand-in complained in a part of the log.
func containsModelLine(log string) bool {
	for line := range strings.Lines(log) {
		if strings.Contains(line, "NVRM: model:") && !strings.Contains(line, "stand-in") {
			return true
		}
	}
	return false
}
