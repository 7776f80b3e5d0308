package sched

import "time"

// engine is the timeline of one graphics engine: the turns that the
// context-switch trace tells. Without MIG a GPU has one.
type engine struct {
	gpu      *gpu
	gi, ci   uint8
	contexts map[uint32]*traceContext
	others   *traceContext // stands for all contexts above the limit
	from     Time          // the trace has been read since
	readTo   Time          // it has been read up to here
	last     Time          // of the newest record
	gap      Time          // records are missing right before this instant; 0: none
	gaps     []Time        // the latest gaps
	began    bool          // a record has been seen since from
	cur      turn          // on the engine now; its ctx is nil while nobody is
	prev     turn          // the last that ended, until it is settled
	recent   [2]residence
	lane     lane
	tally    ring // of the engine: starts, competed and switching time
	share    secondsRing
}

// traceContext is a hardware channel id as the trace reports it.
type traceContext struct {
	id  uint32
	pid uint32
	row *row
}

// turn is one stay on the engine while it is being told.
type turn struct {
	ctx      *traceContext
	start    Time // 0: not seen
	end      Time
	clean    bool   // both ends were seen and no record is missing between them
	competed bool   // another was resident shortly before, all through it
	place    uint64 // in the lane
}

// residence is when a row was last known to be on the engine.
type residence struct {
	row *row
	end Time
}

// stay is what a row remembers of its turns, to measure the time between them.
type stay struct {
	start  Time    // of the newest turn; 0: none
	end    Time    // of the newest turn that ended; 0: not seen
	by     EndedBy // what ended that one
	before offTime // the time off before the running or newest turn
}

// offTime is one time off the engine, kept until a late report of a preempt
// can no longer make a wait of it.
type offTime struct {
	from, to Time
	waited   bool
}

// lastSeen is when the row was last known to be on the engine; 0: never.
func (k *stay) lastSeen() Time { return max(k.start, k.end) }

// switchMax is the longest time between two turns that counts as a switch: one
// takes 75 to 85 us (measured on an H200). When nobody is resident for longer,
// nobody wanted the engine.
const switchMax = Time(time.Millisecond)

// maxGapsKept is how many gaps of one engine are kept for drawing.
const maxGapsKept = 4096

// applyTrace folds a run of records.
func (s *State) applyTrace(b *TraceBatch) {
	g := s.gpu(b.GPU)
	if g == nil {
		return
	}
	var e *engine
	to := b.Time
	for i := range b.Records {
		r := &b.Records[i]
		if r.Time <= 0 || r.Time > maxTime {
			s.cut++
			continue
		}
		if e == nil || e.gi != r.GI || e.ci != r.CI {
			if e = g.engine(r.GI, r.CI); e == nil {
				s.cut++
				continue
			}
		}
		e.record(s, r)
		to = max(to, r.Time)
	}
	if to <= 0 || to > maxTime {
		return
	}
	s.tick(to)
	if g.traceFrom == 0 {
		g.traceFrom = to
		if len(b.Records) > 0 && b.Records[0].Time > 0 {
			g.traceFrom = min(to, b.Records[0].Time)
		}
	}
	g.read.addSpan(max(g.traceFrom, g.traceTo), to, false)
	g.traceTo = max(g.traceTo, to)
	for _, e := range g.engines {
		e.readTo = max(e.readTo, to)
		if e.prev.ctx != nil && e.readTo-e.prev.end > switchMax {
			e.settle(nil, e.readTo)
		}
	}
}

// engine finds a timeline, or begins one. Nil where there are too many.
func (g *gpu) engine(gi, ci uint8) *engine {
	for _, e := range g.engines {
		if e.gi == gi && e.ci == ci {
			return e
		}
	}
	if len(g.engines) == maxEngines {
		return nil
	}
	e := &engine{gpu: g, gi: gi, ci: ci, contexts: map[uint32]*traceContext{}, from: g.traceFrom}
	g.engines = append(g.engines, e)
	return e
}

// interruptTrace: the trace is no longer read; what happens until it is read
// again is not known.
func (g *gpu) interruptTrace(s *State, at Time) {
	for _, e := range g.engines {
		e.missing(s, max(e.last, min(at, e.readTo)))
		if e.cur.ctx != nil {
			e.close(s, max(e.last, e.cur.start))
		}
		e.from, e.began = 0, false
	}
	g.traceFrom, g.traceTo = 0, 0
}

// record folds one record.
func (e *engine) record(s *State, r *TraceRecord) {
	if e.from == 0 {
		e.from = r.Time
	}
	if r.Gap > 0 || r.Time < e.last {
		e.missing(s, r.Time)
	}
	e.last = r.Time
	switch r.Tag {
	case TagStart:
		e.start(s, r)
	case TagEnd:
		e.stop(s, r)
	default:
		return
	}
	e.began = true
}

// missing: records are missing right before t.
func (e *engine) missing(s *State, t Time) {
	if e.prev.ctx != nil {
		e.settle(nil, t)
	}
	e.cur.clean = false
	e.gap = max(t, 1)
	e.gaps = keepLast(e.gaps, t, maxGapsKept)
}

// start: a context became resident.
func (e *engine) start(s *State, r *TraceRecord) {
	if e.cur.ctx != nil {
		// The end of the turn before is missing: a dying context leaves none.
		e.close(s, r.Time)
	}
	ctx := e.context(s, r)
	if e.prev.ctx != nil {
		e.settle(ctx.row, r.Time)
	}
	row := ctx.row
	if row.end != 0 && row.end >= e.gap && row.end <= r.Time {
		e.wasOff(row, r.Time)
	} else {
		row.before = offTime{}
	}
	row.start = r.Time
	e.cur = turn{ctx: ctx, start: r.Time, clean: true}
	e.tally.addTurn(r.Time)
}

// wasOff takes in the time that a row was off the engine.
func (e *engine) wasOff(row *row, t Time) {
	st := row.stats()
	st.add(qOff, t, int64(t-row.end))
	waited := row.by == EndTimeslice || row.by == EndPreempt
	if waited {
		st.add(qWait, t, int64(t-row.end))
	}
	row.before = offTime{from: row.end, to: t, waited: waited}
}

// stop: a context was saved.
func (e *engine) stop(s *State, r *TraceRecord) {
	if c := e.cur.ctx; c != nil && (c.id == r.Context && c != e.others || c == e.others && e.contexts[r.Context] == nil) {
		e.finish(s, r.Time)
		return
	}
	if e.cur.ctx != nil || e.began && e.gap != r.Time {
		// A start is missing although the numbers of the records have no gap.
		e.missing(s, r.Time)
	}
	if e.cur.ctx != nil {
		e.close(s, r.Time)
	}
	ctx := e.context(s, r)
	if !e.began && e.from < r.Time && e.gap < e.from {
		// It was resident when the trace began: nothing switched since.
		e.lane.push(s, laneTurn{start: e.from, end: r.Time, context: ctx.id, ended: EndUnknown})
	}
	ctx.row.end, ctx.row.by, ctx.row.before = r.Time, EndUnknown, offTime{}
	ctx.row.stats().addTurn(r.Time)
	e.resided(ctx.row, r.Time)
	e.prev = turn{ctx: ctx, end: r.Time}
}
