package sched

// laneTurn is a turn as the lane keeps it.
type laneTurn struct {
	start, end Time
	context    uint32
	ended      EndedBy
	clean      bool
}

// lane keeps the latest turns of an engine, in the order of their ends: a ring
// that grows as needed up to its limit.
type lane struct {
	turns []laneTurn // a power of two
	first uint64     // number of the oldest turn that is kept
	next  uint64     // number of the turn that comes next
}

// push keeps a turn, and gives its number.
func (l *lane) push(s *State, t laneTurn) uint64 {
	for l.first < l.next && t.end-l.get(l.first).end > Time(s.opt.LaneKeep) {
		l.first++
	}
	if n := int(l.next - l.first); n == len(l.turns) {
		if n < s.opt.LaneTurns {
			l.grow()
		} else {
			l.first++
		}
	}
	*l.get(l.next) = t
	l.next++
	return l.next - 1
}

func (l *lane) get(n uint64) *laneTurn {
	return &l.turns[n&uint64(len(l.turns)-1)]
}

// at finds a turn by its number; nil where it is no longer kept.
func (l *lane) at(n uint64) *laneTurn {
	if n < l.first || n >= l.next {
		return nil
	}
	return l.get(n)
}

func (l *lane) grow() {
	old := *l
	l.turns = make([]laneTurn, max(64, 2*len(old.turns)))
	for n := l.first; n < l.next; n++ {
		*l.get(n) = *old.get(n)
	}
}

// sinceEnd visits turns that ended at t or later, newest first.
func (l *lane) sinceEnd(t Time, f func(*laneTurn)) {
	for n := l.next; n > l.first; n-- {
		x := l.get(n - 1)
		if x.end < t {
			return
		}
		f(x)
	}
}

// search gives the number of the first turn that ended after t.
func (l *lane) search(t Time) uint64 {
	lo, hi := l.first, l.next
	for lo < hi {
		if mid := (lo + hi) / 2; l.get(mid).end <= t {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// drawing gives what an engine did from one instant to another.
func (e *engine) drawing(from, to Time) Lane {
	out := Lane{GPU: e.gpu.view.Index, Runlist: e.runlist(), From: from, To: to}
	first := e.lane.search(from)
	last := e.lane.search(to)
	if last < e.lane.next {
		last++ // the one that reaches over the end
	}
	out.Turns = make([]Turn, 0, last-first+1)
	e.each(from, to, func(t Turn) { out.Turns = append(out.Turns, t) })
	for _, g := range e.gaps {
		if g >= from && g <= to {
			out.Gaps = append(out.Gaps, g)
		}
	}
	return out
}

// each visits the turns that overlap a span, oldest first, the open one too.
func (e *engine) each(from, to Time, f func(Turn)) {
	var known *traceContext
	gen := func(id uint32) uint64 {
		if known == nil || known.id != id {
			if known = e.contexts[id]; known == nil {
				return 0
			}
		}
		return known.row.gen
	}
	for n := e.lane.search(from); n < e.lane.next; n++ {
		t := e.lane.get(n)
		if t.start >= to {
			return
		}
		f(Turn{Gen: gen(t.context), Context: t.context, Start: t.start, End: t.end, EndedBy: t.ended, Clean: t.clean})
	}
	if c := &e.cur; c.ctx != nil && c.start < to && e.readTo > from {
		f(Turn{Gen: c.ctx.row.gen, Context: c.ctx.id, Start: c.start, End: max(e.readTo, c.start), EndedBy: EndOpen, Clean: c.clean})
	}
}

// runlist is the runlist that feeds the engine: that of the TSGs seen on it,
// or the one that RM's map names for the first graphics engine.
func (e *engine) runlist() int {
	for _, r := range e.recent {
		if r.row != nil && r.row.tsg != nil && r.row.tsg.runlist != Unknown {
			return r.row.tsg.runlist
		}
	}
	if e.gi == 0 && e.ci == 0 {
		return e.gpu.runlistOf(engineGR0)
	}
	return Unknown
}

// engineGR0 is the NV2080 engine type of the first graphics engine.
const engineGR0 = 1

// Turns gives the turns of one TSG that overlap a span and are still kept,
// oldest first; the running one too, with EndOpen.
func (s *State) Turns(gen uint64, from, to Time) []Turn {
	var out []Turn
	for _, g := range s.gpus {
		for _, e := range g.engines {
			e.each(from, to, func(t Turn) {
				if t.Gen == gen {
					out = append(out, t)
				}
			})
		}
	}
	return out
}
