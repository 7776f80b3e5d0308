package ui

import (
	"strings"
	"testing"
	"time"

	"tsgtop/internal/sched"
)

// TestSelectionOutlastsGoingBack: a replay that goes back gives its events
// again from the beginning; the TSG that is selected is not there for a moment,
// and comes again.
func TestSelectionOutlastsGoingBack(t *testing.T) {
	p := &fakeSource{at: t0.Add(30 * time.Second), first: t0, last: t0.Add(time.Minute)}
	there := true
	h := start(t, 120, 40, func(now sched.Time) *sched.Snapshot {
		s := oneGPU(now)
		if !there {
			s.TSGs = s.TSGs[:1]
		}
		return s
	}, func(o *Options) { o.Player = p })
	h.board.now = p.at
	h.press("down") // TSG 7
	ticks := func(n int) {
		for range n {
			h.send(tickMsg{})
		}
	}
	ticks(10)
	if sel := h.m.tsgs.selected(); sel == nil || sel.ID.TSG != 7 {
		t.Fatalf("selected %+v", sel)
	}
	for _, detail := range []bool{false, true} {
		if detail {
			h.press("enter")
		}
		there, h.board.now, p.at = false, t0, t0.Add(20*time.Second)
		ticks(10)
		if s := h.plain(); strings.Contains(s, "ended") || strings.Contains(s, "ENDED") {
			t.Errorf("detail %t: on the way back it is said to have ended:\n%s", detail, s)
		}
		there, h.board.now = true, p.at
		ticks(10)
		if sel := h.m.tsgs.selected(); sel == nil || sel.ID.TSG != 7 {
			t.Errorf("detail %t: the selection is now %+v", detail, sel)
		}
		ticks(40)
	}
	h.press("esc")
	// Where it really is no more, the selection moves on after a while.
	there, h.board.now, p.at = false, t0, t0
	ticks(80)
	if sel := h.m.tsgs.selected(); sel == nil || sel.ID.TSG == 7 || !strings.Contains(h.plain(), "moved on") {
		t.Errorf("selected %+v:\n%s", sel, h.plain())
	}
}
