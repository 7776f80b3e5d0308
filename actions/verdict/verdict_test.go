package verdict

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"tsgtop/internal/sched"
	"tsgtop/internal/sim"
)

// What the H200 did, and what each answer must then be.
func TestTimesliceOnTheSimulatedGPU(t *testing.T) {
	for _, row := range []struct {
		knobs string
		value uint64
		state sched.LampState
		says  string
		asked bool
	}{
		{"", 200, sched.LampYes, "200 us was asked for", true},
		{"", 512, sched.LampYes, "", true},
		{"", 8192, sched.LampYes, "", true},
		{"", 65536, sched.LampYes, "not what was asked for", false}, // the kernel's own length ends it
		{"", 2048, sched.LampNo, "stayed at", false},
		{"timeslice=ignore", 200, sched.LampNo, "stayed at", false},
		{"timeslice=ignore", 8192, sched.LampNo, "stayed at", false},
		{"timeslice=stub", 200, sched.LampNo, "stayed at", false},
		{"timeslice=refuse", 200, sched.LampNo, "stayed at", false},
		{"tsgs=16", 200, sched.LampYes, "", true},
		{"noise=40,idle=30", 200, sched.LampYes, "", true},
		{"noise=40,idle=30,timeslice=ignore", 200, sched.LampNo, "", false},
		{"lose=5", 8192, sched.LampYes, "", true},
		{"alone", 200, sched.LampUnknown, "nothing competed", false},
		{"short-kernels", 200, sched.LampUnknown, "its kernels end before the timeslice does, at 310 us of 2048", false},
		{"short-kernels", 30, sched.LampYes, "", true},                                                // turns of 310 us kernels are cut to 130 us
		{"short-kernels", 100, sched.LampUnknown, "its kernels end before the timeslice does", false}, // 310 us could be 100 us and 210 over
		{"lose=60", 200, sched.LampUnknown, "more than 20% of the turns touch a gap: the trace lost ", false},
		{"timeslice=ignore", 2000, sched.LampUnknown, "2000 instead of 2048 us is too small a change to be seen", false},
		{"", 1843, sched.LampUnknown, "too little to count as an effect", false}, // residency changes by 9.6%
	} {
		for _, counters := range []bool{false, true} {
			v := trial{knobs: row.knobs, op: sched.OpTimeslice, value: row.value, seed: 3, counters: counters}.run(t)
			name := fmt.Sprintf("%q 2048 -> %d, counters %v", row.knobs, row.value, counters)
			if v.State != row.state || !strings.Contains(v.Why, row.says) {
				t.Errorf("%s: %s, %s (%s); want %s, ...%s...", name, v.State, v.Why, v.Evidence, row.state, row.says)
				continue
			}
			if v.State == sched.LampYes && (v.AsAsked == nil || *v.AsAsked != row.asked) {
				t.Errorf("%s: as asked: %v, want %v (%s)", name, v.AsAsked, row.asked, v.Why)
			}
			if v.State == sched.LampYes && (v.TookNS > 1.5e9 && !strings.HasPrefix(row.knobs, "tsgs=16") || v.TookNS > 3e9 || v.P == nil || v.CI == nil || v.Victim.ShareBefore == nil || v.Victim.SwitchTaxAfter == nil) {
				t.Errorf("%s: an answer without its evidence, or too late: %+v", name, v)
			}
		}
	}
}

func TestEvidence(t *testing.T) {
	v := trial{op: sched.OpTimeslice, value: 200, seed: 1}.run(t)
	var n [4]int
	if k, err := fmt.Sscanf(v.Evidence, "residency p50 2197 -> 305 us (x0.14, 99.9%% CI 0.14-0.14), %d/%d turns in %d/%d blocks", &n[0], &n[1], &n[2], &n[3]); k != 4 {
		t.Errorf("evidence %q: %v", v.Evidence, err)
	}
	if s := *v.Victim.ShareBefore; s < 0.45 || s > 0.5 {
		t.Errorf("share before %.3f; measured on an H200: 0.485", s)
	}
	if a, b := *v.Victim.ShareAfter, *v.Victim.SwitchTaxAfter; a > 0.2 || b < 0.04 {
		t.Errorf("at 200 us the share is %.3f and the switch tax %.3f", a, b)
	}
}

