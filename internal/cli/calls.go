package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tsgtop/internal/privdrop"
	"tsgtop/internal/recording"
	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
	"tsgtop/internal/text"
)

func newCalls(o *options) *cobra.Command {
	var pid int
	var number, name string
	var span time.Duration
	c := &cobra.Command{
		Use:   "calls",
		Short: "Stream RM calls and lifecycle events, one line each",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			want, err := callFilter(pid, number, name)
			if err != nil {
				return err
			}
			s, err := o.open(false, recording.PlayerOptions{AsFastAsPossible: true})
			if err != nil {
				return err
			}
			defer s.close()
			if err := s.seal(privdrop.Options{}); err != nil {
				return err
			}
			ctx := c.Context()
			if span > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, span)
				defer cancel()
			}
			if err := streamCalls(ctx, o, s, want); err != nil {
				return err
			}
			return c.Context().Err() // interrupted: not by --for
		},
	}
	c.Flags().IntVar(&pid, "pid", 0, "only this process")
	c.Flags().StringVar(&number, "cmd", "", "only this command or class: a number such as 0xa06c0103")
	c.Flags().StringVar(&name, "name", "", "only calls whose name contains this")
	c.Flags().DurationVar(&span, "for", 0, "end after this long")
	return c
}

// callFilter builds the predicate that the flags ask for.
func callFilter(pid int, number, name string) (func(*sched.CallLine) bool, error) {
	var n uint64
	if number != "" {
		var err error
		if n, err = strconv.ParseUint(number, 0, 32); err != nil {
			return nil, fail(exitUsage, "--cmd %q: want a number such as 0xa06c0103", number)
		}
	}
	name = strings.ToLower(name)
	return func(l *sched.CallLine) bool {
		switch {
		case pid != 0 && linePID(l) != pid,
			number != "" && (l.Call == nil || uint64(l.Call.Number) != n),
			name != "" && !strings.Contains(strings.ToLower(lineName(l)), name):
			return false
		}
		return true
	}, nil
}

func linePID(l *sched.CallLine) int {
	switch {
	case l.Call != nil:
		return l.Call.PID
	case l.Lifecycle != nil:
		return l.Lifecycle.PID
	case l.Xid != nil:
		return l.Xid.PID
	case l.Exit != nil:
		return l.Exit.PID
	}
	return 0
}

func lineName(l *sched.CallLine) string {
	switch {
	case l.Call != nil:
		return sched.CallName(l.Call)
	case l.Lifecycle != nil:
		return string(l.Lifecycle.Kind)
	case l.Xid != nil:
		return "xid " + rm.XidName(l.Xid.Code)
	case l.Exit != nil:
		return "exit"
	}
	return ""
}

// streamCalls prints lines as the state takes them in, until the source ends.
func streamCalls(ctx context.Context, o *options, s *opened, want func(*sched.CallLine) bool) error {
	if l, ok := s.src.(sched.Looker); ok {
		l.Look(true)
		defer l.Look(false)
	}
	var werr error
	print := func(l *sched.CallLine) {
		if werr != nil || !want(l) {
			return
		}
		if o.json {
			werr = writeJSON(o.out, sched.LineJSON(l, s.board.ExeOf))
		} else {
			_, werr = fmt.Fprintln(o.out, callText(l))
		}
	}
	untap := s.board.TapLines(print)
	defer untap()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	blind := s.watchProbes(ctx, cancel)
	done := make(chan error, 1)
	go func() { done <- s.board.Run(ctx) }()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			if b := blind(); b != nil {
				return b
			}
			if err != nil {
				return err
			}
			return werr
		case <-tick.C:
			if werr != nil { // the reader of our output is gone
				return werr
			}
		}
	}
}

// callText is one line for people, made safe.
func callText(l *sched.CallLine) string { return text.Clean(callWords(l)) }

func callWords(l *sched.CallLine) string {
	switch {
	case l.Call != nil:
		c := l.Call
		status := rm.StatusName(c.Status)
		if c.Errno != 0 {
			status = fmt.Sprintf("errno %d", c.Errno)
		}
		return fmt.Sprintf("%s %7d %-16s %-8s %-44s %s %-28s %8.1fus%s", clock(c.End), c.PID, c.Comm, sched.KindName(c.Kind),
			sched.CallName(c), sched.Object{Client: c.Client, Handle: c.Object}, status, float64(c.End-c.Start)/1e3, sched.ParamsText(c.Params))
	case l.Lifecycle != nil:
		f := l.Lifecycle
		value := ""
		if f.Value != nil {
			value = fmt.Sprintf(" %d", *f.Value)
		}
		return fmt.Sprintf("%s %7d %-16s %-8s %-44s %s tsg %s%s", clock(f.Time), f.PID, "", "tsg", f.Kind, f.Object, f.ID, value)
	case l.Xid != nil:
		return fmt.Sprintf("%s %7d %-16s %-8s Xid %d %s: %s", clock(l.Xid.Time), l.Xid.PID, l.Xid.Name, "xid", l.Xid.Code, rm.XidName(l.Xid.Code), l.Xid.Text)
	case l.Exit != nil:
		return fmt.Sprintf("%s %7d %-16s exit", clock(l.Exit.Time), l.Exit.PID, "")
	}
	return ""
}

func clock(t sched.Time) string { return t.Std().Format("15:04:05.000000") }
