package trial

import (
	"maps"
	"slices"
	"strings"

	"tsgtop/internal/sched"
	"tsgtop/internal/steer"
)

// Metrics are what a run is measured by, from the trace. Of the target:
// residency, turns, share, and waits after turns that its timeslice or a preempt
// ended; of the GPU: the switch tax; of all others: waits and share.
var Metrics = []string{"residency_p50_us", "residency_mean_us", "turns_per_s", "share", "wait_p50_us", "wait_p95_us", "wait_p99_us", "switch_tax", "others_share", "others_residency_p50_us", "others_wait_p95_us"}

// probePrefix begins the names of what a probe gave: probe:NAME:p50.
const probePrefix = "probe:"

// Values are a run's numbers by metric. What could not be measured is not there.
type Values map[string]float64

// Measure takes the numbers of a run.
func Measure(s *steer.Span, target steer.Proc, readings []steer.Reading) Values {
	v := Values{}
	put := func(name string, x *float64) {
		if x != nil {
			v[name] = *x
		}
	}
	if u := s.Uses[target]; u != nil && u.Clean > 0 {
		put("residency_p50_us", u.Residency.Quantile(0.5))
		put("residency_mean_us", u.Residency.Mean())
		put("turns_per_s", s.PerSecond(u.Turns))
		put("share", s.Share(target))
		put("wait_p50_us", u.Waits.Quantile(0.5))
		put("wait_p95_us", u.Waits.Quantile(0.95))
		put("wait_p99_us", u.Waits.Quantile(0.99))
	}
	put("switch_tax", s.Tax())
	var others, stays steer.Samples
	share, any := 0.0, false
	for p, u := range s.Uses {
		if p == target {
			continue
		}
		any = true
		others.Kept = append(others.Kept, u.Waits.Kept...)
		stays.Kept = append(stays.Kept, u.Residency.Kept...)
		if x := s.Share(p); x != nil {
			share += *x
		}
	}
	if any && s.Competed > 0 {
		put("others_share", &share)
		put("others_residency_p50_us", stays.Quantile(0.5))
		put("others_wait_p95_us", others.Quantile(0.95))
	}
	maps.Copy(v, probeValues(readings))
	return v
}

// probeValues sums up what a probe printed in a run.
func probeValues(readings []steer.Reading) Values {
	by := map[string][]steer.Reading{}
	for _, r := range readings {
		by[r.Name] = append(by[r.Name], r)
	}
	v := Values{}
	for name, rs := range by {
		d := steer.DistOfReadings(rs)
		v[probePrefix+name+":p50"], v[probePrefix+name+":p99"], v[probePrefix+name+":mean"] = *d.P50, *d.P99, *d.Mean
	}
	return v
}

// names are the metrics that any of the runs has, the trace's first.
func names(runs []Run) []string {
	all := map[string]bool{}
	for i := range runs {
		for n := range runs[i].Values {
			all[n] = true
		}
	}
	var out []string
	for _, m := range Metrics {
		if all[m] {
			out = append(out, m)
			delete(all, m)
		}
	}
	return append(out, slices.Sorted(maps.Keys(all))...)
}

// isProbe tells whether a metric is a probe's.
func isProbe(m string) bool { return strings.HasPrefix(m, probePrefix) }

// Calls counts what was sent in a run, and what came back.
type Calls struct {
	Sent     int            `json:"sent"`
	Accepted int            `json:"accepted"` // status 0, and the GSP was asked, or RM runs in the driver
	Refused  int            `json:"refused"`
	Stub     int            `json:"stub"`    // status 0, and the GSP was never asked
	Unknown  int            `json:"unknown"` // whether the GSP was asked, or what came of it, is not known
	Where    map[string]int `json:"where"`   // gsp, driver, unknown
	ByStatus map[string]int `json:"by_status"`
	CallUS   *float64       `json:"call_us,omitempty"` // mean duration
}

// Add adds another run's.
func (c *Calls) Add(o Calls) {
	if c.Where == nil {
		c.Where, c.ByStatus = map[string]int{}, map[string]int{}
	}
	if o.CallUS != nil {
		mean := *o.CallUS
		if c.CallUS != nil && c.Sent+o.Sent > 0 {
			mean = (*c.CallUS*float64(c.Sent) + mean*float64(o.Sent)) / float64(c.Sent+o.Sent)
		}
		c.CallUS = sched.Ptr(mean)
	}
	c.Sent, c.Accepted, c.Refused = c.Sent+o.Sent, c.Accepted+o.Accepted, c.Refused+o.Refused
	c.Stub, c.Unknown = c.Stub+o.Stub, c.Unknown+o.Unknown
	for k, n := range o.Where {
		c.Where[k] += n
	}
	for k, n := range o.ByStatus {
		c.ByStatus[k] += n
	}
}

// Run is one run of one arm, on one target.
type Run struct {
	Round    int     `json:"round"`
	Arm      string  `json:"arm"`
	Target   string  `json:"target"`
	Seconds  float64 `json:"seconds"` // of trace
	Torn     float64 `json:"torn"`    // part of the turns left out, because records are missing
	Forced   float64 `json:"forced"`  // part of the target's turns that its timeslice or a preempt ended
	Values   Values  `json:"values"`
	Calls    Calls   `json:"calls"`
	Stopped  string  `json:"stopped,omitempty"` // which bound it broke
	Useless  string  `json:"useless,omitempty"` // why its numbers do not count
	Restored bool    `json:"restored"`
}
