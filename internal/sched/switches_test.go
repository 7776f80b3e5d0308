package sched

import (
	"math"
	"strings"
	"testing"
)

// counted gives a state with one compute TSG, and the object to count of.
func counted(t *testing.T, events ...Event) (*State, Object) {
	t.Helper()
	s := NewState(Options{})
	feed(s, h200())
	feed(s, cudaProcess(t0, 479, 0xc1d00001, 1, 0x3f)...)
	feed(s, events...)
	return s, Object{0xc1d00001, hTSG}
}

func switchesOf(t *testing.T, s *State, w Window) (*Switches, string) {
	t.Helper()
	sc := &rowByPID(t, s.Snapshot(SnapshotOptions{}), 479).Score[w]
	if (sc.Switches == nil) == (sc.SwitchesWhy == "") {
		t.Fatalf("switches %v, why %q: want one of them", sc.Switches, sc.SwitchesWhy)
	}
	return sc.Switches, sc.SwitchesWhy
}

// Readings once a second: each window is the difference of two of them, and a
// forced switch is told from a voluntary one.
func TestSwitchesOfWindows(t *testing.T) {
	s, tsg := counted(t)
	for i := range 31 {
		n := uint32(i)
		feed(s, SwitchCounters{Time: t0 + second + Time(i)*second, TSG: tsg, Save: 1000 + 248*n, Restore: 999 + 248*n,
			WFI: 118 + 31*n, CTA: 2 * n, CILP: 760 + 200*n, GFXP: 15 * n})
	}
	for w, want := range [NumWindows]Switches{{217, 31, 1}, {217 * 11, 31 * 11, 11}, {217 * 30, 31 * 30, 30}} {
		if got, why := switchesOf(t, s, Window(w)); got == nil || *got != want {
			t.Errorf("window %v: %+v %q, want %+v", Window(w), got, why, want)
		}
	}
	// Nobody looks any more: what the recent windows have is not known, the whole is.
	feed(s, ClockTie{Time: t0 + 40*second, GPU: Unknown})
	for _, w := range []Window{Window1s, Window10s} {
		if got, why := switchesOf(t, s, w); got != nil || why != whyNotReadNow {
			t.Errorf("window %v, not read for 9 s: %v %q", w, got, why)
		}
	}
	if got, _ := switchesOf(t, s, WindowAll); got == nil || got.SpanS != 30 {
		t.Errorf("since start: %v", got)
	}
	// Somebody looks again: the minute between belongs to no short window.
	feed(s, SwitchCounters{Time: t0 + 90*second, TSG: tsg, Save: 10000, Restore: 9999, WFI: 1118, CTA: 62, CILP: 7000, GFXP: 465})
	for _, w := range []Window{Window1s, Window10s} {
		if got, why := switchesOf(t, s, w); got != nil || why != whySeldom {
			t.Errorf("window %v, over 59 s: %v %q", w, got, why)
		}
	}
	if got, _ := switchesOf(t, s, WindowAll); got == nil || *got != (Switches{62 + 6240 + 465, 1000, 89}) {
		t.Errorf("since start: %+v", got)
	}
}

func TestSwitchesWrapAndReset(t *testing.T) {
	s, tsg := counted(t)
	at := func(i int) Time { return t0 + second + Time(i)*second }
	feed(s, SwitchCounters{Time: at(0), TSG: tsg, Save: math.MaxUint32 - 9, CILP: math.MaxUint32 - 4, WFI: 7})
	if got, why := switchesOf(t, s, WindowAll); got != nil || why != whyOneReading {
		t.Errorf("one reading: %v %q", got, why)
	}
	feed(s, SwitchCounters{Time: at(1), TSG: tsg, Save: 20, CILP: 15, WFI: 17})
	if got, _ := switchesOf(t, s, Window1s); got == nil || *got != (Switches{20, 10, 1}) {
		t.Errorf("over the wrap: %+v", got)
	}
	// From before the newest: ignored.
	feed(s, SwitchCounters{Time: at(0) + 1, TSG: tsg, Save: 5, CILP: 5, WFI: 5})
	if got, _ := switchesOf(t, s, Window1s); got == nil || *got != (Switches{20, 10, 1}) {
		t.Errorf("after an old reading: %+v", got)
	}
	// Somebody resets them: no number follows from the two readings around it.
	feed(s, SwitchCounters{Time: at(2), TSG: tsg, Save: 3, CILP: 1, WFI: 2})
	for w := range NumWindows {
		if got, why := switchesOf(t, s, w); got != nil || why != whyCountersReset {
			t.Errorf("window %v after a reset: %v %q", w, got, why)
		}
	}
	feed(s, SwitchCounters{Time: at(3), TSG: tsg, Save: 9, CILP: 5, WFI: 4})
	if got, _ := switchesOf(t, s, WindowAll); got == nil || *got != (Switches{4, 2, 1}) {
		t.Errorf("anew: %+v", got)
	}
}

// Readings that come faster than they are kept do not push the window's start out.
func TestManyReadings(t *testing.T) {
	s, tsg := counted(t)
	for i := range 4000 {
		feed(s, SwitchCounters{Time: t0 + second + Time(i)*5*ms, TSG: tsg, Save: uint32(i), CILP: uint32(i)})
	}
	for w, want := range [NumWindows]float64{1.5, 11, 19.995} {
		got, why := switchesOf(t, s, Window(w))
		if got == nil || got.SpanS > want || got.SpanS < want-0.55 || math.Abs(float64(got.Forced)-200*got.SpanS) > 1 {
			t.Errorf("window %v: %+v %q, want a span of about %g s", Window(w), got, why, want)
		}
	}
}

func TestWhyNoSwitches(t *testing.T) {
	tsg := Object{0xc1d00001, hTSG}
	for _, c := range []struct {
		name   string
		events []Event
		why    string
	}{
		{"never read", nil, "while somebody looks at the score"},
		{"a recording", []Event{SourceInfo{Time: t0, Label: "RECORDING"}}, "the recording holds no"},
		{"refused", []Event{SwitchCounters{Time: t0 + second, TSG: tsg, Status: 0x56}}, "NOT_SUPPORTED"},
		{"not asked", []Event{SwitchCounters{Time: t0 + second, TSG: tsg, Why: "borrow descriptor 4: refused"}}, "borrow descriptor 4"},
		{"another TSG's", []Event{SwitchCounters{Time: t0 + second, TSG: Object{0xc1d00002, hTSG}, Save: 1}}, "while somebody looks"},
		{"of a handle's earlier owner", []Event{SwitchCounters{Time: t0, TSG: tsg, Save: 1}}, "while somebody looks"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := counted(t, c.events...)
			if got, why := switchesOf(t, s, WindowAll); got != nil || !strings.Contains(why, c.why) {
				t.Errorf("%v %q, want %q", got, why, c.why)
			}
		})
	}
	t.Run("copy engine", func(t *testing.T) {
		s, tsg := counted(t, Inventory{Start: t0 + second, End: t0 + second + ms,
			Clients: []FoundClient{{Client: 0xc1d00009, PID: 700, GPU: 0}},
			TSGs:    []FoundTSG{{Object: Object{0xc1d00009, 0x5c000030}, GPU: 0, Runlist: 1, Engine: Ptr(uint32(9)), PID: 700}}})
		_ = tsg
		if sc := rowByPID(t, s.Snapshot(SnapshotOptions{}), 700).Score[WindowAll]; sc.SwitchesWhy != whyCopySwitches {
			t.Errorf("%q", sc.SwitchesWhy)
		}
	})
}
