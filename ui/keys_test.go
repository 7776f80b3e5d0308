package ui

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tsgtop/internal/sched"
)

// fakeSource has everything that a key can need.
type fakeSource struct {
	log      []string
	at       sched.Time
	first    sched.Time
	last     sched.Time
	speed    float64
	paused   bool
	released bool
}

func (f *fakeSource) Look(on bool) {
	f.log = append(f.log, map[bool]string{true: "look", false: "look away"}[on])
}
func (f *fakeSource) Release()                       { f.released = true }
func (f *fakeSource) Resume()                        { f.released = false }
func (f *fakeSource) Pause(on bool)                  { f.paused = on }
func (f *fakeSource) SetSpeed(v float64)             { f.speed = v }
func (f *fakeSource) Seek(t sched.Time)              { f.at = t }
func (f *fakeSource) Position() (a, b, c sched.Time) { return f.at, f.first, f.last }
func (f *fakeSource) Start() (string, error) {
	f.log = append(f.log, "record")
	return "/tmp/r.tsg.zst", nil
}
func (f *fakeSource) Stop() (string, error) {
	f.log = append(f.log, "stop")
	return "/tmp/r.tsg.zst", nil
}
func (f *fakeSource) NextMark() { f.log = append(f.log, "mark") }

// full is a machine with everything, two GPUs and armed control.
func full(t *testing.T) (*harness, *fakeSource, *fakeController) {
	src := &fakeSource{at: t0, first: t0 - 60e9, last: t0 + 60e9}
	ctl := &fakeController{armed: true}
	h := start(t, 120, 40, busy, func(o *Options) {
		o.Controller, o.Looker, o.Releaser, o.Recorder, o.Player, o.Roles = ctl, src, src, src, src, &fakeSteerer{}
	})
	return h, src, ctl
}

