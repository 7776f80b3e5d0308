package cli_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
)

// build makes the program with the tags and the race detector of this test.
func build(t *testing.T) string {
	t.Helper()
	args := []string{"build", "-o", filepath.Join(t.TempDir(), "tsgtop")}
	if bi, ok := debug.ReadBuildInfo(); ok {
		for _, s := range bi.Settings {
			switch {
			case s.Key == "-tags" && s.Value != "":
				args = append(args, "-tags", s.Value)
			case s.Key == "-race" && s.Value == "true":
				args = append(args, "-race")
			}
		}
	}
	cmd := exec.Command("go", append(args, "tsgtop")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return args[2]
}

// environment is that of a program that runs in a terminal, with a home of its
// own and nothing of ours.
func environment(t *testing.T, more ...string) []string {
	t.Helper()
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TERM=xterm-256color", "COLORTERM=truecolor", "LC_ALL=C.UTF-8", "TZ=UTC"}, more...)
}

// terminal is a pseudo-terminal in which the program runs, and an emulator that
// shows what it draws there.
type terminal struct {
	t     *testing.T
	tty   *os.File
	emu   *vt.SafeEmulator
	cmd   *exec.Cmd
	mu    sync.Mutex
	bytes bytes.Buffer
	done  chan struct{}
}

func open(t *testing.T, cmd *exec.Cmd, w, h int) *terminal {
	t.Helper()
	x := &terminal{t: t, cmd: cmd, emu: vt.NewSafeEmulator(w, h), done: make(chan struct{})}
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: uint16(w), Rows: uint16(h)})
	if err != nil {
		t.Fatal(err)
	}
	x.tty = tty
	go func() { _, _ = io.Copy(io.Discard, x.emu) }() // what the emulator would answer
	read := make(chan struct{})
	go func() {
		defer close(read)
		buf := make([]byte, 32<<10)
		for {
			n, err := tty.Read(buf)
			x.mu.Lock()
			x.bytes.Write(buf[:n])
			x.mu.Unlock()
			_, _ = x.emu.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	go func() {
		_ = cmd.Wait() // the exit code is asked later
		select {
		case <-read:
		case <-time.After(5 * time.Second):
		}
		close(x.done)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = tty.Close()
		<-x.done
	})
	return x
}

func (x *terminal) screen() string { return ansi.Strip(x.emu.Render()) }

func (x *terminal) sent() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.bytes.String()
}

func (x *terminal) typeIn(s string) {
	x.t.Helper()
	if _, err := x.tty.WriteString(s); err != nil {
		x.t.Fatal(err)
	}
}

func (x *terminal) resize(w, h int) {
	x.t.Helper()
	x.emu.Resize(w, h)
	if err := pty.Setsize(x.tty, &pty.Winsize{Cols: uint16(w), Rows: uint16(h)}); err != nil {
		x.t.Fatal(err)
	}
}

// wait waits until the screen shows something.
func (x *terminal) wait(want string) {
	x.t.Helper()
	x.until(want, func(s string) bool { return strings.Contains(s, want) })
}

func (x *terminal) until(what string, ok func(screen string) bool) {
	x.t.Helper()
	for range 1000 {
		if ok(x.screen()) {
			return
		}
		select {
		case <-x.done:
			x.t.Fatalf("it ended (%v) before it showed %q:\n%s\n%q", x.cmd.ProcessState, what, x.screen(), tail(x.sent()))
		case <-time.After(20 * time.Millisecond):
		}
	}
	x.t.Fatalf("the terminal never showed %q:\n%s\n%q", what, x.screen(), tail(x.sent()))
}

func tail(s string) string { return s[max(len(s)-1500, 0):] }

// ended waits for the program's end, and checks that it left the terminal as
// it was: the main screen, a cursor, and input as a shell wants it.
func (x *terminal) ended(code int) {
	x.t.Helper()
	select {
	case <-x.done:
	case <-time.After(20 * time.Second):
		x.t.Fatalf("the program does not end:\n%s", x.screen())
	}
	if got := x.cmd.ProcessState.ExitCode(); got != code {
		x.t.Errorf("exit code %d, want %d: %q", got, code, tail(x.sent()))
	}
	out := x.sent()
	if in, back := strings.LastIndex(out, "\x1b[?1049h"), strings.LastIndex(out, "\x1b[?1049l"); in < 0 || back < in {
		x.t.Error("the main screen did not come back")
	}
	if strings.LastIndex(out, "\x1b[?25h") < strings.LastIndex(out, "\x1b[?25l") {
		x.t.Error("the cursor did not come back")
	}
	for _, bad := range []string{"$p", "\x1b[?u", "\x1b[>", "\x1b[c", "\x1b]0;", ";?\x07"} {
		if strings.Contains(out, bad) {
			x.t.Errorf("%q went to the terminal", bad)
		}
	}
}

func (x *terminal) signal(s syscall.Signal) {
	x.t.Helper()
	if err := x.cmd.Process.Signal(s); err != nil {
		x.t.Fatal(err)
	}
}
