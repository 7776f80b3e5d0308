package recording

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tsgtop/internal/sched"
)

func dump(t *testing.T, r *Ring) (Header, []sched.Event) {
	t.Helper()
	var b bytes.Buffer
	if err := r.Dump(&b); err != nil {
		t.Fatal(err)
	}
	rd, err := NewReader(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	return rd.Header(), mustRead(t, b.Bytes())
}

func TestRingKeepsTheLastWhile(t *testing.T) {
	r, err := NewRing(Header{Host: "node"}, RingOptions{Span: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	params := &sched.Params{Engine: sched.Ptr(uint32(1))}
	control := func(at sched.Time, us uint64) sched.Call {
		return sched.Call{Kind: sched.CallControl, End: at, Number: 0xa06c0103, Client: 1, Object: 20, Params: &sched.Params{Timeslice: sched.Ptr(us)}}
	}
	err = r.Write([]sched.Event{
		sched.SourceInfo{Time: 1e9, Host: "node"},
		sched.Process{Time: 1e9, PID: 7, Comm: "stays"}, sched.Process{Time: 1e9, PID: 8, Comm: "goes"},
		sched.CallBatch{Calls: []sched.Call{
			{Kind: sched.CallAlloc, End: 1e9, Client: 1, Object: 20, Parent: 19, Params: params},
			{Kind: sched.CallAlloc, End: 1e9 + 1, Client: 1, Object: 21, Parent: 20, Params: params},
			{Kind: sched.CallAlloc, End: 1e9 + 2, Client: 1, Object: 30, Parent: 19, Params: params},
			{Kind: sched.CallAlloc, End: 1e9 + 3, Client: 1, Object: 31, Parent: 30, Params: params},
			{Kind: sched.CallAlloc, End: 1e9 + 4, Client: 2, Object: 20, File: 5, Params: params},
			{Kind: sched.CallControl, End: 1e9 + 5, Client: 1, Object: 20, Number: 9},
			control(1e9+6, 2048), control(1e9+7, 512),
		}},
		sched.Inventory{End: 1e9, Complete: true,
			TSGs:     []sched.FoundTSG{{Object: sched.Object{Client: 9, Handle: 1}}, {Object: sched.Object{Client: 9, Handle: 2}}},
			Channels: []sched.FoundChannel{{Object: sched.Object{Client: 9, Handle: 3}, TSG: 1}, {Object: sched.Object{Client: 9, Handle: 4}, TSG: 2}}},
		sched.CallBatch{Calls: []sched.Call{
			{Kind: sched.CallFree, End: 2e9, Client: 1, Object: 30}, // and 31 with it
			{Kind: sched.CallFree, End: 2e9, Client: 9, Object: 1},
			{Kind: sched.CallFree, End: 2e9, Client: 1, Object: 20, Status: 0x57}, // refused
			{Kind: sched.CallClose, End: 2e9, File: 5},
		}},
		sched.ProcessExit{Time: 2e9, PID: 8},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		at := sched.Time(3e9 + i*1e9)
		if err := r.Write([]sched.Event{sched.TraceBatch{Time: at, Records: []sched.TraceRecord{{Time: at, Context: uint32(i)}}}}); err != nil {
			t.Fatal(err)
		}
	}
	h, got := dump(t, r)
	if span, size := r.Kept(); span < 10*time.Second || span > 13*time.Second || size == 0 {
		t.Errorf("kept %v in %d bytes", span, size)
	}
	var traces []sched.TraceBatch
	for _, e := range got {
		if b, ok := e.(sched.TraceBatch); ok {
			traces = append(traces, b)
		}
	}
	if n := len(traces); n < 10 || n > 13 || traces[n-1].Time != 102e9 || h.From != traces[0].Time {
		t.Errorf("%d batches of the trace, header %+v", n, h)
	}
	mustEqual(t, got[:len(got)-len(traces)], []sched.Event{
		sched.SourceInfo{Time: 1e9, Host: "node"}, sched.Process{Time: 1e9, PID: 7, Comm: "stays"},
		sched.Inventory{End: 1e9, Complete: true, TSGs: []sched.FoundTSG{{Object: sched.Object{Client: 9, Handle: 2}}},
			Channels: []sched.FoundChannel{{Object: sched.Object{Client: 9, Handle: 4}, TSG: 2}}},
		sched.CallBatch{Calls: []sched.Call{
			{Kind: sched.CallAlloc, End: 1e9, Client: 1, Object: 20, Parent: 19, Params: params},
			{Kind: sched.CallAlloc, End: 1e9 + 1, Client: 1, Object: 21, Parent: 20, Params: params}, control(1e9+7, 512)}},
	})
}

func TestRingIsBounded(t *testing.T) {
	r, err := NewRing(Header{}, RingOptions{Span: time.Hour, MaxBytes: 100 << 10})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 1))
	for i := range 400 {
		b := sched.TraceBatch{Time: sched.Time(1e9 + i*1e9)}
		for range 500 {
			b.Records = append(b.Records, sched.TraceRecord{Time: sched.Time(random.Uint64() >> 20), Context: random.Uint32()})
		}
		if err := r.Write([]sched.Event{b}); err != nil {
			t.Fatal(err)
		}
	}
	if _, size := r.Kept(); size > 150<<10 {
		t.Errorf("it holds %d bytes", size)
	}
	if h, got := dump(t, r); len(h.Notes) != 1 || len(got) == 0 {
		t.Errorf("%d events, header %+v", len(got), h)
	}
}

func TestRingDumpFile(t *testing.T) {
	r, err := NewRing(Header{}, RingOptions{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "last")
	if err := errors.Join(r.Write(someSeconds(3)), r.DumpFile(path)); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	mustEqual(t, mustRead(t, data), someSeconds(3))
	if err := r.DumpFile(path); err == nil {
		t.Error("a file was replaced")
	}
}

func TestKeeperIsBounded(t *testing.T) {
	k := newKeeper()
	for i := range keepCalls + 50 {
		k.apply(sched.Call{Kind: sched.CallAlloc, Client: sched.Handle(i % 100), Object: sched.Handle(i), Params: &sched.Params{}})
	}
	for i := range 3 * keepProcesses {
		k.apply(sched.Process{PID: i})
		k.apply(sched.ProcessExit{PID: i})
	}
	for i := range 1000 {
		k.apply(sched.Xid{Code: uint32(i)})
	}
	if k.calls != keepCalls || k.left != 50 || len(k.processes) > keepProcesses || len(k.xids) != keepLatest {
		t.Errorf("%d calls, %d left, %d processes, %d Xids", k.calls, k.left, len(k.processes), len(k.xids))
	}
	for i := range 100 {
		k.apply(sched.Call{Kind: sched.CallFree, Client: sched.Handle(i), Object: sched.Handle(i)})
	}
	if k.calls != 0 {
		t.Errorf("%d calls are left of clients that are gone", k.calls)
	}
}
