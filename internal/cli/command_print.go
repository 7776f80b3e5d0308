//go:build linux

package cli

import (
	"fmt"
	"strings"
	"time"

	"tsgtop/actions"
	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
	"tsgtop/internal/text"
)

func (o *options) printPreview(p actions.Preview) {
	say := func(name, format string, args ...any) {
		if s := fmt.Sprintf(format, args...); s != "" {
			fmt.Fprintf(o.err, "%-10s %s\n", name, text.Clean(s))
		}
	}
	say("command", "%s %s", p.Op, change(p.Op, p.Old, p.New, p.Count))
	say("target", "GPU%d, runlist %d, TSG %d (%s)", p.Target.GPU, p.Target.Runlist, p.Target.TSG, p.Target.Object)
	say("process", "pid %d  %s", p.Target.PID, p.Target.Exe)
	say("user", "%s", p.Target.User)
	say("container", "%s", strings.TrimSpace(p.Target.Unit+"  "+p.Cgroup))
	say("actuator", "%s", p.Actuator)
	say("cost", "%s", p.Cost)
	say("undo", "%s", p.Undo)
	for _, w := range p.Warnings {
		say("warning", "%s", w)
	}
}

// change is what a command does to a value, "2048 us -> 200 us".
func change(op sched.Op, old, value *uint64, count int) string {
	if op == sched.OpPreempt {
		if count > 1 {
			return fmt.Sprintf("%d times", count)
		}
		return "once"
	}
	word := func(v *uint64) string {
		switch {
		case v == nil:
			return "?"
		case op == sched.OpTimeslice:
			return fmt.Sprintf("%d us", *v)
		case *v <= rm.InterleaveHigh:
			return []string{"low", "medium", "high"}[*v]
		}
		return fmt.Sprint(*v)
	}
	return word(old) + " -> " + word(value)
}

// commandOutput is what a command prints with --json.
type commandOutput struct {
	SchemaVersion int             `json:"schema_version"`
	ID            string          `json:"id"`
	Time          string          `json:"time"` // of being asked for
	Sent          *string         `json:"sent"` // when the first call was made; null: none was
	Source        string          `json:"source"`
	Op            sched.Op        `json:"op"`
	Target        sched.Target    `json:"target"`
	Old           *uint64         `json:"old"`
	New           *uint64         `json:"new"`
	Count         int             `json:"count,omitempty"`
	Restored      *bool           `json:"restored"` // null: there is nothing to put back
	RestoreWhy    string          `json:"restore_why,omitempty"`
	Actuator      string          `json:"actuator"`
	Calls         sched.CallTally `json:"calls"`
	Ran           sched.Lamp      `json:"ran"`
	Accepted      sched.Accepted  `json:"accepted"`
	Changed       sched.Changed   `json:"changed"`
	Xid           []uint32        `json:"xid,omitempty"`
	Why           string          `json:"why,omitempty"`
}

func (o *options) printCommand(cmd sched.Command, outcomes []actions.Outcome, f *commandFlags) error {
	restored, why := restoredOf(cmd, outcomes)
	if o.json {
		source := o.source
		if k, _, ok := strings.Cut(source, ":"); ok && k == "sim" {
			source = k
		}
		var sent *string
		if cmd.Issued > 0 {
			sent = sched.Ptr(timeText(cmd.Issued))
		}
		if cmd.Calls.ByStatus == nil {
			cmd.Calls.ByStatus = map[string]int{}
		}
		return writeJSON(o.out, commandOutput{SchemaVersion: sched.SchemaVersion, ID: cmd.ID, Time: timeText(cmd.Asked), Sent: sent, Source: source, Op: cmd.Op,
			Target: cmd.Target, Old: cmd.Old, New: cmd.New, Count: cmd.Count, Restored: restored, RestoreWhy: why, Actuator: cmd.Actuator, Calls: cmd.Calls,
			Ran: cmd.Ran, Accepted: cmd.Accepted, Changed: cmd.Changed, Xid: cmd.Xid, Why: cmd.Why})
	}
	lamp := func(name string, l sched.Lamp, more string) {
		fmt.Fprintf(o.out, "%-9s %-8s%s\n", name, l.State, text.Clean(l.Why))
		if more != "" {
			fmt.Fprintf(o.out, "%18s%s\n", "", text.Clean(more))
		}
	}
	fmt.Fprintf(o.out, "%s of TSG %s, pid %d: %s, by %s\n", cmd.Op, cmd.Target.TSGID, cmd.Target.PID, change(cmd.Op, cmd.Old, cmd.New, cmd.Count), cmd.Actuator)
	if cmd.Why != "" {
		fmt.Fprintln(o.out, text.Clean(cmd.Why))
	}
	lamp("RAN", cmd.Ran, "")
	lamp("ACCEPTED", cmd.Accepted.Lamp, "")
	lamp("CHANGED", cmd.Changed.Lamp, cmd.Changed.Evidence)
	if v := cmd.Changed.Victim; v != nil && v.ShareBefore != nil && v.ShareAfter != nil {
		fmt.Fprintf(o.out, "%-18sits share %.1f%% -> %.1f%%", "", 100**v.ShareBefore, 100**v.ShareAfter)
		if v.SwitchTaxBefore != nil && v.SwitchTaxAfter != nil {
			fmt.Fprintf(o.out, ", switch tax %.1f%% -> %.1f%%", 100**v.SwitchTaxBefore, 100**v.SwitchTaxAfter)
		}
		fmt.Fprintln(o.out)
	}
	for _, x := range cmd.Xid {
		fmt.Fprintf(o.out, "Xid %d while it was in flight: %s\n", x, rm.XidName(x))
	}
	for _, out := range outcomes {
		fmt.Fprintln(o.out, text.Clean(outcomeLine(out)))
	}
	return nil
}

// restoredOf tells whether the old value is back: null where there is none.
func restoredOf(cmd sched.Command, outcomes []actions.Outcome) (*bool, string) {
	for _, out := range outcomes {
		for _, id := range out.Commands {
			if id == cmd.ID {
				return sched.Ptr(out.State == actions.OutcomeRestored || out.State == actions.OutcomeAlready), out.Why
			}
		}
	}
	return cmd.Restored, ""
}

func timeText(t sched.Time) string {
	if t == 0 {
		return time.Now().Format(time.RFC3339Nano)
	}
	return t.Std().Format(time.RFC3339Nano)
}
