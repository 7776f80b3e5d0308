package ui

import (
	"strings"

	"tsgtop/internal/text"
)

// line builds one line of the screen, of exactly so many cells.
type line struct {
	b      []byte
	w, max int // cells written, and the most
	st     *styles
	ascii  bool
	picked bool // it is the selected row
	cur    role
	styled bool // a style is open
}

func (c *Common) line() *line {
	return &line{b: make([]byte, 0, 2*c.width+64), max: c.width, st: c.style, ascii: c.signs.ascii}
}

func (l *line) role(r role) {
	if l.styled && l.cur == r {
		return
	}
	l.shut()
	if sp := l.st.of(r, l.picked); sp.open != "" {
		l.b = append(l.b, sp.open...)
		l.styled = true
	}
	l.cur = r
}

func (l *line) shut() {
	if l.styled {
		l.b = append(l.b, l.st.of(l.cur, l.picked).close...)
		l.styled = false
	}
}

// room is how many cells are left.
func (l *line) room() int { return l.max - l.w }

// put writes text of our own, whose characters are all one cell wide; what
// does not fit is left out.
func (l *line) put(r role, s string) *line {
	n := 0
	for i := range s {
		if n == l.room() {
			s = s[:i]
			break
		}
		n++
	}
	if s == "" {
		return l
	}
	l.role(r)
	l.b = append(l.b, s...)
	l.w += n
	return l
}

// fit writes text that anybody may have chosen, made safe, in exactly cells cells.
func (l *line) fit(r role, s string, cells int) *line {
	cells = min(cells, l.room())
	if cells <= 0 {
		return l
	}
	l.role(r)
	l.b = append(l.b, text.Fit(s, cells, l.ascii)...)
	l.w += cells
	return l
}

// cut writes text that anybody may have chosen, made safe, in at most cells
// cells and without padding.
func (l *line) cut(r role, s string, cells int) *line {
	cells = min(cells, l.room())
	if cells <= 0 || s == "" {
		return l
	}
	s = text.Cut(s, cells, l.ascii)
	l.role(r)
	l.b = append(l.b, s...)
	l.w += text.Width(s)
	return l
}

// right writes text of our own at the right of cells cells.
func (l *line) right(r role, s string, cells int) *line {
	n := cellCount(s)
	if n > cells {
		return l.put(r, cutOwn(s, cells))
	}
	return l.gap(cells-n).put(r, s)
}

// left writes text of our own at the left of cells cells.
func (l *line) left(r role, s string, cells int) *line {
	n := cellCount(s)
	if n > cells {
		return l.put(r, cutOwn(s, cells))
	}
	return l.put(r, s).gap(cells - n)
}

const blanks = "                                                                                "

// gap writes spaces.
func (l *line) gap(n int) *line {
	for n > 0 && l.room() > 0 {
		k := min(n, len(blanks))
		l.put(rolePlain, blanks[:k])
		n -= k
	}
	return l
}

// to pads with spaces up to a column.
func (l *line) to(col int) *line { return l.gap(col - l.w) }

// String is the line, padded to its full width where the theme or the
// selection paints its background.
func (l *line) String() string {
	if l.picked || l.st.of(rolePlain, false).open != "" {
		l.gap(l.room())
	}
	l.shut()
	return string(l.b)
}

// cellCount counts the cells of text of our own.
func cellCount(s string) int {
	n := 0
	for range s {
		n++
	}
	return n
}

// cutOwn cuts text of our own.
func cutOwn(s string, cells int) string {
	if cells <= 0 {
		return ""
	}
	n := 0
	for i := range s {
		if n == cells {
			return s[:i]
		}
		n++
	}
	return s
}

// part is a piece of a line that gives way when there is no room for all:
// those of the highest rank first.
type part struct {
	rank int
	draw func(*line)
	cols int
}

// words is a part of one role.
func words(rank int, r role, s string) part {
	return part{rank: rank, cols: cellCount(s), draw: func(l *line) { l.put(r, s) }}
}

// untrusted is a part of at most cells cells that anybody may have chosen.
func untrusted(rank int, r role, s string, cells int, ascii bool) part {
	s = text.Cut(s, cells, ascii)
	return part{rank: rank, cols: text.Width(s), draw: func(l *line) { l.cut(r, s, cells) }}
}

// parts writes as many parts as fit into room cells, sep between them.
func (l *line) parts(room int, sep string, ps []part) *line {
	keep := fitParts(room, cellCount(sep), ps)
	first := true
	for i, p := range ps {
		if !keep[i] || p.cols == 0 {
			continue
		}
		if !first {
			l.put(roleDim, sep)
		}
		first = false
		p.draw(l)
	}
	return l
}

func fitParts(room, sep int, ps []part) []bool {
	keep := make([]bool, len(ps))
	total, n := 0, 0
	for i, p := range ps {
		keep[i] = true
		if p.cols > 0 {
			total += p.cols
			n++
		}
	}
	for total+sep*max(n-1, 0) > room && n > 0 {
		worst := -1
		for i, p := range ps {
			if keep[i] && p.cols > 0 && (worst < 0 || p.rank >= ps[worst].rank) {
				worst = i
			}
		}
		keep[worst] = false
		total -= ps[worst].cols
		n--
	}
	return keep
}

// partsWidth is what parts would take.
func partsWidth(sep string, ps []part) int {
	total, n := 0, 0
	for _, p := range ps {
		if p.cols > 0 {
			total += p.cols
			n++
		}
	}
	return total + cellCount(sep)*max(n-1, 0)
}

// own makes text of our own fit for an ASCII terminal.
func (c *Common) own(s string) string {
	if !c.signs.ascii {
		return s
	}
	return ownASCII.Replace(s)
}

var ownASCII = strings.NewReplacer("µ", "u", "→", "->", "·", "|", "×", "x", "…", "...", "–", "-", "≥", ">=", "≤", "<=")
