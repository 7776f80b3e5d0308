package verdict

import (
	"math"
	"math/rand/v2"
	"testing"
)

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got-want) <= within) {
		t.Errorf("%s: %.6g, want %.6g", what, got, want)
	}
}

func TestPermutationIsExactWhereItCanBe(t *testing.T) {
	s := sides{before: []float64{1, 2, 3, 4, 5}, after: []float64{11, 12, 13, 14}}
	near(t, "all apart", s.permute(1), 1.0/126, 1e-12) // 9 over 4
	near(t, "either way", s.permute(0), 1.0/126, 1e-12)
	near(t, "the wrong way", s.permute(-1), 1, 1e-12)
	if p := (sides{before: make([]float64, 30), after: make([]float64, 30)}).permute(1); p < 0.99 {
		t.Errorf("all equal: p %g", p)
	}
}

// Under the null, p is below a level as often as the level says.
func TestPermutationHoldsItsLevel(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	below, n := 0, 200
	for range n {
		s := sides{before: make([]float64, 24), after: make([]float64, 9)}
		for i := range s.before {
			s.before[i] = r.NormFloat64()
		}
		for i := range s.after {
			s.after[i] = 3 * r.NormFloat64() // of another spread
		}
		if s.permute(1) < 0.05 {
			below++
		}
	}
	if below < 3 || below > 22 {
		t.Errorf("p below 0.05 in %d of %d null trials", below, n)
	}
}

func TestPermutationReachesWhatALookSpends(t *testing.T) {
	s := sides{before: make([]float64, 40), after: make([]float64, 12)}
	for i := range s.after {
		s.after[i] = 1
	}
	for _, l := range looks {
		if p := s.permute(1); p > l.spend {
			t.Errorf("the finest p is %g, a look spends %g", p, l.spend)
		}
	}
	total := 0.0
	for _, l := range looks {
		total += l.spend
	}
	near(t, "spent in all", total, 0.001, 1e-12)
}

func TestAtLeast(t *testing.T) {
	near(t, "three of three coins", atLeast([]float64{.5, .5, .5}, 3), 0.125, 1e-12)
	near(t, "one of two", atLeast([]float64{.1, .2}, 1), 0.28, 1e-12)
	near(t, "none", atLeast([]float64{.1}, 0), 1, 0)
}

func TestDependence(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for _, keep := range []float64{0, 0.5, 0.9} {
		x, v := make([]float64, 5000), 0.0
		for i := range x {
			v = keep*v + math.Sqrt(1-keep*keep)*r.NormFloat64()
			x[i] = v
		}
		want := (1 + keep) / (1 - keep)
		near(t, "inflation", dependence(x), want, want/3)
	}
}

func TestAbrupt(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	series := func(n int, level float64) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = level + 0.05*r.NormFloat64()
		}
		return x
	}
	whole := append(series(300, 0), series(300, 1)...)
	for _, row := range []struct {
		call int
		want bool
	}{{300, true}, {299, true}, {301, true}, {290, false}, {310, false}, {150, false}, {450, false}} {
		if got := abrupt(whole[:row.call], whole[row.call:]); got != row.want {
			t.Errorf("a jump at 300, the call at %d: abrupt %v, want %v", row.call, got, row.want)
		}
	}
}

// A drift is not steady, wherever in it the call comes.
func TestSteady(t *testing.T) {
	for call := 6; call <= 34; call++ {
		var s sides
		for i := range 40 {
			if i < call {
				s.before = append(s.before, float64(i))
			} else {
				s.after = append(s.after, float64(i))
			}
		}
		c := comparison{sides: s, d: mean(s.after) - mean(s.before)}
		if ok, _ := c.steady(); ok {
			t.Errorf("a drift with the call at %d of 40 passes for steady", call)
		}
	}
	c := comparison{sides: sides{before: []float64{0, .1, 0, .1, 0, .1}, after: []float64{1, 1.1, 1, 1.1}}, d: 1}
	if ok, side := c.steady(); !ok {
		t.Errorf("a step is on the move %s the call", side)
	}
}
