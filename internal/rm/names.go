package rm

import "strings"

// Commands for which the headers have parameters, or RM's tables a handler, but
// no constant; named like their neighbours.
var controlsWithoutConstant = map[uint32]string{
	0x00800290: "NV0080_CTRL_CMD_GPU_VIRTUALIZATION_SWITCH_TO_VGA",
	0x20800145: "NV2080_CTRL_CMD_GPU_ACQUIRE_COMPUTE_MODE_RESERVATION",
	0x20800146: "NV2080_CTRL_CMD_GPU_RELEASE_COMPUTE_MODE_RESERVATION",
	0x20800194: "NV2080_CTRL_CMD_GPU_SET_COMPUTE_POLICY_CONFIG",
	0x20800a3e: "NV2080_CTRL_CMD_INTERNAL_STATIC_GR_GET_FECS_TRACE_DEFINES",
	0xb0cc0101: "NVB0CC_CTRL_CMD_RESERVE_HWPM_LEGACY",
	0xb0cc0102: "NVB0CC_CTRL_CMD_RELEASE_HWPM_LEGACY",
	0xb0cc020a: "NVB0CC_CTRL_CMD_INTERNAL_RESERVE_HWPM_LEGACY",
}

// ControlName is the driver's name of a control command, such as
// "NVA06C_CTRL_CMD_SET_TIMESLICE". Where drivers from 550 on gave one number to
// different commands it is all their names, newest first, with a bar between.
// A number that none of them has is shown in hex.
func ControlName(cmd uint32) string {
	if n, ok := controlNames[cmd]; ok {
		return n
	}
	if n, ok := controlsWithoutConstant[cmd]; ok {
		return n
	}
	return hex(cmd)
}

// ControlShort is ControlName in a form for narrow columns: the class and what
// is done, such as "A06C SET_TIMESLICE".
func ControlShort(cmd uint32) string {
	name := ControlName(cmd)
	if strings.Contains(name, "|") {
		return hex(cmd)
	}
	class, what, ok := strings.Cut(name, "_CTRL_")
	if !ok {
		return name
	}
	return strings.TrimPrefix(strings.TrimPrefix(class, "NV"), "_") + " " + strings.TrimPrefix(what, "CMD_")
}

// ClassName is the driver's name of an object class, such as
// "KEPLER_CHANNEL_GROUP_A", or its number in hex.
func ClassName(class uint32) string {
	if n, ok := classNames[class]; ok {
		return n
	}
	return hex(class)
}

// StatusOK is the status of a call that RM says it carried out.
const StatusOK = 0

// Statuses that tsgtop tells apart. All have the same value in drivers 550 to
// 595.
const (
	StatusGPULost                 = 0x0f
	StatusInsufficientPermissions = 0x1b
	StatusInvalidArgument         = 0x1f
	StatusInvalidClient           = 0x23 // the client is not of this open file, or does not exist
	StatusInvalidObject           = 0x31
	StatusInvalidObjectHandle     = 0x33
	StatusInvalidParamStruct      = 0x3a // the size of the parameters is wrong
	StatusNotSupported            = 0x56
	StatusObjectNotFound          = 0x57
	StatusTimeout                 = 0x65
	StatusGeneric                 = 0xffff
	StatusNothingToDo             = 0x10006
)

// StatusName is the driver's name of a status, such as "NV_ERR_INVALID_CLIENT",
// or its number in hex. It has several names, as ControlName does, where
// drivers differ.
func StatusName(status uint32) string {
	if n, ok := statusNames[status]; ok {
		return n
	}
	return hex(status)
}
