package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"tsgtop/internal/recording"
	"tsgtop/internal/sched"
)

// TestScreen runs the program in a terminal.
func TestScreen(t *testing.T) {
	bin := build(t)
	run := func(t *testing.T, w, h int, args ...string) *terminal {
		t.Helper()
		cmd := exec.Command(bin, args...)
		cmd.Env = environment(t)
		cmd.Dir = t.TempDir()
		return open(t, cmd, w, h)
	}
	sim := filepath.Join(t.TempDir(), "sim.tsg.zst")
	record(t, bin, sim)

	t.Run("every key", func(t *testing.T) { t.Parallel(); everyKey(t, run(t, 120, 40, "demo", "--sim")) })
	t.Run("keys of a replay", func(t *testing.T) { t.Parallel(); replayKeys(t, run(t, 100, 30, "replay", sim)) })
	t.Run("replay at 50 times", func(t *testing.T) {
		t.Parallel()
		x := run(t, 100, 30, "replay", sim, "--speed", "50")
		x.wait("×50")
		x.until("the end", func(s string) bool {
			m := regexp.MustCompile(`(\d+:\d+\.\d)/(\d+:\d+\.\d)`).FindStringSubmatch(s)
			return m != nil && m[1] == m[2]
		})
		x.wait("RUNLIST/TSG")
		x.typeIn("q")
		x.ended(0)
	})
	t.Run("evil names", func(t *testing.T) { t.Parallel(); evilNames(t, run) })
	t.Run("resize storm", func(t *testing.T) { t.Parallel(); resizeStorm(t, run(t, 80, 24, "demo", "--sim")) })
	t.Run("20x5", func(t *testing.T) {
		t.Parallel()
		x := run(t, 20, 5, "demo", "--sim")
		x.wait("60x15; q quits")
		x.typeIn("p") // what cannot be seen is not done
		x.resize(60, 15)
		x.wait("RUNLIST/TSG")
		x.resize(20, 5)
		x.wait("60x15; q quits")
		x.typeIn("q")
		x.ended(0)
	})
	for sig, how := range map[syscall.Signal]string{syscall.SIGINT: "", syscall.SIGTERM: "", syscall.SIGHUP: "", 0: "\x03"} {
		name := "Ctrl-C"
		if sig != 0 {
			name = sig.String()
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := run(t, 80, 24, "demo", "--sim")
			x.wait("RUNLIST/TSG")
			code := 0
			if sig == 0 {
				x.typeIn(how)
			} else {
				x.signal(sig)
				code = 128 + int(sig)
			}
			x.ended(code)
		})
	}
	t.Run("Linux console without colours", func(t *testing.T) {
		t.Parallel()
		cmd := exec.Command(bin, "demo", "--sim")
		cmd.Env = environment(t, "TERM=linux", "NO_COLOR=0")
		x := open(t, cmd, 80, 24)
		x.wait("2 competing")
		for _, k := range "234?1" {
			x.typeIn(string(k))
		}
		x.wait("RUNLIST/TSG")
		x.typeIn("q")
		x.ended(0)
		for _, r := range x.sent() {
			if r > 0x7e {
				t.Fatalf("%U reached a terminal that knows ASCII only", r)
			}
		}
		if m := regexp.MustCompile("\x1b\\[[0-9;]*\\b([34][0-8]|9[0-7])\\b[0-9;]*m").FindString(x.sent()); m != "" {
			t.Errorf("a colour in spite of NO_COLOR: %q", m)
		}
	})
	t.Run("settings", func(t *testing.T) { t.Parallel(); settings(t, bin) })
	t.Run("no terminal", func(t *testing.T) {
		t.Parallel()
		cmd := exec.Command(bin, "demo", "--sim")
		cmd.Env = environment(t)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "tsgtop ls") {
			t.Errorf("%v: %s", err, out)
		}
	})
	t.Run("tmux", func(t *testing.T) { t.Parallel(); inTmux(t, bin) })
}

// record makes a recording of the simulated GPU.
func record(t *testing.T, bin, path string) {
	t.Helper()
	cmd := exec.Command(bin, "record", "--source", "sim:seed=3,speed=4", "--for", "1500ms", "-o", path)
	cmd.Env = environment(t)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("record: %v\n%s", err, out)
	}
}

// press is a key of the table, what is sent for it, and what it should show.
type press struct{ key, send, want string }

