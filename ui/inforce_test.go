package ui

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"tsgtop/internal/sched"
)

// What the detail says of the timeslice that is in force.
func TestDetailInForce(t *testing.T) {
	h := start(t, 160, 40, oneGPU, nil)
	for _, c := range []struct {
		f    sched.InForce
		want string
	}{
		{sched.InForce{Known: true, AsSet: true, CutUS: 305}, "in force yes: its turns are cut at 305µs"},
		{sched.InForce{Known: true, CutUS: 2197}, "in force NO: its turns are cut at 2197µs"},
		{sched.InForce{Known: true, AsSet: true, Beat: 0.89}, "in force yes: others end its turns in its beat (strength 0.89)"},
		{sched.InForce{Why: "its timeslice was changed less than 10 s ago"}, "in force not known: its timeslice was changed less than 10 s ago"},
		{sched.InForce{}, ""},
	} {
		got := ansi.Strip(strings.Join(h.m.detail.facts(&h.m.live.TSGs[0], &sched.Detail{InForce: c.f}), "\n"))
		if c.want == "" && strings.Contains(got, "in force") || !strings.Contains(got, c.want) {
			t.Errorf("%+v: want %q in\n%s", c.f, c.want, got)
		}
	}
}
