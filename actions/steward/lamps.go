//go:build linux

package steward

import (
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

// Changed is the lamp CHANGED of all best-effort processes, from a span before
// the roles were given and one since.
func (s *Steward) Changed(before, during *steer.Span) sched.Lamp {
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
			lamps[p] = steer.Shortened(before.Uses[p], during.Uses[p], l)
		}
	}
	return steer.ChangedOf(lamps)
}
