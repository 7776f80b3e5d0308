package verdict

import (
	"math"
	"slices"
	"time"

	"tsgtop/internal/sched"
	"tsgtop/internal/stat"
)

// span is a stretch of the trace.
type span struct{ from, to sched.Time }

func (s span) length() time.Duration   { return s.to.Sub(s.from) }
func (s span) holds(t sched.Time) bool { return t > s.from && t <= s.to }

// What a comparison needs at the least, and where blocks begin.
const (
	blockLeast  = 50 * time.Millisecond // shortest block
	blockTurns  = 6                     // turns that a block should hold in the mean
	blockFewest = 3                     // turns without which a block says nothing
	beforeLeast = 5                     // blocks
	afterLeast  = 4
	tooAlike    = 0.25 // correlation of neighbouring blocks over which they are made longer
)

// level is that of the interval that is shown; half of the rest is on each side.
const level = 0.999

// Effects, as ratios: what counts as one, and what counts as none.
var (
	effect = math.Log(1 / 0.90) // 10% less; 10% more is within it by symmetry of the ratio
	rise   = math.Log(1.10)
	none   = math.Log(1.05)
)

// comparison is two windows compared by one number per block.
type comparison struct {
	sides
	block     time.Duration
	lag1      float64
	d         float64 // mean difference of logarithms, after less before
	low, high float64 // its interval at level
	p         float64 // one-sided block permutation; 1 where it was not worth asking
	direction int
}

func (c comparison) ratio() float64 { return math.Exp(c.d) }

// compare makes blocks by cut, longer and longer until neighbours are no more
// alike than chance makes them or few blocks are left, and compares them. It is
// nil where there are too few.
func compare(block time.Duration, direction int, cut func(time.Duration) sides) *comparison {
	c := &comparison{block: block, direction: direction, p: 1}
	c.sides = cut(block)
	if len(c.before) < beforeLeast || len(c.after) < afterLeast {
		return nil
	}
	for c.lag1 = c.sides.lag1(); c.lag1 > tooAlike; c.lag1 = c.sides.lag1() {
		longer := cut(c.block * 2)
		if len(longer.before) < beforeLeast || len(longer.after) < afterLeast {
			break
		}
		c.sides, c.block = longer, c.block*2
	}
	var se, df float64
	c.d, se, df = c.welch(c.lag1)
	wide := se * stat.StudentQuantile((1-level)/2, df)
	c.low, c.high = c.d-wide, c.d+wide
	if c.low > 0 || c.high < 0 {
		c.p = c.permute(direction)
	}
	return c
}

// changed tells whether the comparison shows a change of at least 10% in the
// direction, at a one-sided level: its p is below the level, its interval
// excludes 1, and the ratio is at least 10% off, or lies so near it that the
// interval reaches 10% and stays clear of what counts as none.
func (c *comparison) changed(alpha float64) bool {
	if c == nil || c.p > alpha || c.low <= 0 && c.high >= 0 {
		return false
	}
	if c.direction != 0 && c.d*float64(c.direction) < 0 {
		return false
	}
	least := effect
	near, far := -c.high, -c.low
	if c.d > 0 {
		least, near, far = rise, c.low, c.high
	}
	return math.Abs(c.d) >= least || far >= least && near >= none
}

// same tells whether equivalence is shown: the whole interval within 5% of 1.
func (c *comparison) same() bool { return c != nil && c.low >= -none && c.high <= none }

// steady tells whether neither side was itself on the move by more than two fifths
// of what the sides differ by: a workload that drifts or jumps inside a window
// is not an effect of the command.
func (c *comparison) steady() (ok bool, side string) {
	for _, s := range []struct {
		x    []float64
		name string
	}{{c.before, "before"}, {c.after, "after"}} {
		n := len(s.x)
		if math.Abs(mean(s.x[n-n/2:])-mean(s.x[:n/2])) > 0.4*math.Abs(c.d) {
			return false, s.name
		}
	}
	return true, ""
}

// What abrupt asks of the turns, in units of log-likelihood.
const (
	atCall  = 6.0  // a change elsewhere may be at most so much more likely than one at the call
	atAll   = 20.0 // and a change at the call must be so much more likely than none
	callOff = 1    // turns: a value may take hold one turn late
	callEnd = 3    // turns on each side that a change must leave
)

