package ui

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// padANSI pads a drawn line to a width.
func padANSI(s string, width int) string {
	if w := ansi.StringWidth(s); w < width {
		return s + strings.Repeat(" ", width-w)
	}
	return s
}
