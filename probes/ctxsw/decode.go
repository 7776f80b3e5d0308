//go:build linux

package ctxsw

import (
	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
)

// decoder makes trace records of the bytes in the event buffer of one GPU.
type decoder struct {
	begun     bool
	seq       uint16 // of the last record
	last      sched.Time
	dropped   uint64 // records that the driver says it dropped, not yet seen as a gap
	overtaken uint64 // records overwritten before they were read, likewise
	suspect   bool   // the next record follows a time of which nothing is known

	// Counters since start.
	gaps      uint64 // missing by the sequence numbers, those overtaken left out
	malformed uint64 // no context-switch record, or an impossible stamp
}

// laps is how many records the 16 bits of the sequence number count before they
// repeat.
const laps = 1 << 16

// backwards is how far a stamp may lie before the last one without being taken
// for another epoch, in ns. The stamps of the kernel's own contexts are blurred
// by the driver by as much as a switch takes.
const backwards = 1e6

// noInstance is how a driver without MIG fills the instance ids.
const noInstance = 0xff

// decode appends the records in b to out. Bytes behind the last whole record
// are left alone. Stamps become wall-clock time by c.
func (d *decoder) decode(b []byte, c *gpuClock, out []sched.TraceRecord) []sched.TraceRecord {
	for ; len(b) >= rm.FECSRecordSize; b = b[rm.FECSRecordSize:] {
		r, ok := rm.DecodeFECS(b)
		if !ok || r.Timestamp == 0 || r.Timestamp > 1<<62 {
			d.malformed++
			d.suspect = true
			continue
		}
		gap := d.gap(r.Seq)
		if r.Tag != sched.TagStart && r.Tag != sched.TagEnd {
			// Another level of detail, which a release driver does not give: the
			// two tags are in it as well. A gap before it stays one.
			d.suspect = d.suspect || gap > 0
			continue
		}
		if c.stepped {
			c.stepped, d.last = false, 0
			gap = max(gap, 1)
		}
		t := c.wall(int64(r.Timestamp))
		if d.last != 0 && t < d.last {
			if d.last-t > backwards {
				gap = max(gap, 1)
			} else {
				t = d.last
			}
		}
		if d.suspect {
			d.suspect = false
			gap = max(gap, 1)
		}
		d.last = t
		out = append(out, sched.TraceRecord{
			Time: t, Context: r.Context, PID: r.PID, Gap: gap, Tag: r.Tag,
			GI: instance(r.GPUInstance), CI: instance(r.ComputeInstance),
		})
	}
	return out
}

// gap is how many records are missing before the one with sequence number seq.
func (d *decoder) gap(seq uint16) uint32 {
	if !d.begun {
		// What came before we were there is not missing.
		d.begun, d.seq, d.dropped, d.overtaken = true, seq, 0, 0
		return 0
	}
	n := uint64(seq - d.seq - 1)
	d.seq = seq
	// The numbers repeat after 65,536 records; the driver's own count, which is
	// not exact to the record, tells how often they did.
	if known := d.dropped + d.overtaken; known > n {
		n += (known - n + laps/2) / laps * laps
	}
	d.gaps += n - min(n, d.overtaken)
	d.dropped, d.overtaken = 0, 0
	return uint32(min(n, 1<<32-1))
}

func instance(id uint8) uint8 {
	if id == noInstance {
		return 0
	}
	return id
}
