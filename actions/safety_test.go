package actions

import (
	"errors"
	"strings"
	"testing"
	"time"

	"tsgtop/internal/sched"
)

// Read-only until armed, and where it must never be armed.
func TestReadOnly(t *testing.T) {
	s := simulated(t, "", nil)
	if err := s.c.Arm(false); err != nil {
		t.Fatal(err)
	}
	if _, err := s.c.Submit(s.prepare(sched.OpTimeslice, 200)); err == nil || !strings.Contains(err.Error(), "not armed") {
		t.Errorf("sent without being armed: %v", err)
	}
	s = simulated(t, "", func(o *Options) { o.ReadOnly = "--read-only was given" })
	if err := s.c.Arm(true); err == nil || s.c.Armed() {
		t.Error("armed in spite of --read-only")
	}
	if _, err := s.c.Prepare(Intent{Op: sched.OpPreempt, Gen: s.gen(first)}); err == nil {
		t.Error("prepared in spite of --read-only")
	}
}

// A dry run shows everything and sends nothing.
func TestDryRun(t *testing.T) {
	s := simulated(t, "", func(o *Options) { o.DryRun = true })
	p := s.prepare(sched.OpTimeslice, 200)
	if p.Old == nil || *p.Old != 2048 || p.Cost == "" || !p.DryRun {
		t.Errorf("%+v", p)
	}
	cmd := s.command(p)
	if cmd.Step != sched.StepRefused || cmd.Calls.Sent != 0 || s.slice() != 2048 || s.holds() != 0 || lamps(cmd) != "unknown/unknown@unknown/unknown" {
		t.Errorf("%+v", cmd)
	}
}

// What is out of bounds is refused with the bounds.
func TestBounds(t *testing.T) {
	u := func(v uint64) *uint64 { return &v }
	for _, c := range []struct {
		in    Intent
		force bool
		want  string // part of the refusal; empty: taken
	}{
		{Intent{Op: sched.OpTimeslice, Value: u(0)}, false, "50 to 1000000"},
		{Intent{Op: sched.OpTimeslice, Value: u(49)}, false, "--force"},
		{Intent{Op: sched.OpTimeslice, Value: u(50)}, false, ""},
		{Intent{Op: sched.OpTimeslice, Value: u(1_000_000)}, false, ""},
		{Intent{Op: sched.OpTimeslice, Value: u(1_000_001)}, false, "--force"},
		{Intent{Op: sched.OpTimeslice, Value: u(0)}, true, "want 1 to"},
		{Intent{Op: sched.OpTimeslice, Value: u(1)}, true, ""},
		{Intent{Op: sched.OpTimeslice, Value: u(100_000_001)}, true, "want 1 to"},
		{Intent{Op: sched.OpTimeslice}, false, "needed"},
		{Intent{Op: sched.OpInterleave, Value: u(3)}, true, "low, medium or high"},
		{Intent{Op: sched.OpInterleave, Value: u(2)}, false, ""},
		{Intent{Op: sched.OpPreempt, Count: 10001}, true, "1 to 10000"},
		{Intent{Op: sched.OpPreempt, Count: 2, Every: time.Millisecond}, true, "1.5ms"},
		{Intent{Op: sched.OpPreempt, Count: 2}, false, ""},
		{Intent{Op: "reboot"}, true, "want preempt"},
	} {
		err := checkIntent(&c.in, c.force)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !errors.Is(err, ErrBounds) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v, force %v: %v, want %q", c.in, c.force, err, c.want)
		}
	}
}

// Rows that must not be acted on, and what a preview warns of.
func TestRefusalsAndWarnings(t *testing.T) {
	o := sched.Object{Client: 0xc1d00001, Handle: 0x5c000015}
	for name, v := range map[string]sched.TSGView{
		"context row":      {Context: true, Object: o, Process: sched.Process{PID: 3}},
		"kernel client":    {Object: o},
		"TSG of RM's own":  {Process: sched.Process{PID: 3}},
		"without a handle": {Object: sched.Object{Client: 1}, Process: sched.Process{PID: 3}},
	} {
		if err := checkRow(&v); !errors.Is(err, ErrUnfit) {
			t.Errorf("%s: %v", name, err)
		}
	}
	u := func(v uint64) *uint64 { return &v }
	row := sched.TSGView{MPS: true, Clients: 5, Process: sched.Process{PID: 3, User: "bob"}, Engine: sched.Ptr(uint32(11)), TimesliceFrom: sched.FromDefault}
	for value, want := range map[uint64][]string{
		8_000_000: {"5 clients", "user bob, not to you (ada)", "watchdog of 7 s", "copy engine", "1024 us"},
		200_000:   {"wait 200ms"},
		10:        {"shorter than a switch"},
		1024:      {"already"},
	} {
		all := strings.Join(warningsOf(Intent{Op: sched.OpTimeslice, Value: u(value)}, &row, u(1024), "ada", true), "\n")
		for _, w := range want {
			if !strings.Contains(all, w) {
				t.Errorf("timeslice %d: no warning of %q in\n%s", value, w, all)
			}
		}
	}
	if w := warningsOf(Intent{Op: sched.OpTimeslice, Value: u(500)}, &sched.TSGView{Process: sched.Process{PID: 3, User: "ada"}}, u(2048), "ada", true); len(w) != 0 {
		t.Errorf("warnings of nothing: %v", w)
	}
}
