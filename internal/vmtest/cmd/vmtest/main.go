// Command vmtest boots Debian kernels under qemu and runs the tests that need a
// kernel of their own inside them: modules, kfuncs, the probes' higher rungs.
//
//	go run ./internal/vmtest/cmd/vmtest -k 6.12,6.1
//
// It ends with the line "N passed, N failed" and with 1 where something failed.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"tsgtop/internal/vmtest"
)

func main() {
	kernels := flag.String("k", "6.12,6.1", "kernels, comma-separated: a series, or series-arm64")
	run := flag.String("run", "", "only tests that match, as go test -run")
	pkgs := flag.String("pkg", "", "test packages for the guest, comma-separated (default: all that are meant for it)")
	timeout := flag.Duration("timeout", 10*time.Minute, "of each machine")
	memory := flag.Int("m", 512, "memory of the machine in MB")
	jobs := flag.Int("j", runtime.NumCPU(), "machines at a time")
	cover := flag.String("cover", "", "folder for coverage profiles")
	logs := flag.String("logs", "", "folder that keeps the logs of each kernel")
	again := flag.Bool("again", true, "try failed tests a second time, in a machine of their own, and say so: emulation is slow, and some tests wait for it")
	verbose := flag.Bool("v", false, "print the guest's whole output")
	fetch := flag.Bool("fetch", false, "only fetch the kernels into the cache")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	log := func(f string, a ...any) { fmt.Fprintf(os.Stderr, "vmtest: "+f+"\n", a...) }
	names := strings.Split(*kernels, ",")
	if *fetch {
		for _, name := range names {
			k, err := vmtest.EnsureKernel(name, log)
			if err != nil {
				log("%v", err)
				os.Exit(1)
			}
			log("%s is in %s", k.Release, k.Dir)
		}
		return
	}
	// A machine keeps one processor busy, so that several run side by side; what
	// each gave is printed in the order of the kernels.
	type outcome struct {
		r   *vmtest.Report
		err error
	}
	outcomes := make([]chan outcome, len(names))
	free := make(chan struct{}, max(1, *jobs))
	dirs := make([]string, len(names))
	for i, name := range names {
		o := vmtest.Options{Kernel: name, Run: *run, Args: flag.Args(), Timeout: *timeout, MemoryMB: *memory, Cover: *cover, Log: log}
		o.LogDir = filepath.Join(os.TempDir(), fmt.Sprintf("vmtest-%s-%d", name, os.Getpid()))
		if *logs != "" {
			o.LogDir = filepath.Join(*logs, name)
		}
		if slices.Contains(names[:i], name) { // again, to see whether it passes each time
			o.LogDir += fmt.Sprint(".", i)
		}
		if *pkgs != "" {
			o.Packages = strings.Split(*pkgs, ",")
		}
		dirs[i], outcomes[i] = o.LogDir, make(chan outcome, 1)
		go func() {
			free <- struct{}{}
			defer func() { <-free }()
			r, err := vmtest.Run(ctx, o)
			if err == nil && *again {
				r, err = vmtest.TryAgain(ctx, o, r)
			}
			outcomes[i] <- outcome{r, err}
		}()
	}
	passed, failed := 0, 0
	for i, name := range names {
		got := <-outcomes[i]
		if r := got.r; r != nil {
			passed += len(r.Passed)
			failed += len(r.Failed) + len(r.Problems)
			show(name, r, dirs[i], *verbose)
		}
		if got.err != nil {
			failed++
			fmt.Printf("%s: %v\n", name, got.err)
		}
		if *logs == "" && got.r != nil && got.r.OK() {
			_ = os.RemoveAll(dirs[i]) // only the logs of a failure are kept
		}
	}
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 || passed == 0 {
		os.Exit(1)
	}
}

func show(name string, r *vmtest.Report, dir string, verbose bool) {
	if verbose || !r.OK() {
		if b, err := os.ReadFile(filepath.Join(dir, "result.log")); err == nil {
			for line := range strings.Lines(string(b)) {
				if !strings.HasPrefix(line, "VMTEST FILE") {
					fmt.Print(strings.ReplaceAll(line, "\r", ""))
				}
			}
		}
	}
	for _, s := range r.Skipped {
		fmt.Printf("%s: SKIP %s\n", name, s)
	}
	for _, f := range r.Retried {
		fmt.Printf("%s: SECOND TRY %s passed, after it had failed\n", name, f)
	}
	for _, f := range r.Failed {
		fmt.Printf("%s: FAIL %s\n", name, f)
	}
	for _, p := range r.Problems {
		fmt.Printf("%s: PROBLEM %s\n", name, p)
	}
	fmt.Printf("%s: %d passed, %d failed, %d skipped\n", name, len(r.Passed), len(r.Failed)+len(r.Problems), len(r.Skipped))
}
