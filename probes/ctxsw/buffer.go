//go:build linux

package ctxsw

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"tsgtop/internal/rm"
	"tsgtop/internal/rmdev"
)

// buffer is an event buffer bound to the trace of one GPU, in memory that the
// driver writes and we may only read.
//
// Of the driver's two policies for a full buffer it takes "keep oldest": the
// driver then never writes over a record that has not been given back (by
// moving get), so a copy is never torn; a reader that was stopped for a while
// finds whole records, and behind them a loss of which the driver counts the
// length. With "keep newest" a reader that is a whole lap of 65,536 behind
// would see no gap at all in the 16 bits of the sequence numbers. Moving get is
// a cheap call on our own buffer, made when a quarter of it has been read.
//
// Should a driver refuse to move get, the buffer falls back to "keep newest",
// and finds out what has been overwritten by reading put again after copying.
type buffer struct {
	dev    *rmdev.Device
	object uint32 // handle of the event buffer
	size   uint32 // records
	header []byte
	mem    []byte
	newest bool   // the fallback
	get    uint32 // next record to read
	given  uint32 // get as the driver has it
	copied []byte

	afterCopy func() // for tests: what the driver does while we copy
}

// sizes are how many records a buffer may have, best first. 65,536 records are
// 2 MiB of contiguous memory, which a machine that has run for long may not have.
var sizes = []uint32{65536, 16384, 4096}

// newBuffer allocates an event buffer for a GPU, as large as can be had, and
// maps it. It is not bound yet.
func newBuffer(dev *rmdev.Device, gpu *rmdev.AttachedGPU, sizes []uint32) (*buffer, error) {
	memory := func(bytes uint64) (uint32, error) {
		// What an event buffer wants of its memory: write-back, and read-only for us.
		p := rm.MemoryAlloc{Attr: rm.MemoryCached, Attr2: rm.MemoryUserReadOnly, Size: bytes}
		return dev.Alloc(dev.Client(), rm.ClassDevicelessMemory, rmdev.Bytes(&p))
	}
	const headerBytes = 4096
	header, err := memory(headerBytes)
	if err != nil {
		return nil, fmt.Errorf("memory for the trace's header: %w", err)
	}
	b := &buffer{dev: dev}
	var records uint32
	for _, b.size = range sizes {
		if records, err = memory(uint64(b.size) * rm.FECSRecordSize); err == nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("contiguous memory for the trace, of %d down to %d bytes: %w", sizes[0]*rm.FECSRecordSize, b.size*rm.FECSRecordSize, err)
	}
	p := rm.EventBufferAlloc{
		RecordSize: rm.FECSRecordSize, RecordCount: b.size, RecordsFree: b.size / 2,
		Subdevice: gpu.Subdevice, HeaderMemory: header, RecordMemory: records,
	}
	if b.object, err = dev.Alloc(dev.Client(), rm.ClassEventBuffer, rmdev.Bytes(&p)); err != nil {
		return nil, fmt.Errorf("the trace's event buffer: %w", err)
	}
	if b.header, err = dev.MapMemory(header, headerBytes); err != nil {
		return nil, fmt.Errorf("the trace's header: %w", err)
	}
	if b.mem, err = dev.MapMemory(records, int(b.size)*rm.FECSRecordSize); err != nil {
		return nil, fmt.Errorf("the trace's records: %w", err)
	}
	b.copied = make([]byte, len(b.mem))
	return b, nil
}

// Offsets in rm.EventBufferHeader, which the driver changes while we read it.
const (
	putOffset     = unsafe.Offsetof(rm.EventBufferHeader{}.RecordPut)
	droppedOffset = unsafe.Offsetof(rm.EventBufferHeader{}.RecordDropped)
)

func (b *buffer) put() uint32 {
	return atomic.LoadUint32((*uint32)(unsafe.Pointer(&b.header[putOffset])))
}

func (b *buffer) dropped() uint64 {
	return atomic.LoadUint64((*uint64)(unsafe.Pointer(&b.header[droppedOffset])))
}

// bindError is a binding that the driver refused.
type bindError struct {
	reason uint32
	err    error
}

