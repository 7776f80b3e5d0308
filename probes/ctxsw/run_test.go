//go:build linux

package ctxsw

import (
	"context"
	"sync"
	"testing"
	"time"

	"tsgtop/internal/rmdev"
	"tsgtop/internal/rmdev/rmfake"
	"tsgtop/internal/sched"
)

// The whole probe, in its own time.
func TestRun(t *testing.T) {
	d := rmfake.New()
	g := d.AddGPU()
	p := New(rmdev.New(d), Options{Flush: time.Millisecond, Root: root})
	ctx, cancel := context.WithCancel(context.Background())
	var mu sync.Mutex
	var got []sched.TraceRecord
	done := make(chan error)
	go func() {
		done <- p.Run(ctx, func(events []sched.Event) {
			mu.Lock()
			defer mu.Unlock()
			for _, b := range only[sched.TraceBatch](events) {
				got = append(got, b.Records...)
			}
		})
	}()
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(got)
	}
	const total = 20_000
	for sent := 0; sent < total; sent += 100 {
		g.Switch(switches(sent, 100)...)
	}
	for deadline := time.Now().Add(10 * time.Second); count() < total && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if len(got) != total {
		t.Fatalf("%d records, want %d", len(got), total)
	}
	for i, r := range got {
		if r.Context != uint32(i) || r.Gap != 0 {
			t.Fatalf("record %d: %+v", i, r)
		}
	}
	if l := p.Loss(); l.Trace != 0 || l.Overtaken != 0 || l.Malformed != 0 {
		t.Errorf("%+v", l)
	}
	if n := d.OpenFiles(); n != 0 {
		t.Errorf("%d descriptors left open", n)
	}
	if len(d.Log()) != 0 {
		t.Errorf("kernel log %q", d.Log())
	}
}
