package themes

import (
	"image/color"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/charmbracelet/colorprofile"
)

func builtin(t *testing.T) *Set {
	t.Helper()
	s, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestBuiltinHoldsEveryEmbeddedTheme(t *testing.T) {
	s := builtin(t)
	files, err := embedded.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if name := strings.TrimSuffix(f.Name(), ".toml"); !slices.Contains(s.Names(), name) {
			t.Errorf("%s is embedded and cannot be chosen", f.Name())
		}
	}
	if s.Names()[0] != Default {
		t.Errorf("the first theme is %s, want %s", s.Names()[0], Default)
	}
}

// luminance and contrast as WCAG 2 defines them.
func luminance(c color.Color) float64 {
	r, g, b, _ := c.RGBA()
	f := func(v uint32) float64 {
		x := float64(v) / 0xffff
		if x <= 0.03928 {
			return x / 12.92
		}
		return math.Pow((x+0.055)/1.055, 2.4)
	}
	return 0.2126*f(r) + 0.7152*f(g) + 0.0722*f(b)
}

func contrast(a, b color.Color) float64 {
	la, lb := luminance(a), luminance(b)
	return (max(la, lb) + 0.05) / (min(la, lb) + 0.05)
}

func TestTextCanBeRead(t *testing.T) {
	for _, th := range builtin(t).list {
		bg := th.Background.In(colorprofile.TrueColor)
		if bg == nil {
			bg = color.RGBA{A: 0xff}
			if th.Appearance == "light" {
				bg = color.RGBA{R: 0xff, G: 0xff, B: 0xff, A: 0xff}
			}
		}
		least := 3.0
		if th.Name == "contrast" {
			least = 7
		}
		for role, c := range map[string]Colour{
			"text": th.Text, "dim": th.Dim, "title": th.Title, "accent": th.Accent,
			"good": th.Good, "warn": th.Warn, "bad": th.Bad, "unknown": th.Unknown,
		} {
			fg := c.In(colorprofile.TrueColor)
			if fg == nil {
				continue
			}
			if th.Name == "solarized-dark" {
				least = 2.8 // its colours are given
			}
			if got := contrast(fg, bg); got < least {
				t.Errorf("%s: %s on the background: contrast %.2f, want %.1f", th.Name, role, got, least)
			}
		}
		sel, st := th.Selected.In(colorprofile.TrueColor), th.SelectedText.In(colorprofile.TrueColor)
		if sel == nil {
			t.Errorf("%s: the selection has no colour", th.Name)
		} else if st != nil && contrast(sel, st) < 4.5 {
			t.Errorf("%s: selected text: contrast %.2f, want 4.5", th.Name, contrast(sel, st))
		}
		for i := range th.Lanes {
			for j := range i {
				for _, p := range []colorprofile.Profile{colorprofile.TrueColor, colorprofile.ANSI256, colorprofile.ANSI} {
					if th.Lanes[i].In(p) == th.Lanes[j].In(p) {
						t.Errorf("%s: lanes %d and %d have one colour in %v", th.Name, i, j, p)
					}
				}
			}
		}
	}
}

func TestNoColourWithoutColours(t *testing.T) {
	for _, th := range builtin(t).list {
		for _, p := range []colorprofile.Profile{colorprofile.ASCII, colorprofile.NoTTY} {
			if c := th.Accent.In(p); c != nil {
				t.Errorf("%s in %v: %v, want none", th.Name, p, c)
			}
		}
	}
}

const good = `appearance = "dark"
lanes = ["#000001", "#000002", "#000003", "#000004", "#000005", "#000006"]
`

func TestReadTellsWhatIsWrong(t *testing.T) {
	secret := "hunter2"
	for _, tc := range []struct{ name, in, want string }{
		{"unknown key", good + "acent = \"#ffffff\"\n", `did you mean "accent"?`},
		{"unknown key, nothing near", good + secret + secret + " = 1\n", "unknown key"},
		{"not a colour", good + "accent = \"" + secret + "\"\n", "#rrggbb"},
		{"not TOML", secret + "\n", "line 1"},
		{"wrong kind", good + "accent = 3\n", "colour is a string"},
		{"out of 16", good + "accent = { rgb = \"#ffffff\", c16 = 16 }\n", "0 to 15"},
		{"unknown colour key", good + "accent = { rbg = \"#ffffff\" }\n", `"rgb"`},
		{"16 without rgb", good + "accent = { c16 = 3 }\n", "needs rgb"},
		{"few lanes", "appearance = \"dark\"\nlanes = [\"#000001\"]\n", "lanes"},
		{"no appearance", "", "appearance"},
		{"name", good + "name = \"a/b\"\n", "name"},
		{"too long", good + strings.Repeat("#", maxThemeBytes), "longer"},
	} {
		_, err := Read(strings.NewReader(tc.in), "mine")
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want something with %q", tc.name, err, tc.want)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the error quotes the file: %v", tc.name, err)
		}
	}
}

func TestUserThemes(t *testing.T) {
	s := builtin(t)
	n := len(s.list)
	err := s.AddFrom(fstest.MapFS{
		"mine.toml":   {Data: []byte(good)},
		"dark.toml":   {Data: []byte(good + "about = \"other\"\n")},
		"broken.toml": {Data: []byte("x = [")},
		"notes.txt":   {Data: []byte("no theme")},
	})
	if err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("error %v, want one about broken", err)
	}
	if len(s.list) != n+1 {
		t.Errorf("%d themes, want %d", len(s.list), n+1)
	}
	if d, _ := s.Get("dark"); d == nil || d.About != "other" {
		t.Error("a user's dark does not take the built-in's place")
	}
	if s.Next("mine").Name != "dark" {
		t.Errorf("after the last comes %s, want dark", s.Next("mine").Name)
	}
	if _, err := s.Get("mien"); err == nil || !strings.Contains(err.Error(), `"mine"`) {
		t.Errorf("%v, want a suggestion of mine", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(good)
	f.Add("accent = { rgb = \"#ffffff\", c256 = 3 }")
	f.Fuzz(func(t *testing.T, in string) {
		th, err := Read(strings.NewReader(in), "f")
		if err != nil {
			return
		}
		for _, p := range []colorprofile.Profile{colorprofile.TrueColor, colorprofile.ANSI256, colorprofile.ANSI} {
			th.Accent.In(p)
		}
	})
}
