package sched

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tsgtop/internal/rm"
)

// twoTSGs is a state with two processes whose TSGs have contexts 1 and 2 and
// a timeslice of 2048 us, on a described GPU.
func twoTSGs() *State {
	s := NewState(Options{})
	s.Apply(h200())
	feed(s, cudaProcess(t0-second, 479, 0xc1d00001, 1, 1)...)
	feed(s, cudaProcess(t0-second, 480, 0xc1d00002, 2, 2)...)
	return s
}

// words writes turns as "1:100-300 timeslice" with times in us after t0.
func words(turns []Turn) string {
	names := map[EndedBy]string{EndUnknown: "unknown", EndTimeslice: "timeslice", EndVoluntary: "voluntary", EndPreempt: "preempt", EndOpen: "open"}
	var out []string
	for _, t := range turns {
		w := fmt.Sprintf("%x:%d-%d %s", t.Context, (t.Start-t0)/us, (t.End-t0)/us, names[t.EndedBy])
		if !t.Clean {
			w += "!"
		}
		out = append(out, w)
	}
	return strings.Join(out, ", ")
}

func drawn(s *State) string {
	l := s.Snapshot(SnapshotOptions{LaneSpan: 1e9 * 5}).Lanes
	if len(l) == 0 {
		return ""
	}
	return words(l[0].Turns)
}

// full is a turn as long as its timeslice lets it be when another waits.
const full = 2150 * us

