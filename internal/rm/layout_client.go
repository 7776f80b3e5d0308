package rm

// Parameters of controls on a client (NV0000).

// ClientDatabaseInfoParams are those of CtrlClientDatabaseInfo.
type ClientDatabaseInfoParams struct {
	Clients   uint32 // out
	_         uint32
	Resources uint64 // out
}

// HandleInfoParams are those of CtrlHandleInfo.
type HandleInfoParams struct {
	Object uint32
	Index  uint32 // HandleInfoParent or HandleInfoClass
	Result uint64 // out; a handle fills only the low half
}

// What HandleInfoParams.Index asks for.
const (
	HandleInfoParent = 1
	HandleInfoClass  = 2
)

// AccessRightsParams are those of CtrlAccessRights. A client that does not
// exist is an error without a line in the kernel log (measured on an H200,
// driver 580.159.04); with other controls it makes one.
type AccessRightsParams struct {
	Object uint32
	Client uint32 // the object's owner: any client
	Rights uint32 // out: mask
}

// ChildHandleParams are those of CtrlChildHandle.
type ChildHandleParams struct {
	Parent uint32
	Class  uint32 // one of InternalClass*
	Object uint32 // out: 0 where there is none
}

// MaxGPUs is how many GPUs the lists of RM have room for.
const MaxGPUs = 32

// NoGPU ends a list of GPU ids.
const NoGPU = 0xffffffff

// AttachedIDsParams are those of CtrlAttachedIDs.
type AttachedIDsParams struct {
	IDs [MaxGPUs]uint32 // out, up to NoGPU
}

// ProbedIDsParams are those of CtrlProbedIDs.
type ProbedIDsParams struct {
	IDs      [MaxGPUs]uint32 // out, up to NoGPU
	Excluded [MaxGPUs]uint32 // out
	Flags    [MaxGPUs]uint32 // out; since driver 560
}

// AttachIDsParams are those of CtrlAttachIDs.
type AttachIDsParams struct {
	IDs    [MaxGPUs]uint32
	Failed uint32 // out
}

// AttachAllIDs as the first of AttachIDsParams.IDs attaches all GPUs.
const AttachAllIDs = 0xffff

// DetachIDsParams are those of CtrlDetachIDs.
type DetachIDsParams struct {
	IDs [MaxGPUs]uint32
}

// GPUIDInfoParams are those of CtrlGPUIDInfo.
type GPUIDInfoParams struct {
	GPUID             uint32
	Flags             uint32 // out
	DeviceInstance    uint32 // out
	SubdeviceInstance uint32 // out
	SLIStatus         uint32 // out
	BoardID           uint32 // out
	GPUInstance       uint32 // out
	NUMANode          int32  // out
}

// PCIInfoParams are those of CtrlPCIInfo.
type PCIInfoParams struct {
	GPUID  uint32
	Domain uint32 // out
	Bus    uint16 // out
	Slot   uint16 // out
}

// RPCMeterParams are those of CtrlRPCMeter.
type RPCMeterParams struct {
	Cmd uint32
}

// What RPCMeterParams.Cmd does.
const (
	RPCMeterOff   = 0
	RPCMeterOn    = 1
	RPCMeterReset = 2 // drops the log, whoever it was for
)

// RPCMeterEntry is one RPC to the GSP that RM waited for.
type RPCMeterEntry struct {
	Start    uint64 // ns, CLOCK_MONOTONIC_RAW
	End      uint64 // ns
	Function uint64 // RPCControl, ...
	Extra    uint64
}

// Functions of RPCs to the GSP, as the meter gives them.
const (
	RPCFree    = 10
	RPCDup     = 21
	RPCControl = 76
	RPCAlloc   = 103
)

// RPCMeterEntries is how many entries one dump holds.
const RPCMeterEntries = 100

// RPCMeterDumpParams are those of CtrlRPCMeterDump. It is refused while the
// meter is on.
type RPCMeterDumpParams struct {
	First     uint32 // always 0: a later entry is looked up by a cursor that a reset leaves dangling
	Count     uint32 // out
	Remaining uint32 // out
	_         uint32
	Elapsed   uint64 // out, ns
	Entries   [RPCMeterEntries]RPCMeterEntry
}
