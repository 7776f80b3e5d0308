package sim

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"tsgtop/internal/sched"
)

// What the trace and the GSP's counters say of the timeslice that is in force, beside
// what RM has.
func TestInForce(t *testing.T) {
	for _, c := range []struct {
		knobs  string
		target int
		us     uint64 // set; 0: nothing is
		after  time.Duration
		want   sched.InForce
		why    string
	}{
		{"", 0, 0, 12 * time.Second, sched.InForce{Known: true, AsSet: true, CutUS: 2197}, ""},
		{"", 0, 200, 12 * time.Second, sched.InForce{Known: true, AsSet: true, CutUS: 305}, ""},
		{"", 0, 8192, 12 * time.Second, sched.InForce{Known: true, AsSet: true, CutUS: 8489}, ""},
		{"timeslice=ignore", 0, 200, 12 * time.Second, sched.InForce{Known: true, CutUS: 2197}, ""},
		{"timeslice=ignore", 0, 8192, 12 * time.Second, sched.InForce{Known: true, CutUS: 2197}, ""},
		{"tsgs=4", 1, 512, 12 * time.Second, sched.InForce{Known: true, AsSet: true, CutUS: 624}, ""},
		{"lc", 1, 0, 12 * time.Second, sched.InForce{Known: true, AsSet: true, Beat: 0.95}, ""},
		{"lc", 1, 1000, 12 * time.Second, sched.InForce{Known: true, AsSet: true, Beat: 0.95}, ""},
		{"lc,timeslice=ignore", 1, 1000, 12 * time.Second, sched.InForce{}, "no beat of 1000 us"},
		{"lc", 0, 0, 12 * time.Second, sched.InForce{}, "kernels end first (0% of switches cut one)"},
		{"short-kernels", 0, 0, 12 * time.Second, sched.InForce{}, "kernels end first"},
		{"", 0, 200, 5 * time.Second, sched.InForce{}, "changed less than 10 s ago"},
		{"alone", 0, 0, 12 * time.Second, sched.InForce{}, "no turns while another competed"},
	} {
		m := machine(t, c.knobs)
		b := sched.NewBoard(nil, sched.Options{})
		b.Feed(m.Advance(3 * time.Second))
		target := m.Targets()[c.target]
		if c.us > 0 {
			m.do(Request{Op: sched.OpTimeslice, Target: target, Value: c.us})
		}
		b.Feed(m.Advance(c.after))
		got := inForce(t, b, target)
		if got.Known != c.want.Known || got.AsSet != c.want.AsSet || math.Abs(got.CutUS-c.want.CutUS) > 0.01*c.want.CutUS+1 ||
			math.Abs(got.Beat-c.want.Beat) > 0.06 || !strings.Contains(got.Why, c.why) || got.Known == (got.Why != "") {
			t.Errorf("%s, %d us: %+v, want %+v %q", c.knobs, c.us, got, c.want, c.why)
		}
	}
}

func inForce(t *testing.T, b *sched.Board, target sched.Target) sched.InForce {
	t.Helper()
	snap := b.Snapshot(sched.SnapshotOptions{})
	for i := range snap.TSGs {
		if snap.TSGs[i].Object == target.Object {
			if d := b.Snapshot(sched.SnapshotOptions{Detail: snap.TSGs[i].Gen}).Detail; d != nil {
				return d.InForce
			}
		}
	}
	t.Fatalf("no detail of %s", target.Object)
	return sched.InForce{}
}

// Beside a process that comes like a clock all turns are alike, whatever the
// timeslice: nothing is known.
func TestInForceBesideAClock(t *testing.T) {
	for _, pause := range []time.Duration{3 * time.Millisecond, 5 * time.Millisecond, 9 * time.Millisecond} {
		for _, us := range []uint64{2048, 1000, 10000} {
			m := machine(t, "lc")
			m.Feed(m.Targets()[0].PID, func(_ sched.Time, r *rand.Rand) (time.Duration, time.Duration) {
				return time.Millisecond, pause + time.Duration(20e3*r.NormFloat64())
			})
			b := sched.NewBoard(nil, sched.Options{})
			b.Feed(m.Advance(time.Second))
			m.do(Request{Op: sched.OpTimeslice, Target: m.Targets()[1], Value: us})
			b.Feed(m.Advance(13 * time.Second))
			if f := inForce(t, b, m.Targets()[1]); f.Known && !f.AsSet || f.Known == (f.Why != "") {
				t.Errorf("every %v, %d us: %+v", pause, us, f)
			}
		}
	}
}

// A value that has just been set is not held against turns from before it.
func TestInForceAfterASetting(t *testing.T) {
	m := machine(t, "")
	b := sched.NewBoard(nil, sched.Options{})
	events := m.Advance(12 * time.Second)
	for i := range events {
		if v, ok := events[i].(sched.Inventory); ok {
			for k := range v.TSGs {
				v.TSGs[k].Timeslice = nil // it could not be read
			}
		}
	}
	b.Feed(events)
	target := m.Targets()[0]
	if f := inForce(t, b, target); f.Known || !strings.Contains(f.Why, "not known") {
		t.Errorf("without RM's own: %+v", f)
	}
	for _, us := range []uint64{200, 12000} {
		m.do(Request{Op: sched.OpTimeslice, Target: target, Value: us})
		for waited := time.Duration(0); waited < 12*time.Second; waited += 250 * time.Millisecond {
			b.Feed(m.Advance(250 * time.Millisecond))
			if f := inForce(t, b, target); f.Known && !f.AsSet {
				t.Errorf("%v after %d us was set: %+v", waited, us, f)
			}
		}
		if f := inForce(t, b, target); !f.Known {
			t.Errorf("12 s after %d us was set: %+v", us, f)
		}
	}
}
