package ui

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"

	"tsgtop/internal/sched"
)

func TestQuietWriterDropsQuestions(t *testing.T) {
	keep := "\x1b[?1049h\x1b[?25l\x1b[2J\x1b[1;31mtext\x1b[m\x1b[?2004h\x1b]0;title\x07\x1b[3;4H µ→"
	for _, drop := range []string{ansi.RequestModeSynchronizedOutput, ansi.RequestModeUnicodeCore, ansi.RequestKittyKeyboard, ansi.PushKittyKeyboard(1),
		ansi.PopKittyKeyboard(1), ansi.SetModifyOtherKeys2, ansi.ResetModifyOtherKeys, ansi.RequestBackgroundColor, ansi.RequestNameVersion,
		ansi.RequestPrimaryDeviceAttributes, ansi.RequestCursorPositionReport, ansi.RequestTermcap("RGB"), "\x1b]10;?\x07"} {
		var whole bytes.Buffer
		q := &quietWriter{w: &whole}
		if n, err := q.Write([]byte(keep + drop + keep)); err != nil || n != len(keep+drop+keep) {
			t.Fatalf("%d, %v", n, err)
		}
		if whole.String() != keep+keep {
			t.Errorf("%q: got through %q", drop, whole.String())
		}
		// However the writes are cut.
		var bytewise bytes.Buffer
		q = &quietWriter{w: &bytewise}
		for _, b := range []byte(keep + drop + keep) {
			if _, err := q.Write([]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
		if bytewise.String() != keep+keep {
			t.Errorf("%q, byte by byte: got through %q", drop, bytewise.String())
		}
	}
}

func FuzzQuietWriter(f *testing.F) {
	f.Add([]byte("\x1b[?2026$p\x1b[1mx"), 3)
	f.Add([]byte("\x1b]10;?\x1b\\\x1b[?u\x1bP+q5247\x1b\\"), 1)
	f.Fuzz(func(t *testing.T, in []byte, cut int) {
		var a, b bytes.Buffer
		qa, qb := &quietWriter{w: &a}, &quietWriter{w: &b}
		_, _ = qa.Write(in)
		cut = min(max(cut, 0), len(in))
		_, _ = qb.Write(in[:cut])
		_, _ = qb.Write(in[cut:])
		if !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Errorf("cut at %d: %q, whole: %q", cut, b.Bytes(), a.Bytes())
		}
	})
}

// terminal is a pseudo-terminal in which the program runs, with a terminal
// emulator that shows what it draws.
type terminal struct {
	t     *testing.T
	tty   *os.File
	emu   *vt.SafeEmulator
	mu    sync.Mutex
	bytes bytes.Buffer
	cmd   *exec.Cmd
	done  chan struct{}
	err   error
}

// childMain is the program that terminal runs: the test binary again.
func childMain(mode string) {
	if mode == "shell" {
		// Something above it, as a shell is, that keeps its group from being orphaned.
		cmd := exec.Command(os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), "TSGTOP_UI_CHILD=run")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Foreground: true, Ctty: 0}
		if err := cmd.Start(); err != nil {
			os.Stdout.WriteString("FAILED " + err.Error() + "\r\n")
			os.Exit(5)
		}
		os.Stdout.WriteString("PID " + strconv.Itoa(cmd.Process.Pid) + "\r\n")
		_ = cmd.Wait()
		os.Exit(cmd.ProcessState.ExitCode())
	}
	if mode == "holder" {
		cmd := exec.Command(os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), "TSGTOP_UI_CHILD=run")
		tty, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 80, Rows: 24})
		if err != nil {
			os.Exit(5)
		}
		buf := make([]byte, 4096)
		for said := false; ; {
			n, err := tty.Read(buf)
			if err != nil {
				os.Exit(5)
			}
			if !said && bytes.Contains(buf[:n], []byte("RUNLIST")) {
				os.Stdout.WriteString(strconv.Itoa(cmd.Process.Pid) + "\n")
				said = true
			}
		}
	}
	failed := make(chan error, 1)
	if mode == "fail" {
		time.AfterFunc(500*time.Millisecond, func() { failed <- errors.New("the probe is gone") })
	}
	board := &fakeBoard{now: t0, snap: busy, calls: callLines(t0)}
	if mode == "panic" {
		begin := time.Now()
		board.snap = func(now sched.Time) *sched.Snapshot {
			if time.Since(begin) > 500*time.Millisecond {
				panic("torn state")
			}
			return busy(now)
		}
	}
	err := Run(context.Background(), Options{Board: board, Failed: failed, Query: mode == "query"})
	var se *SignalError
	switch {
	case errors.As(err, &se):
		os.Stdout.WriteString("ENDED " + err.Error() + "\r\n")
		os.Exit(3)
	case err != nil:
		os.Stdout.WriteString("FAILED " + err.Error() + "\r\n")
		os.Exit(4)
	}
	os.Stdout.WriteString("QUIT\r\n")
	os.Exit(0)
}

