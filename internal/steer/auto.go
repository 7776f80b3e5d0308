package steer

import (
	"fmt"
	"time"

	"tsgtop/internal/sched"
)

// DefaultBE is the timeslice that a best-effort process gets where no other
// best-effort one competes with it, in us. A latency-critical process that comes waits for the
// end of it and about 230 us more; a lone process is not switched meanwhile, so
// that it loses nothing. On an H200, beside a kernel of 1 ms: p99 1053 us alone,
// 3235 at 2048 us, 1381 at 200 us, 1282 at 100 us, 1244 at 50 us.
const DefaultBE = 50

// What a switch costs processes that take turns on an H200, in us. overUS is how
// long a turn lasts beyond its timeslice, switchUS how long nobody is resident
// then; lostUS is what one switch takes from their work in all. It is twice
// switchUS: a kernel that was cut is brought back while its context is resident
// already. Measured with three processes of 30 ms kernels: 38% of their kernels
// lost at 200 us, 17% at 500, 7% at 1000 (docs/h200.md).
const (
	overUS   = 100.0
	switchUS = 79.0
	lostUS   = 160.0
)

// lossMost is the part of their work that several best-effort processes may lose
// by the default.
const lossMost = 0.015

// lossOf is the part of their work that processes which always have work lose to
// switching, at one timeslice in us, compared with libcuda's 2048 us.
func lossOf(us float64) float64 {
	rate := func(us float64) float64 { return 1 / (us*1.024 + overUS + switchUS) }
	return 1 - (1-lostUS*rate(us))/(1-lostUS*rate(2048))
}

// AutoBE is the timeslice of best-effort processes, in us, where none was asked
// for, by how many compete. Several of them switch among themselves all the time,
// and a short timeslice costs them work: then it is the shortest, in steps of
// 50 us, at which they lose at most 1.5%.
func AutoBE(competing int) uint64 {
	if competing < 2 {
		return DefaultBE
	}
	us := uint64(2000)
	for us > DefaultBE && lossOf(float64(us-50)) <= lossMost {
		us -= 50
	}
	return us
}

// Choices says what several best-effort processes that compete lose at a timeslice
// (us), what LC can have to wait for a turn of each, and what other values would
// bring; empty where they do not compete.
func Choices(competing int, us uint64) string {
	if competing < 2 {
		return ""
	}
	wait := func(us uint64) float64 { return float64(competing) * (float64(us)*1.024 + overUS + switchUS) / 1000 }
	say := func(us uint64) string {
		return fmt.Sprintf("%.1f ms and %.0f%%", wait(us), 100*max(0, lossOf(float64(us))))
	}
	line := fmt.Sprintf("%d best-effort processes compete among themselves. LC waits at most, and they lose of their work compared with 2048 us (by what a switch costs on an H200): %s at %d us",
		competing, say(us), us)
	with := "; with --be "
	for _, other := range []uint64{1000, 500, 200} {
		if other < us {
			line += fmt.Sprintf("%s%dus %s", with, other, say(other))
			with = ", "
		}
	}
	return line
}

// working is how long after its last turn a process still counts as one that
// competes: longer than most pauses, so that a timeslice does not go up and down
// all the time.
const working = 10 * time.Second

// traceStale is how old the newest look at the trace may be for its silence to say
// something: it is read many times a second.
const traceStale = 2 * time.Second

// competing tells for each runlist how many best-effort processes compete there
// among themselves. Those whose graphics TSG the trace has not seen for long have no
// work; where there is no trace, or it is not being read, all count.
func competing(snap *sched.Snapshot, roles map[Proc]*Member) map[place]int {
	seen := map[int]bool{}      // GPUs whose trace tells who has work
	active := map[procOn]bool{} // processes with work
	for i := range snap.GPUs {
		g := &snap.GPUs[i]
		seen[g.Index] = g.TraceRead > 0 && snap.Time.Sub(g.TraceRead) < traceStale
	}
	eachRow(snap, func(v *sched.TSGView) {
		if IsCompute(v) && (v.Resident || v.LastTurn > 0 && snap.Time.Sub(v.LastTurn) < working) {
			active[procOn{ProcOf(v), v.ID.GPU}] = true
		}
	})
	on := map[place]map[Proc]bool{}
	eachRow(snap, func(v *sched.TSGView) {
		p := ProcOf(v)
		if m := roles[p]; m == nil || m.Role != BE || m.Lifted != "" || seen[v.ID.GPU] && !active[procOn{p, v.ID.GPU}] {
			return
		}
		at := place{v.ID.GPU, v.ID.Runlist}
		if on[at] == nil {
			on[at] = map[Proc]bool{}
		}
		on[at][p] = true
	})
	n := map[place]int{}
	for at, procs := range on {
		n[at] = len(procs)
	}
	return n
}

// procOn is a process on a GPU.
type procOn struct {
	proc Proc
	gpu  int
}
