//go:build linux

package ctxsw

import (
	"testing"

	"tsgtop/internal/rmdev"
	"tsgtop/internal/rmdev/rmfake"
	"tsgtop/internal/sched"
)

// bound is a buffer of n records, bound to the trace of a fake GPU.
func bound(t *testing.T, n uint32, newest bool) (*rmfake.GPU, *buffer) {
	t.Helper()
	d := rmfake.New()
	return boundOn(t, d, d, n, newest)
}

func boundOn(t *testing.T, d *rmfake.Driver, sys rmdev.System, n uint32, newest bool) (*rmfake.GPU, *buffer) {
	t.Helper()
	g := d.AddGPU()
	dev, err := rmdev.New(sys).Open()
	if err != nil {
		t.Fatal(err)
	}
	gpus, err := dev.GPUs()
	if err != nil {
		t.Fatal(err)
	}
	attached, err := dev.Attach(gpus[0])
	if err != nil {
		t.Fatal(err)
	}
	b, err := newBuffer(dev, attached, []uint32{n})
	if err != nil {
		t.Fatal(err)
	}
	b.newest = newest
	if err := b.bind(attached); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		dev.Close()
		if d.OpenFiles() != 0 {
			t.Errorf("%d descriptors left open", d.OpenFiles())
		}
		for _, line := range d.Log() {
			t.Errorf("kernel log: %s", line)
		}
	})
	return g, b
}

// switches makes n records, numbered by their context from first on.
func switches(first, n int) []rmfake.Record {
	out := make([]rmfake.Record, n)
	for i := range out {
		out[i] = rmfake.Record{Tag: uint8(6 + i%2), Context: uint32(first + i), PID: 479, Time: uint64(epoch + (first+i)*1000)}
	}
	return out
}

// drain flushes, reads and decodes.
func drain(t *testing.T, b *buffer, d *decoder, c *gpuClock) []sched.TraceRecord {
	t.Helper()
	if err := b.flush(); err != nil {
		t.Fatal(err)
	}
	raw, dropped, overtaken, err := b.read()
	if err != nil {
		t.Fatal(err)
	}
	d.overtaken += overtaken
	out := d.decode(raw, c, nil)
	d.dropped += dropped
	return out
}

// Every record comes once and in order, round and round the buffer.
func TestWrap(t *testing.T) {
	for _, newest := range []bool{false, true} {
		g, b := bound(t, 64, newest)
		c := tiedClock(0)
		var d decoder
		next := 0
		for round := range 500 {
			n := (round * 7) % 50
			g.Switch(switches(next, n)...)
			got := drain(t, b, &d, c)
			if len(got) != n {
				t.Fatalf("newest %v, round %d: %d records, want %d", newest, round, len(got), n)
			}
			for i, r := range got {
				if r.Context != uint32(next+i) || r.Gap != 0 || r.Time != sched.Time(epoch+(next+i)*1000) {
					t.Fatalf("newest %v, round %d, record %d: %+v", newest, round, i, r)
				}
			}
			next += n
		}
		if d.gaps != 0 || d.malformed != 0 {
			t.Errorf("gaps %d, malformed %d", d.gaps, d.malformed)
		}
	}
}

// A reader that was stopped finds the oldest records whole, and behind them a
// gap of the right length, also where the sequence numbers came round.
func TestStoppedReaderKeepsTheOldest(t *testing.T) {
	for _, n := range []int{63, 64, 100, 63 + 65536, 63 + 65536 + 5, 3 * 65536} {
		g, b := bound(t, 64, false)
		c := tiedClock(0)
		var d decoder
		g.Switch(switches(0, 1)...)
		drain(t, b, &d, c)
		g.Switch(switches(1, n)...)
		got := drain(t, b, &d, c)
		if len(got) > 63 || len(got) < 47 || got[0].Context != 1 || got[len(got)-1].Context != uint32(len(got)) {
			t.Fatalf("%d: %d records", n, len(got))
		}
		lost := n - len(got)
		g.Switch(switches(1+n, 3)...)
		got = drain(t, b, &d, c)
		if len(got) != 3 || got[0].Context != uint32(1+n) || int(got[0].Gap) != lost || got[1].Gap != 0 {
			t.Errorf("%d: after a loss of %d: %+v", n, lost, got)
		}
		if d.gaps != uint64(lost) {
			t.Errorf("%d: %d counted, want %d", n, d.gaps, lost)
		}
	}
}