func TestTurns(t *testing.T) {
	long := 3 * full
	for _, c := range []struct {
		name   string
		batch  []TraceBatch
		turns  string
		n      [2]uint64 // residency values of contexts 1 and 2
		waits  [2]uint64
		offs   [2]uint64
		counts [2]uint64
		gaps   int
	}{
		{
			name: "two that use up their timeslices",
			batch: []TraceBatch{traceOf(0, 10*ms,
				rec{6, 1, 0, 0}, rec{7, 1, full, 0}, rec{6, 2, full + 80*us, 0}, rec{7, 2, 2*full + 80*us, 0},
				rec{6, 1, 2*full + 160*us, 0}, rec{7, 1, 3*full + 160*us, 0}, rec{6, 2, 3*full + 240*us, 0})},
			// Before the first turn nobody is known to have competed: what ended it is not known.
			turns: "1:0-2150 unknown, 2:2230-4380 timeslice, 1:4460-6610 timeslice, 2:6690-10000 open",
			n:     [2]uint64{1, 1}, waits: [2]uint64{0, 1}, offs: [2]uint64{1, 1}, counts: [2]uint64{2, 1},
		},
		{
			name: "one that has no more work is off, it does not wait",
			batch: []TraceBatch{traceOf(0, 10*ms,
				rec{6, 1, 0, 0}, rec{7, 1, full, 0}, rec{6, 2, full + 80*us, 0}, rec{7, 2, full + 480*us, 0},
				rec{6, 1, full + 560*us, 0}, rec{7, 1, 2*full + 560*us, 0}, rec{6, 2, 2*full + 640*us, 0})},
			turns: "1:0-2150 unknown, 2:2230-2630 voluntary, 1:2710-4860 timeslice, 2:4940-10000 open",
			n:     [2]uint64{1, 1}, waits: [2]uint64{0, 0}, offs: [2]uint64{1, 1}, counts: [2]uint64{2, 1},
		},
		{
			name:  "one alone makes no records after its first",
			batch: []TraceBatch{traceOf(0, 10*ms, rec{6, 1, 0, 0}), traceOf(0, 5*second)},
			turns: "1:0-5000000 open",
		},
		{
			name: "the first turn after the start of the trace began before it",
			batch: []TraceBatch{traceOf(0, 1*ms),
				traceOf(0, 10*ms, rec{7, 1, 2 * ms, 0}, rec{6, 2, 2*ms + 80*us, 0}, rec{7, 2, 3 * ms, 0}, rec{6, 1, 3*ms + 80*us, 0})},
			turns: "1:1000-2000 unknown!, 2:2080-3000 voluntary, 1:3080-10000 open",
			n:     [2]uint64{0, 1}, offs: [2]uint64{1, 0}, counts: [2]uint64{1, 1},
		},
		{
			name: "the end of a dying context is missing, with no gap",
			batch: []TraceBatch{traceOf(0, 20*ms,
				rec{6, 1, 0, 0}, rec{7, 1, full, 0}, rec{6, 2, full + 80*us, 0},
				rec{6, 1, 5 * ms, 0}, rec{7, 1, 6 * ms, 0}, rec{6, 3, 6*ms + 80*us, 0})},
			turns: "1:0-2150 unknown, 2:2230-5000 unknown!, 1:5000-6000 voluntary, 3:6080-20000 open",
			n:     [2]uint64{1, 0}, offs: [2]uint64{1, 0}, counts: [2]uint64{2, 1},
		},
		{
			name: "a gap inside a turn",
			batch: []TraceBatch{traceOf(0, 20*ms,
				rec{6, 1, 0, 0}, rec{7, 1, full, 0}, rec{6, 2, full + 80*us, 0}, rec{7, 2, 2*full + 80*us, 3},
				rec{6, 1, 2*full + 160*us, 0}, rec{7, 1, 3*full + 160*us, 0}, rec{6, 2, 3*full + 240*us, 0})},
			turns: "1:0-2150 unknown, 2:2230-4380 unknown!, 1:4460-6610 timeslice, 2:6690-20000 open",
			// 1 left before the gap: how long it was off is not known. 2 left at it.
			n: [2]uint64{1, 0}, offs: [2]uint64{0, 1}, counts: [2]uint64{2, 1}, gaps: 1,
		},
		{
			name: "a gap between two turns",
			batch: []TraceBatch{traceOf(0, 20*ms,
				rec{6, 1, 0, 0}, rec{7, 1, full, 0}, rec{6, 2, full + 80*us, 0}, rec{7, 2, 2*full + 80*us, 0},
				rec{6, 1, 9 * ms, 7}, rec{7, 1, 9*ms + full, 0}, rec{6, 2, 9*ms + full + 80*us, 0})},
			turns: "1:0-2150 unknown, 2:2230-4380 unknown, 1:9000-11150 timeslice, 2:11230-20000 open",
			n:     [2]uint64{1, 1}, offs: [2]uint64{0, 0}, counts: [2]uint64{2, 1}, gaps: 1,
		},
		{
			name: "an end of another context than the running one",
			batch: []TraceBatch{traceOf(0, 20*ms,
				rec{6, 1, 0, 0}, rec{7, 2, full, 0}, rec{6, 1, full + 80*us, 0}, rec{7, 1, 2 * full, 0})},
			turns: "1:0-2150 unknown!, 1:2230-4300 unknown",
			n:     [2]uint64{1, 0}, counts: [2]uint64{2, 1}, gaps: 1,
		},
		{
			name: "nobody for long: the engine was empty, that is no switch",
			batch: []TraceBatch{traceOf(0, 1*second,
				rec{6, 1, 0, 0}, rec{7, 1, full, 0}, rec{6, 2, full + 80*us, 0}, rec{7, 2, 2*full + 80*us, 0},
				rec{6, 1, 50 * ms, 0}, rec{7, 1, 50*ms + full, 0})},
			turns: "1:0-2150 unknown, 2:2230-4380 unknown, 1:50000-52150 unknown",
			n:     [2]uint64{1, 1}, offs: [2]uint64{1, 0}, counts: [2]uint64{2, 1},
		},
		{
			name: "alone for long, then another comes: that was no competition",
			batch: []TraceBatch{traceOf(0, 20*second,
				rec{6, 1, 0, 0}, rec{7, 1, full, 0}, rec{6, 2, full + 80*us, 0}, rec{7, 2, 2*full + 80*us, 0},
				rec{6, 1, 2*full + 160*us, 0}, rec{7, 1, 10 * second, 0}, rec{6, 2, 10*second + 80*us, 0}, rec{7, 2, 10*second + full, 0})},
			turns: "1:2000000-10000000 unknown", // only its end is compared below
			n:     [2]uint64{0, 2}, offs: [2]uint64{1, 1}, waits: [2]uint64{0, 1}, counts: [2]uint64{2, 2},
		},
		{
			name: "the records jump back",
			batch: []TraceBatch{traceOf(0, 20*ms,
				rec{6, 1, 10 * ms, 0}, rec{7, 1, 5 * ms, 0}, rec{6, 2, 6 * ms, 0}, rec{7, 2, 7 * ms, 0})},
			turns: "1:10000-5000 unknown!, 2:6000-7000 voluntary",
			n:     [2]uint64{0, 1}, counts: [2]uint64{1, 1}, gaps: 1,
		},
		{
			name: "one that comes back after itself",
			batch: []TraceBatch{traceOf(0, 20*ms,
				rec{6, 1, 0, 0}, rec{7, 1, full, 0}, rec{6, 2, full + 80*us, 0}, rec{7, 2, 2*full + 80*us, 0},
				rec{6, 1, 2*full + 160*us, 0}, rec{7, 1, 2*full + 160*us + long, 0}, rec{6, 1, 2*full + 240*us + long, 0}, rec{7, 1, 2*full + 340*us + long, 0})},
			turns: "1:0-2150 unknown, 2:2230-4380 timeslice, 1:4460-10910 unknown, 1:10990-11090 voluntary",
			n:     [2]uint64{3 - 1, 1}, offs: [2]uint64{2, 0}, counts: [2]uint64{3, 1},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := twoTSGs()
			for _, b := range c.batch {
				s.Apply(b)
			}
			got := drawn(s)
			if strings.HasPrefix(c.name, "alone for long") {
				if turn := s.Turns(1, 0, maxTime); len(turn) != 2 || turn[1].EndedBy != EndUnknown {
					t.Errorf("turns %s", words(turn))
				}
			} else if got != c.turns {
				t.Errorf("turns:\n%s\nwant:\n%s", got, c.turns)
			}
			snap := s.Snapshot(SnapshotOptions{LaneSpan: 20e9})
			if len(snap.Lanes[0].Gaps) != c.gaps {
				t.Errorf("%d gaps drawn, want %d", len(snap.Lanes[0].Gaps), c.gaps)
			}
			n := func(s *Stats) uint64 {
				if s == nil {
					return 0
				}
				return s.N
			}
			for i, pid := range []int{479, 480} {
				sc := rowByPID(t, snap, pid).Score[WindowAll]
				if n(sc.Residency) != c.n[i] || n(sc.Wait) != c.waits[i] || n(sc.Off) != c.offs[i] || sc.Turns != c.counts[i] {
					t.Errorf("context %d: %d residencies, %d waits, %d times off, %d turns; want %d, %d, %d, %d", i+1,
						n(sc.Residency), n(sc.Wait), n(sc.Off), sc.Turns, c.n[i], c.waits[i], c.offs[i], c.counts[i])
				}
			}
		})
	}
}

