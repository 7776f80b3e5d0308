//go:build linux

package steward

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"tsgtop/internal/sched"
	"tsgtop/internal/steer"
)

// Protection is one run of protect.
type Protection struct {
	Steward *Steward
	Clock   interface {
		Now() sched.Time
		Sleep(context.Context, time.Duration) error
	}
	GPU    int
	Before time.Duration // how long to look before roles are given
	For    time.Duration // how long they are held; 0: until Done or ctx ends
	Done   <-chan struct{}
	// Readings are the numbers of the probe so far, of every name; nil: there is
	// no probe.
	Readings func() []steer.Reading
	// Line is called each second with one line.
	Line func(string)
}

// settle is how long after the last value was set the numbers of the protected
// phase begin.
const settle = 100 * time.Millisecond

// Run looks, holds the roles, and reports. Putting back is left to the Keeper's
// Controller. Its report has no lamps yet where ctx ended before roles were given.
func (p *Protection) Run(ctx context.Context) *steer.Report {
	s := p.Steward
	total, second := s.Watch(p.GPU), s.Watch(p.GPU)
	s.Step(ctx)
	counts := Counts{s.Count(ctx)}
	begin := p.Clock.Now()
	s.Locked(func() { total.Begin(begin); second.Begin(begin) })
	p.until(ctx, begin.Add(p.Before), begin, second)
	counts[1] = s.Count(ctx)
	var before, during *steer.Span
	set := p.Clock.Now()
	s.Locked(func() { before = total.Begin(set) })
	r := &steer.Report{SchemaVersion: steer.SchemaVersion, GPU: p.GPU, Time: begin.Std().Format(time.RFC3339)}
	members := s.Assignment().Members
	r.Before = steer.PhaseOf(before, members)
	if ctx.Err() == nil && !p.isDone() {
		s.On(true)
		s.Step(ctx)
		p.Clock.Sleep(ctx, settle)
		s.Step(ctx)
		counts[2] = s.Count(ctx)
		set = p.Clock.Now()
		s.Locked(func() { total.Begin(set); second.Begin(set) })
		end := sched.Time(1<<62 - 1)
		if p.For > 0 {
			end = set.Add(p.For)
		}
		p.until(ctx, end, begin, second)
	}
	counts[3] = s.Count(context.WithoutCancel(ctx))
	over := p.Clock.Now()
	s.Locked(func() { during = total.Begin(over) })
	members = union(members, s.Assignment().Members)
	r.During = steer.PhaseOf(during, members)
	r.Ran, r.Accepted = s.Lamps()
	r.Changed = s.Changed(before, during, counts)
	p.helped(r, before, during)
	r.Totals = s.Totals()
	_, longest := s.Starving()
	for q, d := range longest {
		r.Starving = append(r.Starving, fmt.Sprintf("pid %d starved: up to %v without a turn while it had work", q.PID, d.Round(time.Millisecond)))
	}
	slices.Sort(r.Starving)
	for _, m := range s.Assignment().Members {
		if m.Lifted != "" {
			r.Notes = append(r.Notes, fmt.Sprintf("the role of pid %d was lifted: %s", m.Proc.PID, m.Lifted))
		}
	}
	r.Notes = append(r.Notes, p.notes(r, during)...)
	return r
}

func (p *Protection) isDone() bool {
	select {
	case <-p.Done:
		return true
	default:
		return false
	}
}

// until keeps the roles until an instant, and prints a line a second.
func (p *Protection) until(ctx context.Context, end, begin sched.Time, second *steer.Meter) {
	next := p.Clock.Now().Add(time.Second)
	for ctx.Err() == nil && p.Clock.Now() < end && !p.isDone() {
		p.Clock.Sleep(ctx, min(StepEvery, end.Sub(p.Clock.Now())))
		p.Steward.Step(ctx)
		now := p.Clock.Now()
		if now < next {
			continue
		}
		next = next.Add(time.Second)
		var span *steer.Span
		p.Steward.Locked(func() { span = second.Begin(now) })
		if p.Line != nil {
			starving, _ := p.Steward.Starving()
			p.Line(steer.Line(now.Sub(begin), span, p.Steward.Assignment().Members, p.Steward.Totals(), len(starving)))
		}
	}
}

// helped compares what the probe gave.
func (p *Protection) helped(r *steer.Report, before, during *steer.Span) {
	r.Helped = sched.Lamp{State: sched.LampUnknown, Why: steer.CannotSee}
	if p.Readings == nil {
		return
	}
	names := []string{}
	was, is := map[string][]steer.Reading{}, map[string][]steer.Reading{}
	for _, x := range p.Readings() {
		if !slices.Contains(names, x.Name) && len(names) < 16 {
			names = append(names, x.Name)
		}
		switch {
		case x.At >= before.From && x.At < before.To:
			was[x.Name] = append(was[x.Name], x)
		case x.At >= during.From && x.At < during.To:
			is[x.Name] = append(is[x.Name], x)
		}
	}
	if len(names) == 0 {
		r.Helped.Why = "the probe printed no number"
		return
	}
	for _, n := range names {
		r.Probe = append(r.Probe, steer.ProbeComparison{Metric: n, Before: steer.DistOfReadings(was[n]), During: steer.DistOfReadings(is[n])})
	}
	r.Helped = steer.Helped(names[0], was[names[0]], is[names[0]])
}

// notes are what is noteworthy at the end.
func (p *Protection) notes(r *steer.Report, during *steer.Span) (notes []string) {
	notes = append(notes, p.Steward.Assignment().Notes...)
	for _, m := range p.Steward.Assignment().Members {
		u := during.Uses[m.Proc]
		share := during.Share(m.Proc)
		if m.Role == steer.LC && u != nil && u.Clean >= 3 && share != nil && *share > 0.5 && 4*u.Forced >= 3*u.Clean {
			notes = append(notes, fmt.Sprintf("pid %d, latency-critical, had work all the time: %d of its %d turns were ended by its timeslice, and the others got what it left (its share: %.0f%%)",
				m.Proc.PID, u.Forced, u.Clean, 100**share))
		}
	}
	if a := p.Steward.Assignment(); a.LongestBE() > 0 {
		if line := steer.Choices(a.Competing, a.LongestBE()); line != "" {
			notes = append(notes, line)
		}
	}
	lc, be := roleCounts(p.Steward.Assignment().Members)
	if lc == 0 {
		notes = append(notes, "the latency-critical process has ended, or has not appeared")
	}
	if during.Competed == 0 && be > 0 {
		notes = append(notes, "nothing competed while roles were held: a short timeslice costs a lone process nothing, and changes nothing")
	}
	return slices.Compact(notes)
}

func roleCounts(members []steer.Member) (lc, be int) {
	for _, m := range members {
		if m.Role == steer.LC {
			lc++
		} else {
			be++
		}
	}
	return lc, be
}

// union is the members of two assignments: those that ended, too.
func union(a, b []steer.Member) []steer.Member {
	out := slices.Clone(b)
	for _, m := range a {
		if !slices.ContainsFunc(b, func(x steer.Member) bool { return x.Proc == m.Proc }) {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(x, y steer.Member) int {
		if c := strings.Compare(string(y.Role), string(x.Role)); c != 0 {
			return c
		}
		return x.Proc.PID - y.Proc.PID
	})
	return out
}
