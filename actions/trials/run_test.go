package trials

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"tsgtop/actions"
	"tsgtop/actions/journal"
	"tsgtop/internal/sched"
	"tsgtop/internal/sim"
	"tsgtop/internal/sim/simtest"
	"tsgtop/internal/steer"
	"tsgtop/internal/trial"
)

// bench is a simulated GPU with an experiment on it.
type bench struct {
	*simtest.GPU
	t     *testing.T
	m     *sim.Machine
	b     *sched.Board
	j     *journal.Journal
	c     *actions.Controller
	o     Options
	lines []string
}

func simulated(t *testing.T, knobs string) *bench {
	t.Helper()
	g := simtest.New(t, knobs)
	s := &bench{GPU: g, t: t, m: g.Machine, b: g.Board, j: journal.Memory()}
	self, err := journal.Self()
	if err != nil {
		t.Fatal(err)
	}
	s.c = actions.New(actions.Options{Board: s.b, Actuator: actions.NewSimulated(s.m), Journal: s.j, Clock: s, Self: self, Me: "ada"})
	if err := s.c.Arm(true); err != nil {
		t.Fatal(err)
	}
	s.Sleep(context.Background(), 300*time.Millisecond)
	p := trial.Builtin()
	p.Repeats, p.Measure, p.WarmUp = 4, time.Second, 200*time.Millisecond
	s.o = Options{Board: s.b, Keeper: s.c.Keeper(nil), Clock: s, Plan: p, Say: func(l string) { s.lines = append(s.lines, l) },
		Machine: trial.Machine{Chip: "Simulated H200", Driver: "580.159.04", Open: sched.Ptr(true), GSP: sched.Ptr(true), Tool: "test", Simulated: true}}
	snap := s.b.Snapshot(sched.SnapshotOptions{})
	for i := range snap.TSGs {
		if v := &snap.TSGs[i]; v.ID == (sched.TSGID{GPU: 0, Runlist: 0, TSG: 7}) {
			s.o.Targets = []Target{{Text: "0:0:7", Gen: v.Gen, Proc: steer.ProcOf(v), Timeslice: v.Timeslice}}
		}
	}
	return s
}

func (s *bench) run() (*trial.Report, error) {
	s.t.Helper()
	r, out, err := Run(context.Background(), s.o)
	st, jerr := s.j.State()
	if jerr != nil || len(st.Entries) > 0 {
		s.t.Errorf("the journal has %d entries after the experiment, %v", len(st.Entries), jerr)
	}
	for _, o := range out {
		if o.State == actions.OutcomeFailed {
			s.t.Errorf("%s", o)
		}
	}
	return r, err
}

func verdicts(r *trial.Report) string {
	var out []string
	for _, a := range r.Answers {
		out = append(out, a.Knob+" "+string(a.Verdict)+"@"+a.Where)
	}
	return strings.Join(out, ", ")
}

// The built-in plan on GPUs that behave as various chips do.
func TestBuiltin(t *testing.T) {
	for _, c := range []struct{ knobs, want string }{
		{"", "timeslice obeyed@gsp, interleave ignored@gsp, preempt obeyed@gsp"},
		// A GB10: a timeslice is accepted, and changes nothing.
		{"timeslice=ignore", "timeslice ignored@gsp, interleave ignored@gsp, preempt obeyed@gsp"},
		{"timeslice=stub,interleave=obey,preempt=ignore", "timeslice stub@driver, interleave obeyed@gsp, preempt ignored@gsp"},
		{"timeslice=refuse,interleave=refuse,preempt=refuse", "timeslice refused@gsp, interleave refused@gsp, preempt refused@gsp"},
		{"preempt=stub,noise=5,tsgs=3", "timeslice obeyed@gsp, interleave ignored@gsp, preempt stub@driver"},
		{"alone", "timeslice unknown@gsp, interleave unknown@gsp, preempt unknown@gsp"},
		{"lose=60", "timeslice unknown@gsp, interleave unknown@gsp, preempt unknown@gsp"},
		{"short-kernels,timeslice=ignore", "timeslice unknown@gsp, interleave unknown@gsp, preempt obeyed@gsp"},
	} {
		s := simulated(t, c.knobs)
		r, err := s.run()
		if err != nil {
			t.Fatalf("%s: %v", c.knobs, err)
		}
		got := verdicts(r)
		if strings.Contains(c.knobs, "noise") { // four rounds are few for a share under noise: it may be unknown
			got = strings.Replace(got, "interleave unknown", "interleave ignored", 1)
		}
		if got != c.want && !strings.HasPrefix(c.knobs, "short") {
			t.Errorf("%s:\n got %s\nwant %s", c.knobs, got, c.want)
			for _, a := range r.Arms {
				t.Logf("%s %+v\n%+v", a.Name, a.Changed, a.Calls)
			}
			t.Logf("%q", r.Untold)
		}
		if us, _ := s.m.Timeslice(s.m.Targets()[0]); us != 2048 || !r.Restored {
			t.Errorf("%s: the timeslice is left at %d us, restored %v", c.knobs, us, r.Restored)
		}
		var md, svg bytes.Buffer
		r.Markdown(&md, "plot.svg")
		r.SVG(&svg)
		if !strings.Contains(md.String(), "Simulated, not a real GPU") || !strings.Contains(svg.String(), "</svg>") {
			t.Errorf("%s: %s", c.knobs, md.String())
		}
		if c.knobs == "" {
			t.Log(md.String())
			if len(s.lines) != 24 || len(r.Runs) != 24 {
				t.Errorf("%d lines, %d runs", len(s.lines), len(r.Runs))
			}
		}
	}
}

