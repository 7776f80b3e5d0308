package ui

import (
	"fmt"
	"strconv"

	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
)

const callsKept = 5000 // lines that can be scrolled back to

// callsScreen is the stream of RM calls and of what they did to TSGs.
type callsScreen struct {
	*Common
	kept   []sched.CallLine
	after  uint64
	follow bool
	top    int // first line in view, where it does not follow
	height int
}

// again forgets what is kept, so that a new filter looks at all that the board has.
func (s *callsScreen) again() { s.kept, s.after, s.top = nil, 0, 0 }

// pull takes new lines; not while paused.
func (s *callsScreen) pull(paused bool) {
	if paused && len(s.kept) > 0 {
		return
	}
	var want func(*sched.Call) bool
	if !s.filter.empty() {
		want = s.wantsCall
	}
	for range 10 {
		got := s.opts.Board.Calls(s.after, 2000, want)
		for _, l := range got {
			s.after = max(s.after, l.Seq)
			if s.wants(&l) {
				s.kept = append(s.kept, l)
			}
		}
		if len(got) < 2000 {
			break
		}
	}
	if over := len(s.kept) - callsKept; over > 0 {
		s.kept = append(s.kept[:0:0], s.kept[over:]...)
		s.top = max(s.top-over, 0)
	}
	if n := len(s.kept); n > 0 && s.live != nil && s.live.Time < lineTime(&s.kept[n-1]) {
		s.again() // a replay went back
	}
}

func (s *callsScreen) wantsCall(c *sched.Call) bool {
	return s.filter.matchesText(strconv.Itoa(c.PID), c.Comm, sched.CallName(c), statusName(c.Status), c.Object.String(), s.exe(c.PID))
}

func (s *callsScreen) wants(l *sched.CallLine) bool {
	switch {
	case s.filter.empty() || l.Call != nil: // calls went through the filter already
		return true
	case l.Lifecycle != nil:
		e := l.Lifecycle
		return s.filter.matchesText(strconv.Itoa(e.PID), string(e.Kind), e.ID.String(), e.Object.Handle.String(), s.exe(e.PID))
	case l.Xid != nil:
		return s.filter.matchesText(strconv.Itoa(l.Xid.PID), "xid", l.Xid.Name, rm.XidName(l.Xid.Code))
	case l.Exit != nil:
		return s.filter.matchesText(strconv.Itoa(l.Exit.PID), "exit", s.exe(l.Exit.PID))
	}
	return true
}

// exe is the name of a process that has a TSG; others' calls bear their comm.
func (s *callsScreen) exe(pid int) string {
	if s.snap == nil {
		return ""
	}
	for i := range s.snap.TSGs {
		if s.snap.TSGs[i].Process.PID == pid {
			return processName(&s.snap.TSGs[i])
		}
	}
	return ""
}

func lineTime(l *sched.CallLine) sched.Time {
	switch {
	case l.Call != nil:
		return l.Call.End
	case l.Lifecycle != nil:
		return l.Lifecycle.Time
	case l.Xid != nil:
		return l.Xid.Time
	case l.Exit != nil:
		return l.Exit.Time
	}
	return 0
}

func (s *callsScreen) act(a action) {
	last := max(len(s.kept)-s.height, 0)
	if s.follow {
		s.top = last
	}
	switch a {
	case actUp:
		s.top--
	case actDown:
		s.top++
	case actPageUp:
		s.top -= max(s.height-1, 1)
	case actPageDown:
		s.top += max(s.height-1, 1)
	case actTop:
		s.top = 0
	case actBottom:
		s.top = last
	}
	s.top = min(max(s.top, 0), last)
	s.follow = s.top == last
}

func (s *callsScreen) lines(m *Model) []string {
	return m.frameOf(nil, nil, nil, func(height int) []string {
		rate := ""
		if s.live != nil {
			rate = fmt.Sprintf("calls  %.0f/s", s.live.CallRate)
		}
		if !s.follow {
			rate += "  scrolled back; end follows again"
		}
		out := []string{s.rule(rate), s.heading()}
		s.height = height - len(out)
		if len(s.kept) == 0 {
			out = append(out, s.line().put(roleDim, " no call yet").String())
		}
		from := max(len(s.kept)-s.height, 0)
		if !s.follow {
			from = min(s.top, from)
		}
		for i := from; i < len(s.kept) && len(out) < height; i++ {
			out = append(out, s.callLine(&s.kept[i]))
		}
		return pad(s.Common, out, height)
	})
}

// columns of the stream: time, pid, process, what, object, status, latency, where.
type callColumns struct{ name, call, object, status, tail int }

const (
	tookCells  = 8
	whereCells = 7
)

