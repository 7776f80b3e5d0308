// Package rm is the vocabulary of the NVIDIA Resource Manager's user ABI: the
// ioctl escapes, the control commands, the object classes, the status codes,
// the engine types and the layouts of the parameters that tsgtop sends or
// decodes. Every number of the driver stands in this package, once, with its
// name. The package is pure: it opens nothing and calls nothing.
//
// Numbers, names and layouts are those of the driver's public interface
// headers, compared between the versions that version.go lists. Where only a
// measurement tells, the comment names the machine.
package rm

import "fmt"

// The device files. All of them are character devices of one major number.
const (
	Major        = 195 // of /dev/nvidia* except nvidia-uvm and nvidia-caps
	ControlMinor = 255 // /dev/nvidiactl: RM calls go here
	ControlPath  = "/dev/nvidiactl"
	DevicePath   = "/dev/nvidia" // followed by the minor number of the GPU
)

// IoctlMagic is the type byte of all ioctl numbers of the driver.
const IoctlMagic = 'F'

// Escapes are the numbers of the driver's ioctls. Those below 200 are RM calls;
// those from 200 on are served by the kernel interface layer.
const (
	EscAllocMemory       = 0x27
	EscAllocObject       = 0x28
	EscFree              = 0x29
	EscControl           = 0x2a
	EscAlloc             = 0x2b // two forms, told apart by size: 32 and 48 bytes
	EscDup               = 0x34
	EscShare             = 0x35
	EscI2CAccess         = 0x39
	EscIdleChannels      = 0x41
	EscVidHeapControl    = 0x4a
	EscAccessRegistry    = 0x4d
	EscMapMemory         = 0x4e
	EscUnmapMemory       = 0x4f
	EscGetEventData      = 0x52
	EscAllocContextDMA2  = 0x54
	EscAddVblankCallback = 0x56
	EscMapMemoryDMA      = 0x57
	EscUnmapMemoryDMA    = 0x58
	EscBindContextDMA    = 0x59
	EscExportObjectToFD  = 0x5c
	EscImportObjectFrom  = 0x5d
	EscUpdateMappingInfo = 0x5e
	EscLocklessDiag      = 0x5f

	EscCardInfo         = 200
	EscRegisterFD       = 201
	EscAllocOSEvent     = 206
	EscFreeOSEvent      = 207
	EscStatusCode       = 209
	EscCheckVersion     = 210
	EscXfer             = 211 // carries another escape whose parameters are too long for an ioctl number
	EscAttachGPUs       = 212
	EscQueryDeviceIntr  = 213
	EscSysParams        = 214
	EscNUMAInfo         = 215
	EscSetNUMAStatus    = 216
	EscExportToDMABuf   = 217
	EscWaitOpenComplete = 218
)

var escNames = map[uint8]string{
	EscAllocMemory:       "NV_ESC_RM_ALLOC_MEMORY",
	EscAllocObject:       "NV_ESC_RM_ALLOC_OBJECT",
	EscFree:              "NV_ESC_RM_FREE",
	EscControl:           "NV_ESC_RM_CONTROL",
	EscAlloc:             "NV_ESC_RM_ALLOC",
	EscDup:               "NV_ESC_RM_DUP_OBJECT",
	EscShare:             "NV_ESC_RM_SHARE",
	EscI2CAccess:         "NV_ESC_RM_I2C_ACCESS",
	EscIdleChannels:      "NV_ESC_RM_IDLE_CHANNELS",
	EscVidHeapControl:    "NV_ESC_RM_VID_HEAP_CONTROL",
	EscAccessRegistry:    "NV_ESC_RM_ACCESS_REGISTRY",
	EscMapMemory:         "NV_ESC_RM_MAP_MEMORY",
	EscUnmapMemory:       "NV_ESC_RM_UNMAP_MEMORY",
	EscGetEventData:      "NV_ESC_RM_GET_EVENT_DATA",
	EscAllocContextDMA2:  "NV_ESC_RM_ALLOC_CONTEXT_DMA2",
	EscAddVblankCallback: "NV_ESC_RM_ADD_VBLANK_CALLBACK",
	EscMapMemoryDMA:      "NV_ESC_RM_MAP_MEMORY_DMA",
	EscUnmapMemoryDMA:    "NV_ESC_RM_UNMAP_MEMORY_DMA",
	EscBindContextDMA:    "NV_ESC_RM_BIND_CONTEXT_DMA",
	EscExportObjectToFD:  "NV_ESC_RM_EXPORT_OBJECT_TO_FD",
	EscImportObjectFrom:  "NV_ESC_RM_IMPORT_OBJECT_FROM_FD",
	EscUpdateMappingInfo: "NV_ESC_RM_UPDATE_DEVICE_MAPPING_INFO",
	EscLocklessDiag:      "NV_ESC_RM_LOCKLESS_DIAGNOSTIC",
	EscCardInfo:          "NV_ESC_CARD_INFO",
	EscRegisterFD:        "NV_ESC_REGISTER_FD",
	EscAllocOSEvent:      "NV_ESC_ALLOC_OS_EVENT",
	EscFreeOSEvent:       "NV_ESC_FREE_OS_EVENT",
	EscStatusCode:        "NV_ESC_STATUS_CODE",
	EscCheckVersion:      "NV_ESC_CHECK_VERSION_STR",
	EscXfer:              "NV_ESC_IOCTL_XFER_CMD",
	EscAttachGPUs:        "NV_ESC_ATTACH_GPUS_TO_FD",
	EscQueryDeviceIntr:   "NV_ESC_QUERY_DEVICE_INTR",
	EscSysParams:         "NV_ESC_SYS_PARAMS",
	EscNUMAInfo:          "NV_ESC_NUMA_INFO",
	EscSetNUMAStatus:     "NV_ESC_SET_NUMA_STATUS",
	EscExportToDMABuf:    "NV_ESC_EXPORT_TO_DMABUF_FD",
	EscWaitOpenComplete:  "NV_ESC_WAIT_OPEN_COMPLETE",
}

// EscName is the driver's name of an escape, or its number in hex.
func EscName(nr uint8) string {
	if n, ok := escNames[nr]; ok {
		return n
	}
	return hex(uint32(nr))
}

// Ioctl is the ioctl number of escape nr with parameters of size bytes, both
// read and written. It has room for a size below 16,384.
func Ioctl(nr, size uint32) uint32 {
	return 3<<30 | (size&0x3fff)<<16 | IoctlMagic<<8 | nr&0xff
}

// IoctlParts takes an ioctl number apart. ok tells whether it is one of this
// driver's.
func IoctlParts(cmd uint32) (nr uint8, size uint32, ok bool) {
	return uint8(cmd), cmd >> 16 & 0x3fff, cmd>>30 == 3 && cmd>>8&0xff == IoctlMagic
}

// hex is how an unknown number is shown: never by a name that may be wrong.
func hex(v uint32) string { return fmt.Sprintf("0x%x", v) }
