package sched

import (
	"fmt"
	"testing"
	"time"

	"tsgtop/internal/rm"
)

// BenchmarkApplyTrace folds a measured trace again and again, in batches as
// the probe sends them, with its clock going on.
func BenchmarkApplyTrace(b *testing.B) {
	for _, name := range []string{"steady", "beating"} {
		b.Run(name, func(b *testing.B) {
			records := measured(b, name)
			span := records[len(records)-1].Time - records[0].Time + 100*us
			s := NewState(Options{})
			const batch = 128
			b.ReportAllocs()
			n := 0
			start := time.Now()
			for b.Loop() {
				for i := 0; i < len(records); i += batch {
					part := records[i:min(i+batch, len(records))]
					tb := TraceBatch{Time: part[len(part)-1].Time, Records: part}
					s.applyTrace(&tb)
				}
				s.sweep()
				for i := range records {
					records[i].Time += span
				}
				n += len(records)
			}
			b.ReportMetric(float64(n)/time.Since(start).Seconds(), "records/s")
		})
	}
}

// BenchmarkApplyTrace200 is the same with 200 contexts at 5,000 switches a second.
func BenchmarkApplyTrace200(b *testing.B) {
	s, next := busy(200)
	b.ReportAllocs()
	n := 0
	start := time.Now()
	for b.Loop() {
		n += len(next(s))
	}
	b.ReportMetric(float64(n)/time.Since(start).Seconds(), "records/s")
}

func BenchmarkApplyCalls(b *testing.B) {
	base := func() *State {
		s := NewState(Options{})
		for _, e := range cudaProcess(t0, 479, 0xc1d00001, 1, 0x3f) {
			s.Apply(e)
		}
		return s
	}
	for _, c := range []struct {
		name string
		call Call
	}{
		{"shaping", control(t0+ms, 479, 0xc1d00001, hTSG, rm.CtrlTSGSetTimeslice, &Params{Timeslice: Ptr(uint64(2048))})},
		{"other", control(t0+ms, 479, 0xc1d00001, 0x5c000002, rm.CtrlGPUTime, nil)},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := base()
			batch := CallBatch{Calls: make([]Call, 64)}
			for i := range batch.Calls {
				batch.Calls[i] = c.call
			}
			var ev Event = batch
			b.ReportAllocs()
			n := 0
			start := time.Now()
			for b.Loop() {
				for i := range batch.Calls {
					batch.Calls[i].Start += us
					batch.Calls[i].End += us
				}
				s.Apply(ev)
				n += len(batch.Calls)
			}
			b.ReportMetric(float64(n)/time.Since(start).Seconds(), "calls/s")
		})
	}
}

// busy is a state with TSGs that compete, and a source of their next tenth of
// a second at 5,000 switches a second.
func busy(tsgs int) (*State, func(*State) []TraceRecord) {
	s := NewState(Options{})
	s.Apply(h200())
	for i := range tsgs {
		for _, e := range cudaProcess(t0, 1000+i, Handle(0xc1d00000+i), uint32(i+1), uint32(i+1)) {
			s.Apply(e)
		}
		for ch := range Handle(7) {
			s.Apply(alloc(t0+ms, 1000+i, Handle(0xc1d00000+i), hTSG, hChannel+1+ch, rm.ClassChannelHopper, &Params{Context: Ptr(uint32(100000 + i*8 + int(ch)))}))
		}
		s.Apply(Process{Time: t0, PID: 1000 + i, Start: uint64(i), Exe: fmt.Sprintf("/usr/bin/job%d", i), User: "ada", Unit: "docker:api"})
	}
	now := t0 + second
	k := uint32(0)
	seed := uint32(1)
	next := func(s *State) []TraceRecord {
		var out []TraceRecord
		for range 500 {
			seed = seed*1664525 + 1013904223
			l := 60*us + Time(seed>>24)*300
			ctx := k%uint32(tsgs) + 1
			k++
			out = append(out, TraceRecord{Time: now, Context: ctx, PID: 1000 + ctx, Tag: TagStart}, TraceRecord{Time: now + l, Context: ctx, PID: 1000 + ctx, Tag: TagEnd})
			now += 200 * us
		}
		s.Apply(TraceBatch{Time: now, Records: out})
		return out
	}
	for range 150 {
		next(s)
	}
	return s, next
}

// BenchmarkSnapshot200 is what a screen takes ten times a second: 200 TSGs at
// 5,000 switches a second, with a lane of 100 ms. 1% of a core is 1 ms.
func BenchmarkSnapshot200(b *testing.B) {
	s, _ := busy(200)
	b.ReportAllocs()
	for b.Loop() {
		s.Snapshot(SnapshotOptions{LaneSpan: 100 * time.Millisecond})
	}
}

// BenchmarkSnapshot200Grouped is the same with the statistics of groups: what
// the score takes twice a second while it is grouped.
func BenchmarkSnapshot200Grouped(b *testing.B) {
	s, _ := busy(200)
	group := func(t *TSGView) (string, bool) { return fmt.Sprint(t.Process.PID % 20), true }
	b.ReportAllocs()
	for b.Loop() {
		s.Snapshot(SnapshotOptions{Group: group})
	}
}
