package rm

// Parameters of controls on a subdevice (NV2080).

// MaxEngines is how many engines the lists of RM have room for, since driver
// 570.
const MaxEngines = 0x54

// NoRunlist marks an engine in EngineRunlistsParams that has no runlist, or
// whose runlist RM could not tell (RunlistError).
const (
	NoRunlist    = 0xffffffff
	RunlistError = 0xfffffffb
)

// GPUIDParams are those of CtrlGPUID.
type GPUIDParams struct {
	GPUID uint32 // out
}

// EnginesParams are those of CtrlEngines.
type EnginesParams struct {
	Count   uint32             // out
	Engines [MaxEngines]uint32 // out
}

// EngineRunlistsParams are those of CtrlEngineRunlists. Driver 550 has shorter
// ones, without runlist ids.
type EngineRunlistsParams struct {
	Engines  [MaxEngines]uint32 // in: NV2080 engine types, as CtrlEngines lists them; 0 past the last
	PRIBases [MaxEngines]uint32 // out
	Runlists [MaxEngines]uint32 // out: or NoRunlist, RunlistError
}

// GPUPIDsParams are those of CtrlGPUPIDs.
type GPUPIDsParams struct {
	IDType uint32 // 0: by class
	ID     uint32 // class: ClassSubdevice for all, ClassMPS for clients of MPS, any other for those with a channel
	Count  uint32 // out
	PIDs   [950]uint32
}

// ComputePolicy is one policy of CtrlSetComputePolicy and CtrlGetComputePolicy.
type ComputePolicy struct {
	Type  uint32 // 0: timeslice
	Value uint32 // 0 default, 1 short, 2 medium, 3 long
}

// ComputePoliciesParams are those of CtrlGetComputePolicy.
type ComputePoliciesParams struct {
	Count    uint32 // out
	Policies [32]ComputePolicy
}

// GPUTimeParams are those of CtrlGPUTime.
type GPUTimeParams struct {
	Time uint64 // out: ns, PTIMER
}

// MaxTimeSamples is how many samples CtrlGPUTimeCorrelation takes at most.
const MaxTimeSamples = 16

// TimeSample is one pair of clocks read together.
type TimeSample struct {
	CPU uint64 // in the unit of the clock that was asked for
	GPU uint64 // ns, PTIMER
}

// GPUTimeCorrelationParams are those of CtrlGPUTimeCorrelation.
type GPUTimeCorrelationParams struct {
	Clock   uint8 // one of TimeClock*
	Count   uint8 // at most MaxTimeSamples
	_       [6]uint8
	Samples [MaxTimeSamples]TimeSample // out
}

// CPU clocks for GPUTimeCorrelationParams.
const (
	TimeClockOS          = 1 // wall clock, microseconds
	TimeClockTSC         = 2
	TimeClockPlatformAPI = 3
	TimeClockGSP         = 4
)

// AllocatedChannelsParams are those of CtrlAllocatedChannels.
type AllocatedChannelsParams struct {
	Runlist uint32
	Mask    [128]uint32 // out: bit n of all: channel n is allocated
}

// MaxTSGChannels is how many channels of a TSG the lists of RM have room for.
const MaxTSGChannels = 128

// TSGUniqueIDsParams are those of CtrlTSGUniqueIDs. RM does not check whose the
// TSG is. Not in driver 550.
type TSGUniqueIDsParams struct {
	Client   uint32
	Object   uint32                 // a TSG, or one of its channels
	TSG      uint32                 // out: unique on the system
	Channels uint32                 // out: how many
	Contexts [MaxTSGChannels]uint32 // out: context ids, unique on the system
	VASpaces [MaxTSGChannels]uint32 // out
	VEIDs    [MaxTSGChannels]uint32 // out: subcontexts
}

// ChannelUniqueIDsParams are those of CtrlChannelUniqueIDs. Not in driver 550.
type ChannelUniqueIDsParams struct {
	Clients  [MaxTSGChannels]uint32
	Channels [MaxTSGChannels]uint32
	Count    uint32
	Contexts [MaxTSGChannels]uint32 // out
}

// SchedPolicyParams are those of CtrlSetSchedPolicy.
type SchedPolicyParams struct {
	Flags  uint32
	Policy uint32
}

// DisableChannelsParams are those of CtrlDisableChannels.
type DisableChannelsParams struct {
	Disable        uint8
	_              [3]uint8
	Count          uint32
	OnlyScheduling uint8
	RewindGPPut    uint8
	_              [6]uint8
	PreemptEvent   uint64
	Clients        [64]uint32
	Channels       [64]uint32
}

// ContextSwitchStatsParams are those of CtrlContextSwitchStats: counters that
// the GSP keeps for a TSG of the graphics engine. Sent on the target's own
// client.
type ContextSwitchStatsParams struct {
	TSG     uint32 // or a channel
	Flags   uint32 // bit 0 resets
	Save    uint32 // out: all saves
	Restore uint32 // out
	WFI     uint32 // out: saves while idle: the kernel had ended
	CTA     uint32 // out: saves between thread blocks
	CILP    uint32 // out: saves between instructions, in the middle of a kernel
	GFXP    uint32 // out: saves in the middle of a draw
}

// ContextSwitchModesParams are those of CtrlContextSwitchModes.
type ContextSwitchModesParams struct {
	Channel uint32
	Zcull   uint32 // out
	PM      uint32 // out
	SMPC    uint32 // out
	CILP    uint32 // out: 0 WFI, 1 CTA, 2 CILP
	GFXP    uint32 // out
}

// PreemptionModeParams are those of CtrlSetPreemptionMode.
type PreemptionModeParams struct {
	Flags      uint32 // bit 0: set CILP, bit 1: set GFXP
	Channel    uint32
	GFXP       uint32
	CILP       uint32
	RouteFlags uint32
	_          uint32
	Route      uint64
}
