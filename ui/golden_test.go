package ui

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"

	"tsgtop/internal/sched"
)

var update = flag.Bool("update", false, "write the goldens again")

func TestMain(m *testing.M) {
	time.Local = time.UTC
	flag.Parse()
	if mode := os.Getenv("TSGTOP_UI_CHILD"); mode != "" {
		childMain(mode)
	}
	os.Exit(m.Run())
}

// harness drives a model as bubbletea would, one message after the other.
type harness struct {
	t     testing.TB
	m     *Model
	board *fakeBoard
	quit  bool
}

func start(t testing.TB, w, h int, snap func(sched.Time) *sched.Snapshot, set func(*Options)) *harness {
	t.Helper()
	b := &fakeBoard{now: t0, snap: snap, calls: callLines(t0)}
	opts := Options{Board: b, Profile: colorprofile.TrueColor}
	if set != nil {
		set(&opts)
	}
	m, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	hs := &harness{t: t, m: m, board: b}
	hs.send(tea.WindowSizeMsg{Width: w, Height: h})
	return hs
}

// send gives the model a message and runs what it asks for, timers apart.
func (h *harness) send(msg tea.Msg) {
	h.t.Helper()
	model, cmd := h.m.Update(msg)
	h.m = model.(*Model)
	h.m.View()
	if _, tick := msg.(tickMsg); tick {
		return
	}
	h.run(cmd)
}

func (h *harness) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case nil:
	case tea.QuitMsg:
		h.quit = true
	case preparedMsg, submittedMsg, undoneMsg, armedMsg, recordedMsg, failedMsg, crashMsg, roleMsg:
		h.send(msg)
	}
}

// press presses keys: single letters, or names such as "enter".
func (h *harness) press(keys ...string) *harness {
	h.t.Helper()
	for _, k := range keys {
		h.send(keyMsg(k))
	}
	return h
}

func keyMsg(k string) tea.KeyPressMsg {
	special := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft, "right": tea.KeyRight,
		"tab": tea.KeyTab, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "home": tea.KeyHome, "end": tea.KeyEnd, "backspace": tea.KeyBackspace}
	if c, ok := special[k]; ok {
		return tea.KeyPressMsg{Code: c}
	}
	if k == "space" {
		return tea.KeyPressMsg{Code: ' ', Text: " "}
	}
	if c, ok := strings.CutPrefix(k, "ctrl+"); ok {
		return tea.KeyPressMsg{Code: rune(c[0]), Mod: tea.ModCtrl}
	}
	return tea.KeyPressMsg{Code: []rune(k)[0], Text: k}
}

func (h *harness) screen() string { return h.m.View().Content }

// plain is the screen without styles.
func (h *harness) plain() string { return ansi.Strip(h.screen()) }

var goldenScreens = []struct {
	name string
	snap func(sched.Time) *sched.Snapshot
	keys []string
	set  func(*Options)
}{
	{name: "tsgs", snap: oneGPU},
	{name: "busy", snap: busy, keys: []string{"end"}},
	{name: "eight", snap: eight},
	{name: "calls", snap: busy, keys: []string{"2"}},
	{name: "score", snap: busy, keys: []string{"3"}},
	{name: "xid", snap: busy, keys: []string{"4"}},
	{name: "detail", snap: busy, keys: []string{"enter"}},
	{name: "mps", snap: mps, keys: []string{"enter"}},
	{name: "help", snap: busy, keys: []string{"?"}},
	{name: "groups", snap: busy, keys: []string{"g", "g", "g"}},
	{name: "confirm", snap: busy, keys: []string{"p"}, set: func(o *Options) { o.Controller = &fakeController{armed: true} }},
	{name: "timeslice", snap: oneGPU, keys: []string{"t", "9"}, set: func(o *Options) { o.Controller = &fakeController{armed: true} }},
	{name: "columns", snap: oneGPU, keys: []string{"c", "down", "down"}},
	{name: "empty", snap: func(now sched.Time) *sched.Snapshot {
		return &sched.Snapshot{Time: now, Source: sched.SourceInfo{Label: "LIVE", Host: "login-1"},
			Probes: []sched.ProbeStatus{{Probe: "rm", State: sched.ProbeMissing, Why: "no NVIDIA driver is loaded", Help: "load nvidia.ko"}}}
	}},
}

var goldenSizes = [][2]int{{60, 15}, {80, 24}, {120, 40}}

var goldenLooks = []struct {
	name string
	set  func(*Options)
}{
	{"true", func(o *Options) { o.Profile = colorprofile.TrueColor }},
	{"256", func(o *Options) { o.Profile = colorprofile.ANSI256 }},
	{"16", func(o *Options) { o.Profile = colorprofile.ANSI }},
	{"plain", func(o *Options) { o.NoColor = true }},
	{"ascii", func(o *Options) { o.NoColor = true; o.ASCII = true }},
}

func TestGoldenScreens(t *testing.T) {
	for _, sc := range goldenScreens {
		for _, size := range goldenSizes {
			for _, look := range goldenLooks {
				// Colours of every screen at one size, of the first at all.
				if look.name != "plain" && look.name != "ascii" && size != goldenSizes[1] && sc.name != "busy" {
					continue
				}
				name := fmt.Sprintf("%s-%dx%d-%s", sc.name, size[0], size[1], look.name)
				t.Run(name, func(t *testing.T) {
					h := start(t, size[0], size[1], sc.snap, func(o *Options) {
						if sc.set != nil {
							sc.set(o)
						}
						look.set(o)
					})
					h.press(sc.keys...)
					got := h.screen()
					mustFit(t, got, size[0], size[1])
					if look.name == "ascii" {
						mustBeASCII(t, got)
					}
					if look.name == "plain" || look.name == "ascii" {
						got = h.plain() // bold and reverse apart
					}
					golden(t, name, trimLines(got))
				})
			}
		}
	}
}

func trimLines(s string) string {
	ls := strings.Split(s, "\n")
	for i := range ls {
		ls[i] = strings.TrimRight(ls[i], " ")
	}
	return strings.Join(ls, "\n") + "\n"
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; -update writes it again. Now:\n%s\nThen:\n%s", file, got, want)
	}
}

// mustFit: exactly height lines, none wider than the terminal, and nothing in
// them that a terminal would act on, colours apart.
func mustFit(t testing.TB, s string, w, h int) {
	t.Helper()
	ls := strings.Split(s, "\n")
	if len(ls) != h {
		t.Errorf("%d lines, want %d", len(ls), h)
	}
	for i, l := range ls {
		if n := ansi.StringWidth(l); n > w {
			t.Errorf("line %d is %d cells wide, want at most %d: %q", i, n, w, l)
		}
	}
	for _, r := range sgr.ReplaceAllString(s, "") {
		if r != '\n' && (r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0x202e || r == 0x200b || r == 0xfffd) {
			t.Errorf("a character %U reaches the terminal", r)
		}
	}
}

var sgr = regexp.MustCompile(`\x1b\[[0-9;:]*m`)

func mustBeASCII(t testing.TB, s string) {
	t.Helper()
	for i, l := range strings.Split(s, "\n") {
		for _, r := range l {
			if r > 0x7e {
				t.Errorf("line %d: %q is not ASCII: %s", i, r, l)
				return
			}
		}
	}
}