// everyKey presses each key that docs/keys.md lists.
func everyKey(t *testing.T, x *terminal) {
	const up, down, right, left, pgup, pgdn, home, end = "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D", "\x1b[5~", "\x1b[6~", "\x1b[H", "\x1b[F"
	script := []press{
		{"1", "1", "RUNLIST/TSG"},
		{"2", "2", "─ calls"}, {"home", home, "2 calls"}, {"pgdn", pgdn, "2 calls"}, {"pgup", pgup, "2 calls"}, {"end", end, "2 calls"},
		{"3", "3", "─ score"}, {"m", "m", "─ score · wait"},
		{"4", "4", "Xid errors"},
		{"1", "1", "RUNLIST/TSG"},
		{"end", end, "▸▸ ce4"}, {"home", home, "▸▾ gr0"},
		{"↓ j", down, "▸ █"}, {"↓ j", "j", "▸ ▒"}, {"↑ k", up, "▸ █"}, {"↑ k", "k", "▸▾ gr0"},
		{"pgdn", pgdn, "▸▸ ce4"}, {"pgup", pgup, "▸▾ gr0"},
		{"enter", "\r", "▸▸ gr0"}, {"o", "o", "▸▾ gr0"},
		{"↓ j", down, "▸ █"}, {"enter", "\r", "scorecard"}, {"esc", "\x1b", "RUNLIST/TSG"},
		{"?", "?", "keys on tsgs"}, {"esc", "\x1b", "RUNLIST/TSG"},
		{"ctrl+z", "\x1a", "cannot suspend"}, {"ctrl+l", "\x0c", "RUNLIST/TSG"},
		{"space", " ", "PAUSED"}, {"h", "h", "gr0 -"}, {"l", "l", "gr0"}, {"←", left, "gr0 -"}, {"→", right, "gr0"}, {"0", "0", "gr0 100 ms"}, {"space", " ", "RUNLIST/TSG"},
		{"+", "+", "gr0 50 ms"}, {"-", "-", "gr0 100 ms"}, {"-", "-", "gr0 200 ms"}, {"0", "0", "gr0 100 ms"},
		{"/", "/serve\r", "filter serve"}, {"esc", "\x1b", "train.py"},
		{"s", "s", "sorted by"}, {"S", "S", "sorted by"}, {"F", "F", "flat list"}, {"F", "F", "RUNLIST/TSG"},
		{"g", "g", "grouped by process"}, {"g", "g", "grouped by user"}, {"g", "g", "grouped by unit"}, {"g", "g", "not grouped"},
		{"c", "c", "columns"}, {"esc", "\x1b", "RUNLIST/TSG"},
		{"w", "w", "of the last 10 seconds"}, {"G", "G", "there is one GPU"},
		{"r", "r", "holds no devices"}, {"[", "[", "only a recording"}, {"]", "]", "only a recording"}, {"n", "n", "only a recording"}, {"N", "N", "only a recording"},
		{"R", "R", "recording to"}, {"R", "R", "recorded"},
		{"T", "T", "theme light"},
	}
	x.wait("RUNLIST/TSG")
	x.wait("train.py")
	tried := map[string]bool{"q": true}
	for _, p := range script {
		x.typeIn(p.send)
		x.wait(p.want)
		tried[p.key] = true
	}
	acting(t, x, tried)
	for _, k := range documentedKeys(t) {
		if !tried[k] {
			t.Errorf("docs/keys.md lists %q, and it was not pressed", k)
		}
	}
	x.typeIn("q")
	x.ended(0)
}

// acting presses the keys that send commands: the simulated GPU obeys.
func acting(t *testing.T, x *terminal, tried map[string]bool) {
	x.typeIn("p")
	x.wait("READ-ONLY") // nothing is sent before control is armed
	x.until("why not", func(s string) bool { return strings.Contains(s, "p: read-only: C arms control") })
	for _, p := range []press{
		{"C", "C", "Cancel"}, {"C", "\t\r", "ARMED (sim)"},
		{"t", "t", "microseconds"}, {"t", "400\r", "[ Cancel ]"}, {"t", "\t\r", "→400µs"}, {"t", "", "CHANGED ✓"},
		{"u", "u", "[ Cancel ]"}, {"u", "\t\r", "put back"},
		{"i", "i", "interleave"}, {"i", "\x1b", "RUNLIST/TSG"},
		{"P", "P", "[ Cancel ]"}, {"P", "\x1b", "cancelled"},
		{"p", "p", "[ Cancel ]"}, {"p", "\r", "cancelled"},
		{"L", "L", "latency-critical?"}, {"L", "\x1b", "RUNLIST/TSG"},
		{"B", "B", "best-effort?"}, {"B", "\t\r", "is best-effort"},
	} {
		x.typeIn(p.send)
		x.wait(p.want)
		tried[p.key] = true
	}
}

// documentedKeys are the keys of docs/keys.md, which is made from the table.
func documentedKeys(t *testing.T) (keys []string) {
	t.Helper()
	b, err := os.ReadFile("../../docs/keys.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `(.+?)` \\|").FindAllStringSubmatch(string(b), -1) {
		keys = append(keys, m[1])
	}
	if len(keys) < 40 {
		t.Fatalf("only %d keys found in docs/keys.md", len(keys))
	}
	return keys
}

