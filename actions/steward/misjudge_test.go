package steward

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"tsgtop/actions"
	"tsgtop/internal/sched"
	"tsgtop/internal/sim"
)

// A GPU that ignores timeslices, and a workload that changes by itself while the roles
// are held: LC comes less often, so that BE's turns hold more ends of kernels; BE's
// kernels become shorter. Never a yes.
func TestProtectIsNotFooledByTheWorkload(t *testing.T) {
	us := func(x float64) time.Duration { return time.Duration(x * 1e3) }
	for _, c := range []struct {
		kernel, gap   float64 // BE's, us: mean length and mean pause
		kernel2, gap2 float64 // since
		every, every2 float64 // mean pause of LC's, us
		be            uint64
	}{
		{5000, 100, 5000, 100, 10000, 80000, 0},
		{30000, 1000, 30000, 1000, 10000, 80000, 0},
		{5000, 200, 5000, 200, 10000, 40000, 0},
		{5000, 200, 5000, 200, 10000, 30000, 100},
		{5000, 200, 5000, 200, 10000, 40000, 200},
		{30000, 9, 10000, 1000, 10000, 10000, 0},
		{30000, 9, 5000, 300, 10000, 10000, 0},
		{30000, 9, 5000, 500, 10000, 10000, 0},
		{30000, 9, 700, 50, 10000, 10000, 0},
	} {
		states := map[sched.LampState]int{}
		for seed := range 4 {
			s := simulated(t, fmt.Sprintf("lc,timeslice=ignore,seed=%d", seed+1), func(o *Options, _ *actions.Options) { o.Roles.BE = c.be })
			turn := s.Now().Add(5 * time.Second)
			feed := func(target int, next sim.Next) {
				if !s.m.Feed(s.m.Targets()[target].PID, next) {
					t.Fatal("no such process")
				}
			}
			feed(1, func(now sched.Time, r *rand.Rand) (time.Duration, time.Duration) {
				k, g := c.kernel, c.gap
				if now > turn {
					k, g = c.kernel2, c.gap2
				}
				return us(k * (0.8 + 0.4*r.Float64())), us(9 + g*r.ExpFloat64())
			})
			feed(0, func(now sched.Time, r *rand.Rand) (time.Duration, time.Duration) {
				m := c.every
				if now > turn {
					m = c.every2
				}
				return time.Millisecond, us(m * (0.2 + 1.6*r.Float64()))
			})
			r := s.protect(4*time.Second, 20*time.Second)
			states[r.Changed.State]++
			if r.Changed.State == sched.LampYes {
				t.Errorf("%+v, seed %d: %s", c, seed+1, r.Changed.Why)
			}
			s.closed()
		}
		t.Logf("%+v: %v", c, states)
	}
}
