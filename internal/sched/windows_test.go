package sched

import (
	"math/rand/v2"
	"testing"
)

// A brute-force account of the same spans and turns must agree in every window.
func TestRingAgainstBruteForce(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	type span struct {
		a, b     Time
		switched bool
	}
	for trial := range 50 {
		var g ring
		var share secondsRing
		var spans []span
		var turns []Time
		now := t0
		for range 400 {
			now += Time(r.Int64N(int64(80 * ms)))
			if r.IntN(50) == 0 {
				now += Time(r.Int64N(int64(20 * second)))
			}
			a := now
			now += Time(r.Int64N(int64(30 * ms)))
			if r.IntN(30) == 0 {
				now += Time(r.Int64N(int64(15 * second)))
			}
			sp := span{a, now, r.IntN(2) == 0}
			spans = append(spans, sp)
			g.addSpan(sp.a, sp.b, sp.switched)
			share.addSpan(sp.a, sp.b)
			g.addTurn(now)
			turns = append(turns, now)
		}
		for w := range NumWindows {
			from := windowStart(w, now)
			var want tally
			for _, sp := range spans {
				if d := int64(sp.b - max(sp.a, from)); d > 0 {
					want.competed += d
					if sp.switched {
						want.switched += d
					}
				}
			}
			for _, at := range turns {
				if at >= from {
					want.turns++
				}
			}
			if got := g.sum(w, now); got != want {
				t.Fatalf("trial %d, window %v: %+v, want %+v", trial, w, got, want)
			}
		}
		for i := int64(now/second) - 20; i <= int64(now/second); i++ {
			var want int64
			for _, sp := range spans {
				if d := int64(min(sp.b, Time(i+1)*second) - max(sp.a, Time(i)*second)); d > 0 {
					want += d
				}
			}
			if got, _ := share.at(i); got != want {
				t.Fatalf("trial %d: second %d has %d ns, want %d", trial, i, got, want)
			}
		}
	}
}

// Values must be counted in each window for as long as it covers them, exactly once.
func TestHistogramWindows(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for trial := range 50 {
		parts := [2]rowStats{} // one is merged into the other at the end
		type value struct{ at Time }
		var values []value
		now := t0
		for range 500 {
			now += Time(r.Int64N(int64(60 * ms)))
			if r.IntN(100) == 0 {
				now += Time(r.Int64N(int64(12 * second)))
			}
			p := &parts[0]
			if trial%2 == 1 && r.IntN(2) == 1 {
				p = &parts[1]
			}
			p.add(qOff, now, 1000)
			p.addTurn(now)
			values = append(values, value{now})
		}
		parts[0].merge(&parts[1])
		var p pool
		for _, later := range []Time{0, 100 * ms, 900 * ms, 5 * second, 30 * second} {
			end := now + later
			for w := range NumWindows {
				var want uint64
				for _, v := range values {
					if v.at >= windowStart(w, end) {
						want++
					}
				}
				if parts[0].collect(&p, qOff, w, end); p.n != want {
					t.Fatalf("trial %d, window %v, %v later: %d values, want %d", trial, w, later, p.n, want)
				}
				if got := parts[0].sum(w, end).turns; got != want {
					t.Fatalf("trial %d, window %v, %v later: %d turns, want %d", trial, w, later, got, want)
				}
				if parts[0].collect(&p, qWait, w, end); p.n != 0 {
					t.Fatalf("values of another quantity")
				}
			}
		}
	}
}
