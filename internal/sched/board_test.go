package sched

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tsgtop/internal/rm"
)

// script is a source that sends what it is given.
type script struct {
	batches [][]Event
	err     error
}

func (s script) Run(_ context.Context, sink func([]Event)) error {
	for _, b := range s.batches {
		sink(b)
	}
	return s.err
}

func TestBoardRunsItsSource(t *testing.T) {
	want := errors.New("the device is gone")
	src := script{[][]Event{{SourceInfo{Time: t0, Label: "LIVE", Host: "dgx-07"}, h200()}, cudaProcess(t0, 479, clientA, 1, 0x3f)}, want}
	b := NewBoard(src, Options{})
	var events []string
	untap := b.Tap(func(es []Event) {
		for _, e := range es {
			w := fmt.Sprintf("%T", e)
			if l, ok := e.(Lifecycle); ok {
				w = string(l.Kind)
			}
			events = append(events, strings.TrimPrefix(w, "sched."))
		}
		b.Snapshot(SnapshotOptions{}) // a tap may read
	})
	var lines []uint64
	unlines := b.TapLines(func(l *CallLine) { lines = append(lines, l.Seq) })
	if err := b.Run(context.Background()); err != want {
		t.Errorf("Run: %v", err)
	}
	wantEvents := "SourceInfo GPU Call Call Call tsg-created Call Call Call Call timeslice-set Call tsg-scheduled"
	if got := strings.Join(events, " "); got != wantEvents {
		t.Errorf("tapped: %s\nwant:   %s", got, wantEvents)
	}
	if len(lines) != 11 || lines[0] != 1 || lines[10] != 11 {
		t.Errorf("tapped lines %v", lines)
	}
	untap()
	unlines()
	b.Feed([]Event{Command{ID: "x", Step: StepAsked}, Command{ID: "x", Step: StepIssued}, Lifecycle{Kind: TSGCreated}})
	if len(events) != 13 || len(lines) != 11 {
		t.Error("a tap was called after it was taken off")
	}
	snap := b.Snapshot(SnapshotOptions{})
	if snap.Source.Host != "dgx-07" || len(snap.TSGs) != 1 || len(snap.Commands) != 1 || snap.Commands[0].Step != StepIssued {
		t.Errorf("%+v", snap)
	}
	gen := snap.TSGs[0].Gen
	b.Reset()
	if snap := b.Snapshot(SnapshotOptions{}); len(snap.TSGs)+len(snap.GPUs)+len(snap.Commands) != 0 || snap.Time != 0 {
		t.Errorf("after Reset: %+v", snap)
	}
	if err := b.Run(context.Background()); err != want {
		t.Error(err)
	}
	if again := b.Snapshot(SnapshotOptions{}).TSGs[0].Gen; again != gen {
		t.Errorf("the same events gave the generation %d, then %d", gen, again)
	}
}

func TestBoardSharesOut(t *testing.T) {
	b := NewBoard(nil, Options{})
	var wg sync.WaitGroup
	for k := range 4 {
		wg.Go(func() {
			for i := range 50 {
				b.Feed(cudaProcess(t0+Time(i)*ms, 400+k, Handle(0xc1d00000+k), uint32(k+1), uint32(k)))
				b.Snapshot(SnapshotOptions{LaneSpan: time.Second, Detail: uint64(i)})
				b.Calls(uint64(i), 10, nil)
				b.Turns(1, 0, t0)
				b.ExeOf(400)
			}
		})
	}
	wg.Wait()
	if n := len(b.Snapshot(SnapshotOptions{}).TSGs); n != 4 {
		t.Errorf("%d TSGs, want 4", n)
	}
}

