package export

import (
	"cmp"
	"fmt"

	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
)

// Turn implements Visitor.
func (p *perfetto) Turn(t Turn) error {
	if err := p.begin(t.Start); err != nil {
		return err
	}
	track, err := p.laneTrack(t.Lane)
	if err != nil {
		return err
	}
	if _, err := p.processTrack(t.Row); err != nil {
		return err
	}
	p.now = max(p.now, t.End)
	p.open(typeSliceBegin, track)
	p.name(catTurn, label(t.Row))
	if t.Row.PID > 0 {
		p.note("pid", t.Row.PID)
	}
	p.note("unit", t.Row.Unit)
	p.note("context", uint64(t.Context))
	p.note("ended by", endedBy(t.EndedBy))
	if !t.Clean {
		p.note("clean", false)
	}
	if err := p.send(t.Start); err != nil {
		return err
	}
	p.open(typeSliceEnd, track)
	return p.send(t.End)
}

// Gap implements Visitor.
func (p *perfetto) Gap(l Lane, at sched.Time) error {
	if err := p.begin(at); err != nil {
		return err
	}
	track, err := p.laneTrack(l)
	if err != nil {
		return err
	}
	p.open(typeInstant, track)
	p.name(catTrace, "trace records missing before this")
	return p.send(at)
}

// Xid implements Visitor.
func (p *perfetto) Xid(x *sched.Xid) error {
	if err := p.begin(x.Time); err != nil {
		return err
	}
	track, err := p.gpuTrack(x.GPU)
	if err != nil {
		return err
	}
	p.open(typeInstant, track)
	name := fmt.Sprintf("Xid %d", x.Code)
	if n := rm.XidName(x.Code); n != "" {
		name += " " + n
	}
	p.name(catXid, name)
	p.note("code", uint64(x.Code))
	if x.PID > 0 {
		p.note("pid", x.PID)
	}
	p.note("process", x.Name)
	p.note("text", x.Text)
	p.note("from", x.From)
	return p.send(x.Time)
}

// Tie implements Visitor: it lets the trace be laid beside others.
func (p *perfetto) Tie(c *sched.ClockTie) error {
	if c.Time <= 0 || c.Monotonic <= 0 {
		return nil
	}
	p.began = true
	return p.clocks(c.Time, c.Monotonic, max(c.Raw, 0))
}

// Tick implements Visitor.
func (p *perfetto) Tick(s *sched.Snapshot) error {
	if s.Time <= 0 {
		return nil
	}
	if err := p.begin(s.Time); err != nil {
		return err
	}
	for i := range s.GPUs {
		g := &s.GPUs[i]
		p.gpuNames[g.Index] = clean(g.Name)
		track, err := p.gpuTrack(g.Index)
		if err != nil {
			return err
		}
		why := cmp.Or(g.TraceWhy, "nothing competed in the last second")
		if err := p.counter(s.Time, track, "switch tax", "%", scaled(g.SwitchTax[sched.Window1s], 100), why); err != nil {
			return err
		}
		if err := p.counter(s.Time, track, "switches/s", "1/s", g.SwitchesPerS, why); err != nil {
			return err
		}
	}
	for i := range s.TSGs {
		t := &s.TSGs[i]
		sc := &t.Score[sched.Window1s]
		r := rowOf(t)
		track, err := p.processTrack(r)
		if err != nil {
			return err
		}
		what := "share " + target(r.ID)
		if t.Context && len(t.Channels) > 0 && t.Channels[0].Context != nil {
			what = fmt.Sprintf("share context 0x%x", *t.Channels[0].Context)
		}
		if err := p.counter(s.Time, track, what, "%", scaled(sc.Share, 100), cmp.Or(sc.WhyNull, t.WhyNull)); err != nil {
			return err
		}
	}
	return nil
}

func scaled(v *float64, by float64) *float64 {
	if v == nil {
		return nil
	}
	return sched.Ptr(*v * by)
}

// counter writes a value, or, where a value was known before, that it is not
// known any more and why. What was never known has no track.
func (p *perfetto) counter(at sched.Time, parent uint64, name, unit string, v *float64, why string) error {
	id := uuid("counter %d %s", parent, name)
	lost, known := p.unknown[id]
	if len(p.unknown) >= maxTracks {
		clear(p.unknown)
	}
	if v == nil {
		if !known || lost {
			return nil
		}
		p.unknown[id] = true
		p.open(typeInstant, parent)
		p.name(catTrace, name+" is not known from here on")
		p.note("why", why)
		return p.send(at)
	}
	p.unknown[id] = false
	if err := p.counterTrack(id, parent, name, unit); err != nil {
		return err
	}
	p.open(typeCounter, id).double(fDoubleCounter, *v)
	return p.send(at)
}
