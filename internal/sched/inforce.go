package sched

import (
	"fmt"

	"tsgtop/internal/beat"
)

// InForce is what the trace says of the timeslice that the hardware gives a TSG,
// whatever RM has noted: from its turns of the last 10 s.
type InForce struct {
	Known bool
	AsSet bool    // the turns are what the value that RM has gives
	CutUS float64 // the length at which most turns are cut; 0: told by the beat
	Beat  float64 // strength of the beat of the value that RM has, where nobody is seen to wait
	Why   string  // why it is not known
}

// What it takes to know.
const (
	inForceTurns = 50   // turns
	inForceMode  = 0.6  // part of them that lasts nearly the same
	inForceNear  = 1.03 // ratio of the longest to the shortest of those
	inForceCut   = 0.6  // part of the switches that were made in mid-kernel, as the GSP counts
	inForceMost  = 5000 // turns above which no beat is looked for: then they are short
)

// inForce looks at the turns of the last 10 s. A turn that a timeslice ended is cut in
// the middle of a kernel, for another that waited: without the GSP's word for that,
// kernels of one length would look the same, and without a waiter one that comes like a
// clock.
func (s *State) inForce(t *tsg) InForce {
	no := func(format string, args ...any) InForce { return InForce{Why: fmt.Sprintf(format, args...)} }
	set, ok := t.slice.us, t.slice.from != FromNowhere
	window := windowStart(Window10s, s.now)
	switch {
	case !ok:
		return no("RM's own timeslice of it is not known")
	case t.slice.from == FromSeen && t.slice.since > window || len(t.slice.before) > 0 && t.slice.since > window:
		return no("its timeslice was changed less than 10 s ago")
	case len(t.preempts) > 0 && t.preempts[len(t.preempts)-1].to > window:
		return no("it was preempted less than 10 s ago")
	case t.st == nil:
		return no("it had no turns while another competed")
	}
	waits := s.waitsBeside(&t.row)
	t.st.collect(&s.pool, qResidency, Window10s, s.now)
	if s.pool.n < inForceTurns {
		return no("only %d turns in 10 s while another competed", s.pool.n)
	}
	why, sw := s.noSwitches(&t.row), Switches{}
	if why == "" {
		sw, why = t.switches.over(Window10s, s.now)
	}
	if why != "" {
		return no("the GSP's count is missing: %s", why)
	}
	cut := float64(sw.Forced) / float64(max(1, sw.Forced+sw.Voluntary))
	if cut < inForceCut {
		return no("kernels end first (%.0f%% of switches cut one)", 100*cut)
	}
	alone := float64(waits) < inForceMode*float64(s.pool.n)
	if at, part := s.pool.mode(inForceNear); part >= inForceMode && !alone {
		lo, hi := sliceTolerance*float64(set), 1.05*float64(set)+250
		return InForce{Known: true, AsSet: at >= lo && at <= hi, CutUS: at}
	}
	if s.pool.n <= inForceMost {
		lengths := s.pool.values()
		for _, unit := range []float64{1.024, 1} {
			if b, own := beat.Lowest(lengths, unit*float64(set)); own {
				return InForce{Known: true, AsSet: true, Beat: b.Strength}
			}
		}
	}
	if alone {
		return no("nothing shows that others waited, and no beat of %d us", set)
	}
	return no("turns of many lengths, in no beat of %d us", set)
}

// waitsBeside counts how often others on a row's engine were seen to wait in the last
// 10 s: taken off with work left, until their next turn. Each waits through a turn of
// the row's. Without that, turns can be alike because another comes like a clock.
func (s *State) waitsBeside(r *row) (n uint64) {
	count := func(o *row) {
		if o != r && o.engine == r.engine && o.st != nil {
			o.st.collect(&s.pool, qWait, Window10s, s.now)
			n += s.pool.n
		}
	}
	for _, t := range s.tsgs {
		count(&t.row)
	}
	for _, o := range s.ctxRows {
		count(o)
	}
	return n
}

// mode is where most of the values lie within a ratio (the mean of those), and the
// part of all that does.
func (p *pool) mode(near float64) (at, part float64) {
	type one struct{ us, n float64 }
	var bins []one
	p.each(func(bin int, n uint64) { bins = append(bins, one{binMiddle[bin], float64(n)}) })
	from, in, sum, best := 0, 0.0, 0.0, 0.0
	for _, b := range bins {
		in, sum = in+b.n, sum+b.n*b.us
		for bins[from].us*near < b.us {
			in, sum = in-bins[from].n, sum-bins[from].n*bins[from].us
			from++
		}
		if in > best {
			best, at = in, sum/in
		}
	}
	return at, best / float64(max(1, p.n))
}

// values are all values, as near as the bins have them.
func (p *pool) values() (us []float64) {
	p.each(func(bin int, n uint64) {
		for range n {
			us = append(us, binMiddle[bin])
		}
	})
	return us
}
