package ui

import (
	"math"
	"strings"

	"tsgtop/internal/sched"
)

// histogramView draws a histogram over a logarithmic axis, with marks.
type histogramView struct {
	title  string
	h      *sched.Histogram
	before *sched.Histogram // drawn over it as dots: the same before a command; nil: none
	marks  []histMark
	why    string // why there is none
}

// histMark is a value, in us, that is marked under the axis.
type histMark struct {
	at    float64
	label string
}

// lines draws it in width x height cells, title and axis included.
func (v *histogramView) draw(c *Common, width, height int) []string {
	box := *c
	box.width = width
	head := box.line().put(rolePlain, " ").cut(roleHead, c.own(v.title), width-2)
	for _, m := range v.marks {
		if s := "  " + m.label + " " + c.micros(m.at); head.room() > cellCount(s) {
			head.put(roleDim, s)
		}
	}
	out := []string{head.String()}
	lo, hi, ok := v.bounds()
	if !ok {
		why := v.why
		if why == "" {
			why = "nothing counted yet"
		}
		out = append(out, box.line().put(rolePlain, " ").cut(roleDim, c.own(why), width-2).String())
		return pad(&box, out, height)
	}
	n := max(width-2, 4)
	now := spread(v.h, lo, hi, n)
	old := spread(v.before, lo, hi, n)
	top := 0.0
	for i := range now {
		top = max(top, now[i], old[i])
	}
	rows := max(height-3, 1)
	levels := len(c.signs.levels)
	for r := rows - 1; r >= 0; r-- {
		l := box.line().put(rolePlain, " ")
		for i := range n {
			eighths := int(math.Ceil(now[i] / top * float64(rows*levels)))
			was := int(math.Ceil(old[i]/top*float64(rows*levels))) - 1
			fill := min(eighths-r*levels, levels)
			switch {
			case v.before != nil && old[i] > 0 && was/levels == r && fill < levels:
				l.put(roleWarn, c.signs.dot)
			case fill > 0:
				l.put(roleBar, c.signs.levels[fill-1])
			default:
				l.put(rolePlain, " ")
			}
		}
		out = append(out, l.String())
	}
	// The axis: its ends and, between them, the marks that find room.
	axis := []rune(strings.Repeat(c.signs.rule, n))
	names := []rune(strings.Repeat(" ", n))
	putLabel := func(at int, s string) bool {
		rs := []rune(s)
		at = min(max(at, 0), n-len(rs))
		if at < 0 {
			return false
		}
		for i := max(at-1, 0); i < min(at+len(rs)+1, n); i++ {
			if names[i] != ' ' {
				return false
			}
		}
		copy(names[at:], rs)
		return true
	}
	for _, m := range v.marks {
		if m.at < lo || m.at > hi {
			continue
		}
		k := min(int(position(m.at, lo, hi)*float64(n)), n-1)
		axis[k] = []rune(c.signs.vertical)[0]
		putLabel(k, m.label)
	}
	putLabel(0, c.micros(lo))
	putLabel(n, c.micros(hi))
	out = append(out, box.line().put(rolePlain, " ").put(roleBorder, string(axis)).String(),
		box.line().put(rolePlain, " ").put(roleDim, string(names)).String())
	return pad(&box, out, height)
}

// bounds is the range that holds every count and every mark.
func (v *histogramView) bounds() (lo, hi float64, ok bool) {
	lo, hi = math.Inf(1), 0
	for _, h := range []*sched.Histogram{v.h, v.before} {
		if h == nil {
			continue
		}
		for _, b := range h.Bins {
			if b.N > 0 {
				lo, hi = min(lo, b.From), max(hi, b.To)
			}
		}
	}
	if hi <= 0 {
		return 0, 0, false
	}
	for _, m := range v.marks {
		if m.at > lo/20 && m.at < hi*20 {
			lo, hi = min(lo, m.at/1.1), max(hi, m.at*1.1)
		}
	}
	lo = max(lo, 0.5)
	if hi < lo*2 {
		lo, hi = lo/1.5, hi*1.5
	}
	return lo, hi, true
}

func position(v, lo, hi float64) float64 {
	return math.Log(max(v, lo)/lo) / math.Log(hi/lo)
}

// spread lays bins over n cells of a logarithmic axis; a bin that covers
// several cells gives each its part.
func spread(h *sched.Histogram, lo, hi float64, n int) []float64 {
	out := make([]float64, n)
	if h == nil {
		return out
	}
	for _, b := range h.Bins {
		if b.N == 0 {
			continue
		}
		from := position(b.From, lo, hi) * float64(n)
		to := max(position(b.To, lo, hi)*float64(n), from+1e-9)
		for k := max(int(from), 0); k < n && float64(k) < to; k++ {
			part := (min(to, float64(k+1)) - max(from, float64(k))) / (to - from)
			out[k] += float64(b.N) * max(part, 0)
		}
	}
	return out
}

// minus is what was counted since: a less b, where b is an earlier reading.
func minus(a, b *sched.Histogram) *sched.Histogram {
	was := map[float64]uint64{}
	for _, x := range b.Bins {
		was[x.From] = x.N
	}
	out := &sched.Histogram{Bins: make([]sched.Bin, 0, len(a.Bins))}
	for _, x := range a.Bins {
		x.N -= min(x.N, was[x.From])
		out.Total += x.N
		out.Bins = append(out.Bins, x)
	}
	return out
}
