package ui

import (
	"fmt"
	"strconv"
	"strings"

	"tsgtop/internal/sched"
)

// gpuLines are the lines of the GPUs: one for each where there is room, else
// one for the GPU that is looked at and one for all of them together.
func (c *Common) gpuLines(gpu int) []string {
	if c.snap == nil {
		return nil
	}
	var shown []*sched.GPUView
	for i := range c.snap.GPUs {
		if c.shown(c.snap.GPUs[i].Index) {
			shown = append(shown, &c.snap.GPUs[i])
		}
	}
	if len(shown) == 0 {
		return []string{c.line().put(roleWarn, " no GPU is known yet").String()}
	}
	if len(shown) <= max(1, (c.height-10)/10) {
		var out []string
		for _, g := range shown {
			out = append(out, c.gpuLine(g))
		}
		return out
	}
	at := shown[0]
	for _, g := range shown {
		if g.Index == gpu {
			at = g
		}
	}
	return []string{c.gpuLine(at), c.gpuStrip(shown, at)}
}

func (c *Common) gpuLine(g *sched.GPUView) string {
	l := c.line()
	l.put(rolePlain, " ").left(roleTitle, "GPU"+strconv.Itoa(g.Index), 5)
	var ps []part
	if s := g.Sample; s != nil {
		if s.SMPercent != nil {
			bar := 0
			if c.width >= 100 {
				bar = min(18, (c.width-82)/2)
			}
			pct := min(max(*s.SMPercent, 0), 100)
			ps = append(ps, part{rank: 3, cols: bar + 7 + min(bar, 1), draw: func(l *line) {
				l.put(roleDim, "sm ")
				if bar > 0 {
					full := (pct*bar + 50) / 100
					l.put(roleBar, strings.Repeat(c.signs.full, full)).put(roleDim, strings.Repeat(c.signs.empty, bar-full)).put(rolePlain, " ")
				}
				l.right(rolePlain, strconv.Itoa(*s.SMPercent)+"%", 4)
			}})
		}
		if s.MemUsed != nil {
			total := g.MemoryBytes
			if s.MemTotal != nil {
				total = *s.MemTotal
			}
			mem := fmt.Sprintf("%s/%s", bytesText(*s.MemUsed), bytesText(total))
			if total == 0 {
				mem = bytesText(*s.MemUsed)
			}
			ps = append(ps, labelled(5, "mem ", mem))
		}
		if s.PowerMilliW != nil {
			ps = append(ps, words(8, rolePlain, fmt.Sprintf("%3dW", (*s.PowerMilliW+500)/1000)))
		}
		if s.TemperatureC != nil {
			ps = append(ps, words(9, rolePlain, strconv.Itoa(*s.TemperatureC)+"C"))
		}
	}
	if g.MIG != nil && *g.MIG {
		ps = append(ps, words(2, roleWarn, "MIG"))
	}
	switch {
	case g.SwitchesPerS != nil:
		ps = append(ps, words(2, rolePlain, fmt.Sprintf("%2d competing", g.Competing)))
		ps = append(ps, words(4, rolePlain, fmt.Sprintf("%4s sw/s", rate(*g.SwitchesPerS))))
		tax := c.signs.dash
		if t := g.SwitchTax[c.window]; t != nil {
			tax = percent(*t)
		}
		ps = append(ps, labelled(6, "switch tax ", fmt.Sprintf("%4s", tax)))
	default:
		why := g.TraceWhy
		if why == "" {
			why = "nothing switched yet"
		}
		ps = append(ps, untrusted(4, roleWarn, why, 48, c.signs.ascii))
	}
	xid := words(7, roleDim, "Xid 0")
	if g.XidCount > 0 {
		xid = words(1, roleBad, "Xid "+strconv.Itoa(g.XidCount))
	}
	ps = append(ps, xid)
	return l.parts(l.room()-1, "  ", ps).String()
}

func labelled(rank int, label, value string) part {
	return part{rank: rank, cols: cellCount(label) + cellCount(value), draw: func(l *line) {
		l.put(roleDim, label).put(rolePlain, value)
	}}
}

// gpuStrip is all GPUs in a line: utilisation, and how many TSGs compete.
func (c *Common) gpuStrip(gs []*sched.GPUView, at *sched.GPUView) string {
	l := c.line()
	l.put(roleDim, fmt.Sprintf(" %d GPUs ", len(gs)))
	for _, g := range gs {
		if l.room() < 9 {
			l.put(roleDim, " "+c.signs.waiting)
			break
		}
		ro := rolePlain
		mark := " "
		if g == at {
			ro, mark = roleStrong, c.signs.sel
		}
		sm := c.signs.dash
		bar := " "
		if g.Sample != nil && g.Sample.SMPercent != nil {
			pct := min(max(*g.Sample.SMPercent, 0), 100)
			sm = strconv.Itoa(pct) + "%"
			bar = c.signs.levels[min(pct*len(c.signs.levels)/101, len(c.signs.levels)-1)]
		}
		l.put(ro, mark+strconv.Itoa(g.Index)).put(roleBar, bar).right(ro, sm, 4)
		if g.XidCount > 0 {
			l.put(roleBad, "!")
		} else {
			l.put(rolePlain, " ")
		}
	}
	return l.String()
}

func shortGPUName(name string) string {
	return strings.TrimPrefix(strings.TrimPrefix(name, "NVIDIA "), "GeForce ")
}
