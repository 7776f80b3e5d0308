package sched

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"testing"
	"time"

	"tsgtop/internal/rm"
)

// fill sets a value and all that is in it at random, small numbers often so
// that things meet.
func fill(r *rand.Rand, v reflect.Value, depth int) {
	small := func() uint64 {
		if r.IntN(20) == 0 {
			return r.Uint64()
		}
		return uint64(r.IntN(6))
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int64, reflect.Int32, reflect.Int16, reflect.Int8:
		if v.Type() == reflect.TypeFor[Time]() && r.IntN(10) > 0 {
			v.SetInt(int64(t0) + r.Int64N(int64(3*second)))
		} else {
			v.SetInt(int64(small()) - int64(r.IntN(2)))
		}
	case reflect.Uint, reflect.Uint64, reflect.Uint32, reflect.Uint16, reflect.Uint8:
		v.SetUint(small())
	case reflect.Float64:
		v.SetFloat(r.Float64())
	case reflect.String:
		v.SetString([]string{"", "ok", "missing", "ctxsw", "LIVE", "\x1b[2J", "\xff"}[r.IntN(7)])
	case reflect.Pointer:
		if depth < 6 && r.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem(), depth+1)
		}
	case reflect.Slice:
		n := r.IntN(6)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(r, v.Index(i), depth+1)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(r, v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	case reflect.Struct:
		for i := range v.NumField() {
			fill(r, v.Field(i), depth+1)
		}
	}
}

var numbers = []uint32{rm.ClassClient, rm.ClassDevice, rm.ClassTSG, rm.ClassChannelHopper, rm.ClassMPS,
	rm.CtrlTSGSetTimeslice, rm.CtrlTSGGetTimeslice, rm.CtrlTSGPreempt, rm.CtrlTSGInfo, rm.CtrlTSGSchedule, rm.CtrlTSGSetInterleave,
	rm.CtrlWorkSubmitToken, rm.CtrlChannelContextID, rm.CtrlChannelBind, rm.CtrlChannelSchedule, rm.CtrlChannelStop}

// randomEvent makes any event that a source could send.
func randomEvent(r *rand.Rand) Event {
	kinds := []reflect.Type{
		reflect.TypeFor[SourceInfo](), reflect.TypeFor[ProbeStatus](), reflect.TypeFor[GPU](), reflect.TypeFor[GPUSample](),
		reflect.TypeFor[Process](), reflect.TypeFor[ProcessExit](), reflect.TypeFor[CallCounts](),
		reflect.TypeFor[Loss](), reflect.TypeFor[Xid](), reflect.TypeFor[ClockTie](), reflect.TypeFor[Lifecycle](), reflect.TypeFor[Command](),
		reflect.TypeFor[Inventory](), reflect.TypeFor[Inventory](), reflect.TypeFor[TraceBatch](), reflect.TypeFor[TraceBatch](),
		reflect.TypeFor[TraceBatch](), reflect.TypeFor[CallBatch](), reflect.TypeFor[CallBatch](), reflect.TypeFor[CallBatch](), reflect.TypeFor[CallBatch](),
	}
	v := reflect.New(kinds[r.IntN(len(kinds))]).Elem()
	fill(r, v, 0)
	e := v.Interface().(Event)
	switch e := e.(type) {
	case CallBatch:
		for i := range e.Calls {
			c := &e.Calls[i]
			c.Kind = CallKind(1 + r.IntN(5))
			c.Number = numbers[r.IntN(len(numbers))]
			if r.IntN(8) > 0 {
				c.Status, c.Errno = 0, 0
			}
			if r.IntN(2) == 0 {
				c.Start = c.End - 1000
			}
		}
	case TraceBatch:
		for i := range e.Records {
			e.Records[i].Tag = TagStart + uint8(r.IntN(2))
			if r.IntN(10) > 0 {
				e.Records[i].Gap, e.Records[i].GI, e.Records[i].CI = 0, 0, 0
				e.Records[i].Context %= 4
			}
		}
		if r.IntN(5) > 0 {
			e.GPU = r.IntN(2)
			for i := 1; i < len(e.Records); i++ {
				e.Records[i].Time = e.Records[i-1].Time + Time(r.IntN(3_000_000))
			}
		}
		return e
	}
	return e
}

