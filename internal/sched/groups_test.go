package sched

import (
	"math"
	"slices"
	"strconv"
	"testing"
)

// A group's numbers against a computation from the turns themselves: three
// processes of two users, each with turns of its own lengths.
func TestGroupsAgainstTheirTurns(t *testing.T) {
	s := NewState(Options{})
	feed(s, h200(), Process{Time: t0, PID: 1, User: "a"}, Process{Time: t0, PID: 2, User: "b"}, Process{Time: t0, PID: 3, User: "a"})
	context := map[int]uint32{1: 0x11, 2: 0x22, 3: 0x33}
	for pid := 1; pid <= 3; pid++ {
		feed(s, cudaProcess(t0, pid, Handle(0xc1d00000+pid), uint32(pid), context[pid])...)
	}
	lengths := map[int][]float64{}
	offs := map[int][]float64{}
	last := map[int]Time{}
	at := second
	const n = 6000
	var batch []rec
	for i := range n {
		pid := i%3 + 1
		l := Time(100+(i*i*7919)%(pid*1700)) * us
		batch = append(batch, rec{TagStart, context[pid], at, 0}, rec{TagEnd, context[pid], at + l, 0})
		if last[pid] > 0 {
			offs[pid] = append(offs[pid], float64(at-last[pid])/1e3)
		}
		last[pid] = at + l
		lengths[pid] = append(lengths[pid], float64(l)/1e3)
		at += l + 80*us
	}
	feed(s, traceOf(0, at, batch...))
	snap := s.Snapshot(SnapshotOptions{GroupTag: "user", Group: func(v *TSGView) (string, bool) {
		return v.Process.User, v.Process.PID != 0
	}})
	if snap.GroupTag != "user" || len(snap.Groups) != 2 {
		t.Fatalf("%q: %d groups, want a and b", snap.GroupTag, len(snap.Groups))
	}
	for i := range snap.Groups {
		g := &snap.Groups[i]
		var pids []int
		switch g.Key {
		case "a":
			pids = []int{1, 3}
		case "b":
			pids = []int{2}
		}
		if g.TSGs != len(pids) {
			t.Fatalf("group %q of %d TSGs", g.Key, g.TSGs)
		}
		sc := &g.Score[WindowAll]
		var res, off []float64
		var share, turns float64
		for _, pid := range pids {
			one := &rowByPID(t, snap, pid).Score[WindowAll]
			res, off = append(res, lengths[pid]...), append(off, offs[pid]...)
			share += *one.Share
			turns += *one.TurnsPerS
		}
		// The first turn of all has nothing before it that it competed with, and
		// what was on at the beginning is not known: a handful may be left out.
		compareStats(t, g.Key+" residency", sc.Residency, res, 3)
		compareStats(t, g.Key+" off", sc.Off, off, 3)
		if math.Abs(*sc.Share-share) > 1e-9 || math.Abs(*sc.TurnsPerS-turns) > 1e-9 {
			t.Errorf("%s: share %g, turns/s %g, want the sums %g, %g", g.Key, *sc.Share, *sc.TurnsPerS, share, turns)
		}
		if sc.SwitchesWhy != whyNeverRead {
			t.Errorf("%s: switches %v %q", g.Key, sc.Switches, sc.SwitchesWhy)
		}
	}
	// A group of one has that one's numbers, in every window.
	one := s.Snapshot(SnapshotOptions{Group: func(v *TSGView) (string, bool) { return strconv.Itoa(v.Process.PID), true }})
	for i := range one.Groups {
		g := &one.Groups[i]
		pid, _ := strconv.Atoi(g.Key)
		row := rowByPID(t, one, pid)
		for w := range NumWindows {
			for _, p := range [][2]*Stats{{g.Score[w].Residency, row.Score[w].Residency}, {g.Score[w].Wait, row.Score[w].Wait}, {g.Score[w].Off, row.Score[w].Off}} {
				if (p[0] == nil) != (p[1] == nil) || p[0] != nil && *p[0] != *p[1] {
					t.Errorf("pid %d, window %v: group %+v, row %+v", pid, w, p[0], p[1])
				}
			}
		}
	}
	if s.Snapshot(SnapshotOptions{}).Groups != nil {
		t.Error("groups that nobody asked for")
	}
}

