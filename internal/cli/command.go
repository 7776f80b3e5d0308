//go:build linux

package cli

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"tsgtop/actions"
	"tsgtop/internal/recording"
	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
	"tsgtop/internal/text"
)

// commandFlags are those of preempt, timeslice and interleave.
type commandFlags struct {
	controlOptions
	yes   bool
	hold  time.Duration
	count int
	every time.Duration
}

const commandLong = `
TARGET is GPU:RUNLIST:TSG, as tsgtop ls shows them, or pid:N for a process's one
compute TSG.

Three lamps answer from three witnesses: RAN (the eBPF program saw exactly this
call), ACCEPTED (RM's status, and whether the GSP was asked), CHANGED (the GPU's
own context-switch trace, before against after).

It ends with 0 when the hardware changed, 4 when it did not, 5 when that cannot
be known; 3 refused or a stub; 6 not shown to have run; 7 the target is not
there; 8 a restore failed; 9 no answer from RM.`

const trialLong = `
It is a trial: the old value is put back at exit, also when tsgtop is
interrupted or killed; --keep keeps it, --for holds it that long.`

func (f *commandFlags) register(c *cobra.Command, value bool) {
	fl := c.Flags()
	fl.BoolVar(&f.yes, "yes", false, "do not ask")
	fl.BoolVar(&f.dryRun, "dry-run", false, "show everything, send nothing")
	fl.DurationVar(&f.wait, "wait", 3*time.Second, "longest wait for CHANGED, by the source's clock")
	fl.StringVar(&f.actuator, "actuator", "auto", "the way the command goes: auto, kfunc or fd")
	if value {
		fl.BoolVar(&f.keep, "keep", false, "keep the new value at exit (tsgtop restore puts the old one back)")
		fl.DurationVar(&f.hold, "for", 0, "hold the new value that long, then put the old one back")
		c.MarkFlagsMutuallyExclusive("keep", "for")
	}
}

func newPreempt(o *options) *cobra.Command {
	f := &commandFlags{}
	c := &cobra.Command{
		Use:   "preempt TARGET",
		Short: "Take a TSG off its engine, once or several times",
		Long:  "preempt takes a TSG off its engine; it gets its next turn as always.\n" + commandLong,
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return o.command(c.Context(), args[0], actions.Intent{Op: sched.OpPreempt, Count: f.count, Every: f.every}, f)
		},
	}
	f.register(c, false)
	c.Flags().IntVar(&f.count, "count", 1, "how often")
	c.Flags().DurationVar(&f.every, "every", 0, fmt.Sprintf("from one to the next, %v or more (default 2ms)", actions.MinPreemptGap))
	return c
}

func newTimeslice(o *options) *cobra.Command {
	f := &commandFlags{}
	c := &cobra.Command{
		Use:   "timeslice TARGET US",
		Short: "Give a TSG another timeslice, in microseconds",
		Long: fmt.Sprintf("timeslice gives a TSG another timeslice: %d to %d microseconds.\n", actions.MinTimesliceUS, actions.MaxTimesliceUS) +
			trialLong + "\n" + commandLong,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			us, err := strconv.ParseUint(strings.TrimSuffix(args[1], "us"), 10, 64)
			if err != nil {
				return fail(exitUsage, "timeslice %q: want a whole number of microseconds", args[1])
			}
			return o.command(c.Context(), args[0], actions.Intent{Op: sched.OpTimeslice, Value: &us}, f)
		},
	}
	f.register(c, true)
	c.Flags().BoolVar(&f.force, "force", false, fmt.Sprintf("allow %d to %d us", actions.MinForcedUS, actions.MaxForcedUS))
	return c
}

func newInterleave(o *options) *cobra.Command {
	f := &commandFlags{}
	c := &cobra.Command{
		Use:   "interleave TARGET low|medium|high",
		Short: "Give a TSG another interleave level",
		Long: "interleave asks for more or fewer turns of a TSG. It cannot be read back: what\nit was is only known where tsgtop saw it set; otherwise low is put back.\n" +
			trialLong + "\n" + commandLong,
		Args:      cobra.ExactArgs(2),
		ValidArgs: []string{"low", "medium", "high"},
		RunE: func(c *cobra.Command, args []string) error {
			level, ok := map[string]uint64{"low": rm.InterleaveLow, "medium": rm.InterleaveMedium, "high": rm.InterleaveHigh, "0": 0, "1": 1, "2": 2}[args[1]]
			if !ok {
				return fail(exitUsage, "interleave level %q: want low, medium or high", args[1])
			}
			return o.command(c.Context(), args[0], actions.Intent{Op: sched.OpInterleave, Value: &level}, f)
		},
	}
	f.register(c, true)
	return c
}

// wanted is a TARGET as it was written.
type wanted struct {
	text string
	id   sched.TSGID
	pid  int // 0: by id
}

