//go:build linux

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tsgtop/actions"
	"tsgtop/actions/trials"
	"tsgtop/internal/sched"
	"tsgtop/internal/steer"
	"tsgtop/internal/text"
	"tsgtop/internal/trial"
)

// experimentFlags are those of experiment.
type experimentFlags struct {
	controlOptions
	builtin bool
	targets []string
	probe   string
	stopIf  []string
	seed    uint64
	repeats int
	measure time.Duration
	out     string
	share   string
	yes     bool
}

func newExperiment(o *options) *cobra.Command {
	f := &experimentFlags{}
	c := &cobra.Command{
		Use:   "experiment PLAN.toml|--builtin",
		Short: "Find out by experiment what scheduling knobs do here",
		Long: `experiment runs the arms of a plan (nothing; another timeslice or interleave level;
preempts at a rate; roles) on its targets, each several times, in interleaved or
random order, and puts everything back between two runs. It measures from the GPU's
context-switch trace, and with --probe from numbers that a workload prints. The
report says for each arm how many commands were sent, were accepted, and by whom;
whether the hardware changed; the difference from the baseline with its interval;
and what could not be told.

--builtin asks the three questions of every chip: two timeslices 32 times apart,
interleave low and high, and preempting with what it costs. Something has to compete
with the target, with kernels longer than its timeslice. --share writes that
answer to a small file for docs/chips.md, with nothing personal in it.

A bound of --stop-if, such as "wait_p99_us > 5000" or "share < 0.5x" (times the
baseline's), stops an arm that breaks it; it is not run again.

It ends with 0 when the plan came to its end, 5 when no arm could be told anything
of, 7 when a target ended, 8 when something could not be put back.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			p, err := o.plan(c, args, f)
			if err != nil {
				return err
			}
			return o.experiment(c.Context(), p, f)
		},
	}
	fl := c.Flags()
	fl.BoolVar(&f.builtin, "builtin", false, "the built-in plan")
	fl.StringArrayVar(&f.targets, "target", nil, "TARGET instead of the plan's (built-in plan: the busiest that competes)")
	fl.StringVar(&f.probe, "probe", "", "command that prints the workload's own numbers, by the shell")
	fl.StringArrayVar(&f.stopIf, "stop-if", nil, "bound that an arm may not break")
	fl.Uint64Var(&f.seed, "seed", 1, "seed of the order")
	fl.IntVar(&f.repeats, "repeats", 5, "rounds")
	fl.DurationVar(&f.measure, "measure", 1500*time.Millisecond, "how long one run is measured")
	fl.StringVar(&f.out, "out", "", "folder for report.md, report.json and plot.svg")
	fl.StringVar(&f.share, "share", "", "file for the built-in plan's answer, to be sent in")
	fl.BoolVar(&f.yes, "yes", false, "do not ask")
	fl.BoolVar(&f.dryRun, "dry-run", false, "show the plan, send nothing")
	fl.StringVar(&f.actuator, "actuator", "auto", "the way commands go: auto, kfunc or fd")
	fl.BoolVar(&f.force, "force", false, fmt.Sprintf("allow timeslices from %d to %d us", actions.MinForcedUS, actions.MaxForcedUS))
	return c
}

// maxPlan bounds a plan's file, in bytes.
const maxPlan = 64 << 10

// plan reads the plan, and what the flags say over it.
func (o *options) plan(c *cobra.Command, args []string, f *experimentFlags) (p trial.Plan, err error) {
	switch {
	case f.builtin == (len(args) > 0):
		return p, fail(exitUsage, "experiment: give a plan's file, or --builtin")
	case f.share != "" && !f.builtin:
		return p, fail(exitUsage, "experiment: --share is for --builtin: only its result can be compared with others'")
	case f.builtin:
		p = trial.Builtin()
	default:
		b, err := o.readPlan(args[0])
		if err != nil {
			return p, fail(exitUsage, "plan: %w", err)
		}
		if p, err = trial.Parse(b, args[0]); err != nil {
			return p, fail(exitUsage, "plan: %w", err)
		}
	}
	given := c.Flags().Changed
	if given("seed") {
		p.Seed = f.seed
	}
	if given("repeats") {
		p.Repeats = f.repeats
	}
	if given("measure") {
		p.Measure = f.measure
	}
	if p.Repeats < 3 || p.Repeats > 1000 || p.Measure < 200*time.Millisecond {
		return p, fail(exitUsage, "--repeats and --measure: want 3 to 1000 rounds of 200ms or more: fewer give no interval")
	}
	for _, s := range f.stopIf {
		b, err := trial.ParseBound(s)
		if err != nil {
			return p, fail(exitUsage, "--stop-if: %w", err)
		}
		p.StopIf = append(p.StopIf, b)
	}
	if len(f.targets) > 0 {
		p.Targets = f.targets
	}
	lo, hi := uint64(actions.MinTimesliceUS), uint64(actions.MaxTimesliceUS)
	if f.force {
		lo, hi = actions.MinForcedUS, actions.MaxForcedUS
	}
	for _, a := range p.Arms {
		for _, us := range []uint64{a.Timeslice, a.BE, a.LC} {
			if us != 0 && (us < lo || us > hi) {
				return p, fail(exitUsage, "plan: arm %s: timeslice %d us: want %d to %d us", text.Clean(a.Name), us, lo, hi)
			}
		}
	}
	return p, nil
}

// readPlan reads the file with the operator's rights: it is no more root's than
// a configuration is.
func (o *options) readPlan(path string) (b []byte, err error) {
	err = o.loader.Operator.Do(func() error {
		file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		defer file.Close()
		if st, err := file.Stat(); err != nil || !st.Mode().IsRegular() {
			return fmt.Errorf("%s is no regular file", path)
		}
		b, err = io.ReadAll(io.LimitReader(file, maxPlan+1))
		return err
	})
	if err == nil && len(b) > maxPlan {
		err = fmt.Errorf("%s: longer than %d bytes", path, maxPlan)
	}
	return b, err
}

func (o *options) experiment(ctx context.Context, p trial.Plan, f *experimentFlags) error {
	a, err := o.openActing(ctx, "experiment", f.controlOptions)
	if err != nil {
		return err
	}
	defer a.close()
	targets, err := o.experimentTargets(ctx, a, &p)
	if err != nil {
		return err
	}
	if yes, err := o.confirmPlan(ctx, p, targets, f); err != nil || !yes {
		return err
	}
	files, err := o.reportFiles(f)
	if err != nil {
		return err
	}
	defer files.close()
	if err := a.c.Arm(true); err != nil {
		return &exitError{exitPrivilege, err}
	}
	eo := trials.Options{Board: a.s.board, Keeper: a.c.Keeper(nil), Clock: a.clock, Plan: p, Targets: targets, Machine: machineOf(a, targets[0].GPU),
		Say: func(l string) { fmt.Fprintln(o.err, "tsgtop: "+text.Clean(l)) }}
	stop, err := o.probe(a, f.probe, &eo.Readings)
	if err != nil {
		return err
	}
	r, _, runErr := trials.Run(ctx, eo)
	stop()
	outcomes := a.c.Close(context.Background())
	for _, x := range outcomes {
		fmt.Fprintln(o.err, "tsgtop: "+text.Clean(outcomeLine(x)))
	}
	if o.json {
		err = writeJSON(o.out, r)
	} else if f.out == "" {
		r.Markdown(o.out, "")
	} else {
		r.Summary(o.out)
	}
	if werr := files.write(r); err == nil {
		err = werr
	}
	return experimentCode(r, runErr, err, failed(outcomes))
}

func experimentCode(r *trial.Report, runErr, writeErr error, left bool) error {
	switch {
	case left, errors.Is(runErr, trials.ErrRestore):
		return &exitError{exitRestore, runErr}
	case errors.Is(runErr, trials.ErrGone):
		return &exitError{exitTarget, runErr}
	case runErr != nil:
		return &exitError{code: exitInterrupted}
	case writeErr != nil:
		return writeErr
	}
	for i := range r.Arms {
		if s := r.Arms[i].Changed.State; s == sched.LampYes || s == sched.LampNo {
			return nil
		}
	}
	return &exitError{code: exitUnknown}
}

// machineOf is what the experiment runs on.
func machineOf(a *acting, gpu int) trial.Machine {
	m := trial.Machine{Tool: version, Simulated: a.s.sim != nil}
	for _, g := range a.s.board.Snapshot(sched.SnapshotOptions{}).GPUs {
		if g.Index == gpu {
			m.Chip, m.Driver, m.Open, m.GSP = text.Clean(g.Name), text.Clean(g.Driver), g.Open, g.GSP
		}
	}
	return m
}

// experimentTargets looks the targets up: those of the plan, or the busiest that
// competes.
func (o *options) experimentTargets(ctx context.Context, a *acting, p *trial.Plan) ([]trials.Target, error) {
	var out []trials.Target
	add := func(name string, v *sched.TSGView) {
		t := trials.Target{Text: name, Gen: v.Gen, Proc: steer.ProcOf(v), GPU: max(0, v.ID.GPU)}
		if k, err := a.c.Keeper(nil).Timeslice(ctx, v); err == nil {
			t.Timeslice = k
		}
		out = append(out, t)
	}
	for _, s := range p.Targets {
		w, err := parseTarget(s)
		if err != nil {
			return nil, err
		}
		v, err := o.meet(ctx, a.s, w)
		if err != nil {
			return nil, err
		}
		add(s, v)
	}
	if len(out) > 0 {
		return out, nil
	}
	if err := a.clock.Sleep(ctx, time.Second); err != nil { // to see who competes
		return nil, err
	}
	snap := a.s.board.Snapshot(sched.SnapshotOptions{})
	var best *sched.TSGView
	for i := range snap.TSGs {
		v := &snap.TSGs[i]
		if v.Context || v.Process.PID <= 0 || v.Object.Handle == 0 || !steer.IsCompute(v) {
			continue
		}
		if best == nil || v.Score[sched.WindowAll].Turns > best.Score[sched.WindowAll].Turns {
			best = v
		}
	}
	if best == nil {
		return nil, fail(exitTarget, "experiment: there is no compute TSG; start two processes that keep the GPU busy")
	}
	p.Targets = []string{best.ID.String()}
	add(best.ID.String(), best)
	return out, nil
}

// confirmPlan shows what would be done, and asks.
func (o *options) confirmPlan(ctx context.Context, p trial.Plan, targets []trials.Target, f *experimentFlags) (bool, error) {
	if f.dryRun || !f.yes {
		fmt.Fprintf(o.err, "plan %s: %d rounds, %s, seed %d, about %v\n", text.Clean(p.Name), p.Repeats, p.Order, p.Seed, p.Takes().Round(time.Second))
		for _, t := range targets {
			fmt.Fprintf(o.err, "  on %s, pid %d\n", text.Clean(t.Text), t.Proc.PID)
		}
		for _, a := range p.Arms {
			fmt.Fprintf(o.err, "  arm %s: %s\n", text.Clean(a.Name), a.Does())
		}
		for _, b := range p.StopIf {
			fmt.Fprintf(o.err, "  an arm is stopped if %s\n", text.Clean(b.String()))
		}
	}
	if f.dryRun {
		fmt.Fprintln(o.out, "a dry run: nothing was sent")
		return false, nil
	}
	return o.ask(ctx, f.yes)
}

// reportFiles are the files that a report goes to, made before anything is sent.
type reportFiles struct {
	md, json, svg, share *os.File
}

// reportFiles makes them with the operator's rights, and none that is there.
func (o *options) reportFiles(f *experimentFlags) (*reportFiles, error) {
	r := &reportFiles{}
	create := func(path string, at **os.File) error {
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o644)
		*at = file
		return err
	}
	err := o.loader.Operator.Do(func() error {
		if f.out != "" {
			if err := os.MkdirAll(f.out, 0o755); err != nil {
				return err
			}
			for name, at := range map[string]**os.File{"report.md": &r.md, "report.json": &r.json, "plot.svg": &r.svg} {
				if err := create(filepath.Join(f.out, name), at); err != nil {
					return err
				}
			}
		}
		if f.share != "" {
			return create(f.share, &r.share)
		}
		return nil
	})
	if err != nil {
		r.close()
		return nil, fail(exitUsage, "report: %w", err)
	}
	return r, nil
}

func (r *reportFiles) close() {
	for _, f := range []*os.File{r.md, r.json, r.svg, r.share} {
		if f != nil {
			f.Close()
		}
	}
}

// write writes the report to them.
func (r *reportFiles) write(rep *trial.Report) error {
	for _, x := range []struct {
		file *os.File
		fill func(io.Writer) error
	}{
		{r.md, func(w io.Writer) error { rep.Markdown(w, "plot.svg"); return nil }},
		{r.svg, func(w io.Writer) error { rep.SVG(w); return nil }},
		{r.json, func(w io.Writer) error { return indented(w, rep) }},
		{r.share, func(w io.Writer) error {
			s, err := rep.Share()
			if err != nil {
				return err
			}
			return indented(w, s)
		}},
	} {
		if x.file == nil {
			continue
		}
		var b bytes.Buffer
		err := x.fill(&b)
		if err == nil {
			_, err = x.file.Write(b.Bytes())
		}
		if err != nil {
			return fail(exitUsage, "report %s: %w", x.file.Name(), err)
		}
	}
	return nil
}

func indented(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
