package sched

import (
	"tsgtop/internal/rm"
)

// applyCall folds one RM call: what it made, freed or set. A call that failed
// changes nothing.
func (s *State) applyCall(c *Call) {
	s.tick(c.End)
	s.rate.addTurn(clampTime(c.End))
	s.keptParams = s.log.addCall(c)
	if cl := s.clients[c.Client]; cl != nil && cl.file != c.File && c.File != 0 && c.Errno == 0 && c.Status == 0 {
		s.setFile(cl, c.File)
	}
	ok := c.Errno == 0 && c.Status == 0
	switch c.Kind {
	case CallControl:
		s.applyControl(c, ok)
	case CallAlloc:
		if ok {
			s.applyAlloc(c)
		}
	case CallFree:
		if ok {
			s.applyFree(c)
		}
	case CallDup:
		if ok {
			s.applyDup(c)
		}
	case CallClose:
		s.closes = true
		s.applyClose(c)
	}
}

func clampTime(t Time) Time { return min(max(t, 0), maxTime) }

func (s *State) applyAlloc(c *Call) {
	p := c.Params
	if p == nil {
		p = &Params{}
	}
	switch {
	case c.Number == rm.ClassClient || c.Number == rm.ClassRoot:
		s.allocClient(c)
	case c.Number == rm.ClassMPS:
		if cl := s.clientOf(c); cl != nil {
			cl.mps = true
		}
	case c.Number == rm.ClassDevice:
		if n := s.allocObject(c); n != nil {
			if n.device == nil {
				n.device = &device{instance: Unknown, gpu: Unknown}
			}
			if p.DeviceInstance != nil {
				n.device.instance = int(*p.DeviceInstance)
			}
			s.adopt(n)
		}
	case c.Number == rm.ClassTSG:
		n := s.allocObject(c)
		if n == nil {
			return
		}
		t := n.tsg
		if t == nil {
			if t = s.newTSG(n, false); t == nil {
				return
			}
			t.slice.set(defaultTimeslice, FromDefault, 0)
		}
		t.created = max(c.End, 1)
		t.setEngine(p.Engine)
		s.placeTSG(n)
		s.adopt(n)
		s.noteCall(t, c)
		s.tell(t, TSGCreated, c.End, c.PID, c.Command, nil)
	case rm.IsChannelClass(c.Number):
		n := s.allocObject(c)
		if n == nil {
			return
		}
		if n.channel == nil {
			n.channel = &channel{class: c.Number, handles: []*object{n}}
		}
		ch := n.channel
		ch.context.set(p.Context)
		ch.runlist.set(p.Runlist)
		ch.chid.set(p.ChID)
		if p.Engine != nil && *p.Engine != 0 {
			ch.engine.set(p.Engine)
		}
		s.placeChannel(n)
		s.channelChanged(ch)
		if t := ch.tsg; t != nil {
			if t.internal() && t.created == 0 { // RM made a TSG for it
				t.created = n.born
				if t.slice.from == FromNowhere {
					t.slice.set(defaultTimeslice, FromDefault, 0)
				}
				t.setEngine(p.Engine)
				s.locate(t)
				s.tell(t, TSGCreated, c.End, c.PID, c.Command, nil)
			}
			s.noteCall(t, c)
		}
	}
}

// setEngine takes an engine type; 0 says nothing.
func (t *tsg) setEngine(e *uint32) {
	if e != nil && *e != 0 {
		t.engType.set(e)
	}
}

// allocClient notes a new client. Its handle is the new object's; the call's
// own client field may be empty.
func (s *State) allocClient(c *Call) {
	h := c.Object
	if h == 0 {
		h = c.Client
	}
	if old := s.clients[h]; old != nil {
		if !old.seen.overtook(c.End, old.born) {
			s.endClient(old, c.Start) // its end was not seen
		} else {
			old.setOwner(s.process(c.PID, c.Start))
		}
	}
	cl := s.client(h, c.PID, c.Start)
	if cl == nil {
		return
	}
	cl.byAlloc = true
	cl.born = max(c.End, 1)
	s.setFile(cl, c.File)
}

// clientOf finds the client of a call. One that we never saw made was there
// before us: it is taken to be the caller's until a scan tells, unless the
// call was our own.
func (s *State) clientOf(c *Call) *client {
	pid := c.PID
	if c.Command != "" {
		pid = 0
	}
	cl := s.client(c.Client, pid, c.Start)
	if cl != nil {
		s.setFile(cl, c.File)
	}
	return cl
}

