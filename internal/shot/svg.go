package shot

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image/color"
	"io"
	"strconv"
	"strings"

	"tsgtop/themes"
)

// Measures of a picture, in SVG units. A cell is a little over half as wide as
// high, as in terminals.
const (
	cellWidth  = 8.4
	cellHeight = 18
	fontSize   = 14
	baseline   = 13.5 // from the top of a cell
	margin     = 12
)

// fonts that have all signs that the screen draws, and what is left otherwise.
const fonts = "'JetBrains Mono','DejaVu Sans Mono','Cascadia Mono',Menlo,Consolas,'Liberation Mono',monospace"

// ground are the colours of a terminal that are its own.
type ground struct{ fg, bg color.Color }

var (
	darkGround  = ground{color.RGBA{0xe6, 0xe6, 0xe6, 0xff}, color.RGBA{0x12, 0x15, 0x1a, 0xff}}
	lightGround = ground{color.RGBA{0x1f, 0x23, 0x28, 0xff}, color.RGBA{0xfd, 0xfd, 0xfb, 0xff}}
)

// SVG writes the screen as a picture. light: the terminal's own background is.
// title is what a screen reader says of it.
func (s *Screen) SVG(w io.Writer, t *themes.Theme, title string) error {
	g := darkGround
	if t.Appearance == "light" {
		g = lightGround
	}
	var b bytes.Buffer
	width, height := float64(s.Width)*cellWidth+2*margin, float64(s.Height)*cellHeight+2*margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" width="%s" height="%s" role="img">`+"\n", num(width), num(height), num(width), num(height))
	fmt.Fprintf(&b, "<title>%s</title>\n", escape(title))
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", hex(g.bg))
	fmt.Fprintf(&b, `<g font-family="%s" font-size="%d" xml:space="preserve">`+"\n", fonts, fontSize)
	for y := range s.Height {
		s.line(&b, y, g)
	}
	b.WriteString("</g>\n</svg>\n")
	_, err := w.Write(b.Bytes())
	return err
}

// look is how a cell is drawn.
type look struct {
	fg, bg    color.Color
	bold      bool
	underline bool
}

func (c Cell) look(g ground) look {
	l := look{fg: c.Fg, bg: c.Bg, bold: c.Bold, underline: c.Underline}
	if l.fg == nil {
		l.fg = g.fg
	}
	if l.bg == nil {
		l.bg = g.bg
	}
	if c.Reverse {
		l.fg, l.bg = l.bg, l.fg
	}
	return l
}

// line draws one line: grounds first, then runs of letters of one look, and
// blocks and rules as shapes, so that no font leaves seams between them.
func (s *Screen) line(b *bytes.Buffer, y int, g ground) {
	top := margin + float64(y)*cellHeight
	for x := 0; x < s.Width; {
		l, from := s.At(x, y).look(g), x
		for x < s.Width && same(s.At(x, y).look(g).bg, l.bg) {
			x++
		}
		if !same(l.bg, g.bg) {
			fmt.Fprintf(b, `<rect x="%s" y="%s" width="%s" height="%d" fill="%s"/>`+"\n", num(left(from)), num(top), num(float64(x-from)*cellWidth), cellHeight, hex(l.bg))
		}
	}
	for x := 0; x < s.Width; {
		c := s.At(x, y)
		if d, ok := shapes[c.Text]; ok {
			l, from := c.look(g), x
			for x < s.Width && s.At(x, y).Text == c.Text && s.At(x, y).look(g) == l {
				x++
			}
			d(b, box{left(from), top, x - from}, hex(l.fg))
			continue
		}
		if blank(c) {
			x++
			continue
		}
		x = s.letters(b, x, y, g)
	}
}

// letters draws the run of letters that begins at a cell, and tells where it ends.
func (s *Screen) letters(b *bytes.Buffer, x, y int, g ground) (next int) {
	l, from := s.At(x, y).look(g), x
	var text strings.Builder
	cells := 0 // without the blanks at the end
	kept := 0
	for x < s.Width {
		c := s.At(x, y)
		if _, shape := shapes[c.Text]; shape || c.Text != "" && !blank(c) && c.look(g) != l {
			break
		}
		if c.Text != "" {
			text.WriteString(c.Text)
		} else if c.Width != 0 {
			text.WriteByte(' ')
		}
		x++
		if !blank(c) {
			cells, kept = x-from, text.Len()
			if c.Width > 1 {
				cells += c.Width - 1
			}
		}
		if x-from-cells > 1 {
			break // two blanks end a run: what follows has its own place
		}
	}
	weight := ""
	if l.bold {
		weight = ` font-weight="bold"`
	}
	if l.underline {
		weight += ` text-decoration="underline"`
	}
	// textLength holds the run in its cells, whatever font there is.
	fmt.Fprintf(b, `<text x="%s" y="%s" fill="%s"%s textLength="%s" lengthAdjust="spacingAndGlyphs">%s</text>`+"\n", num(left(from)),
		num(margin+float64(y)*cellHeight+baseline), hex(l.fg), weight, num(float64(cells)*cellWidth), escape(text.String()[:kept]))
	return from + cells
}

func blank(c Cell) bool { return (c.Text == "" || c.Text == " ") && !c.Underline }

func left(x int) float64 { return margin + float64(x)*cellWidth }

func num(f float64) string { return strconv.FormatFloat(f, 'f', -1, 32) }

func hex(c color.Color) string {
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
}

func same(a, b color.Color) bool { return hex(a) == hex(b) }

func escape(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a bytes.Buffer takes everything
	return b.String()
}