// A preempt that was in flight when a turn ended cut it, whether its record
// comes before or after the trace's. The time off after it is a wait.
func TestPreemptedTurns(t *testing.T) {
	call := control(t0+5*ms+300*us, 900, 0xc1d00001, hTSG, rm.CtrlTSGPreempt, &Params{Wait: Ptr(false)})
	call.Start = t0 + 5*ms
	before := []rec{{6, 1, 0, 0}, {7, 1, full, 0}, {6, 2, full + 80*us, 0}, {7, 2, 2*full + 80*us, 0}, {6, 1, 2*full + 160*us, 0}}
	cut := []rec{{7, 1, 5*ms + 410*us, 0}, {6, 2, 5*ms + 490*us, 0}, {7, 2, 7*ms + 700*us, 0}}
	back := []rec{{6, 1, 7*ms + 780*us, 0}}
	trace := func(recs ...[]rec) TraceBatch {
		all := slices.Concat(recs...)
		return traceOf(0, all[len(all)-1].at+us, all...)
	}
	for name, order := range map[string][]Event{
		"call first":             {trace(before), call, trace(cut), trace(back)},
		"call right after":       {trace(before), trace(cut), call, trace(back)},
		"call after it was back": {trace(before), trace(cut, back), call},
	} {
		s := twoTSGs()
		facts := feed(s, order...)
		turns := s.Turns(1, 0, maxTime)
		if len(turns) != 3 || turns[1].EndedBy != EndPreempt {
			t.Errorf("%s: turns %s", name, words(turns))
		}
		if w := rowByPID(t, s.Snapshot(SnapshotOptions{}), 479).Score[WindowAll].Wait; w == nil || w.N != 1 || w.Max != 2370 {
			t.Errorf("%s: wait %+v, want one of 2370 us", name, w)
		}
		if len(facts) != 1 || facts[0].Kind != TSGPreempted || facts[0].Gen != 1 || facts[0].PID != 900 {
			t.Errorf("%s: facts %+v", name, facts)
		}
	}
	// One that failed, or came long before, or was for the other, did not cut it.
	failed, early, others := call, call, call
	failed.Status = 0x56
	early.Start, early.End = t0+4*ms, t0+4*ms+300*us
	others.Client = 0xc1d00002
	for name, c := range map[string]Call{"failed": failed, "early": early, "other's": others} {
		s := twoTSGs()
		feed(s, trace(before), c, trace(cut, back))
		if turns := s.Turns(1, 0, maxTime); turns[1].EndedBy != EndVoluntary {
			t.Errorf("%s: turns %s", name, words(turns))
		}
	}
}

