package steer

import (
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"

	"tsgtop/internal/sched"
)

// A context that is alone on its engine is not switched, but its timeslice starts
// over and over again, and another that comes waits for the end of the one under
// way. So the lengths of its turns, however long, end in a beat: a multiple of the
// timeslice, and what a switch takes. On an H200, of turns of 2 to 19 ms beside an
// LC process that came at random moments: strength 0.86 to 0.92 at the beat of
// 2048 us, and after it was set to 200 us 0.02 there and 0.45 to 0.58 at the beat
// of 200 us. The beat wears off where kernels end, because the timeslice stands
// still while there is nothing to run.

// units are how many ns of the hardware's are one us of a timeslice: 1024 on an
// H200 (measured), 1000 for chips that may count otherwise.
var units = []float64{1.024, 1}

// asideOf are other beats, as parts of one: where lengths are as alike to these as
// to the beat, they are alike for another reason, such as an LC process that comes
// like a clock.
var asideOf = []float64{0.55, 0.62, 0.70, 0.76, 1.30, 1.38, 1.45, 1.62}

// What a beat asks for.
const (
	leastBeats  = 30  // turns
	leastStrong = 0.3 // strength
	standsOut   = 2.0 // times the median strength of other beats
	leastZ      = 12  // turns times squared strength: chance alone gives that once in 160,000
	worn        = 0.5 // of the strength before, at most: the beat has gone
	stays       = 0.8 // of the strength before, at least: the beat is still there
)

// beat is how well lengths keep to a period.
type beat struct {
	n        int
	strength float64 // 0: not at all; 1: all are a multiple of it, and one constant
	aside    float64 // median strength of other periods
}

func (b beat) clear() bool {
	return b.n >= leastBeats && b.strength >= leastStrong && b.strength >= standsOut*b.aside && float64(b.n)*b.strength*b.strength >= leastZ
}

// around is the sum of the unit vectors that lengths make around a period.
func around(lengths []float32, period float64) (z complex128) {
	for _, x := range lengths {
		z += cmplx.Rect(1, 2*math.Pi*float64(x)/period)
	}
	return z
}

func strength(lengths []float32, period float64) float64 {
	if len(lengths) == 0 {
		return 0
	}
	return cmplx.Abs(around(lengths, period)) / float64(len(lengths))
}

func beatOf(lengths []float32, period float64) beat {
	b := beat{n: len(lengths), strength: strength(lengths, period)}
	var aside []float64
	for _, part := range asideOf {
		aside = append(aside, strength(lengths, part*period))
	}
	slices.Sort(aside)
	b.aside = (aside[len(aside)/2-1] + aside[len(aside)/2]) / 2
	return b
}

func lengthsOf(blocks []Block) (out []float32) {
	for _, b := range blocks {
		out = append(out, b.Left...)
	}
	return out
}

// beats judges by the beat in which a best-effort process leaves for an LC one:
// yes where that of the old timeslice was there and has gone, and that of the new
// one is there, or is too short to be seen: then the GSP's counters must say that
// kernels have not become short. No where the old one stays.
func beats(before, after []Block, lim Limits) (v Verdict) {
	v.State = sched.LampUnknown
	was, is := lengthsOf(before), lengthsOf(after)
	if len(was) < leastBeats || len(is) < leastBeats {
		return v
	}
	unit := units[0]
	for _, u := range units[1:] {
		if strength(was, u*float64(lim.Old)) > strength(was, unit*float64(lim.Old)) {
			unit = u
		}
	}
	old, next := unit*float64(lim.Old), unit*float64(lim.New)
	o0, o1, n1 := beatOf(was, old), beatOf(is, old), beatOf(is, next)
	if !o0.clear() {
		v.Why = fmt.Sprintf("and their ends keep to no beat of %.0f us (strength %.2f, others %.2f)", old, o0.strength, o0.aside)
		return v
	}
	v.Why = fmt.Sprintf("when LC came, its turns ended in the beat of the old timeslice (%.0f us) with strength %.2f before and %.2f since, in that of the new one (%.0f us) with %.2f since",
		old, o0.strength, o1.strength, next, n1.strength)
	switch {
	case o1.clear() && o1.strength >= stays*o0.strength:
		v.State = sched.LampNo
	case o1.strength <= worn*o0.strength:
		if p := permuteBeat(before, after, old); p <= alpha {
			v.State, v.Part, v.NeedsCounts = sched.LampYes, 1-o1.strength/o0.strength, !n1.clear()
			v.Why += fmt.Sprintf(" (p %.2g)", p)
		}
	}
	return v
}

// permuteBeat is the one-sided p that the beat is weaker after, by relabelling
// blocks. Never finer than 1/20,000.
func permuteBeat(before, after []Block, period float64) float64 {
	type sum struct {
		z complex128
		n int
	}
	var x []sum
	n := 0
	for i, side := range [][]Block{before, after} {
		for _, b := range side {
			if len(b.Left) > 0 {
				x = append(x, sum{around(b.Left, period), len(b.Left)})
				n += i
			}
		}
	}
	m := len(x) - n
	if n < 4 || m < 4 {
		return 1
	}
	weaker := func() float64 {
		var a, b sum
		for _, s := range x[:m] {
			a.z, a.n = a.z+s.z, a.n+s.n
		}
		for _, s := range x[m:] {
			b.z, b.n = b.z+s.z, b.n+s.n
		}
		return cmplx.Abs(a.z)/float64(a.n) - cmplx.Abs(b.z)/float64(b.n)
	}
	seen := weaker()
	r := rand.New(rand.NewPCG(uint64(n), uint64(m)))
	const tries = 19999
	atLeast := 1
	for range tries {
		r.Shuffle(len(x), func(i, j int) { x[i], x[j] = x[j], x[i] })
		if weaker() >= seen-1e-9 {
			atLeast++
		}
	}
	return float64(atLeast) / (tries + 1)
}