func replayKeys(t *testing.T, x *terminal) {
	x.wait("RECORDING")
	x.wait("RUNLIST/TSG")
	x.typeIn(" ")
	x.wait("PAUSED")
	for _, p := range []press{
		{"]", "]", "×2"}, {"[", "[[", "×0.5"}, {"→", "\x1b[C", "0:05."}, {"←", "\x1b[D\x1b[D", "0:00.0/"},
		{"n", "n", "on to the next"}, {"N", "N", "no command or Xid before this"},
		{"p", "p", "a recording cannot be acted on"}, {"R", "R", "cannot be recorded"},
	} {
		x.typeIn(p.send)
		x.wait(p.want)
	}
	x.typeIn("q")
	x.ended(0)
}

// evilNames plays a recording whose processes have hostile names, on every screen.
func evilNames(t *testing.T, run func(t *testing.T, w, h int, args ...string) *terminal) {
	const evil = "e\x1b[2J\x1b]0;gone\x07\x1b[?1049lvil\u202eexe\u200b🚀\xff\n\x9b31m"
	path := filepath.Join(t.TempDir(), "evil.tsg.zst")
	w, err := recording.Create(path, recording.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t0 := sched.Time(1_800_000_000_000_000_000)
	tsg := sched.Object{Client: 0xc1d00001, Handle: 0x5c000015}
	events := []sched.Event{
		sched.SourceInfo{Time: t0, Label: "LIVE", Host: evil, Notes: []string{evil}},
		sched.GPU{Time: t0, Index: 0, Name: evil, Driver: evil, Runlists: []sched.Runlist{{ID: 0, Engines: []uint32{1}}}},
		sched.ProbeStatus{Time: t0, Probe: "ctxsw", GPU: 0, State: sched.ProbeLimited, Why: evil, Help: evil},
		sched.Process{Time: t0, PID: 479, Exe: "/tmp/" + evil, Comm: evil, User: evil, Unit: evil, Cgroup: evil, Args: []string{evil}},
		sched.Inventory{Start: t0, End: t0, Complete: true, Why: evil,
			Clients: []sched.FoundClient{{Client: tsg.Client, PID: 479}},
			TSGs:    []sched.FoundTSG{{Object: tsg, GPU: 0, Runlist: 0, Number: sched.Ptr(uint32(7)), Engine: sched.Ptr(uint32(1)), Timeslice: sched.Ptr(uint64(2048)), PID: 479}}},
		sched.Call{Start: t0, End: t0 + 1000, PID: 479, Comm: evil, Kind: sched.CallControl, Number: 0xa06c0103, Client: tsg.Client, Object: tsg.Handle},
		sched.Xid{Time: t0 + 2000, GPU: 0, Code: 13, PID: 479, Name: evil, Text: evil},
		sched.ProcessExit{Time: t0 + 60e9, PID: 480},
	}
	if err := w.Write(events); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	x := run(t, 120, 40, "replay", path)
	x.wait("RUNLIST/TSG")
	x.wait(`\x1b[2J`)
	for _, p := range []press{
		{"2", "2", "A06C"}, {"3", "3", "─ score"}, {"4", "4", "Xid errors"}, {"1", "1", "RUNLIST/TSG"}, {"g", "g", "grouped"}, {"g", "gg", "by unit"}, {"g", "g", "not grouped"},
		{"down", "\x1b[B", "RUNLIST"}, {"enter", "\r", "scorecard"}, {"?", "?", "keys on"},
	} {
		x.typeIn(p.send)
		x.wait(p.want)
		for _, r := range x.screen() {
			if r == utf8.RuneError || r == 0x202e || r == 0x200b || r < ' ' && r != '\n' && r != '\r' || r >= 0x7f && r < 0xa0 {
				t.Errorf("on %s: %U reaches the terminal", p.key, r)
			}
		}
	}
	x.typeIn("q")
	x.ended(0)
	if out := x.sent(); strings.Contains(out, "\x1b[2J\x1b]0") || strings.Contains(out, "gone\x07") || strings.Count(out, "\x1b[?1049l") != 1 {
		t.Error("a name's escape codes reached the terminal")
	}
}

func resizeStorm(t *testing.T, x *terminal) {
	x.wait("RUNLIST/TSG")
	sizes := [][2]int{{200, 60}, {60, 15}, {1, 1}, {300, 10}, {59, 40}, {80, 24}, {20, 5}, {120, 40}}
	for i := range 80 {
		s := sizes[i%len(sizes)]
		x.resize(s[0], s[1])
		if i%3 == 0 {
			x.typeIn(strconv.Itoa(i%4 + 1))
		}
		time.Sleep(5 * time.Millisecond)
	}
	x.resize(90, 30)
	x.typeIn("1")
	x.until("a screen of 90x30", func(s string) bool {
		ls := strings.Split(strings.TrimRight(s, "\n"), "\n")
		return len(ls) == 30 && strings.Contains(s, "RUNLIST/TSG") && strings.Contains(ls[29], "quit")
	})
	for _, l := range strings.Split(x.screen(), "\n") {
		if n := utf8.RuneCountInString(strings.TrimRight(l, " ")); n > 90 {
			t.Errorf("a line of %d cells: %q", n, l)
		}
	}
	x.typeIn("q")
	x.ended(0)
}

// settings: the operator's configuration and themes show on the screen, flags
// have the last word, and what is wrong is said before the terminal is taken.
func settings(t *testing.T, bin string) {
	env := environment(t)
	home := strings.TrimPrefix(env[1], "HOME=")
	dir := filepath.Join(home, ".config/tsgtop")
	if err := os.MkdirAll(filepath.Join(dir, "themes"), 0o755); err != nil {
		t.Fatal(err)
	}
	put := func(name, content string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	screen := func(args ...string) *terminal {
		cmd := exec.Command(bin, append([]string{"demo", "--sim"}, args...)...)
		cmd.Env = env
		return open(t, cmd, 100, 30)
	}
	fail := func(want string, args ...string) {
		t.Helper()
		cmd := exec.Command(bin, append([]string{"ls", "--source", "sim", "--for", "10ms"}, args...)...)
		cmd.Env = env
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), want) {
			t.Errorf("%v, want %q: %s", err, want, out)
		}
	}
	put("themes/mine.toml", "about = \"My own.\"\nappearance = \"dark\"\nlanes = [\"#010101\", \"#020202\", \"#030303\", \"#040404\", \"#050505\", \"#060606\"]\n")
	put("config.toml", "theme = \"mine\"\nflat = true\nwindow = \"10s\"\ncolumns = [\"pid\", \"share\"]\nlane = \"200ms\"\nascii = true\nsort = \"share\"\n")
	x := screen()
	x.wait("200 ms")
	x.until("the columns", func(s string) bool { return strings.Contains(s, "vSHARE") && !strings.Contains(s, "TURNS/s") })
	x.typeIn("w")
	x.wait("since start")
	x.typeIn("T")
	x.wait("theme dark") // after the user's own, around
	x.typeIn("q")
	x.ended(0)
	x = screen("--theme", "light", "--lane", "50ms", "--columns", "turns")
	x.wait("50 ms")
	x.wait("TURNS/s")
	x.typeIn("T")
	x.wait("theme contrast")
	x.typeIn("q")
	x.ended(0)

	put("config.toml", "\ncontrol = true\n")
	fail("/etc/tsgtop/config.toml")
	put("config.toml", "fsp = 3\n")
	fail("line 1: unknown key; did you mean fps?")
	cmd := exec.Command(bin, "doctor")
	cmd.Env = env
	out, _ := cmd.CombinedOutput() // ends with 2 where nothing can be observed
	for _, want := range []string{"did you mean fps?", filepath.Join(dir, "config.toml"), filepath.Join(dir, "themes"), "/etc/tsgtop/config.toml"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("doctor does not say %q:\n%s", want, out)
		}
	}
	put("config.toml", "fps = 1\n")
	fail("no such file", "--config", filepath.Join(dir, "other.toml"))
}

