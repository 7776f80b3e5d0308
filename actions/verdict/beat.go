package verdict

import (
	"fmt"
	"time"

	"tsgtop/internal/beat"
	"tsgtop/internal/sched"
)

// beatBlock is how long the blocks are whose turns are relabelled together.
const beatBlock = 100 * time.Millisecond

// lengths gives the lengths (us) of a window's turns of the target, by blocks.
func (w window) lengths() [][]float64 {
	blocks := make([][]float64, int(w.length()/beatBlock)+1)
	for _, t := range w.target {
		i := int(t.start.Sub(w.from) / beatBlock)
		blocks[i] = append(blocks[i], float64(t.length())/1e3)
	}
	return blocks
}

// beats judges a target that nobody is seen to wait for, because it is mostly alone:
// by the beat in which others' coming ends its turns, see package beat. Its own
// kernels' ends are the other thing that can spoil a beat; where the new one does not
// show, the GSP has to say that it was not that. ok: it could tell.
func (v view) beats(was, is window) (c sched.Changed, ok bool) {
	if v.plan.Old == nil || v.plan.New == nil {
		return c, false
	}
	asked := *v.plan.New
	b := beat.Compare(was.lengths(), is.lengths(), *v.plan.Old, asked)
	if b == nil || !b.Known() || v.company(was, is) != "" {
		return c, false
	}
	evidence := fmt.Sprintf("strength of the beat of %s us %s -> %s, of %s us %s -> %s, %d/%d turns", number(b.Old), short(b.OldBefore.Strength), short(b.OldAfter.Strength),
		number(b.New), short(b.NewBefore.Strength), short(b.NewAfter.Strength), b.OldBefore.Turns, b.OldAfter.Turns)
	changed, seen := b.Changed(v.alpha)
	switch {
	case changed && abrupt(b.Series()):
		share, known := v.cut(v.is)
		if !seen && !(known && share >= 1-enough) {
			return c, false
		}
		if seen {
			c = lamp(sched.LampYes, "its turns, when others came, ended in a beat of %s us, and now do in one of %s us; %d us was asked for", number(b.Old), number(b.Now), asked)
			c.AsAsked = sched.Ptr(b.Now == b.New)
		} else {
			c = lamp(sched.LampYes, "its turns, when others came, ended in a beat of %s us, and do not now; %d us was asked for", number(b.Old), asked)
		}
		c.P = sched.Ptr(b.P)
	case b.Unchanged() && !v.first:
		c = lamp(sched.LampNo, "its turns, when others came, still end in a beat of %s us; %d us was asked for", number(b.Old), asked)
	default:
		return c, false
	}
	c.Metric, c.Evidence = "beat", evidence
	c.Before, c.After = sampleOf(was.target, 0), sampleOf(is.target, 0)
	return c, true
}
