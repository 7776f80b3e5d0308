package sim

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"tsgtop/internal/sched"
)

// start gives fixed simulated times.
const start sched.Time = 1_790_000_000_000_000_000

func machine(t *testing.T, knobs string) *Machine {
	t.Helper()
	c, err := ParseKnobs(knobs)
	if err != nil {
		t.Fatal(err)
	}
	c.Start = start
	m, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func records(events []sched.Event, gpu int) (r []sched.TraceRecord) {
	for _, e := range events {
		if b, ok := e.(sched.TraceBatch); ok && b.GPU == gpu {
			r = append(r, b.Records...)
		}
	}
	return r
}

// residencies gives, in us and sorted, how long a context stayed on.
func residencies(r []sched.TraceRecord, context uint32) (us []float64) {
	var on sched.Time
	for _, x := range r {
		switch {
		case x.Context != context:
		case x.Tag == sched.TagStart:
			on = x.Time
		case on != 0 && x.Gap == 0:
			us = append(us, float64(x.Time-on)/1e3)
			on = 0
		default:
			on = 0
		}
	}
	slices.Sort(us)
	return us
}

func p50(t *testing.T, r []sched.TraceRecord, context uint32) float64 {
	t.Helper()
	us := residencies(r, context)
	if len(us) < 20 {
		t.Fatalf("only %d turns of context %x", len(us), context)
	}
	return us[len(us)/2]
}

func TestKnobs(t *testing.T) {
	c, err := ParseKnobs("timeslice=ignore, interleave=stub,preempt=refuse,gpus=2,tsgs=64,short-kernels,idle=30,noise=20%,lose=2.5,hang=5s,seed=9,speed=20,lc")
	if err != nil {
		t.Fatal(err)
	}
	want := Config{Ignore, Stub, Refuse, 2, 64, true, 0.3, 0.2, 0.025, 5 * time.Second, 9, 20, 0, true}
	if c != want {
		t.Errorf("got %+v, want %+v", c, want)
	}
	if c, err := ParseKnobs(""); err != nil || c != Default() {
		t.Errorf("no knobs: %+v, %v", c, err)
	}
	for knobs, says := range map[string]string{
		"timeslise=obey":  `did you mean "timeslice"`,
		"timeslice":       "wants obey, ignore, refuse or stub",
		"timeslice=maybe": "wants obey, ignore, refuse or stub",
		"alone=1":         "takes no value",
		"idle=101":        "wants a percentage",
		"noise=NaN":       "wants a percentage",
		"speed=0":         "wants a number over 0",
		"gpus=17":         "wants 1 to 16",
		"hang=-1s":        "wants a duration",
	} {
		if _, err := ParseKnobs(knobs); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: error %v, want one that says %s", knobs, err, says)
		}
	}
}

// The table of what an H200 did (driver 580.159.04): residency p50 in us of a
// target that launches 30 ms kernels back to back beside another such process.
func TestTimeslicesAsMeasured(t *testing.T) {
	for _, row := range []struct {
		us   uint64
		want float64
	}{{2048, 2197}, {200, 302}, {512, 626}, {8192, 8488}, {65536, 30000}} {
		m := machine(t, "")
		target := m.Targets()[0]
		m.Advance(50 * time.Millisecond)
		r, err := m.Do(context.Background(), Request{Op: sched.OpTimeslice, Target: target, Value: row.us})
		if err != nil || r.Status != 0 || r.Where != sched.WhereGSP || r.RPC < 370*time.Microsecond || r.RPC > 470*time.Microsecond {
			t.Fatalf("timeslice %d: %+v, %v", row.us, r, err)
		}
		m.Advance(20 * time.Millisecond)
		got := p50(t, records(m.Advance(3*time.Second), 0), target.Contexts[0])
		if got < row.want*0.98 || got > row.want*1.02 {
			t.Errorf("timeslice %d: residency p50 %.0f us, measured on an H200: %.0f", row.us, got, row.want)
		}
	}
}

func TestTurnsAsMeasured(t *testing.T) {
	m := machine(t, "")
	m.Advance(100 * time.Millisecond)
	r := records(m.Advance(2*time.Second), 0)
	for _, target := range m.Targets() {
		if n := len(residencies(r, target.Contexts[0])); n < 440 || n > 537 {
			t.Errorf("%s: %d turns in 2 s; measured: 488; want within 10%%", target.Exe, n)
		}
	}
	c, _ := m.Counters(m.Targets()[0])
	if share := float64(c.CILP) / float64(c.Save); share < 0.85 || share > 0.95 {
		t.Errorf("%.2f of the saves were in the middle of a kernel; measured: 217 of 248", share)
	}
}

