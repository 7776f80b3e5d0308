package rm

// Controls on a client (NV0000). They need no GPU.
const (
	CtrlVersion            = 0x101 // build version strings
	CtrlClientDatabaseInfo = 0x13d // how many clients and resources there are; root only
	CtrlAttachedIDs        = 0x201 // ids of the GPUs that are initialised
	CtrlGPUIDInfo          = 0x205 // GPU id -> device and subdevice instance
	CtrlProbedIDs          = 0x214 // ids of the GPUs that were found
	CtrlAttachIDs          = 0x215 // initialise GPUs
	CtrlDetachIDs          = 0x216
	CtrlPCIInfo            = 0x21b // GPU id -> PCI address
	CtrlRPCMeter           = 0x488 // turn the RPC meter on or off, or reset it
	CtrlRPCMeterDump       = 0x489 // read the RPC meter's log
	CtrlHandleInfo         = 0xd02 // parent or class of an object
	CtrlAccessRights       = 0xd03 // quiet where the client does not exist
	CtrlSetShare           = 0xd04
	CtrlChildHandle        = 0xd05 // first child of a class
	CtrlShareObject        = 0xd06
)

// Controls on a device (NV0080).
const (
	CtrlDeviceChannelList  = 0x0080170d
	CtrlDeviceStopRunlist  = 0x00801711
	CtrlDeviceStartRunlist = 0x00801712
	CtrlDeviceIdleChannels = 0x00801714
)

// Controls on a subdevice (NV2080).
const (
	CtrlGPUName            = 0x20800110
	CtrlGPUID              = 0x20800142
	CtrlGPUUUID            = 0x2080014a
	CtrlEngines            = 0x20800170
	CtrlEngineRunlists     = 0x20800179 // engine -> runlist; root only
	CtrlGPUPIDs            = 0x2080018d
	CtrlGPUPIDInfo         = 0x2080018e
	CtrlSetComputePolicy   = 0x20800194
	CtrlGetComputePolicy   = 0x20800195
	CtrlGPUTime            = 0x20800403
	CtrlGPUTimeCorrelation = 0x20800406 // pairs of CPU and GPU time
	CtrlFIFOInfo           = 0x20801109
	CtrlDisableChannels    = 0x2080110b
	CtrlSetSchedPolicy     = 0x20801115
	CtrlAllocatedChannels  = 0x20801119
	CtrlTSGUniqueIDs       = 0x20801123 // not in 550
	CtrlChannelUniqueIDs   = 0x20801124 // not in 550
	CtrlSetPreemptionMode  = 0x20801210
	CtrlContextSwitchStats = 0x20801215
	CtrlFECSBind           = 0x20801231
	CtrlContextSwitchModes = 0x20801235
	CtrlFECSBindV2         = 0x20801238
)

// Controls on an event buffer (NV_EVENT_BUFFER).
const (
	CtrlEventBufferEnable    = 0x90cd0101
	CtrlEventBufferUpdateGet = 0x90cd0102
	CtrlEventBufferFlush     = 0x90cd0104 // copies what the hardware buffers of all GPUs hold; no parameters
)

// Controls on a TSG (NVA06C).
const (
	CtrlTSGSchedule      = 0xa06c0101
	CtrlTSGBind          = 0xa06c0102
	CtrlTSGSetTimeslice  = 0xa06c0103
	CtrlTSGGetTimeslice  = 0xa06c0104
	CtrlTSGPreempt       = 0xa06c0105
	CtrlTSGInfo          = 0xa06c0106
	CtrlTSGSetInterleave = 0xa06c0107
	CtrlTSGGetInterleave = 0xa06c0108 // in the header, but no driver answers it: there is no reading back
	CtrlTSGMakeRealtime  = 0xa06c0110
)

// Controls on a channel (NVA06F and, for some, the class of its generation).
const (
	CtrlResetIsolatedChannel  = 0x506f0105
	CtrlSetTPCPartition       = 0x90670102 // on a context share; kernel callers only
	CtrlClassEngineID         = 0x906f0101
	CtrlResetChannel          = 0x906f0102
	CtrlChannelSchedule       = 0xa06f0103
	CtrlChannelBind           = 0xa06f0104
	CtrlSetErrorNotifier      = 0xa06f0108
	CtrlChannelSetInterleave  = 0xa06f0109
	CtrlChannelGetInterleave  = 0xa06f0110
	CtrlChannelRestartRunlist = 0xa06f0111
	CtrlChannelStop           = 0xa06f0112
	CtrlChannelContextID      = 0xa06f0113 // context id as the context-switch trace has it; not in 550
	CtrlChannelHWState        = 0xb06f010f
	CtrlWorkSubmitToken       = 0xc36f0108 // holds runlist and channel number
)
