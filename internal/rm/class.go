package rm

import "slices"

// Object classes that tsgtop allocates, looks for or shows by name.
const (
	ClassRoot             = 0x0 // a client, as kernel code allocates it
	ClassRootNonPriv      = 0x1
	ClassClient           = 0x41 // a client, as user space allocates it
	ClassOSEvent          = 0x79
	ClassDevice           = 0x80
	ClassSubdevice        = 0x2080
	ClassMPS              = 0x900e
	ClassContextShare     = 0x9067
	ClassVASpace          = 0x90f1
	ClassEventBuffer      = 0x90cd
	ClassDevicelessMemory = 0x90ce
	ClassTSG              = 0xa06c
)

// GPFIFO channel classes, one for each generation that changed them.
const (
	ClassChannelKeplerA    = 0xa06f
	ClassChannelKeplerB    = 0xa16f
	ClassChannelMaxwell    = 0xb06f
	ClassChannelPascal     = 0xc06f
	ClassChannelVolta      = 0xc36f
	ClassChannelTuring     = 0xc46f
	ClassChannelAmpere     = 0xc56f
	ClassChannelHopper     = 0xc86f
	ClassChannelBlackwellA = 0xc96f
	ClassChannelBlackwellB = 0xca6f
)

// ChannelClasses are the GPFIFO channel classes of GPUs that run with GSP
// firmware or by the open kernel modules, and of Volta. A slice, for the
// programs that need the list itself.
var ChannelClasses = []uint32{
	ClassChannelVolta, ClassChannelTuring, ClassChannelAmpere,
	ClassChannelHopper, ClassChannelBlackwellA, ClassChannelBlackwellB,
}

// IsChannelClass tells whether objects of the class are GPFIFO channels.
func IsChannelClass(class uint32) bool {
	return slices.Contains(ChannelClasses, class)
}