// What the workload itself does must not pass as an effect.
func TestWhatTheWorkloadDoesItself(t *testing.T) {
	once := func(at time.Duration, f func(*sim.Machine, *Judge)) func(*sim.Machine, *Judge, time.Duration) {
		return func(m *sim.Machine, j *Judge, since time.Duration) {
			if since == at {
				f(m, j)
			}
		}
	}
	for _, row := range []struct {
		name  string
		tr    trial
		state sched.LampState
		says  string
	}{
		{"its kernels shorten", trial{op: sched.OpTimeslice, value: 200, knobs: "timeslice=ignore",
			meanwhile: once(300*time.Millisecond, func(m *sim.Machine, _ *Judge) { m.Reprogram(479, 900*time.Microsecond) })}, sched.LampUnknown, ""},
		{"its kernels shorten soon", trial{op: sched.OpTimeslice, value: 200, knobs: "timeslice=ignore",
			meanwhile: once(40*time.Millisecond, func(m *sim.Machine, _ *Judge) { m.Reprogram(479, 900*time.Microsecond) })}, sched.LampUnknown, ""},
		{"the other dies", trial{op: sched.OpInterleave, value: 2,
			meanwhile: once(0, func(m *sim.Machine, _ *Judge) { m.Kill(480) })}, sched.LampUnknown, ""},
		{"one of two others dies", trial{op: sched.OpInterleave, value: 2, knobs: "tsgs=3",
			meanwhile: once(0, func(m *sim.Machine, _ *Judge) { m.Kill(481) })}, sched.LampUnknown, "stopped competing"},
		{"one of two others dies as its timeslice is set", trial{op: sched.OpTimeslice, value: 200, knobs: "tsgs=3",
			meanwhile: once(0, func(m *sim.Machine, _ *Judge) { m.Kill(481) })}, sched.LampUnknown, "stopped competing"},
		{"the others' kernels shorten", trial{op: sched.OpInterleave, value: 2, knobs: "tsgs=3",
			meanwhile: once(0, func(m *sim.Machine, _ *Judge) {
				m.Reprogram(480, 500*time.Microsecond)
				m.Reprogram(481, 500*time.Microsecond)
			})}, sched.LampUnknown, ""},
		{"its own kernels lengthen as it is interleaved", trial{op: sched.OpInterleave, value: 2, knobs: "short-kernels",
			meanwhile: once(0, func(m *sim.Machine, _ *Judge) { m.Reprogram(479, 800*time.Microsecond) })}, sched.LampUnknown, "which no place in the runlist does"},
		{"the target dies", trial{op: sched.OpTimeslice, value: 200,
			meanwhile: once(100*time.Millisecond, func(m *sim.Machine, j *Judge) { m.Kill(479); j.Spoil("the target ended 0.1 s after the call") })}, sched.LampUnknown, "the target ended"},
	} {
		row.tr.seed = 4
		v := row.tr.run(t)
		if v.State != row.state || !strings.Contains(v.Why, row.says) {
			t.Errorf("%s: %s, %s (%s); want %s, ...%s...", row.name, v.State, v.Why, v.Evidence, row.state, row.says)
		}
	}
}

// Unknown from the start, without a trace.
func TestHopeless(t *testing.T) {
	value := uint64(200)
	for _, row := range []struct {
		plan Plan
		says string
	}{
		{Plan{Op: sched.OpTimeslice, New: &value, Target: sched.Target{TSGID: sched.TSGID{Runlist: 3}, Engine: sched.Ptr(uint32(12)), Contexts: []uint32{5}}}, "copy engine: no trace"},
		{Plan{Op: sched.OpPreempt, Target: sched.Target{TSGID: sched.TSGID{Runlist: 3}, Contexts: []uint32{5}}}, "copy engine: no trace"},
		{Plan{Op: sched.OpPreempt, Target: sched.Target{Contexts: []uint32{5}}, NoTrace: "MIG: no trace"}, "MIG: no trace"},
		{Plan{Op: sched.OpPreempt}, "contexts are not known"},
	} {
		v, done := New(row.plan).Look(simStart)
		if !done || v.State != sched.LampUnknown || !strings.Contains(v.Why, row.says) {
			t.Errorf("%v, done %v: want unknown, ...%s...", v.Lamp, done, row.says)
		}
	}
}

