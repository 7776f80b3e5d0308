package rm

import (
	"strings"
	"testing"
)

// The ioctl numbers that a CUDA process was seen to use.
func TestIoctl(t *testing.T) {
	for _, c := range []struct {
		nr, size, want uint32
	}{
		{EscControl, 32, 0xc020462a},
		{EscAlloc, 32, 0xc020462b},
		{EscAlloc, 48, 0xc030462b},
		{EscFree, 16, 0xc0104629},
		{EscDup, 28, 0xc01c4634},
		{EscMapMemory, 56, 0xc038464e},
		{EscRegisterFD, 4, 0xc00446c9},
		{EscAllocOSEvent, 16, 0xc01046ce},
		{EscXfer, 16, 0xc01046d3},
		{EscCardInfo, 0x48 * MaxCards, 0xc90046c8},
	} {
		got := Ioctl(c.nr, c.size)
		if got != c.want {
			t.Errorf("Ioctl(%#x, %d) = %#x, want %#x", c.nr, c.size, got, c.want)
		}
		nr, size, ok := IoctlParts(got)
		if uint32(nr) != c.nr || size != c.size || !ok {
			t.Errorf("IoctlParts(%#x) = %#x, %d, %v", got, nr, size, ok)
		}
	}
	for _, cmd := range []uint32{0x5401, 0x8020462a, 0xc0204729, 27} { // TCGETS, read only, another magic, an ioctl of nvidia-uvm
		if _, _, ok := IoctlParts(cmd); ok {
			t.Errorf("%#x was taken for one of the driver's", cmd)
		}
	}
}

func TestEscName(t *testing.T) {
	for nr, want := range map[uint8]string{
		0x2a: "NV_ESC_RM_CONTROL", 0x2b: "NV_ESC_RM_ALLOC", 211: "NV_ESC_IOCTL_XFER_CMD", 214: "NV_ESC_SYS_PARAMS", 0x99: "0x99",
	} {
		if got := EscName(nr); got != want {
			t.Errorf("EscName(%#x) = %q, want %q", nr, got, want)
		}
	}
}

func TestShapesScheduling(t *testing.T) {
	for _, c := range []struct {
		kind, number uint32
		want         bool
	}{
		{EscControl, CtrlTSGSetTimeslice, true},
		{EscControl, CtrlTSGPreempt, true},
		{EscControl, CtrlTSGInfo, true},
		{EscControl, CtrlWorkSubmitToken, true},
		{EscControl, CtrlChannelStop, true},
		{EscControl, CtrlSetComputePolicy, true},
		{EscControl, CtrlGPUTime, false},
		{EscControl, 0x20800102, false},
		{EscControl, ClassTSG, false}, // a class is no command
		{EscAlloc, ClassTSG, true},
		{EscAlloc, ClassChannelHopper, true},
		{EscAlloc, ClassClient, true},
		{EscAlloc, ClassDevicelessMemory, false},
		{EscAlloc, CtrlTSGPreempt, false},
		{EscFree, 0, true},
		{EscDup, 0, true},
		{EscMapMemory, 0, false},
		{EscCardInfo, 0, false},
	} {
		if got := ShapesScheduling(c.kind, c.number); got != c.want {
			t.Errorf("ShapesScheduling(%s, %#x) = %v", EscName(uint8(c.kind)), c.number, got)
		}
	}
}