// What the GSP or the hardware does with a command that is not obeyed.
func TestNotObeyed(t *testing.T) {
	for _, row := range []struct {
		knobs  string
		op     sched.Op
		value  uint64
		status uint32
		where  sched.Where
	}{
		{"timeslice=ignore", sched.OpTimeslice, 200, 0, sched.WhereGSP},
		{"timeslice=refuse", sched.OpTimeslice, 200, 0x56, sched.WhereGSP},
		{"timeslice=stub", sched.OpTimeslice, 200, 0, sched.WhereDriver},
		{"", sched.OpInterleave, 2, 0, sched.WhereGSP},
		{"interleave=obey", sched.OpInterleave, 7, 0x56, sched.WhereGSP},
		{"preempt=ignore", sched.OpPreempt, 0, 0, sched.WhereGSP},
	} {
		m := machine(t, row.knobs)
		target := m.Targets()[0]
		before := records(m.Advance(2*time.Second), 0)
		r, err := m.Do(context.Background(), Request{ID: "c", Op: row.op, Target: target, Value: row.value})
		if err != nil || r.Status != row.status || r.Where != row.where || (r.RPC > 0) != (row.where == sched.WhereGSP) {
			t.Errorf("%s %s %d: %+v, %v", row.knobs, row.op, row.value, r, err)
		}
		events := m.Advance(2 * time.Second)
		after := records(events, 0)
		if a, b := p50(t, before, target.Contexts[0]), p50(t, after, target.Contexts[0]); a < 0.99*b || a > 1.01*b {
			t.Errorf("%s %s: residency %f -> %f us, want no change", row.knobs, row.op, a, b)
		}
		shown := 0
		for _, e := range events {
			if b, ok := e.(sched.CallBatch); ok {
				for _, c := range b.Calls {
					if c.Command == "c" && c.Status == row.status && c.End == r.End {
						shown++
					}
				}
			}
		}
		if shown != 1 {
			t.Errorf("%s %s: the stream showed %d calls of the command, want 1", row.knobs, row.op, shown)
		}
	}
}

// One preempt at a time, at random moments: measured on an H200, runs that were
// on ended 395 to 430 us after the call began, and it was off in 43% of cases.
func TestPreemptAsMeasured(t *testing.T) {
	m := machine(t, "")
	target := m.Targets()[0]
	var latency []float64
	off := 0
	for i := range 300 {
		m.Advance(7*time.Millisecond + time.Duration(i*137%4500)*time.Microsecond)
		e := m.gpus[0].engine
		on := e.resident != nil && e.resident.context == target.Contexts[0]
		r, _ := m.Do(context.Background(), Request{Op: sched.OpPreempt, Target: target})
		rs := records(m.Advance(3*time.Millisecond), 0)
		if !on {
			off++
			continue
		}
		for _, x := range rs {
			if x.Context == target.Contexts[0] && x.Tag == sched.TagEnd {
				latency = append(latency, float64(x.Time-r.Begin)/1e3)
				break
			}
		}
	}
	slices.Sort(latency)
	if m := latency[len(latency)/2]; m < 395 || m > 430 {
		t.Errorf("a run ended %.0f us after the call in the median; measured: 395 to 430", m)
	}
	if off < 100 || off > 190 {
		t.Errorf("off the engine in %d of 300; measured: 43%%", off)
	}
}

func TestAloneMakesNoRecords(t *testing.T) {
	m := machine(t, "alone")
	events := m.Advance(3 * time.Second)
	if r := records(events, 0); len(r) != 0 {
		t.Errorf("%d records of a lone context, want none", len(r))
	}
	if r, _ := m.Do(context.Background(), Request{Op: sched.OpPreempt, Target: m.Targets()[0]}); r.Status != 0 {
		t.Errorf("preempt alone: %+v", r)
	}
	if r := records(m.Advance(time.Second), 0); len(r) != 0 {
		t.Errorf("%d records after a preempt of a lone context, want none", len(r))
	}
}

func TestLostRecordsAreSaid(t *testing.T) {
	whole, holes := 0, uint32(0)
	m := machine(t, "lose=10")
	events := m.Advance(10 * time.Second)
	rs := records(events, 0)
	for _, r := range rs {
		holes += r.Gap
	}
	whole = len(rs) + int(holes)
	if f := float64(holes) / float64(whole); f < 0.05 || f > 0.16 {
		t.Errorf("%.3f of the records are missing, want about 0.10", f)
	}
	last := sched.Loss{}
	for _, e := range events {
		if l, ok := e.(sched.Loss); ok {
			last = l
		}
	}
	if last.Trace == 0 {
		t.Error("the stream does not count what the trace lost")
	}
}

