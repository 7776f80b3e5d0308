// Package shot makes pictures of the screen: what View draws, read by a
// terminal emulator, as SVG.
package shot

import (
	"image/color"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/vt"
)

// Cell is one cell of a terminal. A cell that a wide character to its left
// covers has no text.
type Cell struct {
	Text      string
	Width     int
	Fg, Bg    color.Color // nil: the terminal's own
	Bold      bool
	Reverse   bool
	Underline bool
}

// Screen is what a terminal shows.
type Screen struct {
	Width, Height int
	cells         []Cell
}

// Draw has a terminal of that size show content, a View's, whose lines end with
// "\n".
func Draw(content string, width, height int) *Screen {
	emu := vt.NewEmulator(width, height)
	defer emu.Close()
	// A screen asks the terminal nothing, so that nobody has to read answers. No line wraps, so that a line of full width does not make two.
	_, _ = emu.WriteString("\x1b[?7l" + strings.ReplaceAll(content, "\n", "\r\n"))
	s := &Screen{Width: width, Height: height, cells: make([]Cell, width*height)}
	for y := range height {
		for x := range width {
			c := emu.CellAt(x, y)
			if c == nil {
				continue
			}
			s.cells[y*width+x] = Cell{Text: c.Content, Width: c.Width, Fg: c.Style.Fg, Bg: c.Style.Bg,
				Bold: c.Style.Attrs&uv.AttrBold != 0, Reverse: c.Style.Attrs&uv.AttrReverse != 0, Underline: c.Style.Underline != 0}
		}
	}
	return s
}

// At is the cell in column x of line y, both from 0.
func (s *Screen) At(x, y int) Cell { return s.cells[y*s.Width+x] }
