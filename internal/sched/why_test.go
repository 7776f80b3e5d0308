package sched

import (
	"strings"
	"testing"
	"time"

	"tsgtop/internal/rm"
)

// Each null has its reason.
func TestWhyNull(t *testing.T) {
	ok := ProbeStatus{Time: t0, Probe: "ctxsw", GPU: 0, State: ProbeOK}
	tsgOn := func(engine uint32) []Event {
		return []Event{
			allocClient(t0, 479, clientA, 1),
			alloc(t0, 479, clientA, clientA, hDevice, rm.ClassDevice, &Params{DeviceInstance: Ptr(uint32(0))}),
			alloc(t0, 479, clientA, hDevice, hTSG, rm.ClassTSG, &Params{Engine: &engine}),
			alloc(t0, 479, clientA, hTSG, hChannel, rm.ClassChannelHopper, &Params{Context: Ptr(uint32(1))}),
		}
	}
	mig := h200()
	mig.MIG = Ptr(true)
	recs, end := alternate(0, 20, 1, 2, 2*full, full)
	for _, c := range []struct {
		name   string
		events []Event
		window Window
		want   string
	}{
		{"a copy engine", append(tsgOn(9), h200(), ok, traceOf(0, ms)), Window1s, "copy engine ce0: no trace, only the graphics engine has one"},
		{"an engine that is known by its runlist only", []Event{h200(), control(t0, 479, clientA, hTSG, rm.CtrlTSGPreempt, nil),
			Inventory{Start: t0, End: t0, TSGs: []FoundTSG{{Object: Object{clientA, hTSG}, GPU: 0, Runlist: 3}}}}, Window1s, "this engine: no trace, only the graphics engine has one"},
		{"its GPU is not known", tsgOn(1), Window1s, whyNoGPU},
		{"nobody reads the trace", append(tsgOn(1), h200()), Window1s, "no trace of GPU0"},
		{"MIG", append(tsgOn(1), mig), Window1s, whyMIG},
		{"the probe says why", append(tsgOn(1), h200(), ProbeStatus{Probe: "ctxsw", GPU: 0, State: ProbeMissing, Why: "not with MIG"}), Window1s, "no trace of GPU0: not with MIG"},
		{"the probe for all GPUs says why", append(tsgOn(1), h200(), ProbeStatus{Probe: "ctxsw", GPU: Unknown, State: ProbeMissing, Why: "not root"}), Window1s, "no trace of GPU0: not root"},
		{"the probe works, nothing read yet", append(tsgOn(1), h200(), ok), Window1s, "no trace of GPU0 read yet"},
		{"no record at all", append(tsgOn(1), h200(), ok, traceOf(0, ms)), Window1s, whyNoSwitch},
		{"no turn", append(tsgOn(1), h200(), ok, traceOf(0, ms, rec{6, 2, 0, 0}, rec{7, 2, 500 * us, 0})), Window1s, whyNoTurn},
		{"alone", append(tsgOn(1), h200(), ok, traceOf(0, ms, rec{6, 1, 0, 0}), traceOf(0, 5*second)), Window1s, whyAlone},
		{"competed, but not lately", append(tsgOn(1), h200(), ok, traceOf(0, end, recs...), traceOf(0, 3*second)), Window1s, nothingCompeted[Window1s]},
		{"the trace stands still", append(tsgOn(1), h200(), ok, traceOf(0, end, recs...), ClockTie{Time: t0 + 3*second}), Window1s, nothingCompeted[Window1s]},
		{"competed, but not in 10 s", append(tsgOn(1), h200(), ok, traceOf(0, end, recs...), traceOf(0, 30*second)), Window10s, nothingCompeted[Window10s]},
		{"competed since the start", append(tsgOn(1), h200(), ok, traceOf(0, end, recs...), traceOf(0, 30*second)), WindowAll, ""},
		{"never cut", append(tsgOn(1), h200(), ok, control(t0, 1, clientA, hTSG, rm.CtrlTSGSetTimeslice, &Params{Timeslice: Ptr(uint64(1e6))}), traceOf(0, end, recs...)), Window1s, whyNoneCut},
		{"every turn has a gap", append(tsgOn(1), h200(), ok, func() TraceBatch {
			b := traceOf(0, end, recs...)
			for i := range b.Records {
				if b.Records[i].Context == 1 && b.Records[i].Tag == TagEnd {
					b.Records[i].Gap = 1
				}
			}
			return b
		}()), Window1s, whyAllGaps},
	} {
		s := NewState(Options{})
		feed(s, c.events...)
		v := rowByPID(t, s.Snapshot(SnapshotOptions{}), 479)
		if got := v.Score[c.window].WhyNull; got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if strings.Contains(c.name, "engine") && (v.Score[Window1s].TurnsPerS != nil || v.Score[Window1s].Share != nil) {
			t.Errorf("%s: numbers without a trace", c.name)
		}
	}
}

