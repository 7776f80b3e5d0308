package ui

import (
	"math"
	"strings"
	"testing"

	"tsgtop/internal/sched"
)

// of gives the statistics of values, taken the plain way.
func of(values ...float64) *sched.Stats {
	s := &sched.Stats{N: uint64(len(values)), Min: math.Inf(1)}
	for _, v := range values {
		s.Min, s.Max = min(s.Min, v), max(s.Max, v)
		s.Mean += v / float64(len(values))
	}
	for _, v := range values {
		s.StdDev += (v - s.Mean) * (v - s.Mean)
	}
	if s.N > 1 {
		s.StdDev = math.Sqrt(s.StdDev / float64(s.N-1))
	} else {
		s.StdDev = 0
	}
	return s
}

func TestMergedIsAsIfCountedTogether(t *testing.T) {
	a, b, c := []float64{3, 5, 4.5}, []float64{200}, []float64{17, 16, 1, 90}
	var ts []*sched.TSGView
	for _, vs := range [][]float64{a, b, c} {
		v := &sched.TSGView{}
		v.Score[0].Residency = of(vs...)
		ts = append(ts, v)
	}
	ts = append(ts, &sched.TSGView{}) // one without any
	got := merged(ts, func(t *sched.TSGView) *sched.Stats { return t.Score[0].Residency })
	want := of(append(append(a, b...), c...)...)
	if got.N != want.N || got.Min != want.Min || got.Max != want.Max || math.Abs(got.Mean-want.Mean) > 1e-9 || math.Abs(got.StdDev-want.StdDev) > 1e-9 {
		t.Errorf("%+v, want %+v", got, want)
	}
	if !math.IsNaN(got.P50) || !math.IsNaN(got.P95) || !math.IsNaN(got.P99) {
		t.Errorf("percentiles that cannot be known: %+v", got)
	}
	if merged(ts[3:], func(t *sched.TSGView) *sched.Stats { return t.Score[0].Residency }) != nil {
		t.Error("something of nothing")
	}
}

func TestScoreOfAProcess(t *testing.T) {
	h := start(t, 160, 40, oneGPU, nil).press("3", "g")
	for _, l := range strings.Split(h.plain(), "\n") {
		if strings.Contains(l, "480 serve  2 TSGs") {
			if f := strings.Fields(l); !strings.Contains(l, "2199µs") || !strings.Contains(l, "47.2%") || strings.Contains(l, "NaN") || strings.Count(l, "–") != 3 {
				t.Errorf("the row of a process: %q", f)
			}
			return
		}
	}
	t.Errorf("no row of a process:\n%s", h.plain())
}
