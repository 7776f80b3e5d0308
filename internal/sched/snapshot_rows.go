package sched

import (
	"cmp"
	"slices"
)

// rowsBuilder writes the rows of one snapshot. The numbers that the rows point
// to stand in a few large pieces of memory: a snapshot of 200 TSGs is taken ten
// times a second.
type rowsBuilder struct {
	s        *State
	stats    []Stats
	floats   []float64
	switched []Switches
	channels []ChannelView
	mem      map[memKey]uint64
}

type memKey struct{ gpu, pid int }

func (b *rowsBuilder) float(v float64) *float64 {
	if len(b.floats) == cap(b.floats) {
		b.floats = make([]float64, 0, 256)
	}
	b.floats = append(b.floats, v)
	return &b.floats[len(b.floats)-1]
}

func (b *rowsBuilder) counted(s Switches) *Switches {
	if len(b.switched) == cap(b.switched) {
		b.switched = make([]Switches, 0, 64)
	}
	b.switched = append(b.switched, s)
	return &b.switched[len(b.switched)-1]
}

func (b *rowsBuilder) stat() *Stats {
	if len(b.stats) == cap(b.stats) {
		b.stats = make([]Stats, 0, 128)
	}
	b.stats = append(b.stats, Stats{})
	return &b.stats[len(b.stats)-1]
}

func (s *State) viewRows(out *Snapshot) {
	b := rowsBuilder{s: s, mem: map[memKey]uint64{}}
	for _, g := range s.gpus {
		if g.sample != nil {
			for _, m := range g.sample.ProcessMem {
				b.mem[memKey{g.view.Index, m.PID}] = m.Bytes
			}
		}
	}
	channels := 0
	for _, t := range s.tsgs {
		channels += len(t.channels)
	}
	b.channels = make([]ChannelView, 0, channels)
	out.TSGs = make([]TSGView, 0, len(s.tsgs)+len(s.ctxRows))
	for _, t := range s.tsgs {
		if s.shown(t.gpu) {
			out.TSGs = append(out.TSGs, TSGView{})
			b.viewTSG(&out.TSGs[len(out.TSGs)-1], t)
		}
	}
	for _, r := range s.ctxRows {
		if s.shown(r.gpu) {
			out.TSGs = append(out.TSGs, TSGView{})
			b.viewContext(&out.TSGs[len(out.TSGs)-1], r)
		}
	}
	sortRows(out.TSGs)
	for i := range out.GPUs {
		out.GPUs[i].Competing = s.competing(out.GPUs[i].Index)
	}
}

// sortRows puts rows in the order of GPU, runlist, TSG number and generation;
// what is not known comes last.
func sortRows(rows []TSGView) {
	key := func(n int) uint { return uint(n) } // Unknown is the largest
	order := make([]int32, len(rows))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(i, j int32) int {
		a, b := &rows[i], &rows[j]
		return cmp.Or(cmp.Compare(key(a.ID.GPU), key(b.ID.GPU)), cmp.Compare(key(a.ID.Runlist), key(b.ID.Runlist)),
			cmp.Compare(key(a.ID.TSG), key(b.ID.TSG)), cmp.Compare(a.Gen, b.Gen))
	})
	// Apply the order in place: rows are large.
	for i := range order {
		for int(order[i]) != i {
			j := order[i]
			k := order[j]
			rows[j], rows[k] = rows[k], rows[j]
			order[i], order[j] = k, j
		}
	}
}

func (b *rowsBuilder) viewTSG(v *TSGView, t *tsg) {
	s := b.s
	owner, object, device := t.owner()
	v.Gen, v.Object, v.Device = t.gen, object, device
	v.ID = TSGID{GPU: t.gpu, Runlist: t.runlist, TSG: t.number}
	v.UniqueID, v.Engine, v.Interleave = t.unique.ptr(), t.engType.ptr(), t.level.ptr()
	if t.scheduled.ok {
		v.Scheduled = Ptr(t.scheduled.v == 1)
	}
	v.Timeslice, v.TimesliceFrom = t.slice.ptr(), t.slice.from
	v.Created = t.created
	v.Clients, v.MPS, v.HolderPIDs = b.s.sharing(t, owner)
	if p := owner.proc; p != nil {
		v.Process = p.Process
	} else if pid := s.tracePID(t); pid > 0 {
		v.Process = s.described(pid)
	}
	if m, ok := b.mem[memKey{t.gpu, v.Process.PID}]; ok {
		v.MemoryBytes = &m
	}
	from := len(b.channels)
	for _, c := range t.channels {
		b.channels = append(b.channels, ChannelView{Object: c.handles[0].Handle, Class: c.class, ChID: c.chid.ptr(), Context: c.context.ptr()})
	}
	v.Channels = b.channels[from:len(b.channels):len(b.channels)]
	b.score(v, &t.row)
	b.switches(v, &t.row)
}

