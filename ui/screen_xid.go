package ui

import (
	"fmt"
	"strconv"
	"time"

	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
)

// xidScreen lists Xid errors, each beside the command that was in flight.
type xidScreen struct {
	*Common
	follow bool
	top    int
	height int
}

func (s *xidScreen) shownXids() []*sched.Xid {
	if s.live == nil {
		return nil
	}
	var out []*sched.Xid
	for i := range s.live.Xids {
		x := &s.live.Xids[i]
		if s.shown(x.GPU) && s.filter.matchesText(strconv.Itoa(x.PID), x.Name, x.Text, strconv.Itoa(int(x.Code)), rm.XidName(x.Code)) {
			out = append(out, x)
		}
	}
	return out
}

func (s *xidScreen) act(a action) {
	n := len(s.shownXids())
	last := max(n-s.height/2, 0)
	if s.follow {
		s.top = last
	}
	switch a {
	case actUp:
		s.top--
	case actDown:
		s.top++
	case actPageUp:
		s.top -= max(s.height/2-1, 1)
	case actPageDown:
		s.top += max(s.height/2-1, 1)
	case actTop:
		s.top = 0
	case actBottom:
		s.top = last
	}
	s.top = min(max(s.top, 0), last)
	s.follow = s.top == last
}

func (s *xidScreen) lines(m *Model) []string {
	return m.frameOf(s.gpuLines(m.tsgs.gpu()), nil, nil, func(height int) []string {
		xs := s.shownXids()
		out := []string{s.rule(fmt.Sprintf("Xid errors  %d", len(xs)))}
		l := s.line()
		l.put(rolePlain, " ").left(roleHead, "TIME", 13).left(roleHead, "GPU", 4).right(roleHead, "XID", 4).gap(1)
		l.right(roleHead, "PID", 7).gap(1).left(roleHead, "TSG", 12).put(roleHead, "WHAT")
		out = append(out, l.String())
		s.height = height - len(out)
		if len(xs) == 0 {
			why := " no Xid since start"
			if s.live != nil {
				for _, p := range s.live.Probes {
					if p.Probe == "xid" && p.State != sched.ProbeOK {
						why = " Xid errors cannot be seen here: " + p.Why
					}
				}
			}
			out = append(out, s.line().cut(roleDim, s.own(why), s.width-1).String())
		}
		from := max(len(xs)-s.height/2, 0)
		if !s.follow {
			from = min(s.top, from)
		}
		for _, x := range xs[min(from, len(xs)):] {
			if len(out)+2 > height {
				break
			}
			out = append(out, s.xidLine(x), s.xidMore(x))
		}
		return pad(s.Common, out, height)
	})
}

func (s *xidScreen) xidLine(x *sched.Xid) string {
	l := s.line()
	l.put(rolePlain, " ").left(roleDim, clockMS(x.Time), 13).left(rolePlain, idText(x.GPU), 4)
	l.right(roleBad, strconv.FormatUint(uint64(x.Code), 10), 4).gap(1)
	pid := s.signs.dash
	if x.PID != 0 {
		pid = strconv.Itoa(x.PID)
	}
	l.right(rolePlain, pid, 7).gap(1)
	tsg := s.signs.dash
	if t := s.tsgOf(x); t != nil {
		tsg = t.ID.String()
	}
	l.left(rolePlain, tsg, 11).gap(1)
	return l.cut(roleBad, rm.XidName(x.Code), l.room()-1).String()
}

// xidMore is the line under an Xid: the driver's words, and the command that
// was in flight.
func (s *xidScreen) xidMore(x *sched.Xid) string {
	l := s.line().gap(14)
	if cmd := s.inFlight(x); cmd != nil {
		l.put(roleWarn, fmt.Sprintf("during #%d ", cmd.Number)).cut(roleWarn, s.commandWords(cmd), 34).put(rolePlain, "  ")
	}
	what := x.Text
	if what == "" {
		what = x.Name
	}
	if x.From != "" {
		what += " (" + x.From + ")"
	}
	return l.cut(roleDim, what, l.room()-1).String()
}

// tsgOf finds the TSG of an Xid by its channel number, and by its process
// where the message names one; nil where it cannot be told apart.
func (s *xidScreen) tsgOf(x *sched.Xid) *sched.TSGView {
	if x.Channel == nil || s.snap == nil {
		return nil
	}
	var found *sched.TSGView
	for i := range s.snap.TSGs {
		t := &s.snap.TSGs[i]
		if t.ID.GPU != x.GPU || x.PID != 0 && t.Process.PID != x.PID {
			continue
		}
		for _, ch := range t.Channels {
			if ch.ChID != nil && int(*ch.ChID) == *x.Channel {
				if found != nil && found != t {
					return nil
				}
				found = t
			}
		}
	}
	return found
}

// inFlight is the command that was being sent or judged when an Xid came.
func (s *xidScreen) inFlight(x *sched.Xid) *sched.Command {
	for i := len(s.live.Commands) - 1; i >= 0; i-- {
		c := &s.live.Commands[i]
		if c.Issued == 0 || c.Issued > x.Time || c.Target.GPU != x.GPU {
			continue
		}
		for _, code := range c.Xid {
			if code == x.Code {
				return c
			}
		}
		took := time.Duration(c.Changed.TookNS)
		if c.Changed.State != sched.LampWaiting && took > 0 && x.Time <= c.Issued.Add(took) {
			return c
		}
		if c.Changed.State == sched.LampWaiting {
			return c
		}
	}
	return nil
}
