package sched

import "math"

// Totals are counts since the state began, for who keeps sums of its own: they
// only grow, and come with each row, also with one that ended a short while ago
// (Options.LaneKeep).
type Totals struct {
	Time Time
	GPUs []GPUTotals
	Rows []RowTotals
}

// GPUTotals are those of one GPU's graphics engines.
type GPUTotals struct {
	GPU      int
	Traced   bool   // its trace has been read at some time: otherwise nothing below is known
	Switches uint64 // starts of turns
	Competed int64  // ns in which at least two competed
	Switched int64  // ns of that in which nobody was resident between two that competed
	Xids     int
}

// RowTotals are those of one row of the tree.
type RowTotals struct {
	Gen    uint64
	Merged []uint64 // generations of rows whose numbers went into this one
	View   TSGView  // who it is, without scores
	Ended  bool

	Turns     uint64
	Competed  int64 // ns in which it was resident and others competed
	Residency HistTotals
	Wait      HistTotals
}

// HistTotals are a histogram's counts: Counts[i] holds what is below
// TotalsBounds[i] and not below the one before, the last all the rest.
type HistTotals struct {
	N      uint64
	Sum    float64 // seconds
	Counts [len(TotalsBounds) + 1]uint64
}

// TotalsBounds are the upper bounds of HistTotals, in seconds: from 33 us to
// 1.07 s, two to the octave.
var TotalsBounds = func() (b [31]float64) {
	for i := range b {
		b[i] = math.Exp2(float64(firstTotalsBin+i*binsPerTotal)/binsPerOctave) / 1e9
	}
	return b
}()

const (
	binsPerTotal   = binsPerOctave / 2
	firstTotalsBin = 15 * binsPerOctave
)

// maxMerged bounds how many merged rows are remembered with one.
const maxMerged = 64

// Totals gives the counts now.
func (b *Board) Totals() Totals {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state.totals()
}

func (s *State) totals() Totals {
	out := Totals{Time: s.now}
	for _, g := range s.gpus {
		if !s.shown(g.view.Index) {
			continue
		}
		t := GPUTotals{GPU: g.view.Index, Traced: g.traceFrom != 0 || len(g.engines) > 0, Xids: g.xids}
		for _, e := range g.engines {
			t.Switches += e.tally.all.turns
			t.Competed += e.tally.all.competed
			t.Switched += e.tally.all.switched
		}
		out.GPUs = append(out.GPUs, t)
	}
	b := rowsBuilder{s: s, mem: map[memKey]uint64{}}
	add := func(r *row) {
		if !s.shown(r.gpu) {
			return
		}
		out.Rows = append(out.Rows, RowTotals{Gen: r.gen, Ended: r.ended != 0, Merged: append([]uint64(nil), r.merged...)})
		t := &out.Rows[len(out.Rows)-1]
		if r.tsg != nil {
			b.viewTSG(&t.View, r.tsg)
		} else {
			b.viewContext(&t.View, r)
		}
		t.View.Score = [NumWindows]Score{}
		if r.st == nil {
			return
		}
		t.Turns, t.Competed = r.st.all.turns, r.st.all.competed
		t.Residency, t.Wait = s.histTotals(r.st, qResidency), s.histTotals(r.st, qWait)
	}
	for _, t := range s.tsgs {
		add(&t.row)
	}
	for _, r := range s.ctxRows {
		add(r)
	}
	for _, r := range s.ended {
		add(r)
	}
	return out
}

func (s *State) histTotals(r *rowStats, quantity int) HistTotals {
	r.collect(&s.pool, quantity, WindowAll, s.now)
	h := HistTotals{N: s.pool.n, Sum: s.pool.mean * float64(s.pool.n) / 1e6}
	if s.pool.n == 0 {
		return HistTotals{}
	}
	s.pool.each(func(bin int, n uint64) {
		i := 0
		if bin >= firstTotalsBin {
			i = min((bin-firstTotalsBin)/binsPerTotal+1, len(h.Counts)-1)
		}
		h.Counts[i] += n
	})
	return h
}