// TestEveryKeyDoesSomething presses each key of the table on a screen where it
// counts and checks what it changed. A key without a row here fails.
func TestEveryKeyDoesSomething(t *testing.T) {
	type check struct {
		before []string // keys that set the scene
		ok     func(h *harness, src *fakeSource, ctl *fakeController) bool
	}
	on := func(s screenID) func(*harness, *fakeSource, *fakeController) bool {
		return func(h *harness, _ *fakeSource, _ *fakeController) bool { return h.m.on == s }
	}
	index := func(want int) func(*harness, *fakeSource, *fakeController) bool {
		return func(h *harness, _ *fakeSource, _ *fakeController) bool { return h.m.tsgs.index == want }
	}
	says := func(want string) func(*harness, *fakeSource, *fakeController) bool {
		return func(h *harness, _ *fakeSource, _ *fakeController) bool { return strings.Contains(h.plain(), want) }
	}
	asked := func(want string) func(*harness, *fakeSource, *fakeController) bool {
		return func(_ *harness, _ *fakeSource, ctl *fakeController) bool { return slices.Contains(ctl.log, want) }
	}
	quits := func(h *harness, _ *fakeSource, _ *fakeController) bool { return h.quit }
	checks := map[action]check{
		actTSGs: {[]string{"2"}, on(screenTSGs)},
		actCalls: {nil, func(h *harness, src *fakeSource, _ *fakeController) bool {
			return h.m.on == screenCalls && slices.Equal(src.log, []string{"look"})
		}},
		actScore:    {nil, on(screenScore)},
		actXid:      {nil, on(screenXid)},
		actDetail:   {nil, on(screenDetail)},
		actBack:     {[]string{"enter"}, on(screenTSGs)},
		actHelp:     {nil, on(screenHelp)},
		actQuit:     {nil, quits},
		actSuspend:  {nil, func(*harness, *fakeSource, *fakeController) bool { return true }}, // TestSuspend
		actRedraw:   {nil, func(h *harness, _ *fakeSource, _ *fakeController) bool { return h.board.asks > 1 }},
		actUp:       {[]string{"down"}, index(2)},
		actDown:     {nil, index(3)},
		actPageUp:   {[]string{"end"}, index(0)},
		actPageDown: {nil, index(11)},
		actTop:      {nil, index(0)},
		actBottom:   {nil, index(11)},
		actPause:    {nil, func(h *harness, src *fakeSource, _ *fakeController) bool { return h.m.paused && src.paused }},
		actFilter:   {nil, func(h *harness, _ *fakeSource, _ *fakeController) bool { return h.m.typing }},
		actSort:     {nil, says("sorted by PID, lowest first")},
		actReverse:  {[]string{"s"}, says("sorted by PID, highest first")},
		actFlat:     {nil, says("flat list")},
		actGroup:    {nil, says("grouped by process")},
		actFold:     {nil, func(h *harness, _ *fakeSource, _ *fakeController) bool { return h.m.tsgs.rows[1].folded }},
		actColumns:  {nil, func(h *harness, _ *fakeSource, _ *fakeController) bool { return h.m.panel != nil }},
		actMetric:   {[]string{"3"}, says("wait: off the engine")},
		actWindow:   {nil, func(h *harness, _ *fakeSource, _ *fakeController) bool { return h.m.window == sched.Window10s }},
		actGPU: {nil, func(h *harness, _ *fakeSource, _ *fakeController) bool {
			return h.m.onGPU == 0 && !strings.Contains(h.plain(), "2047")
		}},
		actZoomIn:    {nil, func(h *harness, _ *fakeSource, _ *fakeController) bool { return h.m.tsgs.lane.span == 10e6 }},
		actZoomOut:   {nil, func(h *harness, _ *fakeSource, _ *fakeController) bool { return h.m.tsgs.lane.span == 50e6 }},
		actZoomReset: {[]string{"-", "-"}, func(h *harness, _ *fakeSource, _ *fakeController) bool { return h.m.tsgs.lane.span == 20e6 }},
		actLeft:      {nil, func(_ *harness, src *fakeSource, _ *fakeController) bool { return src.at == t0-5e9 }},
		actRight:     {nil, func(_ *harness, src *fakeSource, _ *fakeController) bool { return src.at == t0+5e9 }},
		actPanLeft:   {[]string{"space"}, says("gr0 -")},
		actPanRight: {[]string{"space", "h", "h"}, func(h *harness, _ *fakeSource, _ *fakeController) bool {
			return h.m.tsgs.lane.panTo == t0-5e6
		}},
		actTheme:      {nil, says("theme light")},
		actArm:        {nil, asked("arm false")},
		actPreempt:    {nil, asked("prepare preempt 2 0 1")},
		actRepeat:     {nil, asked("prepare preempt 2 0 50")},
		actTimeslice:  {nil, says("100 to 60000 microseconds")},
		actInterleave: {nil, says("interleave level")},
		actMarkLC:     {nil, says("Make it latency-critical?")},
		actMarkBE:     {nil, says("Make it best-effort?")},
		actUndo:       {[]string{"down"}, says("undo #4")},
		actRecord: {nil, func(h *harness, src *fakeSource, _ *fakeController) bool {
			return slices.Contains(src.log, "record") && strings.Contains(h.plain(), "REC")
		}},
		actRelease:  {nil, func(_ *harness, src *fakeSource, _ *fakeController) bool { return src.released }},
		actSlower:   {nil, func(_ *harness, src *fakeSource, _ *fakeController) bool { return src.speed == 0.5 }},
		actFaster:   {nil, func(_ *harness, src *fakeSource, _ *fakeController) bool { return src.speed == 2 }},
		actNextMark: {nil, func(_ *harness, src *fakeSource, _ *fakeController) bool { return slices.Contains(src.log, "mark") }},
		actPrevMark: {nil, func(_ *harness, src *fakeSource, _ *fakeController) bool { return src.at == t0-2e9 || src.at == t0-3e9 }},
	}
	for _, b := range keyTable {
		c, ok := checks[b.act]
		if !ok {
			t.Errorf("%s (%s) has no check", b.Help().Key, b.Help().Desc)
			continue
		}
		for _, k := range b.Keys() {
			h, src, ctl := full(t)
			h.press(c.before...)
			h.press(pressable(k))
			if !c.ok(h, src, ctl) {
				t.Errorf("%s (%s) did not do it; log %v %v, screen:\n%s", k, b.Help().Desc, src.log, ctl.log, h.plain())
			}
			mustFit(t, h.screen(), 120, 40)
		}
	}
}

