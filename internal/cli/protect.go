//go:build linux

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tsgtop/actions"
	"tsgtop/actions/steward"
	"tsgtop/internal/sched"
	"tsgtop/internal/steer"
	"tsgtop/internal/text"
	"tsgtop/internal/workload"
)

// exitCommand is the code where all went well but for the command that was run.
const exitCommand = 10

// protectFlags are those of protect.
type protectFlags struct {
	controlOptions
	yes         bool
	be, lc      string
	only        []string
	hold        time.Duration
	before      time.Duration
	starveAfter time.Duration
	lift        bool
	probe       string
}

func newProtect(o *options) *cobra.Command {
	f := &protectFlags{}
	c := &cobra.Command{
		Use:   "protect TARGET [-- COMMAND ARGS...]",
		Short: "Let a latency-critical process have the GPU when it needs it",
		Long: `protect gives the best-effort processes (BE) that share a runlist with the
latency-critical TARGET (LC) a short timeslice, so that they leave the engine soon
when LC comes. It holds that, for TSGs too that appear later or whose process sets
its own, until --for is over, COMMAND has ended, or Ctrl-C; then it puts everything
back, also when it is killed, and reports what the trace says, before against
during.

TARGET is pid:N, GPU:RUNLIST:TSG, or a rule: exe=GLOB, user=NAME or unit=GLOB, which
also fits processes that start later. BE are all others on LC's runlists, or with
--only those that fit a rule.

The trace cannot see when LC's work was submitted. Where the workload can print its
own latency, --probe runs what prints it: one number a line, or a name and a number.

` + strings.TrimPrefix(commandLong[strings.Index(commandLong, "Three lamps"):], "\n") + `
10: COMMAND ended with an error.`,
		Args: func(c *cobra.Command, args []string) error {
			if n := c.ArgsLenAtDash(); n > 1 || n < 0 && len(args) > 1 {
				return fail(exitUsage, "protect takes one TARGET; what is to be run stands after --")
			}
			if len(args) == 0 || c.ArgsLenAtDash() == 0 {
				return fail(exitUsage, "protect: a TARGET is needed, such as pid:479 or exe=serve")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return o.protect(c.Context(), args[0], args[1:], f) },
	}
	fl := c.Flags()
	fl.StringVar(&f.be, "be", "", "timeslice of best-effort processes, such as 200us (default: 50us; where several compete among themselves, the shortest that costs them 1.5% of their work; never longer than what they have)")
	fl.StringVar(&f.lc, "lc", "", "timeslice of latency-critical processes (default: as they have it)")
	fl.StringArrayVar(&f.only, "only", nil, "rule: only these are best-effort; several: any of them")
	fl.DurationVar(&f.hold, "for", 0, "hold it that long")
	fl.DurationVar(&f.before, "before", 2*time.Second, "how long to look before anything is changed, to compare with")
	fl.DurationVar(&f.starveAfter, "starve-after", steward.StarveAfter, "a best-effort process without a turn for longer while it had work starves; given: its role is then lifted")
	fl.StringVar(&f.probe, "probe", "", "command that prints the workload's own latency, by the shell")
	fl.BoolVar(&f.yes, "yes", false, "do not ask")
	fl.BoolVar(&f.dryRun, "dry-run", false, "show everything, send nothing")
	fl.StringVar(&f.actuator, "actuator", "auto", "the way commands go: auto, kfunc or fd")
	fl.BoolVar(&f.force, "force", false, fmt.Sprintf("allow timeslices from %d to %d us", actions.MinForcedUS, actions.MaxForcedUS))
	c.PreRun = func(c *cobra.Command, _ []string) { f.lift = c.Flags().Changed("starve-after") }
	return c
}

// roles are what the flags ask for, but for a target that is looked up.
func (f *protectFlags) roles(target string) (*steer.Roles, *wanted, error) {
	r := &steer.Roles{}
	var err error
	for _, d := range []struct {
		name, text string
		us         *uint64
	}{{"be", f.be, &r.BE}, {"lc", f.lc, &r.LC}} {
		if d.text == "" {
			continue
		}
		if *d.us, err = steer.Timeslice(d.text); err != nil {
			return nil, nil, fail(exitUsage, "--%s: %w", d.name, err)
		}
		lo, hi := uint64(actions.MinTimesliceUS), uint64(actions.MaxTimesliceUS)
		if f.force {
			lo, hi = actions.MinForcedUS, actions.MaxForcedUS
		}
		if *d.us < lo || *d.us > hi {
			return nil, nil, fail(exitUsage, "--%s %s: want %d to %d us", d.name, d.text, lo, hi)
		}
	}
	var meant *wanted
	if w, err := parseTarget(target); err == nil {
		meant = &w
	} else if word, _, _ := strings.Cut(target, "="); !slices.Contains([]string{"exe", "user", "unit"}, word) || !strings.Contains(target, "=") {
		return nil, nil, fail(exitUsage, "target %q: want GPU:RUNLIST:TSG, pid:479, or a rule such as exe=serve, user=ada or unit=docker:api", target)
	} else {
		rule, err := steer.ParseRule(target)
		if err != nil {
			return nil, nil, fail(exitUsage, "target: %w", err)
		}
		rule.Role = steer.LC
		r.Rules = append(r.Rules, rule)
	}
	for _, only := range f.only {
		rule, err := steer.ParseRule(only)
		if err != nil {
			return nil, nil, fail(exitUsage, "--only: %w", err)
		}
		rule.Role = steer.BE
		r.Rules = append(r.Rules, rule)
	}
	if len(f.only) == 0 {
		r.Rules = append(r.Rules, steer.Rule{Role: steer.BE, Others: true})
	}
	return r, meant, nil
}

func (o *options) protect(ctx context.Context, target string, command []string, f *protectFlags) error {
	roles, meant, err := f.roles(target)
	if err != nil {
		return err
	}
	if f.hold < 0 || f.before < 0 || f.starveAfter <= 0 {
		return fail(exitUsage, "--for, --before and --starve-after: want more than 0")
	}
	a, err := o.openActing(ctx, "protect", f.controlOptions)
	if err != nil {
		return err
	}
	defer a.close()
	gpu := 0
	if meant != nil {
		row, err := o.meet(ctx, a.s, *meant)
		if err != nil {
			return err
		}
		roles.Mark(steer.ProcOf(row), steer.LC)
		gpu = row.ID.GPU
	} else if gpu, err = o.meetRule(ctx, a.s, roles); err != nil {
		return err
	}
	if yes, err := o.confirmRoles(ctx, a, roles, f); err != nil || !yes {
		return err
	}
	if err := a.c.Arm(true); err != nil {
		return &exitError{exitPrivilege, err}
	}
	return o.protected(ctx, a, roles, gpu, target, command, f)
}

// meetRule waits until the source has told of what there is, and gives the GPU of
// the first process that a rule makes latency-critical; 0 where there is none yet.
func (o *options) meetRule(ctx context.Context, s *opened, roles *steer.Roles) (int, error) {
	if s.live != nil {
		select {
		case <-s.live.Ready():
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	until := time.Now().Add(time.Second)
	for {
		snap := s.board.Snapshot(sched.SnapshotOptions{})
		as := roles.Assign(snap)
		for _, m := range as.Members {
			if m.Role != steer.LC {
				continue
			}
			for i := range snap.TSGs {
				if v := &snap.TSGs[i]; steer.ProcOf(v) == m.Proc && steer.IsCompute(v) && v.ID.GPU != sched.Unknown {
					return v.ID.GPU, nil
				}
			}
		}
		if time.Now().After(until) {
			return 0, nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// confirmRoles shows who would get what, and asks.
func (o *options) confirmRoles(ctx context.Context, a *acting, roles *steer.Roles, f *protectFlags) (bool, error) {
	show := f.dryRun || !f.yes
	if show {
		as := roles.Assign(a.s.board.Snapshot(sched.SnapshotOptions{}))
		for _, m := range as.Members {
			fmt.Fprintln(o.err, text.Clean(fmt.Sprintf("%s  pid %d  %s  user %s  by %s, %d TSGs on shared runlists", strings.ToUpper(string(m.Role)), m.Proc.PID, m.Process.Exe, m.Process.User, m.By, m.TSGs)))
		}
		for _, w := range as.Wants {
			fmt.Fprintf(o.err, "    timeslice of TSG %s, pid %d: %s\n", w.Row.ID, w.Proc.PID, change(sched.OpTimeslice, w.Row.Timeslice, &w.US, 0))
		}
		if line := steer.Choices(as.Competing, as.LongestBE()); line != "" && len(as.Wants) > 0 {
			fmt.Fprintln(o.err, "    "+line)
		}
		for _, n := range as.Notes {
			fmt.Fprintln(o.err, "    "+text.Clean(n))
		}
		fmt.Fprintln(o.err, "put back at the end, and if tsgtop is killed; by actuator "+a.c.ActuatorName())
	}
	if f.dryRun {
		fmt.Fprintln(o.out, "a dry run: nothing was sent")
		return false, nil
	}
	return o.ask(ctx, f.yes)
}

// protected holds the roles, and reports.
func (o *options) protected(ctx context.Context, a *acting, roles *steer.Roles, gpu int, target string, command []string, f *protectFlags) error {
	lines := o.out
	if o.json || len(command) > 0 {
		lines = o.err
	}
	say := func(l string) { fmt.Fprintln(lines, text.Clean(l)) }
	st := steward.New(steward.Options{Board: a.s.board, Keeper: a.c.Keeper(nil), Clock: a.clock, Roles: roles, StarveAfter: f.starveAfter, Lift: f.lift, Say: say})
	defer st.Close()
	p := &steward.Protection{Steward: st, Clock: a.clock, GPU: gpu, Before: f.before, For: f.hold, Line: say}
	stop, err := o.probe(a, f.probe, &p.Readings)
	if err != nil {
		return err
	}
	defer stop()
	var run *workload.Command
	if len(command) > 0 {
		if run, err = workload.StartCommand(command, o.in, shared(o.out), shared(o.err)); err != nil {
			return fail(exitUsage, "%w", err)
		}
		p.Done = run.Done()
	}
	r := p.Run(ctx)
	interrupted := ctx.Err() != nil && (f.hold > 0 || run != nil)
	if run != nil {
		enough, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		run.Stop(enough)
		cancel()
		r.Command = sched.Ptr(run.End())
	}
	outcomes := append(st.Outcomes(), a.c.Close(context.Background())...)
	r.Target, r.Source, r.BEus = target, sourceKind(o.source), roles.BE
	if r.BEus == 0 {
		r.BEus = autoOf(outcomes)
	}
	if roles.LC > 0 {
		r.LCus = &roles.LC
	}
	for _, x := range outcomes {
		if x.State != actions.OutcomeGone {
			r.Restored = append(r.Restored, outcomeLine(x))
		}
	}
	if o.json {
		err = writeJSON(o.out, r)
	} else {
		r.Write(o.out)
	}
	if err != nil {
		return err
	}
	return protectCode(r, outcomes, interrupted)
}

// autoOf is the timeslice that the roles came to by themselves: of the latest; 0:
// they came to none.
func autoOf(outcomes []actions.Outcome) uint64 {
	for _, x := range slices.Backward(outcomes) {
		if x.Was != nil && x.Target.Runlist == 0 {
			return *x.Was
		}
	}
	return 0
}

func sourceKind(source string) string {
	if k, _, ok := strings.Cut(source, ":"); ok && k == "sim" {
		return k
	}
	return source
}

// protectCode is the exit code: the first that applies.
func protectCode(r *steer.Report, outcomes []actions.Outcome, interrupted bool) error {
	end := func(code int) error { return &exitError{code: code} }
	pending := slices.ContainsFunc(outcomes, func(o actions.Outcome) bool { return o.State == actions.OutcomePending })
	switch {
	case failed(outcomes):
		return end(exitRestore)
	case interrupted:
		return end(exitInterrupted)
	case r.Totals.Calls > 0 && r.Ran.State != sched.LampYes:
		return end(exitNotRun)
	case r.Accepted.State == sched.LampNo:
		return end(exitRefused)
	case pending:
		return end(exitNoAnswer)
	case r.Command != nil && r.Command.Code != 0:
		return end(exitCommand)
	case r.Changed.State == sched.LampNo:
		return end(exitUnchanged)
	case r.Changed.State != sched.LampYes || r.Accepted.State != sched.LampYes:
		return end(exitUnknown)
	}
	return nil
}