// A target that is missing, or ends in the middle.
func TestTargetEnds(t *testing.T) {
	s := simulated(t, "tsgs=3")
	due := s.Now().Add(5 * time.Second)
	s.Wakeup = func() {
		if s.Now() > due {
			s.m.Kill(s.o.Targets[0].Proc.PID)
		}
	}
	r, err := s.run()
	if !errors.Is(err, ErrGone) || !strings.Contains(r.Ended, "gone") || len(r.Runs) == 0 {
		t.Errorf("%v, %q, %d runs", err, r.Ended, len(r.Runs))
	}
	if last := r.Runs[len(r.Runs)-1]; last.Useless == "" {
		t.Errorf("%+v", last)
	}
	if _, err := r.Share(); err == nil {
		t.Error("half a result can be shared")
	}
}

// An arm that makes things worse than a bound is stopped, put back and not run
// again.
func TestStopIf(t *testing.T) {
	s := simulated(t, "")
	b, err := trial.ParseBound("switch_tax > 1.5x")
	if err != nil {
		t.Fatal(err)
	}
	s.o.Plan.StopIf = []trial.Bound{b}
	r, err := s.run()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range r.Arms {
		if stopped := a.Stopped != ""; stopped != (a.Name == "timeslice-256us" || a.Name == "preempt-2ms") && a.Name != "preempt-2ms" {
			t.Errorf("%s: stopped %q after %d runs", a.Name, a.Stopped, a.Runs)
		} else if stopped && a.Runs != 1 {
			t.Errorf("%s: run %d times", a.Name, a.Runs)
		}
	}
}

// Interrupted in the middle of an arm: it is put back.
func TestInterrupted(t *testing.T) {
	s := simulated(t, "")
	ctx, cancel := context.WithCancel(context.Background())
	s.Wakeup = func() {
		if us, _ := s.m.Timeslice(s.m.Targets()[0]); us == 8192 {
			cancel()
		}
	}
	r, _, err := Run(ctx, s.o)
	if us, _ := s.m.Timeslice(s.m.Targets()[0]); !errors.Is(err, context.Canceled) || us != 2048 || r.Ended == "" {
		t.Errorf("%v, %d us, %q", err, us, r.Ended)
	}
}

// Somebody else changes the target's timeslice: that run does not count.
func TestSomebodyElse(t *testing.T) {
	s := simulated(t, "")
	due, done := s.Now().Add(2*time.Second), false
	s.Wakeup = func() {
		if s.Now() > due && !done {
			done = true
			s.m.Interfere(s.m.Targets()[0], 777)
		}
	}
	r, err := s.run()
	if err != nil {
		t.Fatal(err)
	}
	useless := 0
	for _, x := range r.Runs {
		if strings.Contains(x.Useless, "somebody else") {
			useless++
		}
	}
	if useless == 0 {
		t.Errorf("no run says that somebody else changed it: %q", s.lines)
	}
}

// A competitor that starts in the middle is no effect of an arm.
func TestCompanyChanges(t *testing.T) {
	s := simulated(t, "tsgs=3")
	pid := s.m.Targets()[2].PID
	due, done := s.Now().Add(10*time.Second), false
	s.Wakeup = func() {
		if s.Now() > due && !done {
			done = true
			s.m.Kill(pid)
		}
	}
	r, err := s.run()
	if err != nil || !strings.Contains(strings.Join(r.Untold, "\n"), "other processes competed") {
		t.Errorf("%v %q", err, r.Untold)
	}
	if v := verdicts(r); strings.Contains(v, "interleave obeyed") {
		t.Error(v)
	}
}

// Roles as an arm, beside a plain one; and a probe.
func TestRolesArm(t *testing.T) {
	s := simulated(t, "lc,tsgs=3")
	s.o.Plan.Name = "roles"
	s.o.Plan.Arms = []trial.Arm{{Name: trial.Baseline}, {Name: "roles", Roles: true, BE: 200}}
	s.o.Readings = func() (out []steer.Reading) {
		for _, l := range s.m.Launches(s.m.Targets()[0].PID, 0) {
			out = append(out, steer.Reading{At: l.At, Name: "lat", Value: float64(l.Took) / 1e3})
		}
		return out
	}
	r, err := s.run()
	if err != nil {
		t.Fatal(err)
	}
	a := r.Arms[1]
	if e := a.Effect("probe:lat:p99"); a.Changed.State != sched.LampYes || e.Ratio == nil || *e.Ratio > 0.5 || a.Calls.Sent < 16 {
		t.Errorf("%+v\n%+v\n%+v", a.Changed, e, a.Calls)
	}
	for i, target := range s.m.Targets() {
		if us, _ := s.m.Timeslice(target); us != 2048 {
			t.Errorf("target %d is left at %d us", i, us)
		}
	}
}
