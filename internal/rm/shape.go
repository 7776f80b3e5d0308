package rm

// Shape is an RM call that shapes scheduling, and the slice of its parameters
// that tells how: Length bytes from byte Offset. Length is 0 where the call
// itself says all that is shown of it. A caller that gives a shorter size for
// its parameters has not given the slice: what is in memory there is not his
// answer (a client may be allocated with nothing but a handle). The eBPF programs have the same table,
// through the header that genheader writes.
type Shape struct {
	Number uint32 // command or class
	Offset int
	Length int
}

// MaxShapeLength is the longest slice in the tables of shapes, in bytes.
const MaxShapeLength = 8

// ShapingControls are the control commands that shape scheduling, or tell how
// it is shaped.
var ShapingControls = []Shape{
	{CtrlTSGSchedule, 0, 3}, // the third byte since driver 575
	{CtrlTSGBind, 0, 4},
	{CtrlTSGSetTimeslice, 0, 8},
	{CtrlTSGGetTimeslice, 0, 8},
	{CtrlTSGPreempt, 0, 8},
	{CtrlTSGInfo, 0, 4},
	{CtrlTSGSetInterleave, 0, 4},
	{CtrlTSGGetInterleave, 0, 4},
	{CtrlTSGMakeRealtime, 0, 1},
	{CtrlChannelSchedule, 0, 3},
	{CtrlChannelBind, 0, 4},
	{CtrlChannelSetInterleave, 0, 4},
	{CtrlChannelRestartRunlist, 0, 2},
	{CtrlChannelStop, 0, 1},
	{CtrlChannelContextID, 0, 4},
	{CtrlWorkSubmitToken, 0, 4},
	{CtrlResetChannel, 0, 0},
	{CtrlResetIsolatedChannel, 0, 0},
	{CtrlSetTPCPartition, 0, 0},
	{CtrlDeviceStopRunlist, 0, 0},
	{CtrlDeviceStartRunlist, 0, 0},
	{CtrlDeviceIdleChannels, 0, 0},
	{CtrlDisableChannels, 0, 8}, // disable, number of channels
	{CtrlSetSchedPolicy, 0, 8},
	{CtrlSetPreemptionMode, 8, 8}, // graphics, compute
	{CtrlSetComputePolicy, 0, 8},  // type, value
}

// ShapingClasses are the classes whose allocation shapes scheduling, or tells
// what belongs together: clients, devices, TSGs, channels.
var ShapingClasses = []Shape{
	{ClassRoot, 4, 4}, // RM makes a ClassClient of each of these
	{ClassRootNonPriv, 4, 4},
	{ClassClient, 4, 4}, // process id, where given
	{ClassDevice, 0, 4},
	{ClassSubdevice, 0, 4},
	{ClassTSG, 0xc, 4}, // engine type
	{ClassContextShare, 0, 0},
	{ClassMPS, 0, 0},
	{ClassChannelVolta, 0x80, 8}, // engine type; context id
	{ClassChannelTuring, 0x80, 8},
	{ClassChannelAmpere, 0x80, 8},
	{ClassChannelHopper, 0x80, 8},
	{ClassChannelBlackwellA, 0x80, 8},
	{ClassChannelBlackwellB, 0x80, 8},
}

// ShapesScheduling tells whether a call shapes scheduling. kind is the escape;
// number is the command of an EscControl and the class of an EscAlloc. A free
// or a dup does not say the class of its object, so each of them may.
func ShapesScheduling(kind, number uint32) bool {
	switch kind {
	case EscControl:
		return shapeOf(ShapingControls, number) != nil
	case EscAlloc:
		return shapeOf(ShapingClasses, number) != nil
	case EscFree, EscDup, EscIdleChannels:
		return true
	}
	return false
}

// ControlShape is the shape of a control command; ok is false where it does not
// shape scheduling.
func ControlShape(cmd uint32) (s Shape, ok bool) { return deref(shapeOf(ShapingControls, cmd)) }

// ClassShape is the shape of an allocation of a class; ok is false where it does
// not shape scheduling.
func ClassShape(class uint32) (s Shape, ok bool) { return deref(shapeOf(ShapingClasses, class)) }

func deref(s *Shape) (Shape, bool) {
	if s == nil {
		return Shape{}, false
	}
	return *s, true
}

func shapeOf(shapes []Shape, number uint32) *Shape {
	for i := range shapes {
		if shapes[i].Number == number {
			return &shapes[i]
		}
	}
	return nil
}
