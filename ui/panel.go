package ui

import (
	"strings"
	"unicode/utf8"

	"charm.land/bubbles/v2/textinput"

	"tsgtop/internal/text"
)

// box draws a panel: a title, lines, and buttons of which one has the focus.
type box struct {
	c     *Common
	width int
	left  int
	out   []string
}

func (c *Common) box(title string) *box {
	b := &box{c: c, width: min(c.width-4, 92)}
	b.left = (c.width - b.width) / 2
	l := c.line().gap(b.left).put(roleBorder, c.signs.box[0]+c.signs.box[4]+" ").put(roleTitle, title).put(rolePlain, " ")
	l.put(roleBorder, strings.Repeat(c.signs.box[4], max(b.left+b.width-1-l.w, 0))).put(roleBorder, c.signs.box[1])
	b.out = append(b.out, l.String())
	return b
}

// inside draws one line between the sides.
func (b *box) inside(draw func(*line)) *box {
	l := b.c.line().gap(b.left).put(roleBorder, b.c.signs.box[5]+" ")
	l.max = b.left + b.width - 2
	draw(l)
	l.to(l.max)
	l.max = b.c.width
	b.out = append(b.out, l.put(roleBorder, " "+b.c.signs.box[5]).String())
	return b
}

func (b *box) blank() *box { return b.inside(func(*line) {}) }

// words writes a sentence, made safe, in as many lines as it needs.
func (b *box) words(r role, s string) *box {
	for _, w := range wrap(b.c.own(text.Cut(s, 400, b.c.signs.ascii)), b.width-4) {
		b.inside(func(l *line) { l.put(r, w) })
	}
	return b
}

// fact writes a label and what anybody may have chosen.
func (b *box) fact(label, value string) *box {
	return b.inside(func(l *line) {
		l.left(roleDim, label, 11)
		if value == "" {
			l.put(roleDim, b.c.signs.dash)
			return
		}
		l.cut(rolePlain, value, l.room())
	})
}

// sentence writes a label and a sentence, made safe, in as many lines as it needs.
func (b *box) sentence(label, s string) *box {
	for i, w := range wrap(b.c.own(text.Cut(s, 400, b.c.signs.ascii)), b.width-4-11) {
		if i > 0 {
			label = ""
		}
		b.inside(func(l *line) { l.left(roleDim, label, 11).put(rolePlain, w) })
	}
	return b
}

// buttons draws the buttons; the one with the focus is between brackets too.
func (b *box) buttons(names []string, focus int) *box {
	return b.inside(func(l *line) {
		for i, n := range names {
			if i > 0 {
				l.gap(2)
			}
			if i == focus {
				l.put(roleButton, "[ "+n+" ]")
			} else {
				l.put(rolePlain, "  "+n+"  ")
			}
		}
	})
}

func (b *box) lines() []string {
	c := b.c
	bottom := c.signs.box[2] + strings.Repeat(c.signs.box[4], b.width-2) + c.signs.box[3]
	return append(b.out, c.line().gap(b.left).put(roleBorder, bottom).String())
}

// buttonKey moves the focus among n buttons; pressed tells that one was pressed.
func buttonKey(stroke string, focus *int, n int) (pressed bool) {
	switch stroke {
	case "tab", "right", "l":
		*focus = (*focus + 1) % n
	case "shift+tab", "left", "h":
		*focus = (*focus + n - 1) % n
	case "enter", "space":
		return true
	case "esc", "q", "n":
		*focus = 0
		return true
	}
	return false
}

// drawInput draws a text field with its cursor.
func (c *Common) drawInput(l *line, label string, in textinput.Model) {
	l.put(roleAccent, label)
	rs := []rune(in.Value())
	at := min(in.Position(), len(rs))
	// Keep the cursor in view.
	before := string(rs[:at])
	for text.Width(text.Clean(before)) > l.room()-8 && before != "" {
		_, size := utf8.DecodeRuneInString(before)
		before = before[size:]
	}
	l.cut(roleStrong, before, l.room()-2)
	cursor, rest := " ", ""
	if at < len(rs) {
		cursor, rest = string(rs[at]), string(rs[at+1:])
	}
	l.cut(roleButton, cursor, 4).cut(roleStrong, rest, l.room()-1)
}
