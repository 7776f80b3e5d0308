package ui

import (
	"math"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"tsgtop/internal/sched"
)

// of gives the statistics of values, taken the plain way.
func of(values ...float64) *sched.Stats {
	s := &sched.Stats{N: uint64(len(values)), Min: math.Inf(1)}
	for _, v := range values {
		s.Min, s.Max = min(s.Min, v), max(s.Max, v)
		s.Mean += v / float64(len(values))
	}
	for _, v := range values {
		s.StdDev += (v - s.Mean) * (v - s.Mean)
	}
	if s.N > 1 {
		s.StdDev = math.Sqrt(s.StdDev / float64(s.N-1))
	} else {
		s.StdDev = 0
	}
	return s
}

func TestMergedIsAsIfCountedTogether(t *testing.T) {
	a, b, c := []float64{3, 5, 4.5}, []float64{200}, []float64{17, 16, 1, 90}
	var ts []*sched.TSGView
	for _, vs := range [][]float64{a, b, c} {
		v := &sched.TSGView{}
		v.Score[0].Residency = of(vs...)
		ts = append(ts, v)
	}
	ts = append(ts, &sched.TSGView{}) // one without any
	got := merged(ts, func(t *sched.TSGView) *sched.Stats { return t.Score[0].Residency })
	want := of(append(append(a, b...), c...)...)
	if got.N != want.N || got.Min != want.Min || got.Max != want.Max || math.Abs(got.Mean-want.Mean) > 1e-9 || math.Abs(got.StdDev-want.StdDev) > 1e-9 {
		t.Errorf("%+v, want %+v", got, want)
	}
	if !math.IsNaN(got.P50) || !math.IsNaN(got.P95) || !math.IsNaN(got.P99) {
		t.Errorf("percentiles that cannot be known: %+v", got)
	}
	if merged(ts[3:], func(t *sched.TSGView) *sched.Stats { return t.Score[0].Residency }) != nil {
		t.Error("something of nothing")
	}
}

func TestScoreOfAProcess(t *testing.T) {
	h := start(t, 160, 40, oneGPU, nil).press("3", "g")
	for _, l := range strings.Split(h.plain(), "\n") {
		if strings.Contains(l, "480 serve  2 TSGs") {
			// The key is "00000480/48000".
			if f := strings.Fields(l); !strings.Contains(l, "14000µs") || !strings.Contains(l, " 14 ") || !strings.Contains(l, "47.2%") || strings.Contains(l, "NaN") || strings.Contains(l, "–") {
				t.Errorf("the row of a process: %q", f)
			}
			return
		}
	}
	t.Errorf("no row of a process:\n%s", h.plain())
}

// Numbers of one grouping are not shown as another's: until a snapshot has the
// new one's, percentiles are dashes.
func TestGroupsOfAnotherGrouping(t *testing.T) {
	h := start(t, 160, 40, oneGPU, nil).press("3", "g")
	if tag := h.m.snap.GroupTag; !strings.HasPrefix(tag, "process ") {
		t.Fatalf("grouping %q", tag)
	}
	h.m.score.group = byUser
	if sums := h.m.groupSums(&h.m.score.shape); sums != nil {
		t.Errorf("by user, with those by process: %v", sums)
	}
	h.m.renew(true)
	if sums := h.m.groupSums(&h.m.score.shape); len(sums) == 0 {
		t.Error("no numbers of the new grouping")
	}
	h.m.setFilter("nobody-has-this")
	if sums := h.m.groupSums(&h.m.score.shape); len(sums) != 0 {
		t.Errorf("with another filter: %v", sums)
	}
}

// counterLooks notes who looks at the counters.
type counterLooks struct{ on, most int }

func (l *counterLooks) LookCounters(on bool) {
	if on {
		l.on++
	} else {
		l.on--
	}
	l.most = max(l.most, l.on)
}

func TestCountersAreReadWhileTheyShow(t *testing.T) {
	var looks counterLooks
	h := start(t, 120, 40, oneGPU, func(o *Options) { o.Counters = &looks })
	for _, step := range []struct {
		key  string
		want int
	}{{"1", 0}, {"3", 1}, {"3", 1}, {"?", 0}, {"esc", 1}, {"enter", 1}, {"esc", 1}, {"2", 0}, {"1", 0}, {"enter", 1}, {"esc", 0}} {
		h.press(step.key)
		if looks.on != step.want {
			t.Errorf("after %q: %d look, want %d", step.key, looks.on, step.want)
		}
	}
	if looks.most != 1 {
		t.Errorf("%d looks at once", looks.most)
	}
}

func TestSwitchLine(t *testing.T) {
	h := start(t, 120, 40, oneGPU, nil)
	for _, c := range []struct {
		score sched.Score
		want  string
	}{
		{sched.Score{Switches: &sched.Switches{Forced: 760, Voluntary: 40, SpanS: 1.02}}, "760 forced in mid-kernel, 40 voluntary (95.0% forced), as the GSP counted over 1.0 s"},
		{sched.Score{Switches: &sched.Switches{SpanS: 10}}, "0 forced in mid-kernel, 0 voluntary, as"},
		{sched.Score{SwitchesWhy: "copy engine: the GSP keeps none"}, "–  copy engine: the GSP keeps none"},
		{sched.Score{}, "–  not known"},
	} {
		if got := ansi.Strip(h.m.switchLine("switches", 16, &c.score)); !strings.Contains(got, c.want) {
			t.Errorf("%q lacks %q", got, c.want)
		}
	}
}