func (s *callsScreen) columns() callColumns {
	cc := callColumns{name: 8, status: 10, tail: tookCells}
	switch {
	case s.width >= 140:
		cc.object, cc.name, cc.status = 17, 14, 17
	case s.width >= 110:
		cc.object, cc.name, cc.status = 8, 12, 14 // the client is in the detail, the parameters are not
	case s.width >= 96:
		cc.name, cc.status = 10, 14
	case s.width < 76:
		cc.name, cc.status, cc.tail = 10, 8, 0
	}
	if s.width >= 96 {
		cc.tail += whereCells
	}
	cc.call = s.width - 1 - 13 - 8 - (cc.name + 1) - (cc.status + 1) - cc.tail
	if cc.object > 0 {
		cc.call -= cc.object + 1
	}
	return cc
}

func (s *callsScreen) heading() string {
	cc := s.columns()
	l := s.line()
	l.put(rolePlain, " ").left(roleHead, "TIME", 13).right(roleHead, "PID", 7).gap(1).left(roleHead, "PROCESS", cc.name+1)
	l.left(roleHead, "CALL", cc.call+1)
	if cc.object > 0 {
		l.left(roleHead, "OBJECT", cc.object+1)
	}
	l.left(roleHead, "STATUS", cc.status+1)
	if cc.tail > 0 {
		l.right(roleHead, "TOOK", tookCells-1)
	}
	if cc.tail > tookCells {
		l.gap(1).left(roleHead, "WHERE", whereCells-1)
	}
	return l.String()
}

func (s *callsScreen) callLine(cl *sched.CallLine) string {
	cc := s.columns()
	l := s.line()
	l.put(rolePlain, " ").left(roleDim, clockMS(lineTime(cl)), 13)
	start := func(pid int, name string) {
		p := s.signs.dash
		if pid != 0 {
			p = strconv.Itoa(pid)
		}
		l.right(rolePlain, p, 7).gap(1)
		if name == "" {
			name = s.signs.dash
		}
		l.fit(rolePlain, name, cc.name).gap(1)
	}
	switch {
	case cl.Call != nil:
		c := cl.Call
		name := s.exe(c.PID)
		if name == "" {
			name = c.Comm
		}
		start(c.PID, name)
		ro := rolePlain
		if c.Params != nil {
			ro = roleAccent
		}
		mark := ""
		if c.Command != "" {
			mark = "* " // one of ours
		}
		l.fit(ro, mark+callName(c)+s.own(sched.ParamsText(c.Params)), cc.call).gap(1)
		if cc.object > 0 {
			obj := sched.Object{Client: c.Client, Handle: c.Object}.String()
			switch {
			case c.Object == 0 && c.Client == 0:
				obj = s.signs.dash
			case c.Object == 0:
				obj = c.Client.String()
			case cellCount(obj) > cc.object:
				obj = c.Object.String()
			}
			l.left(roleDim, obj, cc.object).gap(1)
		}
		st, sro := statusName(c.Status), roleGood
		switch {
		case c.Kind == sched.CallClose: // no call, so that nothing answered
			st, sro = s.signs.dash, roleDim
		case c.Errno != 0:
			st, sro = "errno "+strconv.Itoa(c.Errno), roleBad
		case c.Status != 0:
			sro = roleBad
		}
		l.fit(sro, st, cc.status).gap(1)
		if cc.tail == 0 {
			break
		}
		took := s.signs.dash
		if c.Start != 0 && c.End >= c.Start && c.Kind != sched.CallClose {
			took = s.brief(float64(c.End-c.Start) / 1e3)
		}
		l.right(rolePlain, took, tookCells-1)
		if cc.tail > tookCells {
			l.gap(1).left(roleDim, whereText(s.Common, c.Where), whereCells-1)
		}
	case cl.Lifecycle != nil:
		e := cl.Lifecycle
		start(e.PID, s.exe(e.PID))
		what := string(e.Kind) + " " + e.ID.String() + " " + e.Object.Handle.String()
		if e.Value != nil {
			op := sched.OpTimeslice
			if e.Kind == sched.InterleaveSet {
				op = sched.OpInterleave
			}
			what += " " + s.value(op, e.Value)
		}
		if e.ID.TSG == sched.Unknown {
			what = string(e.Kind) + " " + e.Object.Handle.String()
		}
		l.put(roleTitle, s.signs.sel+" ").cut(roleTitle, what, l.room()-1)
	case cl.Xid != nil:
		x := cl.Xid
		start(x.PID, x.Name)
		l.put(roleBad, fmt.Sprintf("! Xid %d ", x.Code)).cut(roleBad, rm.XidName(x.Code), l.room()-1)
	case cl.Exit != nil:
		start(cl.Exit.PID, s.exe(cl.Exit.PID))
		l.put(roleDim, s.signs.sel+" process ended")
	}
	return l.String()
}

func whereText(c *Common, w sched.Where) string {
	if w == sched.WhereUnknown {
		return c.signs.dash
	}
	return string(w)
}

// pad brings lines to a height.
func pad(c *Common, ls []string, height int) []string {
	height = max(height, 0)
	if len(ls) > height {
		return ls[:height]
	}
	blank := c.line().String()
	for len(ls) < height {
		ls = append(ls, blank)
	}
	return ls
}
