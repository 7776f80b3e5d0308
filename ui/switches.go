package ui

import (
	"cmp"
	"fmt"

	"tsgtop/internal/sched"
)

// switchColumn is one of the GSP's counts of context switches in the window.
func switchColumn(id, title string, rank int, of func(*sched.Switches) uint64) column {
	return column{id: id, title: title, width: 7, rank: rank, highFirst: true,
		cell: func(c *Common, t *sched.TSGView) (string, role) {
			if s := t.Score[c.window].Switches; s != nil {
				return count(of(s)), rolePlain
			}
			return "", roleDim
		},
		group: func(c *Common, r *row) string {
			if r.sum == nil || r.sum.Switches == nil {
				return c.signs.dash
			}
			return count(of(r.sum.Switches))
		},
		compare: func(c *Common, a, b *sched.TSGView) int {
			return cmp.Compare(of(a.Score[c.window].Switches), of(b.Score[c.window].Switches))
		},
		known: func(c *Common, t *sched.TSGView) bool { return t.Score[c.window].Switches != nil },
	}
}

// switchLine says how the switches of a window divide, or why that is not known.
func (c *Common) switchLine(label string, width int, sc *sched.Score) string {
	l := c.line().left(roleDim, " "+label, width)
	s := sc.Switches
	if s == nil {
		why := sc.SwitchesWhy
		if why == "" {
			why = "not known"
		}
		return l.put(roleDim, c.signs.dash+"  ").cut(roleDim, c.own(why), max(c.width-width-4, 10)).String()
	}
	l.put(rolePlain, count(s.Forced)).put(roleDim, " forced in mid-kernel, ").put(rolePlain, count(s.Voluntary)).put(roleDim, " voluntary")
	if all := s.Forced + s.Voluntary; all > 0 {
		l.put(roleDim, " ("+percent(float64(s.Forced)/float64(all))+" forced)")
	}
	return l.cut(roleDim, fmt.Sprintf(", as the GSP counted over %.1f s", s.SpanS), 40).String()
}
