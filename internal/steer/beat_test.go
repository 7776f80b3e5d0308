package steer

import (
	"compress/gzip"
	"encoding/csv"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"tsgtop/internal/sched"
)

// left is what an H200 did, see testdata/README.md: run -> its timeslice, and the
// blocks before and during.
type left struct {
	us             uint64
	before, during []Block
}

func measured(t testing.TB) map[string]*left {
	t.Helper()
	f, err := os.Open("../beat/testdata/left.csv.gz")
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
	runs := map[string]*left{}
	for _, row := range rows[1:] {
		var n [3]float64
		for i, s := range []string{row[1], row[3], row[4]} {
			if n[i], err = strconv.ParseFloat(s, 64); err != nil {
				t.Fatal(err)
			}
		}
		l := runs[row[0]]
		if l == nil {
			l = &left{us: uint64(n[0])}
			runs[row[0]] = l
		}
		side := &l.during
		if row[2] == "before" {
			side = &l.before
		}
		*side = addLeft(*side, n[1], n[2], Limits{2048, l.us})
	}
	return runs
}

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

func use(blocks []Block) *Use { return &Use{Clean: total(blocks).All, Blocks: blocks} }

func TestBeatsOfAnH200(t *testing.T) {
	for name, l := range measured(t) {
		v := Shortened(use(l.before), use(l.during), Limits{2048, l.us})
		t.Logf("%s, %d us: %s: %s", name, l.us, v.State, v.Why)
		want, counts := sched.LampYes, l.us == 50 // a beat of 51 us wears off between one kernel's end and the next's
		if name == "steady" {
			want, counts = sched.LampUnknown, false // an LC that comes like a clock makes a beat of its own
		}
		if v.State != want || v.NeedsCounts != counts {
			t.Errorf("%s: %+v, want %s, counts %v", name, v, want, counts)
		}
		if v.State == sched.LampYes && (v.Part < 0.5 || v.Part > 1) {
			t.Errorf("%s: part %v", name, v.Part)
		}
	}
}

// Nothing changed between two phases before: never a yes, whatever was asked for,
// and mostly a no.
func TestBeatsAgainstThemselves(t *testing.T) {
	runs := measured(t)
	all, no := 0, 0
	for a, x := range runs {
		for b, y := range runs {
			for _, us := range []uint64{50, 100, 128, 200, 256, 300, 512, 700, 1000, 1024, 1600, 2000} {
				v := Shortened(use(x.before), use(y.before), Limits{2048, us})
				if v.State == sched.LampYes {
					t.Errorf("%s against %s at %d us: %+v", a, b, us, v)
				}
				all++
				if v.State == sched.LampNo {
					no++
				}
			}
		}
	}
	if no < all/2 {
		t.Errorf("%d of %d are a no", no, all)
	}
}

// LC comes like a clock, first at one pace and then at another; kernels become
// short; nothing has a beat.
func TestBeatsThatAreNone(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	phase := func(f func() float64) []Block {
		var out []Block
		for end := 0.0; end < 8e6; {
			us := f()
			end += us + 1200
			out = addLeft(out, end, us, Limits{2048, 200})
		}
		return out
	}
	clock := func(mean, sd float64) func() float64 { return func() float64 { return mean + sd*r.NormFloat64() } }
	wild := func() float64 { return 2200 + 15000*r.Float64() }
	onBeat := func(us, over float64) func() float64 {
		return func() float64 { return float64(2+r.IntN(8))*us*1.024 + over + 3*r.NormFloat64() }
	}
	newBeat := func() float64 { return float64(12+r.IntN(60))*204.8 + 70 + 3*r.NormFloat64() }
	for name, c := range map[string]struct {
		before, after func() float64
		want          sched.LampState
	}{
		"two clocks":                 {clock(9000, 20), clock(7000, 20), sched.LampUnknown},
		"a clock, then none":         {clock(9000, 20), wild, sched.LampUnknown},
		"a slack clock, then none":   {clock(9000, 300), wild, sched.LampUnknown},
		"no beat, then the new one":  {wild, newBeat, sched.LampUnknown},
		"the beat, then the new one": {onBeat(2048, 70), newBeat, sched.LampYes},
		"the beat, then none":        {onBeat(2048, 70), wild, sched.LampYes}, // needs the counters
		"the beat, and the beat":     {onBeat(2048, 70), onBeat(2048, 95), sched.LampNo},
		"nothing":                    {wild, wild, sched.LampUnknown},
	} {
		v := Shortened(use(phase(c.before)), use(phase(c.after)), Limits{2048, 200})
		if v.State != c.want || v.NeedsCounts != (name == "the beat, then none") {
			t.Errorf("%s: %+v, want %s", name, v, c.want)
		}
	}
}

func TestBeatsOfNothing(t *testing.T) {
	if v := beats(nil, nil, Limits{2048, 200}); v.State != sched.LampUnknown || v.Why != "" {
		t.Errorf("%+v", v)
	}
}

func BenchmarkBeats(b *testing.B) {
	l := measured(b)["random1"]
	for b.Loop() {
		Shortened(use(l.before), use(l.during), Limits{2048, l.us})
	}
}