func TestFirstTargetAndItsCopyTSGs(t *testing.T) {
	for _, knobs := range []string{"", "alone", "tsgs=64,gpus=8,seed=99", "short-kernels"} {
		m := machine(t, knobs)
		if got := m.Targets()[0].TSGID; got != (sched.TSGID{GPU: 0, Runlist: 0, TSG: 7}) {
			t.Errorf("%q: the first target is %v", knobs, got)
		}
		var inv sched.Inventory
		for _, e := range m.Advance(time.Millisecond) {
			if i, ok := e.(sched.Inventory); ok {
				inv = i
			}
		}
		var runlists []int
		for _, g := range inv.TSGs {
			if g.PID == m.Targets()[0].PID {
				runlists = append(runlists, g.Runlist)
			}
		}
		if !slices.Equal(runlists, []int{0, 1, 3, 10}) {
			t.Errorf("%q: the target's TSGs are on runlists %v", knobs, runlists)
		}
	}
}

func TestCopyEngineHasNoCounters(t *testing.T) {
	m := machine(t, "")
	target := m.Targets()[0]
	target.Runlist, target.Object.Handle = 3, handleCopy+0x10
	if _, status := m.Counters(target); status != 0x1a {
		t.Errorf("counters of a copy engine's TSG: status %#x, want 0x1a", status)
	}
}

func TestSameSeedSameEvents(t *testing.T) {
	run := func(step time.Duration) (all []sched.TraceRecord) {
		m := machine(t, "noise=20,idle=20,lose=1,tsgs=3,seed=5")
		for range 2 {
			for i := time.Duration(0); i < time.Second; i += step {
				all = append(all, records(m.Advance(step), 0)...)
			}
			m.Do(context.Background(), Request{Op: sched.OpTimeslice, Target: m.Targets()[0], Value: 500})
		}
		return all
	}
	if a, b := run(5*time.Millisecond), run(50*time.Millisecond); !reflect.DeepEqual(a, b) {
		t.Errorf("two runs of the same seed differ: %d and %d records", len(a), len(b))
	}
}

func TestKillAndRespawn(t *testing.T) {
	m := machine(t, "")
	target := m.Targets()[0]
	m.Advance(500 * time.Millisecond)
	if !m.Kill(target.PID) {
		t.Fatal("no such process")
	}
	m.Advance(100 * time.Millisecond)
	if r, _ := m.Do(context.Background(), Request{Op: sched.OpPreempt, Target: target}); r.Status != statusInvalidClient {
		t.Errorf("a preempt of a dead client: status %#x", r.Status)
	}
	if r := records(m.Advance(time.Second), 0); len(r) > 2 {
		t.Errorf("%d records while one process is left", len(r))
	}
	again, ok := m.Respawn(target.PID)
	if !ok || again.TSGID != target.TSGID || again.Object.Handle != target.Object.Handle {
		t.Fatalf("the copy is %+v, %v: want the same TSG number and object handle", again, ok)
	}
	if again.Object.Client == target.Object.Client || *again.UniqueID == *target.UniqueID || again.Contexts[0] == target.Contexts[0] {
		t.Errorf("the copy is %+v: client, unique id and contexts must not repeat", again)
	}
	m.Advance(100 * time.Millisecond)
	p50(t, records(m.Advance(time.Second), 0), again.Contexts[0])
}

func TestRunKeepsItsOwnClock(t *testing.T) {
	m := machine(t, "speed=100,hang=200ms")
	ctx, cancel := context.WithCancel(context.Background())
	var got []sched.Event
	done := make(chan error)
	go func() { done <- m.Run(ctx, func(e []sched.Event) { got = append(got, e...) }) }()
	for m.Now() < start+sched.Time(time.Second) {
		time.Sleep(time.Millisecond)
	}
	r, err := m.Do(ctx, Request{Op: sched.OpTimeslice, Target: m.Targets()[0], Value: 300})
	if err != nil || r.End.Sub(r.Begin) < 200*time.Millisecond || m.Now() < r.End {
		t.Errorf("a command that hangs for 200 ms: %+v, %v, back at %d", r, err, m.Now())
	}
	if err := m.Sleep(ctx, time.Second); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, ok := got[0].(sched.SourceInfo); !ok {
		t.Errorf("the first event is a %T", got[0])
	}
	if n := len(records(got, 0)); n < 500 {
		t.Errorf("only %d records in over 2 simulated seconds", n)
	}
	if _, err := m.Do(ctx, Request{Op: sched.OpPreempt, Target: m.Targets()[0]}); err != nil {
		t.Errorf("stepped, Do does not wait: %v", err)
	}
}

func BenchmarkSecondOf64(b *testing.B) {
	c := Default()
	c.TSGs, c.Start = 64, start
	m, err := New(c)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		m.Advance(time.Second)
	}
}
