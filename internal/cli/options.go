package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// options are the flags that every command shares.
type options struct {
	env
	source    string
	gpus      string
	json      bool
	control   bool
	readOnly  bool
	keep      bool // of the screen: what was changed stays at its end
	theme     string
	ascii     bool
	noColor   bool
	fps       int
	config    string
	audit     string
	args      bool
	query     bool
	mouse     bool
	ready     string
	recordDir string // where the screen puts recordings; empty: the working directory

	look look
	settings
}

// register adds the common flags to the root command.
func (o *options) register(root *cobra.Command) {
	f := root.PersistentFlags()
	f.StringVar(&o.source, "source", "live", "what to look at: live, demo, sim[:KNOBS] or a recording's FILE")
	f.StringVar(&o.gpus, "gpu", "", "only these GPUs: indices as nvidia-smi counts, such as 0,2")
	f.BoolVar(&o.json, "json", false, "print JSON: one object, or one object a line for streams")
	f.BoolVar(&o.control, "control", false, "arm control: commands may change the GPU's schedule")
	f.BoolVar(&o.readOnly, "read-only", false, "never arm control")
	f.StringVar(&o.theme, "theme", "", "colour theme")
	f.BoolVar(&o.ascii, "ascii", false, "draw with ASCII only")
	f.BoolVar(&o.noColor, "no-color", false, "no colours (NO_COLOR does the same)")
	f.IntVar(&o.fps, "fps", 10, "frames a second")
	f.StringVar(&o.config, "config", "", "configuration to read instead of one's own")
	f.StringVar(&o.audit, "audit", "", "audit log")
	f.BoolVar(&o.args, "args", false, "show and record processes' arguments (they can hold secrets)")
	f.BoolVar(&o.query, "query", false, "let the screen ask the terminal what it can do (answers can arrive late over a slow line)")
	f.BoolVar(&o.mouse, "mouse", false, "take the mouse")
	f.StringVar(&o.ready, "ready-file", "", "create this file once the probes are attached (for scripts and tests)")
	f.StringVar(&o.recordDir, "record-dir", "", "folder of recordings that the screen makes (default: the working directory)")
	root.MarkFlagsMutuallyExclusive("control", "read-only")
}

// gpuSet gives the chosen GPU indices; nil stands for all.
func (o *options) gpuSet() (map[int]bool, error) {
	if o.gpus == "" {
		return nil, nil
	}
	set := map[int]bool{}
	for p := range strings.SplitSeq(o.gpus, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(p))
		if err != nil || n < 0 {
			return nil, fail(exitUsage, "--gpu %q: want indices as nvidia-smi counts them, such as 0,2", o.gpus)
		}
		set[n] = true
	}
	return set, nil
}

// instant reads --at: seconds or a duration from the recording's start, or a
// time of day.
func instant(s string) (offset time.Duration, absolute time.Time, err error) {
	if d, err := time.ParseDuration(s); err == nil {
		return d, time.Time{}, nil
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		return time.Duration(f * float64(time.Second)), time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05"} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return 0, t, nil
		}
	}
	return 0, time.Time{}, fmt.Errorf("%q: want seconds or a duration from the start (12, 12.5s, 1m), or a time (2006-01-02 15:04:05)", s)
}
