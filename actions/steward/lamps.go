//go:build linux

package steward

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"tsgtop/actions"
	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
	"tsgtop/internal/steer"
)

// Starving are those that starve now, and the longest that each has so far.
func (s *Steward) Starving() (now, longest map[steer.Proc]time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.starving), maps.Clone(s.starved)
}

// Totals counts what was sent so far.
func (s *Steward) Totals() steer.Totals {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.totals()
}

func (s *Steward) totals() steer.Totals {
	t := steer.Totals{Where: map[string]int{}, ByStatus: map[string]int{}}
	for _, k := range s.seen {
		if k.Calls > 0 || k.Held {
			t.TSGs++
		}
		t.Calls += k.Calls
		t.Again += k.Again
		if k.Err != nil && !errors.Is(k.Err, actions.ErrQuiet) {
			t.Failed++
		}
	}
	for _, a := range s.accepted() {
		t.Where[a.Where]++
		if a.Status != "" {
			t.ByStatus[a.Status]++
		}
	}
	return t
}

func (s *Steward) accepted() (out []sched.Accepted) {
	for _, gen := range slices.Sorted(maps.Keys(s.seen)) {
		if k := s.seen[gen]; len(k.Results) > 0 {
			out = append(out, actions.AcceptedOf(k.Results))
		}
	}
	return out
}

// Lamps are RAN and ACCEPTED of all calls together: the worst of all TSGs.
func (s *Steward) Lamps() (ran, accepted sched.Lamp) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var rans, accs []sched.Lamp
	for _, gen := range slices.Sorted(maps.Keys(s.seen)) {
		if k := s.seen[gen]; len(k.Results) > 0 {
			rans = append(rans, actions.RanOf(k.Results))
			accs = append(accs, actions.AcceptedOf(k.Results).Lamp)
		}
	}
	return worst(rans), worst(accs)
}

// worst is a "no" before an unknown before a yes, with how many.
func worst(lamps []sched.Lamp) sched.Lamp {
	if len(lamps) == 0 {
		return sched.Lamp{State: sched.LampUnknown, Why: "nothing was sent"}
	}
	n := map[sched.LampState]int{}
	for _, l := range lamps {
		n[l.State]++
	}
	for _, state := range []sched.LampState{sched.LampNo, sched.LampUnknown, sched.LampYes} {
		for _, l := range lamps {
			if l.State == state {
				if len(lamps) > 1 {
					l.Why = fmt.Sprintf("%d of %d TSGs, such as: %s", n[state], len(lamps), l.Why)
				}
				return l
			}
		}
	}
	return lamps[0]
}

// Count reads the GSP's switch counters of the best-effort processes' graphics
// TSGs; a process that they do not answer for is not there.
func (s *Steward) Count(ctx context.Context) map[steer.Proc]actions.Counters {
	s.mu.Lock()
	wants := s.now.Wants
	s.mu.Unlock()
	out := map[steer.Proc]actions.Counters{}
	for _, w := range wants {
		if w.Role != steer.BE || !steer.IsCompute(w.Row) {
			continue
		}
		if k := s.o.Keeper.Counters(ctx, w.Row); k != nil {
			out[w.Proc] = *k
		}
	}
	return out
}

// Counts are readings of the counters at the beginning and the end of both phases.
type Counts [4]map[steer.Proc]actions.Counters

// ended is the part of a process's saves, before and during, at which its kernel
// had ended by itself; not ok where that is not known.
func (c Counts) ended(p steer.Proc) (before, during float64, ok bool) {
	part := func(from, to map[steer.Proc]actions.Counters) (float64, bool) {
		a, ok1 := from[p]
		b, ok2 := to[p]
		if !ok1 || !ok2 || b.Save < a.Save+20 || b.WFI < a.WFI { // less: somebody has reset them
			return 0, false
		}
		return float64(b.WFI-a.WFI) / float64(b.Save-a.Save), true
	}
	before, ok1 := part(c[0], c[1])
	during, ok2 := part(c[2], c[3])
	return before, during, ok1 && ok2
}

// second asks the GSP's counters whether the turns that end sooner now were cut: if
// they ended because kernels did, more saves are of that kind than before.
func (c Counts) second(v steer.Verdict, p steer.Proc) sched.Lamp {
	l := v.Lamp
	if l.State != sched.LampYes {
		return l
	}
	before, during, ok := c.ended(p)
	switch {
	case !ok && v.NeedsCounts:
		l.State = sched.LampUnknown
		l.Why += "; but the beat of the new timeslice does not show, and the GSP's switch counters, which could tell whether kernels ended by themselves, do not answer"
	case !ok:
		l.Why += "; the GSP's switch counters do not answer: whether kernels ended by themselves is not known"
	case v.NeedsCounts && (during > 0.25 || during-before > 0.1), during-before > 0.5*v.Part:
		l.State = sched.LampUnknown
		l.Why += fmt.Sprintf("; but the GSP counts %.0f%% of its switches since at the end of a kernel, against %.0f%% before: its kernels have become short", 100*during, 100*before)
	default:
		l.Why += fmt.Sprintf("; by the GSP's count %.0f%% of its switches cut a kernel, %.0f%% before", 100-100*during, 100-100*before)
	}
	return l
}

// Changed is the lamp CHANGED of all best-effort processes, from a span before
// the roles were given and one since.
func (s *Steward) Changed(before, during *steer.Span, counts Counts) sched.Lamp {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sp := range []*steer.Span{before, during} {
		if sp.TornShare() > 0.2 {
			return sched.Lamp{State: sched.LampUnknown, Why: fmt.Sprintf("more than 20%% of the turns touch a gap in the trace (%d)", sp.Torn)}
		}
	}
	lamps := map[steer.Proc]sched.Lamp{}
	for _, k := range s.seen {
		graphics := k.Target.Engine != nil && rm.IsGraphicsEngine(*k.Target.Engine) || k.Target.Engine == nil && k.Target.Runlist == 0
		if !k.Held && k.Calls == 0 || !graphics {
			continue
		}
		p := steer.Proc{PID: k.Target.PID, Start: k.Target.Start}
		if l, ok := s.limits[p]; ok {
			lamps[p] = counts.second(steer.Shortened(before.Uses[p], during.Uses[p], l), p)
		}
	}
	return steer.ChangedOf(lamps)
}
