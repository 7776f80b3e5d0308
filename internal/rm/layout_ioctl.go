package rm

// The parameters of the ioctls, as the driver reads and writes them in the
// caller's memory. All are little-endian and padded here as a C compiler pads
// them on a 64-bit machine; they are the same in drivers 550 to 595. In each
// struct of this package _ is padding, and a truth value is a byte, because
// what another process wrote there may be neither 0 nor 1.

// FreeParams are those of EscFree (NVOS00).
type FreeParams struct {
	Client uint32
	Parent uint32 // not checked by RM
	Object uint32
	Status uint32 // out
}

// ControlParams are those of EscControl (NVOS54).
type ControlParams struct {
	Client     uint32
	Object     uint32
	Cmd        uint32
	Flags      uint32
	Params     uint64 // address of the command's own parameters
	ParamsSize uint32 // must be exactly what the command wants
	Status     uint32 // out
}

// AllocParams are those of EscAlloc in its short form (NVOS21).
type AllocParams struct {
	Client     uint32 // "root" in the driver's words; 0 to allocate a client
	Parent     uint32
	Object     uint32 // in and out: 0 lets RM choose
	Class      uint32
	Params     uint64
	ParamsSize uint32
	Status     uint32 // out
}

// Alloc64Params are those of EscAlloc in its long form (NVOS64). The first 24
// bytes are those of the short form.
type Alloc64Params struct {
	Client     uint32
	Parent     uint32
	Object     uint32 // in and out
	Class      uint32
	Params     uint64
	Rights     uint64 // address of a mask of access rights; 0: none asked for
	ParamsSize uint32
	Flags      uint32
	Status     uint32 // out
	_          uint32
}

// DupParams are those of EscDup (NVOS55).
type DupParams struct {
	Client    uint32 // destination
	Parent    uint32
	Object    uint32 // in and out
	SrcClient uint32
	SrcObject uint32
	Flags     uint32
	Status    uint32 // out
}

// MapMemoryParams are those of EscMapMemory (NVOS33, with a descriptor behind).
// The mapping itself is then made by mmap of FD at offset 0.
type MapMemoryParams struct {
	Client  uint32
	Device  uint32 // a device or subdevice; the client itself for deviceless memory
	Memory  uint32
	_       uint32
	Offset  uint64 // bytes
	Length  uint64 // bytes
	Address uint64 // out
	Status  uint32 // out
	Flags   uint32 // MapReadOnly, or 0
	FD      int32  // a descriptor of its own, freshly opened on the control device
	_       uint32
}

// MapReadOnly in MapMemoryParams.Flags asks for a mapping that can only be read.
const MapReadOnly = 1

// UnmapMemoryParams are those of EscUnmapMemory (NVOS34).
type UnmapMemoryParams struct {
	Client  uint32
	Device  uint32
	Memory  uint32
	_       uint32
	Address uint64
	Status  uint32 // out
	Flags   uint32
}

// XferParams are those of EscXfer: another escape, whose parameters are
// elsewhere.
type XferParams struct {
	Cmd  uint32 // an escape, such as EscControl
	Size uint32 // bytes
	Ptr  uint64
}

// CardInfo is one entry of the table that EscCardInfo fills, one for each
// possible GPU.
type CardInfo struct {
	Valid     uint8
	_         [3]uint8
	Domain    uint32
	Bus       uint8
	Slot      uint8
	Function  uint8
	_         uint8
	VendorID  uint16
	DeviceID  uint16
	GPUID     uint32
	Interrupt uint16
	_         [2]uint8
	RegBase   uint64
	RegSize   uint64 // bytes
	FBBase    uint64
	FBSize    uint64 // bytes
	Minor     uint32 // of /dev/nvidiaN
	Name      [10]uint8
	_         [2]uint8
}

// MaxCards is how many entries a table for EscCardInfo has.
const MaxCards = 32

// RegisterFDParams are those of EscRegisterFD, sent on a GPU's device file.
type RegisterFDParams struct {
	ControlFD int32 // descriptor of the control device
}

// OSEventParams are those of EscAllocOSEvent and EscFreeOSEvent.
type OSEventParams struct {
	Client uint32
	Device uint32
	FD     uint32
	Status uint32 // out
}

// VersionParams are those of EscCheckVersion.
type VersionParams struct {
	Cmd     uint32 // VersionQuery
	Reply   uint32
	Version [64]uint8 // zero-terminated
}

// VersionQuery in VersionParams.Cmd asks for the driver's version without
// comparing it.
const VersionQuery = '2'
