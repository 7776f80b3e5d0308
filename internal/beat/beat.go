// Package beat tells of a TSG that has the engine to itself most of the time whether
// its timeslice counts.
//
// A context that is alone on its engine is not switched, but its timeslice starts
// over and over again, and another that comes waits for the end of the one under
// way. So the lengths of its turns, however long, end in a beat: a multiple of the
// timeslice, and what a switch takes. On an H200 (driver 580.159.04), of turns of 2
// to 19 ms beside a process that came at random moments: strength 0.76 to 0.92 at the
// beat of 2048 us, and after it was set to 200 us 0.02 to 0.03 there and 0.39 to 0.58
// at the beat of 200 us. A beat wears off where kernels end, because the timeslice
// stands still while there is nothing to run; so a short one does not show.
//
// It is pure: the same input gives the same answer.
package beat

import (
	"math"
	"math/cmplx"
	"slices"

	"tsgtop/internal/stat"
)

// units are how many us of the hardware's are one of a timeslice: 1.024 on an H200
// (measured), 1 for chips that may count otherwise.
var units = []float64{1.024, 1}

// aside are other periods, as parts of one: where lengths are as alike to these as
// to the beat, they are alike for another reason, such as a process that comes like
// a clock.
var aside = []float64{0.55, 0.62, 0.70, 0.76, 1.30, 1.38, 1.45, 1.62}

// What a beat asks for.
const (
	leastTurns   = 30
	leastStrong  = 0.3  // strength
	standsOut    = 2.0  // times the median strength of other periods
	leastZ       = 12   // turns times squared strength: chance alone gives that once in 160,000
	worn         = 0.5  // of the strength on the other side, at most: it is not there
	stays        = 0.8  // of the strength before, at least: it is still there
	newBeat      = 0.25 // more strength than before at a multiple of the old beat: a new one;
	newPart      = 0.4  // or, where the old one is weak, so much of its strength
	leastSame    = 60   // turns after, to know that there is none
	mostMultiple = 64
	longest      = 8192 * 1.024 // us, of a beat that a shorter one may be a part of
)

// Beat is how well lengths keep to a period.
type Beat struct {
	Turns    int
	Strength float64 // 0: not at all; 1: all are a multiple of it, and one constant
	Aside    float64 // median strength of other periods
}

// Clear tells whether the beat is there, and for no other reason that lengths are alike.
func (b Beat) Clear() bool {
	return b.Turns >= leastTurns && b.Strength >= leastStrong && b.Strength >= standsOut*b.Aside && float64(b.Turns)*b.Strength*b.Strength >= leastZ
}

// Of is the beat of lengths at a period, both in us.
func Of(lengths []float64, period float64) Beat {
	b := Beat{Turns: len(lengths), Strength: strength(lengths, period)}
	var others []float64
	for _, part := range aside {
		others = append(others, strength(lengths, part*period))
	}
	slices.Sort(others)
	b.Aside = (others[len(others)/2-1] + others[len(others)/2]) / 2
	return b
}

// Lowest tells whether a clear beat at a period is that period's own: lengths that keep
// to a longer beat, of about a multiple of it, keep to it, too. Longer ones are looked
// for up to 8.4 ms (RM's 8192 us); of a beat too short for that it is not known.
func Lowest(lengths []float64, period float64) (b Beat, own bool) {
	b = Of(lengths, period)
	if !b.Clear() || period*mostMultiple < longest {
		return b, false
	}
	for m := 2.0; m <= 8 || m*period <= longest; m++ {
		if strength(lengths, m*period) > worn*b.Strength {
			return b, false
		}
	}
	return b, true
}

// around is the sum of the unit vectors that lengths make around a period.
func around(lengths []float64, period float64) (z complex128) {
	for _, x := range lengths {
		z += cmplx.Rect(1, 2*math.Pi*x/period)
	}
	return z
}

