package ui

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"tsgtop/internal/sched"
)

// header is the first line: who observes what, how well, and whether it can act.
func (c *Common) header(gpu int) string {
	ascii := c.signs.ascii
	left := []part{words(2, roleTitle, "tsgtop")}
	snap := c.live
	if snap == nil {
		return c.line().put(rolePlain, " ").parts(c.width-1, " ", left).String()
	}
	if h := snap.Source.Host; h != "" {
		left = append(left, untrusted(5, rolePlain, h, 24, ascii))
	}
	if g := c.gpu(gpu); g != nil {
		left = append(left, untrusted(7, rolePlain, fmt.Sprintf("GPU%d %s", g.Index, shortGPUName(g.Name)), 24, ascii))
		if g.Driver != "" {
			left = append(left, untrusted(9, roleDim, g.Driver+driverKind(g), 28, ascii))
		}
	}
	left = append(left, c.labelParts(snap)...)

	right := c.probeParts(snap)
	right = append(right, c.lossParts(snap)...)
	if c.recording != "" {
		right = append(right, words(1, roleBad, c.signs.rec+" REC"))
	}
	switch {
	case c.armed():
		right = append(right, words(1, roleBad, "ARMED ("+c.opts.Controller.ActuatorName()+")"))
	default:
		right = append(right, words(1, roleStrong, "READ-ONLY"))
	}
	return c.twoSides(left, right)
}

// twoSides draws parts at the left and at the right of a line; those of the
// highest rank give way first, whichever side they are on.
func (c *Common) twoSides(left, right []part) string {
	lsep, rsep := " "+c.signs.dot+" ", "  "
	all := append(append([]part{}, left...), right...)
	room := c.width - 2 - 2
	for rank := 12; partsWidth(lsep, all[:len(left)])+partsWidth(rsep, all[len(left):]) > room && rank > 1; rank-- {
		for i := len(all) - 1; i >= 0; i-- {
			if all[i].rank == rank {
				all[i].cols = 0
				if partsWidth(lsep, all[:len(left)])+partsWidth(rsep, all[len(left):]) <= room {
					break
				}
			}
		}
	}
	l := c.line().put(rolePlain, " ")
	l.parts(room, lsep, all[:len(left)])
	rw := partsWidth(rsep, all[len(left):])
	l.to(max(c.width-1-rw, l.w+2))
	l.parts(l.room(), rsep, all[len(left):])
	return l.String()
}

func (c *Common) labelParts(snap *sched.Snapshot) []part {
	label := snap.Source.Label
	if label == "" {
		label = "STARTING"
	}
	ro := roleStrong
	if label != "LIVE" {
		ro = roleWarn
	}
	out := []part{untrusted(1, ro, label, 16, c.signs.ascii)}
	if p := c.opts.Player; p != nil {
		at, first, last := p.Position()
		sign := c.signs.play
		if c.paused {
			sign = c.signs.pause
		}
		out = append(out,
			words(1, rolePlain, fmt.Sprintf("%s %s/%s", sign, clockSpan(at.Sub(first)), clockSpan(last.Sub(first)))),
			words(4, roleDim, c.signs.times+strconv.FormatFloat(c.speed, 'g', 3, 64)))
	}
	if c.paused {
		out = append(out, words(1, roleWarn, "PAUSED"))
	}
	return out
}

// clockSpan is a position in a recording: 1:02.3
func clockSpan(d time.Duration) string {
	d = max(d, 0).Round(100 * time.Millisecond)
	return fmt.Sprintf("%d:%04.1f", int(d.Minutes()), (d % time.Minute).Seconds())
}

// probeParts are the lamps of what observes. Probes that work and that nobody
// would miss are not shown.
func (c *Common) probeParts(snap *sched.Snapshot) []part {
	type lamp struct {
		name  string
		state sched.ProbeState
	}
	var lamps []lamp
	for i := range snap.Probes {
		p := &snap.Probes[i]
		found := false
		for k := range lamps {
			if lamps[k].name == p.Probe {
				found = true
				if worse(p.State, lamps[k].state) {
					lamps[k].state = p.State
				}
			}
		}
		if !found {
			lamps = append(lamps, lamp{p.Probe, p.State})
		}
	}
	slices.SortStableFunc(lamps, func(a, b lamp) int { return cmp.Compare(probeOrder(a.name), probeOrder(b.name)) })
	var out []part
	for _, l := range lamps {
		main := l.name == "rm" || l.name == "ctxsw" || l.name == "xid"
		if !main && l.state == sched.ProbeOK {
			continue
		}
		rank := 3
		if l.state != sched.ProbeOK {
			rank = 2
		}
		sign, ro := c.signs.probe(l.state)
		name := l.name
		out = append(out, part{rank: rank, cols: cellCount(name) + 2, draw: func(ln *line) {
			ln.cut(rolePlain, name, 10).put(rolePlain, " ").put(ro, sign)
		}})
	}
	return out
}

// probeOrder keeps the lamps in their places, whichever probe spoke up first.
func probeOrder(name string) int {
	if i := slices.Index([]string{"rm", "ctxsw", "xid"}, name); i >= 0 {
		return i
	}
	return 3
}

func worse(a, b sched.ProbeState) bool {
	order := map[sched.ProbeState]int{sched.ProbeOK: 0, sched.ProbeReleased: 1, sched.ProbeLimited: 2, sched.ProbeMissing: 3}
	return order[a] > order[b]
}

// lossParts are the counters of what is missing: ring, queue, trace.
func (c *Common) lossParts(snap *sched.Snapshot) []part {
	l := &snap.Lost
	trace := l.Trace + l.Overtaken
	s := fmt.Sprintf("lost %s/%s/%s", count(l.Ring), count(l.Queue), count(trace))
	rank, ro := 4, roleDim
	if l.Ring+l.Queue+trace > 0 {
		rank, ro = 2, roleBad
	}
	out := []part{words(rank, ro, s)}
	if n := l.Faults + l.Unmatched + l.Malformed; n > 0 {
		out = append(out, words(6, roleWarn, "unread "+count(n)))
	}
	return out
}

func driverKind(g *sched.GPUView) string {
	s := ""
	if g.Open != nil {
		s = " closed"
		if *g.Open {
			s = " open"
		}
	}
	if g.GSP != nil && *g.GSP {
		if s == "" {
			return " GSP"
		}
		s += "+GSP"
	}
	return s
}
