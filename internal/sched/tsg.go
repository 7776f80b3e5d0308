package sched

import (
	"slices"

	"tsgtop/internal/rm"
)

// defaultTimeslice is what RM gives a TSG that nobody set, in microseconds
// (NV_RAMRL_ENTRY_TSG_TIMESLICE: 128 << 3).
const defaultTimeslice = 1024

// optional is a number that may not be known.
type optional struct {
	v  uint32
	ok bool
}

func (o *optional) set(p *uint32) {
	if p != nil {
		o.v, o.ok = *p, true
	}
}

// may tells whether the number can be p, as far as both are known.
func (o optional) may(p *uint32) bool { return !o.ok || p == nil || o.v == *p }

func (o optional) ptr() *uint32 {
	if !o.ok {
		return nil
	}
	return Ptr(o.v)
}

// row is what the tree shows on one line and takes statistics of: a TSG, or a
// context of the trace whose TSG is not known.
type row struct {
	gen     uint64
	tsg     *tsg     // nil: made from the trace alone
	context uint32   // of a row made from the trace alone
	proc    *process // likewise
	gpu     int      // likewise
	hidden  bool     // stands for all contexts above the limit
	ended   Time     // 0: it lives
	engine  *engine  // that it was seen on; nil: never
	merged  []uint64 // generations of rows whose statistics went into this one's
	stay
	st *rowStats // nil until its first turn
}

// stats gives the row's statistics, making them at its first turn.
func (r *row) stats() *rowStats {
	if r.st == nil {
		r.st = &rowStats{}
	}
	return r.st
}

// tsg is a channel group, the unit of the hardware's scheduler.
type tsg struct {
	row
	object    Object // its handle; with handle 0 where RM made it for a lone channel
	client    *client
	handles   []*object // all that name it: one, more with dups
	device    Handle
	dev       *device
	runlist   int // Unknown
	number    int // Unknown
	unique    optional
	engType   optional // NV2080 engine type
	slice     timeslices
	level     optional // interleave
	scheduled optional // 1: yes
	channels  []*channel
	created   Time // 0: before we started
	preempts  []preempt
	calls     []Call        // the latest that named it or its channels
	switches  *switchCounts // nil: its counters were never read
	place     int           // in State.tsgs
}

// channel is a queue of work; it belongs to one TSG.
type channel struct {
	handles []*object
	class   uint32
	engine  optional
	chid    optional
	runlist optional
	context optional
	tsg     *tsg // nil while its parent is not known
}

// newTSG makes a TSG that a node (or, internal, a channel's node) stands for.
func (s *State) newTSG(n *object, internal bool) *tsg {
	if len(s.tsgs) >= maxTSGs {
		s.cut++
		return nil
	}
	t := &tsg{client: n.client, object: n.Object, runlist: Unknown, number: Unknown, place: len(s.tsgs)}
	t.row.tsg, t.gen, t.gpu = t, s.gen(), Unknown
	if internal {
		t.object.Handle = 0
	}
	n.tsg = t
	t.handles = append(t.handles, n)
	s.tsgs = append(s.tsgs, t)
	s.placeTSG(n)
	return t
}

// placeTSG takes a TSG's device, and with it the GPU, from where its node hangs.
func (s *State) placeTSG(n *object) {
	if d := n.deviceOf(); d != nil {
		n.tsg.device, n.tsg.dev = d.Handle, d.device
	}
	s.locate(n.tsg)
}

// locate works out a TSG's GPU and runlist from what has become known.
func (s *State) locate(t *tsg) {
	if t.dev != nil && t.gpu == Unknown {
		t.gpu = s.gpuOf(t.dev)
	}
	if t.runlist == Unknown && t.gpu != Unknown && t.engType.ok {
		if g := s.gpu(t.gpu); g != nil {
			t.runlist = g.runlistOf(t.engType.v)
		}
	}
}

// gpuOf gives the index of a device's GPU.
func (s *State) gpuOf(d *device) int {
	if d.gpu == Unknown && d.instance != Unknown {
		for _, g := range s.gpus {
			if g.view.DeviceInstance == d.instance {
				d.gpu = g.view.Index
			}
		}
	}
	return d.gpu
}

// placed settles what follows when a node got its parent.
func (s *State) placed(n *object) {
	switch {
	case n.channel != nil:
		s.placeChannel(n)
	case n.tsg != nil:
		s.placeTSG(n)
	}
}

// placeChannel gives a channel its TSG: the parent, or, directly under a
// device, one that RM makes for it alone.
func (s *State) placeChannel(n *object) {
	ch := n.channel
	if ch.tsg != nil || n.parent == nil {
		return
	}
	t := n.parent.tsg
	if t == nil && n.parent.device != nil {
		t = s.newTSG(n, true)
	}
	if t == nil {
		return
	}
	ch.tsg = t
	t.channels = append(t.channels, ch)
	if ch.engine.ok && !t.engType.ok {
		t.engType = ch.engine
	}
	s.channelChanged(ch)
}

