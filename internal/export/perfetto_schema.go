package export

// Field numbers and values of Perfetto's trace format, from its schema
// (protos/perfetto/trace/trace_packet.proto and what that imports).
const (
	fTracePacket = 1 // Trace.packet

	// TracePacket
	fClockSnapshot    = 6
	fTimestamp        = 8
	fSequenceID       = 10 // trusted_packet_sequence_id
	fTrackEvent       = 11
	fInternedData     = 12
	fSequenceFlags    = 13
	fTimestampClockID = 58
	fPacketDefaults   = 59
	fTrackDescriptor  = 60
	fFirstOnSequence  = 87

	seqIncrementalStateCleared = 1
	seqNeedsIncrementalState   = 2

	// ClockSnapshot
	fClocks       = 1
	fPrimaryClock = 2
	fClockID      = 1 // of Clock
	fClockTime    = 2
	clockRealtime = 1
	clockMono     = 3
	clockMonoRaw  = 5

	// TrackDescriptor
	fTrackUUID       = 1
	fTrackName       = 2
	fTrackProcess    = 3
	fTrackParent     = 5
	fTrackCounter    = 8
	fTrackOrder      = 11 // child_ordering
	fTrackRank       = 12 // sibling_order_rank
	trackOrderByRank = 3

	fProcessPID  = 1 // ProcessDescriptor
	fProcessName = 6

	fCounterUnitName = 6 // CounterDescriptor

	// TrackEvent
	fCategoryIIDs  = 3
	fDebug         = 4
	fType          = 9
	fNameIID       = 10
	fEventTrack    = 11
	fDoubleCounter = 44
	typeSliceBegin = 1
	typeSliceEnd   = 2
	typeInstant    = 3
	typeCounter    = 4

	// DebugAnnotation
	fDebugNameIID = 1
	fDebugBool    = 2
	fDebugUint    = 3
	fDebugInt     = 4
	fDebugDouble  = 5
	fDebugString  = 6

	// InternedData, and iid and name of its entries
	fCategories = 1
	fEventNames = 2
	fDebugNames = 3
	fIID        = 1
	fIName      = 2
)