func strength(lengths []float64, period float64) float64 {
	if len(lengths) == 0 {
		return 0
	}
	return cmplx.Abs(around(lengths, period)) / float64(len(lengths))
}

// Change is how the turns of a TSG kept to the beats of two timeslices before and
// after the one was set to the other.
type Change struct {
	Old, New                                 float64 // periods, us
	OldBefore, OldAfter, NewBefore, NewAfter Beat
	// P is the one-sided chance of the change of the beat that tells, by relabelling
	// blocks; never finer than 1/20,000, 1 where that was not worth asking.
	P float64
	// Now is the beat after, us, where it is seen: the new timeslice's, or half of that,
	// as an H200 does for 8192 us; 0: it is not seen.
	Now float64

	before, after [][]float64 // blocks of lengths
	was, is       []float64   // all lengths of each side
}

// Compare compares the lengths (us) of turns that another's coming ended, by blocks
// of time, before and after a timeslice (us) was set to another, or to what it was.
// Nil where there are fewer than 30 on a side.
func Compare(before, after [][]float64, old, new uint64) *Change {
	was, is := slices.Concat(before...), slices.Concat(after...)
	if len(was) < leastTurns || len(is) < leastTurns || old == 0 || new == 0 {
		return nil
	}
	unit := units[0]
	for _, u := range units[1:] {
		if b := Of(was, u*float64(old)); b.Clear() && b.Strength > strength(was, unit*float64(old)) {
			unit = u
		}
	}
	c := &Change{Old: unit * float64(old), New: unit * float64(new), P: 1, before: before, after: after, was: was, is: is}
	c.OldBefore, c.OldAfter, c.NewBefore, c.NewAfter = Of(was, c.Old), Of(is, c.Old), Of(was, c.New), Of(is, c.New)
	switch {
	case !c.Known() || c.Old == c.New:
	case c.shorter():
		// What is left of the old beat keeps to a whole part of it, too.
		if c.NewAfter.Clear() && c.NewAfter.Strength >= 2*c.OldAfter.Strength {
			c.Now = c.New
		}
		if c.OldAfter.Strength <= worn*c.OldBefore.Strength && (c.Now > 0 || c.wornAmongAlike()) {
			c.P = permute(before, after, c.Old)
		}
	default:
		c.longer()
	}
	return c
}

// wornAmongAlike tells whether the old beat has worn off among turns of like length,
// too: longer ones hold more ends of kernels, which blur it, so that it wears off also
// where the other merely comes less often.
func (c *Change) wornAmongAlike() bool {
	sorted := slices.Sorted(slices.Values(c.was))
	most := sorted[len(sorted)/2]
	short := func(lengths []float64) (out []float64) {
		for _, x := range lengths {
			if x <= most {
				out = append(out, x)
			}
		}
		return out
	}
	a, b := short(c.was), short(c.is)
	return len(a) >= leastTurns && len(b) >= leastTurns && strength(b, c.Old) <= worn*strength(a, c.Old)
}

// longer looks for the beat of a longer timeslice, and of half of it.
func (c *Change) longer() {
	periods := []float64{c.New, c.New / 2}
	if c.New < 2.2*c.Old {
		periods = periods[:1] // half of it is no longer than the old one
	}
	for _, p := range periods {
		if b := Of(c.is, p); b.Clear() && strength(c.was, p) <= worn*b.Strength {
			c.Now, c.P = p, min(1, float64(len(periods))*permute(c.after, c.before, p))
			return
		}
	}
}

func (c *Change) shorter() bool { return c.New < c.Old }

// Known tells whether the beat of the old timeslice was there before: without it,
// nothing can be told.
func (c *Change) Known() bool { return c.OldBefore.Clear() }

// Changed tells, at a one-sided level, whether the timeslice has changed. Where that
// is only seen by the old beat's being gone, seen is false: kernels that have become
// short look the same, and another witness must say that they have not.
//
// Lengths that keep to a long beat keep to one that is a whole part of it, too. So of
// a shorter timeslice it is the old beat that tells, of a longer one the new.
func (c *Change) Changed(alpha float64) (changed, seen bool) {
	return c.P <= alpha, c.Now > 0
}

