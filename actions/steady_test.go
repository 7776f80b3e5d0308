//go:build linux

package actions

import (
	"context"
	"strings"
	"testing"
	"time"

	"tsgtop/internal/sched"
)

// settable is a bench whose clock somebody sets.
type settable struct {
	*bench
	off int64
}

func (s *settable) Off() (int64, bool) { return s.off, true }

// The machine's clock is set while a command is judged, or shortly before it: the
// trace's time and the call's are not one for up to a second.
func TestClockIsSet(t *testing.T) {
	for _, c := range []struct {
		name   string
		off    time.Duration
		before bool
		state  sched.LampState
	}{
		{"back", -500 * time.Millisecond, false, sched.LampUnknown},
		{"forward by little", 5 * time.Millisecond, false, sched.LampUnknown},
		{"just before", -time.Hour, true, sched.LampUnknown},
		{"led to the right time", 200 * time.Microsecond, false, sched.LampYes},
	} {
		t.Run(c.name, func(t *testing.T) {
			clock := &settable{}
			s := simulated(t, "", func(o *Options) {
				clock.bench = o.Clock.(*bench)
				o.Clock = clock
			})
			set := func() { clock.off = int64(c.off) }
			if c.before {
				set()
				s.Sleep(context.Background(), 10*time.Millisecond)
			} else {
				s.Wakeup = func() {
					if l := s.b.Snapshot(sched.SnapshotOptions{}).Commands; len(l) == 1 && l[0].Issued > 0 {
						set()
					}
				}
			}
			cmd := s.command(s.prepare(sched.OpTimeslice, 200))
			if cmd.Changed.State != c.state || (c.state == sched.LampUnknown) != strings.Contains(cmd.Changed.Why, "clock was set") {
				t.Errorf("%+v", cmd.Changed.Lamp)
			}
		})
	}
}

// The wall's clock is not set while nobody sets it.
func TestWallClockIsSteady(t *testing.T) {
	s := newSteady(WallClock{})
	begun := time.Now()
	for range 200 {
		s.look()
	}
	if why := s.since(begun); why != "" {
		t.Error(why)
	}
}
