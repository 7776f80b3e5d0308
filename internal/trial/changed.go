package trial

import (
	"fmt"
	"math"
	"slices"

	"tsgtop/internal/sched"
)

// changed is the lamp of an arm: from the trace alone.
func (r *Report) changed(a *ArmReport) sched.Lamp {
	lamp := func(s sched.LampState, format string, args ...any) sched.Lamp {
		return sched.Lamp{State: s, Why: fmt.Sprintf(format, args...)}
	}
	switch {
	case a.Idle():
		return lamp(sched.LampUnknown, "nothing was done")
	case a.Runs == 0:
		return lamp(sched.LampUnknown, "no run counts")
	}
	switch a.knob() {
	case "timeslice":
		return r.changedTimeslice(a)
	case "interleave":
		return r.changedInterleave(a)
	case "preempt":
		return r.changedPreempt(a)
	}
	if a.Roles {
		return r.oneWay(a.Effect("others_residency_p50_us"), shiftDown, "the others' residency p50")
	}
	return lamp(sched.LampUnknown, "several things were changed at once: see the numbers")
}

// oneWay judges a metric that should have gone one way.
func (r *Report) oneWay(e Effect, want shift, words string) sched.Lamp {
	l := sched.Lamp{State: sched.LampUnknown}
	switch s := e.shift(); {
	case e.CI == nil:
		l.Why = words + ": " + e.String() + ": " + e.Why
		return l
	case s == want:
		l.State = sched.LampYes
	case s == shiftNone:
		l.State = sched.LampNo
	case s == shiftUnknown:
		l.Why = fmt.Sprintf("%s %s: neither an effect of 10%% nor shown to be within 5%%", words, e)
		return l
	default:
		l.Why = fmt.Sprintf("%s %s: changed the other way, which the command does not explain", words, e)
		return l
	}
	l.Why = words + " " + e.String()
	return l
}

// leastForced is the part of the baseline's turns that the timeslice must have
// ended, for another timeslice to show.
const leastForced = 0.25

// leastCuts is how many preempts that can have found the target on its engine
// there must be for each of its turns, for them to show.
const leastCuts = 0.5

func (r *Report) changedPreempt(a *ArmReport) sched.Lamp {
	l := r.oneWay(a.Effect("residency_mean_us"), shiftDown, "residency, mean")
	share, turns := a.Effect("share").Base, a.Effect("turns_per_s").Base
	each := r.Plan.WarmUp + r.Plan.Measure
	if l.State != sched.LampNo || share == nil || turns == nil || each <= 0 {
		return l
	}
	rate := float64(a.Calls.Sent) / (float64(a.Runs+a.Useless) * each.Seconds())
	if rate**share < leastCuts**turns {
		l.State, l.Why = sched.LampUnknown, fmt.Sprintf("%s; but only %.0f preempts a second were sent, too few for %.0f turns a second to show it", l.Why, rate, *turns)
	}
	return l
}

func (r *Report) changedTimeslice(a *ArmReport) sched.Lamp {
	e := a.Effect("residency_p50_us")
	old, ok := common(r.Timeslices)
	if !ok {
		return sched.Lamp{State: sched.LampUnknown, Why: "the targets had several timeslices, or unknown ones: compare them one by one"}
	}
	want := shiftUp
	if a.Timeslice < old {
		want = shiftDown
	}
	l := r.oneWay(e, want, "residency p50")
	// Residency is 1.024 us for each us asked for, and about 100 us (H200).
	expect := 1.024*float64(a.Timeslice) + 100
	switch {
	case l.State == sched.LampYes:
		if got := *e.Value / expect; got < 0.85 || got > 1.15 {
			l.Why += fmt.Sprintf("; but %d us were asked for", a.Timeslice)
		} else {
			l.Why += "; as asked"
		}
	case l.State == sched.LampNo && a.Timeslice == old:
		l.Why += "; it is the timeslice that was there"
	case l.State == sched.LampNo && math.Abs(math.Log(expect/(1.024*float64(old)+100))) < effectLog:
		l.State, l.Why = sched.LampUnknown, l.Why+"; an effect would be too small to see"
	case l.State == sched.LampNo && r.forced() < leastForced:
		l.State, l.Why = sched.LampUnknown, fmt.Sprintf("%s; but the timeslice ended only %.0f%% of the turns in the baseline: its kernels end before", l.Why, 100*r.forced())
	}
	return l
}

func common(x []uint64) (uint64, bool) {
	for _, v := range x {
		if v == 0 || v != x[0] {
			return 0, false
		}
	}
	return slices.Max(append(x, 0)), len(x) > 0
}

// forced is the mean part of the baseline's turns that the timeslice ended.
func (r *Report) forced() float64 {
	sum, n := 0.0, 0
	for i := range r.Runs {
		if x := &r.Runs[i]; x.Arm == r.Plan.Arms[0].Name && x.Useless == "" {
			sum, n = sum+x.Forced, n+1
		}
	}
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}

func (r *Report) changedInterleave(a *ArmReport) sched.Lamp {
	share, turns := a.Effect("share"), a.Effect("turns_per_s")
	words := fmt.Sprintf("share %s, turns a second %s", share, turns)
	s, t := share.shift(), turns.shift()
	switch {
	case *a.Interleave > 0 && (s == shiftUp || t == shiftUp):
		return sched.Lamp{State: sched.LampYes, Why: words}
	case s == shiftNone && t == shiftNone:
		return sched.Lamp{State: sched.LampNo, Why: words}
	}
	return sched.Lamp{State: sched.LampUnknown, Why: words + ": neither more of one nor both shown to be the same"}
}