// Every slice lies inside the parameters of its call, and no call is listed
// twice.
func TestShapesLieInTheirParameters(t *testing.T) {
	sizes := map[uint32]int{
		CtrlTSGSchedule: 3, CtrlTSGBind: 4, CtrlTSGSetTimeslice: 8, CtrlTSGGetTimeslice: 8, CtrlTSGPreempt: 8, CtrlTSGInfo: 4,
		CtrlTSGSetInterleave: 4, CtrlTSGGetInterleave: 4, CtrlTSGMakeRealtime: 1, CtrlChannelSchedule: 3, CtrlChannelBind: 4,
		CtrlChannelSetInterleave: 4, CtrlChannelRestartRunlist: 2, CtrlChannelStop: 1, CtrlChannelContextID: 4, CtrlWorkSubmitToken: 4,
		CtrlDisableChannels: 0x218, CtrlSetSchedPolicy: 8, CtrlSetPreemptionMode: 0x20, CtrlSetComputePolicy: 8,
		ClassRoot: 0x6c, ClassRootNonPriv: 0x6c, ClassClient: 0x6c, ClassDevice: 0x38, ClassSubdevice: 4, ClassTSG: 0x14,
	}
	for _, c := range ChannelClasses {
		sizes[c] = 0x168 // 550's, the shortest
		if _, ok := ClassShape(c); !ok {
			t.Errorf("channel class %s has no shape", ClassName(c))
		}
	}
	for _, list := range [][]Shape{ShapingControls, ShapingClasses} {
		seen := map[uint32]bool{}
		for _, s := range list {
			if seen[s.Number] {
				t.Errorf("%#x is listed twice", s.Number)
			}
			seen[s.Number] = true
			if s.Length > MaxShapeLength {
				t.Errorf("%#x: a slice of %d bytes", s.Number, s.Length)
			}
			if s.Length > 0 && s.Offset+s.Length > sizes[s.Number] {
				t.Errorf("%#x: slice %d+%d of %d bytes", s.Number, s.Offset, s.Length, sizes[s.Number])
			}
		}
	}
	if s, ok := ControlShape(CtrlSetPreemptionMode); !ok || s.Offset != 8 {
		t.Errorf("preemption mode: %+v, %v", s, ok)
	}
	if s, ok := ClassShape(0x1234); ok || s != (Shape{}) {
		t.Errorf("class 0x1234: %+v, %v", s, ok)
	}
}

func TestLayout(t *testing.T) {
	for _, c := range []struct {
		driver string
		want   LayoutInfo
	}{
		{"550.90.12", LayoutInfo{Branch: 550, Compared: true, ScheduleSize: 2, ProbedIDsSize: 256, EnginesSize: 260, EngineRunlistsSize: 512}},
		{"560.35.03", LayoutInfo{Branch: 560, Compared: true, ScheduleSize: 2, ProbedIDsSize: 256, EnginesSize: 340, EngineRunlistsSize: 672, ContextID: true}},
		{"570.211.01", LayoutInfo{Branch: 570, Compared: true, ScheduleSize: 2, ProbedIDsSize: 256, EnginesSize: 340, EngineRunlistsSize: 1008, EngineRunlists: true, UniqueIDs: true, ContextID: true}},
		{"580.159.04", LayoutInfo{Branch: 580, Compared: true, ScheduleSize: 3, ProbedIDsSize: 384, EnginesSize: 340, EngineRunlistsSize: 1008, EngineRunlists: true, UniqueIDs: true, ContextID: true}},
		{"595.45.04", LayoutInfo{Branch: 595, Compared: true, ScheduleSize: 3, ProbedIDsSize: 384, EnginesSize: 340, EngineRunlistsSize: 1008, EngineRunlists: true, UniqueIDs: true, ContextID: true}},
		{"615.71.09", LayoutInfo{Branch: 615, Compared: false, ScheduleSize: 3, ProbedIDsSize: 384, EnginesSize: 340, EngineRunlistsSize: 1008, EngineRunlists: true, UniqueIDs: true, ContextID: true}},
		{"572.16", LayoutInfo{Branch: 572, Compared: false, ScheduleSize: 2, ProbedIDsSize: 256, EnginesSize: 340, EngineRunlistsSize: 1008, EngineRunlists: true, UniqueIDs: true, ContextID: true}},
	} {
		c.want.Driver = c.driver
		got, err := Layout(c.driver)
		if err != nil || got != c.want {
			t.Errorf("Layout(%q) = %+v, %v; want %+v", c.driver, got, err, c.want)
		}
	}
	for driver, want := range map[string]string{"535.183.01": "550 is the oldest", "": "want a number", "vanilla": "want a number"} {
		if _, err := Layout(driver); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Layout(%q): %v, want ... %s ...", driver, err, want)
		}
	}
}