// What ended a turn is judged by the timeslice that was in force.
func TestTimesliceChangesUnderTheTurns(t *testing.T) {
	set := func(at Time, us_ uint64) Call {
		return control(t0+at, 900, 0xc1d00001, hTSG, rm.CtrlTSGSetTimeslice, &Params{Timeslice: Ptr(us_)})
	}
	recs := []rec{
		{6, 2, 0, 0}, {7, 2, full, 0},
		{6, 1, 3 * ms, 0}, {7, 1, 3*ms + 300*us, 0}, {6, 2, 3*ms + 380*us, 0}, {7, 2, 5 * ms, 0}, // short under 2048
		{6, 1, 5*ms + 80*us, 0}, {7, 1, 5*ms + 380*us, 0}, {6, 2, 5*ms + 460*us, 0}, {7, 2, 7 * ms, 0}, // over 200 us
		{6, 1, 7*ms + 80*us, 0}, {7, 1, 7*ms + 1080*us, 0}, {6, 2, 7*ms + 1160*us, 0}, {7, 2, 9 * ms, 0}, // changed in it
	}
	for _, late := range []bool{false, true} {
		s := twoTSGs()
		calls := []Event{set(4*ms, 200), set(7*ms+500*us, 2048)}
		if late { // the trace is settled by what is known when it comes
			feed(s, calls...)
			s.Apply(traceOf(0, 9*ms, recs...))
		} else {
			s.Apply(traceOf(0, 4*ms, recs[:5]...))
			s.Apply(calls[0])
			s.Apply(traceOf(0, 7*ms, recs[5:11]...))
			s.Apply(calls[1])
			s.Apply(traceOf(0, 9*ms, recs[11:]...))
		}
		got := words(s.Turns(1, 0, maxTime))
		if want := "1:3000-3300 voluntary, 1:5080-5380 timeslice, 1:7080-8080 unknown"; got != want {
			t.Errorf("late %t:\n%s\nwant:\n%s", late, got, want)
		}
	}
}

// Shares and the switch tax add up to the whole competed time, and a longer
// timeslice than 100 ms does not hide the others that wait.
func TestSharesAddUp(t *testing.T) {
	for _, slice := range []Time{200 * us, 2 * ms, 300 * ms} {
		s := twoTSGs()
		for _, c := range []Handle{0xc1d00001, 0xc1d00002} {
			s.Apply(control(t0-ms, 1, c, hTSG, rm.CtrlTSGSetTimeslice, &Params{Timeslice: Ptr(uint64(slice / us))}))
		}
		recs, end := alternate(0, 41, 1, 2, slice+100*us, 2*(slice+100*us))
		s.Apply(traceOf(0, end, recs...))
		snap := s.Snapshot(SnapshotOptions{})
		a, b := *rowByPID(t, snap, 479).Score[WindowAll].Share, *rowByPID(t, snap, 480).Score[WindowAll].Share
		tax := *snap.GPUs[0].SwitchTax[WindowAll]
		if sum := a + b + tax; sum < 1-1e-9 || sum > 1+1e-9 {
			t.Errorf("timeslice %v: shares %v and %v and tax %v make %v", slice.Sub(0), a, b, tax, sum)
		}
		if b < 1.99*a || b > 2.01*a {
			t.Errorf("timeslice %v: shares %v and %v, want one twice the other", slice.Sub(0), a, b)
		}
	}
}

