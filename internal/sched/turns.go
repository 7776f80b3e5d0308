package sched

import (
	"slices"
	"time"
)

// competeMin is how long after a stay a row still counts as competing. While
// the row that is resident has a longer timeslice, twice that timeslice counts
// instead: the others may have waited all through it.
//
// Competed time is then: the part of each turn that lies within this time of
// the end of another row's newest turn, and each switch from one row to
// another. A context that stays resident because nobody else comes makes no
// records, so the time after that is not competed and counts nowhere.
const competeMin = Time(100 * time.Millisecond)

// tolerance of a timeslice: a turn that it ended lasts it or longer (timeslice
// plus 100 to 150 us on an H200), so 2% less covers rounding by the hardware.
const sliceTolerance = 0.98

// maxTimeslice bounds a timeslice in reckoning, in microseconds: one hour.
const maxTimeslice = 3_600_000_000

// horizon is how long others count as competing while the row is resident.
func (r *row) horizon() Time {
	if r.tsg == nil {
		return competeMin
	}
	return max(competeMin, 2*Time(min(r.tsg.slice.us, maxTimeslice))*1000)
}

// finish ends the running turn at the record of its end.
func (e *engine) finish(s *State, t Time) {
	c := e.cur
	c.end = t
	row := c.ctx.row
	st := row.stats()
	st.addTurn(t)
	if other := e.otherThan(row); c.clean && other != 0 {
		until := min(t, other+row.horizon())
		c.competed = until == t
		st.addSpan(c.start, until, false)
		st.share.addSpan(c.start, until)
		e.tally.addSpan(c.start, until, false)
		e.share.addSpan(c.start, until)
		if c.competed {
			st.add(qResidency, t, int64(t-c.start))
		}
	}
	c.place = e.lane.push(s, laneTurn{start: c.start, end: t, context: c.ctx.id, clean: c.clean})
	row.end, row.by = t, EndUnknown
	e.resided(row, t)
	e.prev, e.cur = c, turn{}
}

// close ends the running turn where the record of its end is missing. It stays
// out of all statistics but the count of turns.
func (e *engine) close(s *State, t Time) {
	c := e.cur
	row := c.ctx.row
	row.stats().addTurn(t)
	e.lane.push(s, laneTurn{start: c.start, end: t, context: c.ctx.id})
	row.end, row.by = 0, EndUnknown
	e.resided(row, c.start)
	e.cur = turn{}
}

// settle looks at the turn that ended last with what came after it: next, at t,
// or (nil) nobody up to t.
func (e *engine) settle(next *row, t Time) {
	p := e.prev
	e.prev = turn{}
	row := p.ctx.row
	soon := next != nil && t >= p.end && t-p.end <= switchMax
	switch {
	case soon && next != row:
		e.tally.addSpan(p.end, t, true)
		e.share.addSpan(p.end, t)
	case soon:
		if other := e.otherThan(row); other != 0 && other+row.horizon() >= t {
			e.tally.addSpan(p.end, t, false)
			e.share.addSpan(p.end, t)
		}
	}
	if !p.clean {
		return
	}
	by := row.endedBy(p.start, p.end, p.competed && soon && next != row)
	if l := e.lane.at(p.place); l != nil {
		l.ended = by
	}
	if row.end == p.end {
		row.by = by
	}
}

// endedBy tells what ended a clean turn. contended: another had been resident
// shortly before, and one came on right after.
func (r *row) endedBy(start, end Time, contended bool) EndedBy {
	if r.tsg == nil {
		return EndUnknown
	}
	lo, hi, ok := r.tsg.slice.over(start, end)
	if !ok {
		return EndUnknown
	}
	us := float64(end-start) / 1e3
	full := us >= sliceTolerance*float64(hi)
	switch {
	case full && contended:
		return EndTimeslice
	case r.tsg.preemptedAt(end):
		return EndPreempt
	case us < sliceTolerance*float64(lo):
		return EndVoluntary
	}
	return EndUnknown
}

// otherThan is when another row than r was last on the engine; 0: never.
func (e *engine) otherThan(r *row) Time {
	if e.recent[0].row != r {
		return e.recent[0].end
	}
	return e.recent[1].end
}

// resided notes that a row was on the engine until t.
func (e *engine) resided(r *row, t Time) {
	if e.recent[0].row != r {
		e.recent[1] = e.recent[0]
	}
	e.recent[0] = residence{r, t}
}

// preempt is one preempt of a TSG that RM accepted: turns that end in this
// time may have been cut by it.
type preempt struct{ from, to Time }

// preemptReach is how long after the call began a turn can be cut: 250 to
// 460 us on an H200, whether the call waited or not. clockError is how well
// calls and trace lie side by side.
const (
	preemptReach = Time(600 * time.Microsecond)
	clockError   = Time(20 * time.Microsecond)
	maxPreempts  = 16
)

func (t *tsg) preemptedAt(end Time) bool {
	for i := len(t.preempts) - 1; i >= 0; i-- {
		if p := t.preempts[i]; p.from <= end && end <= p.to {
			return true
		}
	}
	return false
}

