package main

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"unicode"

	"tsgtop/internal/rm"
)

// number is a constant of the header.
type number struct {
	name  string
	value uint32
}

var devices = []number{
	{"IOCTL_MAGIC", rm.IoctlMagic},
	{"MAJOR", rm.Major},
	{"CONTROL_MINOR", rm.ControlMinor},
}

var escapes = []number{
	{"FREE", rm.EscFree},
	{"CONTROL", rm.EscControl},
	{"ALLOC", rm.EscAlloc},
	{"DUP", rm.EscDup},
	{"SHARE", rm.EscShare},
	{"IDLE_CHANNELS", rm.EscIdleChannels},
	{"MAP_MEMORY", rm.EscMapMemory},
	{"UNMAP_MEMORY", rm.EscUnmapMemory},
	{"CARD_INFO", rm.EscCardInfo},
	{"REGISTER_FD", rm.EscRegisterFD},
	{"XFER", rm.EscXfer},
}

var classes = []number{
	{"ROOT", rm.ClassRoot},
	{"ROOT_NON_PRIV", rm.ClassRootNonPriv},
	{"CLIENT", rm.ClassClient},
	{"DEVICE", rm.ClassDevice},
	{"SUBDEVICE", rm.ClassSubdevice},
	{"MPS", rm.ClassMPS},
	{"CONTEXT_SHARE", rm.ClassContextShare},
	{"EVENT_BUFFER", rm.ClassEventBuffer},
	{"TSG", rm.ClassTSG},
	{"CHANNEL_VOLTA", rm.ClassChannelVolta},
	{"CHANNEL_TURING", rm.ClassChannelTuring},
	{"CHANNEL_AMPERE", rm.ClassChannelAmpere},
	{"CHANNEL_HOPPER", rm.ClassChannelHopper},
	{"CHANNEL_BLACKWELL_A", rm.ClassChannelBlackwellA},
	{"CHANNEL_BLACKWELL_B", rm.ClassChannelBlackwellB},
}

var controls = []number{
	{"HANDLE_INFO", rm.CtrlHandleInfo},
	{"ACCESS_RIGHTS", rm.CtrlAccessRights},
	{"TSG_UNIQUE_IDS", rm.CtrlTSGUniqueIDs},
	{"CONTEXT_SWITCH_STATS", rm.CtrlContextSwitchStats},
	{"FECS_BIND_V2", rm.CtrlFECSBindV2},
	{"TSG_SCHEDULE", rm.CtrlTSGSchedule},
	{"TSG_BIND", rm.CtrlTSGBind},
	{"TSG_SET_TIMESLICE", rm.CtrlTSGSetTimeslice},
	{"TSG_GET_TIMESLICE", rm.CtrlTSGGetTimeslice},
	{"TSG_PREEMPT", rm.CtrlTSGPreempt},
	{"TSG_INFO", rm.CtrlTSGInfo},
	{"TSG_SET_INTERLEAVE", rm.CtrlTSGSetInterleave},
	{"TSG_GET_INTERLEAVE", rm.CtrlTSGGetInterleave},
	{"TSG_MAKE_REALTIME", rm.CtrlTSGMakeRealtime},
	{"CHANNEL_SCHEDULE", rm.CtrlChannelSchedule},
	{"CHANNEL_BIND", rm.CtrlChannelBind},
	{"CHANNEL_SET_INTERLEAVE", rm.CtrlChannelSetInterleave},
	{"CHANNEL_RESTART_RUNLIST", rm.CtrlChannelRestartRunlist},
	{"CHANNEL_STOP", rm.CtrlChannelStop},
	{"CHANNEL_CONTEXT_ID", rm.CtrlChannelContextID},
	{"CHANNEL_HW_STATE", rm.CtrlChannelHWState},
	{"WORK_SUBMIT_TOKEN", rm.CtrlWorkSubmitToken},
}

var statuses = []number{
	{"OK", rm.StatusOK},
	{"INSUFFICIENT_PERMISSIONS", rm.StatusInsufficientPermissions},
	{"INVALID_ARGUMENT", rm.StatusInvalidArgument},
	{"INVALID_CLIENT", rm.StatusInvalidClient},
	{"INVALID_OBJECT", rm.StatusInvalidObject},
	{"INVALID_OBJECT_HANDLE", rm.StatusInvalidObjectHandle},
	{"INVALID_PARAM_STRUCT", rm.StatusInvalidParamStruct},
	{"NOT_SUPPORTED", rm.StatusNotSupported},
	{"OBJECT_NOT_FOUND", rm.StatusObjectNotFound},
	{"TIMEOUT", rm.StatusTimeout},
	{"GENERIC", rm.StatusGeneric},
}

