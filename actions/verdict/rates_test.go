package verdict

import (
	"math/rand/v2"
	"testing"
	"time"

	"tsgtop/internal/sched"
)

var timeslices = []uint64{200, 1024, 1843, 2048, 2300, 4096, 8192}

// How often a command that the simulated hardware ignores is told to have
// changed it: at most 1 in 1,000, whatever noise, idling or loss there is.
func TestFalseChangedOnTheSimulatedGPU(t *testing.T) {
	yes, n := 0, 0
	for _, knobs := range []string{"", "noise=20", "noise=60", "idle=30,noise=20", "idle=70", "lose=2,noise=20", "lose=10",
		"short-kernels,noise=30", "short-kernels,idle=40,noise=20", "tsgs=4,noise=30", "tsgs=16,noise=20,lose=1"} {
		for i, value := range timeslices {
			tr := trial{knobs: knobs + ",timeslice=ignore", op: sched.OpTimeslice, value: value}
			k := trials(40, 1)
			count, last := tally(t, tr, k, uint64(1000*i+1))
			yes, n = yes+count[sched.LampYes], n+k
			for range count[sched.LampYes] {
				t.Logf("%q %d: %+v", knobs, value, last[sched.LampYes])
			}
		}
		for _, tr := range []trial{{op: sched.OpInterleave, value: 2}, {op: sched.OpInterleave, value: 0},
			{op: sched.OpPreempt}, {op: sched.OpPreempt, count: 100, every: 2 * time.Millisecond}} {
			tr.knobs = knobs + ",preempt=ignore"
			k := trials(150, 2)
			count, last := tally(t, tr, k, 5001)
			yes, n = yes+count[sched.LampYes], n+k
			for range count[sched.LampYes] {
				t.Logf("%q %s: %+v", knobs, tr.op, last[sched.LampYes])
			}
		}
	}
	t.Logf("false changed: %d of %d", yes, n)
	if float64(yes) > max(1, 0.001*float64(n)) {
		t.Errorf("%d of %d commands that were ignored are told to have changed something", yes, n)
	}
}

// The same in worlds that no H200 was seen to be: the very lengths of turns
// wander, hang together over up to a second, drift, come in bursts, get lost.
func TestFalseChangedInWanderingWorlds(t *testing.T) {
	yes, n := 0, 0
	r := random(7)
	for _, sd := range []float64{0.05, 0.1, 0.2, 0.4} {
		for _, keep := range []float64{0, 0.5, 0.9, 0.95, 0.98} {
			y, k := falseYes(t, world{sd: sd, keep: keep}, r, trials(40, 1))
			yes, n = yes+y, n+k
		}
	}
	for _, w := range []world{{sd: .02, drift: .05}, {sd: .02, drift: -.1}, {sd: .02, drift: -.3}, {sd: .05, keep: .9, drift: .2},
		{sd: .02, burst: .3}, {sd: .05, burst: .6, keep: .9}, {sd: .1, keep: .9, lose: .02}, {sd: .1, keep: .9, lose: .1},
		{sd: .02, flips: 20 * time.Millisecond}, {sd: .02, flips: 100 * time.Millisecond}} {
		y, k := falseYes(t, w, r, trials(40, 1))
		yes, n = yes+y, n+k
	}
	t.Logf("false changed: %d of %d", yes, n)
	if float64(yes) > max(1, 0.001*float64(n)) {
		t.Errorf("%d of %d commands in worlds where nothing happened are told to have changed something", yes, n)
	}
}

func falseYes(t *testing.T, w world, r *rand.Rand, each int) (yes, n int) {
	for range each {
		for _, value := range timeslices {
			if v := w.judge(r, sched.OpTimeslice, value); v.State == sched.LampYes {
				t.Logf("%+v, %d: %s; %s", w, value, v.Why, v.Evidence)
				yes++
			}
			n++
		}
		if v := w.judge(r, sched.OpInterleave, 2); v.State == sched.LampYes {
			t.Logf("%+v, interleave: %s; %s", w, v.Why, v.Evidence)
			yes++
		}
		n++
	}
	return yes, n
}

