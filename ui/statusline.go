package ui

import (
	"fmt"

	"tsgtop/internal/sched"
)

// statusLine is the line over the footer: the filter while it is typed, else a
// message, else why the selected row has dashes, else what limits the view.
func (c *Common) statusLine(sel *sched.TSGView) string {
	l := c.line().put(rolePlain, " ")
	room := c.width - 2
	switch {
	case c.typing:
		c.drawInput(l, "filter ", c.input)
		return l.String()
	case c.toast != "":
		return l.cut(c.toastIn, c.own(c.toast), room).String()
	case !c.filter.empty():
		l.put(roleAccent, "filter ").cut(roleStrong, c.filter.text, room-24).put(roleDim, "  esc clears it")
		return l.String()
	}
	if sel != nil {
		if offer := c.repeatOffer(sel); offer != "" {
			return l.cut(roleWarn, c.own(offer), room).String()
		}
		if why := whyDashes(sel); why != "" {
			return l.cut(roleDim, c.own(fmt.Sprintf("TSG %s: %s", idText(sel.ID.TSG), why)), room).String()
		}
	}
	if c.live != nil {
		for _, p := range c.live.Probes {
			if p.State != sched.ProbeOK && p.Why != "" {
				s := fmt.Sprintf("%s %s: %s", p.Probe, p.State, p.Why)
				if p.Help != "" {
					s += "; " + p.Help
				}
				return l.cut(roleWarn, c.own(s), room).String()
			}
		}
		if len(c.live.Source.Notes) > 0 {
			return l.cut(roleDim, c.own(c.live.Source.Notes[0]), room).String()
		}
	}
	return l.String()
}

// repeatOffer is for a preempt that could not be judged, most often because its
// target was not on the engine: it can be repeated until it is caught.
func (c *Common) repeatOffer(t *sched.TSGView) string {
	if c.live == nil || !c.armed() {
		return ""
	}
	for i := len(c.live.Commands) - 1; i >= 0; i-- {
		cmd := &c.live.Commands[i]
		if !sameTSG(cmd, t) {
			continue
		}
		if cmd.Op == sched.OpPreempt && cmd.Count <= 1 && cmd.Step != sched.StepRefused && cmd.Changed.State == sched.LampUnknown {
			return fmt.Sprintf("#%d: %s; P repeats it until it is caught on the engine", cmd.Number, cmd.Changed.Why)
		}
		break
	}
	return ""
}

// whyDashes says why numbers of a TSG are not known; empty: all are.
func whyDashes(t *sched.TSGView) string {
	why := t.WhyNull
	if t.Process.WhyNull != "" {
		if why != "" {
			why += "; "
		}
		why += "process: " + t.Process.WhyNull
	}
	return why
}
