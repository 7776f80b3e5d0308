package sched

import (
	"cmp"
	"maps"
	"slices"

	"tsgtop/internal/rm"
)

// applyInventory joins what a scan found with what the stream told. Where both
// speak of a key, what happened after the scan began wins: a handle that was
// allocated since is left as the stream has it, one that was freed since does
// not come back.
func (s *State) applyInventory(v *Inventory) {
	for i := range v.Clients {
		s.foundClient(v, &v.Clients[i])
	}
	for i := range v.TSGs {
		s.foundTSG(v, &v.TSGs[i])
	}
	for i := range v.Channels {
		s.foundChannel(v, &v.Channels[i])
	}
	for i := range v.TSGs {
		if v.TSGs[i].Handle == 0 {
			s.foundInternal(v, &v.TSGs[i])
		}
	}
	s.endMissing(v)
	if v.Complete || v.UnattributedClients > 0 || v.UnattributedChannels > 0 {
		s.found = Unattributed{Channels: v.UnattributedChannels, Clients: v.UnattributedClients, Why: clip(v.Why)}
	}
}

// clientFreed tells whether the client ended after the scan began.
func (s *State) clientFreed(v *Inventory, h Handle) bool {
	return s.tombs.after(Object{Client: h, Handle: h}, v.Start)
}

// foundIn gives the client that a found thing is in; nil where the stream knows better.
func (s *State) foundIn(v *Inventory, h Handle, pid int) *client {
	if c := s.clients[h]; c != nil {
		if c.born >= v.Start {
			return nil // a new client with that handle
		}
		return c
	}
	if s.clientFreed(v, h) {
		return nil
	}
	return s.client(h, pid, v.Start)
}

func (s *State) foundClient(v *Inventory, f *FoundClient) {
	c := s.foundIn(v, f.Client, f.PID)
	if c == nil {
		return
	}
	c.seen.by(v)
	if f.MPS {
		c.mps = true
	}
	if f.File != 0 {
		s.setFile(c, f.File)
	}
	pids := f.PIDs
	if len(pids) == 0 && f.PID > 0 {
		pids = []int{f.PID}
	}
	if len(pids) == 0 {
		return
	}
	// The scan saw who holds the file. A process that ended since is left out.
	c.holders = c.holders[:0]
	var gone Time
	for _, pid := range pids[:min(len(pids), 1024)] {
		if p := s.process(pid, v.Start); p != nil && p.exited != 0 {
			gone = max(gone, p.exited)
			continue
		}
		c.addHolder(pid)
	}
	if len(c.holders) == 0 {
		c.orphaned = gone
	}
	if !c.byAlloc || c.proc == nil || !slices.Contains(pids, c.proc.PID) {
		if p := s.process(f.PID, v.Start); p != nil {
			c.proc = p
		}
	}
}

// foundObject gives the node of a found object, making it where there is none,
// or where what the scan found is not the same as what had the handle. Nil
// where the stream, or a newer scan, knows better.
func (s *State) foundObject(v *Inventory, key Object, pid int, parent Handle, class uint32, same func(*object) bool) *object {
	c := s.foundIn(v, key.Client, pid)
	if c == nil || key.Handle == 0 {
		return nil
	}
	n := s.objects[key]
	if n != nil {
		if n.born >= v.Start || n.seen.start > v.Start {
			return nil
		}
		if n.class == class && (n.orphan || parent == 0 || n.parentHandle == parent) && same(n) {
			n.seen.by(v)
			return n
		}
		s.free(n, v.Start-1) // its handle was freed and used again, unseen
	} else if s.tombs.after(key, v.Start) {
		return nil
	}
	if n = s.newObject(c, key.Handle, parent, class, 0); n != nil {
		n.seen.by(v)
	}
	return n
}

// internal tells whether RM made the TSG for a lone channel.
func (t *tsg) internal() bool { return t.object.Handle == 0 }

// foundDevice makes sure that a device is known, and which GPU it is on.
func (s *State) foundDevice(v *Inventory, client, h Handle, pid, gpu int) {
	if h == 0 || h == client || s.tombs.after(Object{Client: client, Handle: h}, v.Start) {
		return
	}
	n := s.objects[Object{Client: client, Handle: h}]
	if n == nil {
		c := s.foundIn(v, client, pid)
		if c == nil {
			return
		}
		if n = s.newObject(c, h, client, rm.ClassDevice, 0); n == nil {
			return
		}
		n.device = &device{instance: Unknown, gpu: Unknown}
		s.adopt(n)
	}
	if n.device == nil || n.born >= v.Start {
		return
	}
	n.seen.by(v)
	if gpu >= 0 {
		n.device.gpu = gpu
	}
}

