package export

import (
	"cmp"
	"fmt"
	"slices"

	"tsgtop/internal/sched"
)

// Command implements Visitor: a command is written once its lamps are final.
func (p *perfetto) Command(c *sched.Command) error {
	switch c.Step {
	case sched.StepJudged, sched.StepRefused, sched.StepUndone:
		delete(p.pending, c.ID)
		p.order = slices.DeleteFunc(p.order, func(id string) bool { return id == c.ID })
		return p.command(c)
	}
	if p.pending[c.ID] == nil {
		if len(p.order) >= maxPending {
			old := p.pending[p.order[0]]
			delete(p.pending, p.order[0])
			p.order = p.order[1:]
			if err := p.command(old); err != nil {
				return err
			}
		}
		p.order = append(p.order, c.ID)
	}
	p.pending[c.ID] = c
	return nil
}

func (p *perfetto) command(c *sched.Command) error {
	at, name := c.Issued, fmt.Sprintf("#%d %s %s", c.Number, clean(string(c.Op)), target(c.Target.TSGID))
	switch {
	case c.Step == sched.StepUndone:
		at, name = c.Time, name+" undone"
	case c.Step == sched.StepRefused:
		name += " refused"
	}
	at = cmp.Or(at, c.Asked, c.Time)
	if err := p.begin(at); err != nil {
		return err
	}
	track := uuid("commands")
	if err := p.track(track, 0, "commands", nil); err != nil {
		return err
	}
	p.open(typeInstant, track)
	p.name(catCommand, name)
	p.note("id", c.ID)
	p.note("step", string(c.Step))
	p.note("target", clean(c.Target.Exe))
	p.note("pid", c.Target.PID)
	for _, v := range []struct {
		name string
		v    *uint64
	}{{"old", c.Old}, {"new", c.New}} {
		if v.v != nil {
			p.note(v.name, *v.v)
		}
	}
	p.note("actuator", c.Actuator)
	for _, l := range []struct {
		name string
		lamp *sched.Lamp
	}{{"RAN", &c.Ran}, {"ACCEPTED", &c.Accepted.Lamp}, {"CHANGED", &c.Changed.Lamp}} {
		p.note(l.name, string(l.lamp.State))
		p.note(l.name+" why", l.lamp.Why)
	}
	p.note("status", c.Accepted.Status)
	p.note("where", c.Accepted.Where)
	p.note("evidence", c.Changed.Evidence)
	p.note("why", c.Why)
	return p.send(at)
}