func parseTarget(s string) (wanted, error) {
	w := wanted{text: s}
	bad := fail(exitUsage, "target %q: want GPU:RUNLIST:TSG as tsgtop ls shows them, such as 0:0:7, or pid:479", s)
	if rest, ok := strings.CutPrefix(s, "pid:"); ok {
		n, err := strconv.Atoi(rest)
		if err != nil || n <= 0 {
			return w, bad
		}
		w.pid = n
		return w, nil
	}
	parts := strings.Split(s, ":")
	if len(parts) != 3 {
		return w, bad
	}
	for i, p := range []*int{&w.id.GPU, &w.id.Runlist, &w.id.TSG} {
		n, err := strconv.Atoi(parts[i])
		if err != nil || n < 0 {
			return w, bad
		}
		*p = n
	}
	return w, nil
}

// find gives the row that was meant.
func (w wanted) find(snap *sched.Snapshot) (*sched.TSGView, error) {
	var rows, compute, shared []*sched.TSGView
	for i := range snap.TSGs {
		t := &snap.TSGs[i]
		if w.pid == 0 && t.ID == w.id && !t.Context || w.pid != 0 && t.Process.PID == w.pid && !t.Context {
			rows = append(rows, t)
			if t.Engine != nil && rm.IsGraphicsEngine(*t.Engine) || t.Engine == nil && t.ID.Runlist == 0 {
				compute = append(compute, t)
			}
		} else if w.pid != 0 && t.Clients > 0 && slices.Contains(t.HolderPIDs, w.pid) && !t.Context {
			shared = append(shared, t)
		}
	}
	switch {
	case w.pid == 0:
		compute = rows
	case len(compute) == 0:
		compute = shared // a client of MPS: its work is in the server's
	}
	switch {
	case len(compute) == 1:
		return compute[0], nil
	case len(compute) > 1:
		var ids []string
		for _, t := range compute {
			ids = append(ids, fmt.Sprintf("%s (%s)", t.ID, t.Object))
		}
		return nil, fail(exitUsage, "target %s: there are several: %s", w.text, strings.Join(ids, ", "))
	case w.pid != 0:
		return nil, fail(exitTarget, "target %s: this process has no compute TSG, or has ended; tsgtop ls shows those that are there", w.text)
	}
	return nil, fail(exitTarget, "target %s: there is no such TSG; tsgtop ls shows those that are there", w.text)
}

// command prepares, asks, sends, waits, puts back and prints.
func (o *options) command(ctx context.Context, target string, in actions.Intent, f *commandFlags) error {
	w, err := parseTarget(target)
	if err != nil {
		return err
	}
	if f.wait <= 0 || f.hold < 0 {
		return fail(exitUsage, "--wait and --for: want more than 0")
	}
	switch f.actuator {
	case "auto", "kfunc", "fd":
	default:
		return fail(exitUsage, "--actuator %q: want auto, kfunc or fd", f.actuator)
	}
	s, err := o.open(false, recording.PlayerOptions{})
	if err != nil {
		return err
	}
	defer s.close()
	f.patience = f.wait
	c, closeFiles, why, err := o.controller(s, f.controlOptions)
	if err != nil {
		return &exitError{exitOf(err), err}
	}
	if c == nil {
		return fail(exitUsage, "%s: %s", in.Op, why)
	}
	defer closeFiles()
	defer c.Close(context.Background()) // for ways out that did not get as far as ours below
	if why := c.Why(); why != "" {
		return fail(exitPrivilege, "no command can be sent: %s", why)
	}
	// The source goes on while values are put back, also after a signal.
	running, stop := context.WithCancel(context.Background())
	defer stop()
	go s.board.Run(running)
	row, err := o.meet(ctx, s, w)
	if err != nil {
		return err
	}
	if err := o.recovered(ctx, c); err != nil {
		return err
	}
	in.Gen = row.Gen
	p, err := c.Prepare(in)
	if err != nil {
		return &exitError{exitOf(err), err}
	}
	if yes, err := o.confirm(ctx, p, f); err != nil || !yes {
		return err
	}
	if err := c.Arm(true); err != nil {
		return &exitError{exitPrivilege, err}
	}
	id, err := c.Submit(p)
	if err != nil {
		return &exitError{exitOf(err), err}
	}
	return o.finish(ctx, s, c, id, f)
}

// finish waits for the verdict, holds, puts back and prints.
func (o *options) finish(ctx context.Context, s *opened, c *actions.Controller, id string, f *commandFlags) error {
	cmd, interrupted := c.Wait(ctx, id)
	unanswered := interrupted == nil && c.Unanswered(id)
	if interrupted == nil && f.hold > 0 && cmd.Step == sched.StepJudged {
		if !o.json {
			fmt.Fprintf(o.err, "tsgtop: holding it for %v\n", f.hold)
		}
		if s.sim != nil {
			interrupted = s.sim.Sleep(ctx, f.hold)
		} else {
			interrupted = actions.WallClock{}.Sleep(ctx, f.hold)
		}
	}
	outcomes := c.Close(context.Background())
	if now, ok := c.Command(id); ok {
		cmd = now
	}
	if err := o.printCommand(cmd, outcomes, f); err != nil {
		return err
	}
	return verdictCode(cmd, c.Refusal(id), outcomes, unanswered, interrupted)
}

