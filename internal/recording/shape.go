package recording

import (
	"fmt"

	"tsgtop/internal/sched"
)

// checkShape refuses a line whose arrays would take much more memory than
// their text, before it is decoded: an array element can be two bytes in the
// file and hundreds in memory. Trace lines have limits of their own. It need
// not find JSON that is broken; the decoder does.
func checkShape(line []byte) error {
	var stack [maxDepth]bool // true: an array
	depth, elements := 0, 0
	inString := false
	for i := 0; i < len(line); i++ {
		c := line[i]
		if inString {
			switch c {
			case '\\':
				i++
			case '"':
				inString = false
			}
			continue
		}
		switch c {
		case '"':
			inString = true
		case '{', '[':
			if depth == maxDepth {
				return fmt.Errorf("containers nested deeper than %d", maxDepth)
			}
			stack[depth] = c == '['
			depth++
			if c == '[' {
				elements++
			}
		case '}', ']':
			if depth > 0 {
				depth--
			}
		case ',':
			if depth > 0 && stack[depth-1] {
				elements++
			}
		default:
			continue
		}
		if elements > maxElements {
			return fmt.Errorf("more than %d array elements in one line", maxElements)
		}
	}
	return nil
}

// Bounds of numbers by which others may index or count.
const (
	maxGPU      = 255
	maxRunlist  = 1 << 16
	maxTSG      = 1 << 16
	maxRunlists = 256
)

// checkEvent refuses numbers that no machine gives: whoever folds events may
// size tables by them.
func checkEvent(e sched.Event) error {
	switch v := e.(type) {
	case sched.ProbeStatus:
		return gpuInRange(v.GPU)
	case sched.GPU:
		if len(v.Runlists) > maxRunlists {
			return fmt.Errorf("%d runlists on one GPU", len(v.Runlists))
		}
		for _, r := range v.Runlists {
			if r.ID < sched.Unknown || r.ID > maxRunlist {
				return fmt.Errorf("runlist %d is out of range", r.ID)
			}
		}
		return gpuInRange(v.Index)
	case sched.GPUSample:
		return gpuInRange(v.GPU)
	case sched.TraceBatch:
		return gpuInRange(v.GPU)
	case sched.Xid:
		return gpuInRange(v.GPU)
	case sched.ClockTie:
		return gpuInRange(v.GPU)
	case sched.Lifecycle:
		return idInRange(v.ID)
	case sched.Inventory:
		for i := range v.Clients {
			if err := gpuInRange(v.Clients[i].GPU); err != nil {
				return err
			}
		}
		for i := range v.TSGs {
			if err := idInRange(sched.TSGID{GPU: v.TSGs[i].GPU, Runlist: v.TSGs[i].Runlist}); err != nil {
				return err
			}
		}
	case sched.Command:
		for _, l := range []sched.LampState{v.Ran.State, v.Accepted.State, v.Changed.State} {
			switch l {
			case "", sched.LampWaiting, sched.LampYes, sched.LampNo, sched.LampUnknown:
			default:
				return fmt.Errorf("a lamp cannot be %.40q", l)
			}
		}
		return idInRange(v.Target.TSGID)
	}
	return nil
}

func gpuInRange(g int) error {
	if g < sched.Unknown || g > maxGPU {
		return fmt.Errorf("GPU %d is out of range", g)
	}
	return nil
}

func idInRange(id sched.TSGID) error {
	if id.Runlist < sched.Unknown || id.Runlist > maxRunlist || id.TSG < sched.Unknown || id.TSG > maxTSG {
		return fmt.Errorf("TSG %v is out of range", id)
	}
	return gpuInRange(id.GPU)
}
