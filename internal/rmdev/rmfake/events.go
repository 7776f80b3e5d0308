//go:build linux

package rmfake

import (
	"encoding/binary"
	"slices"
	"sync/atomic"
	"unsafe"

	"tsgtop/internal/rm"
)

// Record is one context switch as the hardware writes it.
type Record struct {
	Tag     uint8
	Context uint32
	PID     uint32
	Time    uint64 // ns, PTIMER
	Lost    uint16 // records that the hardware lost before it
}

// eventBuffer is what the driver keeps of an event buffer.
type eventBuffer struct {
	header  []byte
	records []byte
	count   uint32
	enabled bool
	newest  bool
	seq     uint16
}

// Switch puts records into the GPU's own buffer. A flush, by whoever, copies
// them to the event buffers that are bound.
func (g *GPU) Switch(records ...Record) {
	g.d.mu.Lock()
	defer g.d.mu.Unlock()
	g.pending = append(g.pending, records...)
}

// Pending is how many records the hardware holds.
func (g *GPU) Pending() int {
	g.d.mu.Lock()
	defer g.d.mu.Unlock()
	return len(g.pending)
}

// Drain copies what the hardware holds, as the driver's own timer does.
func (g *GPU) Drain() {
	g.d.mu.Lock()
	defer g.d.mu.Unlock()
	g.drain()
}

func (g *GPU) drain() {
	for _, r := range g.pending {
		for _, o := range g.bound {
			o.buf.add(r)
		}
	}
	if len(g.bound) > 0 {
		g.pending = nil
	}
}

func word(b []byte, offset int) *uint32 { return (*uint32)(unsafe.Pointer(&b[offset])) }

// add writes a record as the driver's producer does: record first, then put.
func (b *eventBuffer) add(r Record) {
	b.seq += r.Lost
	seq := b.seq
	b.seq++
	if !b.enabled {
		return
	}
	put := atomic.LoadUint32(word(b.header, 4))
	next := (put + 1) % b.count
	if !b.newest && next == atomic.LoadUint32(word(b.header, 0)) {
		le := binary.LittleEndian
		le.PutUint64(b.header[16:], le.Uint64(b.header[16:])+1)
		return
	}
	at := b.records[put*rm.FECSRecordSize:][:rm.FECSRecordSize]
	le := binary.LittleEndian
	le.PutUint16(at[0:], rm.RecordFECSV2)
	at[8] = r.Tag
	le.PutUint16(at[10:], seq)
	le.PutUint32(at[12:], r.Context)
	le.PutUint32(at[16:], r.PID)
	at[22], at[23] = 0xff, 0xff
	le.PutUint64(at[24:], r.Time)
	atomic.StoreUint32(word(b.header, 4), next)
}

// Overtake lets the driver write n records more into every bound buffer, as
// while a reader copies.
func (g *GPU) Overtake(n int, r Record) {
	g.d.mu.Lock()
	defer g.d.mu.Unlock()
	for range n {
		for _, o := range g.bound {
			o.buf.add(r)
		}
	}
}

func (d *Driver) unbind(o *object) {
	if o.buf == nil {
		return
	}
	for _, g := range d.gpus {
		g.bound = slices.DeleteFunc(g.bound, func(x *object) bool { return x == o })
	}
}

func (d *Driver) allocEventBuffer(c *Client, o *object, params []byte) uint32 {
	if len(params) != int(unsafe.Sizeof(rm.EventBufferAlloc{})) {
		return statusInvalidParam
	}
	p := (*rm.EventBufferAlloc)(unsafe.Pointer(&params[0]))
	header, records := c.objects[p.HeaderMemory], c.objects[p.RecordMemory]
	sub := c.objects[p.Subdevice]
	switch {
	case p.Subdevice == 0:
		d.logf("BUG: unable to handle kernel NULL pointer dereference (no subdevice)")
		return statusInvalidArgument
	case p.Notification != 0:
		d.logf("BUG: notification handle %#x followed as a pointer", p.Notification)
		return statusInvalidArgument
	case header == nil || records == nil || sub == nil || sub.class != rm.ClassSubdevice:
		return statusInvalidHandle
	case header.class != records.class || len(header.mem) < 32 || p.RecordSize != rm.FECSRecordSize,
		p.RecordCount == 0 || uint64(p.RecordCount)*uint64(p.RecordSize) > uint64(len(records.mem)),
		p.RecordsFree > p.RecordCount || p.VardataSize != 0 || p.VardataMemory != 0:
		return statusInvalidArgument
	}
	o.buf = &eventBuffer{header: header.mem, records: records.mem, count: p.RecordCount}
	return statusOK
}

func (d *Driver) controlEventBuffer(o *object, cmd uint32, params []byte) uint32 {
	le := binary.LittleEndian
	switch cmd {
	case rm.CtrlEventBufferFlush:
		if len(params) != 0 {
			return statusInvalidParam
		}
		for _, g := range d.gpus {
			g.drain()
		}
		return statusOK
	case rm.CtrlEventBufferEnable:
		if len(params) != 8 {
			return statusInvalidParam
		}
		o.buf.enabled = params[0] != 0
		o.buf.newest = le.Uint32(params[4:]) == rm.EventBufferKeepNewest
		return statusOK
	case rm.CtrlEventBufferUpdateGet:
		if len(params) != 8 || le.Uint32(params) >= o.buf.count || le.Uint32(params[4:]) != 0 {
			return statusInvalidArgument
		}
		atomic.StoreUint32(word(o.buf.header, 0), le.Uint32(params))
		le.PutUint64(o.buf.header[16:], 0)
		return statusOK
	}
	return statusNotSupported
}

func (d *Driver) bind(sub *object, params []byte) uint32 {
	if len(params) != int(unsafe.Sizeof(rm.FECSBindV2Params{})) {
		return statusInvalidParam
	}
	p := (*rm.FECSBindV2Params)(unsafe.Pointer(&params[0]))
	g := sub.gpu
	g.binds++
	o := sub.client.objects[p.EventBuffer]
	if o == nil || o.buf == nil {
		return statusInvalidHandle
	}
	if g.MIG {
		p.Reason = rm.FECSReasonNotEnabled
		d.logf("a binding failed: the timer of all other listeners is gone")
		return statusNotSupported
	}
	if g.BindStatus != 0 {
		p.Reason = g.BindReason
		d.logf("a binding failed: the timer of all other listeners is gone")
		return g.BindStatus
	}
	g.bound = append(g.bound, o)
	return statusOK
}
