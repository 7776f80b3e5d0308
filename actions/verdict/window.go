package verdict

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"tsgtop/internal/sched"
)

// view is what one look sees: the windows before and after the call.
type view struct {
	*Judge
	was, is      span
	alpha        float64 // one-sided error that this look may spend
	first, final bool
}

// window is one side: the turns that lie in it whole.
type window struct {
	span
	all       []turn // of all TSGs, clean or not
	target    []turn // clean, of the target
	counts    map[int]int
	discarded float64 // turns that touch a gap, or are inside one: two records make one
	lost      int     // records
}

// turnsOf gives the clean turns of a TSG that lie in a span whole.
func (j *Judge) turnsOf(tsg int, s span) []turn {
	var turns []turn
	for _, t := range j.within(s) {
		if t.tsg == tsg && t.clean {
			turns = append(turns, t)
		}
	}
	return turns
}

// within gives all turns that lie in a span whole, in order.
func (j *Judge) within(s span) []turn {
	all := j.fold.turns
	from := sort.Search(len(all), func(i int) bool { return all[i].end > s.from })
	to := sort.Search(len(all), func(i int) bool { return all[i].end > s.to })
	for from < to && all[from].start < s.from {
		from++
	}
	return all[from:to]
}

func (j *Judge) window(s span) window {
	w := window{span: s, all: j.within(s), counts: map[int]int{}}
	for _, t := range w.all {
		if !t.clean {
			w.discarded++
			continue
		}
		w.counts[t.tsg]++
		if t.tsg == 0 {
			w.target = append(w.target, t)
		}
	}
	w.lost = j.lostIn(s)
	w.discarded += float64(w.lost) / 2
	return w
}

// tsgs are those that had turns, in the order in which they were first met.
func (w window) tsgs() []int { return slices.Sorted(maps.Keys(w.counts)) }

// lostIn counts the records that are known to be missing in a span.
func (j *Judge) lostIn(s span) (n int) {
	for _, l := range j.fold.lost {
		if l.at >= s.from && l.at <= s.to {
			n += int(l.records)
		}
	}
	return n
}

// mostDiscarded is the share of turns that may touch a gap in the trace.
const mostDiscarded = 0.2

// torn is why the trace of two windows is not fit to be compared, if it is not.
func torn(windows ...window) string {
	lost := 0
	bad := false
	for _, w := range windows {
		lost += w.lost
		seen := float64(len(w.target))
		for t, n := range w.counts {
			if t != 0 {
				seen += float64(n)
			}
		}
		if w.discarded > mostDiscarded*(seen+w.discarded) {
			bad = true
		}
	}
	if !bad {
		return ""
	}
	return fmt.Sprintf("more than 20%% of the turns touch a gap: the trace lost %s", plural(lost, "record", "records"))
}

// missing is which side has no turns to compare at all, and why, if one has none.
func missing(was, is window) string {
	for _, side := range []struct {
		w    window
		when string
	}{{was, "before"}, {is, "after"}} {
		if len(side.w.target) > 0 {
			continue
		}
		if len(side.w.counts) == 0 {
			return fmt.Sprintf("nothing competed %s the call: a context alone on its engine is never switched", side.when)
		}
		return fmt.Sprintf("the target had no turn in %.1f s %s the call", side.w.length().Seconds(), side.when)
	}
	return ""
}

// few says that there are too few turns, and whether losses are part of it.
func few(was, is window) string {
	n, s, when := len(is.target), is.length(), "after"
	if len(was.target) < n || was.length() < 500*time.Millisecond {
		n, s, when = len(was.target), was.length(), "before"
	}
	why := fmt.Sprintf("only %s in %.2g s %s the call", plural(n, "turn", "turns"), s.Seconds(), when)
	if lost := was.lost + is.lost; lost > 0 {
		why += fmt.Sprintf("; the trace lost %s", plural(lost, "record", "records"))
	}
	return why
}

// A TSG competes if it has at least a fifth of the target's turns: taking turns
// in order gives equal numbers. Below a tenth it does not.
const (
	competes    = 0.2
	competesNot = 0.1
)

// company is whether the same TSGs competed before and after, or else in words
// who came or went. What the others do changes the target's turns without any
// command.
func (j *Judge) company(was, is window) string {
	for _, side := range []struct {
		here, there window
		word        string
	}{{was, is, "stopped competing after the call"}, {is, was, "began to compete after the call"}} {
		for _, tsg := range side.here.tsgs() {
			n := side.here.counts[tsg]
			expect := competes * float64(len(side.there.target))
			if tsg == 0 || float64(n) < competes*float64(len(side.here.target)) || expect < 4 {
				continue
			}
			if float64(side.there.counts[tsg]) < competesNot*float64(len(side.there.target)) {
				return fmt.Sprintf("%s %s: the company changed", j.name(tsg), side.word)
			}
		}
	}
	return ""
}