func openTerminal(t *testing.T, mode string, w, h int) *terminal {
	t.Helper()
	x := &terminal{t: t, emu: vt.NewSafeEmulator(w, h), done: make(chan struct{})}
	x.cmd = exec.Command(os.Args[0], "-test.run=^$")
	x.cmd.Env = append(os.Environ(), "TSGTOP_UI_CHILD="+mode, "TERM=xterm-256color", "COLORTERM=truecolor", "LC_ALL=C.UTF-8")
	tty, err := pty.StartWithSize(x.cmd, &pty.Winsize{Cols: uint16(w), Rows: uint16(h)})
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
		x.err = x.cmd.Wait()
		select {
		case <-read:
		case <-time.After(2 * time.Second):
		}
		close(x.done)
	}()
	t.Cleanup(func() {
		_ = x.cmd.Process.Kill()
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

// wait waits until the screen shows something.
func (x *terminal) wait(want string) {
	x.t.Helper()
	for range 300 {
		if strings.Contains(x.screen(), want) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	x.t.Fatalf("the terminal never showed %q:\n%s\n%q", want, x.screen(), x.sent()[max(len(x.sent())-2000, 0):])
}

func (x *terminal) typeIn(s string) {
	x.t.Helper()
	if _, err := x.tty.WriteString(s); err != nil {
		x.t.Fatal(err)
	}
}

// ended waits for the program's end and checks that it left the terminal as
// it was: the main screen, a cursor, and cooked input.
func (x *terminal) ended(code int, want string) {
	x.t.Helper()
	select {
	case <-x.done:
	case <-time.After(10 * time.Second):
		x.t.Fatalf("the program does not end:\n%s", x.screen())
	}
	if got := x.cmd.ProcessState.ExitCode(); got != code {
		x.t.Errorf("exit code %d, want %d", got, code)
	}
	out := x.sent()
	if !strings.Contains(out, want) {
		x.t.Errorf("the program did not say %q: %q", want, out[max(len(out)-500, 0):])
	}
	in, back := strings.LastIndex(out, "\x1b[?1049h"), strings.LastIndex(out, "\x1b[?1049l")
	if in < 0 || back < in {
		x.t.Error("the main screen did not come back")
	}
	if strings.LastIndex(out, "\x1b[?25h") < strings.LastIndex(out, "\x1b[?25l") {
		x.t.Error("the cursor did not come back")
	}
}

func TestTerminalRun(t *testing.T) {
	x := openTerminal(t, "run", 100, 30)
	x.wait("RUNLIST/TSG")
	for key, want := range map[string]string{"2": "1234/s", "3": "score", "4": "Xid errors", "?": "keys on"} {
		x.typeIn(key)
		x.wait(want)
		x.typeIn("1")
		x.wait("RUNLIST/TSG")
	}
	x.typeIn("/ser")
	x.wait("filter ser")
	x.typeIn("\x1b")
	x.typeIn("\x1b[B\x1b[B\r")
	if err := pty.Setsize(x.tty, &pty.Winsize{Cols: 60, Rows: 15}); err != nil {
		t.Fatal(err)
	}
	x.emu.Resize(60, 15)
	x.typeIn("1")
	x.wait("RUNLIST/TSG")
	x.typeIn("q")
	x.ended(0, "QUIT")
	for _, bad := range []string{"$p", "\x1b[?u", "\x1b[>", "\x1b[<", "\x1b[c", ";?", "gone\x07"} {
		if strings.Contains(x.sent(), bad) {
			t.Errorf("%q went to the terminal", bad)
		}
	}
}

func TestQueryLetsQuestionsOut(t *testing.T) {
	x := openTerminal(t, "query", 80, 24)
	x.wait("RUNLIST/TSG")
	if !strings.Contains(x.sent(), "\x1b[?u") {
		t.Error("no question went out: the filter test above could not fail")
	}
	x.typeIn("\x03")
	x.ended(0, "QUIT")
}

func TestSignalsEndTheScreen(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			x := openTerminal(t, "run", 80, 24)
			x.wait("RUNLIST/TSG")
			if err := x.cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			x.ended(3, "ENDED ended by signal: "+sig.String())
		})
	}
}

