package ui

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"tsgtop/internal/sched"
)

var _ Board = (*sched.Board)(nil)

func TestSelectionSticksToTheTSG(t *testing.T) {
	order := []int{0, 1, 2, 3}
	gone := map[uint64]bool{}
	h := start(t, 80, 24, func(now sched.Time) *sched.Snapshot {
		s := oneGPU(now)
		was := s.TSGs
		s.TSGs = nil
		for _, i := range order {
			if !gone[was[i].Gen] {
				s.TSGs = append(s.TSGs, was[i])
			}
		}
		return s
	}, nil)
	h.press("down")
	if got := h.m.tsgs.selected(); got == nil || got.Gen != 1 {
		t.Fatalf("selected %v, want generation 1", got)
	}
	order = []int{1, 0, 2, 3}
	h.m.renew(true)
	if got := h.m.tsgs.selected(); got == nil || got.Gen != 1 {
		t.Errorf("after the order changed: %v, want generation 1", got)
	}
	// The same number and handle come back as another TSG: not the selected one.
	gone[1] = true
	h.m.renew(true)
	if got := h.m.tsgs.selected(); got != nil && got.Gen == 1 {
		t.Error("a TSG that ended is still selected")
	}
	if !strings.Contains(h.plain(), "TSG 0:0:7 of pid 479 ended") {
		t.Errorf("nothing says that the selected TSG ended:\n%s", h.plain())
	}
	gone[2], gone[3], gone[4] = true, true, true
	h.m.renew(true)
	if got := h.m.tsgs.selected(); got != nil {
		t.Errorf("selected %v of nothing", got)
	}
	h.press("enter", "p", "up", "down", "o", "end")
}

func TestSortPutsTheUnknownLast(t *testing.T) {
	h := start(t, 120, 40, busy, nil)
	for _, id := range ColumnIDs() {
		for _, desc := range []bool{false, true} {
			h.m.tsgs.flat, h.m.tsgs.sort, h.m.tsgs.desc = true, id, desc
			h.m.tsgs.refresh()
			col, _ := columnByID(id)
			known := true
			for i, r := range h.m.tsgs.rows {
				k := col.known == nil || col.known(h.m.Common, r.tsg)
				if k && !known {
					t.Errorf("%s desc=%t: a known value after an unknown one", id, desc)
				}
				known = k
				if i > 0 && k {
					n := col.compare(h.m.Common, h.m.tsgs.rows[i-1].tsg, r.tsg)
					if !desc && n > 0 || desc && n < 0 {
						t.Errorf("%s desc=%t: out of order at row %d", id, desc, i)
					}
				}
			}
		}
	}
}

func TestColumnsGiveWayInAFixedOrder(t *testing.T) {
	var before []string
	for w := 240; w >= 0; w-- {
		cols := layout(ColumnIDs(), w)
		total := 0
		var ids []string
		for _, c := range cols {
			total += c.width + 1
			ids = append(ids, c.id)
		}
		if total > w {
			t.Fatalf("%d cells of columns in %d", total, w)
		}
		if before != nil {
			for _, id := range ids {
				if !slices.Contains(before, id) {
					t.Errorf("%s comes back at width %d", id, w)
				}
			}
		}
		before = ids
	}
	if len(before) != 0 {
		t.Errorf("columns %v in no cells", before)
	}
}

func TestLaneIsLockedToTheSelectedTurn(t *testing.T) {
	h := start(t, 120, 40, oneGPU, nil)
	for _, keys := range [][]string{nil, {"down"}} {
		h.press(keys...)
		sel := h.m.tsgs.selected().Gen
		slot, _ := h.m.tsgs.lane.slots.has(sel)
		var first []int16
		differ := 0
		for range 20 {
			h.board.now = h.board.now.Add(137 * time.Millisecond)
			h.m.renew(true)
			r := h.m.tsgs.lane.rows[0]
			if !r.locked || r.cells[0] != slot {
				t.Fatalf("the lane is not locked: %v, want it to begin with %d", r.cells[:8], slot)
			}
			if r.from.Add(h.m.tsgs.lane.span) > h.board.now {
				t.Fatal("the lane shows what has not happened yet")
			}
			if first == nil {
				first = slices.Clone(r.cells)
			}
			for i := range first {
				if r.cells[i] != first[i] {
					differ++
				}
			}
		}
		if share := float64(differ) / float64(20*len(first)); share > 0.25 {
			t.Errorf("%.0f%% of the lane's cells change from frame to frame", 100*share)
		}
	}
}