// kept tells whether the other competitors' turns stayed as they were; if not,
// whose changed and how.
func (j *Judge) kept(was, is window) string {
	length := func(w window, tsg int) float64 {
		var x []float64
		for _, t := range w.all {
			if t.tsg == tsg && t.clean {
				x = append(x, float64(t.length())/1e3)
			}
		}
		return median(x)
	}
	for _, tsg := range was.tsgs() {
		n := was.counts[tsg]
		if tsg == 0 || float64(n) < competes*float64(len(was.target)) || n < blockTurns || is.counts[tsg] < blockTurns {
			continue
		}
		a, b := length(was, tsg), length(is, tsg)
		if math.Abs(math.Log(b/a)) > rise {
			return fmt.Sprintf("the turns of %s changed too, from %s to %s us", j.name(tsg), number(a), number(b))
		}
	}
	return ""
}

// name is what the trace knows of another TSG.
func (j *Judge) name(tsg int) string {
	var contexts []string
	for c, t := range j.fold.contexts {
		if t == tsg {
			contexts = append(contexts, fmt.Sprintf("%x", c))
		}
	}
	sort.Strings(contexts)
	if len(contexts) > 1 {
		contexts = contexts[:1]
	}
	if pid := j.fold.pids[tsg]; pid != 0 {
		return fmt.Sprintf("context %s (pid %d)", strings.Join(contexts, ""), pid)
	}
	return "context " + strings.Join(contexts, "")
}

// disagree is how the GSP's count of the target's switches and the trace's
// differ, if they do: the same thing counted by two witnesses over the same
// stretches. Each reading is of an unknown instant of its call, which can have
// taken long; two turns and 10% are left besides.
func (j *Judge) disagree() string {
	for i := 1; i < len(j.counters); i++ {
		a, b := j.counters[i-1], j.counters[i]
		inner, outer := span{a.Until, b.At}, span{a.At, b.Until}
		if inner.length() < 200*time.Millisecond || outer.from < j.began || outer.to > j.read || b.Save < a.Save { // less: somebody reset them
			continue
		}
		gsp, least, most := float64(b.Save-a.Save), 0.0, 0.0
		for _, t := range j.fold.turns {
			if t.tsg == 0 && outer.holds(t.end) {
				most++
				if inner.holds(t.end) {
					least++
				}
			}
		}
		slack := 2 + 0.1*max(gsp, most) + float64(j.lostIn(outer))
		if trace := min(max(gsp, least), most); math.Abs(gsp-trace) > slack {
			return fmt.Sprintf("two witnesses disagree: in %.1f s the trace saw %.0f turns of the target end, the GSP counted %.0f", outer.length().Seconds(), trace, gsp)
		}
	}
	return ""
}

// cut is which part of the target's switches in a span were made in the middle
// of a kernel, by the GSP's count.
func (j *Judge) cut(s span) (share float64, known bool) {
	var first, last *Counters
	for i := range j.counters {
		if c := &j.counters[i]; c.At >= s.from.Add(-Baseline) && c.At <= s.to {
			if first == nil || c.At <= s.from { // the last before the span begins
				first = c
			}
			last = c
		}
	}
	if first == last || last.Save < first.Save+10 || last.CILP < first.CILP {
		return 0, false
	}
	return float64(last.CILP-first.CILP) / float64(last.Save-first.Save), true
}

// cost is what the command did to the target's share and to the switch tax.
func (v view) cost() sched.Cost {
	var c sched.Cost
	c.ShareBefore, c.SwitchTaxBefore = v.sharing(v.was)
	c.ShareAfter, c.SwitchTaxAfter = v.sharing(v.is)
	return c
}

// costBin is the grain in which time counts as competed.
const costBin = 100 * time.Millisecond

// sharing gives the target's share and the switch tax of the competed time of a
// span: of those tenths of a second in which at least two TSGs had turns and no
// record is missing. Nil: nothing competed.
func (j *Judge) sharing(s span) (share, tax *float64) {
	n := int(s.length() / costBin)
	if n == 0 {
		return nil, nil
	}
	type bin struct {
		target, gaps float64
		tsg          int
		competed     bool
		torn         bool
	}
	bins := make([]bin, n)
	for i := range bins {
		bins[i].tsg = -1
	}
	spread := func(from, to sched.Time, f func(*bin, float64)) {
		for i := max(0, int(from.Sub(s.from)/costBin)); i < n; i++ {
			a, b := s.from.Add(time.Duration(i)*costBin), s.from.Add(time.Duration(i+1)*costBin)
			if a >= to {
				break
			}
			f(&bins[i], float64(min(b, to)-max(a, from)))
		}
	}
	for _, t := range j.fold.turns {
		if t.end <= s.from || t.start >= s.to {
			continue
		}
		spread(max(t.start, s.from), t.end, func(b *bin, ns float64) {
			if b.tsg >= 0 && b.tsg != t.tsg {
				b.competed = true
			}
			b.tsg = t.tsg
			b.torn = b.torn || !t.clean
			if t.tsg == 0 {
				b.target += ns
			}
		})
		if t.after != 0 && t.start.Sub(t.after) < time.Millisecond && t.after >= s.from {
			spread(t.after, t.start, func(b *bin, ns float64) { b.gaps += ns })
		}
	}
	var target, gaps, competed float64
	for _, b := range bins {
		if b.competed && !b.torn {
			target, gaps, competed = target+b.target, gaps+b.gaps, competed+float64(costBin)
		}
	}
	if competed == 0 {
		return nil, nil
	}
	return sched.Ptr(round(target/competed, 4)), sched.Ptr(round(gaps/competed, 4))
}
