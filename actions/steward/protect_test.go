package steward

import (
	"strings"
	"testing"
	"time"

	"tsgtop/internal/sched"
	"tsgtop/internal/steer"
)

// An LC process beside one BE process, and beside three: its p99 falls, BE's
// share does not, and everything is as it was afterwards.
func TestProtect(t *testing.T) {
	for _, c := range []struct {
		knobs string
		n     int
	}{{"lc", 2}, {"lc,tsgs=4", 4}} {
		s := simulated(t, c.knobs, nil)
		m := s.s.Watch(0)
		r := s.protect(4*time.Second, 8*time.Second)
		s.s.Locked(func() { s.leftForLC(m.Peek()) })
		if r.Ran.State != sched.LampYes || r.Accepted.State != sched.LampYes || r.Changed.State != sched.LampYes || r.Helped.State != sched.LampYes {
			t.Errorf("%s:\n%+v\n%+v\n%+v\n%+v", c.knobs, r.Ran, r.Accepted, r.Changed, r.Helped)
		}
		for i, us := range s.slices() {
			if want := steer.AutoBE(c.n - 1); i > 0 && us != want || i == 0 && us != 2048 {
				t.Errorf("%s: timeslice %d is %d us", c.knobs, i, us)
			}
		}
		before, during := r.Before.Procs, r.During.Procs
		if len(before) != c.n || len(during) != c.n || before[0].Role != "lc" {
			t.Fatalf("%s: %+v", c.knobs, r.Before)
		}
		for i := range before {
			if c.n == 2 && i > 0 && (before[i].LeftFor == nil || during[i].LeftFor == nil || *during[i].LeftFor.Min > 400 || *before[i].LeftFor.Min < 1000) {
				t.Errorf("%s: pid %d left after %+v before, %+v during", c.knobs, before[i].PID, before[i].LeftFor, during[i].LeftFor)
			}
			if before[i].Share == nil || during[i].Share == nil || *before[i].Share <= 0 {
				t.Errorf("%s: shares %+v", c.knobs, before[i])
			}
		}
		if len(s.lines) < 11 || !strings.Contains(s.lines[len(s.lines)-1], "LC") {
			t.Errorf("lines: %q", s.lines)
		}
		var out strings.Builder
		r.Write(&out)
		t.Logf("%s\n%s%s", c.knobs, strings.Join(s.lines[:1], "\n"), out.String())
		s.closed()
		for i, us := range s.slices() {
			if us != 2048 {
				t.Errorf("%s: at the end timeslice %d is %d us", c.knobs, i, us)
			}
		}
	}
}

// leftForLC sees that the lengths of the turns that LC's coming ended are kept,
// and no others.
func (s *bench) leftForLC(span *steer.Span) {
	s.t.Helper()
	for p, u := range span.Uses {
		n := 0
		for _, b := range u.Blocks {
			n += len(b.Left)
		}
		if n != u.LeftFor.N || n > u.Clean || p.PID == s.m.Targets()[0].PID && n > 0 {
			s.t.Errorf("pid %d: %d lengths kept of %d turns that LC's coming ended", p.PID, n, u.LeftFor.N)
		}
	}
}

// A GPU that accepts a timeslice and does nothing with it.
func TestProtectIgnored(t *testing.T) {
	for _, knobs := range []string{"lc,timeslice=ignore", "lc,timeslice=stub", "lc,timeslice=refuse"} {
		s := simulated(t, knobs, nil)
		r := s.protect(4*time.Second, 8*time.Second)
		if r.Changed.State == sched.LampYes || r.Helped.State == sched.LampYes {
			t.Errorf("%s: %+v %+v", knobs, r.Changed, r.Helped)
		}
		want := map[string]sched.LampState{"lc,timeslice=ignore": sched.LampYes, "lc,timeslice=stub": sched.LampNo, "lc,timeslice=refuse": sched.LampNo}[knobs]
		if r.Accepted.State != want {
			t.Errorf("%s: %+v", knobs, r.Accepted)
		}
		if knobs == "lc,timeslice=ignore" && r.Changed.State != sched.LampNo {
			t.Errorf("%s: %+v", knobs, r.Changed)
		}
		s.closed()
		s.allAt(2048, 2048)
	}
}
