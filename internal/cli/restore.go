//go:build linux

package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"tsgtop/actions"
	"tsgtop/actions/audit"
	"tsgtop/actions/journal"
	"tsgtop/internal/rmdev"
	"tsgtop/internal/sched"
	"tsgtop/internal/text"
)

// restoreOutput is what `restore --json` prints.
type restoreOutput struct {
	SchemaVersion int               `json:"schema_version"`
	Journal       string            `json:"journal"`
	Outcomes      []actions.Outcome `json:"outcomes"`
	Stale         int               `json:"stale"`      // entries of an earlier boot: void
	Unreadable    int               `json:"unreadable"` // lines of the journal
}

func newRestore(o *options) *cobra.Command {
	var dryRun bool
	c := &cobra.Command{
		Use:   "restore",
		Short: "Put back what a crashed or killed run left changed, and what was kept",
		Long: `restore puts back every value that the journal lists and no running tsgtop holds:
what a run left that was killed, and what --keep kept. A value that its process
has set since is left alone. It ends with 8 where something could not be put back.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.restore(c.Context(), dryRun) },
	}
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only list what is changed")
	return c
}

func (o *options) restore(ctx context.Context, dryRun bool) error {
	if o.source != "live" {
		return fail(exitUsage, "restore is for this machine, not for --source %s", o.source)
	}
	if o.readOnly && !dryRun {
		return fail(exitUsage, "restore: --read-only was given; --dry-run lists what is changed")
	}
	j, err := journal.Open(o.journalPath())
	if err != nil {
		return &exitError{exitOf(err), err}
	}
	defer j.Close()
	s, err := j.State()
	if err != nil {
		return &exitError{exitOf(err), err}
	}
	out := restoreOutput{SchemaVersion: sched.SchemaVersion, Journal: j.Path(), Stale: s.Stale, Unreadable: s.Unreadable, Outcomes: []actions.Outcome{}}
	if dryRun {
		for _, e := range s.Entries {
			h := e.Holds[len(e.Holds)-1]
			state := actions.OutcomeFailed
			switch {
			case h.Kept:
				state = actions.OutcomeKept
			case h.Alive():
				state = actions.OutcomeHeld
			}
			out.Outcomes = append(out.Outcomes, actions.Outcome{Op: e.Op, Target: e.Target, Was: &h.Value, Value: e.Original, Commands: []string{h.Command}, State: state,
				Why: fmt.Sprintf("changed by tsgtop, pid %d, %s; a dry run: left as it is", h.PID, h.When)})
		}
		return o.printRestore(out)
	}
	self, err := journal.Self()
	if err != nil {
		return err
	}
	path := o.audit
	if path == "" {
		path = audit.DefaultPath
	}
	log, err := audit.Open(path, version)
	if err != nil {
		return &exitError{exitOf(err), err}
	}
	defer log.Close()
	fd := actions.NewFD(rmdev.New(nil), j, self, nil, "")
	a := actions.Choose("auto", fd, actions.NewKFunc(fd))
	defer a.Release()
	if why := a.Why(); why != "" && (len(s.Entries) > 0 || s.Meter != nil) {
		return fail(exitPrivilege, "nothing can be put back: %s", why)
	}
	done, err := actions.RestoreAll(ctx, a, j, true)
	out.Outcomes = append(out.Outcomes, done...)
	for _, x := range done {
		if x.State == actions.OutcomeHeld {
			continue
		}
		if werr := log.Write(actions.RestoreLine(x)); werr != nil && err == nil {
			err = werr
		}
	}
	if perr := o.printRestore(out); perr != nil {
		return perr
	}
	if failed(out.Outcomes) {
		return &exitError{code: exitRestore}
	}
	if err != nil {
		return &exitError{exitRestore, err}
	}
	return nil
}

func (o *options) printRestore(out restoreOutput) error {
	if o.json {
		return writeJSON(o.out, out)
	}
	for _, x := range out.Outcomes {
		fmt.Fprintln(o.out, text.Clean(outcomeLine(x)))
	}
	if len(out.Outcomes) == 0 {
		fmt.Fprintln(o.out, "nothing is changed: there is nothing to put back")
	}
	if out.Stale > 0 {
		fmt.Fprintf(o.out, "%d entries are of an earlier boot, which reset everything\n", out.Stale)
	}
	if out.Unreadable > 0 {
		fmt.Fprintf(o.err, "tsgtop: %d lines of %s cannot be read\n", out.Unreadable, out.Journal)
	}
	return nil
}
