package steer

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"tsgtop/internal/sched"
)

// turns makes blocks of turns, of which a part is short.
func turns(r *rand.Rand, blocks int, short float64) *Use {
	u := &Use{}
	for range blocks {
		b := Block{}
		for range 20 {
			b.All++
			if r.Float64() < short {
				b.Short++
			}
		}
		u.Clean += b.All
		u.Blocks = append(u.Blocks, b)
	}
	return u
}

var limits = Limits{Old: 2048, New: 200}

func TestShortened(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	plain := func(blocks []Block) *Use { return &Use{Clean: 100, Blocks: blocks} }
	repeat := func(b Block, n int) (out []Block) {
		for range n {
			out = append(out, b)
		}
		return out
	}
	for name, c := range map[string]struct {
		before, after *Use
		limits        Limits
		want          sched.LampState
		why           string
	}{
		"8% are short now":        {turns(r, 8, 0), turns(r, 32, 0.08), limits, sched.LampYes, "0 of 160 before"},
		"nothing short":           {turns(r, 8, 0), turns(r, 32, 0), limits, sched.LampUnknown, "too few to tell"},
		"as many before":          {turns(r, 16, 0.3), turns(r, 32, 0.3), limits, sched.LampUnknown, "too few"},
		"short kernels now":       {turns(r, 8, 0), plain(repeat(Block{All: 20, Short: 10, Below: 9}, 16)), limits, sched.LampUnknown, "kernels may have become short"},
		"held at the old":         {turns(r, 8, 0), plain(repeat(Block{All: 20, At: 20, Held: 10}, 16)), limits, sched.LampNo, "known to wait"},
		"a pile at the old":       {turns(r, 8, 0), plain(repeat(Block{All: 20, At: 2, Near: 3}, 16)), limits, sched.LampNo, "soon after"},
		"LC comes like a clock":   {turns(r, 8, 0), plain(repeat(Block{All: 20, At: 20}, 16)), limits, sched.LampUnknown, "too few"},
		"too few blocks":          {turns(r, 3, 0), turns(r, 3, 1), limits, sched.LampUnknown, "too few"},
		"no turn since":           {turns(r, 8, 0), nil, limits, sched.LampUnknown, "nothing competed"},
		"no turn before":          {nil, turns(r, 8, 0.1), limits, sched.LampUnknown, "nothing to compare"},
		"longer, not shorter":     {turns(r, 8, 0), turns(r, 8, 0.1), Limits{200, 2048}, sched.LampUnknown, "not shorter"},
		"nobody came right after": {plain(nil), plain(nil), limits, sched.LampUnknown, "no other process"},
	} {
		if l := Shortened(c.before, c.after, c.limits); l.State != c.want || !strings.Contains(l.Why, c.why) {
			t.Errorf("%s: %+v, want %s and %q", name, l, c.want, c.why)
		}
	}
}

// Where nothing changes, whatever the part of short turns and however they hang
// together, a yes comes in at most 1 of 500.
func TestShortenedIsRarelyWrong(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	wrong := 0
	const trials = 1000
	for range trials {
		short := r.Float64() * 0.5
		burst := func(blocks int) *Use { // the part wanders from block to block
			u := &Use{}
			x := short
			for range blocks {
				x = max(0, min(1, x+0.1*r.NormFloat64()*0.5+0.2*(short-x)))
				b := turns(r, 1, x)
				u.Blocks, u.Clean = append(u.Blocks, b.Blocks...), u.Clean+b.Clean
			}
			return u
		}
		if Shortened(burst(8), burst(24), limits).State == sched.LampYes {
			wrong++
		}
	}
	if wrong > trials/500 {
		t.Errorf("%d of %d said yes although nothing changed", wrong, trials)
	}
}

func TestHelped(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	series := func(n int, p99 float64) (out []Reading) {
		for i := range n {
			v := 1180 + 10*r.NormFloat64()
			if r.Float64() < 0.03 {
				v = p99 * (0.9 + 0.2*r.Float64())
			}
			out = append(out, Reading{At: sched.Time(i) * sched.Time(10*time.Millisecond), Value: v})
		}
		return out
	}
	for name, c := range map[string]struct {
		before, during []Reading
		want           sched.LampState
		why            string
	}{
		"better":     {series(600, 2700), series(800, 1200), sched.LampYes, "x0.4"},
		"worse":      {series(600, 1200), series(800, 2700), sched.LampNo, "it got worse"},
		"few":        {series(100, 2700), series(800, 1200), sched.LampUnknown, "200 are needed"},
		"the same":   {series(4000, 1190), series(4000, 1190), sched.LampNo, "x1.0"},
		"no latency": {make([]Reading, 300), series(800, 1190), sched.LampUnknown, "half seconds"},
	} {
		if l := Helped("lat", c.before, c.during); l.State != c.want || !strings.Contains(l.Why, c.why) {
			t.Errorf("%s: %+v, want %s and %q", name, l, c.want, c.why)
		}
	}
}

func TestChangedOf(t *testing.T) {
	yes, no, dunno := sched.Lamp{State: sched.LampYes, Why: "y"}, sched.Lamp{State: sched.LampNo, Why: "n"}, sched.Lamp{State: sched.LampUnknown, Why: "u"}
	for _, c := range []struct {
		lamps []sched.Lamp
		want  sched.LampState
	}{{nil, sched.LampUnknown}, {[]sched.Lamp{yes}, sched.LampYes}, {[]sched.Lamp{yes, dunno}, sched.LampYes}, {[]sched.Lamp{yes, no}, sched.LampUnknown},
		{[]sched.Lamp{no, dunno}, sched.LampNo}, {[]sched.Lamp{dunno, dunno}, sched.LampUnknown}} {
		m := map[Proc]sched.Lamp{}
		for i, l := range c.lamps {
			m[Proc{PID: i + 1}] = l
		}
		if got := ChangedOf(m); got.State != c.want || got.Why == "" {
			t.Errorf("%v: %+v", c.lamps, got)
		}
	}
}
