package text

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Width is the number of terminal cells that s takes, by the measure that the
// screen's layout uses (grapheme clusters; wide characters are two cells).
func Width(s string) int {
	if isPlainASCII(s) {
		return len(s)
	}
	return ansi.StringWidth(s)
}

// Fit cleans s and brings it to exactly so many cells: padded with spaces on
// the right, or cut between grapheme clusters with an ellipsis ("…", in ASCII
// mode "~"). In ASCII mode characters outside ASCII are escaped as well. A
// wide character that would be halved at the cut is left out and a space put
// in its place. For cells <= 0 it is empty.
func Fit(s string, cells int, ascii bool) string {
	s, w := cut(s, cells, ascii)
	if w < cells {
		s += strings.Repeat(" ", cells-w)
	}
	return s
}

// FitRight is Fit with the padding on the left, for numbers.
func FitRight(s string, cells int, ascii bool) string {
	s, w := cut(s, cells, ascii)
	if w < cells {
		s = strings.Repeat(" ", cells-w) + s
	}
	return s
}

// Cut cleans s and cuts it to at most so many cells, as Fit does, without padding.
func Cut(s string, cells int, ascii bool) string {
	s, _ = cut(s, cells, ascii)
	return s
}

func cut(s string, cells int, ascii bool) (string, int) {
	if cells <= 0 {
		return "", 0
	}
	ellipsis := "…"
	if ascii {
		s, ellipsis = ASCII(s), "~"
	} else {
		s = Clean(s)
	}
	if isPlainASCII(s) {
		if len(s) <= cells {
			return s, len(s)
		}
		return s[:cells-1] + ellipsis, cells
	}
	end, width := 0, 0 // of what fits beside an ellipsis
	for at, w := 0, 0; at < len(s); {
		cluster, cw := ansi.FirstGraphemeCluster(s[at:], ansi.GraphemeWidth)
		if cluster == "" {
			break
		}
		at += len(cluster)
		w += cw
		if w <= cells-1 {
			end, width = at, w
		}
		if w > cells {
			return s[:end] + ellipsis, width + 1
		}
		if at == len(s) {
			return s, w
		}
	}
	return s[:end] + ellipsis, width + 1
}
