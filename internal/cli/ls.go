package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tsgtop/internal/privdrop"
	"tsgtop/internal/recording"
	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
	"tsgtop/internal/text"
)

func newLS(o *options) *cobra.Command {
	var at string
	var span time.Duration
	c := &cobra.Command{
		Use:   "ls",
		Short: "One snapshot: GPUs, runlists, TSGs",
		Long: `ls prints every TSG with the runlist it is on, whose it is, its timeslice, and
how long the hardware let it stay on the engine. Live, it watches the
context-switch trace for --for before it prints. On a recording it shows the
end, or --at.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := o.open(false, recording.PlayerOptions{})
			if err != nil {
				return err
			}
			defer s.close()
			if err := s.seal(privdrop.Options{}); err != nil {
				return err
			}
			snap, err := s.settle(c.Context(), at, span)
			if snap == nil {
				return err
			}
			if s.live != nil || !o.json {
				warnings(snap, o.sayLine)
			}
			if o.json {
				if e := writeJSON(o.out, snap.LS(sched.Window10s)); e != nil {
					return e
				}
				return err
			}
			if e := o.print(func(w io.Writer) { printLS(w, snap) }); e != nil {
				return e
			}
			return err
		},
	}
	c.Flags().StringVar(&at, "at", "", "instant of a recording: seconds from its start, or a time")
	c.Flags().DurationVar(&span, "for", time.Second, "how long to watch the trace before printing")
	return c
}

// writeJSON writes v as one line.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

const dash = "-"

// printLS prints a snapshot as a table for people.
func printLS(w io.Writer, snap *sched.Snapshot) {
	for _, g := range snap.GPUs {
		fmt.Fprintf(w, "GPU%d %s  driver %s", g.Index, text.Clean(g.Name), text.Clean(g.Driver))
		if g.SwitchesPerS != nil {
			fmt.Fprintf(w, "  %.0f switches/s", *g.SwitchesPerS)
		}
		if t := g.SwitchTax[sched.Window10s]; t != nil {
			fmt.Fprintf(w, "  switch tax %.1f%%", *t*100)
		}
		if g.TraceWhy != "" {
			fmt.Fprintf(w, "  trace: %s", text.Clean(g.TraceWhy))
		}
		fmt.Fprintln(w)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "GPU\tRUNLIST\tTSG\tENGINE\tPID\tPROCESS\tUSER\tUNIT\tTIMESLICE\tRESIDENCY p50/p95\tSHARE\tTURNS/s\tWAIT p95\tCLIENT/OBJECT")
	for i := range snap.TSGs {
		t := &snap.TSGs[i]
		s := &t.Score[sched.Window10s]
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			number(t.ID.GPU), number(t.ID.Runlist), number(t.ID.TSG), engine(t.Engine), t.Process.PID,
			text.Fit(text.Clean(processName(t)), 24, true), or(text.Clean(t.Process.User)), or(text.Clean(t.Process.Unit)),
			timeslice(t), residency(s.Residency), percent(s.Share), rate(s.TurnsPerS), micros95(s.Wait), object(t))
	}
	tw.Flush()
	if u := snap.Unattributed; u.Contexts+u.Channels+u.Clients > 0 {
		fmt.Fprintf(w, "not attributed: %d contexts, %d channels, %d clients %s\n", u.Contexts, u.Channels, u.Clients, text.Clean(u.Why))
	}
	if l := snap.Lost; l.Ring+l.Queue+l.Trace+l.Overtaken > 0 {
		fmt.Fprintf(w, "lost: ring %d, queue %d, trace %d, overtaken %d\n", l.Ring, l.Queue, l.Trace, l.Overtaken)
	}
}

func number(n int) string {
	if n == sched.Unknown {
		return dash
	}
	return fmt.Sprint(n)
}

func engine(e *uint32) string {
	if e == nil {
		return dash
	}
	return rm.EngineName(*e)
}

func or(s string) string {
	if s == "" {
		return dash
	}
	return s
}

// processName is the last part of the executable's path, or the comm.
func processName(t *sched.TSGView) string {
	return or(t.Process.Name())
}

func timeslice(t *sched.TSGView) string {
	if t.Timeslice == nil {
		return dash
	}
	mark := ""
	if t.TimesliceFrom == sched.FromDefault {
		mark = "?"
	}
	return fmt.Sprintf("%dus%s", *t.Timeslice, mark)
}

func residency(s *sched.Stats) string {
	if s == nil {
		return dash
	}
	return fmt.Sprintf("%.0f/%.0fus", s.P50, s.P95)
}

func micros95(s *sched.Stats) string {
	if s == nil {
		return dash
	}
	return fmt.Sprintf("%.0fus", s.P95)
}

func percent(f *float64) string {
	if f == nil {
		return dash
	}
	return fmt.Sprintf("%.1f%%", *f*100)
}

func rate(f *float64) string {
	if f == nil {
		return dash
	}
	return fmt.Sprintf("%.0f", *f)
}

func object(t *sched.TSGView) string {
	if t.Context {
		return "context"
	}
	return t.Object.String()
}
