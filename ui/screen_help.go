package ui

import "tsgtop/internal/sched"

// helpScreen is the key table of the screen that it was asked for on, and what
// the signs mean.
type helpScreen struct {
	*Common
	of     screenID
	top    int
	height int
	total  int
}

func (s *helpScreen) act(a action) {
	switch a {
	case actUp:
		s.top--
	case actDown:
		s.top++
	case actPageUp:
		s.top -= max(s.height-1, 1)
	case actPageDown:
		s.top += max(s.height-1, 1)
	case actTop:
		s.top = 0
	case actBottom:
		s.top = s.total
	}
	s.top = max(min(s.top, s.total-s.height), 0)
}

func (s *helpScreen) lines(m *Model) []string {
	return m.frameOf(nil, nil, nil, func(height int) []string {
		out := []string{s.rule("keys on " + screenNames[s.of])}
		all := append(s.keys(), s.legend()...)
		s.total, s.height = len(all), max(height-1, 0)
		s.top = max(min(s.top, s.total-s.height), 0)
		out = append(out, all[s.top:min(s.top+s.height, s.total)]...)
		return pad(s.Common, out, height)
	})
}

// keys are the bindings, in two columns where there is room.
func (s *helpScreen) keys() []string {
	cols, width := 1, s.width-2
	if s.width >= 110 {
		cols, width = 2, (s.width-2)/2
	}
	var here []binding
	for _, b := range keyTable {
		if b.on&(1<<s.of) != 0 {
			here = append(here, b)
		}
	}
	rows := (len(here) + cols - 1) / cols
	out := make([]string, 0, rows+1)
	for i := range rows {
		l := s.line().put(rolePlain, " ")
		for k := i; k < len(here); k += rows {
			b := here[k]
			col := 1 + (k/rows)*width
			l.to(col)
			why, ok := s.can(b.need)
			ro, kro := rolePlain, roleKey
			if !ok {
				ro, kro = roleDim, roleDim
			}
			l.left(kro, s.ownKey(b.Help().Key), 8)
			room := width - 9
			desc := s.own(b.Help().Desc)
			l.put(ro, cutOwn(desc, room))
			if left := room - cellCount(desc) - 3; !ok && left > 8 {
				l.put(roleDim, " (").cut(roleDim, s.own(why), left).put(roleDim, ")")
			}
		}
		out = append(out, l.String())
	}
	return append(out, s.line().String())
}

// ownKey writes a key's sign for terminals that know ASCII only.
func (s *helpScreen) ownKey(k string) string {
	if !s.signs.ascii {
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
		"lost a/b/c: events lost at the eBPF ring / at our queue / in the trace.",
		"residency: a turn on the engine. wait: off after a turn that was cut. share: of the time in which at least two competed.",
	} {
		for _, w := range wrap(s.own(t), s.width-2) {
			out = append(out, s.line().put(rolePlain, " ").put(roleDim, w).String())
		}
	}
	return out
}

// wrap breaks text of our own at spaces.
func wrap(s string, width int) []string {
	var out []string
	for cellCount(s) > width && width > 0 {
		cut := width
		rs := []rune(s)
		for i := width; i > width/2; i-- {
			if rs[i] == ' ' {
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