// layouts are the structs whose size and offsets the header has.
var layouts = []struct {
	name   string
	layout any
}{
	{"FREE", rm.FreeParams{}},
	{"CONTROL", rm.ControlParams{}},
	{"ALLOC", rm.AllocParams{}},
	{"ALLOC64", rm.Alloc64Params{}},
	{"DUP", rm.DupParams{}},
	{"XFER", rm.XferParams{}},
	{"CLIENT_ALLOC", rm.ClientAlloc{}},
	{"DEVICE_ALLOC", rm.DeviceAlloc{}},
	{"SUBDEVICE_ALLOC", rm.SubdeviceAlloc{}},
	{"TSG_ALLOC", rm.TSGAlloc{}},
	{"CHANNEL_ALLOC", rm.ChannelAlloc{}},
	{"HANDLE_INFO", rm.HandleInfoParams{}},
	{"SCHEDULE", rm.ScheduleParams{}},
	{"BIND", rm.BindParams{}},
	{"TIMESLICE", rm.TimesliceParams{}},
	{"PREEMPT", rm.PreemptParams{}},
	{"INTERLEAVE", rm.InterleaveParams{}},
	{"TSG_INFO", rm.TSGInfoParams{}},
	{"REALTIME", rm.RealtimeParams{}},
	{"RESTART_RUNLIST", rm.RestartRunlistParams{}},
	{"STOP", rm.StopParams{}},
	{"CONTEXT_ID", rm.ContextIDParams{}},
	{"WORK_SUBMIT_TOKEN", rm.WorkSubmitTokenParams{}},
	{"CONTEXT_SWITCH_STATS", rm.ContextSwitchStatsParams{}},
	{"FECS_BIND_V2", rm.FECSBindV2Params{}},
}

// header is the text of bpf/rm_abi.h.
func header() []byte {
	var b bytes.Buffer
	b.WriteString(`/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Made by internal/rm/genheader from package rm; do not edit.
 *
 * The numbers, sizes and offsets (in bytes) of the NVIDIA driver's user ABI
 * that C code here needs. Package rm says what they are and which drivers have
 * them.
 */
#ifndef TSGTOP_RM_ABI_H
#define TSGTOP_RM_ABI_H
`)
	numbers(&b, "", "%d", "The device files.", devices)
	numbers(&b, "ESC_", "0x%x", "Escapes: the numbers of the ioctls.", escapes)
	numbers(&b, "CLASS_", "0x%x", "Object classes.", classes)
	numbers(&b, "CTRL_", "0x%x", "Control commands.", controls)
	numbers(&b, "STATUS_", "0x%x", "Statuses.", statuses)
	b.WriteString("\n/* Parameters: their sizes, and where their fields are. */\n")
	for _, l := range layouts {
		offsets(&b, l.name, reflect.TypeOf(l.layout))
	}
	b.WriteString(`
/*
 * The calls that shape scheduling: X(number, offset, length) for each, where
 * length bytes from offset are the slice of its parameters that tells how.
 */
`)
	fmt.Fprintf(&b, "#define TSGTOP_SHAPE_MAX %d\n", rm.MaxShapeLength)
	shapes(&b, "CONTROLS", rm.ShapingControls, rm.ControlShort)
	shapes(&b, "CLASSES", rm.ShapingClasses, rm.ClassName)
	b.WriteString("\n#endif\n")
	return b.Bytes()
}

func numbers(b *bytes.Buffer, prefix, format, what string, ns []number) {
	fmt.Fprintf(b, "\n/* %s */\n", what)
	for _, n := range ns {
		fmt.Fprintf(b, "#define TSGTOP_%s%s "+format+"\n", prefix, n.name, n.value)
	}
}

func offsets(b *bytes.Buffer, name string, t reflect.Type) {
	fmt.Fprintf(b, "#define TSGTOP_SIZE_%s %d\n", name, t.Size())
	for i := range t.NumField() {
		if f := t.Field(i); f.Name != "_" {
			fmt.Fprintf(b, "#define TSGTOP_OFF_%s_%s %d\n", name, upperSnake(f.Name), f.Offset)
		}
	}
}

func shapes(b *bytes.Buffer, name string, list []rm.Shape, title func(uint32) string) {
	fmt.Fprintf(b, "#define TSGTOP_SHAPING_%s(X)", name)
	for _, s := range list {
		fmt.Fprintf(b, " \\\n\tX(0x%08x, %d, %d) /* %s */", s.Number, s.Offset, s.Length, title(s.Number))
	}
	b.WriteString("\n")
}

// upperSnake writes a Go name as C does: ECCErrorNotifier, ECC_ERROR_NOTIFIER.
func upperSnake(name string) string {
	var b strings.Builder
	r := []rune(name)
	for i, c := range r {
		starts := i > 0 && unicode.IsUpper(c) &&
			(!unicode.IsUpper(r[i-1]) || i+1 < len(r) && unicode.IsLower(r[i+1]))
		if starts {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(c))
	}
	return b.String()
}
