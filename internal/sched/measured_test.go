package sched

import (
	"math"
	"testing"

	"tsgtop/internal/rm"
)

// The numbers were computed from the same files by another program: exact
// percentiles (nearest rank) of all turns but the first, before which nobody
// is known to have competed; shares of the time from the end of that turn to
// the end of the last.
func TestMeasuredTraces(t *testing.T) {
	want := []struct {
		trace             string
		context           uint32
		n                 uint64
		min, mean, stddev float64
		p50, p95, p99     float64
		max, share        float64
		timesliceEnded    int
	}{
		{"steady", 0x80, 488, 104.384, 1938.958, 691.331, 2198.784, 2206.016, 2209.504, 2210.208, 0.473693, 427},
		{"steady", 0x82, 488, 470.016, 1985.196, 564.001, 2196.896, 2205.408, 2207.232, 2208.448, 0.484989, 427},
		{"bursty", 0xb9, 217, 4112.032, 7967.651, 2323.461, 7833.28, 11565.6, 12186.4, 13190.4, 0.869833, 217},
		{"bursty", 0xba, 218, 1022.144, 1022.933, 0.265, 1022.944, 1023.296, 1023.584, 1023.872, 0.112189, 0},
		{"beating", 0xf3, 1430, 633.12, 633.809, 0.245, 633.856, 634.08, 634.176, 634.304, 0.453228, 0},
		{"beating", 0xf4, 1430, 107.776, 108.449, 0.211, 108.512, 108.64, 108.704, 108.864, 0.077551, 0},
		{"beating", 0xf8, 1431, 415.936, 416.601, 0.218, 416.672, 416.8, 416.896, 416.992, 0.298114, 0},
	}
	tax := map[string]float64{"steady": 0.041317734, "bursty": 0.017977999, "beating": 0.171106526}
	for _, w := range want {
		s := measuredState(t, w.trace)
		snap := s.Snapshot(SnapshotOptions{})
		var sc *Score
		var gen uint64
		for i := range snap.TSGs {
			if c := snap.TSGs[i].Channels[0].Context; c != nil && *c == w.context {
				sc, gen = &snap.TSGs[i].Score[WindowAll], snap.TSGs[i].Gen
			}
		}
		if sc == nil || sc.Residency == nil || sc.Share == nil {
			t.Fatalf("%s %x: no scorecard", w.trace, w.context)
		}
		r := sc.Residency
		near := func(name string, got, want, rel float64) {
			if math.Abs(got-want) > rel*want+1e-3 {
				t.Errorf("%s %x: %s = %v, want %v", w.trace, w.context, name, got, want)
			}
		}
		if r.N != w.n {
			t.Errorf("%s %x: %d turns, want %d", w.trace, w.context, r.N, w.n)
		}
		near("min", r.Min, w.min, 0)
		near("max", r.Max, w.max, 0)
		near("mean", r.Mean, w.mean, 1e-6)
		near("stddev", r.StdDev, w.stddev, 1e-3)
		near("p50", r.P50, w.p50, .001)
		near("p95", r.P95, w.p95, .001)
		near("p99", r.P99, w.p99, .001)
		near("share", *sc.Share, w.share, 1e-5)
		if len(snap.GPUs) != 1 || snap.GPUs[0].SwitchTax[WindowAll] == nil {
			t.Fatalf("%s: no switch tax", w.trace)
		}
		near("switch tax", *snap.GPUs[0].SwitchTax[WindowAll], tax[w.trace], 1e-5)
		n := 0
		for _, turn := range s.Turns(gen, 0, maxTime) {
			if turn.EndedBy == EndTimeslice {
				n++
			}
		}
		// The last turn of a trace has nothing after it that would settle it.
		if n < w.timesliceEnded-1 || n > w.timesliceEnded {
			t.Errorf("%s %x: %d turns ended by the timeslice, want %d", w.trace, w.context, n, w.timesliceEnded)
		}
	}
}

// measuredState is the state after a measured trace in which every context is
// known to be a TSG's with 2048 us.
func measuredState(t *testing.T, name string) *State {
	t.Helper()
	s := NewState(Options{})
	records := measured(t, name)
	seen := map[uint32]bool{}
	start := records[0].Time - second
	for _, r := range records {
		if !seen[r.Context] {
			seen[r.Context] = true
			client := Handle(0xc1d00000 + r.Context)
			feed(s, cudaProcess(start, int(r.PID)*1000+int(r.Context), client, r.Context, r.Context)...)
		}
	}
	for i := 0; i < len(records); i += 100 {
		part := records[i:min(i+100, len(records))]
		s.Apply(TraceBatch{Time: part[len(part)-1].Time, Records: part})
	}
	return s
}

