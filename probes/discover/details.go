//go:build linux

package discover

import (
	"slices"
	"sync"

	"tsgtop/internal/rm"
	"tsgtop/internal/rmdev"
	"tsgtop/internal/sched"
)

// add asks for the details of a client's objects and puts them into the
// inventory.
func (s *scan) add(b *rmdev.Borrowed, f *openFile, client uint32, found objects) {
	on := s.devices(b, client, found)
	fc := sched.FoundClient{
		Client: sched.Handle(client), PID: f.pid, PIDs: f.pids(), FD: f.fd, GPU: sched.Unknown,
		MPS: found.mps || slices.ContainsFunc(f.pids(), func(pid int) bool { return s.mps[pid] }),
	}
	for _, dev := range found.devices {
		if i, ok := on[dev.handle]; ok {
			fc.GPU = i
			break
		}
	}
	if found.cut {
		s.inv.Partial = true
	}
	s.index[client] = len(s.inv.Clients)
	s.inv.Clients = append(s.inv.Clients, fc)

	byTSG := map[uint32][]sched.FoundChannel{}
	for _, o := range found.channels {
		c, ok := s.channel(b, client, o, found)
		if !ok {
			continue
		}
		s.inv.Channels = append(s.inv.Channels, c)
		byTSG[o.parent] = append(byTSG[o.parent], c)
	}
	before := len(s.inv.TSGs)
	feeds := sync.OnceValue(func() map[uint32]feeds { return feeding(b, client, found) })
	for _, o := range found.tsgs {
		gpu, ok := on[o.parent]
		if !ok {
			gpu = sched.Unknown
		}
		t, ok := s.tsg(b, client, o, gpu, byTSG[o.handle])
		if !ok {
			continue
		}
		t.PID = f.pid
		t.Engine = s.engine(t, feeds)
		s.inv.TSGs = append(s.inv.TSGs, t)
	}
	s.noteCounted(client, s.inv.TSGs[before:], found)
}

// devices tells on which GPU each device of a client is, as far as its
// subdevices say. With one GPU in the machine there is nothing to ask.
func (s *scan) devices(b *rmdev.Borrowed, client uint32, found objects) map[uint32]int {
	on := map[uint32]int{}
	if len(s.d.gpus) == 1 {
		for _, dev := range found.devices {
			on[dev.handle] = s.d.gpus[0].Index
		}
	}
	for _, sub := range found.subdevices {
		if _, known := on[sub.parent]; known {
			continue
		}
		var p rm.GPUIDParams
		if status, err := b.Control(client, sub.handle, rm.CtrlGPUID, rmdev.Bytes(&p)); err != nil || status != rm.StatusOK {
			continue
		}
		for _, g := range s.d.gpus {
			if g.ID == p.GPUID {
				on[sub.parent] = g.Index
			}
		}
	}
	return on
}

// vanished tells whether a status says that the object is not there any more.
func vanished(status uint32) bool {
	return status == rm.StatusInvalidObject || status == rm.StatusInvalidObjectHandle ||
		status == rm.StatusObjectNotFound || status == rm.StatusInvalidClient
}

func (s *scan) channel(b *rmdev.Borrowed, client uint32, o object, found objects) (sched.FoundChannel, bool) {
	c := sched.FoundChannel{Object: sched.Object{Client: sched.Handle(client), Handle: sched.Handle(o.handle)}, Class: o.class}
	if slices.ContainsFunc(found.tsgs, func(t object) bool { return t.handle == o.parent }) {
		c.TSG = sched.Handle(o.parent)
	}
	// RM answers with the token that it gave before, and writes it once more to
	// where the process keeps it.
	var token rm.WorkSubmitTokenParams
	status, err := b.Control(client, o.handle, rm.CtrlWorkSubmitToken, rmdev.Bytes(&token))
	switch {
	case err != nil || vanished(status):
		return c, false
	case status == rm.StatusOK:
		runlist, chid := rm.WorkSubmitToken(token.Token)
		c.Runlist, c.ChID = &runlist, &chid
	}
	if s.d.layout.ContextID {
		var id rm.ContextIDParams
		if status, err := b.Control(client, o.handle, rm.CtrlChannelContextID, rmdev.Bytes(&id)); err == nil && status == rm.StatusOK {
			c.Context = &id.ContextID
		}
	}
	return c, true
}