func TestTheTraceStops(t *testing.T) {
	for _, op := range []sched.Op{sched.OpTimeslice, sched.OpPreempt} {
		j := New(Plan{Op: op, New: sched.Ptr(uint64(200)), Old: sched.Ptr(uint64(2048)), Target: sched.Target{Contexts: []uint32{1}}})
		j.Add(sched.TraceBatch{Time: simStart})
		j.Issue(Call{Begin: simStart, End: simStart + 4e5}, true)
		if v, done := j.Look(simStart.Add(2 * time.Second)); done || v.State != sched.LampWaiting {
			t.Errorf("%s: %v, %v after 2 s: want waiting", op, v.Lamp, done)
		}
		if v, done := j.Look(simStart.Add(4 * time.Second)); !done || !strings.Contains(v.Why, "the trace has not been read for 4.0 s") {
			t.Errorf("%s: %v, %v after 4 s", op, v.Lamp, done)
		}
	}
}

func TestFewTurns(t *testing.T) {
	// A target that has a turn each 250 ms, beside one that is always there.
	value, old := uint64(200), uint64(2048)
	j := New(Plan{Op: sched.OpTimeslice, Old: &old, New: &value, Target: sched.Target{Contexts: []uint32{1}}, Others: func(uint32) TSG { return TSG{9, 2048} }})
	var b sched.TraceBatch
	for at := simStart.Add(-3 * time.Second); at < simStart.Add(3*time.Second); at = at.Add(250 * time.Millisecond) {
		for i, x := range []struct {
			tag uint8
			ctx uint32
		}{{6, 1}, {7, 1}, {6, 2}, {7, 2}} {
			b.Records = append(b.Records, sched.TraceRecord{Time: at.Add([]time.Duration{0, 2197e3, 2280e3, 249.9e6}[i]), Context: x.ctx, Tag: x.tag})
		}
	}
	b.Time = simStart.Add(3100 * time.Millisecond)
	j.Add(b)
	j.Issue(Call{Begin: simStart, End: simStart + 4e5}, true)
	v, done := j.Look(b.Time)
	for !done {
		v, done = j.Look(b.Time)
	}
	if v.State != sched.LampUnknown || v.Why != "only 11 turns in 3 s after the call" {
		t.Errorf("%s, %q", v.State, v.Why)
	}
}

func TestWitnessesDisagree(t *testing.T) {
	tr := trial{op: sched.OpTimeslice, value: 200, seed: 1, counters: true}
	if v := tr.run(t); v.State != sched.LampYes {
		t.Errorf("agreeing witnesses: %v", v.Lamp)
	}
	tr.meanwhile = func(m *sim.Machine, j *Judge, since time.Duration) {
		for i := range j.counters { // a GSP that counts half as many
			if c := &j.counters[i]; since == 290*time.Millisecond && i > 0 {
				c.Save = j.counters[0].Save + (c.Save-j.counters[0].Save)/2
			}
		}
	}
	if v := tr.run(t); v.State != sched.LampUnknown || !strings.Contains(v.Why, "two witnesses disagree") {
		t.Errorf("disagreeing witnesses: %v", v.Lamp)
	}
	// A reading that took long is of some instant of its call; one that is said to be
	// of its beginning is another matter.
	for _, long := range []bool{true, false} {
		tr.meanwhile = func(_ *sim.Machine, j *Judge, since time.Duration) {
			if c := &j.counters[len(j.counters)-1]; since == 290*time.Millisecond {
				c.At = c.At.Add(-200 * time.Millisecond)
				if !long {
					c.Until = c.At
				}
			}
		}
		want := sched.LampYes
		if !long {
			want = sched.LampUnknown
		}
		if v := tr.run(t); v.State != want {
			t.Errorf("a reading of 200 ms ago, long %t: %v", long, v.Lamp)
		}
	}
}