// consistent checks what must hold of every snapshot.
func consistent(t *testing.T, s *Snapshot) {
	t.Helper()
	gens := map[uint64]bool{}
	type place struct{ gpu, w int }
	shares := map[place]float64{}
	unit := func(what string, f *float64) {
		if f != nil && (*f < 0 || *f > 1+1e-9 || math.IsNaN(*f)) {
			t.Fatalf("%s is %v", what, *f)
		}
	}
	for i := range s.GPUs {
		g := &s.GPUs[i]
		if i > 0 && g.Index <= s.GPUs[i-1].Index {
			t.Fatal("GPUs out of order")
		}
		for w := range NumWindows {
			unit("switch tax", g.SwitchTax[w])
			if g.SwitchTax[w] != nil {
				shares[place{g.Index, int(w)}] += *g.SwitchTax[w]
			}
		}
		if g.SwitchesPerS != nil && (*g.SwitchesPerS < 0 || math.IsInf(*g.SwitchesPerS, 0)) {
			t.Fatalf("%v switches/s", *g.SwitchesPerS)
		}
	}
	for i := range s.TSGs {
		v := &s.TSGs[i]
		if v.Gen == 0 || gens[v.Gen] {
			t.Fatalf("generation %d twice", v.Gen)
		}
		gens[v.Gen] = true
		if i > 0 {
			if a, b := uint(s.TSGs[i-1].ID.GPU), uint(v.ID.GPU); a > b {
				t.Fatal("rows out of order")
			}
		}
		for w := range NumWindows {
			sc := &v.Score[w]
			unit("share", sc.Share)
			if sc.Share != nil {
				shares[place{v.ID.GPU, int(w)}] += *sc.Share
			}
			if sc.Residency != nil && sc.Residency.N > sc.Turns {
				t.Fatalf("%d residencies of %d turns", sc.Residency.N, sc.Turns)
			}
			if sc.Wait != nil && (sc.Off == nil || sc.Wait.N > sc.Off.N) {
				t.Fatalf("more waits than times off")
			}
			if (sc.Residency == nil || sc.Wait == nil || sc.Off == nil || sc.Share == nil) && sc.WhyNull == "" {
				t.Fatalf("null without a reason: %+v", sc)
			}
			for _, st := range []*Stats{sc.Residency, sc.Wait, sc.Off} {
				if st != nil && !(st.N > 0 && st.Min <= st.P50 && st.P50 <= st.P95 && st.P95 <= st.P99 && st.P99 <= st.Max &&
					st.Min >= 0 && st.Mean >= st.Min*(1-1e-9) && st.Mean <= st.Max*(1+1e-9) && st.StdDev >= 0) {
					t.Fatalf("%+v", *st)
				}
			}
		}
		for w := range NumWindows - 1 {
			if v.Score[w].Turns > v.Score[w+1].Turns {
				t.Fatalf("more turns in a shorter window: %d > %d", v.Score[w].Turns, v.Score[w+1].Turns)
			}
		}
	}
}

