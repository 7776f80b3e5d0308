//go:build linux

package actions

import (
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tsgtop/actions/verdict"
)

// Drifter is a Clock that can be set while it runs, as the wall's can. Off is
// how far it is from one that cannot, in ns; ok is false where that could not be
// read well.
type Drifter interface {
	Off() (ns int64, ok bool)
}

// Off is how far the wall clock is from the monotonic one.
func (WallClock) Off() (ns int64, ok bool) {
	for range 5 {
		before := monotonic()
		wall := time.Now().UnixNano()
		after := monotonic()
		if after-before < int64(100*time.Microsecond) { // else something else ran in between
			return wall - (before + (after-before)/2), true
		}
	}
	return 0, false
}

func monotonic() int64 {
	var ts unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano()
}

// Changes of the clock that are none: what readings are wrong by, and what a
// clock that is led to the right time gains or loses.
const (
	clockNoise = int64(time.Millisecond)
	clockSlew  = 1000e-6
)

// afterSet is how long after the clock was set the trace can still be on the old
// time, or reach back to it: the clocks are compared once a second.
const afterSet = verdict.Baseline + 2*time.Second

// steady watches whether the source's clock is set: calls and trace are then not
// of one time any more, and nothing can be said of before and after.
type steady struct {
	clock Drifter // nil: one that is never set

	mu    sync.Mutex
	known bool
	off   int64     // ns
	at    time.Time // when that was read
	set   time.Time // when it was last seen to have been set; zero: never
	by    time.Duration
}

func newSteady(c Clock) *steady {
	d, _ := c.(Drifter)
	return &steady{clock: d}
}

// look compares the clocks.
func (s *steady) look() {
	if s.clock == nil {
		return
	}
	off, ok := s.clock.Off()
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	change := off - s.off
	if most := clockNoise + int64(clockSlew*float64(now.Sub(s.at))); s.known && (change > most || change < -most) {
		s.set, s.by = now, time.Duration(change)
	}
	s.known, s.off, s.at = true, off, now
}

// since says that the clock was set after an instant, or so shortly before it
// that it matters; empty where it was not.
func (s *steady) since(t time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.set.IsZero() || s.set.Before(t.Add(-afterSet)) {
		return ""
	}
	return fmt.Sprintf("the machine's clock was set by %v: the calls and the trace are not of one time", s.by.Round(time.Millisecond))
}
