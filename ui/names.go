package ui

import (
	"strings"

	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
)

// runlistName says which engines a runlist feeds, "gr0"; empty where that is
// not known.
func runlistName(g *sched.GPUView, id int) string {
	if g == nil {
		return ""
	}
	for _, r := range g.Runlists {
		if r.ID != id {
			continue
		}
		var names []string
		for _, e := range r.Engines {
			names = append(names, rm.EngineName(e))
		}
		return strings.Join(names, "+")
	}
	return ""
}

// isGraphics tells whether an engine is a graphics/compute engine: the only
// kind whose context switches the hardware traces.
func isGraphics(e *uint32) bool { return e != nil && rm.IsGraphicsEngine(*e) }

// statusName is an NV_STATUS by name, short: "OK", "INVALID_ARGUMENT".
func statusName(st uint32) string {
	s := strings.TrimPrefix(rm.StatusName(st), "NV_")
	return strings.TrimPrefix(s, "ERR_")
}

// callName is a call in few words: a control is known by its class and what it
// does, the others by what they do to an object of a class.
func callName(c *sched.Call) string {
	switch c.Kind {
	case sched.CallControl:
		return rm.ControlShort(c.Number)
	case sched.CallAlloc:
		return "alloc " + rm.ClassName(c.Number)
	default:
		return sched.KindName(c.Kind)
	}
}
