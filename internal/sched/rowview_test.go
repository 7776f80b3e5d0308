package sched

import "testing"

// A turn of a TSG that has ended can still be told to whom it belonged.
func TestViewOfWhatEnded(t *testing.T) {
	b := NewBoard(nil, Options{})
	b.Feed([]Event{h200(), Process{Time: t0, PID: 479, Start: 1, Exe: "/a/train"}})
	b.Feed(cudaProcess(t0+ms, 479, clientA, 4, 0x3f))
	gen := b.Snapshot(SnapshotOptions{}).TSGs[0].Gen
	b.Feed([]Event{traceOf(0, 20*ms, rec{TagStart, 0x3f, 10 * ms, 0}, rec{TagEnd, 0x3f, 12 * ms, 0}),
		Call{Start: t0 + 30*ms, End: t0 + 30*ms, Kind: CallClose, File: 4}})
	if n := len(b.Snapshot(SnapshotOptions{}).TSGs); n != 0 {
		t.Fatalf("%d TSGs live", n)
	}
	v, ok := b.TSG(gen)
	if !ok || v.Process.Exe != "/a/train" || v.ID != (TSGID{0, 0, 7}) || v.Gen != gen {
		t.Errorf("%v %+v", ok, v)
	}
	if _, ok := b.TSG(gen + 1000); ok {
		t.Error("a generation that never was has a view")
	}
}