func TestInterleave(t *testing.T) {
	for _, row := range []struct {
		knobs string
		value uint64
		state sched.LampState
	}{
		{"", 2, sched.LampNo}, {"", 0, sched.LampNo}, {"", 1, sched.LampNo},
		{"interleave=obey", 2, sched.LampYes}, {"interleave=obey", 1, sched.LampYes}, {"interleave=obey,tsgs=4", 2, sched.LampYes},
		{"interleave=obey", 0, sched.LampNo}, // it was low already
		{"interleave=stub", 2, sched.LampNo},
		{"alone", 2, sched.LampUnknown},
	} {
		v := trial{knobs: row.knobs, op: sched.OpInterleave, value: row.value, seed: 2}.run(t)
		if v.State != row.state {
			t.Errorf("%q interleave %d: %s, %s (%s); want %s", row.knobs, row.value, v.State, v.Why, v.Evidence, row.state)
		}
	}
}

// One preempt: yes where it caught its target and the run was cut, no where it
// caught it and the run went on, and otherwise unknown, for a stated reason.
func TestPreemptOnce(t *testing.T) {
	for _, row := range []struct {
		knobs          string
		yes, no, noton int // at least, in 40
	}{
		{"", 6, 0, 12},
		{"preempt=ignore", 0, 8, 12},
		{"preempt=stub", 0, 8, 12},
		{"alone", 0, 0, 0},
		{"short-kernels", 0, 0, 20},
		{"lose=5", 5, 0, 8},
	} {
		count := map[sched.LampState]int{}
		noton := 0
		for seed := range uint64(trials(400, 40)) {
			v := trial{knobs: row.knobs, op: sched.OpPreempt, seed: seed + 1}.run(t)
			count[v.State]++
			if v.Why == NotOnEngine {
				noton++
			}
			if v.State == sched.LampYes && (v.TookNS > 50e6 || *v.P > preemptAlpha || !strings.Contains(v.Why, "when a preempt takes effect")) {
				t.Errorf("%q: %+v after %d ns", row.knobs, v.Lamp, v.TookNS)
			}
			if v.State == sched.LampUnknown && v.Why == "" {
				t.Errorf("%q: unknown without a reason", row.knobs)
			}
		}
		if count[sched.LampYes] < row.yes || row.yes == 0 && count[sched.LampYes] > 0 || count[sched.LampNo] < row.no || row.no == 0 && count[sched.LampNo] > 0 || noton < row.noton {
			t.Errorf("%q: %v, not on the engine %d; want %+v", row.knobs, count, noton, row)
		}
	}
}

func TestPreemptRepeated(t *testing.T) {
	for _, row := range []struct {
		knobs string
		count int
		state sched.LampState
	}{
		{"", 200, sched.LampYes}, {"", 30, sched.LampYes}, {"noise=30", 200, sched.LampYes}, {"idle=40", 200, sched.LampYes},
		{"preempt=ignore", 200, sched.LampNo}, {"preempt=ignore,noise=30", 200, sched.LampNo}, {"preempt=stub", 200, sched.LampNo},
		{"alone", 200, sched.LampUnknown}, {"short-kernels,preempt=ignore", 200, sched.LampUnknown},
	} {
		for seed := range uint64(trials(40, 5)) {
			v := trial{knobs: row.knobs, op: sched.OpPreempt, count: row.count, every: 1500 * time.Microsecond, seed: seed + 1}.run(t)
			if v.State != row.state {
				t.Errorf("%q, %d preempts, seed %d: %s, %s (%s); want %s", row.knobs, row.count, seed+1, v.State, v.Why, v.Evidence, row.state)
			}
		}
	}
}

// A call that the GSP answers late leaves it open when the preempt took effect.
func TestPreemptThatHangs(t *testing.T) {
	for seed := range uint64(10) {
		v := trial{knobs: "hang=2s", op: sched.OpPreempt, seed: seed + 1}.run(t)
		if v.State != sched.LampUnknown && v.State != sched.LampYes {
			t.Errorf("%v", v.Lamp)
		}
	}
}

func TestReady(t *testing.T) {
	j := New(Plan{Op: sched.OpTimeslice, Target: sched.Target{Contexts: []uint32{1}}})
	if ok, missing := j.Ready(); ok || missing == "" {
		t.Errorf("ready without a trace: %q", missing)
	}
	for _, r := range (world{}).records(rand.New(rand.NewPCG(1, 1))) {
		j.Add(sched.TraceBatch{Time: r.Time, Records: []sched.TraceRecord{r}})
	}
	if ok, missing := j.Ready(); !ok {
		t.Errorf("not ready after 6 s: %s", missing)
	}
}
