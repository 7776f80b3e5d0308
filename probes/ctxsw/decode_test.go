//go:build linux

package ctxsw

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
)

// record is a version 2 record as it stands in the buffer, written by hand.
func record(tag uint8, seq uint16, context, pid uint32, stamp uint64) []byte {
	b := make([]byte, 32)
	le := binary.LittleEndian
	le.PutUint16(b[0:], 2)
	b[8] = tag
	le.PutUint16(b[10:], seq)
	le.PutUint32(b[12:], context)
	le.PutUint32(b[16:], pid)
	b[22], b[23] = 0xff, 0xff
	le.PutUint64(b[24:], stamp)
	return b
}

const epoch = 1_796_000_000_000_000_000

func tiedClock(offset int64) *gpuClock {
	c := &gpuClock{}
	c.tie(epoch+offset, epoch, 1000)
	return c
}

func TestDecode(t *testing.T) {
	c := tiedClock(40_000)
	var d decoder
	var b []byte
	b = append(b, record(6, 65534, 0x3f, 479, epoch+1000)...)
	b = append(b, record(7, 65535, 0x3f, 479, epoch+2_198_000)...)
	b = append(b, record(6, 0, 0x4f, 480, epoch+2_275_000)...) // the numbers wrap
	b = append(b, record(7, 4, 0x4f, 480, epoch+4_000_000)...) // three are missing
	b = append(b, make([]byte, 31)...)                         // not a whole record
	got := d.decode(b, c, nil)
	want := []sched.TraceRecord{
		{Time: epoch + 1000 - 40_000, Context: 0x3f, PID: 479, Tag: sched.TagStart},
		{Time: epoch + 2_198_000 - 40_000, Context: 0x3f, PID: 479, Tag: sched.TagEnd},
		{Time: epoch + 2_275_000 - 40_000, Context: 0x4f, PID: 480, Tag: sched.TagStart},
		{Time: epoch + 4_000_000 - 40_000, Context: 0x4f, PID: 480, Tag: sched.TagEnd, Gap: 3},
	}
	if len(got) != len(want) {
		t.Fatalf("%d records, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("record %d: %+v, want %+v", i, got[i], want[i])
		}
	}
	if d.gaps != 3 || d.malformed != 0 {
		t.Errorf("gaps %d, malformed %d", d.gaps, d.malformed)
	}
}

func TestDecodeOddRecords(t *testing.T) {
	c := tiedClock(0)
	var d decoder
	alien := record(6, 11, 1, 1, epoch+10)
	alien[0] = 99
	var b []byte
	b = append(b, record(6, 10, 1, 1, epoch)...)
	b = append(b, alien...)                      // not of the trace
	b = append(b, record(7, 12, 1, 1, 0)...)     // no stamp
	b = append(b, record(7, 13, 1, 1, 1<<63)...) // an impossible one
	b = append(b, record(6, 14, 2, 2, epoch+100)...)
	b = append(b, record(3, 15, 2, 2, epoch+200)...) // another level of detail
	b = append(b, record(7, 16, 2, 2, epoch+300)...)
	b = append(b, record(6, 17, 0xffffffff, 0xffffffff, epoch+250)...) // a kernel context, its stamp blurred
	got := d.decode(b, c, nil)
	if len(got) != 4 || d.malformed != 3 {
		t.Fatalf("%d records, %d malformed: %+v", len(got), d.malformed, got)
	}
	if got[1].Gap == 0 || got[2].Gap != 0 {
		t.Errorf("gaps %d, %d: what follows unreadable records is not clean, the rest is", got[1].Gap, got[2].Gap)
	}
	if got[3].Time != got[2].Time || got[3].Gap != 0 {
		t.Errorf("a blurred stamp: %+v after %+v", got[3], got[2])
	}
}

// A stamp that lies far back is another epoch: nothing is measured across it.
func TestDecodeTimeRunsBack(t *testing.T) {
	c := tiedClock(0)
	var d decoder
	b := append(record(6, 1, 1, 1, epoch+5_000_000), record(7, 2, 1, 1, epoch)...)
	got := d.decode(b, c, nil)
	if got[1].Gap == 0 {
		t.Errorf("%+v", got[1])
	}
}

func TestMIGInstances(t *testing.T) {
	c := tiedClock(0)
	var d decoder
	r := record(6, 1, 1, 1, epoch)
	r[22], r[23] = 3, 0
	if got := d.decode(r, c, nil); got[0].GI != 3 || got[0].CI != 0 {
		t.Errorf("%+v", got[0])
	}
}

// The sequence numbers repeat after 65,536 records; the driver's count of what
// it dropped tells how often they did.
func TestGapLongerThanTheNumbers(t *testing.T) {
	for _, c := range []struct {
		dropped uint64 // by the driver's count
		jump    uint16
		want    uint32
	}{
		{0, 0, 0},
		{0, 7, 7},
		{7, 7, 7},
		{5, 7, 7}, // two more were dropped after its count was read
		{65536, 0, 65536},
		{65536 + 9, 9, 65536 + 9},
		{3*65536 - 2, 1, 3*65536 + 1},
		{200, 0, 0}, // counted, but nothing is missing: the numbers are the truth
	} {
		var d decoder
		d.gap(100)
		d.dropped = c.dropped
		if got := d.gap(101 + c.jump); got != c.want {
			t.Errorf("dropped %d, jump %d: gap %d, want %d", c.dropped, c.jump, got, c.want)
		}
		if d.gap(102+c.jump) != 0 {
			t.Error("a gap is counted twice")
		}
	}
}