func (s *State) foundTSG(v *Inventory, f *FoundTSG) {
	if f.Device != 0 && s.tombs.after(Object{Client: f.Client, Handle: f.Device}, v.Start) {
		return
	}
	if f.Handle == 0 { // its channels make it, under this device: see foundInternal
		s.foundDevice(v, f.Client, f.Device, f.PID, f.GPU)
		return
	}
	n := s.foundObject(v, f.Object, f.PID, f.Device, rm.ClassTSG, func(n *object) bool {
		t := n.tsg
		return t == nil || (f.Number == nil || t.number == Unknown || t.number == int(*f.Number)) && t.unique.may(f.UniqueID)
	})
	if n == nil {
		return
	}
	s.foundDevice(v, f.Client, f.Device, f.PID, f.GPU)
	t := n.tsg
	if t == nil {
		if t = s.aliased(f); t != nil {
			n.tsg = t
			t.handles = append(t.handles, n)
		} else if t = s.newTSG(n, false); t == nil {
			s.free(n, v.Start)
			return
		}
	}
	if n.orphan && f.Device != 0 {
		n.parentHandle = f.Device
		s.hang(n)
	}
	if f.GPU >= 0 {
		t.gpu = f.GPU
	}
	s.placeTSG(n)
	s.adopt(n)
	t.setEngine(f.Engine)
	if f.Runlist >= 0 {
		t.runlist = f.Runlist
	}
	if f.Number != nil {
		t.number = int(*f.Number)
	}
	t.unique.set(f.UniqueID)
	t.foundBesides(v, f)
	for _, c := range f.Contexts {
		s.own(c, t)
	}
	s.locate(t)
}

// aliased gives the TSG that a found one is another handle of: contexts are
// never reused, so two TSGs with one context are one.
func (s *State) aliased(f *FoundTSG) *tsg {
	for _, c := range f.Contexts {
		if t := s.owners[c]; t != nil && t.ended == 0 {
			return t
		}
	}
	return nil
}

func (s *State) foundChannel(v *Inventory, f *FoundChannel) {
	parent := f.TSG
	if parent != 0 && s.tombs.after(Object{Client: f.Client, Handle: parent}, v.Start) {
		return
	}
	n := s.foundObject(v, f.Object, 0, parent, f.Class, func(n *object) bool {
		return n.channel == nil || n.channel.context.may(f.Context)
	})
	if n == nil {
		return
	}
	if n.channel == nil {
		n.channel = &channel{class: f.Class, handles: []*object{n}}
	} else if n.orphan && parent != 0 {
		n.parentHandle = parent
		s.hang(n)
	}
	ch := n.channel
	ch.context.set(f.Context)
	ch.runlist.set(f.Runlist)
	ch.chid.set(f.ChID)
	if ch.tsg == nil {
		s.placeChannel(n)
	} else {
		s.channelChanged(ch)
	}
}

// endMissing ends what a scan shows to be gone, unless the stream saw it made
// after the scan began: clients that it looked for in vain, with a complete scan
// all that it lacks, and of each client that it found the objects that it lacks,
// unless some were left out.
func (s *State) endMissing(v *Inventory) {
	found := make(map[Handle]bool, len(v.Clients))
	for i := range v.Clients {
		found[v.Clients[i].Client] = true
	}
	objects := make(map[Object]bool, len(v.TSGs)+len(v.Channels))
	for i := range v.TSGs {
		objects[v.TSGs[i].Object] = true
	}
	for i := range v.Channels {
		objects[v.Channels[i].Object] = true
	}
	gone := make(map[Handle]bool, len(v.Gone))
	for _, h := range v.Gone {
		gone[h] = true
	}
	if v.Complete {
		there := maps.Clone(found) // an object shows that its client is there, too
		for key := range objects {
			there[key.Client] = true
		}
		for h := range s.clients {
			if !there[h] {
				gone[h] = true
			}
		}
	}
	for _, c := range s.clientsWhere(func(c *client) bool { return gone[c.handle] && c.born < v.Start && c.seen.start < v.Start }) {
		s.endClient(c, v.Start)
	}
	if v.Partial {
		return
	}
	var lost []*object
	for key, n := range s.objects {
		if (n.tsg != nil || n.channel != nil) && found[key.Client] && n.born < v.Start && n.seen.start < v.Start && !objects[key] {
			lost = append(lost, n)
		}
	}
	slices.SortFunc(lost, func(a, b *object) int { return compareObjects(a.Object, b.Object) })
	for _, n := range lost {
		if s.objects[n.Object] == n { // it may have gone with its parent
			s.free(n, v.Start)
		}
	}
}

func compareObjects(a, b Object) int {
	return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.Handle, b.Handle))
}
