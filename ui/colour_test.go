package ui

import (
	"fmt"
	"testing"

	"github.com/charmbracelet/colorprofile"

	"tsgtop/internal/sched"
)

// TestNothingIsSaidByColourAlone changes one thing at a time that has a colour
// of its own, and wants the letters and signs of the screen to change with it:
// without colours, bold and reverse, and in ASCII too.
func TestNothingIsSaidByColourAlone(t *testing.T) {
	lamp := func(set func(*sched.Command, sched.LampState)) func(*sched.Snapshot, int) {
		return func(s *sched.Snapshot, i int) {
			s.Commands = commands(s.Time)[2:3] // judged
			set(&s.Commands[0], []sched.LampState{sched.LampYes, sched.LampNo, sched.LampUnknown, sched.LampWaiting}[i])
		}
	}
	probe := func(s *sched.Snapshot, i int) {
		s.Probes[1].State = []sched.ProbeState{sched.ProbeOK, sched.ProbeLimited, sched.ProbeMissing, sched.ProbeReleased}[i]
	}
	for _, tc := range []struct {
		name   string
		states int
		set    func(s *sched.Snapshot, i int)
	}{
		{"lamp ran", 4, lamp(func(c *sched.Command, l sched.LampState) { c.Ran.State = l })},
		{"lamp accepted", 4, lamp(func(c *sched.Command, l sched.LampState) { c.Accepted.State = l })},
		{"lamp changed", 4, lamp(func(c *sched.Command, l sched.LampState) { c.Changed.State = l })},
		{"probe", 4, probe},
		{"losses", 2, func(s *sched.Snapshot, i int) { s.Lost.Ring = uint64(i) }},
		{"Xids", 2, func(s *sched.Snapshot, i int) { s.GPUs[0].XidCount = i }},
		{"MIG", 2, func(s *sched.Snapshot, i int) { s.GPUs[0].MIG = sched.Ptr(i == 1) }},
		{"live or not", 2, func(s *sched.Snapshot, i int) { s.Source.Label = []string{"LIVE", "SIMULATED"}[i] }},
		{"where a timeslice is known from", 2, func(s *sched.Snapshot, i int) {
			s.TSGs[1].TimesliceFrom = []sched.ValueFrom{sched.FromSeen, sched.FromDefault}[i]
		}},
		{"a context whose TSG is not known", 2, func(s *sched.Snapshot, i int) {
			s.TSGs[1].Context = i == 1
			s.TSGs[1].Channels = []sched.ChannelView{{Context: u32(7)}}
		}},
		{"an ended process", 2, func(s *sched.Snapshot, i int) { s.TSGs[1].Process.Gone = i == 1 }},
		{"who had the engine", 2, func(s *sched.Snapshot, i int) {
			if i == 1 { // the two change places in the lane
				s.TSGs[0].Score, s.TSGs[1].Score = competing(4000, 0.9, 100, 300), competing(300, 0.1, 100, 4000)
			}
		}},
	} {
		for _, ascii := range []bool{false, true} {
			seen := map[string]int{}
			for i := range tc.states {
				h := start(t, 120, 40, func(now sched.Time) *sched.Snapshot {
					s := oneGPU(now)
					tc.set(s, i)
					return s
				}, func(o *Options) { o.Profile, o.ASCII = colorprofile.ASCII, ascii })
				if was, same := seen[h.plain()]; same {
					t.Errorf("%s, ASCII %t: states %d and %d look the same", tc.name, ascii, was, i)
				}
				seen[h.plain()] = i
			}
		}
	}
}

// TestLaneSignsDiffer: contexts in the lane are told apart without colours.
func TestLaneSignsDiffer(t *testing.T) {
	for _, g := range []*signs{&unicodeSigns, &asciiSigns} {
		seen := map[string]string{}
		for i, f := range append([]string{g.nobody, g.gap, g.mark}, g.fills...) {
			name := fmt.Sprint("sign ", i)
			if was, same := seen[f]; same {
				t.Errorf("ASCII %t: %s and %s are both %q", g.ascii, was, name, f)
			}
			seen[f] = name
		}
	}
}
