package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tsgtop/internal/privdrop"
	"tsgtop/internal/recording"
	"tsgtop/internal/sched"
	"tsgtop/internal/text"
)

func newScore(o *options) *cobra.Command {
	var at, by string
	var span time.Duration
	c := &cobra.Command{
		Use:   "score",
		Short: "The scorecard of a window: residency, wait, turns and share of each TSG",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			group, err := scoreGroup(by)
			if err != nil {
				return err
			}
			s, err := o.open(false, recording.PlayerOptions{})
			if err != nil {
				return err
			}
			defer s.close()
			if err := s.seal(privdrop.Options{}); err != nil {
				return err
			}
			if l, ok := s.src.(sched.CounterLooker); ok {
				l.LookCounters(true)
				defer l.LookCounters(false)
			}
			snap, err := s.settle(c.Context(), at, span)
			if snap == nil {
				return err
			}
			if group != nil {
				snap = s.board.Snapshot(sched.SnapshotOptions{Group: group, GroupTag: by})
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
	c.Flags().StringVar(&by, "by", "", "add up TSGs by process, user or unit")
	return c
}

// scoreGroup names the group of a TSG under --by; nil where by is empty.
func scoreGroup(by string) (func(*sched.TSGView) (string, bool), error) {
	known := func(s, otherwise string) (string, bool) {
		if s == "" {
			return otherwise, true
		}
		return s, true
	}
	switch by {
	case "":
		return nil, nil
	case "process":
		return func(t *sched.TSGView) (string, bool) {
			if t.Process.PID == 0 {
				return "process not known", true
			}
			return fmt.Sprintf("%d %s", t.Process.PID, t.Process.Name()), true
		}, nil
	case "user":
		return func(t *sched.TSGView) (string, bool) {
			p := &t.Process
			if p.User == "" && p.UID != nil {
				return strconv.Itoa(*p.UID), true
			}
			return known(p.User, "user not known")
		}, nil
	case "unit":
		return func(t *sched.TSGView) (string, bool) { return known(t.Process.Unit, "no unit") }, nil
	}
	return nil, fail(exitUsage, "--by %q: want process, user or unit", by)
}

// statRows are the quantities of a score that have statistics.
func statRows(s *sched.Score) []statRow {
	return []statRow{{"residency us", s.Residency}, {"wait us", s.Wait}, {"off us", s.Off}}
}

type statRow struct {
	what string
	st   *sched.Stats
}

func printStats(w io.Writer, who string, s *sched.Score) {
	for _, row := range statRows(s) {
		if row.st != nil {
			fmt.Fprintf(w, "%s\t%s\t%d\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t\n", who, row.what,
				row.st.N, row.st.Min, row.st.Mean, row.st.StdDev, row.st.P50, row.st.P95, row.st.P99, row.st.Max)
		}
	}
	fmt.Fprintf(w, "%s\tshare %s\t%d\tturns/s %s\t\t\t\t\t\t\t\n", who, percent(s.Share), s.Turns, rate(s.TurnsPerS))
}

// switchesText says how context switches divide, as the GSP counted them.
func switchesText(s *sched.Score) string {
	if s.Switches == nil {
		return "not known: " + text.Clean(s.SwitchesWhy)
	}
	return fmt.Sprintf("%d forced in mid-kernel, %d voluntary, as the GSP counted over %.1f s", s.Switches.Forced, s.Switches.Voluntary, s.Switches.SpanS)
}

// printGroups prints the scorecard of groups.
func printGroups(w io.Writer, snap *sched.Snapshot) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, strings.ToUpper(snap.GroupTag)+"\tTSGS\tWHAT\tN\tMIN\tMEAN\tSD\tP50\tP95\tP99\tMAX\t")
	var switches []string
	for i := range snap.Groups {
		g := &snap.Groups[i]
		s := &g.Score[sched.WindowAll]
		if s.Residency == nil {
			continue
		}
		name := text.Fit(text.Clean(g.Key), 30, true)
		printStats(tw, fmt.Sprintf("%s\t%d", name, g.TSGs), s)
		switches = append(switches, fmt.Sprintf("switches of %s: %s", strings.TrimRight(name, " "), switchesText(s)))
	}
	tw.Flush()
	for _, l := range switches {
		fmt.Fprintln(w, l)
	}
}

func printScore(w io.Writer, snap *sched.Snapshot) {
	for _, g := range snap.GPUs {
		fmt.Fprintf(w, "GPU%d %s: switch tax %s\n", g.Index, text.Clean(g.Name), percent(g.SwitchTax[sched.WindowAll]))
	}
	if snap.Groups != nil {
		printGroups(w, snap)
		return
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "TARGET\tPID\tPROCESS\tWHAT\tN\tMIN\tMEAN\tSD\tP50\tP95\tP99\tMAX\t")
	var switches []string
	for i := range snap.TSGs {
		t := &snap.TSGs[i]
		s := &t.Score[sched.WindowAll]
		if s.Residency == nil {
			continue
		}
		name := text.Fit(text.Clean(t.Process.Name()), 20, true)
		printStats(tw, fmt.Sprintf("%s\t%d\t%s", t.ID, t.Process.PID, name), s)
		switches = append(switches, fmt.Sprintf("switches of %s: %s", t.ID, switchesText(s)))
	}
	tw.Flush()
	for _, l := range switches {
		fmt.Fprintln(w, l)
	}
}
