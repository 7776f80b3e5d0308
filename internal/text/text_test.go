package text

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

func TestClean(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "train.py --lr 3e-4", "train.py --lr 3e-4"},
		{"empty", "", ""},
		{"letters", "größe 列車 поезд", "größe 列車 поезд"},
		{"emoji", "job🚀", "job🚀"},
		{"backslash stays", `a\x1bb`, `a\x1bb`},
		{"escape sequence", "a\x1b[31mred", `a\x1b[31mred`},
		{"title of the terminal", "\x1b]0;owned\a", `\x1b]0;owned\x07`},
		{"line ends", "a\r\nb\tc", `a\r\nb\tc`},
		{"nul and delete", "a\x00b\x7f", `a\x00b\x7f`},
		{"C1 as UTF-8", "a\u009b31m", `a\u009b31m`},
		{"C1 as a byte", "a\x9b31m", `a\x9b31m`},
		{"right-to-left override", "exe\u202egpj", `exe\u202egpj`},
		{"isolates", "\u2066a\u2069", `\u2066a\u2069`},
		{"zero width", "a\u200bb\u200d\ufeff", `a\u200bb\u200d\ufeff`},
		{"separators", "a\u2028b\u2029", `a\u2028b\u2029`},
		{"soft hyphen", "a\u00adb", `a\u00adb`},
		{"no-break space", "a\u00a0b", `a\u00a0b`},
		{"tag characters", "a\U000e0041", `a\U000e0041`},
		{"Hangul filler", "a\u3164", `a\u3164`},
		{"variation selector", "a\ufe0f", `a\ufe0f`},
		{"private", "\ue0b0", `\ue0b0`},
		{"overlong", "\xc0\x80", `\xc0\x80`},
		{"surrogate", "\xed\xa0\x80", `\xed\xa0\x80`},
		{"cut short", "ab\xe2\x82", `ab\xe2\x82`},
		{"replacement character itself", "\ufffd", "\ufffd"},
		{"combining", "e\u0301", "e\u0301"},
		{"mark with nothing before", "\u0301e", `\u0301e`},
		{"mark after an escape", "\x1b\u0301", `\x1b\u0301`},
		{"tower", "a" + strings.Repeat("\u0335", 6), "a\u0335\u0335\u0335\u0335" + `\u0335\u0335`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Clean(c.in); got != c.want {
				t.Errorf("Clean(%q) = %q, want %q", c.in, got, c.want)
			}
		})
	}
}

func TestFit(t *testing.T) {
	for _, c := range []struct {
		name  string
		in    string
		cells int
		ascii bool
		want  string
	}{
		{"pad", "ab", 4, false, "ab  "},
		{"exact", "abcd", 4, false, "abcd"},
		{"cut", "abcde", 4, false, "abc…"},
		{"cut in ASCII", "abcde", 4, true, "abc~"},
		{"one cell", "abc", 1, false, "…"},
		{"none", "abc", 0, false, ""},
		{"negative", "abc", -3, false, ""},
		{"wide pad", "列車", 5, false, "列車 "},
		{"wide exact", "列車", 4, false, "列車"},
		{"wide halved", "列車", 3, false, "列…"},
		{"wide halved leaves a space", "a列車b", 3, false, "a… "},
		{"cluster is one", "e\u0301e\u0301e\u0301", 2, false, "e\u0301…"},
		{"flag", "🇩🇪🇫🇷", 3, false, "🇩🇪…"},
		{"escape is cleaned first", "\x1b[2J", 8, false, `\x1b[2J `},
		{"letters in ASCII mode", "é", 8, true, `\u00e9  `},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Fit(c.in, c.cells, c.ascii)
			if got != c.want {
				t.Errorf("Fit(%q, %d) = %q, want %q", c.in, c.cells, got, c.want)
			}
			if w := ansi.StringWidth(got); w != max(c.cells, 0) {
				t.Errorf("Fit(%q, %d) = %q takes %d cells", c.in, c.cells, got, w)
			}
		})
	}
	if got := FitRight("12", 5, false); got != "   12" {
		t.Errorf("FitRight = %q", got)
	}
	if got := Cut("abcdef", 4, false); got != "abc…" {
		t.Errorf("Cut = %q", got)
	}
}

func TestBound(t *testing.T) {
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{
		{"abc", 3, "abc"}, {"abcdefgh", 6, "abc..."}, {"abcdefgh", 2, ".."}, {"abc", 0, ""},
		{"ééééé", 8, "éé..."}, {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80", 9, "\x80\x80..."},
	} {
		if got := Bound(c.in, c.n); got != c.want {
			t.Errorf("Bound(%q, %d) = %q, want %q", c.in, c.n, got, c.want)
		}
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"train.py", "\x1b]52;c;aGk=\a", "a\u202eb", "\xff\xfe", "列\u0301車", "🏳️‍🌈", "\u0301\u0301"} {
		f.Add(s, 7)
	}
	f.Fuzz(func(t *testing.T, s string, cells int) {
		cells = min(max(cells, -1), 200)
		c := Clean(s)
		mustBeSafe(t, c)
		if again := Clean(c); again != c {
			t.Fatalf("not stable: %q -> %q -> %q", s, c, again)
		}
		for _, ascii := range []bool{false, true} {
			for _, fit := range []func(string, int, bool) string{Fit, FitRight} {
				got := fit(s, cells, ascii)
				mustBeSafe(t, got)
				if w := ansi.StringWidth(got); w != max(cells, 0) {
					t.Fatalf("fitting %q to %d cells gave %q of %d cells", s, cells, got, w)
				}
				if ascii && !isPlainASCII(got) {
					t.Fatalf("ASCII mode gave %q", got)
				}
			}
		}
	})
}

func mustBeSafe(t *testing.T, s string) {
	t.Helper()
	if !utf8.ValidString(s) {
		t.Fatalf("%q is not UTF-8", s)
	}
	for _, r := range s {
		if unicode.In(r, unicode.C, unicode.Zl, unicode.Zp) || (unicode.Is(unicode.Zs, r) && r != ' ') {
			t.Fatalf("%q holds %U", s, r)
		}
	}
}

func BenchmarkFit(b *testing.B) {
	for b.Loop() {
		Fit("python3.11", 12, false)
	}
}