func (s *scan) tsg(b *rmdev.Borrowed, client uint32, o object, gpu int, channels []sched.FoundChannel) (sched.FoundTSG, bool) {
	t := sched.FoundTSG{
		Object: sched.Object{Client: sched.Handle(client), Handle: sched.Handle(o.handle)},
		Device: sched.Handle(o.parent), GPU: gpu, Runlist: sched.Unknown,
	}
	var info rm.TSGInfoParams
	status, err := b.Control(client, o.handle, rm.CtrlTSGInfo, rmdev.Bytes(&info))
	switch {
	case err != nil || vanished(status):
		return t, false
	case status == rm.StatusOK:
		t.Number = &info.TSG
	}
	var slice rm.TimesliceParams
	if status, err := b.Control(client, o.handle, rm.CtrlTSGGetTimeslice, rmdev.Bytes(&slice)); err == nil && status == rm.StatusOK {
		t.Timeslice = &slice.TimesliceUS
	}
	// All channels of a TSG are on its runlist.
	for _, c := range channels {
		if c.Runlist != nil {
			t.Runlist = int(*c.Runlist)
			break
		}
	}
	s.unique(&t)
	if t.Contexts == nil {
		for _, c := range channels {
			if c.Context != nil {
				t.Contexts = append(t.Contexts, *c.Context)
			}
		}
	}
	return t, true
}

// unique asks on our own client for the ids of a TSG that do not repeat.
func (s *scan) unique(t *sched.FoundTSG) {
	sub := s.subdevice(t.GPU)
	if !s.d.layout.UniqueIDs || sub == 0 {
		return
	}
	p := rm.TSGUniqueIDsParams{Client: uint32(t.Client), Object: uint32(t.Handle)}
	if err := s.d.dev.Control(sub, rm.CtrlTSGUniqueIDs, rmdev.Bytes(&p)); err != nil {
		return
	}
	id := p.TSG
	t.UniqueID = &id
	t.Contexts = slices.Clone(p.Contexts[:min(p.Channels, rm.MaxTSGChannels)])
}

// subdevice is our own subdevice on a GPU; 0 where there is none.
func (s *scan) subdevice(gpu int) uint32 {
	for _, g := range s.d.gpus {
		if g.Index == gpu && g.attached != nil {
			return g.attached.Subdevice
		}
	}
	return 0
}

// feeds is what the engine objects of a TSG's channels are for.
type feeds struct{ graphics, copying bool }

// feeding tells what the TSGs of a client feed, by their handles, as far as the
// engine objects of their channels say. Each is asked about once: a client can
// have thousands of both, and its file is borrowed meanwhile.
func feeding(b *rmdev.Borrowed, client uint32, found objects) map[uint32]feeds {
	of := make(map[uint32]uint32, len(found.channels)) // channel -> TSG
	for _, c := range found.channels {
		of[c.handle] = c.parent
	}
	out := map[uint32]feeds{}
	for _, o := range found.engines {
		p := rm.HandleInfoParams{Object: o.handle, Index: rm.HandleInfoParent}
		if status, err := b.Control(client, client, rm.CtrlHandleInfo, rmdev.Bytes(&p)); err != nil || status != rm.StatusOK {
			continue
		}
		if tsg, ok := of[uint32(p.Result)]; ok {
			f := out[tsg]
			out[tsg] = feeds{f.graphics || isGraphicsClass(o.class), f.copying || isCopyClass(o.class)}
		}
	}
	return out
}

// engine tells which engine a TSG feeds: the only one of its runlist, or what
// the engine objects of its channels say where the runlist feeds several, as
// that of the graphics engine does. Nil where that leaves a choice.
func (s *scan) engine(t sched.FoundTSG, feeding func() map[uint32]feeds) *uint32 {
	engines := s.engines(t.GPU, t.Runlist)
	switch len(engines) {
	case 0:
		return nil
	case 1:
		return sched.Ptr(engines[0])
	}
	f := feeding()[uint32(t.Handle)]
	var fit []uint32
	for _, e := range engines {
		// A channel of the graphics engine can have a copy object too; one of a
		// copy engine has nothing else.
		if f.graphics && rm.IsGraphicsEngine(e) || !f.graphics && f.copying && !rm.IsGraphicsEngine(e) {
			fit = append(fit, e)
		}
	}
	if len(fit) == 1 {
		return sched.Ptr(fit[0])
	}
	return nil
}

func (s *scan) engines(gpu, runlist int) []uint32 {
	for _, g := range s.d.gpus {
		if g.Index != gpu {
			continue
		}
		for _, r := range g.runlists {
			if r.ID == runlist {
				return r.Engines
			}
		}
	}
	return nil
}

// gpuOf is the GPU of a channel's TSG or, for one without, of its client.
func (s *scan) gpuOf(channel sched.FoundChannel) int {
	for _, t := range s.inv.TSGs {
		if t.Client == channel.Client && t.Handle == channel.TSG {
			return t.GPU
		}
	}
	if i, ok := s.index[uint32(channel.Client)]; ok {
		return s.inv.Clients[i].GPU
	}
	return sched.Unknown
}
