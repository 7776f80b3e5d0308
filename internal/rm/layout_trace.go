package rm

import "encoding/binary"

// The context-switch trace: an event buffer bound to the GPU's FECS. Layouts
// are the same in drivers 550 to 595.

// FECSBindParams are those of CtrlFECSBind: version 1 records, and refused
// where MIG is on.
type FECSBindParams struct {
	EventBuffer   uint32
	RecordSize    uint32 // bytes of a payload: FECSPayloadSize; RM does not look at it
	LevelOfDetail uint32
	EventFilter   uint32
	AllUsers      uint8
	_             [3]uint8
}

// FECSBindV2Params are those of CtrlFECSBindV2.
type FECSBindV2Params struct {
	EventBuffer   uint32
	RecordSize    uint32 // bytes of a payload: FECSPayloadSize; RM does not look at it
	LevelOfDetail uint32 // one of FECSDetail*; a release driver gives user space FECSDetailSimple, whatever is asked for
	EventFilter   uint32 // for FECSDetailCustom
	AllUsers      uint8  // records of all users' contexts, not only of the caller's
	_             [3]uint8
	Reason        uint32 // out: one of FECSReason*
}

// Levels of detail of the trace.
const (
	FECSDetailFull   = 0
	FECSDetailSimple = 1 // start and end of residency
	FECSDetailCompat = 2
	FECSDetailCustom = 3
)

// Why a binding was refused.
const (
	FECSReasonNone           = 0
	FECSReasonGPUTooOld      = 1
	FECSReasonNotEnabledGPU  = 2
	FECSReasonNotEnabled     = 3 // MIG without a subscription to an instance
	FECSReasonNeedAdmin      = 4
	FECSReasonNeedCapability = 5
)

// FECSReasonName says in words why a binding was refused.
func FECSReasonName(reason uint32) string {
	switch reason {
	case FECSReasonNone:
		return "no reason given"
	case FECSReasonGPUTooOld:
		return "the GPU is too old for it"
	case FECSReasonNotEnabledGPU:
		return "not enabled for this GPU"
	case FECSReasonNotEnabled:
		return "not enabled"
	case FECSReasonNeedAdmin:
		return "needs root"
	case FECSReasonNeedCapability:
		return "needs a capability"
	}
	return hex(reason)
}

// EventBufferEnableParams are those of CtrlEventBufferEnable.
type EventBufferEnableParams struct {
	Enable uint8
	_      [3]uint8
	Flags  uint32 // EventBufferKeepOldest or EventBufferKeepNewest
}

// What a full event buffer does.
const (
	EventBufferKeepOldest = 1 // drops new records and counts them
	EventBufferKeepNewest = 2 // writes over the oldest: a slow reader is overtaken
)

// EventBufferUpdateGetParams are those of CtrlEventBufferUpdateGet.
type EventBufferUpdateGetParams struct {
	RecordGet  uint32 // below the number of records
	VardataGet uint32 // 0 for the context-switch trace
}

// EventBufferHeader stands at the start of the header's memory. The driver
// writes it, at any time.
type EventBufferHeader struct {
	RecordGet      uint32
	RecordPut      uint32 // wraps at the number of records
	RecordCount    uint64
	RecordDropped  uint64
	VardataDropped uint64
}

// FECSRecordSize is the size of a record in the buffer, FECSPayloadSize that of
// its payload; both in bytes.
const (
	FECSRecordSize  = 32
	FECSPayloadSize = 24
)

// Types of records in an event buffer.
const (
	RecordFECSV2 = 2
	RecordFECSV1 = 134
)

// FECSRecord is a version 2 record as it stands in the buffer.
type FECSRecord struct {
	Type            uint16 // RecordFECSV2 or RecordFECSV1
	Subtype         uint16
	Vardata         uint32
	Tag             uint8 // one of FECSTag*
	VMID            uint8
	Seq             uint16 // counts up by one a record; a gap means lost records
	Context         uint32 // context id, or FECSHiddenContext or FECSKernelContext
	PID             uint32 // or FECSHiddenPID or FECSKernelPID
	_               uint16
	GPUInstance     uint8  // MIG
	ComputeInstance uint8  // MIG
	Timestamp       uint64 // ns, the GPU's PTIMER: wall-clock epoch
}

// Tags of context-switch records. User space of a release driver gets only
// FECSTagStart and FECSTagEnd.
const (
	FECSTagRequest      = 0x01
	FECSTagAck          = 0x02
	FECSTagSaveEnd      = 0x03
	FECSTagRestoreStart = 0x04
	FECSTagContextStart = 0x05
	FECSTagStart        = 0x06 // a context became resident
	FECSTagEnd          = 0x07 // it was saved
	FECSTagAckWFI       = 0x0a
	FECSTagAckGFXP      = 0x0b
	FECSTagAckCTAP      = 0x0c
	FECSTagAckCILP      = 0x0d
	FECSTagEngineReset  = 0xfe
	FECSTagInvalidTime  = 0xff
)

// What stands in records of contexts that the reader may not know.
const (
	FECSHiddenPID     = 0
	FECSHiddenContext = 0
	FECSKernelPID     = 0xffffffff
	FECSKernelContext = 0xffffffff
)

// DecodeFECS reads one record of the trace, of either version, from the first
// FECSRecordSize bytes of b. ok is false where b is shorter, or the record is
// of another type.
func DecodeFECS(b []byte) (r FECSRecord, ok bool) {
	if len(b) < FECSRecordSize {
		return r, false
	}
	b = b[:FECSRecordSize]
	r.Type = binary.LittleEndian.Uint16(b[0:])
	if r.Type != RecordFECSV2 && r.Type != RecordFECSV1 {
		return FECSRecord{}, false
	}
	r.Subtype = binary.LittleEndian.Uint16(b[2:])
	r.Vardata = binary.LittleEndian.Uint32(b[4:])
	r.Tag, r.VMID = b[8], b[9]
	r.Seq = binary.LittleEndian.Uint16(b[10:])
	r.Context = binary.LittleEndian.Uint32(b[12:])
	r.PID = binary.LittleEndian.Uint32(b[16:])
	if r.Type == RecordFECSV2 { // version 1 has a pid of 64 bits there
		r.GPUInstance, r.ComputeInstance = b[22], b[23]
	}
	r.Timestamp = binary.LittleEndian.Uint64(b[24:])
	return r, true
}

// FECSTagName is the name of a tag.
func FECSTagName(tag uint8) string {
	if n, ok := fecsTagNames[tag]; ok {
		return n
	}
	return hex(uint32(tag))
}

var fecsTagNames = map[uint8]string{
	FECSTagRequest:      "CTXSW_REQ_BY_HOST",
	FECSTagAck:          "FE_ACK",
	FECSTagSaveEnd:      "SAVE_END",
	FECSTagRestoreStart: "RESTORE_START",
	FECSTagContextStart: "CONTEXT_START",
	FECSTagStart:        "SIMPLE_START",
	FECSTagEnd:          "SIMPLE_END",
	FECSTagAckWFI:       "FE_ACK_WFI",
	FECSTagAckGFXP:      "FE_ACK_GFXP",
	FECSTagAckCTAP:      "FE_ACK_CTAP",
	FECSTagAckCILP:      "FE_ACK_CILP",
	FECSTagEngineReset:  "ENGINE_RESET",
	FECSTagInvalidTime:  "INVALID_TIMESTAMP",
}