// abrupt tells whether a change is at the call, turn by turn. The numbers are
// laid on a scale with 0 at the median before and 1 at the median after, and cut
// off there, so that single odd turns count for little. On it, a change at the
// call must explain the whole series about as well as a change at any other
// turn does (a workload that changes by itself would have to do so within a few
// turns of the call), and much better than none. Turns that hang together,
// about the best explanation, count for fewer.
func abrupt(before, after []float64) bool {
	b, a := median(slices.Clone(before)), median(slices.Clone(after))
	n, all := len(before), len(before)+len(after)
	if a == b || n < 2*callEnd || len(after) < 2*callEnd {
		return false
	}
	y := make([]float64, 0, all)
	sums := make([]float64, 1, all+1)
	for _, x := range slices.Concat(before, after) {
		v := max(0, min(1, (x-b)/(a-b)))
		y = append(y, v)
		sums = append(sums, sums[len(sums)-1]+v)
	}
	// explained is how much of the sum of squares a change before turn k takes
	// away, the best means on each side given.
	explained := func(k int) float64 {
		l, r := float64(k), float64(all-k)
		d := sums[k]/l - (sums[all]-sums[k])/r
		return d * d * l * r / float64(all)
	}
	at, best, here := 0, 0.0, 0.0
	for k := callEnd; k <= all-callEnd; k++ {
		e := explained(k)
		if e > best {
			at, best = k, e
		}
		if k >= n-callOff && k <= n+callOff {
			here = max(here, e)
		}
	}
	if at == 0 {
		return false
	}
	rest, square := make([]float64, all), 0.0
	mb, ma := sums[at]/float64(at), (sums[all]-sums[at])/float64(all-at)
	for i, v := range y {
		rest[i] = v - mb
		if i >= at {
			rest[i] = v - ma
		}
		square += rest[i] * rest[i]
	}
	unit := 2 * max(square/float64(all), 0.02*0.02) * dependence(rest)
	return best-here <= atCall*unit && here >= atAll*unit
}

// dependence is by how much the variance of a mean of these numbers is larger
// than if they were independent: their integrated autocorrelation, summed while
// pairs of neighbouring lags are positive, at least 1.
func dependence(x []float64) float64 {
	at := func(lag int) (s float64) {
		for i := lag; i < len(x); i++ {
			s += x[i] * x[i-lag]
		}
		return s
	}
	variance := at(0)
	if variance == 0 {
		return 1
	}
	sum := 1.0
	for lag := 1; lag+1 < len(x)/4; lag += 2 {
		pair := (at(lag) + at(lag+1)) / variance
		if pair <= 0 {
			break
		}
		sum += 2 * pair
	}
	return max(1, sum)
}

// logsOf gives the logarithms of the lengths in us.
func logsOf(turns []turn) []float64 {
	x := make([]float64, len(turns))
	for i, t := range turns {
		x[i] = math.Log(max(1, float64(t.length())) / 1e3)
	}
	return x
}

// blockMedians cuts a span into blocks, from its end that is at the call, and
// gives the median of the logarithm of residency in each that has enough turns.
func blockMedians(turns []turn, s span, block time.Duration, backward bool) []float64 {
	n := int(s.length() / block)
	logs := make([][]float64, n)
	all := logsOf(turns)
	for i, t := range turns {
		k := int(t.start.Sub(s.from) / block)
		if backward {
			k = n - 1 - int((s.to.Sub(t.start)-1)/block)
		}
		if k >= 0 && k < n {
			logs[k] = append(logs[k], all[i])
		}
	}
	var medians []float64
	for _, x := range logs {
		if len(x) >= blockFewest {
			medians = append(medians, median(x))
		}
	}
	return medians
}

// compareResidency compares the lengths of turns before and after.
func compareResidency(before, after []turn, was, is span, direction int) *comparison {
	if len(before) == 0 || len(after) == 0 {
		return nil
	}
	period := max(was.length()/time.Duration(len(before)), is.length()/time.Duration(len(after)))
	return compare(max(blockLeast, blockTurns*period), direction, func(block time.Duration) sides {
		return sides{blockMedians(before, was, block, true), blockMedians(after, is, block, false)}
	})
}
