package beat

import (
	"compress/gzip"
	"encoding/csv"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
)

const level = 0.001

// run is what an H200 did, see testdata/README.md.
type run struct {
	us             uint64
	before, during [][]float64
}

func measured(t testing.TB) map[string]*run {
	t.Helper()
	f, err := os.Open("testdata/left.csv.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(z).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	runs := map[string]*run{}
	for _, row := range rows[1:] {
		var n [3]float64
		for i, s := range []string{row[1], row[3], row[4]} {
			if n[i], err = strconv.ParseFloat(s, 64); err != nil {
				t.Fatal(err)
			}
		}
		if runs[row[0]] == nil {
			runs[row[0]] = &run{us: uint64(n[0])}
		}
		side := &runs[row[0]].during
		if row[2] == "before" {
			side = &runs[row[0]].before
		}
		add(side, n[1], n[2])
	}
	return runs
}

// add adds a turn that ended at an instant (us), in blocks of 0.25 s.
func add(blocks *[][]float64, end, length float64) {
	i := int(end / 250e3)
	for len(*blocks) <= i {
		*blocks = append(*blocks, nil)
	}
	(*blocks)[i] = append((*blocks)[i], length)
}

func TestOfAnH200(t *testing.T) {
	for name, r := range measured(t) {
		c := Compare(r.before, r.during, 2048, r.us)
		changed, seen := c.Changed(level)
		t.Logf("%s, %d us: %+v %+v %+v %+v p %.2g", name, r.us, c.OldBefore, c.OldAfter, c.NewBefore, c.NewAfter, c.P)
		if c.Unchanged() {
			t.Errorf("%s: unchanged", name)
		}
		// A process that comes like a clock makes a beat of its own: nothing is known.
		if known := name != "steady"; c.Known() != known || changed != known {
			t.Errorf("%s: known %t, changed %t", name, c.Known(), changed)
		}
		if name != "steady" && (seen != (r.us > 50) || c.Gone() < 0.5 || math.Abs(c.Old-2097.152) > 0.1) {
			t.Errorf("%s: the new beat seen %t, %.2f gone, period %.1f", name, seen, c.Gone(), c.Old)
		}
		// And back again: what was 200 us is 2048.
		back := Compare(r.during, r.before, r.us, 2048)
		if changed, seen := back.Changed(level); r.us > 50 && name != "steady" && (!changed || !seen || back.Unchanged()) {
			t.Errorf("%s, back: %+v", name, back)
		}
	}
}

// Between two phases in which nothing was changed, whatever had been asked for.
func TestAgainstItself(t *testing.T) {
	runs := measured(t)
	all, no := 0, 0
	for a, x := range runs {
		for b, y := range runs {
			for _, us := range []uint64{50, 100, 128, 200, 256, 300, 512, 700, 1000, 1024, 1600, 2000, 2048, 3000, 4096, 8192, 65536} {
				c := Compare(x.before, y.before, 2048, us)
				if changed, _ := c.Changed(level); changed {
					t.Errorf("%s against %s at %d us: %+v", a, b, us, c)
				}
				all++
				if c.Unchanged() {
					no++
				}
			}
		}
	}
	if t.Logf("%d of %d are known to be unchanged", no, all); no < all/2 {
		t.Error("too few")
	}
}

func TestSynthetic(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	phase := func(seconds float64, length func() float64) (blocks [][]float64) {
		for end := 0.0; end < seconds*1e6; {
			us := length()
			end += us + 1200
			add(&blocks, end, us)
		}
		return blocks
	}
	clock := func(mean, sd float64) func() float64 { return func() float64 { return mean + sd*r.NormFloat64() } }
	wild := func() float64 { return 2200 + 15000*r.Float64() }
	// A process that comes at random, 1 to 18 ms after, and waits for the end of a timeslice.
	on := func(us, unit float64) func() float64 {
		return func() float64 {
			p := us * unit
			return p*math.Ceil((1000+17000*r.Float64())/p) + 72 + 3*r.NormFloat64()
		}
	}
	// On an H200 with 8192 us, a quarter of the turns end in the middle between two.
	half := func() float64 {
		x := on(8192, 1.024)()
		if r.Float64() < 0.3 && x > 8192 {
			x -= 4150
		}
		return x
	}
	for _, c := range []struct {
		name                 string
		before, after        func() float64
		us                   uint64
		changed, seen, still bool
	}{
		{"two clocks", clock(9000, 20), clock(7000, 20), 200, false, false, false},
		{"a clock, then none", clock(9000, 20), wild, 200, false, false, false},
		{"a slack clock, then none", clock(9000, 300), wild, 200, false, false, false},
		{"nothing", wild, wild, 200, false, false, false},
		{"no beat, then the new one", wild, on(200, 1.024), 200, false, false, false}, // nothing was known before
		{"obeyed", on(2048, 1.024), on(200, 1.024), 200, true, true, false},
		{"obeyed, a whole part of it", on(2048, 1.024), on(512, 1.024), 512, true, true, false},
		{"obeyed, longer", on(2048, 1.024), on(3000, 1.024), 3000, true, true, false},
		{"obeyed, twice as long", on(2048, 1.024), on(4096, 1.024), 4096, true, true, false},
		{"obeyed, as an H200 obeys 8192", on(2048, 1.024), half, 8192, true, true, false},
		{"obeyed, a multiple of another kind", on(2048, 1.024), on(6144, 1.024), 8192, false, false, false},
		{"obeyed, a chip that counts in us", on(2048, 1), on(200, 1), 200, true, true, false},
		{"the beat has gone", on(2048, 1.024), wild, 200, true, false, false},
		{"another value than was asked for", on(2048, 1.024), on(700, 1.024), 200, true, false, false},
		{"ignored", on(2048, 1.024), on(2048, 1.024), 200, false, false, true},
		{"ignored, a whole part of it", on(2048, 1.024), on(2048, 1.024), 512, false, false, true},
		{"ignored, twice as long", on(2048, 1.024), on(2048, 1.024), 4096, false, false, true},
		{"ignored, much longer", on(2048, 1.024), on(2048, 1.024), 65536, false, false, true},
		{"obeyed, but too near to be seen", on(2048, 1.024), on(2000, 1.024), 2000, false, false, false},
		{"obeyed, but too near to be seen, longer", on(2048, 1.024), on(2100, 1.024), 2100, false, false, false},
		{"ignored, too near to be seen", on(2048, 1.024), on(2048, 1.024), 2000, false, false, false},
		{"ignored, near", on(2048, 1.024), on(2048, 1.024), 1700, false, false, true},
		{"obeyed, near", on(2048, 1.024), on(1700, 1.024), 1700, true, true, false},
		{"it was that already", on(2048, 1.024), on(2048, 1.024), 2048, false, false, true},
	} {
		x := Compare(phase(4, c.before), phase(4, c.after), 2048, c.us)
		changed, seen := x.Changed(level)
		if changed != c.changed || seen != c.seen || x.Unchanged() != c.still {
			t.Errorf("%s: changed %t, seen %t, unchanged %t: %+v", c.name, changed, seen, x.Unchanged(), x)
		}
	}
}

// Turns keep to the beat by and by, because kernels end: in worlds that wander so, what
// nothing changed is told to be changed in about 1 of 1,000 (29 of 30,000), and then
// without a new beat to be seen, so that another witness is asked.
func TestRarelyWrong(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 9))
	wrong, known, fooled := 0, 0, 0
	const trials = 2000
	for range trials {
		// Part of the turns keep to the beat, and that part wanders.
		part, x := r.Float64(), 0.0
		side := func(blocks int) (out [][]float64) {
			for range blocks {
				x = 0.8*x + 0.3*r.NormFloat64()
				var b []float64
				for range 8 {
					l := 1000 + 17000*r.Float64()
					if r.Float64() < part+0.2*x {
						l = 2097.152*math.Ceil(l/2097.152) + 72
					}
					b = append(b, l)
				}
				out = append(out, b)
			}
			return out
		}
		c := Compare(side(40), side(5+r.IntN(25)), 2048, []uint64{50, 200, 512, 1000, 4096, 8192}[r.IntN(6)])
		if c.Known() {
			known++
		}
		if changed, seen := c.Changed(level); changed {
			wrong++
			if seen {
				fooled++
			}
		}
	}
	if t.Logf("%d of %d, in %d of which there was a beat; %d with a new one", wrong, trials, known, fooled); wrong > trials/400 || fooled > 0 || known < trials/4 {
		t.Error("too many, or too few with a beat")
	}
}

