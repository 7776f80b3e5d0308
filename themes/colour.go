package themes

import (
	"fmt"
	"image/color"
	"strconv"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
)

// Colour is one colour of a theme: for true colour, and, where the nearest
// colour would not do, for terminals of 256 and of 16 colours. The zero value
// is the terminal's own default.
type Colour struct {
	RGB  string `toml:"rgb"`  // "#rrggbb"
	C256 *int   `toml:"c256"` // xterm colour 0..255
	C16  *int   `toml:"c16"`  // ANSI colour 0..15

	bad error // what was wrong with it in the file; see Theme.check
}

// UnmarshalTOML reads either a string "#rrggbb" ("" for the terminal's default)
// or a table {rgb, c256, c16}. What is wrong with it is kept for Theme.check,
// which knows the role: the TOML package would bury it in its own error.
func (c *Colour) UnmarshalTOML(v any) error {
	*c = Colour{}
	c.bad = c.read(v)
	return nil
}

func (c *Colour) read(v any) error {
	switch v := v.(type) {
	case string:
		c.RGB = v
	case map[string]any:
		for key, val := range v {
			switch key {
			case "rgb":
				s, ok := val.(string)
				if !ok {
					return fmt.Errorf("rgb: want a string such as \"#88c0d0\"")
				}
				c.RGB = s
			case "c256":
				n, err := index(val, 255)
				if err != nil {
					return fmt.Errorf("c256: %w", err)
				}
				c.C256 = n
			case "c16":
				n, err := index(val, 15)
				if err != nil {
					return fmt.Errorf("c16: %w", err)
				}
				c.C16 = n
			default:
				return fmt.Errorf("a colour has the keys rgb, c256 and c16, and one other was given%s",
					suggest(key, []string{"rgb", "c256", "c16"}))
			}
		}
	default:
		return fmt.Errorf("a colour is a string such as \"#88c0d0\" or a table of rgb, c256 and c16")
	}
	if c.RGB == "" {
		if c.C16 != nil || c.C256 != nil {
			return fmt.Errorf("a colour with c256 or c16 needs rgb too")
		}
		return nil
	}
	if _, err := parseRGB(c.RGB); err != nil {
		return err
	}
	return nil
}

func index(v any, most int64) (*int, error) {
	n, ok := v.(int64)
	if !ok || n < 0 || n > most {
		return nil, fmt.Errorf("want a whole number from 0 to %d", most)
	}
	i := int(n)
	return &i, nil
}

// parseRGB never repeats what it was given: a theme can be a link to a file
// that its reader should not see.
func parseRGB(s string) (color.RGBA, error) {
	if len(s) != 7 || s[0] != '#' {
		return color.RGBA{}, fmt.Errorf("want a colour as #rrggbb")
	}
	n, err := strconv.ParseUint(s[1:], 16, 32)
	if err != nil {
		return color.RGBA{}, fmt.Errorf("want a colour as #rrggbb")
	}
	return color.RGBA{R: uint8(n >> 16), G: uint8(n >> 8), B: uint8(n), A: 0xff}, nil
}

// In is the colour on a terminal of profile p; nil means the terminal's
// default, and is all that a terminal without colours gets.
func (c Colour) In(p colorprofile.Profile) color.Color {
	if c.RGB == "" {
		return nil
	}
	rgb, err := parseRGB(c.RGB)
	if err != nil {
		return nil
	}
	switch p {
	case colorprofile.TrueColor:
		return rgb
	case colorprofile.ANSI256:
		if c.C256 != nil {
			return ansi.IndexedColor(*c.C256)
		}
		return p.Convert(rgb)
	case colorprofile.ANSI:
		if c.C16 != nil {
			return ansi.BasicColor(*c.C16)
		}
		return p.Convert(rgb)
	default:
		return nil
	}
}