// A wait follows only a turn that the timeslice ended. In the bursty trace the
// one with short kernels ends its turns itself: it is off, it does not wait.
func TestMeasuredWaits(t *testing.T) {
	s := measuredState(t, "bursty")
	snap := s.Snapshot(SnapshotOptions{})
	for i := range snap.TSGs {
		sc := &snap.TSGs[i].Score[WindowAll]
		switch *snap.TSGs[i].Channels[0].Context {
		case 0xb9:
			if sc.Wait == nil || sc.Wait.N < 215 || math.Abs(sc.Wait.P50-1190) > 10 { // 1023 us of the other and two switches
				t.Errorf("the long one: wait %+v, want about 217 of 1190 us", sc.Wait)
			}
		case 0xba:
			if sc.Wait != nil || sc.Off == nil || sc.Off.N != 217 || sc.WhyNull != whyNoneCut {
				t.Errorf("the short one: wait %v, off %+v, why %q", sc.Wait, sc.Off, sc.WhyNull)
			}
		}
	}
}

// The windows of 1 s and 10 s see the end of the trace, with their own numbers.
func TestMeasuredWindows(t *testing.T) {
	s := measuredState(t, "steady")
	snap := s.Snapshot(SnapshotOptions{})
	for i := range snap.TSGs {
		v := &snap.TSGs[i]
		one, ten := &v.Score[Window1s], &v.Score[Window10s]
		if one.Turns < 240 || one.Turns > 310 || ten.Turns < 487 {
			t.Errorf("turns in 1 s %d, in 10 s %d", one.Turns, ten.Turns)
		}
		if math.Abs(*one.TurnsPerS-244) > 3 || math.Abs(*ten.TurnsPerS-244) > 3 {
			t.Errorf("turns/s %v and %v, want 244", *one.TurnsPerS, *ten.TurnsPerS)
		}
		if math.Abs(one.Residency.P50-2198) > 11 {
			t.Errorf("p50 in 1 s %v", one.Residency.P50)
		}
	}
	if sw := snap.GPUs[0].SwitchesPerS; sw == nil || math.Abs(*sw-488) > 4 {
		t.Errorf("switches/s %v, want 488", sw)
	}
	if snap.GPUs[0].Competing != 2 {
		t.Errorf("%d compete, want 2", snap.GPUs[0].Competing)
	}
}

// Rows that were made from the trace alone keep their numbers when the stream
// or a scan tells whose the context is.
func TestMeasuredPromotion(t *testing.T) {
	records := measured(t, "steady")
	s := NewState(Options{})
	half := len(records) / 2
	s.Apply(TraceBatch{Time: records[half-1].Time, Records: records[:half]})
	snap := s.Snapshot(SnapshotOptions{})
	if len(snap.TSGs) != 2 || !snap.TSGs[0].Context || snap.TSGs[0].Process.PID != 536 || snap.Unattributed.Contexts != 2 {
		t.Fatalf("before: %d rows, %+v", len(snap.TSGs), snap.Unattributed)
	}
	for _, r := range snap.TSGs {
		if r.Score[WindowAll].Wait != nil || r.Score[WindowAll].WhyNull != whyNoSlice {
			t.Errorf("a context without a known timeslice waits: %v, %q", r.Score[WindowAll].Wait, r.Score[WindowAll].WhyNull)
		}
	}
	at := records[half-1].Time
	s.Apply(Inventory{Start: at, End: at + ms, Complete: true,
		Clients: []FoundClient{{Client: 0xc1d00001, PID: 536}, {Client: 0xc1d00002, PID: 537}},
		TSGs: []FoundTSG{
			{Object: Object{0xc1d00001, hTSG}, Device: hDevice, GPU: 0, Runlist: 0, Number: Ptr(uint32(7)), Contexts: []uint32{0x80}, Timeslice: Ptr(uint64(2048)), PID: 536},
		},
		Channels: []FoundChannel{{Object: Object{0xc1d00002, hChannel}, TSG: hTSG, Class: rm.ClassChannelHopper, Context: Ptr(uint32(0x82))}},
	})
	// The second comes by its channel first and its TSG after.
	s.Apply(Inventory{Start: at + ms, End: at + 2*ms,
		TSGs: []FoundTSG{{Object: Object{0xc1d00002, hTSG}, Device: hDevice, GPU: 0, Runlist: 0, Number: Ptr(uint32(6)), Timeslice: Ptr(uint64(2048)), PID: 537}},
	})
	for i := half; i < len(records); i += 64 {
		part := records[i:min(i+64, len(records))]
		s.Apply(TraceBatch{Time: part[len(part)-1].Time, Records: part})
	}
	snap = s.Snapshot(SnapshotOptions{})
	if len(snap.TSGs) != 2 || snap.Unattributed.Contexts != 0 {
		t.Fatalf("after: %d rows, %+v", len(snap.TSGs), snap.Unattributed)
	}
	for i, number := range []int{6, 7} {
		v := &snap.TSGs[i]
		if v.Context || v.ID != (TSGID{0, 0, number}) {
			t.Errorf("row %d: %v, context %t", i, v.ID, v.Context)
		}
		if r := v.Score[WindowAll].Residency; r == nil || r.N != 488 || math.Abs(r.P50-2198) > 11 {
			t.Errorf("row %d: residency %+v, want 488 turns", i, r)
		}
		if o := v.Score[WindowAll].Off; o == nil || o.N != 488 { // each has 489 starts
			t.Errorf("row %d: times off %+v, want 488", i, o)
		}
		if v.Score[WindowAll].Wait == nil {
			t.Errorf("row %d: no wait though its timeslice is known now", i)
		}
	}
}