// overtook tells whether what was allocated at an instant is what a scan found
// already: the scan's result only came in before the call's record. It is so
// where the scan ended after the alloc and the stream knows no other alloc of
// that handle (born); a free before it would have come first.
func (f scanned) overtook(alloc, born Time) bool {
	return born == 0 && f.start != 0 && f.end >= alloc
}

// allocObject gives the node of a new object, which a scan may have found before.
func (s *State) allocObject(c *Call) *object {
	cl := s.clientOf(c)
	if cl == nil {
		return nil
	}
	if n := s.objects[Object{Client: c.Client, Handle: c.Object}]; n != nil &&
		n.class == c.Number && n.seen.overtook(c.End, n.born) {
		n.born = max(c.End, 1)
		if n.orphan {
			n.parentHandle = c.Parent
			s.hang(n)
		}
		return n
	}
	return s.newObject(cl, c.Object, c.Parent, c.Number, max(c.End, 1))
}

// applyFree ends an object or a whole client. What is not known is noted too:
// a scan that began earlier may still bring it.
func (s *State) applyFree(c *Call) {
	h := c.Object
	if cl := s.clients[h]; cl != nil && (c.Client == h || c.Client == 0) {
		if cl.seen.start > c.End && cl.born == 0 || cl.born > c.End {
			return // an earlier client of that handle
		}
		s.endClient(cl, c.End)
		return
	}
	key := Object{Client: c.Client, Handle: h}
	if n := s.objects[key]; n != nil {
		if n.seen.start > c.End && n.born == 0 || n.born > c.End {
			return // an earlier object of that handle
		}
		if n.tsg != nil {
			s.noteCall(n.tsg, c)
		} else if n.channel != nil && n.channel.tsg != nil {
			s.noteCall(n.channel.tsg, c)
		}
		s.free(n, c.End)
		return
	}
	s.tombs.add(key, c.End, s.now)
	if cl := s.clients[c.Client]; cl != nil {
		for _, o := range cl.orphansOf(h) {
			if o.born <= c.End {
				s.free(o, c.End)
			}
		}
	}
}

// applyDup gives an object a second handle.
func (s *State) applyDup(c *Call) {
	if c.Params == nil || c.Params.SrcClient == nil || c.Params.SrcObject == nil {
		return
	}
	src := s.objects[Object{Client: *c.Params.SrcClient, Handle: *c.Params.SrcObject}]
	if src == nil {
		return
	}
	n := s.allocObject(c)
	if n == nil {
		return
	}
	if s.objects[src.Object] != src { // the new handle took the source's place
		s.free(n, c.End)
		return
	}
	n.class, n.device = src.class, src.device
	if t := src.tsg; t != nil {
		n.tsg = t
		t.handles = append(t.handles, n)
		s.noteCall(t, c)
	}
	if ch := src.channel; ch != nil {
		n.channel = ch
		ch.handles = append(ch.handles, n)
	}
	s.adopt(n)
}

// applyClose ends the clients of a file that was closed for the last time.
func (s *State) applyClose(c *Call) {
	if c.File == 0 {
		if cl := s.clients[c.Client]; cl != nil {
			s.endClient(cl, c.End)
		}
		return
	}
	if s.files[c.File] == 0 {
		return
	}
	for _, cl := range s.clientsWhere(func(cl *client) bool { return cl.file == c.File && cl.born <= c.End }) {
		s.endClient(cl, c.End)
	}
}

// Calls that are kept per TSG for its detail, and for all TSGs together.
const (
	maxTSGCalls    = 100
	maxAllTSGCalls = 1 << 16
)

// noteCall keeps the call that is being applied with the TSG that it concerns.
func (s *State) noteCall(t *tsg, c *Call) {
	k := *c
	k.Params = s.keptParams
	limit := maxTSGCalls
	if s.tsgCalls >= maxAllTSGCalls {
		limit = max(len(t.calls), 1)
	}
	before := len(t.calls)
	t.calls = keepLast(t.calls, k, limit)
	s.tsgCalls += len(t.calls) - before
}

// tell derives a lifecycle fact. pid 0: of the TSG's process.
func (s *State) tell(t *tsg, kind LifecycleKind, at Time, pid int, command string, value *uint64) {
	owner, object, _ := t.owner() // as it is shown, and as commands name it
	if pid == 0 && owner != nil && owner.proc != nil {
		pid = owner.proc.PID
	}
	l := Lifecycle{
		Time: at, Kind: kind, Gen: t.gen, Object: object, PID: pid, Command: command,
		ID: TSGID{GPU: t.gpu, Runlist: t.runlist, TSG: t.number},
	}
	if value != nil {
		l.Value = Ptr(*value)
	}
	s.derived = append(s.derived, l)
	s.log.addLifecycle(l)
}