// The beat that is in force is told from its whole parts.
func TestLowest(t *testing.T) {
	for name, r := range measured(t) {
		lengths := slices.Concat(r.before...)
		for us, want := range map[float64]bool{2048: name != "steady", 1024: false, 1000: false, 700: false, 683: false, 512: false, 200: false, 50: false, 4096: false} {
			if _, got := Lowest(lengths, 1.024*us); got != want {
				t.Errorf("%s, at %.0f us: %t", name, us, got)
			}
		}
		if _, own := Lowest(slices.Concat(r.during...), 1.024*float64(r.us)); own != (name != "steady" && r.us > 50) {
			t.Errorf("%s, at %d us as it was set", name, r.us)
		}
	}
}

func TestOfNothing(t *testing.T) {
	if b := Of(nil, 2048); b.Turns != 0 || b.Strength != 0 || b.Clear() {
		t.Errorf("%+v", b)
	}
	many := [][]float64{slices.Repeat([]float64{3000}, 40)}
	for _, c := range []*Change{Compare(nil, nil, 2048, 200), Compare(many, nil, 2048, 200), Compare(many, many, 0, 200), Compare(many, many, 2048, 0)} {
		if c != nil {
			t.Errorf("%+v", c)
		}
	}
	// One block on each side: nothing to relabel.
	if c := Compare(many, many, 2048, 200); c == nil || c.P != 1 || c.Unchanged() {
		t.Errorf("%+v", c)
	}
	if before, after := Compare(many, many, 2048, 200).Series(); len(before) != 40 || len(after) != 40 || before[0] < 0.99 {
		t.Errorf("%v %v", before, after)
	}
}

func FuzzCompare(f *testing.F) {
	f.Add(uint64(1), uint64(2048), uint64(200), 50, 2000.0, 9000.0)
	f.Fuzz(func(t *testing.T, seed, old, new uint64, n int, base, spread float64) {
		r := rand.New(rand.NewPCG(seed, 1))
		side := func() (out [][]float64) {
			for range max(0, min(n, 300)) / 10 {
				var b []float64
				for range 10 {
					b = append(b, base+spread*r.Float64())
				}
				out = append(out, b)
			}
			return out
		}
		if c := Compare(side(), side(), old, new); c != nil {
			if c.P <= 0 || c.P > 1 || math.IsNaN(c.P) {
				t.Errorf("p %v", c.P)
			}
			c.Unchanged()
			c.Series()
		}
	})
}

func BenchmarkCompare(b *testing.B) {
	r := measured(b)["random1"]
	for b.Loop() {
		Compare(r.before, r.during, 2048, r.us)
	}
}
