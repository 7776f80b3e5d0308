package recording

import (
	"cmp"
	"slices"

	"tsgtop/internal/sched"
)

// Bounds of what a keeper holds.
const (
	keepProcesses = 8192
	keepCalls     = 100_000
	keepLatest    = 200 // commands, and Xids: what a snapshot shows
)

// keeper holds what a reader must know who joins a stream in its middle: who
// observes, the GPUs, the processes, and of the RM calls those that made or
// shaped what still lives. A recording that begins in the middle (a further
// part of a rotated one, the last minute of a ring) begins with it.
type keeper struct {
	source    *sched.SourceInfo
	probes    []sched.ProbeStatus // latest of each probe and GPU, in the order first met
	gpus      []sched.GPU
	ties      []sched.ClockTie
	loss      *sched.Loss
	processes map[int]keptProcess
	inventory *sched.Inventory
	clients   map[sched.Handle]*keptClient
	files     map[uint32][]sched.Handle // clients by the file that they came through
	calls     int                       // in clients
	left      int                       // calls that were not kept, because there were too many
	commands  []sched.Command
	xids      []sched.Xid
}

type keptProcess struct {
	sched.Process
	exited bool
}

type keptClient struct {
	objects map[sched.Handle]*keptObject
}

// keptObject is an RM object as calls made and shaped it.
type keptObject struct {
	parent   sched.Handle
	made     *sched.Call           // the alloc or dup
	controls map[uint32]sched.Call // latest good one of each command
}

func newKeeper() *keeper {
	return &keeper{processes: make(map[int]keptProcess), clients: make(map[sched.Handle]*keptClient), files: make(map[uint32][]sched.Handle)}
}

// apply takes an event into account.
func (k *keeper) apply(e sched.Event) {
	switch v := e.(type) {
	case sched.SourceInfo:
		k.source = &v
	case sched.ProbeStatus:
		k.probes = replaceOrAdd(k.probes, v, func(o sched.ProbeStatus) bool { return o.Probe == v.Probe && o.GPU == v.GPU })
	case sched.GPU:
		k.gpus = replaceOrAdd(k.gpus, v, func(o sched.GPU) bool { return o.Index == v.Index })
	case sched.ClockTie:
		k.ties = replaceOrAdd(k.ties, v, func(o sched.ClockTie) bool { return o.GPU == v.GPU })
	case sched.Loss:
		k.loss = &v
	case sched.Process:
		k.processes[v.PID] = keptProcess{Process: v}
		if len(k.processes) > keepProcesses {
			k.forgetProcesses()
		}
	case sched.ProcessExit:
		if p, ok := k.processes[v.PID]; ok {
			p.exited = true
			k.processes[v.PID] = p
		}
	case sched.Call:
		k.call(&v)
	case sched.CallBatch:
		for i := range v.Calls {
			k.call(&v.Calls[i])
		}
	case sched.Inventory:
		k.found(v)
	case sched.Command:
		k.commands = latest(replaceOrAdd(k.commands, v, func(o sched.Command) bool { return o.ID == v.ID }))
	case sched.Xid:
		k.xids = latest(append(k.xids, v))
	}
}

func replaceOrAdd[T any](list []T, v T, same func(T) bool) []T {
	if i := slices.IndexFunc(list, same); i >= 0 {
		list[i] = v
		return list
	}
	return append(list, v)
}

func latest[T any](list []T) []T {
	if len(list) > keepLatest {
		return slices.Delete(list, 0, len(list)-keepLatest)
	}
	return list
}

func (k *keeper) call(c *sched.Call) {
	switch {
	case c.Kind == sched.CallClose:
		for _, h := range k.files[c.File] {
			k.dropClient(h)
		}
		delete(k.files, c.File)
		if c.Client != 0 {
			k.dropClient(c.Client)
		}
	case c.Errno != 0 || c.Status != 0:
	case c.Kind == sched.CallFree && c.Object == c.Client:
		k.dropClient(c.Client)
	case c.Kind == sched.CallFree:
		k.dropObject(sched.Object{Client: c.Client, Handle: c.Object})
	case c.Params != nil:
		k.keepCall(*c)
	}
}

