package sched

import "tsgtop/internal/rm"

// SwitchCounters is one reading of the counters that the GSP keeps of a TSG's
// context switches (NV2080_CTRL_CMD_GR_GET_CTXSW_STATS). They count from the
// TSG's beginning, or from when somebody reset them, and wrap at 32 bits. Why
// or a Status other than 0: this reading failed, and the counts say nothing.
type SwitchCounters struct {
	Time    Time   `json:"t"`
	TSG     Object `json:"tsg"`
	Status  uint32 `json:"st,omitempty"`
	Why     string `json:"why,omitempty"` // why RM could not be asked
	Save    uint32 `json:"save"`
	Restore uint32 `json:"restore"`
	WFI     uint32 `json:"wfi"`            // saves with the engine idle: the kernel had ended
	CTA     uint32 `json:"cta,omitempty"`  // saves between thread blocks
	CILP    uint32 `json:"cilp"`           // saves between instructions, in the middle of a kernel
	GFXP    uint32 `json:"gfxp,omitempty"` // saves in the middle of a draw
}

// When is when the counters were read.
func (e SwitchCounters) When() Time { return e.Time }

// Switches are a TSG's context switches over a span, as the GSP counts them.
type Switches struct {
	Forced    uint64  // saves in the middle of the work: between thread blocks, instructions or inside a draw (CTA, CILP, GFXP)
	Voluntary uint64  // saves with the engine idle: the kernel had ended (WFI)
	SpanS     float64 // seconds between the two readings that were subtracted
}

// Readings are kept so far apart at least, and so many: enough for the longest
// window at one a second.
const (
	readingApart = Time(500e6)
	readingsKept = 24
)

// readingStale is when a newest reading no longer stands for now.
const readingStale = 3 * second

// switchSpan is how far apart the two readings of a window may be: the window
// and what polling once a second cannot place better. 0: any.
var switchSpan = [NumWindows]Time{Window1s: second + second/2, Window10s: 11 * second}

// Sentences for switches that are not known.
const (
	whyCopySwitches  = "copy engine: the GSP keeps no switch counters of it"
	whyOtherSwitches = "not the graphics engine: the GSP keeps no switch counters of it"
	whyNoTSG         = "its TSG is not known"
	whyNeverRead     = "not read: the GSP's switch counters are read while somebody looks at the score"
	whyNotRecorded   = "the recording holds no switch counters of it"
	whyOneReading    = "read once so far: a count needs two readings"
	whyNotReadNow    = "not read any more: the GSP's switch counters are read while somebody looks at the score"
	whySeldom        = "read too seldom for this window"
	whyCountersReset = "the GSP's switch counters went back: somebody reset them; counting anew"
)

// reading is what was counted up to an instant, since the first reading.
type reading struct {
	at                Time
	forced, voluntary uint64
}

// switchCounts are the readings of one TSG's counters.
type switchCounts struct {
	newest SwitchCounters // the last good one
	now    reading        // it, summed up
	first  Time           // 0: none was good yet
	kept   [readingsKept]reading
	n      int    // of kept, in a ring
	failed string // why the last try gave none; empty: it did
	reset  bool   // they went back before first
}

// applySwitches takes one reading of a TSG's counters.
func (s *State) applySwitches(e *SwitchCounters) {
	n := s.objects[e.TSG]
	if n == nil || n.tsg == nil || n.tsg.ended != 0 || e.Time <= 0 || e.Time > maxTime || e.Time < n.tsg.created {
		return
	}
	t := n.tsg
	if t.switches == nil {
		t.switches = &switchCounts{}
	}
	t.switches.add(e)
}

func (c *switchCounts) add(e *SwitchCounters) {
	switch {
	case e.Why != "":
		c.failed = clip(e.Why)
		return
	case e.Status != 0:
		c.failed = "RM refused to read the GSP's switch counters: " + rm.StatusName(e.Status)
		return
	case c.first != 0 && e.Time <= c.now.at:
		return // from before a newer one
	}
	c.failed = ""
	grown, ok := e.since(&c.newest)
	if c.first == 0 || !ok {
		*c = switchCounts{newest: *e, now: reading{at: e.Time}, first: e.Time, reset: c.first != 0}
		c.keep()
		return
	}
	c.newest = *e
	c.now = reading{e.Time, c.now.forced + grown.Forced, c.now.voluntary + grown.Voluntary}
	if c.now.at-c.kept[(c.n-1)%readingsKept].at >= readingApart {
		c.keep()
	}
}

func (c *switchCounts) keep() {
	c.kept[c.n%readingsKept] = c.now
	c.n++
}

// since gives how much the counters, which wrap at 32 bits, have grown since
// another reading; ok is false where one went back, as a reset makes them.
func (e *SwitchCounters) since(o *SwitchCounters) (s Switches, ok bool) {
	for _, d := range [...]uint32{e.Save - o.Save, e.Restore - o.Restore, e.WFI - o.WFI, e.CTA - o.CTA, e.CILP - o.CILP, e.GFXP - o.GFXP} {
		if d >= 1<<31 {
			return s, false
		}
	}
	s.Forced = uint64(e.CTA-o.CTA) + uint64(e.CILP-o.CILP) + uint64(e.GFXP-o.GFXP)
	s.Voluntary = uint64(e.WFI - o.WFI)
	return s, true
}

// over gives the switches of a window, or why there are none to give.
func (c *switchCounts) over(w Window, now Time) (s Switches, why string) {
	switch {
	case c.failed != "":
		return s, c.failed
	case w != WindowAll && now-c.now.at > readingStale:
		return s, whyNotReadNow
	}
	// The oldest reading that is not older than the window.
	from := reading{at: c.first}
	if limit := switchSpan[w]; limit > 0 {
		from = c.now
		for i := max(0, c.n-readingsKept); i < c.n; i++ {
			if k := c.kept[i%readingsKept]; c.now.at-k.at <= limit {
				from = k
				break
			}
		}
	}
	switch {
	case from.at < c.now.at:
	case c.first < c.now.at:
		return s, whySeldom
	case c.reset:
		return s, whyCountersReset
	default:
		return s, whyOneReading
	}
	return Switches{Forced: c.now.forced - from.forced, Voluntary: c.now.voluntary - from.voluntary, SpanS: seconds64(c.now.at - from.at)}, ""
}

// switches fills in what the GSP counts, and why there is nothing.
func (b *rowsBuilder) switches(v *TSGView, r *row) {
	why := b.s.noSwitches(r)
	for w := range NumWindows {
		sc := &v.Score[w]
		if sc.SwitchesWhy = why; why != "" {
			continue
		}
		var s Switches
		if s, sc.SwitchesWhy = r.tsg.switches.over(w, b.s.now); sc.SwitchesWhy == "" {
			sc.Switches = b.counted(s)
		}
	}
}

// noSwitches says why a row has no counted switches in any window; empty where
// its counters were read.
func (s *State) noSwitches(r *row) string {
	t := r.tsg
	if t == nil {
		return whyNoTSG
	}
	if yes, known := s.graphics(t); known && !yes {
		if t.engType.ok && rm.EngineName(t.engType.v)[0] != 'c' {
			return whyOtherSwitches
		}
		return whyCopySwitches
	}
	switch {
	case t.switches != nil:
		return ""
	case s.source.Label == "RECORDING" || s.source.Label == "DEMO":
		return whyNotRecorded
	}
	return whyNeverRead
}
