package rmcalls

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"tsgtop/bpf"
	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
)

const (
	callSize = int(unsafe.Sizeof(bpf.RMCallsRmCall{}))
	exitSize = int(unsafe.Sizeof(bpf.RMCallsRmExit{}))
	ownSize  = int(unsafe.Sizeof(bpf.RMCallsRmOwn{}))
)

// record is one record of the kernel's ring, decoded: exactly one of the two
// is set.
type record struct {
	call   sched.Call
	exit   sched.ProcessExit
	isExit bool
}

// decoder turns the kernel's records into events.
type decoder struct {
	toTime  func(monotonic uint64) sched.Time
	command func(id uint64) string // name of our own command; nil: none are known
	names   names
}

// decode reads one record. An error says what about it is not as the programs
// write it; nothing in the record can make it panic.
func (d *decoder) decode(b []byte, r *record) error {
	if len(b) < 4 {
		return fmt.Errorf("record of %d bytes: too short for its type", len(b))
	}
	switch t := bpf.RMCallsRmRecord(binary.NativeEndian.Uint32(b)); t {
	case bpf.RMCallsRmRecordRM_RECORD_CALL:
		r.isExit = false
		return d.call(b, &r.call)
	case bpf.RMCallsRmRecordRM_RECORD_EXIT:
		if len(b) < exitSize {
			return fmt.Errorf("exit record of %d bytes: want %d", len(b), exitSize)
		}
		var e bpf.RMCallsRmExit
		overlay(&e, b)
		r.isExit = true
		r.exit = sched.ProcessExit{Time: d.toTime(e.When), PID: int(e.Pid)}
		return nil
	default:
		return fmt.Errorf("record of unknown type %d", t)
	}
}

func (d *decoder) call(b []byte, c *sched.Call) error {
	if len(b) < callSize {
		return fmt.Errorf("call record of %d bytes: want %d", len(b), callSize)
	}
	var k bpf.RMCallsRmCall
	overlay(&k, b)
	kind := sched.CallKind(k.Kind)
	if kind < sched.CallControl || kind > sched.CallClose {
		return fmt.Errorf("call record of unknown kind %d", k.Kind)
	}
	if int(k.ParamsLen) > len(k.Params) {
		return fmt.Errorf("call record with %d bytes of parameters: at most %d", k.ParamsLen, len(k.Params))
	}
	*c = sched.Call{
		Start:  d.toTime(k.Start),
		End:    d.toTime(k.Start + k.Duration),
		PID:    int(k.Pid),
		TID:    int(k.Tid),
		Comm:   d.names.of(k.Comm),
		File:   k.File,
		Kind:   kind,
		Number: k.Number,
		Client: sched.Handle(k.Client),
		Parent: sched.Handle(k.Parent),
		Object: sched.Handle(k.Object),
		Status: k.Status,
	}
	if k.Error < 0 {
		c.Errno = -int(k.Error)
	}
	if k.Command != 0 && d.command != nil {
		c.Command = d.command(k.Command)
	}
	faulted := k.Flags&uint8(bpf.RMCallsRmFlagRM_FLAG_PARAMS_FAULTED) != 0
	c.Params = params(c, &k, faulted)
	return nil
}

// parameters keeps Params and what its pointers point to in one piece.
type parameters struct {
	sched.Params
	a, b       uint32
	us         uint64
	on, second bool
	h, o       sched.Handle
}

