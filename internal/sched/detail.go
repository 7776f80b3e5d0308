package sched

import "slices"

// lanes draws all engines as asked for.
func (s *State) lanes(opt SnapshotOptions) []Lane {
	var out []Lane
	for _, g := range s.gpus {
		if !s.shown(g.view.Index) {
			continue
		}
		for _, e := range g.engines {
			to := opt.LaneUntil
			if to == 0 {
				to = s.windowEnd(g)
			}
			out = append(out, e.drawing(to-Time(opt.LaneSpan), to))
		}
	}
	return out
}

// rowOf finds a row by its generation, also one that ended a short while ago.
func (s *State) rowOf(gen uint64) *row {
	for _, t := range s.tsgs {
		if t.gen == gen {
			return &t.row
		}
	}
	for _, l := range [...][]*row{s.ctxRows, s.ended} {
		for _, r := range l {
			if r.gen == gen {
				return r
			}
		}
	}
	return nil
}

// detail gathers what only the detail of one row needs. Nil where there is no such row.
func (s *State) detail(gen uint64) *Detail {
	r := s.rowOf(gen)
	if r == nil {
		return nil
	}
	d := &Detail{Gen: gen}
	if t := r.tsg; t != nil {
		d.Timeslices = slices.Clone(t.slice.log)
		d.Calls = slices.Clone(t.calls)
	}
	if r.tsg != nil {
		d.InForce = s.inForce(r.tsg)
	}
	if r.st == nil {
		return d
	}
	r.st.collect(&s.pool, qResidency, WindowAll, s.now)
	d.Residency = s.pool.histogram()
	r.st.collect(&s.pool, qWait, WindowAll, s.now)
	d.Wait = s.pool.histogram()
	if g := s.gpu(r.gpu); g != nil {
		d.Share = shareOverTime(g, r, s.windowEnd(g))
	}
	return d
}

// shareOverTime gives the share in each of the last 300 whole seconds since the
// trace began.
func shareOverTime(g *gpu, r *row, end Time) []SharePoint {
	last := int64(end/second) - 1
	first := max(last-(shareSeconds-2), int64(g.traceFrom/second))
	var out []SharePoint
	for i := first; i <= last; i++ {
		p := SharePoint{Time: Time(i) * second}
		var competed int64
		for _, e := range g.engines {
			if e.holds(r) {
				ns, _ := e.share.at(i)
				competed += ns
			}
		}
		if competed > 0 {
			ns, _ := r.st.share.at(i)
			p.Share = Ptr(min(1, float64(ns)/float64(competed)))
		}
		out = append(out, p)
	}
	return out
}