func TestLaneShowsGapsBlankAndNobody(t *testing.T) {
	l := newLane(10 * time.Millisecond)
	ms := sched.Time(time.Millisecond)
	l.slots.slot(5)
	cells := l.fill(&sched.Lane{From: 2 * ms, To: 10 * ms, Gaps: []sched.Time{7*ms + 1}, Turns: []sched.Turn{
		{Gen: 5, Start: 2 * ms, End: 4*ms + ms/4}, {Gen: 6, Start: 4*ms + ms/2, End: 6 * ms}, {Gen: 5, Start: 8*ms + ms*3/4, End: 9 * ms}}}, 0, ms, 12)
	want := []int16{cellBlank, cellBlank, 0, 0, 1, 1, cellNobody, cellGap, cellNobody, cellNobody, cellBlank, cellBlank}
	if !slices.Equal(cells, want) {
		t.Errorf("cells %v, want %v", cells, want)
	}
}

func TestSlotsAreKeptAndFreed(t *testing.T) {
	var s slotTable
	snap := oneGPU(t0)
	s.update(snap)
	a, _ := s.has(1)
	b, _ := s.has(2)
	if a == b {
		t.Fatal("two contexts have one sign")
	}
	if _, ok := s.has(3); ok {
		t.Error("a TSG without turns has a sign")
	}
	snap.TSGs = snap.TSGs[1:] // generation 2 ends
	s.update(snap)
	if n, _ := s.has(1); n != a {
		t.Error("a context's sign changed")
	}
	if _, ok := s.has(2); ok {
		t.Error("a context that ended keeps its sign")
	}
	if n := s.slot(99); n != b {
		t.Errorf("a new context has slot %d, want the free one, %d", n, b)
	}
}

func TestPauseHoldsTheNumbersAndNotTheLamps(t *testing.T) {
	var turn float64
	h := start(t, 120, 40, func(now sched.Time) *sched.Snapshot {
		s := busy(now)
		s.TSGs[0].Score[0].Residency = stats(10, 2000+turn, 2100)
		if turn > 0 {
			s.Commands[4].Changed = sched.Changed{Lamp: sched.Lamp{State: sched.LampYes}, Evidence: "runs ended"}
		}
		return s
	}, nil)
	h.press("space")
	turn = 77
	for range 30 {
		h.board.now = h.board.now.Add(100 * time.Millisecond)
		h.send(tickMsg{})
	}
	if !strings.Contains(h.plain(), "2000/2100") || strings.Contains(h.plain(), "2077/") {
		t.Error("paused numbers move")
	}
	if !strings.Contains(h.plain(), "runs ended") || !strings.Contains(h.plain(), "PAUSED") {
		t.Errorf("a paused screen hides what became of a command:\n%s", h.plain())
	}
	h.press("space")
	if !strings.Contains(h.plain(), "2077/2100") {
		t.Error("the numbers do not go on")
	}
}

