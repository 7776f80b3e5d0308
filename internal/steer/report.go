package steer

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"tsgtop/internal/sched"
	"tsgtop/internal/text"
)

// SchemaVersion is that of the report's JSON.
const SchemaVersion = 1

// CannotSee is what a trace can never say about a latency-critical process.
const CannotSee = "the trace cannot see when its work was submitted; its latency is only known where --probe gives it"

// Dist sums up a quantity.
type Dist struct {
	N    int      `json:"n"`
	Min  *float64 `json:"min"`
	P50  *float64 `json:"p50"`
	P90  *float64 `json:"p90"`
	P95  *float64 `json:"p95"`
	P99  *float64 `json:"p99"`
	Mean *float64 `json:"mean"`
}

// DistOf sums up samples; nil where there are none.
func DistOf(s *Samples) *Dist {
	if s.N == 0 {
		return nil
	}
	return &Dist{N: s.N, Min: s.Quantile(0), P50: s.Quantile(0.5), P90: s.Quantile(0.9), P95: s.Quantile(0.95), P99: s.Quantile(0.99), Mean: s.Mean()}
}

// ProcReport is one process in one phase. Nil is not known.
type ProcReport struct {
	PID       int      `json:"pid"`
	Exe       string   `json:"exe"`
	User      string   `json:"user,omitempty"`
	Role      Role     `json:"role"`
	TurnsPerS *float64 `json:"turns_per_s"`
	Share     *float64 `json:"share"`
	Residency *Dist    `json:"residency_us"`
	Cut       int      `json:"turns_cut"`         // that its timeslice or a preempt ended while another waited
	CutWhy    string   `json:"cut_why,omitempty"` // why some may be missing
	Wait      *Dist    `json:"wait_us"`           // after such turns: the only waits that the trace proves
	LeftFor   *Dist    `json:"left_for_lc_us"`    // BE: its turns right after which LC came on
}

// Phase is what the trace says of one GPU in one phase.
type Phase struct {
	From    sched.Time   `json:"from_ns"` // since the epoch
	To      sched.Time   `json:"to_ns"`
	Seconds float64      `json:"seconds"` // of trace
	Tax     *float64     `json:"switch_tax"`
	Torn    float64      `json:"torn"` // part of the turns left out, because records are missing
	Procs   []ProcReport `json:"processes"`
	Why     string       `json:"why,omitempty"` // why numbers are missing
}

// PhaseOf reports a span for the members of an assignment.
func PhaseOf(s *Span, members []Member) Phase {
	p := Phase{From: s.From, To: s.To, Seconds: s.Read.Seconds(), Tax: s.Tax(), Torn: s.TornShare()}
	if s.Competed == 0 {
		p.Why = "nothing competed: a context alone on its engine is never switched, and leaves no trace"
	}
	for _, m := range members {
		r := ProcReport{PID: m.Proc.PID, Exe: m.Process.Exe, User: m.Process.User, Role: m.Role}
		if u := s.Uses[m.Proc]; u != nil {
			r.TurnsPerS, r.Share = s.PerSecond(u.Turns), s.Share(m.Proc)
			r.Residency, r.Wait, r.LeftFor, r.Cut = DistOf(&u.Residency), DistOf(&u.Waits), DistOf(&u.LeftFor), u.Forced
			if u.Unknown > 0 {
				r.CutWhy = fmt.Sprintf("of %d turns it is not known what ended them", u.Unknown)
			}
		}
		p.Procs = append(p.Procs, r)
	}
	return p
}

// Totals counts the calls of all roles.
type Totals struct {
	TSGs     int            `json:"tsgs"`  // that were given a timeslice
	Calls    int            `json:"calls"` // sent
	Again    int            `json:"again"` // of them, because the value had been set otherwise meanwhile
	Failed   int            `json:"failed"`
	Where    map[string]int `json:"where"` // gsp, driver, unknown
	ByStatus map[string]int `json:"by_status"`
}

// Report is what protect says at its end.
type Report struct {
	SchemaVersion int               `json:"schema_version"`
	Time          string            `json:"time"`
	Source        string            `json:"source"`
	Target        string            `json:"target"`
	GPU           int               `json:"gpu"`
	BEus          uint64            `json:"be_us"` // 0: none was given, and none was asked for
	LCus          *uint64           `json:"lc_us"` // null: left as it was
	Before        Phase             `json:"before"`
	During        Phase             `json:"during"`
	Ran           sched.Lamp        `json:"ran"`
	Accepted      sched.Lamp        `json:"accepted"`
	Changed       sched.Lamp        `json:"changed"`
	Helped        sched.Lamp        `json:"helped"` // by LC's own latency, from the probe
	Totals        Totals            `json:"totals"`
	Starving      []string          `json:"starving,omitempty"`
	Notes         []string          `json:"notes,omitempty"`
	Probe         []ProbeComparison `json:"probe,omitempty"`
	Restored      []string          `json:"restored"`
	Command       *CommandEnd       `json:"command,omitempty"`
}

// CommandEnd is how the command that was run ended.
type CommandEnd struct {
	Args []string `json:"args"`
	Code int      `json:"code"` // -1: a signal, or it could not be started
	Why  string   `json:"why,omitempty"`
}

