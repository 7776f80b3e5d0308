// Package cli is the command line of tsgtop: it builds the parts, hands them to
// each other and prints what needs no screen.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"tsgtop/actions"
	"tsgtop/probes/nvml"
)

// version is set by the linker.
var version = "unknown"

// env is what a run of the program talks to; tests put buffers there.
type env struct {
	in       io.Reader
	out, err io.Writer
}

// Main runs the program with the arguments after its name, and gives the exit
// code. A panic is caught here and printed: code 70.
func Main(args []string) (code int) {
	if nvml.IsChild() {
		return nvml.ChildMain()
	}
	if actions.IsWatch() {
		return actions.WatchMain()
	}
	dropRoot, boundRoot = giveUpRoot, giveUpParts
	e := env{os.Stdin, os.Stdout, os.Stderr}
	defer func() {
		if r := recover(); r != nil {
			fmt.Fprintf(e.err, "tsgtop: internal error: %s\n%s\nplease report this with the lines above\n", oneLine(fmt.Sprint(r)), debug.Stack())
			code = exitInternal
		}
	}()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	return run(ctx, e, args)
}

// run is Main without the process around it.
func run(ctx context.Context, e env, args []string) int {
	root := newRoot(e)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var own *exitError
	if ctx.Err() != nil && errors.Is(err, context.Canceled) && !errors.As(err, &own) {
		return exitInterrupted // whoever interrupted it knows
	}
	if err != nil && err.Error() != "" {
		printError(e.err, err)
	}
	return codeOf(err)
}

// newRoot builds the tree of commands.
func newRoot(e env) *cobra.Command {
	o := &options{env: e}
	root := &cobra.Command{
		Use:   "tsgtop",
		Short: "top, strace and a scalpel for the NVIDIA GPU scheduler",
		Long: `tsgtop shows who holds an NVIDIA GPU's engines and for how long, streams the
Resource Manager calls that shape the schedule, and lets an operator preempt or
re-timeslice one TSG. Each command answers three questions from three witnesses:
did the program run, did RM or the GSP accept it, did the hardware change.

Without a command it opens the live screen; where no NVIDIA driver answers it
says so and opens the built-in recording.`,
		Args:              cobra.NoArgs,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error { return o.configure(c) },
		RunE: func(c *cobra.Command, _ []string) error {
			return o.screen(c.Context())
		},
	}
	root.SetIn(e.in)
	root.SetOut(e.out)
	root.SetErr(e.err)
	root.CompletionOptions.HiddenDefaultCmd = false
	o.register(root)
	o.lookFlags(root)
	root.Flags().BoolVar(&o.keep, "keep", false, "keep what was changed when the screen is closed, and list it")
	root.AddCommand(
		newDemo(o), newLS(o), newCalls(o), newScore(o), newRecord(o), newReplay(o), newExport(o), newServe(o),
		newPreempt(o), newTimeslice(o), newInterleave(o), newProtect(o), newExperiment(o), newRestore(o),
		newDoctor(o), newVersion(o), newMan(root),
	)
	return root
}
