package rm

// Parameters of allocations, by class.

// ClientAlloc is of ClassClient (NV0000). In driver 550 it ends 12 bytes
// earlier.
type ClientAlloc struct {
	Client      uint32
	ProcessID   uint32
	ProcessName [100]uint8
	_           uint32
	OSPidInfo   uint64
}

// DeviceAlloc is of ClassDevice (NV0080).
type DeviceAlloc struct {
	DeviceID     uint32 // RM's device instance
	ClientShare  uint32
	TargetClient uint32
	TargetDevice uint32
	Flags        uint32
	_            uint32
	VASpaceSize  uint64
	VAStart      uint64
	VALimit      uint64
	VAMode       uint32
	_            uint32
}

// SubdeviceAlloc is of ClassSubdevice (NV2080).
type SubdeviceAlloc struct {
	SubdeviceID uint32
}

// TSGAlloc is of ClassTSG (KEPLER_CHANNEL_GROUP_A).
type TSGAlloc struct {
	ErrorNotifier    uint32
	ECCErrorNotifier uint32
	VASpace          uint32
	EngineType       uint32 // NV2080 engine type; inside a MIG instance, the instance's own numbering
	VGPUPlugin       uint8
	_                [3]uint8
}

// ContextShareAlloc is of ClassContextShare.
type ContextShareAlloc struct {
	VASpace      uint32
	Flags        uint32
	SubcontextID uint32 // in and out
}

// MemoryDesc describes memory inside ChannelAlloc.
type MemoryDesc struct {
	Base         uint64
	Size         uint64
	AddressSpace uint32
	CacheAttrib  uint32
}

// ChannelAlloc is of the GPFIFO channel classes. The first 0x130 bytes are the
// same in drivers 550 to 595; 550 ends 8 bytes earlier.
type ChannelAlloc struct {
	ErrorNotifier       uint32
	Buffer              uint32
	GPFIFOOffset        uint64
	GPFIFOEntries       uint32
	Flags               uint32
	ContextShare        uint32
	VASpace             uint32
	USERDMemory         [8]uint32
	USERDOffset         [8]uint64
	EngineType          uint32 // 0 for a channel of a TSG: the TSG's engine
	ContextID           uint32 // out: as the context-switch trace reports it
	SubdeviceID         uint32
	ECCErrorNotifier    uint32
	InstanceMem         MemoryDesc
	USERDMem            MemoryDesc
	RAMFCMem            MemoryDesc
	MethodBufferMem     MemoryDesc
	PhysChannelGroup    uint32
	InternalFlags       uint32
	ErrorNotifierMem    MemoryDesc
	ECCErrorNotifierMem MemoryDesc
	ProcessID           uint32
	SubprocessID        uint32
	EncryptIV           [3]uint32
	DecryptIV           [3]uint32
	HMACNonce           [8]uint32
	TPCConfigID         uint32
	_                   uint32
}

// MemoryAlloc is of the memory classes (NV_MEMORY_ALLOCATION_PARAMS).
type MemoryAlloc struct {
	Owner         uint32 // any four characters
	Type          uint32
	Flags         uint32
	Width         uint32
	Height        uint32
	Pitch         int32
	Attr          uint32 // MemoryCached
	Attr2         uint32 // MemoryUserReadOnly
	Format        uint32
	ComprCoverage uint32
	ZcullCoverage uint32
	_             uint32
	RangeLow      uint64
	RangeHigh     uint64
	Size          uint64 // bytes, in and out
	Alignment     uint64
	Offset        uint64
	Limit         uint64 // out
	Address       uint64 // out
	CtagOffset    uint32
	VASpace       uint32
	InternalFlags uint32
	Tag           uint32
	NUMANode      int32
	_             uint32
}

// Attributes for the memory of an event buffer.
const (
	MemoryCached       = 5 << 29 // MemoryAlloc.Attr: write-back. An event buffer was made with it on an H200, driver 580.159.04
	MemoryUserReadOnly = 1 << 22 // MemoryAlloc.Attr2: user space may only read; an event buffer insists on it
)

// EventBufferAlloc is of ClassEventBuffer. The memory is the caller's: two
// objects of one class, for the header and for the records.
type EventBufferAlloc struct {
	BufferHeader  uint64 // out
	RecordBuffer  uint64 // out
	RecordSize    uint32 // bytes
	RecordCount   uint32
	VardataBuffer uint64 // out
	VardataSize   uint32
	RecordsFree   uint32 // notify when so few records are free
	Notification  uint64 // 0, or the descriptor of a registered event and nothing else: the driver would follow it as a pointer
	VardataFree   uint32
	Subdevice     uint32 // must be given: the driver follows it without a check
	Flags         uint32
	HeaderMemory  uint32
	RecordMemory  uint32
	VardataMemory uint32
}
