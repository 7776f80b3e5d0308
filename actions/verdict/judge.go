// Package verdict decides the lamp CHANGED: did the hardware do what a command
// asked? It reads the GPU's own context-switch trace, before the command
// against after it, and nothing that the driver says about itself. Where the
// trace cannot tell, the answer is unknown, with what is missing.
//
// It is pure: time is the trace's and the caller's, and the same input gives
// the same answer. docs/verdict.md says what is computed, why, and how often
// it was measured to be wrong.
package verdict

import (
	"fmt"
	"time"

	"tsgtop/internal/sched"
)

// TSG is what the caller knows of a context that is not the target's.
type TSG struct {
	Key         uint64 // the same for contexts of one TSG; 0: each context is one
	TimesliceUS uint64 // 0: not known
}

// Plan is what is asked for, and of whom. The target's contexts are
// Target.Contexts.
type Plan struct {
	Op      sched.Op
	Target  sched.Target
	Old     *uint64       // timeslice in us, or interleave level; nil: not known
	New     *uint64       // the same, as asked for; not for a preempt
	Wait    time.Duration // longest wait for an answer after the call; 0: 3 s
	Others  func(context uint32) TSG
	NoTrace string // why this GPU has no trace, if it has none
}

// Call is one RM call of the command, on the trace's clock.
type Call struct {
	Begin, End     sched.Time
	RPCAt, RPCDone sched.Time // of the RPC to the GSP, where it was seen; 0: not known
}

// Counters are the GSP's switch counters of the target (0x20801215), read at At.
type Counters struct {
	At, Until       sched.Time // they are of some instant between these; Until 0: of At
	Save, WFI, CILP uint32
}

// Judge takes the trace and the calls of one command, and gives its verdict.
// The zero value is not valid. A Judge is used by one goroutine at a time.
type Judge struct {
	plan     Plan
	fold     *folder
	calls    []Call
	finished bool // no more calls will come
	counters []Counters
	began    sched.Time // first instant that the trace was seen at
	read     sched.Time // the trace has been read up to here
	spoiled  string     // why no answer can be had any more
	look     int        // number of looks taken
	last     *sched.Changed
	done     bool
}

// DefaultWait is the longest wait for an answer, after the call.
const DefaultWait = 3 * time.Second

// Baseline is how much trace before the call an answer at best rests on; older
// trace is not looked at.
const Baseline = 4 * time.Second

// looks are when the question is asked, as fractions of the longest wait, and
// the one-sided error that each look may spend: 0.001 in all.
var looks = []struct{ at, spend float64 }{
	{1. / 6, 0.0001}, {1. / 3, 0.0002}, {1. / 2, 0.0002}, {3. / 4, 0.0002}, {1, 0.0003},
}

// New begins a command's judgement: before the command is sent, so that there
// is something to compare with.
func New(p Plan) *Judge {
	if p.Wait <= 0 {
		p.Wait = DefaultWait
	}
	return &Judge{plan: p, fold: newFolder(p.Target.Contexts, p.Others)}
}

// Add feeds the trace, in its order, from before the call on. Batches of other
// GPUs are ignored.
func (j *Judge) Add(b sched.TraceBatch) {
	if b.GPU != j.plan.Target.GPU {
		return
	}
	for _, r := range b.Records {
		if j.began == 0 {
			j.began = r.Time
		}
		j.fold.add(r)
	}
	if j.began == 0 {
		j.began = b.Time
	}
	j.read = max(j.read, b.Time)
}

// Issue tells of a call of the command, as it returned. Last: no more will come.
func (j *Judge) Issue(c Call, last bool) {
	j.calls = append(j.calls, c)
	j.finished = last
}

// Witness gives the GSP's counters: best read when the baseline begins, right
// before the call, and every half second or so after it. Any two readings in a
// row, at least 0.2 s apart, must agree with the trace, or there is no answer.
func (j *Judge) Witness(c Counters) {
	c.Until = max(c.At, c.Until)
	j.counters = append(j.counters, c)
}

// Spoil says that something happened which makes an answer impossible: the
// target died, somebody else set its timeslice. The reason is a clause, such as
// "the target ended 0.3 s after the call".
func (j *Judge) Spoil(why string) {
	if j.spoiled == "" {
		j.spoiled = why
	}
}