// compareStats holds a summary against its values, of which a few may not have
// been counted.
func compareStats(t *testing.T, what string, got *Stats, values []float64, few int) {
	t.Helper()
	if got == nil || int(got.N) > len(values) || int(got.N) < len(values)-few {
		t.Errorf("%s: %+v, want about %d values", what, got, len(values))
		return
	}
	slices.Sort(values)
	for _, q := range []struct{ q, got float64 }{{.50, got.P50}, {.95, got.P95}, {.99, got.P99}} {
		// A value more or less moves the rank by one.
		k := int(math.Ceil(q.q*float64(len(values)))) - 1
		lo, hi := values[max(0, k-few)], values[min(len(values)-1, k+few)]
		if q.got < lo*0.999 || q.got > hi*1.001 {
			t.Errorf("%s p%g: %g, want %g to %g", what, q.q*100, q.got, lo, hi)
		}
	}
	var sum, squares float64
	for _, v := range values {
		sum += v
	}
	mean := sum / float64(len(values))
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	sd := math.Sqrt(squares / float64(len(values)-1))
	if math.Abs(got.Mean-mean) > mean*0.003 || math.Abs(got.StdDev-sd) > sd*0.003 || got.Max != values[len(values)-1] || got.Min < values[0] {
		t.Errorf("%s: %+v, want mean %g, deviation %g, %g to %g", what, got, mean, sd, values[0], values[len(values)-1])
	}
}

// The switches of a group are a sum, and not known where one of its TSGs' are not.
func TestSwitchesOfGroups(t *testing.T) {
	s := NewState(Options{})
	feed(s, h200())
	feed(s, cudaProcess(t0, 1, 0xc1d00001, 1, 0x11)...)
	feed(s, cudaProcess(t0, 2, 0xc1d00002, 2, 0x22)...)
	feed(s, Inventory{Start: t0 + ms, End: t0 + 2*ms, Clients: []FoundClient{{Client: 0xc1d00003, PID: 3, GPU: 0}},
		TSGs: []FoundTSG{{Object: Object{0xc1d00003, 0x5c000030}, GPU: 0, Runlist: 1, Engine: Ptr(uint32(9)), PID: 3}}})
	all := SnapshotOptions{Group: func(*TSGView) (string, bool) { return "all", true }}
	read := func(client Handle, n uint32) {
		feed(s, SwitchCounters{Time: t0 + Time(n)*second, TSG: Object{client, hTSG}, Save: 10 * n, CILP: 7 * n, WFI: 3 * n})
	}
	read(0xc1d00001, 1)
	read(0xc1d00001, 2)
	if sc := s.Snapshot(all).Groups[0].Score[WindowAll]; sc.Switches != nil || sc.SwitchesWhy != whyNeverRead {
		t.Errorf("one of two read: %+v %q", sc.Switches, sc.SwitchesWhy)
	}
	read(0xc1d00002, 1)
	read(0xc1d00002, 3)
	if sc := s.Snapshot(all).Groups[0].Score[WindowAll]; sc.Switches == nil || *sc.Switches != (Switches{7 + 14, 3 + 6, 2}) {
		t.Errorf("both read: %+v %q", sc.Switches, sc.SwitchesWhy)
	}
	copies := SnapshotOptions{Group: func(v *TSGView) (string, bool) { return "copies", v.Process.PID == 3 }}
	if sc := s.Snapshot(copies).Groups[0].Score[WindowAll]; sc.Switches != nil || sc.SwitchesWhy != whyCopySwitches {
		t.Errorf("copy engines alone: %+v %q", sc.Switches, sc.SwitchesWhy)
	}
}
