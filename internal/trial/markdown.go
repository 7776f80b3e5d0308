package trial

import (
	"fmt"
	"io"
	"strings"
	"time"

	"tsgtop/internal/text"
)

// cell makes text safe for a cell of a Markdown table.
func cell(s string) string {
	s = text.Clean(strings.NewReplacer("\n", " ", "\r", " ").Replace(s))
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "`", "'").Replace(s)
}

func yesNo(b *bool, yes, no string) string {
	switch {
	case b == nil:
		return "?"
	case *b:
		return yes
	}
	return no
}

// Markdown writes the report for people. plot is the name of its picture; empty:
// there is none.
func (r *Report) Markdown(w io.Writer, plot string) {
	m := r.Machine
	simulated := ""
	if m.Simulated {
		simulated = " **Simulated, not a real GPU.**"
	}
	fmt.Fprintf(w, "# Experiment: %s\n\n", cell(r.Plan.Name))
	fmt.Fprintf(w, "%s, driver %s (%s, %s), tsgtop %s, %s.%s\n\n", cell(m.Chip), cell(m.Driver), yesNo(m.Open, "open module", "closed module"),
		yesNo(m.GSP, "RM on the GSP", "RM in the driver"), cell(m.Tool), cell(r.Time), simulated)
	fmt.Fprintf(w, "%d arms, %d rounds, %s, seed %d; each run %v after %v of warm-up; everything put back between runs%s. It took %.0f s.\n",
		len(r.Plan.Arms), r.Plan.Repeats, r.Plan.Order, r.Plan.Seed, r.Plan.Measure, r.Plan.WarmUp, map[bool]string{true: "", false: " (NOT always: see below)"}[r.Restored], r.Seconds)
	if r.Ended != "" {
		fmt.Fprintf(w, "\n**It ended early: %s.**\n", cell(r.Ended))
	}
	if len(r.Answers) > 0 {
		fmt.Fprint(w, "\n## Answers\n\n| knob | answer | answered by | why |\n|---|---|---|---|\n")
		for _, a := range r.Answers {
			fmt.Fprintf(w, "| %s | **%s** | %s | %s |\n", a.Knob, a.Verdict, a.Where, cell(a.Why))
		}
	}
	r.armTable(w)
	if plot != "" {
		fmt.Fprintf(w, "\n![Each metric of each arm, as a ratio to the baseline](%s)\n", plot)
	}
	r.effectTable(w)
	fmt.Fprint(w, "\n## What could not be told\n\n")
	for _, u := range r.Untold {
		fmt.Fprintf(w, "- %s\n", cell(u))
	}
	if len(r.Untold) == 0 {
		fmt.Fprintln(w, "Nothing.")
	}
}

func (r *Report) armTable(w io.Writer) {
	fmt.Fprint(w, "\n## Arms\n\n| arm | does | runs | calls | accepted | refused | stub | by | hardware changed |\n|---|---|---|---|---|---|---|---|---|\n")
	for i := range r.Arms {
		a := &r.Arms[i]
		changed := string(a.Changed.State)
		if a.Idle() {
			changed = "-"
		}
		runs := fmt.Sprint(a.Runs)
		if a.Useless > 0 {
			runs += fmt.Sprintf(" (%d do not count)", a.Useless)
		}
		by := "-"
		if a.Calls.Sent > 0 {
			by = whereOf(a.Calls)
		}
		fmt.Fprintf(w, "| %s | %s | %s | %d | %d | %d | %d | %s | %s |\n", cell(a.Name), cell(a.Does), runs, a.Calls.Sent, a.Calls.Accepted, a.Calls.Refused, a.Calls.Stub, by, changed)
	}
}

func (r *Report) effectTable(w io.Writer) {
	fmt.Fprint(w, "\n## Numbers\n\nMeans over the rounds; in brackets the ratio to the baseline of the same round and its 99% interval.\n\n| metric |")
	rule := "|---|"
	for i := range r.Arms {
		fmt.Fprintf(w, " %s |", cell(r.Arms[i].Name))
		rule += "---|"
	}
	fmt.Fprintln(w, "\n"+rule)
	if len(r.Arms) == 0 {
		return
	}
	for k, e := range r.Arms[0].Effects {
		fmt.Fprintf(w, "| %s |", cell(e.Metric))
		for i := range r.Arms {
			x := r.Arms[i].Effects[k]
			switch {
			case x.Value == nil:
				fmt.Fprint(w, " - |")
			case r.Arms[i].Idle() || x.CI == nil:
				fmt.Fprintf(w, " %s |", short(*x.Value))
			default:
				fmt.Fprintf(w, " %s (x%.2f, %.2f-%.2f) |", short(*x.Value), *x.Ratio, x.CI[0], x.CI[1])
			}
		}
		fmt.Fprintln(w)
	}
}

// Summary is the report in a few lines, for a terminal.
func (r *Report) Summary(w io.Writer) {
	for _, a := range r.Answers {
		fmt.Fprintf(w, "%-10s %-8s %s\n", a.Knob, a.Verdict, text.Clean(a.Why))
	}
	fmt.Fprintf(w, "%d runs in %v\n", len(r.Runs), time.Duration(r.Seconds*float64(time.Second)).Round(time.Second))
}
