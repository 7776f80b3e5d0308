package verdict

import (
	"math"
	"math/rand/v2"
	"time"

	"tsgtop/internal/sched"
)

// world makes traces that the simulated GPU does not: turns whose very lengths
// wander, whatever their timeslice, as no H200 was seen to do but another chip
// might. The target (context 1) and another (context 2) take turns, about 200
// a second each.
type world struct {
	sd     float64       // of the logarithm of the target's turns
	keep   float64       // correlation of one turn's logarithm with the next's
	drift  float64       // change of the logarithm in a second
	jump   float64       // change of the logarithm at a random instant
	flips  time.Duration // mean time between two modes, half and full length; 0: one mode
	burst  float64       // share of time in which the other is away
	lose   float64       // of records, in bursts
	effect float64       // ratio of the target's turns after the call to before
	late   time.Duration // from the call to the effect
}

const (
	worldSlice = 2048 // us: the target's timeslice
	worldTurn  = 2197 * time.Microsecond
	worldOther = 2633 * time.Microsecond
	worldSpan  = 3 * time.Second // before the call, and after
)

// records makes the trace of a world; the call comes at simStart.
func (w world) records(r *rand.Rand) []sched.TraceRecord {
	var out []sched.TraceRecord
	gap, losing := uint32(0), 0
	put := func(context uint32, tag uint8, at sched.Time) {
		if losing == 0 && r.Float64() < w.lose/10 {
			losing = 1 + r.IntN(19)
		}
		if losing > 0 {
			losing--
			gap++
			return
		}
		out = append(out, sched.TraceRecord{Time: at, Context: context, PID: context, Gap: gap, Tag: tag})
		gap = 0
	}
	x := r.NormFloat64()
	full := true
	at, end := simStart.Add(-worldSpan), simStart.Add(worldSpan+50*time.Millisecond)
	jumpAt := at + sched.Time(r.Int64N(int64(end-at)))
	flip := at.Add(time.Duration(r.ExpFloat64() * float64(w.flips)))
	for at < end {
		x = w.keep*x + math.Sqrt(1-w.keep*w.keep)*r.NormFloat64()
		l := w.sd*x + w.drift*at.Sub(simStart).Seconds()
		if at > jumpAt {
			l += w.jump
		}
		if w.flips > 0 {
			for at > flip {
				full = !full
				flip = flip.Add(time.Duration(r.ExpFloat64()*float64(w.flips)) + time.Millisecond)
			}
			if !full {
				l -= math.Ln2
			}
		}
		if w.effect != 0 && at > simStart.Add(w.late) {
			l += math.Log(w.effect)
		}
		length := time.Duration(float64(worldTurn) * math.Exp(l))
		if r.Float64() < w.burst {
			length += time.Duration(r.ExpFloat64() * 4e6) // the other is away: the target stays
		}
		put(1, sched.TagStart, at)
		at = at.Add(length)
		put(1, sched.TagEnd, at)
		at = at.Add(83 * time.Microsecond)
		put(2, sched.TagStart, at)
		at = at.Add(worldOther + time.Duration(r.NormFloat64()*4e3))
		put(2, sched.TagEnd, at)
		at = at.Add(83 * time.Microsecond)
	}
	return out
}

// judge judges a command in this world.
func (w world) judge(r *rand.Rand, op sched.Op, value uint64) sched.Changed {
	plan := Plan{Op: op, Target: sched.Target{Contexts: []uint32{1}}, Others: func(uint32) TSG { return TSG{2, 2500} }}
	if op == sched.OpTimeslice {
		plan.Old = sched.Ptr(uint64(worldSlice))
	}
	if op != sched.OpPreempt {
		plan.New = &value
	}
	j := New(plan)
	records := w.records(r)
	end := simStart.Add(worldSpan + 50*time.Millisecond)
	j.Issue(Call{Begin: simStart.Add(-430 * time.Microsecond), End: simStart, RPCAt: simStart.Add(-424 * time.Microsecond)}, true)
	// As they come: 50 ms at a time, and a look at each.
	for at := simStart.Add(-worldSpan); ; {
		at = at.Add(50 * time.Millisecond)
		n := 0
		for n < len(records) && records[n].Time <= at {
			n++
		}
		j.Add(sched.TraceBatch{Time: at, Records: records[:n]})
		records = records[n:]
		if at < simStart {
			continue
		}
		if c, done := j.Look(at); done || at >= end {
			return c
		}
	}
}
