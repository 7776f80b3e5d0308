//go:build vmtest

package inside

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
)

// terminal is a pseudo-terminal in which the product runs, and an emulator that
// shows what it draws there.
type terminal struct {
	t    *testing.T
	tty  *os.File
	emu  *vt.SafeEmulator
	cmd  *exec.Cmd
	done chan struct{}
}

// inTerminal starts the product in a terminal of 120 by 40.
func inTerminal(t *testing.T, args ...string) *terminal {
	t.Helper()
	x := &terminal{t: t, cmd: exec.Command("/tsgtop", args...), emu: vt.NewSafeEmulator(120, 40), done: make(chan struct{})}
	x.cmd.Env = append(os.Environ(), "TERM=xterm-256color", "LC_ALL=C.UTF-8", "TZ=UTC")
	tty, err := pty.StartWithSize(x.cmd, &pty.Winsize{Cols: 120, Rows: 40})
	if err != nil {
		t.Fatal(err)
	}
	x.tty = tty
	go func() { _, _ = io.Copy(io.Discard, x.emu) }() // what the emulator would answer
	go func() {
		_, _ = io.Copy(x.emu, tty)
		_ = x.cmd.Wait() // the exit code is asked later
		close(x.done)
	}()
	t.Cleanup(func() {
		_ = x.cmd.Process.Kill()
		<-x.done
		_ = tty.Close()
	})
	return x
}

func (x *terminal) screen() string { return ansi.Strip(x.emu.Render()) }

func (x *terminal) typeIn(s string) {
	x.t.Helper()
	if _, err := x.tty.WriteString(s); err != nil {
		x.t.Fatal(err)
	}
}

// wait waits until the screen shows something.
func (x *terminal) wait(want string) {
	x.t.Helper()
	for range 1000 {
		if strings.Contains(x.screen(), want) {
			return
		}
		select {
		case <-x.done:
			x.t.Fatalf("it ended (%v) before it showed %q:\n%s", x.cmd.ProcessState, want, x.screen())
		case <-time.After(20 * time.Millisecond):
		}
	}
	x.t.Fatalf("the terminal never showed %q:\n%s", want, x.screen())
}

// ended waits for the program's end.
func (x *terminal) ended(code int) {
	x.t.Helper()
	select {
	case <-x.done:
	case <-time.After(20 * time.Second):
		x.t.Fatalf("the program does not end:\n%s", x.screen())
	}
	if got := x.cmd.ProcessState.ExitCode(); got != code {
		x.t.Errorf("exit code %d, want %d:\n%s", got, code, x.screen())
	}
}