// ProbeComparison is one metric of the probe's, before and during.
type ProbeComparison struct {
	Metric string `json:"metric"`
	Before *Dist  `json:"before"`
	During *Dist  `json:"during"`
}

// Write prints the report for people.
func (r *Report) Write(w io.Writer) {
	lc := ""
	if r.LCus != nil {
		lc = fmt.Sprintf(", LC at %d us", *r.LCus)
	}
	be := fmt.Sprintf("BE at %d us", r.BEus)
	if r.BEus == 0 {
		be = "BE as they were"
	}
	fmt.Fprintf(w, "protect %s on GPU%d: %s%s\n", text.Clean(r.Target), r.GPU, be, lc)
	r.writePhases(w)
	for _, l := range []struct {
		name string
		lamp sched.Lamp
	}{{"RAN", r.Ran}, {"ACCEPTED", r.Accepted}, {"CHANGED", r.Changed}, {"HELPED", r.Helped}} {
		fmt.Fprintf(w, "%-9s %-8s%s\n", l.name, l.lamp.State, text.Clean(l.lamp.Why))
	}
	for _, p := range r.Probe {
		fmt.Fprintf(w, "probe %s: before %s; during %s\n", text.Clean(p.Metric), p.Before.words(), p.During.words())
	}
	t := r.Totals
	fmt.Fprintf(w, "%d TSGs, %d calls, %d of them because the value had been set otherwise meanwhile, %d failed\n", t.TSGs, t.Calls, t.Again, t.Failed)
	for _, s := range slices.Concat(r.Starving, r.Notes) {
		fmt.Fprintln(w, text.Clean(s))
	}
	if r.Command != nil {
		fmt.Fprintln(w, text.Clean(fmt.Sprintf("command %s: exit %d %s", strings.Join(r.Command.Args, " "), r.Command.Code, r.Command.Why)))
	}
	for _, s := range r.Restored {
		fmt.Fprintln(w, text.Clean(s))
	}
}

func (r *Report) writePhases(w io.Writer) {
	for _, side := range []struct {
		name string
		p    *Phase
	}{{"before", &r.Before}, {"during", &r.During}} {
		fmt.Fprintf(w, "%s, %.1f s of trace: switch tax %s", side.name, side.p.Seconds, percent(side.p.Tax))
		if side.p.Torn > 0 {
			fmt.Fprintf(w, ", %.1f%% of the turns touch a gap", 100*side.p.Torn)
		}
		if side.p.Why != "" {
			fmt.Fprintf(w, "; %s", side.p.Why)
		}
		fmt.Fprintln(w)
		for _, p := range side.p.Procs {
			fmt.Fprintf(w, "  %-3s pid %d %s: share %s, %s turns/s", strings.ToUpper(string(p.Role)), p.PID, text.Fit(text.Clean(p.Exe), 24, true), percent(p.Share), rate(p.TurnsPerS))
			if p.Role == LC {
				fmt.Fprintf(w, ", %d turns cut, waits after those %s", p.Cut, p.Wait.words())
			} else {
				fmt.Fprintf(w, ", turns that LC's coming ended: %s", p.LeftFor.words())
			}
			fmt.Fprintln(w)
		}
	}
}

func (d *Dist) words() string {
	if d == nil {
		return "-"
	}
	return fmt.Sprintf("min %.0f, p50 %.0f, p95 %.0f, p99 %.0f us (%d)", *d.Min, *d.P50, *d.P95, *d.P99, d.N)
}

func percent(f *float64) string {
	if f == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100**f)
}

func rate(f *float64) string {
	if f == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f", *f)
}

// Line is the line that is printed each second.
func Line(at time.Duration, s *Span, members []Member, t Totals, starving int) string {
	parts := []string{fmt.Sprintf("%4.0f s", at.Seconds())}
	be, leave := 0.0, &Samples{}
	for _, m := range members {
		u := s.Uses[m.Proc]
		share := s.Share(m.Proc)
		if m.Role == LC {
			l := fmt.Sprintf("LC %d: share %s", m.Proc.PID, percent(share))
			if u != nil {
				l += fmt.Sprintf(", %s turns/s, %d cut", rate(s.PerSecond(u.Turns)), u.Forced)
			}
			parts = append(parts, l)
		} else if u != nil {
			if share != nil {
				be += *share
			}
			leave.N += u.LeftFor.N
			leave.Kept = append(leave.Kept, u.LeftFor.Kept...)
		}
	}
	b := fmt.Sprintf("BE: share %.1f%%", 100*be)
	if s.Competed == 0 {
		b = "BE: share - (nothing competed)"
	}
	if d := DistOf(leave); d != nil {
		b += fmt.Sprintf(", left for LC after p50 %.0f us (min %.0f)", *d.P50, *d.Min)
	}
	parts = append(parts, b, "tax "+percent(s.Tax()), fmt.Sprintf("%d TSGs, %d set again", t.TSGs, t.Again))
	if starving > 0 {
		parts = append(parts, fmt.Sprintf("%d STARVING", starving))
	}
	return strings.Join(parts, " | ")
}