func TestConfirm(t *testing.T) {
	ctl := &fakeController{}
	h := start(t, 120, 40, busy, func(o *Options) { o.Controller = ctl })
	expect := func(want ...string) {
		t.Helper()
		if !slices.Equal(ctl.log, want) {
			t.Fatalf("the controller was asked %q, want %q\n%s", ctl.log, want, h.plain())
		}
		ctl.log = nil
	}
	// Arming asks, and Cancel has the focus.
	h.press("C", "enter")
	expect()
	h.press("C", "tab", "enter")
	expect("arm true")
	if !strings.Contains(h.plain(), "ARMED (fd)") {
		t.Error("the header does not say that control is armed")
	}
	// A command asks, and Cancel has the focus.
	h.press("p", "enter")
	expect("prepare preempt 2 0 1")
	h.press("p", "esc")
	expect("prepare preempt 2 0 1")
	h.press("p", "q")
	if h.quit {
		t.Fatal("q quits from a question")
	}
	expect("prepare preempt 2 0 1")
	h.press("p")
	for _, must := range []string{"GPU0", "runlist 0", "TSG 7", "479", "/home/ada/", "ada", "k8s pod job-7", "the target loses", "nothing to undo", "borrowed fd", "another user's", "4 clients"} {
		if !strings.Contains(h.plain(), must) {
			t.Errorf("the question does not name %q", must)
		}
	}
	h.press("tab", "enter")
	expect("prepare preempt 2 0 1", "submit preempt")
	// A timeslice out of range is refused with the range.
	h.press("t", "9", "9", "enter")
	if !strings.Contains(h.plain(), "99 is out of range: 100 to 60000") {
		t.Errorf("out of range:\n%s", h.plain())
	}
	expect()
	h.press("0", "enter", "right", "enter")
	expect("prepare timeslice 2 990 0", "submit timeslice")
	h.press("t", "x", "enter")
	if !strings.Contains(h.plain(), "whole number") {
		t.Error("a timeslice that is no number is not refused")
	}
	h.press("esc")
	// A refusal and a failure to send are on the screen.
	h.press("i", "tab", "tab", "tab", "enter", "tab", "enter")
	expect("prepare interleave 2 2 0", "submit interleave")
	if !strings.Contains(h.plain(), "no space left") {
		t.Error("a command that was not sent is not said to be so")
	}
	ctl.refuse = errors.New("this TSG is the kernel's")
	h.press("p")
	if !strings.Contains(h.plain(), "preempt refused: this TSG is the kernel's") {
		t.Error("a refusal is not on the screen")
	}
	ctl.log = nil
	// Undo asks too.
	h.press("u", "enter")
	expect()
	h.press("u", "tab", "enter")
	expect("undo a4")
	h.press("C")
	expect("arm false")
}

func TestAPreemptThatFoundNothingIsOfferedAgain(t *testing.T) {
	ctl := &fakeController{armed: true}
	h := start(t, 120, 40, func(now sched.Time) *sched.Snapshot {
		s := busy(now)
		s.Commands[4].Count = 1
		s.Commands[4].Changed = sched.Changed{Lamp: sched.Lamp{State: sched.LampUnknown, Why: "it was not on the engine, there was nothing to preempt"}}
		return s
	}, func(o *Options) { o.Controller = ctl })
	if strings.Contains(h.plain(), "P repeats it") {
		t.Error("offered for another TSG")
	}
	h.press("down")
	if !strings.Contains(h.plain(), "not on the engine, there was nothing to preempt; P repeats it") {
		t.Errorf("no offer:\n%s", h.plain())
	}
	h.press("P")
	if !strings.Contains(h.plain(), "50 preempts, each waiting") {
		t.Errorf("no question:\n%s", h.plain())
	}
}

func TestMouse(t *testing.T) {
	h := start(t, 80, 24, oneGPU, func(o *Options) { o.Mouse = true })
	if h.m.View().MouseMode == tea.MouseModeNone {
		t.Error("the mouse is not asked for")
	}
	row := slices.IndexFunc(strings.Split(h.plain(), "\n"), func(l string) bool { return strings.Contains(l, "train.py") })
	h.send(tea.MouseClickMsg{Y: row, Button: tea.MouseLeft})
	if got := h.m.tsgs.selected(); got == nil || got.Process.PID != 479 {
		t.Errorf("a click selects %v", got)
	}
	h.send(tea.MouseWheelMsg{Button: tea.MouseWheelUp})
	if got := h.m.tsgs.selected(); got == nil || got.Process.PID != 480 {
		t.Errorf("the wheel selects %v", got)
	}
	if start(t, 80, 24, oneGPU, nil).m.View().MouseMode != tea.MouseModeNone {
		t.Error("the mouse is taken unasked")
	}
}

func TestContextRowsCannotBeActedOn(t *testing.T) {
	ctl := &fakeController{armed: true}
	h := start(t, 120, 40, busy, func(o *Options) { o.Controller = ctl })
	h.press("down", "down", "p")
	if len(ctl.log) != 0 || !strings.Contains(h.plain(), "not known") {
		t.Errorf("asked %v", ctl.log)
	}
}

