package ui

import (
	"image/color"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"

	"tsgtop/themes"
)

// role is what a piece of text is on the screen; a theme gives it a colour.
type role uint8

const (
	rolePlain role = iota
	roleDim
	roleTitle
	roleAccent
	roleGood
	roleWarn
	roleBad
	roleUnknown
	roleBorder
	roleBar
	roleHead   // headings of a table
	roleStrong // plain, bold: never the only way in which something is said
	roleKey
	roleButton  // a button that has the focus
	roleLane    // roleLane+i: context i of the lane
	maxLaneRole = roleLane + 32
)

// spanStyle is what is written before and after text of a role.
type spanStyle struct{ open, close string }

// styles are a theme's roles as escape sequences for one colour profile, made
// once: a frame then only copies strings.
type styles struct {
	theme  *themes.Theme
	plain  []spanStyle // by role
	picked []spanStyle // by role, on the selected row
	lanes  int
}

// of gives what surrounds text of role r.
func (s *styles) of(r role, picked bool) spanStyle {
	if int(r) >= len(s.plain) {
		r = rolePlain
	}
	if picked {
		return s.picked[r]
	}
	return s.plain[r]
}

// newStyles compiles a theme. Without colours what remains is bold, reverse
// and underline, none of which says anything by itself.
func newStyles(t *themes.Theme, p colorprofile.Profile) *styles {
	s := &styles{theme: t, lanes: len(t.Lanes)}
	noColour := p < colorprofile.ANSI
	bg := t.Background.In(p)
	compile := func(fg color.Color, bold, picked bool) spanStyle {
		st := lipgloss.NewStyle()
		if fg != nil {
			st = st.Foreground(fg)
		}
		if bold {
			st = st.Bold(true)
		}
		switch {
		case picked && noColour:
			st = st.Reverse(true)
		case picked:
			if c := t.Selected.In(p); c != nil {
				st = st.Background(c)
			}
		case bg != nil:
			st = st.Background(bg)
		}
		return around(st)
	}
	for _, picked := range []bool{false, true} {
		var out []spanStyle
		add := func(c themes.Colour, bold bool) {
			fg := c.In(p)
			if picked {
				if st := t.SelectedText.In(p); st != nil {
					fg = st
				} else if fg == nil {
					fg = t.Text.In(p)
				}
			} else if fg == nil {
				fg = t.Text.In(p)
			}
			out = append(out, compile(fg, bold, picked))
		}
		add(t.Text, false)
		add(t.Dim, false)
		add(t.Title, true)
		add(t.Accent, false)
		add(t.Good, false)
		add(t.Warn, false)
		add(t.Bad, true)
		add(t.Unknown, false)
		add(t.Border, false)
		add(t.Bar, false)
		add(t.Dim, false)   // head
		add(t.Text, true)   // strong
		add(t.Accent, true) // key
		button := lipgloss.NewStyle().Reverse(true).Bold(true)
		if fg := t.Accent.In(p); fg != nil {
			button = button.Foreground(fg)
		}
		out = append(out, around(button))
		for _, l := range t.Lanes {
			// A context keeps its colour on the selected row too.
			out = append(out, compile(l.In(p), false, picked))
		}
		if picked {
			s.picked = out
		} else {
			s.plain = out
		}
	}
	return s
}

// around splits a style into what it writes before and after a text.
func around(st lipgloss.Style) spanStyle {
	open, end, _ := strings.Cut(st.Render("x"), "x")
	return spanStyle{open, end}
}
