package ui

import (
	"fmt"
	"strconv"
	"time"

	"tsgtop/internal/sched"
)

// micros is a duration given in microseconds, short: whole microseconds up to
// 99999, so that it can be compared with a timeslice.
func (c *Common) micros(v float64) string {
	n, unit := c.scaled(v)
	return n + unit
}

func (c *Common) scaled(v float64) (string, string) {
	switch {
	case v < 99999.5:
		return strconv.FormatFloat(v, 'f', 0, 64), c.signs.micro + "s"
	case v < 9_999_500:
		return strconv.FormatFloat(v/1e3, 'f', 0, 64), "ms"
	default:
		return strconv.FormatFloat(v/1e6, 'f', 1, 64), "s"
	}
}

// brief is a duration given in microseconds, in at most 6 cells: for waits,
// where the size matters and not the last microsecond.
func (c *Common) brief(v float64) string {
	switch {
	case v < 999.5:
		return strconv.FormatFloat(v, 'f', 0, 64) + c.signs.micro + "s"
	case v < 99_950:
		return strconv.FormatFloat(v/1e3, 'f', 1, 64) + "ms"
	case v < 999_500:
		return strconv.FormatFloat(v/1e3, 'f', 0, 64) + "ms"
	case v < 99_950_000:
		return strconv.FormatFloat(v/1e6, 'f', 1, 64) + "s"
	default:
		return strconv.FormatFloat(v/1e6, 'f', 0, 64) + "s"
	}
}

// pair is two durations in microseconds in one unit, "2197/2202µs".
func (c *Common) pair(a, b float64) string {
	_, unit := c.scaled(max(a, b))
	num := func(v float64) string {
		switch unit {
		case "ms":
			return strconv.FormatFloat(v/1e3, 'f', 1, 64)
		case "s":
			return strconv.FormatFloat(v/1e6, 'f', 2, 64)
		default:
			return strconv.FormatFloat(v, 'f', 0, 64)
		}
	}
	return num(a) + "/" + num(b) + unit
}

// span is a duration as an operator says it: 10 ms, 2.5 s, 1m30s.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + span(-d)
	case d < time.Millisecond:
		return strconv.FormatInt(d.Microseconds(), 10) + " us"
	case d < time.Second:
		return strconv.FormatFloat(float64(d)/1e6, 'f', -1, 64) + " ms"
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " s"
	default:
		return d.Round(time.Second).String()
	}
}

// percent of a fraction, "48.5%"; 100% without its decimal, to keep its width.
func percent(f float64) string {
	if f >= 0.9995 {
		return strconv.FormatFloat(f*100, 'f', 0, 64) + "%"
	}
	return strconv.FormatFloat(f*100, 'f', 1, 64) + "%"
}

// rate is a number a second in at most 7 cells.
func rate(v float64) string {
	switch {
	case v < 9.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case v < 99_999.5:
		return strconv.FormatFloat(v, 'f', 0, 64)
	default:
		return strconv.FormatFloat(v/1e3, 'f', 0, 64) + "k"
	}
}

// bytesText is a size in at most 6 cells: 980M, 21.4G.
func bytesText(n uint64) string {
	switch f := float64(n); {
	case f < 1<<20:
		return strconv.FormatFloat(f/(1<<10), 'f', 0, 64) + "K"
	case f < 1000*(1<<20):
		return strconv.FormatFloat(f/(1<<20), 'f', 0, 64) + "M"
	case f < 99.95*(1<<30):
		return strconv.FormatFloat(f/(1<<30), 'f', 1, 64) + "G"
	default:
		return strconv.FormatFloat(f/(1<<30), 'f', 0, 64) + "G"
	}
}

// count is a counter in at most 6 cells.
func count(n uint64) string {
	switch {
	case n < 100_000:
		return strconv.FormatUint(n, 10)
	case n < 10_000_000:
		return strconv.FormatUint(n/1000, 10) + "k"
	default:
		return strconv.FormatUint(n/1_000_000, 10) + "M"
	}
}

func clock(t sched.Time) string {
	if t == 0 {
		return "--:--:--"
	}
	return t.Std().Format("15:04:05")
}

func clockMS(t sched.Time) string {
	if t == 0 {
		return "--:--:--.---"
	}
	return t.Std().Format("15:04:05.000")
}

// id is a number of the hardware, or ? where it is not known.
func idText(n int) string {
	if n == sched.Unknown {
		return "?"
	}
	return strconv.Itoa(n)
}

func levelName(level uint64) string {
	switch level {
	case 0:
		return "low"
	case 1:
		return "medium"
	case 2:
		return "high"
	default:
		return strconv.FormatUint(level, 10)
	}
}

// value is what a command sets: a timeslice or an interleave level.
func (c *Common) value(op sched.Op, v *uint64) string {
	switch {
	case v == nil:
		return "?"
	case op == sched.OpInterleave:
		return levelName(*v)
	default:
		return fmt.Sprintf("%d%ss", *v, c.signs.micro)
	}
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + one + "s"
}