// What a snapshot holds must stay as it was while the state goes on, and when
// the source uses its memory again.
func TestSnapshotDoesNotChange(t *testing.T) {
	s := NewState(Options{})
	g := h200()
	p := &Params{Timeslice: Ptr(uint64(512))}
	feed(s, cudaProcess(t0, 479, clientA, 1, 1)...)
	s.Apply(g)
	feed(s, cudaProcess(t0, 480, clientB, 2, 2)...)
	set := control(t0+second, 1, clientA, hTSG, rm.CtrlTSGSetTimeslice, p)
	s.Apply(set)
	recs, end := alternate(second, 800, 1, 2, full, full)
	batch := traceOf(0, end, recs...)
	s.Apply(batch)
	opt := SnapshotOptions{LaneSpan: time.Second, Detail: 1}
	snap := s.Snapshot(opt)
	lines := s.Calls(0, 100, nil)
	before := fmt.Sprintf("%+v", deref(snap, lines))
	*p.Timeslice = 99
	g.Runlists[0].Engines[0] = 77
	clear(batch.Records)
	more, end2 := alternate(end, 300, 1, 2, 300*us, full)
	s.Apply(traceOf(0, end2, more...))
	s.Apply(control(t0+3*second, 1, clientA, hTSG, rm.CtrlTSGSetTimeslice, &Params{Timeslice: Ptr(uint64(64))}))
	s.Apply(free(t0+4*second, 479, clientA, hChannel))
	s.Apply(Process{Time: t0, PID: 479, Exe: "/x"})
	s.Snapshot(opt)
	if after := fmt.Sprintf("%+v", deref(snap, lines)); after != before {
		t.Errorf("a snapshot changed:\n%s\n%s", before, after)
	}
	if l := s.Calls(0, 1000, func(c *Call) bool { return c.Number == rm.CtrlTSGSetTimeslice }); *l[len(l)-2].Call.Params.Timeslice != 64 {
		t.Errorf("the newest call: %+v", l[len(l)-2])
	}
}

// deref writes out what pointers point to.
func deref(s *Snapshot, lines []CallLine) []any {
	out := []any{s.Time, s.Probes, s.Lost, s.GPUs[0].Runlists, s.Lanes, s.Detail.Share[0], s.Detail.Residency, s.Detail.Timeslices, s.CallRate}
	for _, c := range s.Detail.Calls {
		out = append(out, c.Number, ParamsText(c.Params))
	}
	for _, v := range s.TSGs {
		out = append(out, v.Gen, v.ID, v.Process, v.HolderPIDs, *v.Timeslice, *v.Engine)
		for _, c := range v.Channels {
			out = append(out, c.Object, *c.Context, *c.ChID)
		}
		for _, sc := range v.Score {
			out = append(out, *sc.Residency, *sc.Off, *sc.Share, *sc.TurnsPerS)
		}
	}
	for _, l := range lines {
		if l.Call != nil {
			out = append(out, l.Seq, l.Call.End, ParamsText(l.Call.Params))
		} else {
			out = append(out, l.Seq, l.Lifecycle.Kind)
		}
	}
	return out
}

func TestCallLines(t *testing.T) {
	s := NewState(Options{CallsKept: 5})
	if l := s.Calls(0, 10, nil); l != nil {
		t.Errorf("lines of nothing: %v", l)
	}
	seqs := func(after uint64, limit int, f func(*Call) bool) []uint64 {
		var out []uint64
		for _, l := range s.Calls(after, limit, f) {
			out = append(out, l.Seq)
		}
		return out
	}
	for i := range 3 {
		s.Apply(control(t0+Time(i)*ms, 100+i, clientA, 1, rm.CtrlGPUTime, nil))
	}
	for _, c := range []struct {
		after uint64
		limit int
		want  []uint64
	}{{0, 10, []uint64{1, 2, 3}}, {0, 2, []uint64{2, 3}}, {1, 1, []uint64{2}}, {2, 9, []uint64{3}}, {3, 9, nil}, {99, 9, nil}, {0, 0, nil}} {
		if got := seqs(c.after, c.limit, nil); !slices.Equal(got, c.want) {
			t.Errorf("after %d, at most %d: %v, want %v", c.after, c.limit, got, c.want)
		}
	}
	s.Apply(ProcessExit{Time: t0, PID: 100})
	s.Apply(Xid{Time: t0, Code: 79})
	for i := range 3 {
		s.Apply(control(t0+Time(i)*ms, 200+i, clientA, 1, rm.CtrlGPUTime, nil))
	}
	odd := func(c *Call) bool { return c.PID%2 == 1 }
	for _, c := range []struct {
		after uint64
		limit int
		f     func(*Call) bool
		want  []uint64
	}{
		{0, 10, nil, []uint64{4, 5, 6, 7, 8}}, {1, 10, nil, []uint64{4, 5, 6, 7, 8}}, {1, 2, nil, []uint64{4, 5}},
		{0, 10, odd, []uint64{4, 5, 7}}, {0, 2, odd, []uint64{5, 7}}, {5, 10, odd, []uint64{7}},
	} {
		if got := seqs(c.after, c.limit, c.f); !slices.Equal(got, c.want) {
			t.Errorf("after %d, at most %d: %v, want %v", c.after, c.limit, got, c.want)
		}
	}
}