func (l *timeslices) ptr() *uint64 {
	if l.from == FromNowhere {
		return nil
	}
	return Ptr(l.us)
}

// tracePID is the process that the trace names for a TSG; 0: none.
func (s *State) tracePID(t *tsg) int {
	g := s.gpu(t.gpu)
	if g == nil {
		return 0
	}
	for _, ch := range t.channels {
		for _, e := range g.engines {
			if c := e.contexts[ch.context.v]; ch.context.ok && c != nil {
				return int(c.pid)
			}
		}
	}
	return 0
}

func (s *State) described(pid int) Process {
	if p := s.processes[pid]; p != nil {
		return p.Process
	}
	return Process{PID: pid}
}

func (b *rowsBuilder) viewContext(v *TSGView, r *row) {
	v.Gen, v.Context = r.gen, true
	v.ID = TSGID{GPU: r.gpu, Runlist: Unknown, TSG: Unknown}
	if g := b.s.gpu(r.gpu); g != nil && len(g.engines) == 1 {
		v.ID.Runlist = g.engines[0].runlist()
	}
	if r.proc != nil {
		v.Process = r.proc.Process
	}
	if m, ok := b.mem[memKey{r.gpu, v.Process.PID}]; ok {
		v.MemoryBytes = &m
	}
	b.channels = append(b.channels, ChannelView{Context: Ptr(r.context)})
	v.Channels = b.channels[len(b.channels)-1 : len(b.channels) : len(b.channels)]
	b.score(v, r)
	b.switches(v, r)
}

// score fills in the numbers that come from the trace, and why there are none.
func (b *rowsBuilder) score(v *TSGView, r *row) {
	s := b.s
	v.LastTurn = r.lastSeen()
	g := s.gpu(r.gpu)
	why := s.noTrace(g, r)
	if why != "" || g == nil {
		v.WhyNull = why
		for w := range v.Score {
			v.Score[w].WhyNull = why
		}
		return
	}
	var own *engine
	for _, e := range g.engines {
		if c := e.cur.ctx; c != nil && c.row == r {
			v.Resident = true
			v.LastTurn = max(v.LastTurn, e.readTo)
			own = e
		}
	}
	end := s.windowEnd(g)
	for w := range NumWindows {
		b.scoreWindow(&v.Score[w], r, g, own, w, end)
		if v.WhyNull == "" {
			v.WhyNull = v.Score[w].WhyNull
		}
	}
}

func (b *rowsBuilder) scoreWindow(sc *Score, r *row, g *gpu, own *engine, w Window, end Time) {
	s := b.s
	d := g.span(w, end)
	if r.st == nil { // no turn of it has ended
		if d > 0 {
			sc.TurnsPerS = b.float(0)
		}
		sc.WhyNull = s.whyNoTurn(r, own)
		return
	}
	t := r.st.sum(w, end)
	sc.Turns = t.turns
	if d > 0 {
		sc.TurnsPerS = b.float(float64(t.turns) / d)
	}
	var competed int64
	for _, e := range g.engines {
		if e.holds(r) {
			competed += e.tally.sum(w, end).competed
		}
	}
	if competed > 0 {
		// More than all can only come from a source whose clock jumps, or that
		// has one context on two engines.
		sc.Share = b.float(min(1, float64(t.competed)/float64(competed)))
	} else {
		sc.WhyNull = nothingCompeted[w]
	}
	for q, to := range [...]**Stats{qResidency: &sc.Residency, qWait: &sc.Wait, qOff: &sc.Off} {
		r.st.collect(&s.pool, q, w, end)
		if s.pool.n > 0 {
			*to = b.stat()
			s.pool.stats(*to)
		}
	}
	if sc.WhyNull == "" {
		sc.WhyNull = s.whyPartly(sc, r, own)
	}
}

// holds tells whether the row's contexts are on this engine.
func (e *engine) holds(r *row) bool {
	return len(e.gpu.engines) == 1 || r.engine == e
}
