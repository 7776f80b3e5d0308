package verdict

import (
	"fmt"
	"math"
	"sort"
	"time"

	"tsgtop/internal/sched"
)

// When a preempt takes effect, and what must be sure of it. Measured on an H200
// (driver 580.159.04), from the call's beginning: runs ended after 395 to
// 430 us, p10 250 to 410, p90 424 to 459, whether the call waited or not; the
// clocks of calls and trace lie side by side to about 10 us.
const (
	preemptFirst = 200 * time.Microsecond // earliest end that a preempt made
	preemptLast  = 600 * time.Microsecond // latest
	preemptReach = 20 * time.Microsecond  // from the call's beginning until the GSP has it, where no RPC was seen
	clockError   = 10 * time.Microsecond
	settle       = 2 * time.Millisecond // of trace after the last moment that matters

	preemptAlpha    = 0.005 // chance by accident under which one preempt counts
	preemptsAlpha   = 0.001 // the same for several
	preemptBaseline = 250   // turns of the target to compare with: 1 in 251 is then the finest
)

// catch is what one preempt met.
type catch struct {
	on        bool
	unclear   string        // why it cannot be told whether it was on, or what ended its run
	age       time.Duration // of its turn at the call
	after     time.Duration // from the call to the end of its run
	hit       bool          // it ended when a preempt takes effect
	contested bool          // another was known to wait
	accident  float64       // chance that the run would have ended then by itself
	ended     int           // of
	lasted    int           // turns before the call that lasted as long, so many ended then
}

// preempt judges one preempt, or several.
func (j *Judge) preempt(now sched.Time) (sched.Changed, bool) {
	last := j.calls[len(j.calls)-1]
	_, until := effectWindow(last)
	if !j.finished {
		return waiting(fmt.Sprintf("%s sent", plural(len(j.calls), "preempt", "preempts"))), false
	}
	if j.read < until.Add(settle) {
		if now > last.End.Add(j.plan.Wait+traceLag) {
			return unknown(j.unread(now)), true
		}
		return waiting("waiting for the end of the context's run"), false
	}
	v := view{Judge: j, was: j.clip(span{j.calls[0].Begin.Add(-Baseline), j.calls[0].Begin}), is: span{j.calls[0].Begin, max(last.End, until)}, final: true}
	baseline := v.window(v.was)
	if why := firstOf(torn(baseline), v.disagree()); why != "" {
		return unknown(why), true
	}
	if len(j.fold.turns) == 0 {
		return unknown("nothing competed: a context alone on its engine is never switched, so that a preempt leaves no trace"), true
	}
	if t, known := v.residentAt(last.Begin.Add(preemptReach)); known && t != nil && t.tsg == 0 && t.end == 0 && j.read < last.End.Add(j.plan.Wait) {
		// That records are missing shows only in the next one: until then, a run
		// that seems to go on may have ended.
		return waiting("waiting for the end of the context's run"), false
	}
	catches := make([]catch, len(j.calls))
	for i, c := range j.calls {
		catches[i] = v.catch(c, baseline.target)
	}
	var result sched.Changed
	if len(catches) == 1 {
		result = v.once(catches[0], baseline)
	} else {
		result = v.several(catches, baseline)
		cost := v.cost()
		result.Victim = &cost
	}
	return result, true
}

// effectWindow is when a preempt takes effect. Where the GSP answered late, it
// may have acted as late: until its RPC was done, or else until the call ended.
func effectWindow(c Call) (from, to sched.Time) {
	start := c.Begin
	if c.RPCAt > 0 {
		start = max(c.Begin, c.RPCAt.Add(-preemptReach))
	}
	from, to = start.Add(preemptFirst), start.Add(preemptLast)
	done := c.End
	if c.RPCDone > 0 {
		done = c.RPCDone
	}
	if done.Sub(start) > time.Millisecond {
		to = done.Add(preemptLast - preemptFirst)
	}
	return from, to
}

