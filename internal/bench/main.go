// Command bench measures the whole program as an operator has it: built, in a
// terminal of 120x40, at ten frames a second. It prints what each costs of a
// core, of memory and of the line, and how soon the first screen is there.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"
)

// subject is one program to measure.
type subject struct {
	name string
	args []string
	full []string // what the first full screen holds
}

func main() {
	span := flag.Duration("for", 12*time.Second, "how long each is looked at")
	tags := flag.String("tags", "", "build tags")
	only := flag.String("only", "", "only programs whose line contains this")
	flag.Parse()
	if err := run(*span, *tags, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(span time.Duration, tags, only string) error {
	dir, err := os.MkdirTemp("", "tsgtop-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, "tsgtop")
	if out, err := exec.Command("go", "build", "-tags", tags, "-o", bin, "tsgtop").CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	busy, calm := filepath.Join(dir, "busy.tsg.zst"), filepath.Join(dir, "calm.tsg.zst")
	if err := crowd(busy, 200, 5000, span+3*time.Second); err != nil {
		return fmt.Errorf("make a recording of 200 TSGs: %w", err)
	}
	if err := crowd(calm, 2, 450, span+3*time.Second); err != nil {
		return fmt.Errorf("make a recording of 2 TSGs: %w", err)
	}
	full := []string{"RUNLIST/TSG", "worker-", "quit"}
	subjects := []subject{
		{"replay: 200 TSGs, 5000 switches/s", []string{bin, "replay", busy}, full},
		{"replay: 2 TSGs, 450 switches/s", []string{bin, "replay", calm}, full},
		{"simulated GPU: 2 TSGs", []string{bin, "demo", "--sim"}, []string{"RUNLIST/TSG", "train.py", "quit"}},
	}
	for _, other := range []subject{
		{"nvtop -d 1 (tenths of a second)", []string{"nvtop", "-d", "1"}, nil},
		{"top -d 0.1", []string{"top", "-d", "0.1"}, []string{"PID"}},
	} {
		if path, err := exec.LookPath(other.args[0]); err == nil {
			other.args[0] = path
			subjects = append(subjects, other)
		}
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "120x40, 10 frames/s\tCPU %\tRSS MB\tat half time\tat the end\tat most\tKB/s to the terminal\tfirst screen ms\t")
	for _, s := range subjects {
		if !strings.Contains(s.name, only) {
			continue
		}
		r, err := measure(s, span)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		first := "-"
		if r.first > 0 {
			first = fmt.Sprintf("%.0f", float64(r.first.Microseconds())/1e3)
		}
		fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.2f\t%s\t\n", s.name, r.cpu*100, r.early/1e6, r.half/1e6, r.rss/1e6, r.mostRSS/1e6, r.bytes/1e3, first)
	}
	fmt.Fprintln(w, "to reach, with 200 TSGs\t3.0\t60\t60\t60\t60\t5.00\t200\t")
	return w.Flush()
}
