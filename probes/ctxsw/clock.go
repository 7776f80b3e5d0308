//go:build linux

package ctxsw

import (
	"fmt"

	"golang.org/x/sys/unix"

	"tsgtop/internal/rm"
	"tsgtop/internal/rmdev"
	"tsgtop/internal/sched"
)

// Clocks reads the machine's clocks, in ns.
type Clocks interface {
	Realtime() int64
	Monotonic() int64
	Raw() int64
}

type machineClocks struct{}

func read(clock int32) int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		return 0 // these three exist on every kernel that runs
	}
	return t.Nano()
}

func (machineClocks) Realtime() int64  { return read(unix.CLOCK_REALTIME) }
func (machineClocks) Monotonic() int64 { return read(unix.CLOCK_MONOTONIC) }
func (machineClocks) Raw() int64       { return read(unix.CLOCK_MONOTONIC_RAW) }

const (
	// ahead is how far in GPU time beyond a tie the next one is expected, in ns.
	ahead = int64(1e9)
	// slewRate bounds by how much a correction stretches or shrinks time: 1 ns in
	// so many, 500 ppm, 1 us in a turn of 2 ms.
	slewRate = 2000
	// rateSpan is over how much GPU time the drift is measured, in ns: between one
	// and two of it.
	rateSpan = int64(10e9)
	// maxRate is the greatest drift that is believed: 200 ppm.
	maxRate = 200e-6
	// step is a change of offset that no drift makes between two ties, in ns:
	// somebody set the wall clock, or the GPU was reset.
	step = int64(10e6)
	// wideTie is half the width of a reading beyond which it does not move the
	// offset, in ns: something held RM's locks meanwhile.
	wideTie = int64(50e3)
	// tieReadings is how many readings are made for one tie, at most.
	tieReadings = 4
	// goodTie is half the width at which no further reading is made, in ns.
	goodTie = int64(5e3)
)

// gpuClock converts the trace's stamps, which are of the GPU's own clock (ns,
// wall-clock epoch, set when the driver was loaded and free-running since), to
// CLOCK_REALTIME:
//
//	wall = stamp - offset(stamp)
//
// Each tie, once a second, measures the offset GPU - CLOCK_REALTIME (36 to 44 us
// on an H200 shortly after loading the driver), and ties over the last 10 to 20
// seconds its drift. The offset never jumps to a new tie's. It is a broken line
// over GPU time: from the newest stamp that has been converted on, it runs
// straight to where the offset is expected to be a second after the tie, and
// then on at the rate of the drift; where that would change the length of time
// by more than 500 ppm, it takes longer. So wall time is monotone in the stamps,
// a turn's length is changed by at most 500 ppm, and a steady drift leaves no lag.
//
// A change by more than 10 ms is a clock that was set. It is taken at once, and
// the next record says that records may be missing before it (Gap), so that no
// turn is measured across it. Only there can wall time run back: CLOCK_REALTIME
// itself did.
type gpuClock struct {
	tied       bool
	from, to   int64   // GPU time, ns: the offset runs straight between them
	off0, off1 int64   // ns: at from and before, at to
	rate       float64 // of the drift: after to the offset goes on so
	newest     int64   // newest stamp converted; 0: none since the clock was set
	stepped    bool    // the next record follows a set clock
	refs       [2]reading
}

// reading is a tie that the drift is measured from.
type reading struct{ gpu, offset int64 }

// offset is the offset at a stamp.
func (c *gpuClock) offset(stamp int64) int64 {
	switch {
	case stamp <= c.from:
		return c.off0
	case stamp >= c.to:
		return c.off1 + int64(c.rate*float64(stamp-c.to))
	}
	return c.off0 + int64(float64(c.off1-c.off0)*(float64(stamp-c.from)/float64(c.to-c.from)))
}

// wall converts a stamp.
func (c *gpuClock) wall(stamp int64) sched.Time {
	if stamp > c.newest {
		c.newest = stamp
	}
	return sched.Time(stamp - c.offset(stamp))
}

// tie takes a new measurement: GPU time, wall time and half the width of the
// reading, in ns.
func (c *gpuClock) tie(gpu, realtime, half int64) {
	offset := gpu - realtime
	change := offset - c.offset(max(gpu, c.newest))
	if !c.tied || change > step+half || change < -step-half {
		*c = gpuClock{tied: true, stepped: c.tied, from: gpu, to: gpu, off0: offset, off1: offset}
		c.refs = [2]reading{{gpu, offset}, {gpu, offset}}
		return
	}
	if half > wideTie {
		return // better the last good one
	}
	if gpu-c.refs[1].gpu >= rateSpan {
		c.refs[0], c.refs[1] = c.refs[1], reading{gpu, offset}
	}
	if span := gpu - c.refs[0].gpu; span >= rateSpan/5 {
		c.rate = min(max(float64(offset-c.refs[0].offset)/float64(span), -maxRate), maxRate)
	}
	expected := offset + int64(c.rate*float64(ahead))
	if c.newest == 0 { // nothing has been converted
		c.from, c.off0 = gpu, offset
	} else {
		// Not from the tie's own time on: stamps before it may still come.
		c.off0 = c.offset(c.newest)
		c.from = c.newest
	}
	c.off1 = expected
	c.to = max(gpu+ahead, c.from+max(c.off1-c.off0, c.off0-c.off1)*slewRate)
}

// readTie reads the GPU's clock between two readings of the wall clock, several
// times, and gives the narrowest.
func readTie(dev *rmdev.Device, gpu *rmdev.AttachedGPU, clocks Clocks) (sched.ClockTie, error) {
	var best sched.ClockTie
	for i := range tieReadings {
		var p rm.GPUTimeParams
		before := clocks.Realtime()
		err := dev.Control(gpu.Subdevice, rm.CtrlGPUTime, rmdev.Bytes(&p))
		after := clocks.Realtime()
		mono, raw := clocks.Monotonic(), clocks.Raw()
		if err != nil {
			return best, fmt.Errorf("read the clock of GPU%d: %w", gpu.Index, err)
		}
		half := (after - before + 1) / 2
		if half < 0 {
			continue // the wall clock was set back just then
		}
		middle := before + half
		t := sched.ClockTie{
			Time: sched.Time(middle), Monotonic: mono - (after - middle), Raw: raw - (after - middle),
			GPU: gpu.Index, GPUTime: int64(p.Time), ErrorNS: half,
		}
		if i == 0 || best.Time == 0 || half < best.ErrorNS {
			best = t
		}
		if best.ErrorNS <= goodTie {
			break
		}
	}
	if best.Time == 0 {
		return best, fmt.Errorf("read the clock of GPU%d: the wall clock ran back in each of %d readings", gpu.Index, tieReadings)
	}
	return best, nil
}
