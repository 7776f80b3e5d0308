package ui

import (
	"time"

	"charm.land/bubbles/v2/textinput"

	"tsgtop/internal/sched"
)

// Common is what every screen and panel shares. Only Model.Update changes it.
type Common struct {
	opts          *Options
	width, height int
	style         *styles
	signs         *signs

	snap   *sched.Snapshot // what the numbers are drawn from: renewed every numbersEvery
	live   *sched.Snapshot // what lamps, lanes and counters are drawn from: renewed every picturesEach, or each frame
	window sched.Window
	paused bool
	onGPU  int // only this one is shown; sched.Unknown: all

	filter  filter
	input   textinput.Model // of the filter, while it is typed
	typing  bool
	toast   string // one line for the operator, until the next key or some seconds later
	toastIn role
	toastAt int // frames left

	speed     float64 // of a replay, as last set
	rewound   int     // frames left in which a replay that went back may still be on its way to where it was sent
	recording string  // path of the running recording; empty: none
	released  bool

	frames int // counted, for what is done less often than every frame
}

// say shows one line to the operator for some seconds.
func (c *Common) say(r role, s string) {
	c.toast, c.toastIn, c.toastAt = s, r, 8*c.fps()
}

func (c *Common) fps() int {
	if c.opts.FPS <= 0 {
		return 10
	}
	return min(c.opts.FPS, 60)
}

func (c *Common) frame() time.Duration { return time.Second / time.Duration(c.fps()) }

// every tells whether something that is done so often is due in this frame.
func (c *Common) every(d time.Duration) bool {
	n := max(int(d/c.frame()), 1)
	return c.frames%n == 0
}

// shown tells whether a GPU is among those that are shown.
func (c *Common) shown(gpu int) bool {
	return c.onGPU == sched.Unknown || c.onGPU == gpu
}

func (c *Common) gpu(index int) *sched.GPUView {
	if c.snap == nil {
		return nil
	}
	for i := range c.snap.GPUs {
		if c.snap.GPUs[i].Index == index {
			return &c.snap.GPUs[i]
		}
	}
	return nil
}

func (c *Common) tsg(gen uint64) *sched.TSGView {
	if c.snap == nil || gen == 0 {
		return nil
	}
	for i := range c.snap.TSGs {
		if c.snap.TSGs[i].Gen == gen {
			return &c.snap.TSGs[i]
		}
	}
	return nil
}

// armed tells whether commands can be sent now.
func (c *Common) armed() bool {
	return c.opts.Controller != nil && c.opts.Controller.Why() == "" && c.opts.Controller.Armed()
}

// whyReadOnly says why acting keys do nothing now; empty when they do.
func (c *Common) whyReadOnly() string {
	ctl := c.opts.Controller
	switch {
	case ctl == nil && c.opts.ReadOnly != "":
		return "read-only: " + c.opts.ReadOnly
	case ctl == nil:
		return "read-only: there is nothing here to act with"
	case ctl.Why() != "":
		return "read-only: " + ctl.Why()
	case !ctl.Armed():
		return "read-only: C arms control"
	default:
		return ""
	}
}

// can tells whether what a key needs is there, and if not, why.
func (c *Common) can(n need) (string, bool) {
	switch n {
	case needControl:
		if why := c.whyReadOnly(); why != "" {
			return why, false
		}
	case needRoles:
		if why := c.whyReadOnly(); why != "" {
			return why, false
		}
		if c.opts.Roles == nil {
			return "nothing keeps roles here", false
		}
	case needController:
		if ctl := c.opts.Controller; ctl == nil || ctl.Why() != "" {
			return c.whyReadOnly(), false
		}
	case needPlayer:
		if c.opts.Player == nil {
			return "only a recording can be played slower or faster", false
		}
	case needMarks:
		if _, ok := c.opts.Player.(Marker); !ok {
			return "only a recording has marks to go to", false
		}
	case needReleaser:
		if c.opts.Releaser == nil {
			return "this source holds no devices that it could let go of", false
		}
	case needRecorder:
		if c.opts.Recorder == nil {
			return "this source cannot be recorded", false
		}
	case needSeveralGPUs:
		if c.snap == nil || len(c.snap.GPUs) < 2 {
			return "there is one GPU", false
		}
	}
	return "", true
}
