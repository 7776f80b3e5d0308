package trial

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Where nothing changes, an effect is claimed in at most 1 of 200 experiments; an
// effect of 30% is seen.
func TestEffectRates(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	claimed, same, seen := 0, 0, 0
	const trials = 1000
	for range trials {
		var base, value, more []float64
		for range 5 {
			b := 1000 * math.Exp(0.02*r.NormFloat64())
			base = append(base, b)
			value = append(value, 1000*math.Exp(0.02*r.NormFloat64()))
			more = append(more, 1300*math.Exp(0.02*r.NormFloat64()))
		}
		switch effectOf("x", base, value).shift() {
		case shiftUp, shiftDown:
			claimed++
		case shiftNone:
			same++
		}
		if effectOf("x", base, more).shift() == shiftUp {
			seen++
		}
	}
	if claimed > trials/200 || seen < trials*99/100 {
		t.Errorf("of %d: %d false effects, %d shown to be none, %d of 30%% seen", trials, claimed, same, seen)
	}
	if e := effectOf("x", []float64{1, 2}, []float64{1, 2}); e.CI != nil || e.Why == "" {
		t.Errorf("two pairs: %+v", e)
	}
	if e := effectOf("x", []float64{0, 1, 1}, []float64{1, 1, 1}); e.CI != nil {
		t.Errorf("a zero: %+v", e)
	}
}
