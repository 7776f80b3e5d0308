//go:build linux

package actions

import (
	"context"
	"errors"
)

// Recover puts back what tsgtops that have died left changed, unless control is
// never to be armed, or this is a dry run: then it is only named.
func (c *Controller) Recover(ctx context.Context) ([]Outcome, error) {
	why := c.Why()
	if c.o.DryRun {
		why = "this is a dry run, in which nothing is sent"
	}
	if why != "" {
		return c.left(why)
	}
	out, err := RestoreAll(ctx, c.o.Actuator, c.o.Journal, false)
	for _, o := range out {
		if o.State != OutcomeKept && o.State != OutcomeHeld {
			err = errors.Join(err, c.o.Audit.Write(RestoreLine(o)))
		}
	}
	return out, err
}

// left names what tsgtops that have died left changed, and why it stays so.
func (c *Controller) left(why string) (out []Outcome, err error) {
	s, err := c.o.Journal.State()
	for _, e := range s.Entries {
		for _, h := range e.Holds {
			if h.Alive() {
				continue
			}
			o := Outcome{Op: e.Op, Target: e.Target, Was: &h.Value, Value: e.Original, Commands: []string{h.Command},
				State: OutcomeFailed, Why: "left at " + valueText(e.Op, h.Value) + " by a tsgtop that died, and not put back: " + why}
			if h.Kept {
				o.State, o.Why = OutcomeKept, keptWhy(e.Op, h.Value)
			}
			out = append(out, o)
		}
	}
	return out, err
}
