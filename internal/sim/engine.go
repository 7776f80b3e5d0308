package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"time"

	"tsgtop/internal/sched"
)

// What the H200 was measured to do, driver 580.159.04.
const (
	timesliceUnit  = 1024                   // ns that the hardware makes of each microsecond asked for
	saveTime       = 100 * time.Microsecond // from the end of the timeslice to the context being saved
	saveJitter     = 3 * time.Microsecond   // its standard deviation
	switchCost     = 79 * time.Microsecond  // nobody resident between two contexts
	switchJitter   = 1500 * time.Nanosecond // its standard deviation
	launchGap      = 9 * time.Microsecond   // from a kernel's end to the next one's arrival
	busyMean       = 60 * time.Millisecond  // mean length of a span with work, where the target also idles
	noiseTime      = time.Second            // correlation time of kernel lengths
	lossBurst      = 10                     // mean number of records lost together
	rmDefaultSlice = 1024                   // us, of a TSG that nobody has touched
	libcudaSlice   = 2048                   // us, as libcuda sets it for its compute TSG
)

// tsg is a compute TSG on its engine, and the program that feeds it.
type tsg struct {
	number   int
	context  uint32 // by which the trace knows it
	pid      int
	slice    uint64 // us, as the hardware has it
	slots    int    // turns in a row before the next TSG's: the interleave level, if it is obeyed
	work     int64  // ns left of the present kernel; 0: none
	since    int64  // when the present kernel arrived
	arrives  int64  // when the next kernel comes, if there is no work
	length   int64  // of that next kernel
	launched int64  // when the present kernel was launched, however often it was switched out since
	launches []Launch
	dead     bool
	program  program
	counters Counters
}

// program makes the kernels of one process.
type program struct {
	length float64 // ns, mean
	noise  float64 // relative standard deviation
	idle   float64 // fraction of time without work
	gap    float64 // ns, mean, from a kernel's end to the next launch; 0: back to back
	drift  float64 // state of the noise, standard normal
	until  int64   // end of the present span with work
	own    Next    // makes them instead; nil: nobody does
}

// next gives the length of the next kernel and the pause before it.
func (p *program) next(now int64, r *rand.Rand) (length, pause int64) {
	if p.own != nil {
		l, d := p.own(sched.Time(now), r)
		return max(int64(l), 1000), max(int64(d), int64(launchGap))
	}
	pause = int64(launchGap)
	if p.idle > 0 && now >= p.until {
		mean := float64(busyMean) * p.idle / (1 - p.idle)
		pause += int64(r.ExpFloat64() * mean)
		p.until = now + pause + int64(r.ExpFloat64()*float64(busyMean))
	}
	if p.gap > 0 {
		// Two exponential parts: launches come about regularly, and now and then
		// one right after the other.
		pause = int64(launchGap) + int64(p.gap/2*(r.ExpFloat64()+r.ExpFloat64()))
	}
	l := p.length
	if p.noise > 0 {
		keep := math.Exp(-l / float64(noiseTime))
		p.drift = keep*p.drift + math.Sqrt(1-keep*keep)*r.NormFloat64()
		s := math.Sqrt(math.Log1p(p.noise * p.noise))
		l *= math.Exp(s*p.drift - s*s/2)
	}
	return max(int64(l), 1000), pause
}

// pending is something that the GSP will do to a TSG at an instant.
type pending struct {
	at int64
	do func(*engine)
}

// engine is one GPU's graphics/compute engine: at any time one context is
// resident, or one is being switched in, or there is none yet.
type engine struct {
	now       int64
	rand      *rand.Rand
	tsgs      []*tsg // in the runlist's order
	resident  *tsg
	incoming  *tsg
	last      *tsg  // resident last: the runlist goes on after it
	arrival   int64 // when incoming will be resident
	slices    int64 // when the first timeslice of this turn began; later by the time in which it stood still
	idle      int64 // since when the resident has no work, and its timeslice stands still
	period    int64 // length of its timeslices
	save      int64 // from the end of one to the context being saved
	preemptAt int64 // when a preempt ends this turn; 0: none is under way
	pending   []pending
	records   []sched.TraceRecord
	lose      float64
	losing    int // records of the present loss still to come
	gap       uint32
	lost      uint64 // gaps so far
}

const never = math.MaxInt64

// Launch is one kernel of a latency-critical process, as the process itself
// would time it.
type Launch struct {
	At   sched.Time    // of the launch
	Took time.Duration // from launch to finish
}

// maxLaunches bounds how many are kept.
const maxLaunches = 1 << 16

// at queues something for the GSP to do.
func (e *engine) at(t int64, do func(*engine)) {
	i := sort.Search(len(e.pending), func(i int) bool { return e.pending[i].at > t })
	e.pending = append(e.pending, pending{})
	copy(e.pending[i+1:], e.pending[i:])
	e.pending[i] = pending{max(t, e.now), do}
}

// step is one thing that can happen to an engine.
type step uint8

const (
	stepNothing step = iota
	stepPending      // the GSP acts
	stepArrive       // a program launches a kernel
	stepStart        // the incoming context is resident
	stepKernel       // the resident's kernel ends
	stepForced       // the timeslice or a preempt ends the turn
	stepYield        // the resident has no work, and another has
	stepLoad         // nobody is resident, and somebody has work
)

// run advances the engine to an instant.
func (e *engine) run(until int64) {
	for {
		t, what, who := e.next()
		if t > until {
			e.pass(until)
			return
		}
		e.pass(t)
		switch what {
		case stepPending:
			e.doPending()
		case stepArrive:
			who.work, who.since, who.launched, who.arrives = who.length, e.now, e.now, never
			if who == e.resident {
				e.slices += e.now - e.idle
			}
		case stepStart:
			e.start()
		case stepKernel:
			e.kernelEnds()
		case stepForced, stepYield:
			e.end(what == stepForced)
		case stepLoad:
			e.switchTo(who)
		}
	}
}

