package shot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"tsgtop/themes"
)

func picture(t *testing.T, content string, w, h int) string {
	t.Helper()
	set, err := themes.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	th, err := set.Get("dark")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Draw(content, w, h).SVG(&b, th, "a <title>"); err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(bytes.NewReader(b.Bytes()))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, b.String())
		}
	}
	return b.String()
}

func TestCellsOfALine(t *testing.T) {
	s := Draw("a\x1b[1;31mb\x1b[m日\n\x1b[7mx", 6, 2)
	if c := s.At(1, 0); c.Text != "b" || !c.Bold || c.Fg == nil {
		t.Errorf("%+v", c)
	}
	if c := s.At(2, 0); c.Text != "日" || c.Width != 2 {
		t.Errorf("%+v", c)
	}
	if c := s.At(0, 1); c.Text != "x" || !c.Reverse {
		t.Errorf("%+v", c)
	}
}

func TestPicture(t *testing.T) {
	got := picture(t, "a<b  c\n\x1b[38;2;1;2;3m██\x1b[m│日x", 8, 2)
	for _, want := range []string{
		`>a&lt;b</text>`, `>c</text>`, // two blanks part a run
		`width="16.8" height="18" fill="#010203"`, // two blocks are one shape
		`textLength="25.2"`,                       // a wide character and a letter: three cells
		`a &lt;title&gt;`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if strings.Contains(got, "█") || strings.Contains(got, "│") {
		t.Error("a block was left to the font")
	}
	if full := picture(t, "12345678\n12345678", 8, 2); strings.Count(full, ">12345678<") != 2 {
		t.Errorf("lines of full width:\n%s", full)
	}
}

func TestReverseSwapsColours(t *testing.T) {
	got := picture(t, "\x1b[7mx", 1, 1)
	if !strings.Contains(got, `height="18" fill="#e6e6e6"`) || !strings.Contains(got, `fill="#12151a" textLength`) {
		t.Error(got)
	}
}