// catch looks at what was on the engine when a preempt reached the GSP.
func (v view) catch(c Call, baseline []turn) catch {
	reach := c.Begin.Add(preemptReach)
	if c.RPCAt > 0 {
		reach = c.RPCAt
	}
	from, to := effectWindow(c)
	t, known := v.residentAt(reach)
	switch {
	case !known:
		return catch{unclear: "the trace does not tell what was on the engine when the call came"}
	case t == nil || t.tsg != 0:
		if n, ok := v.residentAt(reach.Add(clockError)); ok && n != nil && n.tsg == 0 {
			return catch{unclear: "it came onto the engine just as the call did"}
		}
		return catch{}
	case t.start > reach.Add(-clockError) || t.end != 0 && t.end < reach.Add(clockError):
		return catch{unclear: "it came onto the engine or left it just as the call came"}
	}
	k := catch{on: true, age: reach.Sub(t.start), contested: t.contested, accident: 1}
	if t.end == 0 {
		k.unclear = "its run has not ended, and no other turn has been seen since: nothing shows that another waited"
		return k
	}
	k.after = t.end.Sub(c.Begin)
	if t.end < from {
		k.unclear = fmt.Sprintf("its run ended %s after the call, before a preempt takes effect", us(k.after))
		return k
	}
	k.hit = t.end <= to
	// Had it not been for the preempt: of the turns before that lasted until the
	// preempt could take effect, how many ended while it could?
	for _, b := range baseline {
		if l := b.length(); l >= from.Sub(t.start) {
			k.lasted++
			if l <= to.Sub(t.start) {
				k.ended++
			}
		}
	}
	k.accident = float64(k.ended+1) / float64(k.lasted+1)
	return k
}

// residentAt is the turn that was on the engine at an instant: nil between two
// turns, end 0 where it is still on. Not known where records are missing.
func (v view) residentAt(at sched.Time) (*turn, bool) {
	turns := v.fold.turns
	i := sort.Search(len(turns), func(i int) bool { return turns[i].end > at })
	next := v.fold.open
	if i < len(turns) {
		next = &turns[i]
	}
	switch {
	case next == nil:
		return nil, false
	case next.start > at: // between two turns, if nothing is missing there
		return nil, next.after != 0 && next.after <= at
	}
	t := *next
	return &t, t.clean
}

// once judges one preempt.
func (v view) once(k catch, baseline window) sched.Changed {
	var r sched.Changed
	switch {
	case k.unclear != "":
		r = unknown(k.unclear)
	case !k.on:
		r = unknown(NotOnEngine)
	case k.hit && k.accident <= preemptAlpha:
		r = lamp(sched.LampYes, "it was on the engine and its run ended %s after the call, when a preempt takes effect", us(k.after))
		r.AsAsked = sched.Ptr(true)
	case k.hit && k.lasted < preemptBaseline && k.ended <= k.lasted/20:
		r = unknown(fmt.Sprintf("its run ended %s after the call, but only %s before it lasted as long: by accident that is 1 in %.0f at the least",
			us(k.after), plural(k.lasted, "turn", "turns"), 1/k.accident))
	case k.hit:
		r = unknown(fmt.Sprintf("its run ended %s after the call, but as it could have by itself: of %d turns that lasted as long, %d ended then", us(k.after), k.lasted, k.ended))
	case !k.contested:
		r = unknown("its run went on, but nothing shows that another waited: a context alone on its engine is not switched")
	default:
		r = lamp(sched.LampNo, "it was on the engine and its run went on until %s after the call, though another waited", us(k.after))
	}
	r.Metric = "run_end"
	r.Before = sampleOf(baseline.target, 0)
	if k.on && k.unclear == "" {
		r.Evidence = fmt.Sprintf("run ended %s after the call, which came at %s of it; %d of %d turns that lasted as long ended then by themselves", us(k.after), us(k.age), k.ended, k.lasted)
		if k.hit {
			r.P = sched.Ptr(k.accident)
		}
	}
	return r
}

// NotOnEngine is the reason where a preempt found nothing to preempt: then, and
// only then, repeating it until it catches its target makes sense.
const NotOnEngine = "it was not on the engine, there was nothing to preempt"