// notePreempt takes in a preempt, and looks again at turns that it may have
// ended: the call's record can come after the trace's.
func (s *State) notePreempt(t *tsg, c *Call) {
	p := preempt{from: c.Start, to: max(c.End, c.Start+preemptReach) + clockError}
	t.preempts = keepLast(t.preempts, p, maxPreempts)
	g := s.gpu(t.gpu)
	if g == nil {
		return
	}
	for _, e := range g.engines {
		e.lane.sinceEnd(p.from, func(l *laneTurn) {
			ctx := e.contexts[l.context]
			if !l.clean || l.ended != EndVoluntary || l.end > p.to || ctx == nil || ctx.row != &t.row {
				return
			}
			l.ended = EndPreempt
			if t.end == l.end {
				t.by = EndPreempt
			}
			if o := &t.before; o.from == l.end && o.to != 0 && !o.waited {
				o.waited = true
				t.stats().add(qWait, o.to, int64(o.to-o.from))
			}
		})
	}
}

// context finds a context of the trace, or makes its row.
func (e *engine) context(s *State, r *TraceRecord) *traceContext {
	c := e.contexts[r.Context]
	if c != nil && (c.row.tsg != nil || c.row.ended == 0) {
		return c
	}
	if c == nil {
		if s.contexts >= maxContexts {
			s.cut++
			if e.others == nil {
				e.others = &traceContext{row: &row{hidden: true, gpu: e.gpu.view.Index}}
			}
			return e.others
		}
		c = &traceContext{id: r.Context, pid: r.PID}
		e.contexts[r.Context] = c
		s.contexts++
	}
	if t := s.owners[r.Context]; t != nil {
		c.row = &t.row
		s.onGPU(t, e)
		return c
	}
	c.row = &row{gen: s.gen(), engine: e, context: r.Context, gpu: e.gpu.view.Index, proc: s.process(int(r.PID), r.Time)}
	s.ctxRows = append(s.ctxRows, c.row)
	return c
}

// onGPU: the trace shows which GPU a TSG is on.
func (s *State) onGPU(t *tsg, e *engine) {
	t.row.engine = e
	if t.gpu == Unknown {
		t.gpu = e.gpu.view.Index
		s.locate(t)
	}
}

// assign gives a context that was already in the trace to its TSG.
func (s *State) assign(e *engine, c *traceContext, t *tsg) {
	old := c.row
	if old == &t.row {
		return
	}
	c.row = &t.row
	s.onGPU(t, e)
	if old.tsg != nil {
		return // what it did as another's stays there
	}
	t.merged = keepLast(t.merged, old.gen, maxMerged)
	if old.st != nil {
		if t.st == nil {
			t.st = old.st
		} else {
			t.st.merge(old.st)
		}
	}
	if old.lastSeen() > t.lastSeen() {
		t.stay = old.stay
	}
	for i := range e.recent {
		if e.recent[i].row == old {
			e.recent[i].row = &t.row
		}
	}
	if e.recent[0].row == e.recent[1].row {
		e.recent[0].end = max(e.recent[0].end, e.recent[1].end)
		e.recent[1] = residence{}
	}
	s.ctxRows = slices.DeleteFunc(s.ctxRows, func(r *row) bool { return r == old })
}

// ctxRowKeep is how long a row that was made from the trace alone outlives its process.
const ctxRowKeep = 2 * second

// dropContextRows ends rows of unknown contexts whose process is gone, or that
// left the engine long ago.
func (s *State) dropContextRows() {
	for _, r := range s.ctxRows {
		last := max(r.lastSeen(), 1)
		gone := r.proc != nil && r.proc.exited != 0 && s.now-max(last, r.proc.exited) > ctxRowKeep
		left := r.end == last && s.now-last > Time(s.opt.LaneKeep)
		if gone || left {
			r.ended = s.now
			s.retire(r)
		}
	}
	s.ctxRows = slices.DeleteFunc(s.ctxRows, func(r *row) bool { return r.ended != 0 })
}

// retire keeps a row that is over for lanes and details, for a while.
func (s *State) retire(r *row) {
	s.ended = append(s.ended, r)
	if len(s.ended) > 2*maxTSGs {
		s.forget(func(i int, _ *row) bool { return i < maxTSGs })
	}
}

func (s *State) dropEnded() {
	keep := Time(s.opt.LaneKeep)
	s.forget(func(_ int, r *row) bool { return s.now-max(r.ended, r.lastSeen()) > keep })
}

// forget drops ended rows and what leads to them.
func (s *State) forget(drop func(int, *row) bool) {
	gone := map[*row]bool{}
	for i, r := range s.ended {
		if drop(i, r) {
			gone[r] = true
		}
	}
	if len(gone) == 0 {
		return
	}
	s.ended = slices.DeleteFunc(s.ended, func(r *row) bool { return gone[r] })
	for id, t := range s.owners {
		if gone[&t.row] {
			delete(s.owners, id)
		}
	}
	for _, g := range s.gpus {
		for _, e := range g.engines {
			for id, c := range e.contexts {
				if gone[c.row] && e.cur.ctx != c && e.prev.ctx != c {
					delete(e.contexts, id)
					s.contexts--
				}
			}
		}
	}
}