// Random ties with drift, jitter and a clock that is set: wall time is monotone
// between settings, close to the truth, and lengths are kept to 500 ppm.
func TestClockIsMonotone(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 7))
		drift := (r.Float64() - 0.5) * 100e-6 // GPU against wall clock
		jitter := r.Int64N(4000) + 1
		var c gpuClock
		truth := func(gpu int64) int64 { return gpu - 40_000 - int64(drift*float64(gpu-epoch)) }
		tie := func(gpu int64) {
			c.tie(gpu, truth(gpu)+r.Int64N(2*jitter)-jitter, jitter)
		}
		tie(epoch)
		stamp := int64(epoch)
		var last sched.Time
		var worst int64
		for second := range int64(120) {
			at := epoch + second*1e9
			for stamp < at-r.Int64N(40e6) { // what is read before the tie is up to 40 ms old
				before := stamp
				stamp += r.Int64N(3e6) + 1
				if second%10 == 5 { // nothing switches
					stamp = max(stamp, at-5e6)
				}
				w := c.wall(stamp)
				if last != 0 {
					if w < last {
						t.Fatalf("seed %d: wall time runs back by %d ns", seed, last-w)
					}
					// 500 ppm, and the drift itself.
					if d := int64(w-last) - (stamp - before); max(d, -d) > (stamp-before)/1500+2 {
						t.Fatalf("seed %d: %d ns became %d", seed, stamp-before, int64(w-last))
					}
				}
				last = w
				if off := int64(w) - truth(stamp); second > 25 {
					worst = max(worst, off, -off)
				}
			}
			tie(at)
		}
		if worst > 4*jitter+5000 {
			t.Errorf("seed %d: drift %.1f ppm, jitter %d ns: off by %d ns", seed, drift*1e6, jitter, worst)
		}
	}
}

func TestClockThatIsSet(t *testing.T) {
	for _, by := range []int64{-3600e9, -20e6, 20e6, 3600e9} {
		c := tiedClock(40_000)
		var d decoder
		d.decode(record(6, 1, 1, 1, epoch+1e9), c, nil)
		c.tie(epoch+2e9, epoch+2e9-40_000+by, 1000)
		got := d.decode(append(record(7, 2, 1, 1, epoch+3e9), record(6, 3, 1, 1, epoch+3e9+10)...), c, nil)
		if got[0].Gap == 0 || got[1].Gap != 0 {
			t.Errorf("set by %d: gaps %d, %d", by, got[0].Gap, got[1].Gap)
		}
		if want := sched.Time(epoch + 3e9 - 40_000 + by); got[0].Time != want {
			t.Errorf("set by %d: %d, want %d", by, got[0].Time, want)
		}
	}
}

// A reading during which something held RM's locks does not move the offset.
func TestWideTie(t *testing.T) {
	c := tiedClock(40_000)
	c.wall(epoch + 1e9)
	c.tie(epoch+2e9, epoch+2e9-900_000, 800_000)
	if got, want := c.wall(epoch+4e9), sched.Time(epoch+4e9-40_000); got != want {
		t.Errorf("%d, want %d", got, want)
	}
}

func TestAdmin(t *testing.T) {
	const initial = "         0          0 4294967295\n"
	for _, c := range []struct {
		caps, uids string
		want       bool
	}{
		{"000001ffffffffff", initial, true},
		{"00000000a80425fb", initial, false}, // a container's root
		{"000001ffffffffff", "         0     100000      65536\n", false},
		{"0000000000200000", initial, true},
		{"", initial, false},
		{"x", initial, false},
	} {
		if got := admin("Name:\tx\nCapEff:\t"+c.caps+"\n", c.uids); got != c.want {
			t.Errorf("%q, %q: %v", c.caps, c.uids, got)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(append(record(6, 1, 1, 1, epoch), record(7, 3, 1, 1, epoch+5)...), uint64(3))
	f.Add(record(7, 1, 1, 1, 1<<62), uint64(1<<40))
	f.Fuzz(func(t *testing.T, b []byte, dropped uint64) {
		c := tiedClock(40_000)
		d := decoder{dropped: dropped}
		out := d.decode(b, c, nil)
		if len(out) > len(b)/rm.FECSRecordSize {
			t.Fatalf("%d records of %d bytes", len(out), len(b))
		}
		var last sched.Time
		for i, r := range out {
			if r.Tag != sched.TagStart && r.Tag != sched.TagEnd {
				t.Fatalf("tag %d", r.Tag)
			}
			if i > 0 && r.Time < last && r.Gap == 0 {
				t.Fatalf("record %d runs back without a gap", i)
			}
			last = r.Time
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	const n = 1024
	var records []byte
	for i := range n {
		records = append(records, record(uint8(6+i%2), uint16(i), uint32(0x3f+i/2%2), 479, uint64(epoch+i*100_000))...)
	}
	c := tiedClock(40_000)
	c.newest = epoch
	c.tie(epoch+1, epoch-39_000, 100)
	var d decoder
	out := make([]sched.TraceRecord, 0, n)
	b.ReportAllocs()
	for b.Loop() {
		out = d.decode(records, c, out[:0])
		d.begun = false
		d.last = 0
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}
