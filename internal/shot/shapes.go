package shot

import (
	"bytes"
	"fmt"
)

// box is where a run of equal signs stands: n cells from the left.
type box struct {
	left, top float64
	n         int
}

func (b box) width() float64 { return float64(b.n) * cellWidth }

// shapes draw the signs that have to touch each other.
var shapes = map[string]func(w *bytes.Buffer, b box, colour string){
	"█": shade(1), "▓": shade(0.75), "▒": shade(0.5), "░": shade(0.25),
	"▁": bar(1), "▂": bar(2), "▃": bar(3), "▄": bar(4), "▅": bar(5), "▆": bar(6), "▇": bar(7),
	"▏": func(w *bytes.Buffer, b box, colour string) {
		for i := range b.n {
			rect(w, b.left+float64(i)*cellWidth, b.top, 1.2, cellHeight, colour, 1)
		}
	},
	"─": lines(false, true, true, false, false), "│": lines(true, false, false, true, true),
	"┌": lines(true, false, true, false, true), "┐": lines(true, true, false, false, true),
	"└": lines(true, false, true, true, false), "┘": lines(true, true, false, true, false),
	"╱": strokes(true, false), "╲": strokes(false, true), "╳": strokes(true, true),
}

func rect(w *bytes.Buffer, x, y, width, height float64, colour string, opacity float64) {
	alpha := ""
	if opacity < 1 {
		alpha = ` fill-opacity="` + num(opacity) + `"`
	}
	fmt.Fprintf(w, `<rect x="%s" y="%s" width="%s" height="%s" fill="%s"%s/>`+"\n", num(x), num(y), num(width), num(height), colour, alpha)
}

// shade is a block that lets some of the ground through.
func shade(opacity float64) func(*bytes.Buffer, box, string) {
	return func(w *bytes.Buffer, b box, colour string) {
		rect(w, b.left, b.top, b.width(), cellHeight, colour, opacity)
	}
}

// bar is a block of some eighths of a cell's height.
func bar(eighths float64) func(*bytes.Buffer, box, string) {
	return func(w *bytes.Buffer, b box, colour string) {
		h := cellHeight * eighths / 8
		rect(w, b.left, b.top+cellHeight-h, b.width(), h, colour, 1)
	}
}

// lines are the arms of a box-drawing sign from a cell's middle; each: each
// cell of a run has its own.
func lines(each, toLeft, toRight, up, down bool) func(*bytes.Buffer, box, string) {
	const thick = 1.2
	return func(w *bytes.Buffer, b box, colour string) {
		if !each {
			rect(w, b.left, b.top+(cellHeight-thick)/2, b.width(), thick, colour, 1)
			return
		}
		for i := range b.n {
			x := b.left + float64(i)*cellWidth
			middle, centre := b.top+cellHeight/2, x+cellWidth/2
			if toLeft {
				rect(w, x, middle-thick/2, cellWidth/2+thick/2, thick, colour, 1)
			}
			if toRight {
				rect(w, centre-thick/2, middle-thick/2, cellWidth/2+thick/2, thick, colour, 1)
			}
			if up {
				rect(w, centre-thick/2, b.top, thick, cellHeight/2, colour, 1)
			}
			if down {
				rect(w, centre-thick/2, middle, thick, cellHeight/2, colour, 1)
			}
		}
	}
}

// strokes are diagonals through each cell.
func strokes(rising, falling bool) func(*bytes.Buffer, box, string) {
	return func(w *bytes.Buffer, b box, colour string) {
		fmt.Fprintf(w, `<path stroke="%s" stroke-width="1.2" d="`, colour)
		for i := range b.n {
			x := b.left + float64(i)*cellWidth
			if rising {
				fmt.Fprintf(w, "M%s %sL%s %s", num(x), num(b.top+cellHeight), num(x+cellWidth), num(b.top))
			}
			if falling {
				fmt.Fprintf(w, "M%s %sL%s %s", num(x), num(b.top), num(x+cellWidth), num(b.top+cellHeight))
			}
		}
		w.WriteString(`"/>` + "\n")
	}
}
