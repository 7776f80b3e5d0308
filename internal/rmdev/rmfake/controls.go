//go:build linux

package rmfake

import (
	"encoding/binary"
	"slices"
	"unsafe"

	"tsgtop/internal/rm"
)

// NVOC class ids, which RM's "first child of a class" takes instead of class numbers.
var nvocClasses = map[uint32][]uint32{
	0xe0ac20: {rm.ClassDevice}, 0x4b01b3: {rm.ClassSubdevice}, 0x2b5b80: {rm.ClassTSG}, 0x5d8d70: rm.ChannelClasses,
}

// alloc answers NV_ESC_RM_ALLOC from an open file.
func (d *Driver) alloc(f *file, a *rm.Alloc64Params, params []byte) uint32 {
	if a.Class == rm.ClassClient {
		a.Object = d.newClient(f).Handle
		return statusOK
	}
	c := d.clients[a.Client]
	if c == nil || c.file != f {
		return statusInvalidClient
	}
	parent := c.objects[a.Parent]
	if parent == nil || c.objects[a.Object] != nil {
		return statusInvalidObject
	}
	if a.Object == 0 {
		a.Object = c.next
		c.next++
	}
	o := &object{client: c, handle: a.Object, parent: a.Parent, class: a.Class, gpu: parent.gpu}
	switch a.Class {
	case rm.ClassDevice:
		if len(params) != int(unsafe.Sizeof(rm.DeviceAlloc{})) {
			return statusInvalidParam
		}
		instance := binary.LittleEndian.Uint32(params)
		i := slices.IndexFunc(d.gpus, func(g *GPU) bool { return g.Attached && g.DeviceInstance == instance })
		if i < 0 {
			return statusInvalidArgument
		}
		o.gpu = d.gpus[i]
	case rm.ClassSubdevice:
		if len(params) != 4 || parent.class != rm.ClassDevice {
			return statusInvalidParam
		}
	case rm.ClassDevicelessMemory:
		if len(params) != int(unsafe.Sizeof(rm.MemoryAlloc{})) || a.Parent != c.Handle {
			return statusInvalidParam
		}
		p := (*rm.MemoryAlloc)(unsafe.Pointer(&params[0]))
		if p.Attr != rm.MemoryCached || p.Attr2 != rm.MemoryUserReadOnly || p.Size == 0 {
			return statusInvalidArgument
		}
		if d.MaxContiguous != 0 && p.Size > d.MaxContiguous {
			return statusNoMemory
		}
		o.mem = memory(int(p.Size))
	case rm.ClassEventBuffer:
		if st := d.allocEventBuffer(c, o, params); st != statusOK {
			return st
		}
	default:
		return statusInvalidArgument
	}
	c.objects[o.handle] = o
	return statusOK
}

// memory is n bytes aligned to 8.
func memory(n int) []byte {
	words := make([]uint64, (n+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), n)
}

// control answers NV_ESC_RM_CONTROL from an open file.
func (d *Driver) control(f *file, client, object, cmd uint32, params []byte) uint32 {
	d.calls[cmd]++
	c := d.clients[client]
	if c == nil {
		d.logf("NVRM: control %#x on client %#x that does not exist", cmd, client)
		return statusInvalidClient
	}
	if c.file != f {
		return statusInvalidClient
	}
	o := c.objects[object]
	if o == nil {
		return statusInvalidObject
	}
	if want, known := sizes[cmd]; known && want != len(params) {
		return statusInvalidParam
	}
	le := binary.LittleEndian
	switch {
	case o.class == rm.ClassClient:
		return d.controlClient(c, cmd, params)
	case o.class == rm.ClassSubdevice && cmd == rm.CtrlContextSwitchStats:
		return d.switchCounters(c, params)
	case o.class == rm.ClassSubdevice:
		return d.controlSubdevice(o, cmd, params)
	case o.class == rm.ClassEventBuffer:
		return d.controlEventBuffer(o, cmd, params)
	case o.class == rm.ClassTSG:
		switch cmd {
		case rm.CtrlTSGInfo:
			le.PutUint32(params, o.number)
		case rm.CtrlTSGGetTimeslice:
			le.PutUint64(params, o.timeslice)
		case rm.CtrlTSGSetTimeslice:
			o.timeslice = le.Uint64(params)
		case rm.CtrlTSGPreempt, rm.CtrlTSGSetInterleave:
		default:
			return statusNotSupported
		}
		return statusOK
	case rm.IsChannelClass(o.class):
		switch cmd {
		case rm.CtrlChannelContextID:
			le.PutUint32(params, o.context)
		case rm.CtrlWorkSubmitToken:
			le.PutUint32(params, o.runlist<<16|o.chid)
		default:
			return statusNotSupported
		}
		return statusOK
	}
	return statusNotSupported
}

var sizes = map[uint32]int{
	rm.CtrlClientDatabaseInfo: 16, rm.CtrlHandleInfo: 16, rm.CtrlAccessRights: 12, rm.CtrlChildHandle: 12,
	rm.CtrlAttachedIDs: 128, rm.CtrlGPUIDInfo: 32, rm.CtrlGPUID: 4, rm.CtrlEngines: 340, rm.CtrlEngineRunlists: 0x3f0,
	rm.CtrlGPUTime: 8, rm.CtrlAllocatedChannels: 0x204, rm.CtrlTSGUniqueIDs: 0x610, rm.CtrlFECSBindV2: 24,
	rm.CtrlTSGInfo: 4, rm.CtrlTSGGetTimeslice: 8, rm.CtrlTSGSetTimeslice: 8, rm.CtrlTSGPreempt: 8, rm.CtrlTSGSetInterleave: 4,
	rm.CtrlChannelContextID: 4, rm.CtrlWorkSubmitToken: 4, rm.CtrlContextSwitchStats: 32,
}