// Effects of several preempts: the share of those that found their target on
// the engine and ended its run, over what accident gives.
const (
	severalEffect = 0.10 // at least this is an effect
	severalAsked  = 0.80 // and this is what was asked for
	severalNone   = 0.25 // shown to be less is none: a preempt works or does not
)

// several judges repeated preempts: how many that found their target on the
// engine ended its run, against how many would have by accident; and, beside
// it, turns and residency against the baseline.
func (v view) several(catches []catch, baseline window) sched.Changed {
	var accidents []float64
	on, hits, unclear, waited := 0, 0, 0, 0
	for _, k := range catches {
		switch {
		case k.unclear != "":
			unclear++
		case k.on:
			on++
			accidents = append(accidents, k.accident)
			if k.hit {
				hits++
			}
			if k.hit || k.contested {
				waited++
			}
		}
	}
	during := v.window(v.is)
	c := compareResidency(baseline.target, during.target, v.was, v.is, -1)
	r := v.severalOf(len(catches), on, hits, waited, unclear, accidents, c, during)
	nb, na := 0, 0
	if c != nil {
		nb, na = len(c.before), len(c.after)
	}
	state := r
	c.put(&r, "residency_us", "residency p50", " us", sampleOf(baseline.target, nb), sampleOf(during.target, na))
	r.Lamp, r.AsAsked, r.P = state.Lamp, state.AsAsked, state.P
	r.Evidence += fmt.Sprintf("; %d of %d preempts found it on the engine, %d ended its run (%.1f by accident), turns %.0f->%.0f/s", on, len(catches), hits, sum(accidents),
		float64(len(baseline.target))/v.was.length().Seconds(), float64(len(during.target))/v.is.length().Seconds())
	return r
}

func (v view) severalOf(sent, on, hits, waited, unclear int, accidents []float64, c *comparison, during window) sched.Changed {
	switch {
	case torn(during) != "":
		return unknown(torn(during))
	case on == 0 && unclear == 0:
		return unknown(NotOnEngine + fmt.Sprintf(", %d times", sent))
	case on == 0:
		return unknown("it was never clearly on the engine when a call came")
	}
	p := atLeast(accidents, hits)
	expect := sum(accidents)
	excess := (float64(hits) - expect) / max(1e-9, float64(on)-expect)
	var r sched.Changed
	switch {
	case p <= preemptsAlpha && excess >= severalEffect:
		if c != nil && c.same() && 10*hits > 3*len(during.target) {
			return unknown("two measures disagree: preempts seem to end its runs, but its residency is as before")
		}
		r = lamp(sched.LampYes, "%d of %d preempts that found it on the engine ended its run", hits, on)
		r.AsAsked = sched.Ptr(excess >= severalAsked)
	case waited*2 < on:
		return unknown("nothing shows that another waited while it was preempted: a context alone on its engine is not switched")
	case excess < severalEffect && fewerThan(accidents, hits, severalNone) <= preemptsAlpha:
		r = lamp(sched.LampNo, "%d of %d preempts that found it on the engine ended its run; %.1f would have by accident", hits, on, expect)
	case expect > float64(on)/2:
		return unknown(fmt.Sprintf("its runs end by themselves too often when a preempt would: %.0f of %d", expect, on))
	default:
		return unknown(fmt.Sprintf("%d of %d preempts that found it on the engine ended its run, %.1f would have by accident: too few to tell", hits, on, expect))
	}
	r.P = sched.Ptr(p)
	return r
}

// fewerThan is the chance of at most so many hits if each preempt worked with
// the given probability over accident.
func fewerThan(accidents []float64, hits int, works float64) float64 {
	p := make([]float64, len(accidents))
	for i, a := range accidents {
		p[i] = a + (1-a)*works
	}
	return math.Max(0, 1-atLeast(p, hits+1))
}

func sum(x []float64) (s float64) {
	for _, v := range x {
		s += v
	}
	return s
}
