package ui

import "tsgtop/internal/sched"

// signs are the characters that the screen draws with, each one cell
// wide (the arrow of ASCII apart): a set for terminals that know Unicode and one for those that know ASCII only.
// Every state has a sign of its own, so that nothing is said by colour alone.
type signs struct {
	ascii    bool
	dot      string // between parts of a line
	sel      string // the selected row
	open     string // a node of the tree that is open
	folded   string
	yes      string
	no       string
	waiting  string
	unknown  string
	ok       string // probe
	limited  string
	missing  string
	released string
	full     string // of a bar
	empty    string
	edge     string // left of the lane
	nobody   string // lane: nobody resident
	gap      string // lane: trace records are missing
	mark     string // lane: a command
	rule     string
	arrow    string
	times    string
	micro    string
	dash     string
	up, down string // sorted
	play     string
	pause    string
	rec      string
	levels   []string // bars of one cell, lowest first
	fills    []string // contexts in the lane
	box      [6]string
	vertical string
	pmark    string // percentile mark
	gone     string // before the name of a process that ended
}

var unicodeSigns = signs{
	dot: "·", sel: "▸", open: "▾", folded: "▸", yes: "✓", no: "✗", waiting: "…", unknown: "?",
	ok: "●", limited: "◐", missing: "○", released: "◌",
	full: "█", empty: "░", edge: "▏", nobody: " ", gap: "?", mark: "▼", rule: "─", arrow: "→", times: "×",
	micro: "µ", dash: "–", up: "▲", down: "▼", play: "▶", pause: "‖", rec: "●",
	levels: []string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"},
	fills:  []string{"█", "▒", "▓", "╱", "░", "╲", "╳", "=", "+", "o"},
	box:    [6]string{"┌", "┐", "└", "┘", "─", "│"}, vertical: "│", pmark: "┊", gone: "†",
}

var asciiSigns = signs{
	ascii: true,
	dot:   "|", sel: ">", open: "-", folded: "+", yes: "Y", no: "N", waiting: "~", unknown: "?",
	ok: "+", limited: "~", missing: "!", released: "r",
	full: "#", empty: ".", edge: "|", nobody: " ", gap: "?", mark: "v", rule: "-", arrow: "->", times: "x",
	micro: "u", dash: "-", up: "^", down: "v", play: ">", pause: "=", rec: "*",
	levels: []string{"_", ".", ":", "-", "=", "+", "*", "#"},
	fills:  []string{"#", ".", "=", ":", "/", "%", "x", "@", "+", "o"},
	box:    [6]string{"+", "+", "+", "+", "-", "|"}, vertical: "|", pmark: "'", gone: "~",
}

// lamp is the sign and the role of a lamp's state.
func (g *signs) lamp(s sched.LampState) (string, role) {
	switch s {
	case sched.LampYes:
		return g.yes, roleGood
	case sched.LampNo:
		return g.no, roleBad
	case sched.LampWaiting:
		return g.waiting, roleWarn
	default:
		return g.unknown, roleUnknown
	}
}

// probe is the sign and the role of a probe's state.
func (g *signs) probe(s sched.ProbeState) (string, role) {
	switch s {
	case sched.ProbeOK:
		return g.ok, roleGood
	case sched.ProbeLimited:
		return g.limited, roleWarn
	case sched.ProbeReleased:
		return g.released, roleWarn
	default:
		return g.missing, roleBad
	}
}
