package verdict

import (
	"fmt"
	"math"
	"time"

	"tsgtop/internal/sched"
)

// interleaveBlock is the shortest block for shares and turns a second: long
// beside the cycle of turns and kernels.
const interleaveBlock = 100 * time.Millisecond

// interleave compares the target's share and its turns a second: a level that
// the hardware heeds gives it more or fewer places in the runlist, and leaves
// the others' turns as long as they were.
func (v view) interleave() sched.Changed {
	if v.plan.New == nil {
		return unknown("no interleave level was asked for")
	}
	was, is := v.window(v.clip(v.was)), v.window(v.is)
	direction := interleaveDirection(v.plan.Old, *v.plan.New)
	least := interleaveBlock
	if n := min(len(was.target), len(is.target)); n > 0 {
		least = max(least, 2*blockTurns*max(was.length()/time.Duration(len(was.target)+1), is.length()/time.Duration(len(is.target)+1)))
	}
	series := func(f func(part) float64) *comparison {
		return compare(least, direction, func(block time.Duration) sides {
			return sides{v.parts(was, block, true, f), v.parts(is, block, false, f)}
		})
	}
	share := series(func(p part) float64 { return math.Log(max(p.share, 1e-4)) })
	turns := series(func(p part) float64 { return math.Log(max(p.turns, 0.5)) })
	var result sched.Changed
	switch why := firstOf(torn(was, is), missing(was, is), v.disagree()); {
	case why != "":
		result = unknown(why)
	case share == nil || turns == nil:
		result = unknown(few(was, is))
	default:
		result = v.interleaveOf(share, turns, was, is)
	}
	v.interleaveEvidence(&result, share, turns, was, is)
	return result
}

// interleaveDirection is which way the level asks the share to go; 0 where
// that cannot be told, because the level before is not known (there is no
// reading it back) and the new one is neither the lowest nor the highest.
func interleaveDirection(old *uint64, asked uint64) int {
	switch {
	case old != nil && asked > *old, old == nil && asked >= 2:
		return 1
	case old != nil && asked < *old, old == nil && asked == 0:
		return -1
	}
	return 0
}

func (v view) interleaveOf(share, turns *comparison, was, is window) sched.Changed {
	// Two questions are asked: each spends half.
	for _, c := range []struct {
		*comparison
		cycle func(turn, time.Duration) float64
	}{{share, func(t turn, cycle time.Duration) float64 { return math.Log(float64(t.length()) / float64(cycle)) }},
		{turns, func(_ turn, cycle time.Duration) float64 { return -math.Log(float64(cycle)) }}} {
		if !c.changed(v.alpha / 2) {
			continue
		}
		if steady, side := c.steady(); !steady {
			return unknown(fmt.Sprintf("the target's share was on the move %s the call: the workload changes by itself", side))
		}
		if !abrupt(v.cycles(was, c.cycle), v.cycles(is, c.cycle)) {
			return unknown("the target's share changed, but not at the call: the workload changed by itself")
		}
		if why := firstOf(v.company(was, is), v.kept(was, is), slots(was, is)); why != "" {
			return unknown(why)
		}
		return lamp(sched.LampYes, "the target's share and turns changed as the level asks")
	}
	if share.same() && turns.same() {
		if why := v.company(was, is); why != "" {
			return unknown(why)
		}
		if v.first {
			return waiting("no change so far")
		}
		return lamp(sched.LampNo, "the target's share and turns a second stayed within 5%%")
	}
	c := share
	if share.same() {
		c = turns
	}
	return unknown(v.wide(c, was, is))
}

// cycles gives a number of each of the target's turns and the time from its
// start to the next one's, where nothing is missing between.
func (v view) cycles(w window, f func(turn, time.Duration) float64) (x []float64) {
	var last *turn
	for i := range w.all {
		switch t := &w.all[i]; {
		case !t.clean || t.after == 0:
			last = nil
		case t.tsg == 0:
			if last != nil {
				x = append(x, f(*last, t.start.Sub(last.start)))
			}
			last = t
		}
	}
	return x
}

// slots is why the target's own turns speak against a change of its places in
// the runlist, if they do: those leave a turn as long as it was, or make it a
// whole number of timeslices where two of its places follow each other.
func slots(was, is window) string {
	b, a := math.Exp(median(logsOf(was.target))), math.Exp(median(logsOf(is.target)))
	r := max(a/b, b/a)
	if whole := math.Round(r); math.Abs(math.Log(r/whole)) <= none && whole <= 16 {
		return ""
	}
	return fmt.Sprintf("the target's own turns went from %s to %s us, which no place in the runlist does: its kernels may have changed", number(b), number(a))
}

func (v view) interleaveEvidence(result *sched.Changed, share, turns *comparison, was, is window) {
	state := result.Lamp
	if share == nil || turns == nil {
		share.put(result, "share", "share", "", &sched.Sample{Turns: len(was.target)}, &sched.Sample{Turns: len(is.target)})
		return
	}
	c, metric, what, unit, scale := share, "share", "share", "%", 100.0
	if !share.changed(v.alpha/2) && turns.changed(v.alpha/2) {
		c, metric, what, unit, scale = turns, "turns_per_s", "turns", "/s", 1/c.block.Seconds()
	}
	side := func(x []float64, turns int) *sched.Sample {
		y := make([]float64, len(x))
		for i := range x {
			y[i] = math.Exp(x[i]) * scale
		}
		return &sched.Sample{Turns: turns, Blocks: len(x), Mean: round(mean(y), 3), P50: round(median(y), 3)}
	}
	c.put(result, metric, what, unit, side(c.before, len(was.target)), side(c.after, len(is.target)))
	result.Evidence += fmt.Sprintf("; turns %.0f->%.0f/s", float64(len(was.target))/was.length().Seconds(), float64(len(is.target))/is.length().Seconds())
	result.Lamp = state
}

// part is the sharing in one block.
type part struct{ share, turns float64 }

// parts cuts a window into blocks and gives a number of each in which at least
// two TSGs had turns and no record is missing.
func (v view) parts(w window, block time.Duration, backward bool, f func(part) float64) []float64 {
	n := int(w.length() / block)
	if n == 0 {
		return nil
	}
	from := w.from
	if backward {
		from = w.to.Add(-time.Duration(n) * block)
	}
	resident := make([]float64, n)
	target := make([]float64, n)
	turns := make([]float64, n)
	tsgs := make([]map[int]bool, n)
	torn := make([]bool, n)
	for _, t := range v.fold.turns {
		if t.end <= from || t.start >= w.to {
			continue
		}
		for i := max(0, int(t.start.Sub(from)/block)); i < n; i++ {
			a, b := from.Add(time.Duration(i)*block), from.Add(time.Duration(i+1)*block)
			if a >= t.end {
				break
			}
			if tsgs[i] == nil {
				tsgs[i] = map[int]bool{}
			}
			tsgs[i][t.tsg] = true
			torn[i] = torn[i] || !t.clean
			on := float64(min(b, t.end) - max(a, t.start))
			resident[i] += on
			if t.tsg == 0 {
				target[i] += on
				if t.start >= a {
					turns[i]++
				}
			}
		}
	}
	for _, l := range v.fold.lost {
		if i := int(l.at.Sub(from) / block); l.at >= from && i < n {
			torn[i] = true
		}
	}
	var x []float64
	for i := range n {
		if len(tsgs[i]) >= 2 && !torn[i] {
			x = append(x, f(part{target[i] / resident[i], turns[i]}))
		}
	}
	return x
}