func pressable(k string) string { return k }

// TestKeysOnEveryScreen presses every key everywhere, also where the screen is
// too small to be drawn.
func TestKeysOnEveryScreen(t *testing.T) {
	for _, size := range [][2]int{{60, 15}, {20, 5}, {1, 1}} {
		for _, to := range []string{"1", "2", "3", "4", "enter", "?"} {
			h, _, _ := full(t)
			for _, b := range keyTable {
				if b.act == actQuit {
					continue
				}
				h.m.width, h.m.height = 120, 40
				h.press("1", to)
				h.m.width, h.m.height = size[0], size[1]
				for _, k := range []string{b.Keys()[0], "down", "enter", "esc"} {
					h.press(k)
					mustFit(t, h.screen(), size[0], size[1])
				}
				if t.Failed() {
					t.Fatalf("%s after %s at %v", b.Help().Key, to, size)
				}
			}
		}
	}
}

// TestKeyTable: no key means two things on one screen, and none is a key that
// terminals or multiplexers keep for themselves.
func TestKeyTable(t *testing.T) {
	for s := range numScreens {
		seen := map[string]string{}
		for _, b := range keyTable {
			if b.on&(1<<s) == 0 {
				continue
			}
			for _, k := range b.Keys() {
				if was, dup := seen[k]; dup {
					t.Errorf("on %s, %q is both %q and %q", screenNames[s], k, was, b.Help().Desc)
				}
				seen[k] = b.Help().Desc
				if strings.HasPrefix(k, "f") && len(k) > 1 && k[1] >= '0' && k[1] <= '9' || strings.HasPrefix(k, "alt+") {
					t.Errorf("%q: not every terminal sends it", k)
				}
			}
		}
		for _, k := range []string{"q", "ctrl+c", "?"} {
			if _, ok := seen[k]; !ok {
				t.Errorf("%q does nothing on %s", k, screenNames[s])
			}
		}
	}
}

func TestFooterAndHelpComeFromTheTable(t *testing.T) {
	h := start(t, 200, 60, busy, func(o *Options) { o.Controller = &fakeController{armed: true} })
	foot := h.plain()[strings.LastIndexByte(h.plain(), '\n'):]
	for _, b := range keyTable {
		if b.foot > 0 && b.on&onTSGs != 0 && !strings.Contains(foot, b.Help().Key+" "+b.short) {
			t.Errorf("the footer lacks %q: %s", b.short, foot)
		}
	}
	h.press("?")
	help := h.plain()
	for _, b := range keyTable {
		if b.on&onTSGs != 0 && !strings.Contains(help, cutOwn(b.Help().Desc, 60)) {
			t.Errorf("help lacks %q", b.Help().Desc)
		}
	}
}

func TestKeysDocument(t *testing.T) {
	file := filepath.Join("..", "docs", "keys.md")
	if *update {
		if err := os.WriteFile(file, []byte(KeysMarkdown()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != KeysMarkdown() {
		t.Errorf("%s is not what the key table says; go test ./ui -run KeysDocument -update writes it again", file)
	}
}

func TestReadOnlyKeysSayWhy(t *testing.T) {
	for name, tc := range map[string]struct {
		set  func(*Options)
		want string
	}{
		"no controller": {func(o *Options) { o.ReadOnly = "a recording cannot be acted on" }, "a recording cannot be acted on"},
		"cannot act":    {func(o *Options) { o.Controller = &fakeController{why: "not root"} }, "not root"},
		"not armed":     {func(o *Options) { o.Controller = &fakeController{} }, "C arms control"},
	} {
		for _, k := range []string{"p", "P", "t", "i", "u"} {
			h := start(t, 80, 24, busy, tc.set)
			h.press(k)
			if !strings.Contains(h.plain(), tc.want) {
				t.Errorf("%s, %s: does not say %q", name, k, tc.want)
			}
			if ctl, ok := h.m.opts.Controller.(*fakeController); ok && len(ctl.log) > 0 {
				t.Errorf("%s, %s: the controller was asked %v", name, k, ctl.log)
			}
		}
	}
}
