package verdict

import (
	"fmt"
	"math"
	"slices"
	"time"

	"tsgtop/internal/sched"
)

// enough is the least share of the target's turns that its timeslice must have
// ended for those turns to tell about the timeslice.
const enough = 0.25

// timeslice compares the target's residencies before and after. Compared are,
// on both sides alike, turns that either value could have ended: of at least
// three quarters of the lesser one, so that a hardware whose turns vary is not
// cut off where it matters. A turn longer than both counts only if another TSG
// is known to have waited, because otherwise it lasted for want of one.
func (v view) timeslice() sched.Changed {
	was, is := v.window(v.Judge.clip(v.was)), v.window(v.is)
	if v.plan.New == nil {
		return unknown("no timeslice was asked for")
	}
	asked := *v.plan.New
	low, high, direction := asked, asked, 0
	if old := v.plan.Old; old != nil {
		low, high = min(low, *old), max(high, *old)
		switch {
		case asked < *old:
			direction = -1
		case asked > *old:
			direction = 1
		}
	}
	sample := func(turns []turn) (some []turn) {
		for _, t := range turns {
			if t.length() >= lasted(low)/4*3 && (t.contested || v.plan.Old == nil || ended(high, t.length()) || t.length() < lasted(high)) {
				some = append(some, t)
			}
		}
		return some
	}
	before, after := sample(was.target), sample(is.target)
	c := compareResidency(before, after, was.span, is.span, direction)
	var result sched.Changed
	switch why := firstOf(torn(was, is), missing(was, is), v.disagree()); {
	case why != "":
		result = unknown(why)
	case c == nil:
		if told, ok := v.beats(was, is); ok {
			return told
		}
		result = unknown(firstOf(v.uninformative(was), few(window{span: was.span, target: before, lost: was.lost}, window{span: is.span, target: after, lost: is.lost})))
	default:
		result = v.timesliceOf(c, was, is, before, after)
		if result.State == sched.LampUnknown {
			if told, ok := v.beats(was, is); ok {
				return told
			}
		}
	}
	nb, na := 0, 0
	if c != nil {
		nb, na = len(c.before), len(c.after)
	}
	state := result.Lamp
	asAsked := result.AsAsked
	c.put(&result, "residency_us", "residency p50", " us", sampleOf(before, nb), sampleOf(after, na))
	result.Lamp, result.AsAsked = state, asAsked
	return result
}

// clip keeps a span inside what the trace was read of.
func (j *Judge) clip(s span) span { return span{max(s.from, j.began), s.to} }

func firstOf(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}

// timesliceOf decides from a comparison that could be made.
func (v view) timesliceOf(c *comparison, was, is window, before, after []turn) sched.Changed {
	asked := *v.plan.New
	from, to := sampleOf(before, 0).P50, sampleOf(after, 0).P50
	landed := v.landed(after, to)
	switch {
	case c.changed(v.alpha):
		steady, side := c.steady()
		switch {
		case !steady:
			return unknown(fmt.Sprintf("the target's turns were on the move %s the call: the workload changes by itself", side))
		case !abrupt(logsOf(before), logsOf(after)):
			return unknown(fmt.Sprintf("the target's turns went from %s to %s us, but not at the call: the workload changed by itself", number(from), number(to)))
		}
		if why := firstOf(v.company(was, is), v.unasked(c, landed, was, after, from, to)); why != "" {
			return unknown(why)
		}
		r := lamp(sched.LampYes, "the target's turns went from %s to %s us; %d us was asked for", number(from), number(to), asked)
		if !landed {
			r = lamp(sched.LampYes, "the target's turns went from %s to %s us, which is not what was asked for: %d us", number(from), number(to), asked)
		}
		r.AsAsked = &landed
		return r
	case c.same():
		if why := firstOf(v.company(was, is), v.uninformative(was), v.invisible(from)); why != "" {
			return unknown(why)
		}
		if v.first {
			return waiting("no change so far")
		}
		return lamp(sched.LampNo, "the target's turns stayed at %s us; %d us was asked for", number(to), asked)
	case c.low > 0 || c.high < 0:
		if c.direction != 0 && c.d*float64(c.direction) < 0 {
			return unknown(fmt.Sprintf("the target's turns went the other way, from %s to %s us: the workload changes by itself", number(from), number(to)))
		}
		if math.Abs(c.d) < effect {
			return unknown(fmt.Sprintf("the target's turns changed by %.1f%%: too little to count as an effect, and not shown to be none", 100*math.Abs(c.ratio()-1)))
		}
	}
	return unknown(firstOf(v.uninformative(was), v.wide(c, was, is)))
}

