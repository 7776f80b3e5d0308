//go:build linux

package cli

import (
	"bufio"
	"context"
	"fmt"
	"os"
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
