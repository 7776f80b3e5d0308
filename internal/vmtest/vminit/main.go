//go:build linux

// Command vminit is the init of a test machine: it mounts the kernel's file
// systems, runs the test binaries of /plan one after the other with their
// output on the result port, sends back the kernel log and the files in /out,
// and powers off.
package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

func main() {
	rc := 0
	result := mount()
	if err := runPlan(result); err != nil {
		rc = 1
		fmt.Fprintln(result, "vminit:", err)
	}
	sendBack(result)
	fmt.Fprintf(result, "\nVMTEST END rc=%d\n", rc)
	if f, ok := result.(*os.File); ok {
		drain(f)
	}
	if os.Getpid() == 1 {
		unix.Sync()
		_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
		select {} // a returning init is a panic; the power is about to go
	}
	os.Exit(rc)
}

// mount mounts what tests need and opens the port that results go to. Errors
// show on the console; the tests that miss something fail by themselves.
func mount() io.Writer {
	for _, m := range []struct{ kind, dir string }{
		{"devtmpfs", "/dev"}, {"proc", "/proc"}, {"sysfs", "/sys"}, {"tmpfs", "/tmp"}, {"tmpfs", "/run"},
		{"tracefs", "/sys/kernel/tracing"}, {"debugfs", "/sys/kernel/debug"}, {"bpf", "/sys/fs/bpf"}, {"securityfs", "/sys/kernel/security"},
		{"cgroup2", "/sys/fs/cgroup"}, {"devpts", "/dev/pts"},
	} {
		_ = os.MkdirAll(m.dir, 0o755)
		if err := unix.Mount(m.kind, m.dir, m.kind, 0, ""); err != nil && err != unix.EBUSY {
			fmt.Println("vminit: mount", m.dir, err)
		}
	}
	for _, dir := range []string{"/out", "/etc", "/var/lib", "/var/log"} {
		_ = os.MkdirAll(dir, 0o755)
	}
	_ = os.WriteFile("/etc/passwd", []byte("root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n"), 0o644)
	for _, kv := range []string{"PATH=/bin", "HOME=/tmp", "TMPDIR=/tmp", "TSGTOP_IN_VM=1"} {
		k, v, _ := strings.Cut(kv, "=")
		_ = os.Setenv(k, v)
	}
	port := "/dev/ttyS1"
	if line, err := os.ReadFile("/proc/cmdline"); err == nil {
		for _, f := range strings.Fields(string(line)) {
			if v, ok := strings.CutPrefix(f, "tsgtop_result="); ok {
				port = v
			}
		}
	}
	f, err := os.OpenFile(port, os.O_WRONLY|unix.O_NOCTTY, 0)
	if err != nil {
		fmt.Println("vminit: result port:", err)
		return os.Stdout
	}
	return f
}

func runPlan(result io.Writer) error {
	plan, err := os.ReadFile("/plan")
	if err != nil {
		return err
	}
	var failed []string
	for line := range strings.Lines(string(plan)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		cmd := exec.Command(f[0], f[1:]...)
		cmd.Dir = "/tmp"
		cmd.Stdout, cmd.Stderr = result, result
		if err := cmd.Run(); err != nil {
			failed = append(failed, fmt.Sprintf("%s: %v", f[0], err))
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("%s", strings.Join(failed, "; "))
	}
	return nil
}

func sendBack(result io.Writer) {
	send := func(name string, b []byte) {
		fmt.Fprintf(result, "\nVMTEST FILE %s %s\n", name, base64.StdEncoding.EncodeToString(b))
	}
	buf := make([]byte, 1<<20)
	if n, err := unix.Klogctl(3, buf); err == nil { // SYSLOG_ACTION_READ_ALL
		log := buf[:n]
		if len(log) > 96<<10 {
			log = log[len(log)-96<<10:] // the serial port is slow
		}
		send("dmesg", log)
	}
	files, _ := filepath.Glob("/out/*")
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil {
			send(filepath.Base(f), b)
		}
	}
}

// drain waits until the port has sent everything: power-off does not.
func drain(f *os.File) { _ = unix.IoctlSetInt(int(f.Fd()), unix.TCSBRK, 1) }
