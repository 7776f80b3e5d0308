package sim

import (
	"testing"
	"time"

	"tsgtop/internal/sched"
)

// The state makes of the simulated machine what it makes of a real one: each
// TSG once, the one that the stream created too, with its turns.
func TestTheStateReadsIt(t *testing.T) {
	m := machine(t, "tsgs=3")
	s := sched.NewState(sched.Options{})
	for range 30 {
		for _, e := range m.Advance(100 * time.Millisecond) {
			s.Apply(e)
		}
	}
	snap := s.Snapshot(sched.SnapshotOptions{})
	if len(snap.GPUs) != 1 || len(snap.TSGs) != 12 || snap.Source.Label != "SIMULATED" {
		t.Fatalf("%d GPUs, %d TSGs, label %q; want 1, 12 (four a process), SIMULATED", len(snap.GPUs), len(snap.TSGs), snap.Source.Label)
	}
	compute := 0
	for _, v := range snap.TSGs {
		score := v.Score[sched.Window1s]
		if v.ID.Runlist != 0 {
			if score.Residency != nil || v.WhyNull == "" {
				t.Errorf("%v: a copy engine's TSG has residency %v, why null %q", v.ID, score.Residency, v.WhyNull)
			}
			continue
		}
		compute++
		if score.Residency == nil || score.Residency.P50 < 2150 || score.Residency.P50 > 2250 {
			t.Errorf("%v: residency %+v, want a p50 of about 2197 us", v.ID, score.Residency)
		}
		if score.Share == nil || *score.Share < 0.28 || *score.Share > 0.36 {
			t.Errorf("%v: share %v, want about a third", v.ID, score.Share)
		}
		if v.Timeslice == nil || *v.Timeslice != 2048 || v.Process.Unit == "" {
			t.Errorf("%v: timeslice %v, process %+v", v.ID, v.Timeslice, v.Process)
		}
	}
	if compute != 3 || snap.Unattributed.Contexts != 0 {
		t.Errorf("%d compute TSGs, %+v unattributed", compute, snap.Unattributed)
	}
}