// A workload that jumps once, at a random instant of the seconds that are
// looked at, passes as an effect only where it happens to jump at the call.
func TestJumpsRarelyPass(t *testing.T) {
	r := random(8)
	for _, w := range []world{{sd: .02, jump: .3}, {sd: .02, jump: -.5}, {sd: .02, jump: -1.5}, {sd: .02, jump: 1}, {sd: .1, keep: .5, jump: -.2},
		{sd: .02, flips: 300 * time.Millisecond}, {sd: .02, flips: time.Second}, {sd: .02, flips: 3 * time.Second}} {
		yes, n := falseYes(t, w, r, trials(100, 3))
		t.Logf("%+v: %d of %d", w, yes, n)
		if float64(yes) > 2+0.015*float64(n) {
			t.Errorf("%+v: %d of %d jumps of the workload pass as an effect", w, yes, n)
		}
	}
}

// Turns taken for independent would be wrong here: the reason for the blocks.
func TestDependentTurnsFoolANaiveTest(t *testing.T) {
	r := random(1)
	fooled, n := 0, trials(500, 100)
	for range n {
		f := newFolder([]uint32{1}, nil)
		for _, x := range (world{sd: 0.1, keep: 0.9}).records(r) {
			f.add(x)
		}
		var before, after []turn
		for _, x := range f.turns {
			switch {
			case x.tsg != 0:
			case x.end < simStart:
				before = append(before, x)
			default:
				after = append(after, x)
			}
		}
		if naive(before, after) < 0.001 {
			fooled++
		}
	}
	t.Logf("taken for independent, at 0.001: %d of %d", fooled, n)
	if fooled < n/10 {
		t.Errorf("only %d of %d: these worlds would not tell a bad test", fooled, n)
	}
}

// Effects of 10% and more, at 200 turns a second of the target's, are seen
// within 3 s: at the noise that forced turns have, and well above it.
func TestEffectsAreSeen(t *testing.T) {
	r := random(5)
	for _, row := range []struct {
		w     world
		least float64 // of the trials, for effects as small as 10%
	}{
		{world{sd: 0}, 0.99}, {world{sd: .02}, 0.99}, {world{sd: .05}, 0.99}, {world{sd: .1}, 0.98},
		{world{sd: .05, keep: .5}, 0.97}, {world{sd: .02, keep: .9}, 0.97}, {world{sd: .02, lose: .05}, 0.99}, {world{sd: .02, burst: .05}, 0.97},
	} {
		for _, e := range []struct {
			ratio float64
			value uint64
		}{{0.9, 1843}, {1.1, 2253}, {0.8, 1600}, {0.5, 950}, {0.14, 200}, {2, 4240}} {
			w := row.w
			w.effect = e.ratio
			n, yes, asked := trials(400, 15), 0, 0
			var longest time.Duration
			for range n {
				v := w.judge(r, sched.OpTimeslice, e.value)
				if v.State == sched.LampYes {
					yes++
					longest = max(longest, time.Duration(v.TookNS))
					if *v.AsAsked {
						asked++
					}
				} else if *full {
					t.Logf("missed: %+v: %s; %s", w, v.Why, v.Evidence)
				}
			}
			t.Logf("%+v: %d of %d, %d as asked, longest %v", w, yes, n, asked, longest)
			if float64(yes) < row.least*float64(n)-1 {
				t.Errorf("%+v: only %d of %d effects seen", w, yes, n)
			}
		}
	}
}

// On the simulated GPU, that is with noise in the kernels and not in the
// timeslice: every effect is seen, as asked, within 1.5 s.
func TestEffectsAreSeenOnTheSimulatedGPU(t *testing.T) {
	for _, knobs := range []string{"", "noise=20", "noise=60", "idle=40,noise=20", "lose=5,noise=20", "tsgs=4"} {
		for _, value := range []uint64{200, 1500, 2600, 8192} {
			n := trials(200, 3)
			count, last := tally(t, trial{knobs: knobs, op: sched.OpTimeslice, value: value}, n, 1)
			if float64(count[sched.LampYes]) < 0.99*float64(n) {
				t.Errorf("%q -> %d: %v", knobs, value, count)
			}
			took := time.Duration(last[sched.LampYes].TookNS)
			t.Logf("%q -> %d: %d of %d seen, after at most %v", knobs, value, count[sched.LampYes], n, took)
			if took > 1500*time.Millisecond+trialStep {
				t.Errorf("%q -> %d: answered after %v", knobs, value, took)
			}
		}
	}
}
