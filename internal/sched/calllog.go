package sched

// CallLine is one line of the call stream: exactly one of its pointers is set.
type CallLine struct {
	Seq       uint64 // running number from 1
	Call      *Call
	Lifecycle *Lifecycle
	Exit      *ProcessExit
	Xid       *Xid
}

// callLog is the latest lines of the call stream, a ring.
type callLog struct {
	limit int
	lines []logLine
	seq   uint64 // of the newest line
}

type logLine struct {
	kind  uint8
	call  Call
	other any // *Lifecycle, *ProcessExit or *Xid: never changed
}

const (
	lineCall uint8 = iota
	lineLifecycle
	lineExit
	lineXid
)

// next gives the place of a new line.
func (l *callLog) next() *logLine {
	i := int(l.seq % uint64(l.limit))
	l.seq++
	if i == len(l.lines) {
		l.lines = append(l.lines, logLine{})
	}
	return &l.lines[i]
}

// addCall keeps a copy, and gives the copy of the parameters, which never
// changes.
func (l *callLog) addCall(c *Call) *Params {
	n := l.next()
	n.kind, n.other = lineCall, nil
	n.call = *c
	n.call.Params = ownParams(c.Params)
	return n.call.Params
}

func (l *callLog) addLifecycle(f Lifecycle) { l.addOther(lineLifecycle, &f) }
func (l *callLog) addExit(e ProcessExit)    { l.addOther(lineExit, &e) }
func (l *callLog) addXid(x Xid)             { l.addOther(lineXid, &x) }

func (l *callLog) addOther(kind uint8, v any) {
	*l.next() = logLine{kind: kind, other: v}
}

// line makes a line for a reader.
func (l *callLog) line(seq uint64) CallLine {
	n := &l.lines[int((seq-1)%uint64(l.limit))]
	out := CallLine{Seq: seq}
	switch n.kind {
	case lineCall:
		out.Call = Ptr(n.call)
	case lineLifecycle:
		out.Lifecycle = n.other.(*Lifecycle)
	case lineExit:
		out.Exit = n.other.(*ProcessExit)
	case lineXid:
		out.Xid = n.other.(*Xid)
	}
	return out
}

// Calls gives lines numbered above after, oldest first, at most limit of them.
// Where more are there, after 0 gets the latest, any other the first: so a
// reader that comes again with the last number that it got misses nothing that
// is still kept (a jump in the numbers says that it came too late). filter
// chooses among calls; lines that are no calls always pass it.
func (s *State) Calls(after uint64, limit int, filter func(*Call) bool) []CallLine {
	l := &s.log
	if limit <= 0 || after >= l.seq {
		return nil
	}
	want := func(seq uint64) bool {
		n := &l.lines[int((seq-1)%uint64(l.limit))]
		return n.kind != lineCall || filter == nil || filter(&n.call)
	}
	var out []CallLine
	if after == 0 {
		oldest := l.seq - uint64(len(l.lines)) + 1
		first := l.seq + 1
		for n := 0; first > oldest && n < limit; {
			if first--; want(first) {
				n++
			}
		}
		after = first - 1
	}
	after = max(after, l.seq-uint64(len(l.lines)))
	for seq := after + 1; seq <= l.seq && len(out) < limit; seq++ {
		if want(seq) {
			out = append(out, l.line(seq))
		}
	}
	return out
}

// ownedParams holds parameters with the numbers that they point to, in one
// piece of memory.
type ownedParams struct {
	Params
	u32 [11]uint32
	u64 uint64
	b   [5]bool
	h   [2]Handle
}

// ownParams copies parameters: the source may use its memory again.
func ownParams(p *Params) *Params {
	if p == nil {
		return nil
	}
	o := &ownedParams{Params: *p}
	for i, f := range [...]**uint32{
		&o.Engine, &o.Context, &o.TSGNumber, &o.Interleave, &o.TimeoutUS, &o.Runlist,
		&o.ChID, &o.DeviceInstance, &o.SubDevice, &o.ProcessID,
	} {
		if *f != nil {
			o.u32[i] = **f
			*f = &o.u32[i]
		}
	}
	for i, f := range [...]**bool{&o.Wait, &o.Enable, &o.SkipSubmit, &o.Immediate, &o.Force} {
		if *f != nil {
			o.b[i] = **f
			*f = &o.b[i]
		}
	}
	for i, f := range [...]**Handle{&o.SrcClient, &o.SrcObject} {
		if *f != nil {
			o.h[i] = **f
			*f = &o.h[i]
		}
	}
	if o.Timeslice != nil {
		o.u64 = *o.Timeslice
		o.Timeslice = &o.u64
	}
	return &o.Params
}

// linesSince appends all kept lines numbered above seq.
func (s *State) linesSince(out []CallLine, seq uint64) []CallLine {
	l := &s.log
	seq = max(seq, l.seq-uint64(len(l.lines)))
	for seq++; seq <= l.seq; seq++ {
		out = append(out, l.line(seq))
	}
	return out
}
