package steer

import (
	"fmt"
	"slices"
	"strings"

	"tsgtop/internal/sched"
	"tsgtop/internal/stat"
)

// What the lamp asks for.
const (
	alpha     = 0.001 // one-sided, of a yes
	leastYes  = 5     // short turns after
	leastMore = 2     // times the part of them before
	// Short turns before have another reason, which can come and go: at most this
	// part of them, or nearly all turns must be short after.
	mostBefore = 0.01
	nearlyAll  = 0.9
	leastPile  = 20  // turns as long as the old timeslice, for a no
	mostTorn   = 0.2 // part of the turns that may touch a gap
)

// Verdict is the lamp CHANGED of one best-effort process, and what the GSP's
// counters are to be asked about it.
type Verdict struct {
	sched.Lamp
	// Of a yes: the part of its turns that end where the timeslice now ends them; if
	// kernels did, as many more would be counted at the end of one.
	Part float64
	// A yes only if the counters answer, and say that kernels did not.
	NeedsCounts bool
}

// Shortened is the lamp CHANGED of one best-effort process whose timeslice was
// made shorter: are there turns, ended by another's coming, that the old
// timeslice would not have allowed? Turns of a lone process last until another
// comes, so their usual length says nothing: only whether they can be short, and,
// where LC never comes so soon, the beat of their ends: see beats.
func Shortened(before, after *Use, lim Limits) Verdict {
	v := Verdict{Lamp: shortened(before, after, lim)}
	if v.State == sched.LampYes {
		t := total(after.Blocks)
		v.Part = float64(t.Short) / float64(max(1, t.All))
	}
	if v.State != sched.LampUnknown || before == nil || after == nil || lim.New >= lim.Old {
		return v
	}
	if b := beats(before.Blocks, after.Blocks, lim); b.State != sched.LampUnknown {
		return b
	} else if b.Why != "" {
		v.Why += "; " + b.Why
	}
	return v
}

func shortened(before, after *Use, lim Limits) sched.Lamp {
	unknown := func(format string, args ...any) sched.Lamp {
		return sched.Lamp{State: sched.LampUnknown, Why: fmt.Sprintf(format, args...)}
	}
	if lim.New >= lim.Old {
		return unknown("its timeslice was %d us and is %d us: not shorter, so that its turns cannot show it", lim.Old, lim.New)
	}
	if after == nil || after.Clean == 0 {
		return unknown("it had no turn that ended: nothing competed with it")
	}
	if before == nil || before.Clean == 0 {
		return unknown("it had no turn before its role was given: nothing to compare with")
	}
	b, a := total(before.Blocks), total(after.Blocks)
	if b.All == 0 || a.All == 0 {
		return unknown("no other process came on right after one of its turns, before or since")
	}
	evidence := fmt.Sprintf("turns shorter than the old timeslice of %d us: %d of %d before, %d of %d since", lim.Old, b.Short, b.All, a.Short, a.All)
	was, is := float64(b.Short)/float64(b.All), float64(a.Short)/float64(a.All)
	more := is > leastMore*was && (float64(b.Short) <= max(1, mostBefore*float64(b.All)) || is >= nearlyAll)
	p := 1.0
	if more && a.Short >= leastYes {
		p = permuteShort(before.Blocks, after.Blocks)
	}
	switch {
	case p <= alpha && float64(a.Below) <= 0.1*float64(a.Short)+1:
		return sched.Lamp{State: sched.LampYes, Why: fmt.Sprintf("%s (p %.2g)", evidence, p)}
	case p <= alpha:
		return unknown("%s; but %d are shorter than the new one of %d us too: its kernels may have become short", evidence, a.Below, lim.New)
	case a.Held >= leastPile && float64(a.Short) <= 0.05*float64(a.Held):
		return sched.Lamp{State: sched.LampNo, Why: fmt.Sprintf("%d of %d turns since lasted the old timeslice of %d us while another was known to wait, and %d were shorter", a.Held, a.All, lim.Old, a.Short)}
	case a.At >= leastPile && a.Near >= leastPile && float64(a.Short) <= 0.1*float64(min(a.At, a.Near)):
		return sched.Lamp{State: sched.LampNo, Why: fmt.Sprintf("%d of %d turns since end where the old timeslice of %d us ends them, %d soon after, and only %d before", a.At, a.All, lim.Old, a.Near, a.Short)}
	}
	return unknown("%s: too few to tell", evidence)
}

func total(blocks []Block) (t Block) {
	for _, b := range blocks {
		t.Short, t.All, t.Below, t.At = t.Short+b.Short, t.All+b.All, t.Below+b.Below, t.At+b.At
		t.Held, t.Near = t.Held+b.Held, t.Near+b.Near
	}
	return t
}

// permuteShort is the one-sided p that the part of short turns is larger after,
// by relabelling blocks: turns of one block hang together. Never finer than
// 1/20,000.
func permuteShort(before, after []Block) float64 {
	rate := func(b Block) (float64, bool) { return float64(b.Short) / float64(b.All), b.All > 0 }
	before, after = stat.Unlike(before, after, rate, func(a, b Block) Block { return total([]Block{a, b}) })
	rates := func(blocks []Block) (out []float64) {
		for _, b := range blocks {
			if x, ok := rate(b); ok {
				out = append(out, x)
			}
		}
		return out
	}
	return stat.Permute(rates(before), rates(after), func(_, after []float64) (sum float64) {
		for _, x := range after {
			sum += x
		}
		return sum
	})
}

// ChangedOf joins the lamps of all best-effort processes: yes where one is and
// none is no; no where one is no and none is yes; both is told as such.
func ChangedOf(lamps map[Proc]sched.Lamp) sched.Lamp {
	if len(lamps) == 0 {
		return sched.Lamp{State: sched.LampUnknown, Why: "no best-effort process was given a timeslice"}
	}
	var procs []Proc
	n := map[sched.LampState]int{}
	for p, l := range lamps {
		procs = append(procs, p)
		n[l.State]++
	}
	slices.SortFunc(procs, func(a, b Proc) int { return a.PID - b.PID })
	var why []string
	for _, p := range procs {
		if len(why) < 4 {
			why = append(why, fmt.Sprintf("pid %d: %s: %s", p.PID, lamps[p].State, lamps[p].Why))
		}
	}
	if len(procs) == 1 {
		why = []string{lamps[procs[0]].Why}
	}
	l := sched.Lamp{State: sched.LampUnknown, Why: strings.Join(why, "; ")}
	switch {
	case n[sched.LampYes] > 0 && n[sched.LampNo] == 0:
		l.State = sched.LampYes
		if u := n[sched.LampUnknown]; u > 0 {
			l.Why = fmt.Sprintf("for %d of %d processes, unknown for the others: %s", n[sched.LampYes], len(procs), l.Why)
		}
	case n[sched.LampNo] > 0 && n[sched.LampYes] == 0:
		l.State = sched.LampNo
	case n[sched.LampYes] > 0:
		l.Why = fmt.Sprintf("the processes differ: %d yes, %d no: %s", n[sched.LampYes], n[sched.LampNo], l.Why)
	}
	return l
}
