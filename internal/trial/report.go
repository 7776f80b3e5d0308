package trial

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"tsgtop/internal/sched"
)

// SchemaVersion is that of reports and share files.
const SchemaVersion = 1

// Machine is what an experiment ran on: nothing personal.
type Machine struct {
	Chip      string `json:"chip"`
	Driver    string `json:"driver"`
	Open      *bool  `json:"open"` // the open kernel module
	GSP       *bool  `json:"gsp"`  // RM runs on the GSP
	Tool      string `json:"tool"` // version of tsgtop
	Simulated bool   `json:"simulated"`
}

// Report is what an experiment says.
type Report struct {
	SchemaVersion int         `json:"schema_version"`
	Time          string      `json:"time"`
	Machine       Machine     `json:"machine"`
	Plan          Plan        `json:"plan"`
	Timeslices    []uint64    `json:"timeslices_us"` // of the targets, before anything was done
	Seconds       float64     `json:"seconds"`
	Arms          []ArmReport `json:"arms"`
	Answers       []Answer    `json:"answers"`
	Untold        []string    `json:"untold"` // what could not be told, and why
	Restored      bool        `json:"restored"`
	Ended         string      `json:"ended,omitempty"` // why before its end
	Runs          []Run       `json:"runs"`
}

// ArmReport is one arm over all its runs.
type ArmReport struct {
	Arm
	Does    string     `json:"does"`
	Runs    int        `json:"runs"`    // that count
	Useless int        `json:"useless"` // that do not
	Stopped string     `json:"stopped,omitempty"`
	Calls   Calls      `json:"calls"`
	Changed sched.Lamp `json:"changed"`
	Effects []Effect   `json:"effects"`
}

// Verdict is how a chip takes a knob.
type Verdict string

// The verdicts.
const (
	Obeyed  Verdict = "obeyed"  // accepted, and the hardware did it
	Ignored Verdict = "ignored" // accepted, and the hardware did nothing
	Refused Verdict = "refused"
	Stub    Verdict = "stub" // success, and the GSP was never asked
	Untold  Verdict = "unknown"
)

// Answer is that to one question.
type Answer struct {
	Knob    string  `json:"knob"` // timeslice, interleave, preempt
	Verdict Verdict `json:"verdict"`
	Where   string  `json:"where"` // by whom it was answered: gsp, driver, both or unknown
	Why     string  `json:"why"`
}

// knob gives what an arm turns, where it turns one thing only.
func (a Arm) knob() string {
	var k []string
	if a.Timeslice > 0 {
		k = append(k, "timeslice")
	}
	if a.Interleave != nil {
		k = append(k, "interleave")
	}
	if a.Preempt > 0 {
		k = append(k, "preempt")
	}
	if len(k) != 1 {
		return ""
	}
	return k[0]
}

// Analyse makes the report of runs.
func Analyse(m Machine, p Plan, timeslices []uint64, runs []Run, restored bool, began sched.Time, took time.Duration) *Report {
	r := &Report{SchemaVersion: SchemaVersion, Time: began.Std().UTC().Format(time.RFC3339), Machine: m, Plan: p, Timeslices: timeslices,
		Seconds: took.Seconds(), Runs: runs, Restored: restored, Untold: []string{}, Answers: []Answer{}}
	metrics := names(runs)
	for _, a := range p.Arms {
		r.Arms = append(r.Arms, r.arm(a, metrics))
	}
	for _, k := range []string{"timeslice", "interleave", "preempt"} {
		if a, ok := r.answer(k); ok {
			r.Answers = append(r.Answers, a)
		}
	}
	r.untold()
	return r
}

type pairKey struct {
	round  int
	target string
}

func (r *Report) arm(a Arm, metrics []string) ArmReport {
	out := ArmReport{Arm: a, Does: a.Does()}
	base := map[pairKey]Values{}
	for i := range r.Runs {
		if x := &r.Runs[i]; x.Arm == r.Plan.Arms[0].Name && x.Useless == "" {
			base[pairKey{x.Round, x.Target}] = x.Values
		}
	}
	for i := range r.Runs {
		x := &r.Runs[i]
		if x.Arm != a.Name {
			continue
		}
		out.Calls.Add(x.Calls)
		if x.Useless == "" {
			out.Runs++
		} else {
			out.Useless++
		}
		if x.Stopped != "" {
			out.Stopped = x.Stopped
		}
	}
	for _, m := range metrics {
		var b, v []float64
		for i := range r.Runs {
			x := &r.Runs[i]
			if x.Arm != a.Name || x.Useless != "" {
				continue
			}
			was, ok1 := base[pairKey{x.Round, x.Target}][m]
			is, ok2 := x.Values[m]
			if ok1 && ok2 {
				b, v = append(b, was), append(v, is)
			}
		}
		out.Effects = append(out.Effects, effectOf(m, b, v))
	}
	out.Changed = r.changed(&out)
	return out
}

