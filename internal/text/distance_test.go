package text

import "testing"

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"theme", "theme", 0}, {"tehme", "theme", 2}, {"timeslise", "timeslice", 1}, {"kitten", "sitting", 3}} {
		if d := Distance(c.a, c.b); d != c.want {
			t.Errorf("%q to %q: %d, want %d", c.a, c.b, d, c.want)
		}
	}
}