// Ready tells whether there is enough of a baseline for the command to be sent,
// or, if not, what is missing. A caller should not wait for it for ever: a lone
// target is never ready.
func (j *Judge) Ready() (ok bool, missing string) {
	if why := j.hopeless(); why != "" {
		return true, ""
	}
	turns := j.turnsOf(0, span{j.read.Add(-Baseline), j.read})
	least, need := 2*time.Second, 60
	if j.plan.Op == sched.OpPreempt {
		least, need = time.Second, preemptBaseline
	}
	have := j.read.Sub(max(j.began, j.read.Add(-Baseline)))
	if have < least || len(turns) < need && have < Baseline-10*time.Millisecond {
		return false, fmt.Sprintf("%d turns in %.1f s of trace", len(turns), have.Seconds())
	}
	return true, ""
}

// Look gives the answer so far, and whether it is final. Between the fixed
// looks, nothing is computed and the answer is waiting.
func (j *Judge) Look(now sched.Time) (sched.Changed, bool) {
	if j.done {
		return *j.last, true
	}
	c, done := j.decide(now)
	if done {
		if len(j.calls) > 0 {
			c.TookNS = int64(max(0, now.Sub(j.calls[0].End)))
		}
		j.done = true
	}
	j.last = &c
	return c, done
}

func (j *Judge) decide(now sched.Time) (sched.Changed, bool) {
	if why := j.hopeless(); why != "" {
		return unknown(why), true
	}
	if j.spoiled != "" {
		return unknown(j.spoiled), true
	}
	if len(j.calls) == 0 {
		return waiting("the command has not been sent"), false
	}
	if j.plan.Op == sched.OpPreempt {
		return j.preempt(now)
	}
	return j.compareWindows(now)
}

// compareWindows asks the question of a changed value at the next fixed look.
func (j *Judge) compareWindows(now sched.Time) (sched.Changed, bool) {
	call := j.calls[0]
	if j.look >= len(looks) {
		return *j.last, true
	}
	due := call.End.Add(time.Duration(looks[j.look].at * float64(j.plan.Wait)))
	if j.read < due {
		if now > call.End.Add(j.plan.Wait+traceLag) {
			return unknown(j.unread(now)), true
		}
		if j.last != nil && j.last.State == sched.LampUnknown {
			return waiting(j.last.Why), false
		}
		return waiting("comparing turns before and after"), false
	}
	v := view{Judge: j, was: span{max(j.began, call.Begin.Add(-Baseline)), call.Begin}, is: span{call.End, due},
		alpha: looks[j.look].spend, final: j.look == len(looks)-1, first: j.look == 0}
	j.look++
	var c sched.Changed
	if j.plan.Op == sched.OpTimeslice {
		c = v.timeslice()
	} else {
		c = v.interleave()
	}
	cost := v.cost()
	c.Victim = &cost
	// What the baseline lacks, no later look can bring.
	was := v.window(v.clip(v.was))
	lacking := len(was.target) == 0 || torn(was) != ""
	done := c.State != sched.LampUnknown && c.State != sched.LampWaiting || v.final || c.State == sched.LampUnknown && lacking
	if !done {
		c.State = sched.LampWaiting
		if j.read >= call.End.Add(time.Duration(looks[j.look].at*float64(j.plan.Wait))) {
			return j.compareWindows(now) // the trace is already past the next look
		}
	}
	return c, done
}

// traceLag is how far behind the present the trace may be read before that is
// said: without polling the driver copies records at about 30 Hz.
const traceLag = 500 * time.Millisecond

func (j *Judge) unread(now sched.Time) string {
	if j.read == 0 {
		return "no trace of this GPU was read"
	}
	return fmt.Sprintf("the trace has not been read for %.1f s", now.Sub(j.read).Seconds())
}

// hopeless is why there can be no answer whatever comes.
func (j *Judge) hopeless() string {
	t := j.plan.Target
	switch {
	case t.Runlist > 0 && !isGraphics(t) || t.Engine != nil && !isGraphics(t):
		return "copy engine: no trace"
	case j.plan.NoTrace != "":
		return j.plan.NoTrace
	case len(t.Contexts) == 0:
		return "the target's contexts are not known, so the trace cannot tell which turns are its"
	}
	return ""
}
