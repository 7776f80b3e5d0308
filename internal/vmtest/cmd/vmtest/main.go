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
	"strings"
	"time"

	"tsgtop/internal/vmtest"
)

func main() {
	kernels := flag.String("k", "6.12,6.1", "kernels, comma-separated: a series, or series-arm64")
	run := flag.String("run", "", "only tests that match, as go test -run")
	pkgs := flag.String("pkg", "", "test packages for the guest, comma-separated (default: all that are meant for it)")
	timeout := flag.Duration("timeout", 5*time.Minute, "of each machine")
	memory := flag.Int("m", 512, "memory of the machine in MB")
	cover := flag.String("cover", "", "folder for coverage profiles")
	logs := flag.String("logs", "", "folder that keeps the logs of each kernel")
	verbose := flag.Bool("v", false, "print the guest's whole output")
	fetch := flag.Bool("fetch", false, "only fetch the kernels into the cache")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	log := func(f string, a ...any) { fmt.Fprintf(os.Stderr, "vmtest: "+f+"\n", a...) }
	passed, failed := 0, 0
	for name := range strings.SplitSeq(*kernels, ",") {
		if *fetch {
			k, err := vmtest.EnsureKernel(name, log)
			if err != nil {
				log("%v", err)
				os.Exit(1)
			}
			log("%s is in %s", k.Release, k.Dir)
			continue
		}
		o := vmtest.Options{Kernel: name, Run: *run, Args: flag.Args(), Timeout: *timeout, MemoryMB: *memory, Cover: *cover, Log: log}
		o.LogDir = filepath.Join(os.TempDir(), fmt.Sprintf("vmtest-%s-%d", name, os.Getpid()))
		if *logs != "" {
			o.LogDir = filepath.Join(*logs, name)
		}
		if *pkgs != "" {
			o.Packages = strings.Split(*pkgs, ",")
		}
		r, err := vmtest.Run(ctx, o)
		if r != nil {
			passed += len(r.Passed)
			failed += len(r.Failed) + len(r.Problems)
			show(name, r, o.LogDir, *verbose)
		}
		if err != nil {
			failed++
			fmt.Printf("%s: %v\n", name, err)
		}
		if *logs == "" && r != nil && r.OK() {
			_ = os.RemoveAll(o.LogDir) // only the logs of a failure are kept
		}
	}
	if *fetch {
		return
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
	for _, f := range r.Failed {
		fmt.Printf("%s: FAIL %s\n", name, f)
	}
	for _, p := range r.Problems {
		fmt.Printf("%s: PROBLEM %s\n", name, p)
	}
	fmt.Printf("%s: %d passed, %d failed, %d skipped\n", name, len(r.Passed), len(r.Failed)+len(r.Problems), len(r.Skipped))
}