func TestOwnParamsIsComplete(t *testing.T) {
	p := Params{
		Engine: Ptr(uint32(1)), Context: Ptr(uint32(2)), TSGNumber: Ptr(uint32(3)), Timeslice: Ptr(uint64(4)), Interleave: Ptr(uint32(2)),
		Wait: Ptr(true), TimeoutUS: Ptr(uint32(6)), Enable: Ptr(true), SkipSubmit: Ptr(true), Immediate: Ptr(true), Force: Ptr(true),
		Runlist: Ptr(uint32(7)), ChID: Ptr(uint32(8)), DeviceInstance: Ptr(uint32(9)), SubDevice: Ptr(uint32(10)),
		SrcClient: Ptr(Handle(11)), SrcObject: Ptr(Handle(12)), ProcessID: Ptr(uint32(13)),
	}
	before := ParamsText(&p)
	for _, w := range []string{"engine=gr0", "context=0x2", "tsg=3", "timeslice=4us", "interleave=high", "wait", "timeout=6us", "enable",
		"skip-submit", "immediate", "force", "runlist=7", "chid=8", "device=9", "subdevice=10", "from=0000000b/0000000c", "process=13"} {
		if !strings.Contains(before, " "+w) {
			t.Errorf("%q lacks %s", before, w)
		}
	}
	o := ownParams(&p)
	*p.Engine, *p.Context, *p.TSGNumber, *p.Timeslice, *p.Interleave, *p.TimeoutUS = 0, 0, 0, 0, 0, 0
	*p.Wait, *p.Enable, *p.SkipSubmit, *p.Immediate, *p.Force = false, false, false, false, false
	*p.Runlist, *p.ChID, *p.DeviceInstance, *p.SubDevice, *p.SrcClient, *p.SrcObject, *p.ProcessID = 0, 0, 0, 0, 0, 0, 0
	if got := ParamsText(o); got != before {
		t.Errorf("the copy changed: %q, was %q", got, before)
	}
	if got := ParamsText(&Params{Wait: Ptr(false), Faulted: true}); got != " wait=false (parameters could not be read)" {
		t.Errorf("%q", got)
	}
	if ownParams(nil) != nil || ParamsText(nil) != "" {
		t.Error("no parameters became some")
	}
}

// The trace and the calls that do not shape scheduling are folded without
// making garbage.
func TestApplyMakesNoGarbage(t *testing.T) {
	s := NewState(Options{CallsKept: 64})
	feed(s, cudaProcess(t0, 479, clientA, 1, 1)...)
	feed(s, cudaProcess(t0, 480, clientB, 2, 2)...)
	at := second
	batch := traceOf(0, 0)
	batch.Records = make([]TraceRecord, 0, 64)
	calls := make([]Call, 16)
	step := func() {
		batch.Records = batch.Records[:0]
		for i := range 32 {
			ctx := uint32(i%2 + 1)
			batch.Records = append(batch.Records, TraceRecord{Time: t0 + at, Context: ctx, Tag: TagStart}, TraceRecord{Time: t0 + at + full, Context: ctx, Tag: TagEnd})
			at += full + 80*us
		}
		batch.Time = t0 + at
		for i := range calls {
			calls[i] = control(t0+at, 479, clientA, 0x77, rm.CtrlGPUTime, nil)
		}
		s.applyTrace(&batch)
		for i := range calls {
			s.applyCall(&calls[i])
		}
	}
	for range 2000 { // until the lane has all the room that it needs
		step()
		s.sweep()
	}
	if n := testing.AllocsPerRun(200, step); n > 0.1 {
		t.Errorf("%v allocations for 64 records and 16 calls", n)
	}
}
