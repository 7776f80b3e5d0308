package verdict

import (
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"tsgtop/internal/sched"
	"tsgtop/internal/sim"
)

// full asks for all trials: minutes instead of seconds. Also by TSGTOP_TRIALS=full.
var full = flag.Bool("full", os.Getenv("TSGTOP_TRIALS") == "full", "run all simulated trials")

// others asks for other random trials than those that the tests have always.
var others = flag.Uint64("seed", 0, "added to all seeds")

// random is a source of random numbers, the same in each run.
func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, *others+77)) }

// trials is how many there are: many where all are asked for, else few.
func trials(all, quick int) int {
	if *full {
		return all
	}
	return quick
}

// trialStep is how often a trial asks for the answer.
const trialStep = 10 * time.Millisecond

const simStart sched.Time = 1_790_000_000_000_000_000

// trial is one command to the simulated GPU, judged.
type trial struct {
	knobs     string
	op        sched.Op
	value     uint64
	count     int           // preempts
	every     time.Duration // between them
	baseline  time.Duration
	seed      uint64
	counters  bool // read the GSP's counters too
	target    int  // which of the machine's
	prepare   func(m *sim.Machine)
	meanwhile func(m *sim.Machine, j *Judge, since time.Duration)
}

// run sends the command after a baseline, and asks until there is an answer.
func (tr trial) run(t testing.TB) sched.Changed {
	t.Helper()
	c, err := sim.ParseKnobs(tr.knobs)
	if err != nil {
		t.Fatal(err)
	}
	c.Seed, c.Start = tr.seed, simStart
	m, err := sim.New(c)
	if err != nil {
		t.Fatal(err)
	}
	target := m.Targets()[tr.target]
	if tr.prepare != nil {
		tr.prepare(m)
	}
	plan := Plan{Op: tr.op, Target: target, Others: func(ctx uint32) TSG {
		for _, o := range m.Targets() {
			for _, x := range o.Contexts {
				if x == ctx {
					us, _ := m.Timeslice(o)
					return TSG{Key: uint64(*o.UniqueID), TimesliceUS: us}
				}
			}
		}
		return TSG{}
	}}
	switch tr.op {
	case sched.OpTimeslice:
		us, _ := m.Timeslice(target)
		plan.Old, plan.New = &us, &tr.value
	case sched.OpInterleave:
		plan.New = &tr.value
	}
	j := New(plan)
	feed := func(d time.Duration) {
		for _, e := range m.Advance(d) {
			if b, ok := e.(sched.TraceBatch); ok {
				j.Add(b)
			}
		}
	}
	witness := func() {
		if tr.counters {
			if k, status := m.Counters(target); status == 0 {
				j.Witness(Counters{At: m.Now(), Save: k.Save, WFI: k.WFI, CILP: k.CILP})
			}
		}
	}
	if tr.baseline == 0 {
		tr.baseline = 3 * time.Second
	}
	feed(50 * time.Millisecond)
	witness()
	feed(tr.baseline + time.Duration(tr.seed*7919%4096)*time.Microsecond)
	witness()
	var issued time.Duration
	for i := range max(1, tr.count) {
		r, _ := m.Do(context.Background(), sim.Request{Op: tr.op, Target: target, Value: tr.value, Wait: tr.count > 1})
		call := Call{Begin: r.Begin, End: r.End, RPCAt: r.RPCAt}
		if r.RPCAt > 0 {
			call.RPCDone = r.RPCAt.Add(r.RPC)
		}
		j.Issue(call, i >= tr.count-1)
		if i < tr.count-1 {
			feed(max(tr.every, r.End.Sub(r.Begin)))
			issued += tr.every
		}
	}
	for since := time.Duration(0); ; since += trialStep {
		if tr.meanwhile != nil {
			tr.meanwhile(m, j, since)
		}
		feed(trialStep)
		if since%(250*time.Millisecond) == 0 && since > 0 {
			witness()
		}
		if v, done := j.Look(m.Now()); done {
			return v
		}
		if since > 10*time.Second {
			t.Fatal("no answer after 10 s")
		}
	}
}

// tally runs many trials, with the seeds from first on, and gives how often
// each answer came, and the one of each that took longest.
func tally(t testing.TB, tr trial, n int, first uint64) (count map[sched.LampState]int, last map[sched.LampState]sched.Changed) {
	count, last = map[sched.LampState]int{}, map[sched.LampState]sched.Changed{}
	whys := map[string]int{}
	for i := range n {
		tr.seed = *others + first + uint64(i)
		v := tr.run(t)
		count[v.State]++
		if l, ok := last[v.State]; !ok || v.TookNS >= l.TookNS {
			last[v.State] = v
		}
		whys[string(v.State)+": "+shape(v.Why)]++
	}
	for why, n := range whys {
		t.Logf("%s %s %d: %5d %s", tr.knobs, tr.op, tr.value, n, why)
	}
	for _, v := range last {
		t.Logf("   e.g. %s | %s", v.Why, v.Evidence)
	}
	return count, last
}
