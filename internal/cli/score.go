package cli

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tsgtop/internal/privdrop"
	"tsgtop/internal/recording"
	"tsgtop/internal/sched"
	"tsgtop/internal/text"
)

func newScore(o *options) *cobra.Command {
	var at string
	var span time.Duration
	c := &cobra.Command{
		Use:   "score",
		Short: "The scorecard of a window: residency, wait, turns and share of each TSG",
		Args:  cobra.NoArgs,
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
			if s.live != nil {
				warnings(snap, o.sayLine)
			}
			if o.json {
				if e := writeJSON(o.out, snap.ScoreOutput(sched.WindowAll)); e != nil {
					return e
				}
				return err
			}
			if e := o.print(func(w io.Writer) { printScore(w, snap) }); e != nil {
				return e
			}
			return err
		},
	}
	c.Flags().StringVar(&at, "at", "", "instant of a recording: seconds from its start, or a time")
	c.Flags().DurationVar(&span, "for", 10*time.Second, "how long to watch")
	return c
}

func printScore(w io.Writer, snap *sched.Snapshot) {
	for _, g := range snap.GPUs {
		fmt.Fprintf(w, "GPU%d %s: switch tax %s\n", g.Index, text.Clean(g.Name), percent(g.SwitchTax[sched.WindowAll]))
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "TARGET\tPID\tPROCESS\tWHAT\tN\tMIN\tMEAN\tSD\tP50\tP95\tP99\tMAX\t")
	for i := range snap.TSGs {
		t := &snap.TSGs[i]
		s := &t.Score[sched.WindowAll]
		if s.Residency == nil {
			continue
		}
		name := text.Fit(text.Clean(t.Process.Name()), 20, true)
		for _, row := range []struct {
			what string
			st   *sched.Stats
		}{{"residency us", s.Residency}, {"wait us", s.Wait}, {"off us", s.Off}} {
			if row.st == nil {
				continue
			}
			fmt.Fprintf(tw, "%s\t%d\t%s\t%s\t%d\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t\n", t.ID, t.Process.PID, name, row.what,
				row.st.N, row.st.Min, row.st.Mean, row.st.StdDev, row.st.P50, row.st.P95, row.st.P99, row.st.Max)
		}
		fmt.Fprintf(tw, "%s\t%d\t%s\tshare %s\t%d\tturns/s %s\t\t\t\t\t\t\t\n", t.ID, t.Process.PID, name, percent(s.Share), s.Turns, rate(s.TurnsPerS))
	}
	tw.Flush()
}
