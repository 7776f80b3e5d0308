// Package metrics offers a board's numbers to Prometheus. Its counters outlive
// the TSGs that they count: many short processes of one program are one series.
package metrics

import (
	"tsgtop/internal/sched"
	"tsgtop/internal/text"
)

// DefaultMaxSeries is how many programs have series of their own.
const DefaultMaxSeries = 1000

// Names that stand for what has none, and for what exceeds the limit.
const (
	unknown = "unknown"
	other   = "other"
)

// maxGPU bounds the indices of GPUs: a recording can hold any.
const maxGPU = 64

// Bounds of a label's value, in bytes.
const (
	maxProcessLabel = 64
	maxUnitLabel    = 128
)

// forgetAfter is for how long a program that is gone keeps its series.
const forgetAfter = sched.Time(30 * 60 * 1e9)

// program names a series: what runs in a unit on a GPU. Handles, pids and TSG
// numbers are left out, as they never end.
type program struct {
	gpu           int
	process, unit string
}

// sums are a program's.
type sums struct {
	turns     uint64
	competed  int64
	residency sched.HistTotals
	wait      sched.HistTotals
	last      sched.Time // something of it lived
}

func (s *sums) add(d *sums) {
	s.turns += d.turns
	s.competed += d.competed
	addHist(&s.residency, &d.residency)
	addHist(&s.wait, &d.wait)
}

func addHist(to, d *sched.HistTotals) {
	to.N += d.N
	to.Sum += d.Sum
	for i := range d.Counts {
		to.Counts[i] += d.Counts[i]
	}
}

// told is what was last taken over of a row.
type told struct {
	sums
	round uint64
}

// ledger turns the totals of rows, which come and go, into sums of programs.
type ledger struct {
	limit    int
	programs map[program]*sums
	named    int              // programs that are not others
	rows     map[uint64]*told // by generation
	round    uint64
	folded   uint64 // TSGs whose numbers went to others'
	gpus     map[int]sched.GPUTotals
	base     map[int]sched.GPUTotals // before the state began anew
}

func newLedger(limit int) *ledger {
	return &ledger{limit: limit, programs: map[program]*sums{}, rows: map[uint64]*told{},
		gpus: map[int]sched.GPUTotals{}, base: map[int]sched.GPUTotals{}}
}

// reset: the state begins anew, and with it the totals and generations.
func (l *ledger) reset() {
	clear(l.rows)
	for i, g := range l.gpus {
		b := l.base[i]
		l.base[i] = addGPU(b, g)
	}
	clear(l.gpus)
}

func addGPU(a, b sched.GPUTotals) sched.GPUTotals {
	return sched.GPUTotals{GPU: b.GPU, Traced: a.Traced || b.Traced, Switches: a.Switches + b.Switches,
		Competed: a.Competed + b.Competed, Switched: a.Switched + b.Switched, Xids: a.Xids + b.Xids}
}

// gpu gives a GPU's sums.
func (l *ledger) gpu(i int) sched.GPUTotals { return addGPU(l.base[i], l.gpus[i]) }

// take takes over what is new in the totals.
func (l *ledger) take(t *sched.Totals) {
	l.round++
	l.forget(t.Time)
	for _, g := range t.GPUs {
		l.gpus[g.GPU] = g
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		now := sums{turns: r.Turns, competed: r.Competed, residency: r.Residency, wait: r.Wait}
		last, met := l.rows[r.Gen]
		if !met {
			last = &told{}
			l.rows[r.Gen] = last
		}
		for _, gen := range r.Merged { // their numbers are in this row's now
			if m := l.rows[gen]; m != nil {
				last.add(&m.sums)
				delete(l.rows, gen)
			}
		}
		last.round = l.round
		d := difference(&now, &last.sums)
		if r.Ended && d.turns == 0 && d.residency.N == 0 && d.wait.N == 0 && d.competed == 0 {
			continue // it has been counted, and is only still remembered
		}
		p, folded := l.program(r, t.Time)
		if folded && !met {
			l.folded++
		}
		if !r.Ended {
			p.last = t.Time
		}
		p.add(&d)
		last.add(&d)
	}
	for gen, r := range l.rows {
		if r.round != l.round {
			delete(l.rows, gen)
		}
	}
}

// forget drops programs that are gone for long.
func (l *ledger) forget(now sched.Time) {
	for k, p := range l.programs {
		if k != others(k) && now-p.last > forgetAfter {
			delete(l.programs, k)
			l.named--
		}
	}
}

// difference is what is new; never less than nothing.
func difference(now, last *sums) sums {
	var d sums
	if now.turns > last.turns {
		d.turns = now.turns - last.turns
	}
	if now.competed > last.competed {
		d.competed = now.competed - last.competed
	}
	d.residency, d.wait = histDifference(&now.residency, &last.residency), histDifference(&now.wait, &last.wait)
	return d
}

func histDifference(now, last *sched.HistTotals) sched.HistTotals {
	var d sched.HistTotals
	if now.N <= last.N {
		return d
	}
	d.N, d.Sum = now.N-last.N, max(0, now.Sum-last.Sum)
	for i := range now.Counts {
		if now.Counts[i] > last.Counts[i] {
			d.Counts[i] = now.Counts[i] - last.Counts[i]
		}
	}
	return d
}

// program finds the sums of a row's program, or, folded, those of all others
// where there are too many.
func (l *ledger) program(r *sched.RowTotals, now sched.Time) (p *sums, folded bool) {
	k := programOf(&r.View)
	if p := l.programs[k]; p != nil {
		return p, false
	}
	if l.named >= l.limit && k != others(k) {
		k, folded = others(k), true
		if p := l.programs[k]; p != nil {
			return p, folded
		}
	}
	if k != others(k) {
		l.named++
	}
	p = &sums{last: now}
	l.programs[k] = p
	return p, folded
}

func others(k program) program { return program{gpu: k.gpu, process: other, unit: other} }

// series is the program under whose name a row is shown.
func (l *ledger) series(v *sched.TSGView) program {
	if k := programOf(v); l.programs[k] != nil {
		return k
	}
	return others(programOf(v))
}

func programOf(v *sched.TSGView) program {
	gpu := v.ID.GPU
	if gpu < 0 || gpu >= maxGPU {
		gpu = sched.Unknown
	}
	return program{gpu: gpu, process: label(v.Process.Name(), maxProcessLabel), unit: label(v.Process.Unit, maxUnitLabel)}
}

// label makes a text fit for a label: printable UTF-8, short, and never empty.
func label(s string, n int) string {
	if s = text.Bound(text.Clean(s), n); s == "" {
		return unknown
	}
	return s
}