func (e *bindError) Error() string {
	return fmt.Sprintf("bind the context-switch trace: %v (%s)", e.err, rm.FECSReasonName(e.reason))
}

func (e *bindError) Unwrap() error { return e.err }

// bind binds the buffer to the GPU's trace and turns it on. It is called once:
// a binding that fails stops the driver's timer for all other listeners.
func (b *buffer) bind(gpu *rmdev.AttachedGPU) error {
	b.get = b.put()
	b.given = b.get
	p := rm.FECSBindV2Params{
		EventBuffer: b.object, RecordSize: rm.FECSPayloadSize, LevelOfDetail: rm.FECSDetailSimple, AllUsers: 1,
	}
	if err := b.dev.Control(gpu.Subdevice, rm.CtrlFECSBindV2, rmdev.Bytes(&p)); err != nil {
		return &bindError{reason: p.Reason, err: err}
	}
	return b.enable(true)
}

func (b *buffer) enable(on bool) error {
	p := rm.EventBufferEnableParams{Flags: rm.EventBufferKeepOldest}
	if on {
		p.Enable = 1
	}
	if b.newest {
		p.Flags = rm.EventBufferKeepNewest
	}
	if err := b.dev.Control(b.object, rm.CtrlEventBufferEnable, rmdev.Bytes(&p)); err != nil {
		return fmt.Errorf("turn the context-switch trace on or off: %w", err)
	}
	return nil
}

// flush makes the driver copy what the hardware of all GPUs holds.
func (b *buffer) flush() error {
	if err := b.dev.Control(b.object, rm.CtrlEventBufferFlush, nil); err != nil {
		return fmt.Errorf("flush the context-switch trace: %w", err)
	}
	return nil
}

// read copies the records that have come since the last read. dropped is how
// many the driver says it had no room for behind them, overtaken how many of
// the oldest were overwritten before they were read. The bytes are good until
// the next read.
func (b *buffer) read() (records []byte, dropped, overtaken uint64, err error) {
	put := b.put()
	if put >= b.size {
		return nil, 0, 0, fmt.Errorf("the driver's put index %d is beyond the %d records of the buffer", put, b.size)
	}
	n := b.distance(b.get, put)
	if n == 0 {
		return nil, 0, 0, nil
	}
	b.copy(b.get, n)
	if b.afterCopy != nil {
		b.afterCopy()
	}
	records = b.copied[:n*rm.FECSRecordSize]
	b.get = put
	if b.newest {
		now := b.put()
		if now >= b.size {
			return nil, 0, 0, fmt.Errorf("the driver's put index %d is beyond the %d records of the buffer", now, b.size)
		}
		// All up to the slot that is being written now may be torn.
		if torn := int64(n) + int64(b.distance(put, now)) + 1 - int64(b.size); torn > 0 {
			torn = min(torn, int64(n))
			return records[torn*rm.FECSRecordSize:], 0, uint64(torn), nil
		}
		return records, 0, 0, nil
	}
	if b.distance(b.given, b.get) >= b.size/4 {
		dropped, err = b.giveBack()
	}
	return records, dropped, 0, err
}

// giveBack moves get, so that the driver can write there again.
func (b *buffer) giveBack() (dropped uint64, err error) {
	dropped = b.dropped()
	p := rm.EventBufferUpdateGetParams{RecordGet: b.get}
	if err := b.dev.Control(b.object, rm.CtrlEventBufferUpdateGet, rmdev.Bytes(&p)); err != nil {
		b.newest = true
		if e := b.enable(true); e != nil {
			return dropped, fmt.Errorf("give read records back to the driver: %w", err)
		}
		return dropped, nil
	}
	b.given = b.get
	return dropped, nil
}

// distance is how many records there are from one index to another.
func (b *buffer) distance(from, to uint32) uint32 {
	if to >= from {
		return to - from
	}
	return to + b.size - from
}

// copy copies n records from index get, over the end of the buffer.
func (b *buffer) copy(get, n uint32) {
	first := min(n, b.size-get)
	copy(b.copied, b.mem[get*rm.FECSRecordSize:(get+first)*rm.FECSRecordSize])
	copy(b.copied[first*rm.FECSRecordSize:], b.mem[:(n-first)*rm.FECSRecordSize])
}