func (k *keeper) keepCall(c sched.Call) {
	if k.calls >= keepCalls {
		k.left++
		return
	}
	client := k.clients[c.Client]
	if client == nil {
		client = &keptClient{objects: make(map[sched.Handle]*keptObject)}
		k.clients[c.Client] = client
		if c.File != 0 {
			k.files[c.File] = append(k.files[c.File], c.Client)
		}
	}
	o := client.objects[c.Object]
	if o == nil {
		o = &keptObject{}
		client.objects[c.Object] = o
	}
	if c.Kind == sched.CallControl {
		if o.controls == nil {
			o.controls = make(map[uint32]sched.Call)
		}
		if _, again := o.controls[c.Number]; !again {
			k.calls++
		}
		o.controls[c.Number] = c
		return
	}
	if o.made == nil {
		k.calls++
	}
	o.parent, o.made = c.Parent, &c
}

func (k *keeper) dropClient(h sched.Handle) {
	if c := k.clients[h]; c != nil {
		for _, o := range c.objects {
			k.calls -= o.count()
		}
		delete(k.clients, h)
	}
	if v := k.inventory; v != nil {
		v.Clients = slices.DeleteFunc(v.Clients, func(c sched.FoundClient) bool { return c.Client == h })
		v.TSGs = slices.DeleteFunc(v.TSGs, func(t sched.FoundTSG) bool { return t.Client == h })
		v.Channels = slices.DeleteFunc(v.Channels, func(c sched.FoundChannel) bool { return c.Client == h })
	}
}

// dropObject forgets an object and what hangs below it: RM frees children with their parent.
func (k *keeper) dropObject(freed sched.Object) {
	gone := map[sched.Handle]bool{freed.Handle: true}
	if c := k.clients[freed.Client]; c != nil {
		for again := true; again; {
			again = false
			for h, o := range c.objects {
				if !gone[h] && o.made != nil && gone[o.parent] {
					gone[h], again = true, true
				}
			}
		}
		for h := range gone {
			if o := c.objects[h]; o != nil {
				k.calls -= o.count()
				delete(c.objects, h)
			}
		}
	}
	if v := k.inventory; v != nil {
		for _, t := range v.TSGs {
			if t.Client == freed.Client && gone[t.Device] {
				gone[t.Handle] = true
			}
		}
		v.TSGs = slices.DeleteFunc(v.TSGs, func(t sched.FoundTSG) bool { return t.Client == freed.Client && gone[t.Handle] })
		v.Channels = slices.DeleteFunc(v.Channels, func(c sched.FoundChannel) bool {
			return c.Client == freed.Client && (gone[c.Handle] || gone[c.TSG])
		})
	}
}

func (o *keptObject) count() int {
	n := len(o.controls)
	if o.made != nil {
		n++
	}
	return n
}

// found takes a scan into account: a whole one replaces the one before, one
// of some keys is put over it.
func (k *keeper) found(v sched.Inventory) {
	for _, h := range v.Gone {
		k.dropClient(h)
	}
	v.Gone = nil
	v.Clients, v.TSGs, v.Channels = slices.Clone(v.Clients), slices.Clone(v.TSGs), slices.Clone(v.Channels)
	if k.inventory != nil {
		carryOver(&v, k.inventory)
	}
	if old := k.inventory; old != nil && !v.Complete {
		partial := v.Partial
		v.Partial = partial || old.Partial
		// Of a client that this scan looked at, it has everything, unless it is partial.
		looked := make(map[sched.Handle]bool)
		for _, c := range v.Clients {
			looked[c.Client] = !partial
		}
		old.TSGs = slices.DeleteFunc(old.TSGs, func(t sched.FoundTSG) bool { return looked[t.Client] })
		old.Channels = slices.DeleteFunc(old.Channels, func(c sched.FoundChannel) bool { return looked[c.Client] })
		for _, c := range old.Clients {
			if !slices.ContainsFunc(v.Clients, func(n sched.FoundClient) bool { return n.Client == c.Client }) {
				v.Clients = append(v.Clients, c)
			}
		}
		seen := make(map[sched.Object]bool)
		for _, t := range v.TSGs {
			seen[t.Object] = true
		}
		for _, c := range v.Channels {
			seen[c.Object] = true
		}
		for _, t := range old.TSGs {
			if !seen[t.Object] {
				v.TSGs = append(v.TSGs, t)
			}
		}
		for _, c := range old.Channels {
			if !seen[c.Object] {
				v.Channels = append(v.Channels, c)
			}
		}
	}
	k.inventory = &v
}

