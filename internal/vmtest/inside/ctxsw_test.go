//go:build vmtest

package inside

import (
	"testing"
	"time"

	"tsgtop/internal/rmdev"
	"tsgtop/internal/sched"
	"tsgtop/probes/ctxsw"
)

// records waits for n trace records of a GPU.
func (c *collector) records(gpu, n int) []sched.TraceRecord {
	var out []sched.TraceRecord
	for range 300 {
		out = nil
		c.mu.Lock()
		for _, e := range c.events {
			if b, ok := e.(sched.TraceBatch); ok && b.GPU == gpu {
				out = append(out, b.Records...)
			}
		}
		c.mu.Unlock()
		if len(out) >= n {
			return out
		}
		time.Sleep(10 * time.Millisecond)
	}
	return out
}

// bound waits until the probe reads a GPU's trace: it binds at its own time.
func bound(t *testing.T, p *ctxsw.Probe, gpu int) {
	t.Helper()
	for range 300 {
		for _, s := range p.Status() {
			if s.GPU == gpu && s.State == sched.ProbeOK {
				return
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("the trace of GPU %d is not read: %+v", gpu, p.Status())
}

// TestCtxsw: the trace comes through the driver's buffers, record for record, on
// each GPU, and what is missing is known to be.
func TestCtxsw(t *testing.T) {
	loadModel(t, "nvidia", "gpus=2")
	p := ctxsw.New(rmdev.New(nil), ctxsw.Options{})
	seen := runProbe(t, p.Run)
	bound(t, p, 0)
	bound(t, p, 1)
	const n = 5000
	now := uint64(time.Now().UnixNano())
	seq := uint16(65000) // wraps on the way
	for i := 0; i < n; {
		var some [][]byte
		for ; len(some) < 500; i++ {
			some = append(some, record(byte(6+i%2), seq, uint32(0x20+i/2%2), now+uint64(i)*1000))
			seq++
		}
		feed(t, 1, some...)
		time.Sleep(time.Millisecond)
	}
	got := seen.records(1, n)
	if len(got) != n {
		t.Fatalf("%d records of %d came", len(got), n)
	}
	for i, r := range got {
		if r.Tag != uint8(6+i%2) || r.Context != uint32(0x20+i/2%2) || i > 0 && r.Gap != 0 || i > 0 && r.Time <= got[i-1].Time {
			t.Fatalf("record %d: %+v", i, r)
		}
	}
	if l := p.Loss(); l.Trace+l.Overtaken+l.Malformed != 0 {
		t.Errorf("losses where nothing was lost: %+v", l)
	}
	if len(seen.records(0, 0)) != 0 {
		t.Error("records of GPU 1 came as GPU 0's")
	}
	knobFor(t, "lose_every", 10)
	var some [][]byte
	for i := range 1000 {
		some = append(some, record(byte(6+i%2), seq, 0x20, now+uint64(n+i)*1000))
		seq++
	}
	feed(t, 1, some...)
	got = seen.records(1, n+900)
	gaps := 0
	for _, r := range got {
		gaps += int(r.Gap)
	}
	if len(got) != n+900 || gaps < 99 || gaps > 100 { // a loss at the very end shows with the next record
		t.Errorf("of 1000 records with each tenth lost %d came and %d are known to be missing", len(got)-n, gaps)
	}
	if l := p.Loss(); l.Trace < 99 {
		t.Errorf("the counter of losses: %+v", l)
	}
	p.Release()
	if err := rmmod("nvidia"); err != nil {
		t.Error("released, and the driver does not unload:", err)
	}
	if err := insmod("nvidia", "gpus=2"); err != nil {
		t.Fatal(err)
	}
	p.Resume()
	bound(t, p, 1)
}

// TestCtxswRefused: where the trace cannot be had the probe says so and why.
func TestCtxswRefused(t *testing.T) {
	loadModel(t, "nvidia", "")
	for _, x := range []struct {
		knob  string
		value any
		ok    bool
	}{
		{"mig", 1, false},
		{"bind_status", "0x1b", false},
		{"memory_limit", 1 << 20, true}, // 2 MB cannot be had: smaller
		{"memory_limit", 4096, false},
	} {
		t.Run(x.knob, func(t *testing.T) {
			knobFor(t, x.knob, x.value)
			p := ctxsw.New(rmdev.New(nil), ctxsw.Options{})
			runProbe(t, p.Run)
			if x.ok {
				bound(t, p, 0)
				return
			}
			for range 300 {
				for _, s := range p.Status() {
					if s.State == sched.ProbeMissing && s.Why != "" {
						t.Log(s.Why)
						return
					}
				}
				time.Sleep(10 * time.Millisecond)
			}
			t.Errorf("no reason: %+v", p.Status())
		})
	}
}
