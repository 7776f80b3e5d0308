package trial

import (
	"slices"
	"strings"
	"testing"
	"time"
)

const goodPlan = `
name = "two slices"
targets = ["pid:479"]
seed = 9
repeats = 3
order = "random"
warm_up = "100ms"
measure = "1s"
stop_if = ["wait_p99_us > 5000", "share < 0.5x"]

[[arm]]
name = "short"
timeslice = "200us"

[[arm]]
interleave = "high"

[[arm]]
preempt = "5ms"

[[arm]]
name = "nothing"

[[arm]]
name = "roles"
be = "200us"
`

func TestParse(t *testing.T) {
	p, err := Parse([]byte(goodPlan), "plan.toml")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, a := range p.Arms {
		names = append(names, a.Name+": "+a.Does())
	}
	want := []string{"nothing: nothing", "short: timeslice 200 us", "arm-2: interleave high", "arm-3: preempted every 5ms", "roles: latency-critical, others best-effort at 200 us"}
	if !slices.Equal(names, want) || p.Seed != 9 || p.Repeats != 3 || p.Measure != time.Second || len(p.StopIf) != 2 || !p.StopIf[1].Relative {
		t.Errorf("%q %+v", names, p)
	}
}

// A plan with a mistake: the line, and what was meant; nothing of the file.
func TestParseMistakes(t *testing.T) {
	for plan, says := range map[string]string{
		"measur = \"1s\"\n[[arm]]\ntimeslice=\"1ms\"": `p.toml: line 1: unknown key; did you mean measure?`,
		"\n\n[[arm]]\ntimeslise = \"1ms\"":            `line 4: unknown key of an arm; did you mean timeslice?`,
		"[[arm]]\ntimeslice = \"soon secret\"":        `line 2: timeslice: want a timeslice such as "200us"`,
		"[[arm]]\ninterleave = \"highest\"":           `line 2: interleave: want "low", "medium" or "high"`,
		"[[arm]]\npreempt = \"1ms\"":                  `line 2: preempt: want a duration from 1.5ms`,
		"repeats = 2":                                 `line 1: repeats: want a whole number from 3`,
		"order = \"sorted\"":                          `"interleaved" or "random"`,
		"stop_if = \"wait_p98_us > 3\"":               `line 1: stop_if: want a bound such as`,
		"= 3":                                         `line 1: not valid TOML`,
		"":                                            `no arm does anything`,
		"[[arm]]\nname=\"a\"\nbe=\"1ms\"\ntimeslice=\"1ms\"": `not together with`,
		"[[arm]]\n[[arm]]\ntimeslice=\"1ms\"\n[[arm]]":       `two arms do nothing`,
		"[[arm]]\nname=\"<b>\"":                              `letters, digits`,
		"targets = []":                                       `a list of targets`,
	} {
		_, err := Parse([]byte(plan), "p.toml")
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", plan, err, says)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q is quoted: %v", plan, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(goodPlan))
	f.Add([]byte("[[arm]]\nbe = 1\n[arm.x]"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Parse(b, "p")
		if err == nil && (len(p.Arms) < 2 || !p.Arms[0].Idle() || p.Repeats < 3) {
			t.Errorf("%+v", p)
		}
	})
}

func TestBounds(t *testing.T) {
	x := func(v float64) *float64 { return &v }
	for _, c := range []struct {
		bound       string
		value, base *float64
		broken      bool
	}{
		{"wait_p99_us > 5000", x(5001), nil, true}, {"wait_p99_us > 5000", x(5000), nil, false}, {"share<0.5x", x(0.2), x(0.5), true},
		{"share<0.5x", x(0.2), nil, false}, {"share < 0.5", nil, nil, false}, {"probe:lat:p99 > 1.5x", x(3), x(1.9), true},
	} {
		b, err := ParseBound(c.bound)
		if err != nil || b.Broken(c.value, c.base) != c.broken {
			t.Errorf("%s: %v %+v", c.bound, err, b)
		}
	}
	if _, err := ParseBound("wait_p98_us > 1"); err == nil || !strings.Contains(err.Error(), "did you mean wait_p9") {
		t.Errorf("%v", err)
	}
	for _, bad := range []string{"", "share", "share > ", "share > -1", "share > 1y"} {
		if _, err := ParseBound(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// Each round has each arm once; interleaved, no arm is always after the same; a
// seed gives the same order again.
func TestSequence(t *testing.T) {
	p := Builtin()
	for _, order := range []string{"interleaved", "random"} {
		p.Order = order
		first := map[int]int{}
		for _, round := range p.Sequence() {
			sorted := slices.Clone(round)
			slices.Sort(sorted)
			if !slices.Equal(sorted, []int{0, 1, 2, 3, 4, 5}) {
				t.Fatalf("%s: round %v", order, round)
			}
			first[round[0]]++
		}
		if len(first) < 2 {
			t.Errorf("%s: always begins with %v", order, first)
		}
		if a, b := p.Sequence(), p.Sequence(); !slices.EqualFunc(a, b, slices.Equal[[]int]) {
			t.Errorf("%s: the same seed gives another order", order)
		}
	}
}
