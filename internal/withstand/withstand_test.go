package withstand

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"
)

// withoutDevices skips where a real driver would answer.
func withoutDevices(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/dev/nvidiactl"); err == nil {
		t.Skip("skip: driver: this machine has one, and the test needs a machine without its devices")
	}
}

// TestEachLackIsASentence runs the program where something is missing: it says
// what, what would help, and ends as docs/cli.md says.
func TestEachLackIsASentence(t *testing.T) {
	withoutDevices(t)
	const noNode = "there is no /dev/nvidiactl"
	for _, c := range []struct {
		name, machine, args string
		code                int
		says                []string
	}{
		{"no driver", "no-driver", "ls", 2, []string{"no NVIDIA driver answers", "modprobe nvidia", "demo"}},
		{"no driver, calls", "no-driver", "calls", 2, []string{"no NVIDIA driver answers"}},
		{"no driver, score", "no-driver", "score", 2, []string{"no NVIDIA driver answers"}},
		{"no driver, record", "no-driver", "record -o x", 2, []string{"no NVIDIA driver answers"}},
		{"no driver, a command", "no-driver", "preempt 0:0:7 --yes", 2, []string{"no NVIDIA driver answers"}},
		{"no driver, a recording", "no-driver", "ls --source sim --for 10ms", 0, nil},
		{"not root", "driver nobody", "ls", 2, []string{"needs root", "sudo", "tsgtop demo"}},
		{"not root, a recording", "driver nobody", "score --source demo", 0, nil},
		{"no devices", "driver", "ls --for 10ms", 0, []string{"discover: ", "ctxsw: ", noNode, "nvidia-smi"}},
		{"no devices, JSON", "driver", "ls --for 10ms --json", 0, []string{"discover: ", noNode}},
		{"no BTF", "driver no-btf", "ls --for 10ms", 2, []string{"rm: ", "the kernel has no BTF", "CONFIG_DEBUG_INFO_BTF", "nothing can be observed", "tsgtop doctor"}},
		{"no BTF, calls", "driver no-btf", "calls --for 1m", 2, []string{"the kernel has no BTF", "nothing can be observed"}},
		{"no BTF, record", "driver no-btf", "record -o x --for 1m", 2, []string{"the kernel has no BTF", "nothing can be observed"}},
		{"no BTF, the last minute", "driver no-btf", "record -o x --last 1m --for 1m", 2, []string{"the kernel has no BTF", "nothing can be observed"}},
		{"no BTF, score", "driver no-btf", "score --for 10ms", 2, []string{"the kernel has no BTF", "nothing can be observed"}},
		{"root without capabilities", "driver no-caps", "ls --for 10ms", 2, []string{"CAP_BPF", "--cap-add"}},
		{"bpf() forbidden", "driver no-bpf", "ls --for 10ms", 2, []string{"the kernel forbids it", "seccomp"}},
		{"own pid namespace", "pid-namespace driver", "ls --for 10ms", 0, []string{"no process is named", "--pid=host"}},
		{"own pid namespace, calls", "pid-namespace driver", "calls --for 300ms", 0, []string{"no process is named"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := on(t, c.machine, strings.Fields(c.args)...)
			if a.code != c.code {
				t.Errorf("code %d, want %d", a.code, c.code)
			}
			for _, s := range c.says {
				if !strings.Contains(a.err, s) {
					t.Errorf("it does not say %q", s)
				}
			}
			if a.code != 0 && a.out != "" {
				t.Errorf("an answer that looks like one: %q", a.out)
			}
			readable(t, a.err)
			if t.Failed() {
				t.Logf("it said:\n%s%s", a.out, a.err)
			}
		})
	}
}

// readable: each line is one message, says nothing twice, and holds nothing
// that a terminal acts on.
func readable(t *testing.T, messages string) {
	t.Helper()
	for line := range strings.Lines(messages) {
		rest, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "tsgtop: ")
		if !ok {
			t.Errorf("not a message of the program: %q", line)
		}
		for _, r := range rest {
			if r < ' ' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError {
				t.Errorf("%U in %q", r, line)
			}
		}
		seen := map[string]bool{}
		for _, part := range regexp.MustCompile(`: |; `).Split(rest, -1) {
			if seen[part] && part != "operation not permitted" { // the kernel can say that to two questions
				t.Errorf("%q twice in %q", part, line)
			}
			seen[part] = true
		}
	}
}

