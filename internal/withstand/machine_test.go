package withstand

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"tsgtop/internal/cli"
)

// asTool makes the test binary the program itself, on a machine as its words
// say; each word is done once, before the program begins.
const asTool = "TSGTOP_TEST_MACHINE"

func TestMain(m *testing.M) {
	words, ok := os.LookupEnv(asTool)
	if !ok {
		os.Exit(m.Run())
	}
	// What the program executes of itself is on this machine already.
	os.Setenv(asTool, "")
	if err := prepare(strings.Fields(words)); err != nil {
		fmt.Fprintln(os.Stderr, "PREPARING:", err)
		os.Exit(99)
	}
	os.Exit(cli.Main(os.Args[1:]))
}

// prepare changes the mount namespace that this process has to itself, and then
// what it may do.
func prepare(words []string) error {
	if len(words) == 0 {
		return nil
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts to ourselves: %w", err)
	}
	cover := func(dir string) error {
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("cover %s: %w", dir, err)
		}
		return nil
	}
	for _, w := range words {
		var err error
		switch w {
		case "proc": // of the pid namespace that this process is in
			err = unix.Mount("proc", "/proc", "proc", 0, "")
		case "no-driver":
			err = cover("/proc/driver")
		case "driver": // loaded, as /proc tells
			if err = cover("/proc/driver"); err == nil {
				err = driverFiles("/proc/driver/nvidia")
			}
		case "no-btf":
			err = cover("/sys/kernel/btf")
		case "nobody":
			// The standard library's calls act on all threads.
			err = errors.Join(syscall.Setgroups(nil), syscall.Setresgid(65534, 65534, 65534), syscall.Setresuid(65534, 65534, 65534))
		case "no-caps":
			err = again(dropCapabilities)
		case "no-bpf":
			err = again(forbidBPF)
		default:
			err = errors.New("no such word")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", w, err)
		}
	}
	return nil
}

func driverFiles(dir string) error {
	gpu := filepath.Join(dir, "gpus/0000:01:00.0")
	if err := os.MkdirAll(gpu, 0o755); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "version"), []byte("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\n"), 0o644),
		os.WriteFile(filepath.Join(gpu, "information"), []byte("Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-0\nGPU Firmware: \t 580.159.04\nDevice Minor: \t 0\n"), 0o644))
}

// again does to this thread what executing the program again then does to all.
// It must be the last word.
func again(f func() error) error {
	runtime.LockOSThread()
	if err := f(); err != nil {
		return err
	}
	return unix.Exec("/proc/self/exe", os.Args, os.Environ())
}

func dropCapabilities() error {
	for n := uintptr(0); n < 64; n++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, n, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
			return err
		}
	}
	return nil
}

func forbidBPF() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	prog := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_BPF, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	f := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&f)))
	runtime.KeepAlive(prog)
	if errno != 0 {
		return errno
	}
	return nil
}

// answer is what a run of the program gave.
type answer struct {
	code     int
	out, err string
}

// on runs the program on a machine. "pid-namespace" as the first word makes it
// one with its own numbers of processes.
func on(t *testing.T, machine string, args ...string) answer {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("skip: needs root: a mount namespace of its own")
	}
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Dir = t.TempDir()
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if rest, ok := strings.CutPrefix(machine, "pid-namespace"); ok {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWPID
		machine = "proc " + rest
	}
	home := t.TempDir()
	cmd.Env = []string{asTool + "=" + machine, "PATH=" + os.Getenv("PATH"), "HOME=" + home, "TERM=dumb", "LC_ALL=C.UTF-8"}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	a := answer{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
	if a.code == 99 {
		if strings.Contains(a.err, "operation not permitted") {
			t.Skipf("skip: namespaces: this machine does not allow them: %s", a.err)
		}
		t.Fatal(a.err)
	}
	return a
}
