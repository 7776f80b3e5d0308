package sched

import (
	"cmp"
	"maps"
	"slices"
)

// Preamble gives events that tell what the state knows now, for somebody who
// joins in the middle, such as a recording: who observes, the GPUs, the
// probes, the processes, the clients with their TSGs and channels, commands,
// Xids and losses. A new state that takes them in has the same tree. What the
// past turns amounted to is not in them: statistics begin anew. Of an empty
// state it is nothing.
func (b *Board) Preamble() []Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state.preamble()
}

// Join has f called with the Preamble, and from then on as Tap does: nothing
// is told twice and nothing left out.
func (b *Board) Join(f func([]Event)) (untap func()) {
	b.feeding.Lock()
	defer b.feeding.Unlock()
	if pre := b.Preamble(); len(pre) > 0 {
		f(pre)
	}
	return b.addTap(&tap{events: f})
}

func (s *State) preamble() []Event {
	if s.now == 0 && s.source.Label == "" && len(s.probes) == 0 && len(s.gpus) == 0 {
		return nil
	}
	var out []Event
	if s.source.Label != "" || s.source.Time != 0 {
		src := s.source
		src.Notes = slices.Clone(src.Notes)
		out = append(out, src)
	}
	for _, g := range s.gpus {
		out = append(out, g.describe())
	}
	for _, p := range s.probes {
		out = append(out, p)
	}
	for _, g := range s.gpus {
		if g.sample != nil {
			v := *g.sample
			v.ProcessMem = slices.Clone(v.ProcessMem)
			out = append(out, v)
		}
	}
	for _, pid := range slices.Sorted(maps.Keys(s.processes)) {
		if p := s.processes[pid]; p.exited == 0 && p.Time != 0 {
			v := p.Process
			v.Args = slices.Clone(v.Args)
			out = append(out, v)
		}
	}
	if v := s.inventory(); len(v.Clients) > 0 || s.found != (Unattributed{}) {
		out = append(out, v)
	}
	for _, c := range s.commands {
		out = append(out, c)
	}
	for _, x := range s.xids {
		out = append(out, x)
	}
	if s.loss != (Loss{}) {
		out = append(out, s.loss)
	}
	return out
}

// describe is the GPU's description as it is known now.
func (g *gpu) describe() GPU {
	v := g.view
	v.Runlists = slices.Clone(v.Runlists)
	for i := range v.Runlists {
		v.Runlists[i].Engines = slices.Clone(v.Runlists[i].Engines)
	}
	return v
}

// inventory is the tree of clients, TSGs and channels as a scan would give it,
// with what only the stream could tell besides.
func (s *State) inventory() Inventory {
	v := Inventory{Start: s.now, End: s.now, UnattributedClients: s.found.Clients, UnattributedChannels: s.found.Channels, Why: s.found.Why}
	for _, h := range slices.Sorted(maps.Keys(s.clients)) {
		v.Clients = append(v.Clients, s.clients[h].asFound())
	}
	contexts := map[*tsg][]uint32{}
	for _, id := range slices.Sorted(maps.Keys(s.owners)) {
		t := s.owners[id]
		contexts[t] = append(contexts[t], id)
	}
	tsgs := slices.SortedFunc(slices.Values(s.tsgs), func(a, b *tsg) int { return cmp.Compare(a.gen, b.gen) })
	for _, t := range tsgs {
		f := t.asFound()
		f.Contexts = contexts[t]
		v.TSGs = append(v.TSGs, f)
		for _, n := range t.handles {
			// A further handle is known as the same TSG's by its contexts alone.
			if n.tsg == t && n.Object != t.object && !t.internal() && len(f.Contexts) > 0 {
				alias := f
				alias.Object, alias.Device = n.Object, 0
				if d := n.deviceOf(); d != nil {
					alias.Device = d.Handle
				}
				v.TSGs = append(v.TSGs, alias)
			}
		}
		for _, ch := range t.channels {
			if len(ch.handles) == 0 {
				continue
			}
			n := ch.handles[0]
			v.Channels = append(v.Channels, FoundChannel{Object: n.Object, TSG: n.parentHandle, Class: ch.class,
				Context: ch.context.ptr(), Runlist: ch.runlist.ptr(), ChID: ch.chid.ptr()})
		}
	}
	return v
}

func (c *client) asFound() FoundClient {
	f := FoundClient{Client: c.handle, PIDs: slices.Clone(c.holders), FD: Unknown, GPU: Unknown, MPS: c.mps, File: c.file}
	switch {
	case c.proc != nil:
		f.PID = c.proc.PID
	case len(c.holders) > 0:
		f.PID = c.holders[0]
	}
	return f
}

func (t *tsg) asFound() FoundTSG {
	f := FoundTSG{Object: t.object, Device: t.device, GPU: t.gpu, Runlist: t.runlist,
		UniqueID: t.unique.ptr(), Engine: t.engType.ptr(), Interleave: t.level.ptr(), Created: t.created}
	if t.number != Unknown {
		f.Number = Ptr(uint32(t.number))
	}
	if t.slice.from != FromNowhere {
		f.Timeslice, f.TimesliceFrom = Ptr(t.slice.us), t.slice.from
	}
	if t.scheduled.ok {
		f.Scheduled = Ptr(t.scheduled.v == 1)
	}
	if t.client != nil && t.client.proc != nil {
		f.PID = t.client.proc.PID
	}
	return f
}

// foundBesides takes in what a scan cannot tell and a Preamble does.
func (t *tsg) foundBesides(v *Inventory, f *FoundTSG) {
	if f.Timeslice != nil {
		from := FromRead
		switch f.TimesliceFrom { // a recording can hold anything there
		case FromSeen, FromDefault:
			from = f.TimesliceFrom
		}
		t.slice.set(*f.Timeslice, from, v.Start)
	}
	t.level.set(f.Interleave)
	if f.Scheduled != nil {
		t.scheduled = optional{ok: true}
		if *f.Scheduled {
			t.scheduled.v = 1
		}
	}
	if t.created == 0 && f.Created > 0 && f.Created <= v.Start {
		t.created = f.Created
	}
}

// foundInternal: a found TSG without a handle is one that RM made for a lone
// channel. It is known by its contexts, once its channels have come in.
func (s *State) foundInternal(v *Inventory, f *FoundTSG) {
	t := s.aliased(f)
	if t == nil || !t.internal() || t.client.handle != f.Client {
		return
	}
	if f.Number != nil {
		t.number = int(*f.Number)
	}
	t.setEngine(f.Engine)
	t.unique.set(f.UniqueID)
	t.foundBesides(v, f)
	s.locate(t)
}