// TestSuspend: both Ctrl-Z and a stop signal from outside give the terminal
// back and stop the process; it goes on where it was.
func TestSuspend(t *testing.T) {
	x := openTerminal(t, "shell", 80, 24)
	x.wait("RUNLIST/TSG")
	m := regexp.MustCompile(`PID (\d+)`).FindStringSubmatch(x.sent())
	if m == nil {
		t.Fatalf("no pid: %q", x.sent())
	}
	pid, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }()
	for round, stop := range []func(){
		func() { x.typeIn("\x1a") },
		func() { _ = syscall.Kill(pid, syscall.SIGTSTP) },
		func() { _ = syscall.Kill(pid, syscall.SIGTSTP) },
	} {
		stop()
		stopped := false
		for range 200 {
			if processState(pid) == "T" {
				stopped = true
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if !stopped {
			t.Fatalf("round %d: the process does not stop", round)
		}
		// What it sent before it stopped may still be on its way through the terminal.
		screenUp := func() bool {
			out := x.sent()
			return strings.LastIndex(out, "\x1b[?1049l") < strings.LastIndex(out, "\x1b[?1049h")
		}
		for range 200 {
			if !screenUp() {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if screenUp() {
			t.Errorf("round %d: stopped with the screen still up", round)
		}
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		x.typeIn("2")
		x.wait("1234/s")
		x.typeIn("1")
		x.wait("RUNLIST/TSG")
	}
	x.typeIn("q")
	x.ended(0, "QUIT")
}

func TestSuspendWithNothingToComeBackTo(t *testing.T) {
	x := openTerminal(t, "run", 80, 24)
	x.wait("RUNLIST/TSG")
	x.typeIn("\x1a")
	x.wait("cannot suspend")
	x.typeIn("q")
	x.ended(0, "QUIT")
}

func TestFailureOutsideEndsTheScreen(t *testing.T) {
	x := openTerminal(t, "fail", 80, 24)
	x.ended(4, "FAILED the probe is gone")
}

func TestPanicGivesTheTerminalBack(t *testing.T) {
	x := openTerminal(t, "panic", 80, 24)
	x.ended(4, "torn state")
}

// TestTerminalGoesAway: a lost connection ends the program. Another process
// holds the terminal, as sshd does, and dies.
func TestTerminalGoesAway(t *testing.T) {
	holder := exec.Command(os.Args[0], "-test.run=^$")
	holder.Env = append(os.Environ(), "TSGTOP_UI_CHILD=holder", "TERM=xterm-256color", "LC_ALL=C.UTF-8")
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }()
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait()
	for range 400 {
		if s := processState(pid); s == "" || s == "Z" {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("the program lives on without its terminal")
}

// processState is the letter of /proc/PID/stat; empty where there is no such process.
func processState(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')'):]))[1]
}

func TestASCIIByEnvironment(t *testing.T) {
	for _, tc := range []struct {
		env  []string
		want bool
	}{
		{[]string{"TERM=xterm-256color", "LANG=en_US.UTF-8"}, false},
		{[]string{"TERM=xterm", "LANG=en_US.UTF-8", "LC_ALL=C"}, true},
		{[]string{"TERM=xterm", "LC_CTYPE=de_DE.utf8"}, false},
		{[]string{"TERM=linux", "LANG=en_US.UTF-8"}, true},
		{[]string{"TERM=screen"}, true},
		{[]string{"TERM=xterm", "LANG=de_DE.ISO-8859-1"}, true},
	} {
		if got := wantsASCII(tc.env); got != tc.want {
			t.Errorf("%v: ASCII %t, want %t", tc.env, got, tc.want)
		}
	}
}

func TestNoColorWithAnyValue(t *testing.T) {
	for _, v := range []string{"1", "0", "false", "yes please"} {
		if p := detectProfile(os.Stdout, []string{"TERM=xterm-256color", "COLORTERM=truecolor", "CLICOLOR_FORCE=1", "NO_COLOR=" + v}); p > colorprofile.ASCII {
			t.Errorf("NO_COLOR=%s: profile %v", v, p)
		}
	}
	if p := detectProfile(os.Stdout, []string{"TERM=xterm-256color", "CLICOLOR_FORCE=1", "NO_COLOR="}); p <= colorprofile.ASCII {
		t.Errorf("NO_COLOR without a value: profile %v", p)
	}
}
