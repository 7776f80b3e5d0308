package vmtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Boot runs one virtual machine until it powers itself off. The kernel's console
// goes to console.log under dir, what the guest's init writes to result.log.
// qemu's exit code says nothing: a panic too ends with 0, so the caller judges
// by the end marker in the result.
func (k *Kernel) Boot(ctx context.Context, dir string, initramfs []byte, memoryMB int) error {
	irfs := filepath.Join(dir, "initramfs.cpio")
	if err := os.WriteFile(irfs, initramfs, 0o644); err != nil {
		return err
	}
	console, result := filepath.Join(dir, "console.log"), filepath.Join(dir, "result.log")
	name, args := "qemu-system-x86_64", []string{"-M", "q35", "-cpu", "max"}
	params := "console=ttyS0 loglevel=4 mitigations=off cryptomgr.notests 8250.nr_uarts=2 tsgtop_result=/dev/ttyS1"
	serial := []string{"-serial", "file:" + console, "-serial", "file:" + result}
	if k.Arch == "arm64" {
		name, args = "qemu-system-aarch64", []string{"-M", "virt", "-cpu", "cortex-a72"}
		params = "console=ttyAMA0 loglevel=4 tsgtop_result=/dev/hvc0"
		serial = []string{"-serial", "file:" + console, "-device", "virtio-serial-pci",
			"-chardev", "file,id=r,path=" + result, "-device", "virtconsole,chardev=r"}
	}
	// A PCI device at 01:00.0, for the stand-in to say that it is GPU 0.
	args = append(args, "-device", "pcie-root-port,id=port1,bus=pcie.0,chassis=1", "-device", "pci-testdev,bus=port1")
	if _, err := exec.LookPath(name); err != nil {
		return fmt.Errorf("boot %s: %w (Debian: apt-get install --no-install-recommends qemu-system-x86 or qemu-system-arm)", k.Release, err)
	}
	args = append(args, "-accel", "tcg,thread=single", "-smp", "1", "-m", fmt.Sprint(memoryMB),
		"-nodefaults", "-no-user-config", "-display", "none", "-monitor", "none", "-no-reboot")
	args = append(args, serial...)
	args = append(args, "-kernel", k.Image, "-initrd", irfs,
		"-append", params+" printk.devkmsg=on panic=-1 oops=panic nokaslr rdinit=/init")
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return fmt.Errorf("boot %s: the machine did not power off in time", k.Release)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("boot %s: %w", k.Release, err), errors.New(string(out)))
	}
	return nil
}
