package steward

import (
	"strings"
	"testing"

	"tsgtop/actions"
	"tsgtop/internal/sched"
	"tsgtop/internal/steer"
)

// The GSP's counters as the second witness of a yes: what share of the switches was
// made at the end of a kernel, before and during.
func TestSecondWitness(t *testing.T) {
	p := steer.Proc{PID: 480, Start: 7}
	counts := func(before, during uint32) Counts { // per cent of 1,000 switches in each phase
		at := func(save, wfi uint32) map[steer.Proc]actions.Counters {
			return map[steer.Proc]actions.Counters{p: {Save: save, WFI: wfi}}
		}
		return Counts{at(0, 0), at(1000, 10*before), at(1000, 10*before), at(2000, 10*before+10*during)}
	}
	yes := sched.Lamp{State: sched.LampYes, Why: "seen"}
	for _, c := range []struct {
		name   string
		v      steer.Verdict
		counts Counts
		want   sched.LampState
		why    string
	}{
		{"kernels are cut as before", steer.Verdict{Lamp: yes, Part: 1}, counts(2, 3), sched.LampYes, "97% of its switches cut a kernel, 98% before"},
		{"kernels became short", steer.Verdict{Lamp: yes, Part: 1}, counts(2, 90), sched.LampUnknown, "its kernels have become short"},
		{"a few more than explains it", steer.Verdict{Lamp: yes, Part: 0.05}, counts(2, 8), sched.LampUnknown, "its kernels have become short"},
		{"no answer", steer.Verdict{Lamp: yes, Part: 1}, Counts{}, sched.LampYes, "do not answer"},
		{"no answer where it was needed", steer.Verdict{Lamp: yes, Part: 1, NeedsCounts: true}, Counts{}, sched.LampUnknown, "does not show, and the GSP's switch counters"},
		{"an answer where it was needed", steer.Verdict{Lamp: yes, Part: 1, NeedsCounts: true}, counts(2, 1), sched.LampYes, "99% of its switches cut a kernel"},
		{"a no is a no", steer.Verdict{Lamp: sched.Lamp{State: sched.LampNo, Why: "same"}}, counts(2, 90), sched.LampNo, "same"},
	} {
		if l := c.counts.second(c.v, p); l.State != c.want || !strings.Contains(l.Why, c.why) {
			t.Errorf("%s: %+v, want %s, %q", c.name, l, c.want, c.why)
		}
	}
	reset := counts(2, 3)
	reset[3][p] = actions.Counters{Save: 10} // somebody has reset them
	if _, _, ok := reset.ended(p); ok {
		t.Error("counters that went back are taken for an answer")
	}
}