// inTmux looks at the screen through tmux, which is a terminal of its own kind.
func inTmux(t *testing.T, bin string) {
	tmux, err := exec.LookPath("tmux")
	if err != nil {
		t.Skip("skip: needs tmux: it is not installed here")
	}
	socket := filepath.Join(t.TempDir(), "s")
	env := environment(t)
	do := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(tmux, append([]string{"-u", "-S", socket, "-f", "/dev/null"}, args...)...)
		cmd.Env = env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("tmux %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	wait := func(want string) string {
		t.Helper()
		var out string
		for range 500 {
			if out = do("capture-pane", "-p"); strings.Contains(out, want) {
				return out
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Fatalf("tmux never showed %q:\n%s", want, out)
		return ""
	}
	do("new-session", "-d", "-x", "100", "-y", "30", "sh", "-c", fmt.Sprintf("echo BEFORE; '%s' demo --sim; echo CODE $?; sleep 60", bin))
	t.Cleanup(func() {
		cmd := exec.Command(tmux, "-S", socket, "kill-server")
		_ = cmd.Run() // gone already, perhaps
	})
	out := wait("2 competing")
	if lines := strings.Split(out, "\n"); !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "gr0") && strings.Contains(l, "▏") }) {
		t.Errorf("no lane:\n%s", out)
	}
	do("send-keys", "2")
	wait("─ calls")
	do("send-keys", "q")
	if out := wait("CODE 0"); !strings.Contains(out, "BEFORE") {
		t.Errorf("what was there before did not come back:\n%s", out)
	}
}
