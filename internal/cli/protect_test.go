//go:build linux

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"tsgtop/internal/sched"
	"tsgtop/internal/steer"
)

// Each way that protect can end, on a simulated GPU.
func TestProtectExitCodes(t *testing.T) {
	for _, c := range []struct {
		knobs, args string
		code        int
		want        string
	}{
		{"lc", "pid:479 --for 6s --yes", exitOK, "CHANGED   yes"},
		{"lc", "0:0:7 --for 6s --before 4s --be 200us --lc 1s --yes", exitOK, "LC at 1000000 us"},
		{"lc", "exe=train.py --only exe=serve --for 6s --yes", exitOK, "HELPED"},
		{"lc", "pid:479 --for 6s --yes", exitOK, "put back to 2048 us"},
		{"lc,timeslice=ignore", "pid:479 --before 4s --for 8s --yes", exitUnchanged, "CHANGED   no"},
		{"lc,timeslice=stub", "pid:479 --for 2s --yes", exitRefused, "a stub"},
		{"lc,timeslice=refuse", "pid:479 --for 2s --yes", exitRefused, "0x56"},
		{"lc,alone", "pid:479 --for 2s --yes", exitUnknown, "nothing to change"},
		{"lc", "exe=nobody --for 1s --yes", exitUnknown, "has not appeared"},
		{"lc", "pid:479 --before 1s --yes -- sh -c 'exit 4'", exitCommand, "exit 4"},
		{"lc", "pid:479 --dry-run", exitOK, "2048 us -> 50 us"},
		{"lc", "pid:479 --for 1s", exitUsage, "give --yes"},
		{"lc", "pid:4 --yes", exitTarget, "no compute TSG"},
		{"lc", "--yes", exitUsage, "TARGET is needed"},
		{"lc", "pid:479 pid:480 --yes", exitUsage, "one TARGET"},
		{"lc", "ex=train --yes", exitUsage, "exe=serve"},
		{"lc", "pid:479 --only usr=ada --yes", exitUsage, "did you mean user?"},
		{"lc", "pid:479 --be 10us --yes", exitUsage, "want 50 to 1000000 us"},
		{"lc", "pid:479 --be fast --yes", exitUsage, "whole microseconds"},
		{"lc", "pid:479 --yes -- /no/such/program", exitUsage, "/no/such/program"},
		{"lc", "pid:479 --yes --read-only", exitUsage, "--read-only"},
	} {
		args := append([]string{"protect"}, fields(c.args)...)
		at := len(args)
		for i, a := range args {
			if a == "--" {
				at = i
				break
			}
		}
		args = append(args[:at:at], append([]string{"--source", "sim:speed=20," + c.knobs}, args[at:]...)...)
		code, out, errs := tsgtop(args...)
		if code != c.code || !strings.Contains(out+errs, c.want) {
			t.Errorf("%s, %s: code %d, want %d and %q in\n%s%s", c.knobs, c.args, code, c.code, c.want, out, errs)
		}
	}
}

// fields splits as a shell would where only single quotes are used.
func fields(s string) (out []string) {
	for i, part := range strings.Split(s, "'") {
		if i%2 == 1 {
			out = append(out, part)
		} else {
			out = append(out, strings.Fields(part)...)
		}
	}
	return out
}

func TestProtectJSON(t *testing.T) {
	code, out, errs := tsgtop("protect", "pid:479", "--for", "6s", "--yes", "--json", "--source", "sim:speed=20,lc", "--probe", "while true; do echo lat 5; sleep 0.001; done")
	var r steer.Report
	if err := json.Unmarshal([]byte(out), &r); code != exitOK || err != nil || strings.Count(out, "\n") != 1 {
		t.Fatalf("code %d, %v\n%s%s", code, err, out, errs)
	}
	if r.SchemaVersion != 1 || r.Source != "sim" || r.BEus != 50 || r.LCus != nil || r.Changed.State != sched.LampYes || r.Totals.TSGs != 4 || len(r.Restored) != 4 {
		t.Errorf("%+v", r)
	}
	if len(r.Probe) != 1 || r.Probe[0].Metric != "lat" || r.Helped.State == sched.LampYes {
		t.Errorf("probe %+v, helped %+v", r.Probe, r.Helped)
	}
	if len(r.During.Procs) != 2 || r.During.Procs[0].Role != steer.LC || r.During.Procs[1].LeftFor == nil {
		t.Errorf("%+v", r.During)
	}
}

// Interrupted: what was set is put back; without --for that is how it ends.
func TestProtectInterrupted(t *testing.T) {
	for _, more := range []string{"", "--for 1h"} {
		ctx, cancel := context.WithTimeout(context.Background(), 400*time.Millisecond)
		var out, errs bytes.Buffer
		code := run(ctx, env{strings.NewReader(""), &out, &errs}, append([]string{"protect", "pid:479", "--yes", "--source", "sim:speed=20,lc"}, strings.Fields(more)...))
		cancel()
		want := exitOK
		if more != "" {
			want = exitInterrupted
		}
		if code != want || !strings.Contains(out.String(), "put back to 2048 us") {
			t.Errorf("%q: code %d, want %d\n%s%s", more, code, want, out.String(), errs.String())
		}
	}
}