func TestGPUNumbers(t *testing.T) {
	s := NewState(Options{GPUs: map[int]bool{1: true}})
	for i := range 3 {
		g := h200()
		g.Index, g.ID, g.DeviceInstance = i, uint32(i+1), i
		s.Apply(g)
		recs, end := alternate(0, 20, uint32(10*i+1), uint32(10*i+2), full, full)
		s.Apply(traceOf(i, end, recs...))
		s.Apply(GPUSample{Time: t0, GPU: i, SMPercent: Ptr(90), ProcessMem: []ProcessMemory{{PID: 1000 + 10*i + 1, Bytes: 1 << 30}}})
		s.Apply(Xid{Time: t0, GPU: i, Code: 31})
	}
	s.Apply(CallCounts{Time: t0, Counts: []CallCount{{N: 5}}})
	s.Apply(CallCounts{Time: t0 + 2*second, Counts: []CallCount{{N: 100}, {N: 100}}})
	snap := s.Snapshot(SnapshotOptions{LaneSpan: time.Second})
	if len(snap.GPUs) != 1 || snap.GPUs[0].Index != 1 || len(snap.TSGs) != 2 || len(snap.Lanes) != 1 || snap.Lanes[0].GPU != 1 {
		t.Fatalf("only GPU 1 was asked for: %d GPUs, %d rows, %d lanes", len(snap.GPUs), len(snap.TSGs), len(snap.Lanes))
	}
	if g := snap.GPUs[0]; g.XidCount != 1 || g.Sample == nil || *g.Sample.SMPercent != 90 {
		t.Errorf("%+v", g)
	}
	if m := rowByPID(t, snap, 1011).MemoryBytes; m == nil || *m != 1<<30 {
		t.Errorf("memory %v", m)
	}
	if rowByPID(t, snap, 1012).MemoryBytes != nil {
		t.Error("memory of a process that NVML did not name")
	}
	if snap.CallRate != 100 {
		t.Errorf("%v calls/s, want 100", snap.CallRate)
	}
}

func TestDetail(t *testing.T) {
	s := twoTSGs()
	recs, end := alternate(0, 2000, 1, 2, full, 3*full)
	s.Apply(traceOf(0, end, recs...))
	failed := control(t0+second, 900, clientA, hTSG, rm.CtrlTSGSetTimeslice, &Params{Timeslice: Ptr(uint64(5))})
	failed.Status = 0x1a
	mine := control(t0+2*second, 901, clientA, hTSG, rm.CtrlTSGSetTimeslice, &Params{Timeslice: Ptr(uint64(200))})
	mine.Command = "abc"
	feed(s, failed, mine)
	for range 200 {
		s.Apply(control(t0+3*second, 479, clientA, hChannel, rm.CtrlWorkSubmitToken, nil))
	}
	snap := s.Snapshot(SnapshotOptions{Detail: 1})
	d := snap.Detail
	if d == nil || d.Residency.Total != 999 || d.Wait.Total == 0 {
		t.Fatalf("%+v", d)
	}
	if len(d.Timeslices) != 3 || d.Timeslices[1].Status != 0x1a || d.Timeslices[2].PID != 901 || d.Timeslices[2].Command != "abc" || d.Timeslices[2].Value != 200 {
		t.Errorf("timeslices %+v", d.Timeslices)
	}
	if len(d.Calls) != maxTSGCalls {
		t.Errorf("%d calls, want %d", len(d.Calls), maxTSGCalls)
	}
	if len(d.Share) < 7 {
		t.Fatalf("%d seconds of share", len(d.Share))
	}
	for _, p := range d.Share[1:] {
		if p.Share == nil || *p.Share < 0.23 || *p.Share > 0.26 {
			t.Errorf("share in %v: %v", p.Time, p.Share)
		}
	}
	if v := rowByPID(t, snap, 479); *v.Timeslice != 200 || v.TimesliceFrom != FromSeen {
		t.Errorf("timeslice %d %s", *v.Timeslice, v.TimesliceFrom)
	}
	if s.Snapshot(SnapshotOptions{Detail: 999}).Detail != nil {
		t.Error("a detail of nothing")
	}
}

// A second in which little competed has the share of that little.
func TestShareOfTheCompetedPart(t *testing.T) {
	s := twoTSGs()
	for i := range Time(5) {
		recs, end := alternate(i*second, 40, 1, 2, full, 3*full)
		s.Apply(traceOf(0, end, recs...))
	}
	s.Apply(traceOf(0, 5*second))
	d := s.Snapshot(SnapshotOptions{Detail: 1}).Detail
	if len(d.Share) != 5 {
		t.Fatalf("%d seconds", len(d.Share))
	}
	for _, p := range d.Share {
		if p.Share == nil || *p.Share < 0.22 || *p.Share > 0.27 {
			t.Errorf("share in %v: %v", p.Time-t0, *p.Share)
		}
	}
}
