package sched

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestBinsHoldTheirValues(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	check := func(ns int64) {
		bin := binOf(ns)
		lo, hi := math.Exp2(float64(bin)/binsPerOctave), math.Exp2(float64(bin+1)/binsPerOctave)
		if v := float64(ns); v < lo*(1-1e-12) || v >= hi*(1+1e-12) {
			t.Fatalf("%d ns is in bin %d, which is [%v, %v)", ns, bin, lo, hi)
		}
	}
	for ns := int64(1); ns < 5000; ns++ {
		check(ns)
	}
	for range 200_000 {
		check(int64(math.Exp2(r.Float64() * 41.9)))
	}
	for _, ns := range []int64{math.MinInt64, -1, 0} {
		if binOf(ns) != 0 {
			t.Errorf("%d is in bin %d, want 0", ns, binOf(ns))
		}
	}
	for _, ns := range []int64{1 << 42, math.MaxInt64} {
		if binOf(ns) != numBins-1 {
			t.Errorf("%d is in bin %d, want the last", ns, binOf(ns))
		}
	}
	for i := 1; i < numBins; i++ { // bounds are in order, so bins do not overlap
		if binFrom(i) <= binFrom(i-1) {
			t.Fatalf("bin %d begins at %v, after one at %v", i, binFrom(i), binFrom(i-1))
		}
	}
}

// Percentiles must be within 0.1% of the exact ones, however the values lie
// and however they were split over histograms.
func TestPercentiles(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	shapes := map[string]func() float64{
		"one value": func() float64 { return 2_197_024 },
		"narrow":    func() float64 { return 2_197_000 + r.NormFloat64()*3000 },
		"wide":      func() float64 { return math.Exp(r.Float64()*18 + 1) },
		"two peaks": func() float64 { return []float64{302_000, 30_375_000}[r.IntN(2)] * (1 + 0.01*r.Float64()) },
		"tiny":      func() float64 { return float64(r.IntN(5)) },
	}
	for name, draw := range shapes {
		for _, n := range []int{1, 2, 3, 99, 100, 5000} {
			var values []float64
			var parts [7]hist
			for range n {
				ns := int64(max(0, draw()))
				values = append(values, float64(ns)/1e3)
				parts[r.IntN(len(parts))].add(ns)
			}
			slices.Sort(values)
			var p pool
			p.counts[5], p.touched[0] = 9, 1<<5 // left over from before
			p.reset()
			for i := range parts {
				p.join(&parts[i])
			}
			var joined hist
			for i := range parts {
				joined.merge(&parts[i])
			}
			var s Stats
			p.stats(&s)
			mean, m2 := 0.0, 0.0
			for _, v := range values {
				mean += v / float64(n)
			}
			for _, v := range values {
				m2 += (v - mean) * (v - mean)
			}
			sd := 0.0
			if n > 1 {
				sd = math.Sqrt(m2 / float64(n-1))
			}
			exact := func(q float64) float64 { return values[max(1, int(math.Ceil(q*float64(n))))-1] }
			for _, c := range []struct {
				what           string
				got, want, rel float64
			}{
				{"n", float64(s.N), float64(n), 0}, {"min", s.Min, values[0], 0}, {"max", s.Max, values[n-1], 0},
				{"mean", s.Mean, mean, 1e-9}, {"stddev", s.StdDev, sd, 1e-6},
				{"p50", s.P50, exact(.5), .001}, {"p95", s.P95, exact(.95), .001}, {"p99", s.P99, exact(.99), .001},
				{"n merged", float64(joined.n), float64(n), 0}, {"mean merged", joined.mean, mean, 1e-9},
			} {
				if math.Abs(c.got-c.want) > c.rel*c.want+1.1e-3 { // a nanosecond is the smallest bin
					t.Errorf("%s, %d values: %s = %v, want %v", name, n, c.what, c.got, c.want)
				}
			}
			var total uint64
			for i, b := range joined.bins {
				total += uint64(b.n)
				if i > 0 && joined.bins[i-1].bin >= b.bin {
					t.Fatalf("%s: bins out of order", name)
				}
				if uint64(b.n) != p.counts[b.bin] {
					t.Fatalf("%s: bin %d holds %d merged and %d joined", name, b.bin, b.n, p.counts[b.bin])
				}
			}
			if total != uint64(n) {
				t.Errorf("%s: %d values in bins, want %d", name, total, n)
			}
		}
	}
}

func TestShownHistogram(t *testing.T) {
	var h hist
	for _, ns := range []int64{1000, 1001, 100_000, 2_000_000} {
		h.add(ns)
	}
	var p pool
	p.join(&h)
	got := p.histogram()
	if got.Total != 4 {
		t.Errorf("total %d, want 4", got.Total)
	}
	var n uint64
	for i, b := range got.Bins {
		n += b.N
		if i > 0 && math.Abs(b.From-got.Bins[i-1].To) > 1e-9*b.From {
			t.Errorf("bin %d begins at %v, the one before ends at %v", i, b.From, got.Bins[i-1].To)
		}
		if ratio := b.To / b.From; math.Abs(ratio-math.Exp2(1./7)) > 1e-9 {
			t.Errorf("bin %d has ratio %v", i, ratio)
		}
	}
	if n != 4 || got.Bins[0].N == 0 || got.Bins[len(got.Bins)-1].N == 0 {
		t.Errorf("%d values, first %v, last %v", n, got.Bins[0], got.Bins[len(got.Bins)-1])
	}
	if b := got.Bins[0]; b.From > 1 || b.To <= 1.001 {
		t.Errorf("1 us is not in the first bin %v", b)
	}
}