// pass lets time pass in which nothing happens but the resident's kernel.
func (e *engine) pass(t int64) {
	if e.resident != nil && e.resident.work > 0 {
		e.resident.work -= min(t-e.now, e.resident.work)
	}
	e.now = t
}

// next is what happens next, when, and to whom where that matters.
func (e *engine) next() (t int64, what step, who *tsg) {
	t = never
	consider := func(at int64, w step, g *tsg) {
		if at = max(at, e.now); at < t {
			t, what, who = at, w, g
		}
	}
	if len(e.pending) > 0 {
		consider(e.pending[0].at, stepPending, nil)
	}
	wait, waited := int64(never), false
	for _, g := range e.tsgs {
		switch {
		case g.dead:
		case g.work > 0:
			if g != e.resident {
				wait, waited = min(wait, g.since), true
			}
		case g.arrives != never:
			consider(g.arrives, stepArrive, g)
		}
	}
	switch r := e.resident; {
	case e.incoming != nil:
		consider(e.arrival, stepStart, nil)
	case r == nil:
		if waited {
			consider(e.now, stepLoad, e.pick())
		}
	case r.work > 0:
		consider(e.now+r.work, stepKernel, nil)
		if waited {
			consider(e.sliceEnd(wait), stepForced, nil)
			if e.preemptAt != 0 {
				consider(e.preemptAt, stepForced, nil)
			}
		}
	case waited:
		consider(e.now, stepYield, nil)
	}
	return t, what, who
}

// sliceEnd is when the resident is off, by its timeslice, for another that came at
// an instant: timeslices follow each other for as long as nobody comes.
func (e *engine) sliceEnd(came int64) int64 {
	n := int64(1)
	if late := came - e.slices; late > e.period {
		n = (late + e.period - 1) / e.period
	}
	return e.slices + n*e.period + e.save
}

// pick is the next TSG of the runlist, after the resident, that has work.
func (e *engine) pick() *tsg {
	from := 0
	for i, g := range e.tsgs {
		if g == e.resident || e.resident == nil && g == e.last {
			from = i + 1
		}
	}
	for i := range e.tsgs {
		if g := e.tsgs[(from+i)%len(e.tsgs)]; g != e.resident && !g.dead && g.work > 0 {
			return g
		}
	}
	return nil
}

func (e *engine) doPending() {
	p := e.pending[0]
	e.pending = e.pending[1:]
	p.do(e)
}

// kernelEnds: the resident's kernel is done; the program launches its next one.
func (e *engine) kernelEnds() {
	r := e.resident
	if r.program.gap > 0 {
		if len(r.launches) == maxLaunches {
			r.launches = slices.Delete(r.launches, 0, maxLaunches/2)
		}
		r.launches = append(r.launches, Launch{sched.Time(r.launched), time.Duration(e.now - r.launched)})
	}
	length, pause := r.program.next(e.now, e.rand)
	r.work, r.arrives, r.length = 0, e.now+pause, length
	e.idle = e.now
}

// end saves the resident and begins to switch the next one in. Only called
// while another waits: a context alone is never switched.
func (e *engine) end(forced bool) {
	next := e.pick()
	if next == nil {
		return
	}
	r := e.resident
	r.counters.Save++
	if forced {
		r.counters.CILP++
		r.since = e.now
	} else {
		r.counters.WFI++
	}
	e.record(sched.TagEnd, r)
	e.switchTo(next)
}

func (e *engine) switchTo(next *tsg) {
	e.incoming, e.last, e.resident, e.preemptAt = next, e.resident, nil, 0
	e.arrival = e.now + e.jittered(switchCost, switchJitter)
}

// start: the incoming context is resident.
func (e *engine) start() {
	g := e.incoming
	e.resident, e.incoming, e.slices, e.idle, e.preemptAt = g, nil, e.now, e.now, 0
	e.period = max(1, int64(min(g.slice, 1<<40))*timesliceUnit*int64(g.slots))
	e.save = e.jittered(saveTime, saveJitter)
	g.counters.Restore++
	e.record(sched.TagStart, g)
}

// preempt: the GSP has been asked to take g off; if it is on, its run ends at
// the given instant.
func (e *engine) preempt(g *tsg, ends int64) {
	if e.resident == g {
		e.preemptAt = ends
	}
}

// remove takes a dead TSG off the engine. The end of its run is not recorded,
// and no sequence number is missing for it.
func (e *engine) remove(g *tsg) {
	g.dead, g.work = true, 0
	if e.incoming == g {
		e.incoming = nil
	}
	if e.resident == g {
		e.resident, e.preemptAt = nil, 0
	}
}

func (e *engine) jittered(mean, sd time.Duration) int64 {
	j := e.rand.NormFloat64()
	return int64(mean) + int64(float64(sd)*max(-2.5, min(2.5, j)))
}

// record writes a trace record, or loses it.
func (e *engine) record(tag uint8, g *tsg) {
	if e.lose > 0 && e.losing == 0 && e.rand.Float64() < e.lose/lossBurst {
		e.losing = 1 + int(e.rand.ExpFloat64()*(lossBurst-1)+0.5)
		e.lost++
	}
	if e.losing > 0 || e.lose >= 1 {
		e.losing = max(0, e.losing-1)
		e.gap++
		return
	}
	// The hardware's clock ticks in 32 ns.
	e.records = append(e.records, sched.TraceRecord{
		Time: sched.Time(e.now &^ 31), Context: g.context, PID: uint32(g.pid), Gap: e.gap, Tag: tag,
	})
	e.gap = 0
}
