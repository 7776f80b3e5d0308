package verdict

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"tsgtop/internal/sched"
	"tsgtop/internal/sim"
)

// A real H200, whose target was alone but for a light process that came at random:
// what was asked for is seen by the beat of its turns.
func TestTimesliceOfALonelyTargetOnAnH200(t *testing.T) {
	for _, c := range []struct {
		trace   string
		context uint32
		at      sched.Time
		us      uint64
		cut     bool // the GSP's counters say that kernels are cut
		want    sched.LampState
		why     string
	}{
		{"lc-200", 191, 1795979952171908442, 200, false, sched.LampYes, "in a beat of 2097 us, and now do in one of 205 us; 200 us was asked for"},
		{"lc-1000", 191, 1795979966958328402, 1000, false, sched.LampYes, "and now do in one of 1024 us; 1000 us was asked for"},
		{"lc-50", 191, 1795979996556578510, 50, false, sched.LampUnknown, "beyond the timeslice of 2048"},
		{"lc-50", 191, 1795979996556578510, 50, true, sched.LampYes, "in a beat of 2097 us, and do not now; 50 us was asked for"},
		{"lc-steady-200", 166, 1795980500257370017, 200, true, sched.LampUnknown, "beyond the timeslice of 2048"},
		{"lc-1500", 109, 1795982470030202944, 1500, false, sched.LampYes, "and now do in one of 1536 us; 1500 us was asked for"},
		{"lc-4096", 109, 1795982449225281216, 4096, false, sched.LampYes, "and now do in one of 4194 us; 4096 us was asked for"},
		{"lc-8192", 109, 1795982440076574016, 8192, false, sched.LampYes, "and now do in one of 4194 us; 8192 us was asked for"},
		// An instant 2 s before: nothing was changed, whatever had been asked for.
		{"lc-200", 191, 1795979952171908442 - 2e9, 50, true, sched.LampNo, "still end in a beat of 2097 us"},
		{"lc-1000", 191, 1795979966958328402 - 2e9, 512, true, sched.LampNo, "still end in a beat of 2097 us"},
		{"lc-1000", 191, 1795979966958328402 - 2e9, 2048, true, sched.LampNo, "still end in a beat of 2097 us"},
		{"lc-50", 191, 1795979996556578510 - 2e9, 8192, true, sched.LampNo, "still end in a beat of 2097 us"},
	} {
		records := readTrace(t, c.trace)
		end := min(c.at.Add(DefaultWait+100*time.Millisecond), records[len(records)-1].Time)
		if strings.HasPrefix(c.why, "still") {
			end = c.at.Add(1900 * time.Millisecond) // before the real command
		}
		j := New(Plan{Op: sched.OpTimeslice, Target: sched.Target{Contexts: []uint32{c.context}}, Old: sched.Ptr(uint64(2048)), New: &c.us,
			Others: func(x uint32) TSG { return TSG{uint64(x), 2048} }})
		j.Issue(Call{Begin: c.at, End: c.at.Add(10 * time.Millisecond)}, true)
		if c.cut {
			cut(j, records, c.context)
		}
		j.Add(sched.TraceBatch{Time: end, Records: between(records, c.at.Add(-Baseline), end)})
		v, done := j.Look(end)
		t.Logf("%s, %d us: %s: %s; %s", c.trace, c.us, v.State, v.Why, v.Evidence)
		if v.State != c.want && !(v.State == sched.LampWaiting && c.want == sched.LampUnknown && !done) || !strings.Contains(v.Why, c.why) {
			t.Errorf("%s, %d us, cut %t: %s: %s, want %s: %s", c.trace, c.us, c.cut, v.State, v.Why, c.want, c.why)
		}
		if v.State == sched.LampYes && (v.P == nil || *v.P > 0.001 || v.Metric != "beat" || v.Before == nil || v.After == nil) {
			t.Errorf("%s, %d us: %+v", c.trace, c.us, v)
		}
	}
}

// cut gives the judge counters of a GSP that counts each of the target's turns as one
// that ended in the middle of a kernel.
func cut(j *Judge, records []sched.TraceRecord, context uint32) {
	n := uint32(0)
	next := records[0].Time
	for _, r := range records {
		if r.Time >= next {
			j.Witness(Counters{At: r.Time, Save: n, CILP: n})
			next = r.Time.Add(500 * time.Millisecond)
		}
		if r.Context == context && r.Tag == sched.TagEnd {
			n++
		}
	}
}

// The same on the simulated GPU, which has that from the real one, for values from 50 us
// to 65 ms; and one that ignores them.
func TestTimesliceOfALonelyTarget(t *testing.T) {
	for _, c := range []struct {
		knobs string
		us    uint64
		want  sched.LampState
	}{
		{"lc", 50, sched.LampYes}, {"lc", 200, sched.LampYes}, {"lc", 512, sched.LampYes}, {"lc", 1000, sched.LampYes},
		{"lc", 3000, sched.LampYes}, {"lc", 4096, sched.LampYes}, {"lc", 8192, sched.LampYes}, {"lc", 2048, sched.LampNo},
		{"lc", 2000, sched.LampUnknown}, {"lc,timeslice=ignore", 2000, sched.LampUnknown}, // too near to be seen
		{"lc,timeslice=ignore", 50, sched.LampNo}, {"lc,timeslice=ignore", 200, sched.LampNo}, {"lc,timeslice=ignore", 1024, sched.LampNo},
		{"lc,timeslice=ignore", 4096, sched.LampNo}, {"lc,timeslice=ignore", 65536, sched.LampNo}, {"lc,timeslice=stub", 200, sched.LampNo},
	} {
		for seed := range uint64(trials(20, 3)) {
			v := trial{knobs: c.knobs, op: sched.OpTimeslice, value: c.us, seed: seed + 1, counters: true, target: 1}.run(t)
			if v.State != c.want {
				t.Errorf("%s, %d us, seed %d: %s: %s; %s", c.knobs, c.us, seed+1, v.State, v.Why, v.Evidence)
			}
		}
	}
}