// Whatever a source sends, in whatever order: no panic, and snapshots that hold
// together. All of it can be written as JSON.
func TestRandomEvents(t *testing.T) {
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 11))
		s := NewState(Options{CallsKept: 50, LaneTurns: 128, LaneKeep: 5 * time.Second})
		for i := range 400 {
			facts := s.Apply(randomEvent(r))
			for _, f := range facts {
				if f.Gen == 0 || f.Kind == "" {
					t.Fatalf("fact %+v", f)
				}
			}
			if i%40 == 0 {
				snap := s.Snapshot(SnapshotOptions{LaneSpan: time.Duration(r.Int64()), LaneUntil: Time(r.Int64()), Detail: uint64(r.IntN(30))})
				consistent(t, snap)
				for w := range NumWindows {
					if _, err := json.Marshal(snap.LS(w)); err != nil {
						t.Fatal(err)
					}
					if _, err := json.Marshal(snap.ScoreOutput(w)); err != nil {
						t.Fatal(err)
					}
				}
				for _, l := range s.Calls(0, 100, nil) {
					if _, err := json.Marshal(LineJSON(&l, nil)); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}

// Well-formed traces of one engine: shares and the switch tax never make more
// than the whole, in every window and at every instant.
func TestSharesNeverExceedTheWhole(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 12))
		s := NewState(Options{})
		now := t0
		for range 40 {
			b := TraceBatch{}
			for range 30 {
				ctx := uint32(1 + r.IntN(4))
				now += Time(60_000 + r.IntN(30_000))
				if r.IntN(20) == 0 {
					now += Time(r.IntN(int(300 * ms)))
				}
				start := TraceRecord{Time: now, Context: ctx, PID: ctx, Tag: TagStart}
				if r.IntN(50) == 0 {
					start.Gap = 3
				}
				b.Records = append(b.Records, start)
				now += Time(r.IntN(int(5 * ms)))
				if r.IntN(40) > 0 {
					b.Records = append(b.Records, TraceRecord{Time: now, Context: ctx, PID: ctx, Tag: TagEnd})
				}
			}
			b.Time = now
			s.Apply(b)
			snap := s.Snapshot(SnapshotOptions{LaneSpan: time.Second})
			consistent(t, snap)
			for w := range NumWindows {
				if snap.GPUs[0].SwitchTax[w] == nil {
					continue
				}
				sum := *snap.GPUs[0].SwitchTax[w]
				for _, v := range snap.TSGs {
					if sc := v.Score[w]; sc.Share != nil {
						sum += *sc.Share
					}
				}
				if sum > 1+1e-9 {
					t.Fatalf("seed %d, window %v: shares and tax make %v", seed, w, sum)
				}
			}
			var last Time
			for _, turn := range snap.Lanes[0].Turns {
				if turn.Start < last || turn.End < turn.Start {
					t.Fatalf("seed %d: turns overlap: %s", seed, words(snap.Lanes[0].Turns))
				}
				last = turn.End
			}
		}
	}
}