// carryOver keeps what only a preamble tells of what a scan has found again.
func carryOver(v, old *sched.Inventory) {
	files := make(map[sched.Handle]uint32)
	for _, c := range old.Clients {
		files[c.Client] = c.File
	}
	for i := range v.Clients {
		if c := &v.Clients[i]; c.File == 0 {
			c.File = files[c.Client]
		}
	}
	before := make(map[sched.Object]*sched.FoundTSG)
	for i := range old.TSGs {
		before[old.TSGs[i].Object] = &old.TSGs[i]
	}
	for i := range v.TSGs {
		t := &v.TSGs[i]
		o := before[t.Object]
		if o == nil || o.UniqueID != nil && t.UniqueID != nil && *o.UniqueID != *t.UniqueID {
			continue // not seen before, or another TSG of that handle
		}
		if t.Interleave == nil {
			t.Interleave = o.Interleave
		}
		if t.Scheduled == nil {
			t.Scheduled = o.Scheduled
		}
		if t.Created == 0 {
			t.Created = o.Created
		}
	}
}

// forgetProcesses drops ended processes that nothing kept refers to, and
// where that is not enough, any that nothing refers to.
func (k *keeper) forgetProcesses() {
	used := k.usedPIDs()
	for _, exitedOnly := range []bool{true, false} {
		for pid, p := range k.processes {
			if !used[pid] && (p.exited || !exitedOnly) {
				delete(k.processes, pid)
			}
		}
		if len(k.processes) <= keepProcesses*3/4 {
			return
		}
	}
}

func (k *keeper) usedPIDs() map[int]bool {
	used := make(map[int]bool)
	for _, c := range k.clients {
		for _, o := range c.objects {
			if o.made != nil {
				used[o.made.PID] = true
			}
			for _, call := range o.controls {
				used[call.PID] = true
			}
		}
	}
	if v := k.inventory; v != nil {
		for _, c := range v.Clients {
			used[c.PID] = true
		}
		for _, t := range v.TSGs {
			used[t.PID] = true
		}
	}
	return used
}

// events are what is kept, as events, in an order in which a state can take them.
func (k *keeper) events() []sched.Event {
	var out []sched.Event
	if k.source != nil {
		out = append(out, *k.source)
	}
	for _, v := range k.probes {
		out = append(out, v)
	}
	for _, v := range k.gpus {
		out = append(out, v)
	}
	for _, v := range k.ties {
		out = append(out, v)
	}
	used := k.usedPIDs()
	var processes []sched.Process
	for pid, p := range k.processes {
		if !p.exited || used[pid] {
			processes = append(processes, p.Process)
		}
	}
	slices.SortFunc(processes, func(a, b sched.Process) int { return cmp.Compare(a.PID, b.PID) })
	for _, p := range processes {
		out = append(out, p)
	}
	if k.inventory != nil {
		v := *k.inventory
		v.Clients, v.TSGs, v.Channels = slices.Clone(v.Clients), slices.Clone(v.TSGs), slices.Clone(v.Channels)
		out = append(out, v)
	}
	if calls := k.keptCalls(); len(calls) > 0 {
		out = append(out, sched.CallBatch{Calls: calls})
	}
	if k.left > 0 {
		out = append(out, sched.ProbeStatus{Probe: "recording", GPU: sched.Unknown, State: sched.ProbeLimited,
			Why: "more RM objects lived at the beginning of this part than a recording keeps: some of them are missing"})
	}
	for _, v := range k.commands {
		out = append(out, v)
	}
	for _, v := range k.xids {
		out = append(out, v)
	}
	if k.loss != nil {
		out = append(out, *k.loss)
	}
	return out
}

func (k *keeper) keptCalls() []sched.Call {
	var calls []sched.Call
	for _, c := range k.clients {
		for _, o := range c.objects {
			if o.made != nil {
				calls = append(calls, *o.made)
			}
			for _, call := range o.controls {
				calls = append(calls, call)
			}
		}
	}
	slices.SortFunc(calls, func(a, b sched.Call) int {
		return cmp.Or(cmp.Compare(a.End, b.End), cmp.Compare(a.Start, b.Start), cmp.Compare(a.Client, b.Client),
			cmp.Compare(a.Object, b.Object), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Number, b.Number))
	})
	return calls
}
