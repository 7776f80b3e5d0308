package rm

// CtrlGPUInfo asks a subdevice for facts about its GPU, each by an index.
const CtrlGPUInfo = 0x20800102

// GPUInfoEntry is one fact of GPUInfoParams.
type GPUInfoEntry struct {
	Index uint32
	Data  uint32 // out
}

// GPUInfoParams are those of CtrlGPUInfo since driver 580. Older drivers have
// fewer entries: see GPUInfoSize.
type GPUInfoParams struct {
	Count   uint32
	Entries [70]GPUInfoEntry
}

// GPUInfoSize is the size of GPUInfoParams in the drivers of a branch, in bytes.
func GPUInfoSize(branch int) int {
	entries := 65
	switch {
	case branch >= 580:
		entries = 70
	case branch >= 575:
		entries = 66
	}
	return 4 + 8*entries
}

// GPUInfoMIGMode as GPUInfoEntry.Index asks whether MIG is on: one of MIG*.
const GPUInfoMIGMode = 0x2a

// What GPUInfoMIGMode answers.
const (
	MIGUnsupported    = 0
	MIGEnabled        = 1
	MIGDisabled       = 2
	MIGEnablePending  = 3
	MIGDisablePending = 4
)

// CtrlChildHandle takes RM's internal class ids, hashes of the classes' names.
// They are the same in drivers 550 to 595.
const (
	InternalClassDevice    = 0xe0ac20
	InternalClassSubdevice = 0x4b01b3
	InternalClassTSG       = 0x2b5b80 // KernelChannelGroupApi
	InternalClassChannel   = 0x5d8d70 // KernelChannel
)
