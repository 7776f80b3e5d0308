package sched

import "tsgtop/internal/rm"

// applyControl folds a control on a TSG or a channel.
func (s *State) applyControl(c *Call, ok bool) {
	n := s.objects[Object{Client: c.Client, Handle: c.Object}]
	if n == nil {
		if !ok || c.Number>>16 != rm.ClassTSG {
			return
		}
		// A control of a TSG that worked: it is one, though we did not see it made.
		cl := s.clientOf(c)
		if cl == nil || s.tombs.after(cl.root.Object, c.Start) {
			return
		}
		if n = s.newObject(cl, c.Object, 0, rm.ClassTSG, 0); n == nil {
			return
		}
		if s.newTSG(n, false) == nil {
			return
		}
		s.adopt(n)
	}
	t, ch := n.tsg, n.channel
	if ch != nil {
		t = ch.tsg
	}
	if t != nil {
		s.noteCall(t, c)
	}
	p := c.Params
	if t == nil && ch == nil || p == nil {
		if !ok || t == nil {
			return
		}
		p = &Params{}
	}
	if !ok {
		if c.Number == rm.CtrlTSGSetTimeslice && t != nil && p.Timeslice != nil {
			t.logTimeslice(c, *p.Timeslice)
		}
		return
	}
	if ch != nil {
		s.controlChannel(c, p, ch)
	}
	if t != nil {
		s.controlTSG(c, p, t, ch)
	}
}

// controlChannel takes what a control tells of a channel.
func (s *State) controlChannel(c *Call, p *Params, ch *channel) {
	switch c.Number {
	case rm.CtrlWorkSubmitToken:
		ch.runlist.set(p.Runlist)
		ch.chid.set(p.ChID)
	case rm.CtrlChannelContextID:
		ch.context.set(p.Context)
	case rm.CtrlChannelBind:
		if p.Engine != nil && *p.Engine != 0 {
			ch.engine.set(p.Engine)
			if ch.tsg != nil && !ch.tsg.engType.ok {
				ch.tsg.engType = ch.engine
			}
		}
	default:
		return
	}
	s.channelChanged(ch)
}

// controlTSG takes what a control tells of a TSG, and the facts that it makes.
func (s *State) controlTSG(c *Call, p *Params, t *tsg, ch *channel) {
	switch c.Number {
	case rm.CtrlTSGSetTimeslice:
		if p.Timeslice == nil {
			return
		}
		t.slice.set(*p.Timeslice, FromSeen, c.End)
		t.logTimeslice(c, *p.Timeslice)
		s.tell(t, TimesliceSet, c.End, c.PID, c.Command, p.Timeslice)
	case rm.CtrlTSGGetTimeslice:
		if p.Timeslice != nil {
			t.slice.set(*p.Timeslice, FromRead, c.End)
		}
	case rm.CtrlTSGInfo:
		if p.TSGNumber != nil {
			t.number = int(*p.TSGNumber)
		}
	case rm.CtrlTSGBind:
		t.setEngine(p.Engine)
		s.locate(t)
	case rm.CtrlTSGSetInterleave, rm.CtrlChannelSetInterleave:
		if p.Interleave == nil {
			return
		}
		t.level.set(p.Interleave)
		s.tell(t, InterleaveSet, c.End, c.PID, c.Command, Ptr(uint64(*p.Interleave)))
	case rm.CtrlTSGPreempt:
		s.notePreempt(t, c)
		s.tell(t, TSGPreempted, c.End, c.PID, c.Command, nil)
	case rm.CtrlTSGSchedule:
		s.schedule(t, c, p)
	case rm.CtrlChannelSchedule:
		// Disabling one of several channels idles that channel, not the TSG.
		if p.Enable != nil && (*p.Enable || len(t.channels) == 1) {
			s.schedule(t, c, p)
		}
	case rm.CtrlChannelRestartRunlist:
		s.tell(t, RunlistRestarted, c.End, c.PID, c.Command, nil)
	case rm.CtrlChannelStop:
		s.tell(t, RunlistStopped, c.End, c.PID, c.Command, nil)
	}
}

func (s *State) schedule(t *tsg, c *Call, p *Params) {
	if p.Enable == nil {
		return
	}
	kind := TSGIdled
	t.scheduled = optional{0, true}
	if *p.Enable {
		kind, t.scheduled.v = TSGScheduled, 1
	}
	s.tell(t, kind, c.End, c.PID, c.Command, nil)
}

func (t *tsg) logTimeslice(c *Call, us uint64) {
	t.slice.log = keepLast(t.slice.log, TimesliceChange{
		Time: c.End, Value: us, PID: c.PID, Command: c.Command, Status: c.Status,
	}, maxSlicesLogged)
}