// verdictCode is the exit code of a command: the first that applies.
func verdictCode(cmd sched.Command, refusal error, outcomes []actions.Outcome, unanswered bool, interrupted error) error {
	end := func(code int) error { return &exitError{code: code} }
	switch {
	case exitOf(refusal) == exitTarget:
		return end(exitTarget)
	case failed(outcomes):
		return end(exitRestore)
	case interrupted != nil:
		return end(exitInterrupted)
	case cmd.Step == sched.StepRefused:
		return end(exitRefused)
	case cmd.Ran.State != sched.LampYes:
		return end(exitNotRun)
	case cmd.Accepted.State == sched.LampNo:
		return end(exitRefused)
	case unanswered:
		return end(exitNoAnswer)
	case cmd.Changed.State == sched.LampNo:
		return end(exitUnchanged)
	case cmd.Changed.State != sched.LampYes || cmd.Accepted.State != sched.LampYes:
		return end(exitUnknown)
	}
	return nil
}

// meet waits until the source has told of the target.
func (o *options) meet(ctx context.Context, s *opened, w wanted) (*sched.TSGView, error) {
	if s.live != nil {
		select {
		case <-s.live.Ready():
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	// Details of what was just found follow within milliseconds; on a busy machine
	// a scan can be cut short, and the next one comes soon.
	until := time.Now().Add(3 * time.Second)
	for {
		row, err := w.find(s.board.Snapshot(sched.SnapshotOptions{}))
		if err == nil || time.Now().After(until) {
			return row, err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// recovered puts back what another run left, and says so.
func (o *options) recovered(ctx context.Context, c *actions.Controller) error {
	out, err := c.Recover(ctx)
	for _, x := range out {
		fmt.Fprintln(o.err, "tsgtop: left by another run: "+text.Clean(outcomeLine(x)))
	}
	if failed(out) {
		fmt.Fprintln(o.err, "tsgtop: some of that is still changed; see tsgtop restore")
	}
	if err != nil {
		return &exitError{exitOf(err), err}
	}
	return nil
}

// confirm shows what would be sent and asks. false without an error: nothing is
// to be sent, and that has been said.
func (o *options) confirm(ctx context.Context, p actions.Preview, f *commandFlags) (bool, error) {
	if f.dryRun {
		if o.json {
			cmd := sched.Command{Op: p.Op, Target: p.Target, Old: p.Old, New: p.New, Count: p.Count, Every: p.Every, Actuator: p.Actuator, Step: sched.StepRefused, Why: "a dry run: nothing was sent"}
			none := sched.Lamp{State: sched.LampUnknown, Why: "nothing was sent"}
			cmd.Ran, cmd.Accepted.Lamp, cmd.Accepted.Where, cmd.Changed.Lamp = none, none, "unknown", none
			return false, o.printCommand(cmd, nil, f)
		}
		o.printPreview(p)
		fmt.Fprintln(o.out, "a dry run: nothing was sent")
		return false, nil
	}
	if f.yes {
		for _, w := range p.Warnings {
			fmt.Fprintln(o.err, "tsgtop: warning: "+text.Clean(w))
		}
		return true, nil
	}
	if _, ok := o.in.(*os.File); ok && asksPeople(o.in.(*os.File)) {
		o.printPreview(p)
	}
	return o.askPeople(ctx)
}

// askPeople asks whoever is at the terminal. false without an error: the answer
// was no, and that has been said.
func (o *options) askPeople(ctx context.Context) (bool, error) {
	in, ok := o.in.(*os.File)
	if !ok || !asksPeople(in) {
		return false, fail(exitUsage, "standard input is no terminal, so that nobody can be asked: give --yes, or --dry-run to see what would be sent")
	}
	fmt.Fprint(o.err, "Send it? [y/N] ")
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(in).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case a := <-answer:
		if a == "y" || a == "yes" {
			return true, nil
		}
	case <-ctx.Done():
		fmt.Fprintln(o.err)
		return false, ctx.Err()
	}
	fmt.Fprintln(o.out, "nothing was sent")
	return false, nil
}

func asksPeople(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

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
	Time          string          `json:"time"`
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
		if cmd.Calls.ByStatus == nil {
			cmd.Calls.ByStatus = map[string]int{}
		}
		return writeJSON(o.out, commandOutput{SchemaVersion: sched.SchemaVersion, ID: cmd.ID, Time: timeText(cmd.Asked), Source: source, Op: cmd.Op,
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
