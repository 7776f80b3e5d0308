package ui

import (
	"fmt"
	"slices"

	"tsgtop/internal/sched"
	"tsgtop/internal/text"
)

// helpScreen is the key table of the screen that it was asked for on, and what
// the signs mean.
type helpScreen struct {
	*Common
	of     screenID
	top    int
	height int
	total  int
}

func (s *helpScreen) act(a action) { s.top = scrolled(a, s.top, s.height, s.total) }

func (s *helpScreen) lines(m *Model) []string {
	return m.frameOf(nil, nil, nil, func(height int) []string {
		out := []string{s.rule("keys on " + screenNames[s.of])}
		all := slices.Concat(s.keys(), s.legend(), s.limits())
		s.total, s.height = len(all), max(height-1, 0)
		s.top = max(min(s.top, s.total-s.height), 0)
		out = append(out, all[s.top:min(s.top+s.height, s.total)]...)
		return pad(s.Common, out, height)
	})
}

// keys are the bindings, in two columns where there is room.
func (s *helpScreen) keys() []string {
	cols := 1
	if s.width >= 110 {
		cols = 2
	}
	box := *s.Common
	box.width = s.width / cols
	var here []binding
	for _, b := range keyTable {
		if b.on&(1<<s.of) != 0 {
			here = append(here, b)
		}
	}
	// Each binding in as many lines as its words take; a column ends between two.
	var all [][]string
	total := 0
	for _, b := range here {
		ls := box.keyLines(b)
		all, total = append(all, ls), total+len(ls)
	}
	columns := make([][]string, cols)
	at := 0
	for _, ls := range all {
		if at < cols-1 && len(columns[at])+len(ls) > (total+cols-1)/cols {
			at++
		}
		columns[at] = append(columns[at], ls...)
	}
	rows := 0
	for _, c := range columns {
		rows = max(rows, len(c))
	}
	out := make([]string, 0, rows+1)
	for i := range rows {
		l := ""
		for _, c := range columns {
			cell := box.line().String()
			if i < len(c) {
				cell = c[i]
			}
			l += padANSI(cell, box.width)
		}
		out = append(out, l)
	}
	return append(out, s.line().String())
}

// keyLines is one binding in lines as wide as c is.
func (c *Common) keyLines(b binding) []string {
	desc, ro, kro := c.own(b.Help().Desc), rolePlain, roleKey
	if why, ok := c.can(b.need); !ok {
		desc, ro, kro = desc+" ("+c.own(why)+")", roleDim, roleDim
	}
	var out []string
	for i, w := range wrap(desc, c.width-11) {
		l := c.line().put(rolePlain, " ")
		if i == 0 {
			l.left(kro, c.ownKey(b.Help().Key), 8)
		} else {
			l.gap(8)
		}
		out = append(out, l.put(ro, w).String())
	}
	return out
}

// ownKey writes a key's sign for terminals that know ASCII only.
func (c *Common) ownKey(k string) string {
	if !c.signs.ascii {
		return k
	}
	switch k {
	case "↑ k":
		return "up k"
	case "↓ j":
		return "down j"
	case "←":
		return "left"
	case "→":
		return "right"
	}
	return k
}

func (s *helpScreen) legend() []string {
	out := []string{s.rule("signs")}
	l := s.line().put(rolePlain, " lamps  ")
	for _, st := range []sched.LampState{sched.LampYes, sched.LampNo, sched.LampWaiting, sched.LampUnknown} {
		sign, ro := s.signs.lamp(st)
		l.put(ro, sign).put(rolePlain, " "+string(st)+"   ")
	}
	out = append(out, l.String())
	l = s.line().put(rolePlain, " probes ")
	for _, st := range []sched.ProbeState{sched.ProbeOK, sched.ProbeLimited, sched.ProbeMissing, sched.ProbeReleased} {
		sign, ro := s.signs.probe(st)
		l.put(ro, sign).put(rolePlain, " "+string(st)+"   ")
	}
	out = append(out, l.String())
	for _, t := range []string{
		"RAN: the eBPF program saw exactly this call go in and come back. ACCEPTED: RM's status, and whether the GSP was asked.",
		"CHANGED: what the hardware's own context-switch trace shows, before against after. Unknown is an answer; evidence says why.",
		s.signs.dash + " a number that cannot be known; the line over the footer says why. (1024" + s.signs.micro + "s) RM's default, never seen set nor read.",
		"lane: each context has one colour and one sign, the same as in its row; " + s.signs.gap + " trace lost; blank: nobody; " + s.signs.mark + " a command.",
		s.signs.gone + " before a name: the process has ended, and what it had is still there.",
		"lost a/b/c: events lost at the eBPF ring / at our queue / in the trace.",
		"residency: a turn on the engine. wait: off after a turn that was cut. share: of the time in which at least two competed.",
	} {
		for _, w := range wrap(s.own(t), s.width-2) {
			out = append(out, s.line().put(rolePlain, " ").put(roleDim, w).String())
		}
	}
	return out
}

// limits says of each probe that does not work, or not wholly, why, and what
// would help. Nothing where all do.
func (s *helpScreen) limits() []string {
	if s.live == nil {
		return nil
	}
	var out []string
	for i := range s.live.Probes {
		p := &s.live.Probes[i]
		if p.State == sched.ProbeOK {
			continue
		}
		name := p.Probe
		if p.GPU != sched.Unknown {
			name += fmt.Sprintf(" GPU%d", p.GPU)
		}
		sentence := fmt.Sprintf("%s %s", name, p.State)
		if p.Why != "" {
			sentence += ": " + p.Why
		}
		if p.Help != "" {
			sentence += "; help: " + p.Help
		}
		for _, w := range wrap(s.own(text.Cut(sentence, 600, s.signs.ascii)), s.width-2) {
			out = append(out, s.line().put(rolePlain, " ").put(rolePlain, w).String())
		}
	}
	if len(out) == 0 {
		return nil
	}
	return append([]string{s.rule("what does not work here")}, out...)
}

// wrap breaks a sentence at spaces. It must be safe to show; its characters may
// be wider than a cell.
func wrap(s string, width int) []string {
	var out []string
	for cellCount(s) > width && width > 0 {
		rs := []rune(s)
		fits := 1
		for fits < len(rs) && cellCount(string(rs[:fits+1])) <= width {
			fits++
		}
		cut := fits
		for i := fits; i > fits/2; i-- {
			if i < len(rs) && rs[i] == ' ' {
				cut = i
				break
			}
		}
		out = append(out, string(rs[:cut]))
		for cut < len(rs) && rs[cut] == ' ' {
			cut++
		}
		s = string(rs[cut:])
	}
	return append(out, s)
}