// Unchanged tells whether the turns still keep to the old beat, and to no multiple of
// it that they did not keep to before: whatever a hardware makes of a timeslice.
func (c *Change) Unchanged() bool {
	if !c.Known() || c.OldAfter.Turns < leastSame || !c.OldAfter.Clear() || c.OldAfter.Strength < stays*c.OldBefore.Strength || !c.telling() {
		return false
	}
	// Turns that keep to a multiple of the old beat keep to the old one, too.
	most := 2 * max(2, c.New/c.Old)
	for m := 2.0; m <= min(most, mostMultiple); m++ {
		if strength(c.is, m*c.Old)-strength(c.was, m*c.Old) > min(newBeat, newPart*c.OldAfter.Strength) {
			return false
		}
	}
	return true
}

// telling tells whether turns under the new timeslice would be seen to be under it:
// 2000 instead of 2048 us leaves so few beats as good as they were.
func (c *Change) telling() bool {
	if c.Old == c.New || c.NewBefore.Strength <= worn*c.OldBefore.Strength {
		return true
	}
	over := cmplx.Phase(around(c.was, c.Old)) / (2 * math.Pi) * c.Old // what a switch takes
	if over < 0 {
		over += c.Old
	}
	obeyed, short := make([]float64, len(c.was)), 0
	for i, x := range c.was {
		_, at := math.Modf(float64(i) * math.Phi) // the other came somewhere in the last timeslice
		came := (max(1, math.Round((x-over)/c.Old)) - at) * c.Old
		obeyed[i] = math.Ceil(came/c.New)*c.New + over
	}
	for _, x := range c.is {
		if x < 0.98*c.New/2 {
			short++
		}
	}
	return strength(obeyed, c.Old) <= worn*c.OldBefore.Strength || !c.shorter() && 2*short >= len(c.is)
}

// Gone is the part of the turns that ended in the old beat and do so no more.
func (c *Change) Gone() float64 { return max(0, 1-c.OldAfter.Strength/c.OldBefore.Strength) }

// Series gives, turn by turn, how near each is to the beat that tells (1: in it, -1:
// right between two): for who asks whether the change came at the call.
func (c *Change) Series() (before, after []float64) {
	period, of := c.Old, c.was
	if !c.shorter() && c.Now > 0 {
		period, of = c.Now, c.is
	}
	phase := cmplx.Phase(around(of, period))
	near := func(lengths []float64) (y []float64) {
		for _, x := range lengths {
			y = append(y, math.Cos(2*math.Pi*x/period-phase))
		}
		return y
	}
	return near(c.was), near(c.is)
}

// permute is the one-sided p that the beat is weaker on the other side, by
// relabelling blocks.
func permute(strong, weak [][]float64, period float64) float64 {
	phase := cmplx.Phase(around(slices.Concat(strong...), period))
	near := func(block []float64) (float64, bool) {
		return real(around(block, period)*cmplx.Rect(1, -phase)) / float64(len(block)), len(block) > 0
	}
	strong, weak = stat.Unlike(strong, weak, near, func(a, b []float64) []float64 { return slices.Concat(a, b) })
	type sum struct {
		z complex128
		n float64
	}
	sums := func(blocks [][]float64) (out []sum) {
		for _, b := range blocks {
			if len(b) > 0 {
				out = append(out, sum{around(b, period), float64(len(b))})
			}
		}
		return out
	}
	together := func(sums []sum) float64 {
		var all sum
		for _, s := range sums {
			all.z, all.n = all.z+s.z, all.n+s.n
		}
		return cmplx.Abs(all.z) / all.n
	}
	return stat.Permute(sums(strong), sums(weak), func(a, b []sum) float64 { return together(a) - together(b) })
}