// Whatever is asked for, a GPU that obeys is not told to have ignored it, nor one that
// ignores to have obeyed.
func TestLonelyTargetIsNotMisjudged(t *testing.T) {
	r := random(99)
	count := map[string]int{}
	for i := range trials(1000, 60) {
		us := uint64(50 * math.Pow(400, r.Float64())) // 50 to 20,000
		if us == 2048 {
			continue
		}
		for _, knobs := range []string{"", ",timeslice=ignore"} {
			knobs = fmt.Sprintf("lc,noise=%d%s", 10*(i%4), knobs)
			v := trial{knobs: knobs, op: sched.OpTimeslice, value: us, seed: uint64(i) + 1, counters: i%2 == 0, target: 1}.run(t)
			obeys := !strings.Contains(knobs, "ignore")
			if v.State == sched.LampNo && obeys || v.State == sched.LampYes && !obeys {
				t.Errorf("%s, %d us, seed %d: %s: %s; %s", knobs, us, i+1, v.State, v.Why, v.Evidence)
			}
			count[fmt.Sprintf("obeys %t: %s", obeys, v.State)]++
		}
	}
	t.Log(count)
	if count["obeys true: yes"] < 40 || count["obeys false: no"] < 40 {
		t.Error("too few are told at all")
	}
}

// A GPU that ignores timeslices, whose target's kernels become short at the very
// moment of the call: the old beat goes, and the GSP counts that kernels end.
func TestLonelyTargetWhoseKernelsBecomeShort(t *testing.T) {
	for _, kernel := range []time.Duration{300 * time.Microsecond, 700 * time.Microsecond, time.Millisecond} {
		for seed := range uint64(trials(20, 4)) {
			short := false
			v := trial{knobs: "lc,timeslice=ignore", op: sched.OpTimeslice, value: 50 + 50*(seed%2), seed: seed + 1, counters: true, target: 1,
				meanwhile: func(*sim.Machine, *Judge, time.Duration) { short = true },
				prepare: func(m *sim.Machine) {
					m.Feed(m.Targets()[1].PID, func(_ sched.Time, r *rand.Rand) (time.Duration, time.Duration) {
						if short {
							return time.Duration(float64(kernel) * (0.5 + r.Float64())), time.Duration(9e3 + 50e3*r.ExpFloat64())
						}
						return 10 * time.Millisecond, 9 * time.Microsecond
					})
					m.Feed(m.Targets()[0].PID, func(_ sched.Time, r *rand.Rand) (time.Duration, time.Duration) {
						return time.Millisecond, time.Duration(10e6 * (0.2 + 1.6*r.Float64()))
					})
				}}.run(t)
			if v.State == sched.LampYes {
				t.Errorf("kernels of %v, seed %d: %s; %s", kernel, seed+1, v.Why, v.Evidence)
			}
		}
	}
}

// A GPU that obeys, and a beat that is weak because long kernels alternate with short
// ones: a longer timeslice is not told to be ignored.
func TestLonelyTargetWithAWeakBeat(t *testing.T) {
	count := map[sched.LampState]int{}
	for _, us := range []uint64{4096, 6144, 8192} {
		for _, c := range []struct{ long, spell, every float64 }{{0.4, 20, 8}, {0.6, 50, 8}, {0.5, 20, 15}, {0.6, 20, 25}, {0.9, 20, 60}} {
			for seed := range uint64(trials(60, 6)) {
				v := trial{knobs: "lc", op: sched.OpTimeslice, value: us, seed: seed + 1, counters: true, target: 1, prepare: func(m *sim.Machine) {
					until, long := sched.Time(0), true
					m.Feed(m.Targets()[1].PID, func(now sched.Time, r *rand.Rand) (time.Duration, time.Duration) {
						if now > until {
							long, until = r.Float64() < c.long, now+sched.Time(c.spell*1e6*(0.3+r.ExpFloat64()))
						}
						if long {
							return 30 * time.Millisecond, 9 * time.Microsecond
						}
						return time.Duration(1.2e6 * (0.5 + r.Float64())), time.Duration(9e3 + 150e3*r.ExpFloat64())
					})
					m.Feed(m.Targets()[0].PID, func(_ sched.Time, r *rand.Rand) (time.Duration, time.Duration) {
						return time.Millisecond, time.Duration(c.every * 1e6 * (0.2 + 1.6*r.Float64()))
					})
				}}.run(t)
				if count[v.State]++; v.State == sched.LampNo {
					t.Errorf("%d us, %+v, seed %d: %s; %s", us, c, seed+1, v.Why, v.Evidence)
				}
			}
		}
	}
	t.Log(count)
}
