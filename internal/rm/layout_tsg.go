package rm

// Parameters of controls on a TSG (NVA06C) and on a channel (NVA06F and later).

// ScheduleParams are those of CtrlTSGSchedule and CtrlChannelSchedule. Drivers
// before 580 have only the first two bytes: see LayoutInfo.ScheduleSize.
type ScheduleParams struct {
	Enable     uint8
	SkipSubmit uint8
	SkipEnable uint8 // since driver 580
}

// BindParams are those of CtrlTSGBind and CtrlChannelBind.
type BindParams struct {
	EngineType uint32 // NV2080 engine type
}

// TimesliceParams are those of CtrlTSGSetTimeslice and CtrlTSGGetTimeslice.
// Reading gives RM's own copy, 1024 on a TSG that nobody has set, whatever the
// hardware does.
type TimesliceParams struct {
	TimesliceUS uint64 // microseconds
}

// DefaultTimesliceUS is what RM has for a TSG that nobody has set, in
// microseconds.
const DefaultTimesliceUS = 1024

// PreemptParams are those of CtrlTSGPreempt.
type PreemptParams struct {
	Wait          uint8 // wait until it is done; repeated preempts must
	ManualTimeout uint8
	_             [2]uint8
	TimeoutUS     uint32 // microseconds, at most MaxPreemptTimeoutUS, where ManualTimeout
}

// MaxPreemptTimeoutUS is the longest timeout of a preempt, in microseconds.
const MaxPreemptTimeoutUS = 1_000_000

// TSGInfoParams are those of CtrlTSGInfo.
type TSGInfoParams struct {
	TSG uint32 // out: hardware number, unique only in its runlist
}

// InterleaveParams are those of CtrlTSGSetInterleave and
// CtrlChannelSetInterleave. There is no reading back.
type InterleaveParams struct {
	Level uint32
}

// Interleave levels.
const (
	InterleaveLow    = 0
	InterleaveMedium = 1
	InterleaveHigh   = 2
)

// RealtimeParams are those of CtrlTSGMakeRealtime.
type RealtimeParams struct {
	Realtime uint8
}

// RestartRunlistParams are those of CtrlChannelRestartRunlist.
type RestartRunlistParams struct {
	Force      uint8
	BypassWait uint8
}

// StopParams are those of CtrlChannelStop: the channel is killed.
type StopParams struct {
	Immediate uint8
}

// ContextIDParams are those of CtrlChannelContextID. Not in driver 550.
type ContextIDParams struct {
	ContextID uint32 // out: as the context-switch trace reports it
}

// WorkSubmitTokenParams are those of CtrlWorkSubmitToken.
type WorkSubmitTokenParams struct {
	Token uint32 // out: see WorkSubmitToken
}

// WorkSubmitToken takes a token apart: the channel's runlist and its number in
// that runlist. So are the tokens of Turing to Blackwell GPUs made.
func WorkSubmitToken(token uint32) (runlist, channel uint32) {
	return token >> 16 & 0x7f, token & 0xfff
}

// HWStateParams are those of CtrlChannelHWState.
type HWStateParams struct {
	State uint32 // out: HWState* bits
}

// Bits of HWStateParams.State.
const (
	HWStateNext        = 1 << 0
	HWStateReload      = 1 << 1
	HWStatePending     = 1 << 2
	HWStateEngineFault = 1 << 3
	HWStatePBDMAFault  = 1 << 4
	HWStateAcquireFail = 1 << 5
)

// ClassEngineIDParams are those of CtrlClassEngineID.
type ClassEngineIDParams struct {
	Object        uint32
	ClassEngineID uint32 // out
	ClassID       uint32 // out
	EngineID      uint32 // out
}