// channelChanged passes on what was learnt of a channel to its TSG.
func (s *State) channelChanged(ch *channel) {
	t := ch.tsg
	if t == nil {
		return
	}
	if ch.runlist.ok {
		t.runlist = int(ch.runlist.v)
	}
	if ch.context.ok {
		s.own(ch.context.v, t)
	}
	s.locate(t)
}

// dropChannelHandle: one handle of a channel is gone; with the last, the channel.
func (s *State) dropChannelHandle(n *object, at Time) {
	ch := n.channel
	ch.handles = slices.DeleteFunc(ch.handles, func(o *object) bool { return o == n })
	if len(ch.handles) > 0 || ch.tsg == nil {
		return
	}
	t := ch.tsg
	t.channels = slices.DeleteFunc(t.channels, func(c *channel) bool { return c == ch })
	ch.tsg = nil
}

// dropTSGHandle: one handle of a TSG is gone; with the last, the TSG.
func (s *State) dropTSGHandle(n *object, at Time) {
	t := n.tsg
	t.handles = slices.DeleteFunc(t.handles, func(o *object) bool { return o == n })
	if t.ended != 0 {
		return
	}
	if len(t.handles) > 0 {
		if t.object == n.Object {
			t.object, t.client = t.handles[0].Object, t.handles[0].client
		}
		return
	}
	t.ended = max(at, 1)
	s.tsgCalls -= len(t.calls)
	if len(t.calls) > 10 {
		t.calls = slices.Clone(t.calls[len(t.calls)-10:]) // a detail of what is over shows its end
	}
	last := len(s.tsgs) - 1
	s.tsgs[t.place] = s.tsgs[last]
	s.tsgs[t.place].place = t.place
	s.tsgs = s.tsgs[:last]
	s.retire(&t.row)
	s.tell(t, TSGDestroyed, at, 0, "", nil)
}

// own notes that a context of the trace is a TSG's. A row that was made from
// the trace alone is merged into the TSG's, with its statistics.
func (s *State) own(context uint32, t *tsg) {
	if old := s.owners[context]; old == t || old != nil && old.ended == 0 && t.ended != 0 {
		return
	}
	if len(s.owners) >= maxObjects {
		s.cut++
		return
	}
	s.owners[context] = t
	for _, g := range s.gpus {
		for _, e := range g.engines {
			if c := e.contexts[context]; c != nil {
				s.assign(e, c, t)
			}
		}
	}
}

// graphics tells whether the TSG is on an engine that the context-switch trace
// covers; known is false where its engine is not known.
func (s *State) graphics(t *tsg) (yes, known bool) {
	if t.engType.ok {
		return rm.IsGraphicsEngine(t.engType.v), true
	}
	if t.gpu != Unknown && t.runlist != Unknown {
		if g := s.gpu(t.gpu); g != nil {
			if es := g.enginesOf(t.runlist); len(es) > 0 {
				return slices.ContainsFunc(es, rm.IsGraphicsEngine), true
			}
		}
	}
	return false, false
}

// timeslices are a TSG's settings of its timeslice, in microseconds.
type timeslices struct {
	us     uint64
	from   ValueFrom
	at     Time              // when us was set or read; 0: it is the default
	since  Time              // when us came to be known, or came instead of another
	before []timesliceAt     // earlier values, the latest few
	log    []TimesliceChange // what was tried, failures too
}

type timesliceAt struct {
	us    uint64
	until Time
}

const (
	maxSlicesBefore = 16
	maxSlicesLogged = 64
)

// set takes a value that was set or read at an instant.
func (l *timeslices) set(us uint64, from ValueFrom, at Time) {
	if at < l.at {
		return // a newer one is known
	}
	if from == FromRead && l.from == FromSeen && us == l.us {
		return // read back as it was seen set
	}
	if us != l.us || l.from == FromNowhere {
		if l.from != FromNowhere {
			l.before = keepLast(l.before, timesliceAt{l.us, at}, maxSlicesBefore)
		}
		l.us, l.at, l.since = us, at, at
	}
	l.from = from
	l.at = at
}

// over gives the smallest and the largest value in force between two instants.
func (l *timeslices) over(a, b Time) (lo, hi uint64, ok bool) {
	if l.from == FromNowhere {
		return 0, 0, false
	}
	lo, hi = l.us, l.us
	until := maxTime
	for i := len(l.before) - 1; i >= 0 && until > a; i-- {
		p := l.before[i]
		if p.until < a {
			break
		}
		if until > b && p.until > b {
			lo, hi = p.us, p.us // the newer values came after b
		} else {
			lo, hi = min(lo, p.us), max(hi, p.us)
		}
		until = p.until
	}
	return lo, hi, true
}