// params decodes the slice of a call's parameters that the program read; its
// place in them is in bpf/rm_shape.h. What RM writes is taken only where the
// call succeeded: otherwise it is whatever the caller's memory held.
func params(c *sched.Call, k *bpf.RMCallsRmCall, faulted bool) *sched.Params {
	b := k.Params[:k.ParamsLen]
	ok := c.Errno == 0 && c.Status == 0
	var p parameters
	switch c.Kind {
	case sched.CallDup:
		p.h, p.o = sched.Handle(k.SrcClient), sched.Handle(k.SrcObject)
		p.SrcClient, p.SrcObject = &p.h, &p.o
		return &p.Params
	case sched.CallAlloc:
		if c.Number <= rm.ClassRoot+1 {
			// RM makes every root class that user space asks for this one.
			c.Number = rm.ClassClient
		}
		allocParams(&p, c.Number, b, ok)
	case sched.CallControl:
		controlParams(&p, c.Number, b, ok)
	}
	p.Faulted = faulted
	if p.Params == (sched.Params{}) {
		return nil
	}
	return &p.Params
}

func allocParams(p *parameters, class uint32, b []byte, ok bool) {
	if len(b) < 4 {
		return
	}
	p.a = binary.NativeEndian.Uint32(b)
	switch {
	case class == rm.ClassClient:
		p.ProcessID = &p.a
	case class == rm.ClassDevice:
		p.DeviceInstance = &p.a
	case class == rm.ClassSubdevice:
		p.SubDevice = &p.a
	case class == rm.ClassTSG:
		p.Engine = &p.a
	case rm.IsChannelClass(class):
		p.Engine = &p.a
		if len(b) >= 8 && ok {
			p.b = binary.NativeEndian.Uint32(b[4:])
			p.Context = &p.b
		}
	}
}

func controlParams(p *parameters, number uint32, b []byte, ok bool) {
	if len(b) > 0 {
		p.on = b[0] != 0
		switch number {
		case rm.CtrlTSGSchedule, rm.CtrlChannelSchedule:
			p.Enable = &p.on
			if len(b) > 1 {
				p.second = b[1] != 0
				p.SkipSubmit = &p.second
			}
		case rm.CtrlChannelRestartRunlist:
			p.Force = &p.on
		case rm.CtrlChannelStop:
			p.Immediate = &p.on
		case rm.CtrlTSGPreempt:
			p.Wait = &p.on
		}
	}
	if len(b) >= 4 {
		p.a = binary.NativeEndian.Uint32(b)
		switch number {
		case rm.CtrlTSGBind, rm.CtrlChannelBind:
			p.Engine = &p.a
		case rm.CtrlTSGSetInterleave, rm.CtrlChannelSetInterleave:
			p.Interleave = &p.a
		case rm.CtrlTSGInfo:
			if ok {
				p.TSGNumber = &p.a
			}
		case rm.CtrlChannelContextID:
			if ok {
				p.Context = &p.a
			}
		case rm.CtrlWorkSubmitToken:
			if ok {
				p.a, p.b = rm.WorkSubmitToken(p.a)
				p.Runlist, p.ChID = &p.a, &p.b
			}
		}
	}
	if len(b) >= 8 {
		switch number {
		case rm.CtrlTSGSetTimeslice:
			p.us = binary.NativeEndian.Uint64(b)
			p.Timeslice = &p.us
		case rm.CtrlTSGGetTimeslice:
			if ok {
				p.us = binary.NativeEndian.Uint64(b)
				p.Timeslice = &p.us
			}
		case rm.CtrlTSGPreempt:
			if b[1] != 0 {
				p.b = binary.NativeEndian.Uint32(b[4:])
				p.TimeoutUS = &p.b
			}
		}
	}
}

// overlay copies the front of b over v, which must be of fixed size and not
// longer than b.
func overlay[T any](v *T, b []byte) {
	copy(unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)), b)
}

// names keeps one string for each thread name, so that a busy stream does not
// allocate one for each call.
type names map[[16]uint8]string

const maxNames = 1024

func (n *names) of(comm [16]uint8) string {
	if s, ok := (*n)[comm]; ok {
		return s
	}
	if *n == nil || len(*n) >= maxNames {
		*n = make(names)
	}
	end := 0
	for end < len(comm) && comm[end] != 0 {
		end++
	}
	s := string(comm[:end])
	(*n)[comm] = s
	return s
}
