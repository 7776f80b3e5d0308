package ui

import (
	"testing"
	"time"

	"tsgtop/internal/sched"
)

// TestLaneFollowsItsTurns: the span is one in which turns can be told apart,
// unless the operator chose one.
func TestLaneFollowsItsTurns(t *testing.T) {
	turns := func(lengths ...time.Duration) (out []sched.Turn) {
		at := t0
		for i := range 100 {
			d := sched.Time(lengths[i%len(lengths)])
			out = append(out, sched.Turn{Gen: uint64(i % len(lengths)), Start: at, End: at + d})
			at += d + 75_000
		}
		return out
	}
	const us = time.Microsecond
	for _, tc := range []struct {
		name  string
		turns []sched.Turn
		want  time.Duration
	}{
		{"the usual timeslice", turns(2197 * us), 100 * time.Millisecond},
		{"short kernels", turns(150 * us), 10 * time.Millisecond},
		{"one of two cut short", turns(300*us, 4300*us), 20 * time.Millisecond},
		{"long turns", turns(30 * time.Millisecond), 100 * time.Millisecond},
		{"too few to tell", turns(150 * us)[:5], 100 * time.Millisecond},
	} {
		l := newLane(0)
		l.resize(120)
		for range 3 { // it does not go to and fro
			l.adapt(tc.turns, 104)
			if l.span != tc.want {
				t.Errorf("%s: %v, want %v", tc.name, l.span, tc.want)
			}
		}
		l.adapt(turns(2197*us), 104)
		if l.span != 100*time.Millisecond {
			t.Errorf("%s: then %v, and not back", tc.name, l.span)
		}
	}
	l := newLane(50 * time.Millisecond)
	l.resize(120)
	l.adapt(turns(150*us), 104)
	if l.span != 50*time.Millisecond {
		t.Errorf("the operator's choice became %v", l.span)
	}
}
