package sched

import (
	"cmp"
	"slices"

	"tsgtop/internal/rm"
)

// client is an RM client: everything that one process's RM calls made through
// one file lives in it, and ends with it.
type client struct {
	handle   Handle
	root     *object
	proc     *process // whose it is; nil: not known
	byAlloc  bool     // proc made the client, as the stream saw
	holders  []int    // pids known to hold its file, sorted
	file     uint32   // number of its file, 0: not known
	born     Time     // end of the alloc; 0: before we started
	seen     scanned
	mps      bool
	orphans  int  // nodes whose parent is not known
	orphaned Time // when the last known holder exited; 0: one is there, or none was known
}

// object is a node of a client's tree of handles: its root, a device, a TSG or
// a channel. What a handle stands for can have several handles (dup).
type object struct {
	Object
	class        uint32
	client       *client
	parent       *object
	child        *object // first of its children
	next, prev   *object // of the same parent
	parentHandle Handle  // as given at the alloc
	orphan       bool    // its parent is not known: it hangs on the root
	born         Time    // end of the alloc; 0: before we started
	seen         scanned
	device       *device
	tsg          *tsg
	channel      *channel
}

// scanned is when the newest scan that found something began and ended.
type scanned struct{ start, end Time }

func (f *scanned) by(v *Inventory) {
	if v.Start > f.start {
		*f = scanned{v.Start, v.End}
	}
}

// device is what a device handle stands for.
type device struct {
	instance int // RM's deviceId; Unknown
	gpu      int // Unknown
}

func (n *object) attach(parent *object) {
	n.parent = parent
	n.prev, n.next = nil, parent.child
	if parent.child != nil {
		parent.child.prev = n
	}
	parent.child = n
}

func (n *object) detach() {
	switch {
	case n.prev != nil:
		n.prev.next = n.next
	case n.parent != nil:
		n.parent.child = n.next
	}
	if n.next != nil {
		n.next.prev = n.prev
	}
	n.parent, n.next, n.prev = nil, nil, nil
}

// client finds a client, or makes one that existed before we looked. Nil where
// there are too many.
func (s *State) client(h Handle, pid int, at Time) *client {
	if c := s.clients[h]; c != nil {
		return c
	}
	if h == 0 {
		return nil
	}
	if len(s.clients) >= maxClients {
		s.cut++
		return nil
	}
	c := &client{handle: h}
	c.root = &object{Object: Object{Client: h, Handle: h}, class: rm.ClassClient, client: c}
	c.setOwner(s.process(pid, at))
	s.clients[h] = c
	return c
}

func (c *client) setOwner(p *process) {
	c.proc = p
	if p != nil {
		c.addHolder(p.PID)
		if p.exited != 0 && len(c.holders) == 1 {
			c.orphaned = p.exited
		}
	}
}

func (c *client) addHolder(pid int) {
	if i, ok := slices.BinarySearch(c.holders, pid); !ok && len(c.holders) < 1024 {
		c.holders = slices.Insert(c.holders, i, pid)
	}
	c.orphaned = 0
}

func (c *client) holderGone(pid int, at Time) {
	i, ok := slices.BinarySearch(c.holders, pid)
	if !ok {
		return
	}
	c.holders = slices.Delete(c.holders, i, i+1)
	if len(c.holders) == 0 {
		c.orphaned = at
	}
}

func (s *State) setFile(c *client, file uint32) {
	if file == 0 || c.file == file {
		return
	}
	s.dropFile(c.file)
	c.file = file
	s.files[file]++
}

func (s *State) dropFile(file uint32) {
	if file == 0 {
		return
	}
	if s.files[file]--; s.files[file] <= 0 {
		delete(s.files, file)
	}
}

// clientsWhere gives clients by handle: what ends at once ends in one order.
func (s *State) clientsWhere(want func(*client) bool) []*client {
	var l []*client
	for _, c := range s.clients {
		if want(c) {
			l = append(l, c)
		}
	}
	slices.SortFunc(l, func(a, b *client) int { return cmp.Compare(a.handle, b.handle) })
	return l
}

// newObject makes a node; a node that has the handle already was freed unseen.
func (s *State) newObject(c *client, h, parent Handle, class uint32, at Time) *object {
	key := Object{Client: c.handle, Handle: h}
	if old := s.objects[key]; old != nil {
		s.free(old, at)
	}
	if len(s.objects) >= maxObjects || h == 0 || h == c.handle {
		s.cut++
		return nil
	}
	if parent != c.handle && c.orphans >= maxOrphans && s.objects[Object{Client: c.handle, Handle: parent}] == nil {
		s.cut++
		return nil
	}
	n := &object{Object: key, class: class, client: c, parentHandle: parent, born: at}
	s.objects[key] = n
	s.hang(n)
	return n
}

