package sched

import (
	"math"
	"testing"
)

// Totals are the same numbers that the snapshot shows since the start.
func TestTotalsAgreeWithTheScorecard(t *testing.T) {
	for _, trace := range []string{"steady", "bursty", "beating"} {
		s := measuredState(t, trace)
		snap := s.Snapshot(SnapshotOptions{})
		tot := s.totals()
		if len(tot.GPUs) != 1 || !tot.GPUs[0].Traced {
			t.Fatalf("%s: %+v", trace, tot.GPUs)
		}
		g := tot.GPUs[0]
		if tax := float64(g.Switched) / float64(g.Competed); math.Abs(tax-*snap.GPUs[0].SwitchTax[WindowAll]) > 1e-12 {
			t.Errorf("%s: switch tax %v", trace, tax)
		}
		seen := 0
		for _, r := range tot.Rows {
			for i := range snap.TSGs {
				v := &snap.TSGs[i]
				if v.Gen != r.Gen {
					continue
				}
				seen++
				sc := &v.Score[WindowAll]
				if r.Turns != sc.Turns || sc.Share != nil && math.Abs(float64(r.Competed)/float64(g.Competed)-*sc.Share) > 1e-12 {
					t.Errorf("%s: row %d: %d turns, share %v", trace, r.Gen, r.Turns, float64(r.Competed)/float64(g.Competed))
				}
				for _, q := range []struct {
					h HistTotals
					s *Stats
				}{{r.Residency, sc.Residency}, {r.Wait, sc.Wait}} {
					var n, below uint64
					for i, c := range q.h.Counts {
						n += c
						if q.s != nil && i < len(TotalsBounds) && TotalsBounds[i]*1e6 <= q.s.P50 {
							below += c
						}
					}
					switch {
					case q.s == nil && n != 0, q.s != nil && (n != q.s.N || q.h.N != q.s.N):
						t.Errorf("%s: row %d: %d in the histogram", trace, r.Gen, n)
					case q.s != nil && math.Abs(q.h.Sum*1e6-q.s.Mean*float64(q.s.N)) > 1e-6*q.h.Sum*1e6:
						t.Errorf("%s: row %d: sum %v", trace, r.Gen, q.h.Sum)
					case q.s != nil && below > q.s.N/2+1:
						t.Errorf("%s: row %d: %d of %d below the median", trace, r.Gen, below, q.s.N)
					}
				}
			}
		}
		if seen < 2 {
			t.Errorf("%s: %d rows", trace, seen)
		}
	}
}

// What a context did before its TSG was known went into the TSG's numbers, and
// who keeps sums is told so.
func TestTotalsOfMergedRows(t *testing.T) {
	s := NewState(Options{})
	feed(s, h200(), traceOf(0, 20*ms, rec{TagStart, 0x3f, 10 * ms, 0}, rec{TagEnd, 0x3f, 12 * ms, 0}))
	before := s.totals()
	if len(before.Rows) != 1 || !before.Rows[0].View.Context || before.Rows[0].Turns != 1 {
		t.Fatalf("%+v", before.Rows)
	}
	feed(s, cudaProcess(t0+ms, 479, clientA, 4, 0x3f)...)
	after := s.totals()
	if len(after.Rows) != 1 || after.Rows[0].Turns != 1 || len(after.Rows[0].Merged) != 1 || after.Rows[0].Merged[0] != before.Rows[0].Gen {
		t.Errorf("%+v", after.Rows)
	}
	feed(s, Call{Start: t0 + 30*ms, End: t0 + 30*ms, Kind: CallClose, File: 4})
	ended := s.totals()
	if len(ended.Rows) != 1 || !ended.Rows[0].Ended || ended.Rows[0].View.Process.PID != 479 {
		t.Errorf("ended: %+v", ended.Rows)
	}
}