func (d *Driver) controlClient(c *Client, cmd uint32, params []byte) uint32 {
	le := binary.LittleEndian
	switch cmd {
	case rm.CtrlClientDatabaseInfo:
		le.PutUint32(params, uint32(len(d.clients))+d.InternalClients)
	case rm.CtrlAttachedIDs:
		ids := params
		for _, g := range d.gpus {
			if g.Attached {
				le.PutUint32(ids, g.ID)
				ids = ids[4:]
			}
		}
		for ; len(ids) > 0; ids = ids[4:] {
			le.PutUint32(ids, rm.NoGPU)
		}
	case rm.CtrlGPUIDInfo:
		g := d.gpu(le.Uint32(params))
		if g == nil || !g.Attached {
			return statusInvalidArgument
		}
		le.PutUint32(params[8:], g.DeviceInstance)
		le.PutUint32(params[12:], 0)
	case rm.CtrlAccessRights: // of any client: quiet where there is none
		other := d.clients[le.Uint32(params[4:])]
		if other == nil {
			return statusInvalidHandle
		}
		if other.objects[le.Uint32(params)] == nil {
			return statusObjectNotFound
		}
		le.PutUint32(params[8:], 1)
	case rm.CtrlHandleInfo:
		o := c.objects[le.Uint32(params)]
		if o == nil {
			return statusObjectNotFound
		}
		switch le.Uint32(params[4:]) {
		case rm.HandleInfoParent:
			le.PutUint64(params[8:], uint64(o.parent))
		case rm.HandleInfoClass:
			le.PutUint64(params[8:], uint64(o.class))
		default:
			return statusInvalidArgument
		}
	case rm.CtrlChildHandle:
		parent := c.objects[le.Uint32(params)]
		classes, known := nvocClasses[le.Uint32(params[4:])]
		if parent == nil || !known {
			return statusObjectNotFound
		}
		first := uint32(0)
		for _, o := range c.objects {
			if o.parent == parent.handle && slices.Contains(classes, o.class) && (first == 0 || o.handle < first) {
				first = o.handle
			}
		}
		if first == 0 {
			return statusObjectNotFound
		}
		le.PutUint32(params[8:], first)
	default:
		return statusNotSupported
	}
	return statusOK
}

func (d *Driver) controlSubdevice(o *object, cmd uint32, params []byte) uint32 {
	le := binary.LittleEndian
	g := o.gpu
	switch cmd {
	case rm.CtrlGPUID:
		le.PutUint32(params, g.ID)
	case rm.CtrlEngines:
		le.PutUint32(params, uint32(len(g.Engines)))
		for i, e := range g.Engines {
			le.PutUint32(params[4+4*i:], e)
		}
	case rm.CtrlEngineRunlists:
		if g.MIG {
			d.logf("NVRM: kmigmgrGetInstanceRefFromDevice failed")
			return statusNotSupported
		}
		for i := range rm.MaxEngines {
			runlist := uint32(rm.NoRunlist)
			if e := le.Uint32(params[4*i:]); e != 0 {
				j := slices.Index(g.Engines, e)
				if j < 0 {
					runlist = rm.RunlistError
				} else {
					runlist = g.Runlists[j]
				}
			}
			le.PutUint32(params[0x2a0+4*i:], runlist)
		}
	case rm.CtrlGPUInfo:
		layout, err := rm.Layout(d.Version)
		if err != nil || len(params) != rm.GPUInfoSize(layout.Branch) || le.Uint32(params) != 1 || le.Uint32(params[4:]) != rm.GPUInfoMIGMode {
			return statusInvalidParam
		}
		mode := uint32(rm.MIGDisabled)
		if g.MIG {
			mode = rm.MIGEnabled
		}
		le.PutUint32(params[8:], mode)
	case rm.CtrlGPUTime:
		le.PutUint64(params, uint64(g.Clock().UnixNano()))
	case rm.CtrlAllocatedChannels:
		runlist := le.Uint32(params)
		if runlist != 0 {
			return 0x5b
		}
		for _, c := range d.clients {
			for _, ch := range c.objects {
				if rm.IsChannelClass(ch.class) && ch.gpu == g && ch.runlist == runlist {
					word := params[4+4*(ch.chid/32):]
					le.PutUint32(word, le.Uint32(word)|1<<(ch.chid%32))
				}
			}
		}
	case rm.CtrlTSGUniqueIDs:
		c := d.clients[le.Uint32(params)]
		if c == nil {
			return statusInvalidHandle
		}
		t := c.objects[le.Uint32(params[4:])]
		if t == nil || t.class != rm.ClassTSG {
			return statusObjectNotFound
		}
		le.PutUint32(params[8:], t.unique)
		var contexts []uint32
		for _, ch := range c.objects {
			if ch.parent == t.handle && rm.IsChannelClass(ch.class) {
				contexts = append(contexts, ch.context)
			}
		}
		slices.Sort(contexts)
		le.PutUint32(params[12:], uint32(len(contexts)))
		for i, x := range contexts {
			le.PutUint32(params[16+4*i:], x)
		}
	case rm.CtrlFECSBindV2:
		return d.bind(o, params)
	default:
		return statusNotSupported
	}
	return statusOK
}