// With "keep newest", what the driver overwrites while we copy is left out and counted.
func TestOvertaken(t *testing.T) {
	for _, c := range []struct{ unread, during, torn int }{
		{40, 10, 0},
		{40, 23, 0},
		{40, 24, 1}, // the slot that is being written may be torn
		{40, 30, 7},
		{40, 63, 40},
		{63, 0, 0},
		{63, 1, 1},
	} {
		g, b := bound(t, 64, true)
		clock := tiedClock(0)
		var d decoder
		g.Switch(switches(0, 1)...)
		drain(t, b, &d, clock)
		g.Switch(switches(1, c.unread)...)
		if err := b.flush(); err != nil {
			t.Fatal(err)
		}
		b.afterCopy = func() {
			b.afterCopy = nil
			for _, r := range switches(1+c.unread, c.during) {
				g.Overtake(1, r)
			}
		}
		raw, _, overtaken, err := b.read()
		if err != nil {
			t.Fatal(err)
		}
		if int(overtaken) != c.torn || len(raw)/recordBytes != c.unread-c.torn {
			t.Errorf("%+v: overtaken %d, %d records", c, overtaken, len(raw)/recordBytes)
			continue
		}
		d.overtaken += overtaken
		got := d.decode(raw, clock, nil)
		got = append(got, drain(t, b, &d, clock)...)
		for i, r := range got {
			gap := uint32(0)
			if i == 0 {
				gap = uint32(c.torn)
			}
			if r.Context != uint32(1+c.torn+i) || r.Gap != gap {
				t.Errorf("%+v: record %d: %+v", c, i, r)
				break
			}
		}
		if len(got) != c.unread+c.during-c.torn || d.gaps != 0 {
			t.Errorf("%+v: %d records, %d missing beside those overtaken", c, len(got), d.gaps)
		}
	}
}

// The hardware can lose records before the driver sees them.
func TestHardwareLoss(t *testing.T) {
	g, b := bound(t, 64, false)
	c := tiedClock(0)
	var d decoder
	r := switches(0, 4)
	r[2].Lost = 9
	g.Switch(r...)
	got := drain(t, b, &d, c)
	if len(got) != 4 || got[2].Gap != 9 || got[1].Gap != 0 || got[3].Gap != 0 || d.gaps != 9 {
		t.Errorf("%+v", got)
	}
}

// A driver that does not move get is read in the other way.
func TestFallsBackToKeepNewest(t *testing.T) {
	d := rmfake.New()
	g, b := boundOn(t, d, refuser{d}, 64, false)
	c := tiedClock(0)
	var dec decoder
	next := 0
	for range 20 {
		g.Switch(switches(next, 20)...)
		got := drain(t, b, &dec, c)
		if len(got) != 20 || got[0].Context != uint32(next) {
			t.Fatalf("%d records from %d, want 20 from %d", len(got), got[0].Context, next)
		}
		next += 20
	}
	if !b.newest || dec.gaps != 0 {
		t.Errorf("newest %v, gaps %d", b.newest, dec.gaps)
	}
}

func TestWildPutIndex(t *testing.T) {
	_, b := bound(t, 64, false)
	b.header[4] = 64
	if _, _, _, err := b.read(); err == nil {
		t.Error("no error")
	}
}

func BenchmarkRead(b *testing.B) {
	d := rmfake.New()
	g := d.AddGPU()
	dev, err := rmdev.New(d).Open()
	if err != nil {
		b.Fatal(err)
	}
	defer dev.Close()
	gpus, _ := dev.GPUs()
	attached, err := dev.Attach(gpus[0])
	if err != nil {
		b.Fatal(err)
	}
	buf, err := newBuffer(dev, attached, sizes)
	if err != nil {
		b.Fatal(err)
	}
	if err := buf.bind(attached); err != nil {
		b.Fatal(err)
	}
	const n = 1024
	batch := switches(0, n)
	c := tiedClock(0)
	var dec decoder
	out := make([]sched.TraceRecord, 0, n)
	records := 0
	for b.Loop() {
		b.StopTimer()
		g.Switch(batch...)
		g.Drain()
		b.StartTimer()
		raw, _, _, err := buf.read()
		if err != nil {
			b.Fatal(err)
		}
		dec.last = 0
		out = dec.decode(raw, c, out[:0])
		records += len(out)
	}
	b.ReportMetric(float64(records)/b.Elapsed().Seconds(), "records/s")
}
