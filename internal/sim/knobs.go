// Package sim is a simulated GPU: a sched.Source whose contexts take turns as
// those of an H200 were measured to (driver 580.159.04), and the thing that an
// actuator acts on. Its knobs make the hardware obey, ignore, refuse or only
// seem to answer, so that every lamp can be seen without a GPU.
//
// All its durations are of its own clock, which runs Speed times as fast as
// the wall's; given the same knobs (and so the same seed) and the same
// commands at the same simulated times, it does the same again.
package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"tsgtop/internal/sched"
	"tsgtop/internal/text"
)

// Behaviour is how the simulated hardware takes one sort of command.
type Behaviour string

// The behaviours.
const (
	Obey   Behaviour = "obey"   // the GSP takes it and the hardware does it
	Ignore Behaviour = "ignore" // the GSP takes it, and the hardware does nothing
	Refuse Behaviour = "refuse" // the GSP answers 0x56, not supported
	Stub   Behaviour = "stub"   // the driver answers success and never asks the GSP
)

// Config is what the knobs set. The zero value is not valid: begin with
// Default or ParseKnobs.
type Config struct {
	Timeslice    Behaviour
	Interleave   Behaviour
	Preempt      Behaviour
	GPUs         int
	TSGs         int           // compute TSGs a GPU, one a process
	ShortKernels bool          // kernels of 310 us: they end before the timeslice does
	Idle         float64       // fraction of the time in which the target has no work
	Noise        float64       // relative standard deviation of kernel lengths, slowly varying
	Lose         float64       // fraction of trace records lost
	Hang         time.Duration // how long each command waits before RM answers
	Seed         uint64
	Speed        float64    // simulated seconds in a second of the wall's
	Start        sched.Time // first instant; 0: the wall's now
	LC           bool       // the target is latency-critical: a 1 ms kernel about every 10 ms
}

// Default is what the H200 did: timeslice and preempt obey, interleave is
// accepted and ignored; two processes compete.
func Default() Config {
	return Config{Timeslice: Obey, Interleave: Ignore, Preempt: Obey, GPUs: 1, TSGs: 2, Seed: 1, Speed: 1}
}

// Limits of the knobs: what the simulator can still do in real time.
const (
	maxGPUs = 16
	maxTSGs = 256
)

// knob is one knob: how its value is read.
type knob struct {
	name string
	want string // what its value looks like; empty: it takes none
	set  func(c *Config, value string) error
}

var knobs = []knob{
	{"timeslice", "obey, ignore, refuse or stub", func(c *Config, v string) error { return setBehaviour(&c.Timeslice, v) }},
	{"interleave", "obey, ignore, refuse or stub", func(c *Config, v string) error { return setBehaviour(&c.Interleave, v) }},
	{"preempt", "obey, ignore, refuse or stub", func(c *Config, v string) error { return setBehaviour(&c.Preempt, v) }},
	{"gpus", fmt.Sprintf("1 to %d", maxGPUs), func(c *Config, v string) error { return setInt(&c.GPUs, v, maxGPUs) }},
	{"tsgs", fmt.Sprintf("1 to %d", maxTSGs), func(c *Config, v string) error { return setInt(&c.TSGs, v, maxTSGs) }},
	{"alone", "", func(c *Config, _ string) error { c.TSGs = 1; return nil }},
	{"short-kernels", "", func(c *Config, _ string) error { c.ShortKernels = true; return nil }},
	{"lc", "", func(c *Config, _ string) error { c.LC = true; return nil }},
	{"idle", "a percentage from 0 to 95", func(c *Config, v string) error { return setPercent(&c.Idle, v, 95) }},
	{"noise", "a percentage from 0 to 100", func(c *Config, v string) error { return setPercent(&c.Noise, v, 100) }},
	{"lose", "a percentage from 0 to 100", func(c *Config, v string) error { return setPercent(&c.Lose, v, 100) }},
	{"hang", "a duration such as 5s", setHang},
	{"seed", "a whole number", setSeed},
	{"speed", "a number over 0, such as 20", setSpeed},
}

// ParseKnobs reads a comma-separated list of knobs, such as
// "timeslice=ignore,tsgs=3,noise=20". An empty list is the default. The error
// names the knob, what it wants and, for an unknown one, the nearest there is.
func ParseKnobs(s string) (Config, error) {
	c := Default()
	for _, part := range strings.Split(s, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		name, value, given := strings.Cut(part, "=")
		k := findKnob(name)
		if k == nil {
			return c, fmt.Errorf("simulated GPU: unknown knob %q; did you mean %q? The knobs are %s", name, nearest(name), knobNames())
		}
		if given == (k.want == "") {
			if given {
				return c, fmt.Errorf("simulated GPU: knob %q takes no value", name)
			}
			return c, fmt.Errorf("simulated GPU: knob %q wants %s", name, k.want)
		}
		if err := k.set(&c, value); err != nil {
			return c, fmt.Errorf("simulated GPU: knob %s=%q wants %s", name, value, k.want)
		}
	}
	return c, nil
}

func findKnob(name string) *knob {
	for i := range knobs {
		if knobs[i].name == name {
			return &knobs[i]
		}
	}
	return nil
}

func knobNames() string {
	names := make([]string, len(knobs))
	for i, k := range knobs {
		names[i] = k.name
	}
	return strings.Join(names, ", ")
}

func setBehaviour(b *Behaviour, v string) error {
	switch Behaviour(v) {
	case Obey, Ignore, Refuse, Stub:
		*b = Behaviour(v)
		return nil
	}
	return errValue
}

var errValue = fmt.Errorf("value out of range")

func setInt(n *int, v string, most int) error {
	i, err := strconv.Atoi(v)
	if err != nil || i < 1 || i > most {
		return errValue
	}
	*n = i
	return nil
}

func setPercent(f *float64, v string, most float64) error {
	p, err := strconv.ParseFloat(strings.TrimSuffix(v, "%"), 64)
	if err != nil || !(p >= 0 && p <= most) {
		return errValue
	}
	*f = p / 100
	return nil
}

func setHang(c *Config, v string) error {
	d, err := time.ParseDuration(v)
	if err != nil || d < 0 || d > time.Hour {
		return errValue
	}
	c.Hang = d
	return nil
}

func setSeed(c *Config, v string) (err error) {
	c.Seed, err = strconv.ParseUint(v, 10, 64)
	return err
}

func setSpeed(c *Config, v string) error {
	x, err := strconv.ParseFloat(v, 64)
	if err != nil || !(x > 0 && x <= 1000) {
		return errValue
	}
	c.Speed = x
	return nil
}

// nearest is the knob whose name takes the fewest edits to reach from name.
func nearest(name string) string {
	best, least := "", 1<<30
	for _, k := range knobs {
		if d := text.Distance(name, k.name); d < least {
			best, least = k.name, d
		}
	}
	return best
}
