package ui

import (
	"fmt"
	"strings"
	"testing"

	"tsgtop/internal/sched"
)

// Losses are on the first line at every size, however little room there is, and
// those that nobody had are not said to be any.
func TestLossesAreShown(t *testing.T) {
	for _, size := range goldenSizes {
		for _, screen := range []string{"1", "2", "3", "4"} {
			h := start(t, size[0], size[1], busy, nil).press(screen)
			first, _, _ := strings.Cut(h.plain(), "\n")
			if !strings.Contains(first, "lost 3/0/123k") {
				t.Errorf("%dx%d, screen %s: %q", size[0], size[1], screen, first)
			}
		}
	}
	for lost, want := range map[sched.Loss]string{{Queue: 7}: "lost 0/7/0", {Overtaken: 9}: "lost 0/0/9", {Trace: 1, Overtaken: 1}: "lost 0/0/2"} {
		h := start(t, 60, 15, func(now sched.Time) *sched.Snapshot {
			s := oneGPU(now)
			s.Lost = lost
			return s
		}, nil)
		if first, _, _ := strings.Cut(h.plain(), "\n"); !strings.Contains(first, want) {
			t.Errorf("%+v: %q", lost, first)
		}
	}
}

// Every reason that something does not work can be read on the screen: under the
// keys (?), whole, and in an empty tree.
func TestEveryReasonCanBeRead(t *testing.T) {
	limited := func(now sched.Time) *sched.Snapshot {
		s := oneGPU(now)
		s.Probes = nil
		for i, state := range []sched.ProbeState{sched.ProbeMissing, sched.ProbeLimited, sched.ProbeReleased, sched.ProbeOK} {
			s.Probes = append(s.Probes, sched.ProbeStatus{Probe: fmt.Sprintf("probe%d", i), GPU: i - 1, State: state,
				Why: fmt.Sprintf("reason %d %s end%d", i, strings.Repeat("of some length ", 10), i), Help: fmt.Sprintf("remedy%d 日本語", i)})
		}
		return s
	}
	for _, size := range goldenSizes {
		h := start(t, size[0], size[1], limited, nil).press("?")
		var read strings.Builder
		for range 160 {
			mustFit(t, h.screen(), size[0], size[1])
			read.WriteString(h.plain())
			h.press("down")
		}
		for i, want := range []string{"probe0 missing", "probe1 GPU0 limited", "probe2 GPU1 released", "end0", "end1", "end2", "remedy0", "remedy1", "remedy2"} {
			if !strings.Contains(read.String(), want) {
				t.Errorf("%dx%d: %d: %q cannot be read", size[0], size[1], i, want)
			}
		}
		if strings.Contains(read.String(), "remedy3") {
			t.Error("a probe that works is among those that do not")
		}
		h = start(t, size[0], size[1], func(now sched.Time) *sched.Snapshot {
			s := limited(now)
			s.TSGs = nil
			return s
		}, nil)
		if !strings.Contains(h.plain(), "reason 0") {
			t.Errorf("%dx%d: an empty tree does not say why", size[0], size[1])
		}
	}
}

// Sentences may hold characters of two cells, or of none: no width makes wrap
// fail, lose a word or exceed the line.
func TestWrap(t *testing.T) {
	for _, s := range []string{"", "a", "some words of our own", strings.Repeat("日本語", 40), "列 車 " + strings.Repeat("x", 90) + " e\u0301\u0301 z", "🇩🇪🇫🇷 " + strings.Repeat("🏳️ ", 30)} {
		for width := 1; width < 90; width++ {
			var got string
			for _, l := range wrap(s, width) {
				got += l
				if n := cellCount(l); n > max(width, 2) {
					t.Errorf("%q in %d cells: %q is %d", s, width, l, n)
				}
			}
			if strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(s, " ", "") {
				t.Errorf("%q in %d cells became %q", s, width, got)
			}
		}
	}
}

// A terminal of any size, down to nothing, gets a screen that fits, on every
// screen and with hostile names; q still ends it.
func TestAnySize(t *testing.T) {
	for w := range 64 {
		for _, hgt := range []int{0, 1, 2, 5, 14, 15, 16} {
			h := start(t, w, hgt, busy, func(o *Options) { o.Controller = &fakeController{armed: true} })
			for _, k := range []string{"1", "2", "3", "4", "?", "esc", "1", "enter", "esc", "p", "esc", "t", "esc", "c", "esc", "/", "esc"} {
				h.press(k)
				if w > 0 && hgt > 0 {
					mustFit(t, h.screen(), w, hgt)
				}
			}
			h.press("q")
			if !h.quit {
				t.Fatalf("%dx%d: q does not end it", w, hgt)
			}
		}
	}
}