// A source that never stops making new things does not fill the memory, and
// what was cut is counted.
func TestMemoryIsBounded(t *testing.T) {
	s := NewState(Options{})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	at := t0
	for i := range uint32(60_000) {
		at += us
		client := Handle(0x1000 + i)
		s.Apply(CallBatch{Calls: []Call{
			allocClient(at, int(i), client, i),
			alloc(at, int(i), client, client, hDevice, rm.ClassDevice, nil),
			alloc(at, int(i), client, hDevice, hTSG, rm.ClassTSG, nil),
			alloc(at, int(i), client, hTSG, hChannel, rm.ClassChannelHopper, &Params{Context: Ptr(i)}),
			alloc(at, int(i), 0x1000, Handle(i), Handle(0x2000+i), rm.ClassChannelHopper, nil),
			free(at, int(i), client, 0x77),
		}})
		if i%3 == 0 {
			s.Apply(free(at, int(i), client, client))
		}
		s.Apply(TraceBatch{Time: at, GPU: int(i % 70), Records: []TraceRecord{
			{Time: at, Context: 1 << 20 * (i % 100) * i, PID: i, Tag: TagStart, GI: uint8(i)}, {Time: at + 100, Context: i, PID: i, Tag: TagEnd, GI: uint8(i)}}})
		s.Apply(Process{Time: at, PID: int(i), Start: uint64(i)})
		s.Apply(ProbeStatus{Time: at, Probe: "ctxsw", GPU: int(i)})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if mb := int64(after.HeapAlloc-before.HeapAlloc) >> 20; mb > 250 {
		t.Errorf("%d MB after a hostile stream", mb)
	}
	snap := s.Snapshot(SnapshotOptions{})
	if snap.Cut == 0 || len(snap.TSGs) > maxTSGs+maxContexts || len(snap.GPUs) > maxGPUs || len(snap.Probes) > maxProbes {
		t.Errorf("cut %d, %d rows, %d GPUs, %d probes", snap.Cut, len(snap.TSGs), len(snap.GPUs), len(snap.Probes))
	}
	runtime.KeepAlive(s)
}

// What ended is forgotten after a while, also what the trace alone told of.
func TestEndedIsForgotten(t *testing.T) {
	s := NewState(Options{LaneKeep: 2 * time.Second})
	s.Apply(h200())
	var gen uint64
	for i := range Time(50) {
		at := t0 + i*100*ms
		ctx := uint32(100 + i)
		feed(s, cudaProcess(at, 1000+int(i), clientA, 1, ctx)...)
		s.Apply(TraceBatch{Time: at + 50*ms, Records: []TraceRecord{
			{Time: at + 10*ms, Context: ctx, PID: uint32(1000 + i), Tag: TagStart}, {Time: at + 20*ms, Context: ctx, PID: uint32(1000 + i), Tag: TagEnd},
			{Time: at + 21*ms, Context: ctx + 1000, PID: uint32(5000 + i), Tag: TagStart}, {Time: at + 22*ms, Context: ctx + 1000, PID: uint32(5000 + i), Tag: TagEnd}}})
		if i == 49 {
			gen = s.Snapshot(SnapshotOptions{}).TSGs[0].Gen
		}
		s.Apply(free(at+60*ms, 1000+int(i), clientA, clientA))
		s.Apply(ProcessExit{Time: at + 70*ms, PID: 1000 + int(i)})
		s.Apply(ProcessExit{Time: at + 70*ms, PID: 5000 + int(i)})
	}
	if d := s.Snapshot(SnapshotOptions{Detail: gen}).Detail; d == nil || len(d.Calls) == 0 {
		t.Error("the detail of a TSG that just ended is gone")
	}
	s.Apply(ClockTie{Time: t0 + 30*second})
	s.Apply(ClockTie{Time: t0 + 40*second})
	if len(s.tsgs)+len(s.ended)+len(s.ctxRows)+len(s.owners)+s.contexts+len(s.processes)+len(s.clients)+len(s.objects)+len(s.files) != 0 {
		t.Errorf("left: %d TSGs, %d ended, %d context rows, %d owners, %d contexts, %d processes, %d clients, %d objects, %d files",
			len(s.tsgs), len(s.ended), len(s.ctxRows), len(s.owners), s.contexts, len(s.processes), len(s.clients), len(s.objects), len(s.files))
	}
	if d := s.Snapshot(SnapshotOptions{Detail: gen}).Detail; d != nil {
		t.Error("the detail of a TSG that ended long ago is still there")
	}
}

// 200 TSGs at 5,000 switches a second, with all windows full.
func TestMemoryOf200TSGs(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s, _ := busy(200)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if mb := float64(after.HeapAlloc-before.HeapAlloc) / (1 << 20); mb > 20 {
		t.Errorf("%.1f MB", mb)
	} else {
		t.Logf("%.1f MB", mb)
	}
	snap := s.Snapshot(SnapshotOptions{})
	consistent(t, snap)
	if len(snap.TSGs) != 200 || snap.GPUs[0].Competing != 200 || snap.TSGs[100].Score[Window10s].Residency.N < 240 {
		t.Errorf("%d rows, %d compete", len(snap.TSGs), snap.GPUs[0].Competing)
	}
}