// Effect finds one of an arm's.
func (a *ArmReport) Effect(metric string) Effect {
	i := slices.IndexFunc(a.Effects, func(e Effect) bool { return e.Metric == metric })
	if i < 0 {
		return Effect{Metric: metric, Why: "it was not measured"}
	}
	return a.Effects[i]
}

// answer is how the chip takes a knob, over all arms that turn it.
func (r *Report) answer(knob string) (Answer, bool) {
	var arms []*ArmReport
	for i := range r.Arms {
		if r.Arms[i].knob() == knob {
			arms = append(arms, &r.Arms[i])
		}
	}
	if len(arms) == 0 {
		return Answer{}, false
	}
	var calls Calls
	var why []string
	states := map[sched.LampState]int{}
	for _, a := range arms {
		calls.Add(a.Calls)
		why = append(why, a.Name+": "+a.Changed.Why)
		// Low is what a TSG has that nobody has touched: that it changes nothing
		// says nothing.
		if knob != "interleave" || *a.Interleave > 0 || len(arms) == 1 {
			states[a.Changed.State]++
		}
	}
	ans := Answer{Knob: knob, Verdict: Untold, Where: whereOf(calls), Why: strings.Join(why, "; ")}
	switch {
	case calls.Sent == 0:
		ans.Why = "nothing was sent"
	case calls.Refused > 0 && calls.Accepted+calls.Stub == 0:
		ans.Verdict, ans.Why = Refused, fmt.Sprintf("%d of %d calls: %s", calls.Refused, calls.Sent, statuses(calls))
	case calls.Stub > 0 && calls.Accepted+calls.Refused == 0:
		ans.Verdict, ans.Why = Stub, fmt.Sprintf("%d of %d calls ended with success and no RPC: the GSP was never asked", calls.Stub, calls.Sent)
	case states[sched.LampYes] > 0 && states[sched.LampNo] == 0:
		ans.Verdict = Obeyed
	case states[sched.LampNo] > 0 && states[sched.LampYes] == 0:
		ans.Verdict = Ignored
	case states[sched.LampYes] > 0:
		ans.Why = "some arms changed the hardware and some did not: " + ans.Why
	}
	if knob == "preempt" && ans.Verdict == Obeyed {
		ans.Why += r.cost(arms)
	}
	return ans, true
}

// cost is what preempting costs.
func (r *Report) cost(arms []*ArmReport) (s string) {
	for _, a := range arms {
		s += fmt.Sprintf("; its wait p95 %s us, the others' %s us, switch tax %s", a.Effect("wait_p95_us"), a.Effect("others_wait_p95_us"), a.Effect("switch_tax"))
		if a.Calls.CallUS != nil {
			s += fmt.Sprintf(", %.0f us a call", *a.Calls.CallUS)
		}
	}
	return s
}

func whereOf(c Calls) string {
	gsp, driver := c.Where["gsp"], c.Where["driver"]
	switch {
	case gsp > 0 && driver > 0:
		return "both"
	case gsp > 0:
		return "gsp"
	case driver > 0:
		return "driver"
	}
	return "unknown"
}

func statuses(c Calls) string {
	var out []string
	for s, n := range c.ByStatus {
		out = append(out, fmt.Sprintf("%s (%d)", s, n))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// untold lists what could not be told.
func (r *Report) untold() {
	for i := range r.Arms {
		a := &r.Arms[i]
		if !a.Idle() && a.Changed.State == sched.LampUnknown {
			r.Untold = append(r.Untold, fmt.Sprintf("whether the hardware did it in arm %s: %s", a.Name, a.Changed.Why))
		}
		if a.Stopped != "" {
			r.Untold = append(r.Untold, fmt.Sprintf("arm %s was stopped and not run again: %s", a.Name, a.Stopped))
		}
	}
	why := map[string]int{}
	for i := range r.Runs {
		if u := r.Runs[i].Useless; u != "" {
			why[u]++
		}
	}
	for u, n := range why {
		r.Untold = append(r.Untold, fmt.Sprintf("%d of %d runs do not count: %s", n, len(r.Runs), u))
	}
	slices.Sort(r.Untold)
	probe := false
	for i := range r.Runs {
		for m := range r.Runs[i].Values {
			probe = probe || isProbe(m)
		}
	}
	if !probe {
		r.Untold = append(r.Untold, "the workload's own latency: the trace cannot see when work was submitted, and no probe was given")
	}
}