func TestEveryStateHasItsOwnSign(t *testing.T) {
	for name, g := range map[string]*signs{"unicode": &unicodeSigns, "ascii": &asciiSigns} {
		seen := map[string]bool{}
		for _, s := range []sched.LampState{sched.LampYes, sched.LampNo, sched.LampWaiting, sched.LampUnknown} {
			sign, _ := g.lamp(s)
			if seen[sign] {
				t.Errorf("%s: lamp %s looks like another", name, s)
			}
			seen[sign] = true
		}
		seen = map[string]bool{}
		for _, s := range []sched.ProbeState{sched.ProbeOK, sched.ProbeLimited, sched.ProbeMissing, sched.ProbeReleased} {
			sign, _ := g.probe(s)
			if seen[sign] {
				t.Errorf("%s: probe %s looks like another", name, s)
			}
			seen[sign] = true
		}
		for i, f := range g.fills {
			if slices.Contains(g.fills[:i], f) || f == g.gap || f == g.nobody || f == g.dot || f == g.mark {
				t.Errorf("%s: fill %q is not alone", name, f)
			}
		}
	}
}

func TestResizeStorm(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	h := start(t, 80, 24, busy, func(o *Options) { o.Controller = &fakeController{armed: true} })
	keys := []string{"1", "2", "3", "4", "enter", "?", "p", "esc", "down", "end", "home", "t", "c", "g", "F", "+", "-", "space", "T", "/"}
	for range 600 {
		w, hh := r.IntN(200), r.IntN(60)
		h.send(tea.WindowSizeMsg{Width: w, Height: hh})
		if w > 0 && hh > 0 {
			mustFit(t, h.screen(), w, hh)
		}
		h.press(keys[r.IntN(len(keys))])
		h.send(tickMsg{})
		if t.Failed() {
			t.Fatalf("at %dx%d, screen %s", w, hh, screenNames[h.m.on])
		}
	}
}

func TestNothingChangedSendsNothing(t *testing.T) {
	h := start(t, 120, 40, oneGPU, nil)
	h.send(tickMsg{})
	was := h.screen()
	asks := h.board.asks
	h.m.frames = 0
	h.send(tickMsg{}) // the first of ten frames: nothing is due
	if h.board.asks != asks {
		t.Error("a frame in which nothing is due takes a snapshot")
	}
	h.m.renew(true)
	if h.screen() != was {
		t.Error("the same state draws another screen")
	}
}

func TestPanicEndsTheScreenWithAnError(t *testing.T) {
	h := start(t, 120, 40, func(now sched.Time) *sched.Snapshot {
		if now > t0 {
			panic("torn state")
		}
		return oneGPU(now)
	}, nil)
	h.board.now++
	_, cmd := h.m.Update(tea.WindowSizeMsg{Width: 100, Height: 30})
	if cmd == nil {
		t.Fatal("the screen goes on after a panic")
	}
	var pe *PanicError
	if !errors.As(h.m.err, &pe) || !strings.Contains(pe.Error(), "torn state") || !strings.Contains(pe.Error(), "model_test.go") {
		t.Errorf("error %v, want the panic and where it was", h.m.err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	b := &fakeBoard{now: t0, snap: oneGPU}
	for name, o := range map[string]Options{
		"no board": {}, "column": {Board: b, Columns: []string{"pdi"}}, "sort": {Board: b, Sort: "shares"},
		"theme": {Board: b, Theme: "drak"}, "group": {Board: b, Group: "pod"},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	m, err := New(Options{Board: b, Sort: "-share", Group: "unit", Flat: true, Columns: []string{"pid"}})
	if err != nil || m.tsgs.desc || m.tsgs.sort != "share" || m.tsgs.group != byUnit {
		t.Errorf("%v %+v", err, m)
	}
}

func TestReplayThatGoesBack(t *testing.T) {
	h := start(t, 80, 24, busy, func(o *Options) { o.Player = &fakeSource{at: t0, first: t0 - 60e9, last: t0 + 60e9} })
	h.press("2")
	h.board.now = t0.Add(-time.Minute)
	h.board.calls = h.board.calls[:1]
	h.board.calls[0].Call.End = t0.Add(-70 * time.Second)
	h.m.renew(true)
	h.m.renew(true)
	if n := len(h.m.calls.kept); n != 1 {
		t.Errorf("%d lines after a replay went back, want 1", n)
	}
	if !strings.Contains(h.plain(), "1:00.0/2:00.0") {
		t.Error("the position is not on the screen")
	}
}
