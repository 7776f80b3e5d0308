package sim

import (
	"math"
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
		{"lc,timeslice=ignore", 1, 1000, 12 * time.Second, sched.InForce{}, "in no beat of 1000 us"},
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
		var gen uint64
		snap := b.Snapshot(sched.SnapshotOptions{})
		for i := range snap.TSGs {
			if snap.TSGs[i].Object == target.Object {
				gen = snap.TSGs[i].Gen
			}
		}
		d := b.Snapshot(sched.SnapshotOptions{Detail: gen}).Detail
		if d == nil {
			t.Fatalf("%s: no detail", c.knobs)
		}
		got := d.InForce
		if got.Known != c.want.Known || got.AsSet != c.want.AsSet || math.Abs(got.CutUS-c.want.CutUS) > 0.01*c.want.CutUS+1 ||
			math.Abs(got.Beat-c.want.Beat) > 0.06 || !strings.Contains(got.Why, c.why) || got.Known == (got.Why != "") {
			t.Errorf("%s, %d us: %+v, want %+v %q", c.knobs, c.us, got, c.want, c.why)
		}
	}
}
