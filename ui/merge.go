package ui

import (
	"math"

	"tsgtop/internal/sched"
)

// merged is one quantity of several TSGs together. How many, the least, the
// most, the mean and the deviation follow exactly from each one's; percentiles
// do not, and are NaN. nil: none of them has any.
func merged(ts []*sched.TSGView, of func(*sched.TSGView) *sched.Stats) *sched.Stats {
	var out sched.Stats
	var sum float64
	for _, t := range ts {
		s := of(t)
		if s == nil || s.N == 0 {
			continue
		}
		if out.N == 0 || s.Min < out.Min {
			out.Min = s.Min
		}
		if out.N == 0 || s.Max > out.Max {
			out.Max = s.Max
		}
		out.N += s.N
		sum += float64(s.N) * s.Mean
	}
	if out.N == 0 {
		return nil
	}
	out.Mean = sum / float64(out.N)
	var squares float64
	for _, t := range ts {
		if s := of(t); s != nil && s.N > 0 {
			d := s.Mean - out.Mean
			squares += float64(s.N-1)*s.StdDev*s.StdDev + float64(s.N)*d*d
		}
	}
	if out.N > 1 {
		out.StdDev = math.Sqrt(squares / float64(out.N-1))
	}
	out.P50, out.P95, out.P99 = math.NaN(), math.NaN(), math.NaN()
	return &out
}