// landed tells whether the turns after are where the asked value puts them:
// their median, and, within a quarter, at least half of them.
func (v view) landed(after []turn, p50 float64) bool {
	low, high := endings(*v.plan.New)
	n := 0
	for _, t := range after {
		if l := t.length(); l >= low/4*3 && l <= high/4*5 {
			n++
		}
	}
	return 2*n >= len(after) && ended(*v.plan.New, time.Duration(p50*1e3))
}

// unasked is why a change is not put down to the command, if it is not: where it
// did not land where it was asked to, a change of the target's kernels looks the
// same.
func (v view) unasked(c *comparison, landed bool, was window, after []turn, from, to float64) string {
	if v.plan.Old != nil && *v.plan.Old == *v.plan.New {
		if !landed || ended(*v.plan.Old, time.Duration(from*1e3)) {
			return fmt.Sprintf("the target's turns went from %s to %s us, though the value that was asked for was there already", number(from), number(to))
		}
	}
	if landed {
		// Turns that something else ended, and that were as short before, tell nothing.
		if why := v.uninformative(was); why != "" && ended(*v.plan.New, time.Duration(from*1e3)) {
			return why
		}
		return ""
	}
	if why := v.uninformative(was); why != "" {
		return why
	}
	if c.d > 0 {
		n := 0
		for _, t := range after {
			if t.contested {
				n++
			}
		}
		if 2*n < len(after) {
			return fmt.Sprintf("the target's turns grew from %s to %s us, but nothing shows that another waited for it", number(from), number(to))
		}
		if c.d < math.Ln2 && spread(after) > 0.10 {
			return fmt.Sprintf("the target's turns grew from %s to about %s us, but vary too much for that to be its timeslice's doing", number(from), number(to))
		}
		return ""
	}
	if share, known := v.cut(v.is); known && share < enough {
		return fmt.Sprintf("the target's turns went from %s to %s us, but the GSP says that its kernels had ended in %.0f%% of them", number(from), number(to), 100*(1-share))
	}
	if spread(after) > 0.03 {
		return fmt.Sprintf("the target's turns went from %s to about %s us, which is no timeslice's length: its kernels may have changed", number(from), number(to))
	}
	return ""
}

// spread is the interquartile range of the logarithm of residency: about the
// ratio of the quartiles, less 1.
func spread(turns []turn) float64 {
	x := logsOf(turns)
	slices.Sort(x)
	return quantile(x, 0.75) - quantile(x, 0.25)
}

// uninformative is why the turns before the call tell nothing of the
// timeslice, if they do not: something else ended them.
func (v view) uninformative(was window) string {
	if v.plan.Old == nil {
		return "the timeslice before is not known, so it cannot be told which turns it ended"
	}
	old := *v.plan.Old
	var short, free []float64
	forced := 0
	for _, t := range was.target {
		switch l := t.length(); {
		case l < lasted(old):
			short = append(short, float64(l)/1e3)
		case ended(old, l) || t.contested:
			forced++
		default:
			free = append(free, float64(l)/1e3)
		}
	}
	if float64(forced) >= enough*float64(len(was.target)) && forced > 0 {
		if share, known := v.cut(was.span); known && share < enough/2 {
			return fmt.Sprintf("the GSP says that the target's kernels had ended in %.0f%% of its turns: its timeslice does not end them", 100*(1-share))
		}
		return ""
	}
	if len(short) >= len(free) {
		return fmt.Sprintf("its kernels end before the timeslice does, at %s us of %d", number(median(short)), old)
	}
	return fmt.Sprintf("its turns last %s us, beyond the timeslice of %d: nothing shows that another waited", number(median(free)), old)
}

// invisible is why no change is to be seen even from a hardware that obeys: the
// asked value is too near the old one, beside what a switch adds to each turn.
func (v view) invisible(p50 float64) string {
	if v.plan.Old == nil || *v.plan.Old == *v.plan.New {
		return ""
	}
	old, asked := float64(*v.plan.Old), float64(*v.plan.New)
	adds := max(0, min(300, p50-old))
	if r := math.Log((asked + adds) / (old + adds)); math.Abs(r) < effect {
		return fmt.Sprintf("%d instead of %d us is too small a change to be seen in turns of %s us", *v.plan.New, *v.plan.Old, number(p50))
	}
	return ""
}

// wide is why a comparison that was made tells neither.
func (v view) wide(c *comparison, was, is window) string {
	if c.lag1 > 2*tooAlike {
		return fmt.Sprintf("its turns hang together over more than %d ms: %d and %d blocks are too few to tell", c.block.Milliseconds(), len(c.before), len(c.after))
	}
	if min(len(was.target), len(is.target)) < 40 {
		return few(was, is)
	}
	return fmt.Sprintf("its turns vary too much: the ratio is between %s and %s", short(math.Exp(c.low)), short(math.Exp(c.high)))
}