// TestDoctor: what the doctor says fits a terminal of 80 columns, and its code
// tells whether something can be observed.
func TestDoctor(t *testing.T) {
	withoutDevices(t)
	for _, c := range []struct {
		machine string
		code    int
		says    []string
	}{
		{"no-driver", 2, []string{"missing  driver", "help: modprobe nvidia, or tsgtop demo", "missing  probes"}},
		{"driver", 0, []string{"ok       driver               driver version 580.159.04, open flavour", "missing  device nodes", "ok       probe rm", "missing  probe discover", "limited  actuator kfunc", "ok       actuator fd"}},
		{"driver no-btf", 2, []string{"missing  kernel BTF", "missing  probe rm"}},
		{"driver no-caps", 2, []string{"missing  privilege", "CAP_BPF", "missing  probe rm", "missing  probe xid", "it needs CAP_SYS_PTRACE"}},
		{"driver nobody", 2, []string{"missing  privilege            user id 65534", "needs root"}},
		{"pid-namespace driver", 0, []string{"limited  pid namespace", "--pid=host", "missing  probe process", "missing  actuator fd"}},
	} {
		t.Run(c.machine, func(t *testing.T) {
			t.Parallel()
			a := on(t, c.machine, "doctor")
			if a.code != c.code || a.err != "" {
				t.Errorf("code %d, want %d; %s", a.code, c.code, a.err)
			}
			for _, s := range c.says {
				if !strings.Contains(a.out, s) {
					t.Errorf("it does not say %q", s)
				}
			}
			for line := range strings.Lines(a.out) {
				line = strings.TrimSuffix(line, "\n")
				if n := utf8.RuneCountInString(line); n > 80 && strings.Contains(strings.TrimSpace(line[30:]), " ") && !strings.HasPrefix(line, "path") {
					t.Errorf("%d columns: %q", n, line)
				}
			}
			if t.Failed() {
				t.Log(a.out)
			}
			if c.machine != "no-driver" { // where it waits for probes, once is enough
				return
			}
			if j := on(t, c.machine, "doctor", "--json"); j.code != c.code || strings.Count(j.out, "\n") != 1 || !strings.Contains(j.out, `"schema_version":1`) {
				t.Errorf("JSON: code %d, %q", j.code, j.out)
			}
		})
	}
}

// TestFilesOfNoKind: what is given as a recording and is none ends at once, with
// one line that names it.
func TestFilesOfNoKind(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("secret of root\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, text, "/dev/zero", "/dev/null", "/proc/self/mem", filepath.Join(dir, "none"), filepath.Join(dir, "e\x1b[2J\n\u202evil")} {
		for _, command := range []string{"ls", "calls", "score", "record"} {
			args := []string{command, "--source", path}
			if command == "record" {
				args = append(args, "-o", filepath.Join(dir, "out"))
			}
			a := on(t, "no-driver", args...)
			if a.code != 1 || a.out != "" || strings.Count(a.err, "\n") != 1 || strings.Contains(a.err, "secret") {
				t.Errorf("%s of %q: code %d, %q, %q", command, path, a.code, a.out, a.err)
			}
			readable(t, a.err)
		}
	}
}

// TestReaderGone: who reads the output and goes away ends the program without a
// word, as it ends others.
func TestReaderGone(t *testing.T) {
	for _, args := range []string{"calls --source sim", "calls --source sim --json", "man"} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		var errs bytes.Buffer
		cmd := exec.Command("/proc/self/exe", strings.Fields(args)...)
		cmd.Env = []string{asTool + "=", "HOME=" + t.TempDir()}
		cmd.Stdout, cmd.Stderr = w, &errs
		err = cmd.Run()
		w.Close()
		if st, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !st.Signaled() || st.Signal() != syscall.SIGPIPE || errs.Len() > 0 {
			t.Errorf("%s: %v, %q; want it ended by SIGPIPE", args, err, errs.String())
		}
	}
}

// TestSignals: a signal ends a recording whole, and a stream with 130.
func TestSignals(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r")
	for _, c := range []struct {
		args string
		code int
	}{{"record --source sim -o " + file, 0}, {"calls --source sim", 130}} {
		for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT} {
			os.Remove(file)
			var errs bytes.Buffer
			cmd := exec.Command("/proc/self/exe", strings.Fields(c.args)...)
			cmd.Env = []string{asTool + "=", "HOME=" + t.TempDir()}
			cmd.Stderr = &errs
			out, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.code == 0 {
				for st, err := os.Stat(file); err != nil || st.Size() == 0; st, err = os.Stat(file) {
					time.Sleep(time.Millisecond)
				}
			} else if _, err := out.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, out)
			cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != c.code {
				t.Errorf("%s, %v: code %d, want %d: %s", c.args, sig, code, c.code, errs.String())
			}
			readable(t, errs.String())
			if c.code == 0 {
				if a := on(t, "", "ls", "--source", file); a.code != 0 {
					t.Errorf("%v: the recording is not whole: %s", sig, a.err)
				}
			}
		}
	}
}

// TestDumbTerminal: no screen is drawn on a terminal that cannot move its cursor.
func TestDumbTerminal(t *testing.T) {
	cmd := exec.Command("/proc/self/exe", "demo", "--sim")
	cmd.Env = []string{asTool + "=", "HOME=" + t.TempDir(), "TERM=dumb"}
	tty, err := pty.Start(cmd)
	if err != nil {
		t.Skipf("skip: pty: %v", err)
	}
	defer tty.Close()
	said, _ := io.ReadAll(tty) // until the program's end, which is an error on a pty
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(string(said), "TERM") || strings.Contains(string(said), "\x1b") {
		t.Errorf("code %d, %q", code, said)
	}
}
