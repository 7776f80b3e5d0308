package verdict

import (
	"fmt"
	"math"
	"time"

	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
)

func lamp(state sched.LampState, format string, args ...any) sched.Changed {
	return sched.Changed{Lamp: sched.Lamp{State: state, Why: fmt.Sprintf(format, args...)}}
}

func unknown(why string) sched.Changed { return lamp(sched.LampUnknown, "%s", why) }

func waiting(why string) sched.Changed { return lamp(sched.LampWaiting, "%s", why) }

// isGraphics tells whether the target is on a graphics/compute engine; without
// a known engine, runlist 0 is taken to be one.
func isGraphics(t sched.Target) bool {
	if t.Engine == nil {
		return t.Runlist <= 0
	}
	return rm.IsGraphicsEngine(*t.Engine)
}

// sampleOf summarises turns: residency in us.
func sampleOf(turns []turn, blocks int) *sched.Sample {
	s := &sched.Sample{Turns: len(turns), Blocks: blocks}
	if len(turns) == 0 {
		return s
	}
	x := make([]float64, len(turns))
	for i, t := range turns {
		x[i] = float64(t.length()) / 1e3
	}
	s.Mean, s.P50 = round(mean(x), 3), round(median(x), 3)
	return s
}

// put writes a comparison into a verdict, with one line of its numbers.
func (c *comparison) put(v *sched.Changed, metric, what, unit string, before, after *sched.Sample) {
	v.Metric, v.Before, v.After = metric, before, after
	if c == nil {
		if before != nil && after != nil {
			v.Evidence = fmt.Sprintf("%d/%d turns: too few to compare", before.Turns, after.Turns)
		}
		return
	}
	v.Ratio, v.CI = sched.Ptr(round(c.ratio(), 4)), &[2]float64{round(math.Exp(c.low), 4), round(math.Exp(c.high), 4)}
	v.Level = level
	if c.p < 1 {
		v.P = sched.Ptr(c.p)
	}
	v.Evidence = fmt.Sprintf("%s %s -> %s%s (x%s, 99.9%% CI %s-%s), %d/%d turns in %d/%d blocks", what, number(before.P50), number(after.P50), unit,
		short(c.ratio()), short(math.Exp(c.low)), short(math.Exp(c.high)), before.Turns, after.Turns, before.Blocks, after.Blocks)
}

func number(x float64) string {
	switch a := math.Abs(x); {
	case a < 1:
		return fmt.Sprintf("%.3f", x)
	case a < 100:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

func short(x float64) string {
	if x < 0.1 {
		return fmt.Sprintf("%.3f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

func round(x float64, digits int) float64 {
	p := math.Pow10(digits)
	return math.Round(x*p) / p
}

func us(d time.Duration) string { return fmt.Sprintf("%.0f us", float64(d)/1e3) }

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
