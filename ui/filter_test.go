package ui

import (
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

func TestFilterAsYouType(t *testing.T) {
	h := start(t, 120, 40, busy, nil)
	h.press("/")
	before := len(h.m.tsgs.rows)
	for _, k := range []string{"s", "er", "v"} {
		h.press(k)
		if n := len(h.m.tsgs.rows); n > before {
			t.Errorf("after %q: %d rows, were %d", h.m.filter.text, n, before)
		}
	}
	for _, r := range h.m.tsgs.rows {
		if r.tsg != nil && r.tsg.Process.PID != 480 {
			t.Errorf("pid %d passes the filter", r.tsg.Process.PID)
		}
	}
	h.press("enter")
	if v := h.m.tsgs.selected(); v == nil || v.Process.PID != 480 {
		t.Errorf("what was looked for is not selected: %+v", h.m.tsgs.sel)
	}
	if !strings.Contains(h.plain(), "filter serv") {
		t.Error("the filter is not on the screen")
	}
	h.press("esc")
	if !h.m.filter.empty() {
		t.Error("esc does not clear the filter")
	}
	h.press("/")
	h.send(tea.PasteMsg{Content: "user:" + evil})
	mustFit(t, h.screen(), 120, 40)
	h.press("q")
	if h.quit {
		t.Error("q quits while a filter is typed")
	}
	h.press("ctrl+c")
	if !h.quit {
		t.Error("ctrl+c does not quit while a filter is typed")
	}
}

func TestFilterFields(t *testing.T) {
	s := busy(t0)
	for _, tc := range []struct {
		filter string
		want   []uint64
	}{
		{"pid:479", []uint64{1, 3}},
		{"pid:47", nil},
		{"USER:ADA", []uint64{1, 3}},
		{"unit:docker api", []uint64{2, 4}},
		{"tsg:7", []uint64{1}},
		{"0:0:7", []uint64{1}},
		{"5c000031", []uint64{3}},
		{"exe:日本", []uint64{12}},
		{"train 479", []uint64{1, 3}},
		{"train 480", nil},
		{"user:", []uint64{2, 1, 3, 4, 10, 11, 12}},
	} {
		f := parseFilter(tc.filter)
		var got []uint64
		for i := range s.TSGs {
			if f.matches(&s.TSGs[i]) {
				got = append(got, s.TSGs[i].Gen)
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%q: %v, want %v", tc.filter, got, tc.want)
		}
	}
}

// The pid of a client of MPS finds the TSG that it computes in.
func TestFilterFindsTheMPSServer(t *testing.T) {
	s := mps(t0)
	for pid, want := range map[string]bool{"649": true, "654": true, "64": false} {
		if f := parseFilter("pid:" + pid); f.matches(&s.TSGs[0]) != want {
			t.Errorf("pid:%s: %t", pid, !want)
		}
	}
	s.TSGs[0].Clients = 0 // a file that is shared alone, without the TSG
	if parseFilter("pid:649").matches(&s.TSGs[0]) {
		t.Error("pid:649 of a TSG that is not shared")
	}
}