// hang puts a node where its parent's handle says.
func (s *State) hang(n *object) {
	n.detach()
	p := n.client.root
	n.setOrphan(false)
	if n.parentHandle != n.client.handle {
		q := s.objects[Object{Client: n.Client, Handle: n.parentHandle}]
		if q != nil && q != n && !q.under(n) {
			p = q
		} else {
			n.setOrphan(true)
		}
	}
	n.attach(p)
}

func (n *object) setOrphan(orphan bool) {
	switch {
	case orphan && !n.orphan:
		n.client.orphans++
	case !orphan && n.orphan:
		n.client.orphans--
	}
	n.orphan = orphan
}

// under tells whether n hangs below q.
func (n *object) under(q *object) bool {
	for p := n.parent; p != nil; p = p.parent {
		if p == q {
			return true
		}
	}
	return false
}

// adopt gives a new node the children that were there before it was known. A
// child that is older than the node was an earlier object's, and ended with it.
func (s *State) adopt(n *object) {
	for _, o := range n.client.orphansOf(n.Handle) {
		switch {
		case o == n:
		case o.born != 0 && o.born < n.born:
			s.free(o, n.born)
		default:
			s.hang(o)
			s.placed(o)
		}
	}
}

// orphansOf gives the nodes that wait for a parent of that handle.
func (c *client) orphansOf(parent Handle) []*object {
	if c.orphans == 0 {
		return nil
	}
	var l []*object
	for o := c.root.child; o != nil; o = o.next {
		if o.orphan && o.parentHandle == parent {
			l = append(l, o)
		}
	}
	return l
}

// free ends a node and all below it.
func (s *State) free(n *object, at Time) {
	for n.child != nil {
		s.free(n.child, at)
	}
	n.detach()
	n.setOrphan(false)
	delete(s.objects, n.Object)
	s.tombs.add(n.Object, at, s.now)
	if n.channel != nil {
		s.dropChannelHandle(n, at)
	}
	if n.tsg != nil {
		s.dropTSGHandle(n, at)
	}
}

// endClient ends a client and all that is in it.
func (s *State) endClient(c *client, at Time) {
	for c.root.child != nil {
		s.free(c.root.child, at)
	}
	s.dropFile(c.file)
	delete(s.clients, c.handle)
	s.tombs.add(c.root.Object, at, s.now)
}

// deviceOf is the device that a node hangs on; nil where it is not known.
func (n *object) deviceOf() *object {
	for p := n; p != nil; p = p.parent {
		if p.device != nil {
			return p
		}
	}
	return nil
}

// tombs remembers what was freed when, so that a scan that began before cannot
// bring it back. Bounded: the oldest are forgotten first.
type tombs struct {
	at    map[Object]Time
	order []tomb // a ring once it is full
	head  int
}

type tomb struct {
	key Object
	at  Time
}

const (
	maxTombs = 1 << 15
	// tombKeep is longer than a scan takes to come in.
	tombKeep = 120 * second
)

func (t *tombs) add(key Object, at, now Time) {
	if t.at == nil {
		t.at = map[Object]Time{}
	}
	t.at[key] = at
	if len(t.order) < maxTombs {
		t.order = append(t.order, tomb{key, at})
		return
	}
	old := &t.order[t.head]
	if t.at[old.key] == old.at && old.key != key {
		delete(t.at, old.key)
	}
	*old = tomb{key, at}
	t.head = (t.head + 1) % maxTombs
}

// after tells whether the object was freed at t or later.
func (t *tombs) after(key Object, at Time) bool {
	f, ok := t.at[key]
	return ok && f >= at
}

// expire forgets what no scan can bring back any more.
func (t *tombs) expire(now Time) {
	if len(t.order) == 0 || len(t.order) == maxTombs {
		return
	}
	n := 0
	for n < len(t.order) && now-t.order[n].at > tombKeep {
		if t.at[t.order[n].key] == t.order[n].at {
			delete(t.at, t.order[n].key)
		}
		n++
	}
	if n > 0 {
		t.order = append(t.order[:0], t.order[n:]...)
	}
}
