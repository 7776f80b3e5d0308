package sched

import (
	"slices"
	"time"
)

// Snapshot gives the state as it is now. What it shares with the state (texts,
// descriptions) the state never changes, only replaces.
func (s *State) Snapshot(opt SnapshotOptions) *Snapshot {
	out := &Snapshot{
		Time:     s.now,
		Source:   s.source,
		Probes:   slices.Clone(s.probes),
		Lost:     s.loss,
		Commands: slices.Clone(s.commands),
		Xids:     slices.Clone(s.xids),
		CallRate: s.callRate(),
		Cut:      s.cut,
	}
	if out.Time == 0 {
		out.Time = s.source.Time
	}
	for _, g := range s.gpus {
		if s.shown(g.view.Index) {
			out.GPUs = append(out.GPUs, s.viewGPU(g))
		}
	}
	s.viewRows(out)
	if opt.Group != nil {
		out.Groups, out.GroupTag = s.groups(out.TSGs, opt.Group), opt.GroupTag
	}
	out.Unattributed = s.unattributed()
	if opt.LaneSpan > 0 {
		out.Lanes = s.lanes(opt)
	}
	if opt.Detail != 0 {
		out.Detail = s.detail(opt.Detail)
	}
	return out
}

// shown tells whether a GPU was asked for. What is not known to be on another
// GPU is shown.
func (s *State) shown(gpu int) bool {
	return s.opt.GPUs == nil || gpu == Unknown || s.opt.GPUs[gpu]
}

// callRate is how many RM calls a second there are, over 1 s.
func (s *State) callRate() float64 {
	n := s.rate.sum(Window1s, s.now).turns
	r := float64(n) / seconds64(s.now-windowStart(Window1s, s.now))
	if s.now-s.counted.at < 3*second {
		r += s.counted.perS
	}
	return r
}

func seconds64(d Time) float64 { return float64(d) / 1e9 }

// windowEnd is where a window of the trace's numbers ends: where the trace has
// been read, unless it has stood still.
func (s *State) windowEnd(g *gpu) Time {
	if s.now-g.traceTo > second {
		return s.now
	}
	return g.traceTo
}

// span is how much of a window was read, in seconds; 0 where that is too short
// for a rate.
func (g *gpu) span(w Window, end Time) float64 {
	if d := Time(g.read.sum(w, end).competed); d >= Time(50*time.Millisecond) {
		return seconds64(d)
	}
	return 0
}

func (s *State) viewGPU(g *gpu) GPUView {
	v := GPUView{GPU: g.view, XidCount: g.xids}
	if g.sample != nil {
		v.Sample = Ptr(*g.sample)
	}
	v.TraceWhy, v.TraceRead = s.traceWhy(g), g.traceTo
	if g.traceFrom == 0 {
		return v
	}
	end := s.windowEnd(g)
	var starts uint64
	var tax [NumWindows]tally
	for _, e := range g.engines {
		starts += e.tally.sum(Window1s, end).turns
		for w := range NumWindows {
			t := e.tally.sum(w, end)
			tax[w].competed += t.competed
			tax[w].switched += t.switched
		}
	}
	if d := g.span(Window1s, end); d > 0 {
		v.SwitchesPerS = Ptr(float64(starts) / d)
	}
	for w := range NumWindows {
		if tax[w].competed > 0 {
			v.SwitchTax[w] = Ptr(float64(tax[w].switched) / float64(tax[w].competed))
		}
	}
	return v
}

// competing is how many rows had a turn in the last second, where at least two had.
func (s *State) competing(index int) int {
	g := s.gpu(index)
	if g == nil || g.traceFrom == 0 {
		return 0
	}
	since := s.windowEnd(g) - second
	n := 0
	had := func(r *row) {
		if r.gpu == index && (g.resident(r) || r.lastSeen() > 0 && r.lastSeen() >= since) {
			n++
		}
	}
	for _, t := range s.tsgs {
		had(&t.row)
	}
	for _, r := range s.ctxRows {
		had(r)
	}
	for _, r := range s.ended {
		had(r)
	}
	if n < 2 {
		return 0
	}
	return n
}

func (g *gpu) resident(r *row) bool {
	for _, e := range g.engines {
		if e.cur.ctx != nil && e.cur.ctx.row == r {
			return true
		}
	}
	return false
}

func (s *State) unattributed() Unattributed {
	u := s.found
	for _, r := range s.ctxRows {
		if s.shown(r.gpu) {
			u.Contexts++
		}
	}
	lone := 0
	for _, c := range s.clients {
		if c.orphans == 0 {
			continue
		}
		for n := c.root.child; n != nil; n = n.next {
			if n.channel != nil && n.channel.tsg == nil {
				lone++
			}
		}
	}
	u.Channels = max(u.Channels, lone)
	return u
}
