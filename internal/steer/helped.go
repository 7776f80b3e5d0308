package steer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"tsgtop/internal/sched"
)

// Reading is one number that a probe printed.
type Reading struct {
	At    sched.Time
	Name  string // of what; empty where it printed bare numbers
	Value float64
}

// What HELPED asks for.
const (
	helpedLeast  = 200                    // readings on each side
	helpedBlock  = 500 * time.Millisecond // readings of one block hang together
	helpedBlocks = 4
)

// Helped compares a latency before and during, by its p99: yes where it fell by
// at least 10%, no where it did not or rose, by a 99% interval from a bootstrap
// of blocks.
func Helped(name string, before, during []Reading) sched.Lamp {
	unknown := func(format string, args ...any) sched.Lamp {
		return sched.Lamp{State: sched.LampUnknown, Why: fmt.Sprintf(format, args...)}
	}
	if name == "" {
		name = "its latency"
	}
	if len(before) < helpedLeast || len(during) < helpedLeast {
		return unknown("the probe gave %d numbers before and %d during; %d are needed on each side for a p99", len(before), len(during), helpedLeast)
	}
	b, d := blocksOf(before), blocksOf(during)
	if len(b) < helpedBlocks || len(d) < helpedBlocks {
		return unknown("the probe's numbers span %d and %d half seconds; %d are needed on each side", len(b), len(d), helpedBlocks)
	}
	p99 := func(blocks [][]float64) float64 {
		x := slices.Concat(blocks...)
		slices.Sort(x)
		return x[min(len(x)-1, len(x)*99/100)]
	}
	was, is := p99(b), p99(d)
	if was <= 0 {
		return unknown("%s had a p99 of %g before: no latency", name, was)
	}
	r := rand.New(rand.NewPCG(uint64(len(before)), uint64(len(during))))
	pick := func(blocks [][]float64) float64 {
		x := make([][]float64, len(blocks))
		for i := range x {
			x[i] = blocks[r.IntN(len(blocks))]
		}
		return p99(x)
	}
	ratios := make([]float64, 1000)
	for i := range ratios {
		ratios[i] = pick(d) / max(pick(b), 1e-9)
	}
	slices.Sort(ratios)
	low, high := ratios[5], ratios[994]
	words := fmt.Sprintf("%s p99 %.4g -> %.4g (x%.2f, 99%% CI %.2f-%.2f, %d and %d numbers)", name, was, is, is/was, low, high, len(before), len(during))
	switch {
	case high < 1 && is <= 0.9*was:
		return sched.Lamp{State: sched.LampYes, Why: words}
	case low > 1:
		return sched.Lamp{State: sched.LampNo, Why: words + ": it got worse"}
	case low >= 0.95 && high <= 1.05:
		return sched.Lamp{State: sched.LampNo, Why: words}
	}
	return unknown("%s: neither shown to be better nor to be the same", words)
}

// blocksOf cuts readings into stretches of time.
func blocksOf(x []Reading) [][]float64 {
	var out [][]float64
	last := int64(-1)
	for _, v := range x {
		if i := int64(v.At.Sub(x[0].At) / helpedBlock); i != last {
			out, last = append(out, nil), i
		}
		out[len(out)-1] = append(out[len(out)-1], v.Value)
	}
	return out
}

// DistOfReadings sums up readings; nil where there are none.
func DistOfReadings(x []Reading) *Dist {
	s := &Samples{}
	for _, v := range x {
		s.N++
		s.Kept = append(s.Kept, v.Value)
	}
	return DistOf(s)
}
