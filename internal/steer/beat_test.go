package steer

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"tsgtop/internal/sched"
)

// addLeft adds a turn of us that ended at endUS since the phase began.
func addLeft(blocks []Block, endUS, us float64, lim Limits) []Block {
	i := int(endUS / float64(blockSpan.Microseconds()))
	for len(blocks) <= i {
		blocks = append(blocks, Block{})
	}
	b := &blocks[i]
	b.All++
	if us < 0.98*float64(lim.Old) {
		b.Short++
	}
	b.Left = append(b.Left, us)
	return blocks
}

// Where LC never comes so soon that a turn could be short, the beat of the turns'
// ends tells (internal/beat has the H200's own); and what the GSP is to be asked.
func TestShortenedByTheBeat(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	lim := Limits{2048, 200}
	phase := func(f func() float64) *Use {
		var blocks []Block
		for end := 0.0; end < 8e6; {
			us := f()
			end += us + 1200
			blocks = addLeft(blocks, end, us, lim)
		}
		return &Use{Clean: total(blocks).All, Blocks: blocks}
	}
	on := func(us float64) func() float64 {
		return func() float64 {
			p := us * 1.024
			return p*math.Ceil((2200+15000*r.Float64())/p) + 72 + 3*r.NormFloat64()
		}
	}
	clock := func() float64 { return 9000 + 20*r.NormFloat64() }
	wild := func() float64 { return 2200 + 15000*r.Float64() }
	for name, c := range map[string]struct {
		before, after func() float64
		want          sched.LampState
		counts        bool
		why           string
	}{
		"obeyed":                  {on(2048), on(200), sched.LampYes, false, "in that of the new one (205 us) with 1.00 since"},
		"obeyed, with no beat":    {on(2048), wild, sched.LampYes, true, "beat of the old timeslice (2097 us)"},
		"ignored":                 {on(2048), on(2048), sched.LampNo, false, "with strength 1.00 before and 1.00 since"},
		"LC comes like a clock":   {clock, wild, sched.LampUnknown, false, "keep to no beat of 2097 us"},
		"nothing to compare with": {wild, wild, sched.LampUnknown, false, "too few to tell; and their ends keep to no beat"},
	} {
		v := Shortened(phase(c.before), phase(c.after), lim)
		if v.State != c.want || v.NeedsCounts != c.counts || !strings.Contains(v.Why, c.why) || v.State == sched.LampYes != (v.Part > 0.5) {
			t.Errorf("%s: %+v, want %s, counts %t, %q", name, v, c.want, c.counts, c.why)
		}
	}
	if v := beats(nil, nil, lim); v.State != sched.LampUnknown || v.Why != "" {
		t.Errorf("of nothing: %+v", v)
	}
}
