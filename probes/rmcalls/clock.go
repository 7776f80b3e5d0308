package rmcalls

import (
	"sync/atomic"

	"golang.org/x/sys/unix"

	"tsgtop/internal/sched"
)

// clock converts the programs' clock (bpf_ktime_get_ns, CLOCK_MONOTONIC) to
// wall-clock time by the difference of the two, read again each second.
type clock struct {
	offset atomic.Int64 // CLOCK_REALTIME - CLOCK_MONOTONIC, ns
}

func nanoseconds(id int32) int64 {
	var t unix.Timespec
	// Both clocks exist on every Linux; the call cannot fail.
	_ = unix.ClockGettime(id, &t)
	return t.Nano()
}

// tie reads the difference: of five readings, the one during which least time
// passed.
func (c *clock) tie() {
	best := int64(1 << 62)
	for range 5 {
		a := nanoseconds(unix.CLOCK_MONOTONIC)
		wall := nanoseconds(unix.CLOCK_REALTIME)
		b := nanoseconds(unix.CLOCK_MONOTONIC)
		if b-a < best {
			best = b - a
			c.offset.Store(wall - a - (b-a)/2)
		}
	}
}

func (c *clock) toTime(monotonic uint64) sched.Time {
	return sched.Time(int64(monotonic) + c.offset.Load())
}