// The trace is let go and taken again: what happened between is not known.
func TestTraceInterrupted(t *testing.T) {
	s := twoTSGs()
	s.Apply(ProbeStatus{Time: t0, Probe: "ctxsw", GPU: 0, State: ProbeOK})
	recs, end := alternate(0, 101, 1, 2, full, full)
	s.Apply(traceOf(0, end, append(recs, rec{6, 2, end, 0})...))
	s.Apply(ProbeStatus{Time: t0 + end, Probe: "ctxsw", GPU: 0, State: ProbeReleased, Why: "let go on request"})
	v := rowByPID(t, s.Snapshot(SnapshotOptions{}), 479)
	if v.Score[Window1s].Residency != nil || v.WhyNull != "no trace of GPU0: let go on request" || v.Resident {
		t.Errorf("released: %+v", v)
	}
	s.Apply(ProbeStatus{Time: t0 + second, Probe: "ctxsw", GPU: 0, State: ProbeOK})
	s.Apply(traceOf(0, second))
	more, end2 := alternate(second, 400, 2, 1, full, full)
	s.Apply(traceOf(0, end2, more...))
	snap := s.Snapshot(SnapshotOptions{LaneSpan: 10e9})
	if off := rowByPID(t, snap, 479).Score[WindowAll].Off; off.Max > 3000 {
		t.Errorf("a time off was counted over the time without a trace: %+v", off)
	}
	for w, want := range [NumWindows]float64{224, 224, 224} { // a turn each 4.46 ms of what was read
		if got := *rowByPID(t, snap, 479).Score[w].TurnsPerS; got < want*0.95 || got > want*1.05 {
			t.Errorf("window %v: %v turns/s, want %v", Window(w), got, want)
		}
	}
	for _, turn := range snap.Lanes[0].Turns {
		if turn.Start < t0+end && turn.End > t0+second {
			t.Errorf("a turn reaches over the time without a trace: %s", words([]Turn{turn}))
		}
	}
}

// With MIG each graphics engine has its own timeline.
func TestEnginesApart(t *testing.T) {
	s := NewState(Options{})
	b := TraceBatch{Time: t0 + 20*ms}
	for i := range 10 {
		at := t0 + Time(i)*ms
		b.Records = append(b.Records,
			TraceRecord{Time: at, Context: uint32(i%2 + 1), Tag: 6, GI: 1}, TraceRecord{Time: at, Context: 7, Tag: 6, GI: 2},
			TraceRecord{Time: at + 900*us, Context: uint32(i%2 + 1), Tag: 7, GI: 1}, TraceRecord{Time: at + 950*us, Context: 7, Tag: 7, GI: 2})
	}
	s.Apply(b)
	snap := s.Snapshot(SnapshotOptions{LaneSpan: 1e9})
	if len(snap.Lanes) != 2 || len(snap.Lanes[0].Turns) != 10 || len(snap.Lanes[1].Turns) != 10 {
		t.Fatalf("%d lanes", len(snap.Lanes))
	}
	for _, v := range snap.TSGs {
		sc := v.Score[WindowAll]
		if ctx := *v.Channels[0].Context; ctx == 7 {
			if sc.Share != nil || sc.WhyNull != nothingCompeted[WindowAll] {
				t.Errorf("alone on its engine: share %v, %q", sc.Share, sc.WhyNull)
			}
		} else if sc.Share == nil || *sc.Share < 0.4 || *sc.Share > 0.5 {
			t.Errorf("context %d: share %v", ctx, sc.Share)
		}
	}
}
