package ui

import (
	"slices"
	"strings"

	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
)

// runlistName says which engines a runlist feeds: "gr0", for a runlist that
// feeds a graphics engine, whichever copy engines hang on it too; else all,
// "ce0+ce1". Empty where that is not known.
func runlistName(g *sched.GPUView, id int) string {
	engines := runlistEngines(g, id)
	graphics := slices.DeleteFunc(slices.Clone(engines), func(e uint32) bool { return !rm.IsGraphicsEngine(e) })
	if len(graphics) > 0 {
		engines = graphics
	}
	return strings.Join(engineNames(engines), "+")
}

// runlistEngines are the engines that a runlist feeds, where that is known.
func runlistEngines(g *sched.GPUView, id int) []uint32 {
	if g == nil {
		return nil
	}
	for _, r := range g.Runlists {
		if r.ID == id {
			return r.Engines
		}
	}
	return nil
}

func engineNames(engines []uint32) []string {
	names := make([]string, len(engines))
	for i, e := range engines {
		names[i] = rm.EngineName(e)
	}
	return names
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
