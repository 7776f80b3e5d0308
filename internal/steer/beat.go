package steer

import (
	"fmt"

	"tsgtop/internal/beat"
	"tsgtop/internal/sched"
)

// beats judges by the beat in which a best-effort process leaves for an LC one (see
// package beat): yes where that of the old timeslice was there and has gone, and that
// of the new one is there, or is too short to be seen: then the GSP's counters must
// say that kernels have not become short. No where the old one stays.
func beats(before, after []Block, lim Limits) (v Verdict) {
	v.State = sched.LampUnknown
	left := func(blocks []Block) (out [][]float64) {
		for _, b := range blocks {
			out = append(out, b.Left)
		}
		return out
	}
	c := beat.Compare(left(before), left(after), lim.Old, lim.New)
	if c == nil {
		return v
	}
	if !c.Known() {
		v.Why = fmt.Sprintf("and their ends keep to no beat of %.0f us (strength %.2f, others %.2f)", c.Old, c.OldBefore.Strength, c.OldBefore.Aside)
		return v
	}
	v.Why = fmt.Sprintf("when LC came, its turns ended in the beat of the old timeslice (%.0f us) with strength %.2f before and %.2f since, in that of the new one (%.0f us) with %.2f since",
		c.Old, c.OldBefore.Strength, c.OldAfter.Strength, c.New, c.NewAfter.Strength)
	if changed, seen := c.Changed(alpha); changed {
		v.State, v.Part, v.NeedsCounts = sched.LampYes, c.Gone(), !seen
		v.Why += fmt.Sprintf(" (p %.2g)", c.P)
	} else if c.Unchanged() {
		v.State = sched.LampNo
	}
	return v
}
