package doctest

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// anything is what stands in a document for what varies.
const anything = "…"

var (
	number = regexp.MustCompile(`\d+(?:\.\d+)?`)
	blanks = regexp.MustCompile(`\s+`)
)

// squeeze makes runs of blanks one.
func squeeze(s string) string { return strings.TrimSpace(blanks.ReplaceAllString(s, " ")) }

// sameLine tells whether a line that was printed is the one of the document.
// tolerance is by what fraction numbers may differ.
func sameLine(want, got string, tolerance float64) bool {
	want, got = squeeze(want), squeeze(got)
	var pattern strings.Builder
	var numbers []string
	for i, piece := range strings.Split(want, anything) {
		if i > 0 {
			pattern.WriteString(".*")
		}
		if tolerance == 0 {
			pattern.WriteString(regexp.QuoteMeta(piece))
			continue
		}
		at := 0
		for _, m := range number.FindAllStringIndex(piece, -1) {
			pattern.WriteString(regexp.QuoteMeta(piece[at:m[0]]))
			pattern.WriteString(`(\d+(?:\.\d+)?)`)
			numbers = append(numbers, piece[m[0]:m[1]])
			at = m[1]
		}
		pattern.WriteString(regexp.QuoteMeta(piece[at:]))
	}
	m := regexp.MustCompile("^" + pattern.String() + "$").FindStringSubmatch(got)
	if m == nil {
		return false
	}
	for i, w := range numbers {
		if !near(w, m[i+1], tolerance) {
			return false
		}
	}
	return true
}

// near compares two numbers as they were written.
func near(want, got string, tolerance float64) bool {
	w, err1 := strconv.ParseFloat(want, 64)
	g, err2 := strconv.ParseFloat(got, 64)
	if err1 != nil || err2 != nil {
		return false
	}
	if !strings.Contains(want, ".") && w < 10 {
		return w == g
	}
	return math.Abs(w-g) <= tolerance*w
}

// difference tells how what was printed differs from the document; nil: it does
// not.
func difference(want, got []string, tolerance float64) error {
	if len(want) == 0 {
		if len(got) == 0 {
			return nil
		}
		return fmt.Errorf("the document ends, and the program goes on: %q", got[0])
	}
	if strings.TrimSpace(want[0]) == anything {
		var first error
		for skip := 0; skip <= len(got); skip++ {
			err := difference(want[1:], got[skip:], tolerance)
			if err == nil {
				return nil
			}
			if first == nil {
				first = err
			}
		}
		return fmt.Errorf("nothing after %s fits: %w", anything, first)
	}
	if len(got) == 0 {
		return fmt.Errorf("the program ends before %q", want[0])
	}
	if !sameLine(want[0], got[0], tolerance) {
		return fmt.Errorf("document: %q\n  program: %q", want[0], got[0])
	}
	return difference(want[1:], got[1:], tolerance)
}

func TestSameLine(t *testing.T) {
	for _, c := range []struct {
		want, got string
		tolerance float64
		same      bool
	}{
		{"CHANGED   no  ", "CHANGED no", 0, true},
		{"CHANGED no", "CHANGED yes", 0, false},
		{"user ada, not to you (…)", "user ada, not to you (root)", 0, true},
		{"user ada, not to you (…)", "user bob, not to you (root)", 0, false},
		{"(x0.14)", "(x0x14)", 0, false},
		{"2197 -> 305 us", "2197 -> 304 us", 0, false},
		{"2197 -> 305 us", "2197 -> 304 us", 0.2, true},
		{"2197 -> 305 us", "2197 -> 2197 us", 0.2, false},
		{"2197 -> 305 us", "305 -> 2197 us", 0.2, false},
		{"3.6% -> 6.0%", "3.5% -> 6.2%", 0.2, true},
		{"by accident 9", "by accident 8", 0.2, false},
		{"a … 20 b", "a xyz 21 b", 0.2, true},
		{"50.0 -> 49.9%", "100.0 -> 49.9%", 0.2, false},
	} {
		if got := sameLine(c.want, c.got, c.tolerance); got != c.same {
			t.Errorf("sameLine(%q, %q, %v) = %v", c.want, c.got, c.tolerance, got)
		}
	}
}

func TestDifference(t *testing.T) {
	lines := func(s string) []string { return strings.Fields(s) }
	for _, c := range []struct {
		want, got string
		same      bool
	}{
		{"a b c", "a b c", true},
		{"a c", "a b c", false},
		{"a … c", "a b b c", true},
		{"a … c", "a c", true},
		{"a … c", "a b c d", false},
		{"… c", "a b", false},
		{"a …", "a b c", true},
		{"a", "a b", false},
		{"a b", "a", false},
		{"", "", true},
	} {
		if err := difference(lines(c.want), lines(c.got), 0); (err == nil) != c.same {
			t.Errorf("%q against %q: %v", c.want, c.got, err)
		}
	}
}

func TestCommandsOfABlock(t *testing.T) {
	text := "x\n<!-- doctest: numbers within 20% -->\n```console\n$ tsgtop ls --source sim\nGPU0\n$ echo $?\n0\n$ tsgtop version\n```\n"
	bs, err := blocks(text)
	if err != nil || len(bs) != 1 || bs[0].kind != "console" || bs[0].note != "numbers within 20%" || bs[0].line != 4 {
		t.Fatalf("blocks: %+v, %v", bs, err)
	}
	cs, err := bs[0].commands()
	if err != nil || len(cs) != 2 || len(cs[0].want) != 1 || len(cs[0].args) != 3 || len(cs[1].want) != 0 {
		t.Fatalf("commands: %+v, %v", cs, err)
	}
	for _, bad := range []string{"GPU0", "$ rm -rf x", "$ tsgtop ls | head", "$ tsgtop version\n$ echo $?"} {
		if cs, err := (block{lines: strings.Split(bad, "\n")}).commands(); err == nil {
			t.Errorf("%q gave %+v", bad, cs)
		}
	}
	if _, err := blocks("```console\n$ tsgtop version\n"); err == nil {
		t.Error("a block that is not closed passed")
	}
}

func TestOnlyHarmlessCommandsRun(t *testing.T) {
	for args, want := range map[string]bool{
		"ls --source sim":                   true,
		"ls --source=demo":                  true,
		"timeslice 0:0:7 1 --source sim:x":  true,
		"ls --source run.tsg.zst":           true,
		"version":                           true,
		"timeslice --help":                  true,
		"":                                  false,
		"ls":                                false,
		"doctor":                            false,
		"restore":                           false,
		"ls --source live":                  false,
		"ls --source ../x.zst":              false,
		"ls --source /dev/x.zst":            false,
		"preempt 0:0:7 --yes":               false,
		"ls --source sim --config x":        false,
		"preempt 0:0:7 --source simulation": false,
	} {
		if err := harmless(strings.Fields(args)); (err == nil) != want {
			t.Errorf("%q: %v", args, err)
		}
	}
}
