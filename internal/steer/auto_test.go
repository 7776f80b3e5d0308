package steer

import (
	"maps"
	"strings"
	"testing"
	"time"

	"tsgtop/internal/sched"
)

// One that competes: short. Several: as short as 1.5% of their work allows, which is
// 1700 us.
func TestAutoBE(t *testing.T) {
	if us := AutoBE(1); us != DefaultBE {
		t.Errorf("one: %d", us)
	}
	us := AutoBE(3)
	if l := lossOf(float64(us)); l > lossMost || lossOf(float64(us-50)) <= lossMost || us != 1700 {
		t.Errorf("three: %d us, %.2f%% lost", us, 100*l)
	}
	// What was measured, less what LC gained.
	for us, lost := range map[float64]float64{200: 0.384, 500: 0.175, 1000: 0.068} {
		if l := lossOf(us); l < 0.95*lost || l > 1.05*lost {
			t.Errorf("%v us: %.3f by the model, %.3f measured", us, l, lost)
		}
	}
}

// autoRow is the compute (runlist 0) or a copy TSG of a process.
func autoRow(pid int, gen uint64, runlist int, us uint64, last sched.Time) sched.TSGView {
	return sched.TSGView{Gen: gen, ID: sched.TSGID{GPU: 0, Runlist: runlist, TSG: int(gen)}, Object: sched.Object{Client: sched.Handle(pid), Handle: 5},
		Process: sched.Process{PID: pid, Exe: "x"}, Timeslice: &us, LastTurn: last}
}

func TestAutoCountsWhoCompetes(t *testing.T) {
	now := sched.Time(100 * time.Second)
	recent, old := now.Add(-time.Second), now.Add(-20*time.Second)
	roles := func() *Roles {
		return &Roles{Marks: map[Proc]Role{{PID: 1}: LC, {PID: 2}: BE, {PID: 3}: BE}}
	}
	read := func(name string) sched.Time {
		if name == "no trace is read" {
			return now.Add(-3 * time.Second)
		}
		return now.Add(-time.Millisecond)
	}
	for _, c := range []struct {
		name    string
		rows    []sched.TSGView
		want    map[int]uint64 // by pid, of runlist 0; absent: nothing is asked for
		copying map[int]uint64
	}{
		{"one", []sched.TSGView{autoRow(1, 1, 0, 2048, recent), autoRow(2, 2, 0, 2048, recent)}, map[int]uint64{2: 50}, nil},
		{"two that work", []sched.TSGView{autoRow(1, 1, 0, 2048, recent), autoRow(2, 2, 0, 2048, recent), autoRow(3, 3, 0, 2048, recent)}, map[int]uint64{2: 1700, 3: 1700}, nil},
		{"one of two works", []sched.TSGView{autoRow(1, 1, 0, 2048, recent), autoRow(2, 2, 0, 2048, recent), autoRow(3, 3, 0, 2048, old)}, map[int]uint64{2: 50, 3: 50}, nil},
		{"no trace is read", []sched.TSGView{autoRow(1, 1, 0, 2048, recent), autoRow(2, 2, 0, 2048, recent), autoRow(3, 3, 0, 2048, old)}, map[int]uint64{2: 1700, 3: 1700}, nil},
		{"one without a role works", []sched.TSGView{autoRow(1, 1, 0, 2048, recent), autoRow(2, 2, 0, 2048, recent), autoRow(9, 3, 0, 2048, recent)}, map[int]uint64{2: 50}, nil},
		{"shorter already", []sched.TSGView{autoRow(1, 1, 0, 2048, recent), autoRow(2, 2, 0, 700, recent), autoRow(3, 3, 0, 2048, recent)}, map[int]uint64{3: 1700}, nil},
		{"copy engines are not made slower", []sched.TSGView{autoRow(1, 1, 0, 2048, recent), autoRow(2, 2, 0, 2048, recent), autoRow(3, 3, 0, 2048, recent),
			autoRow(1, 4, 1, 1024, 0), autoRow(2, 5, 1, 1024, 0), autoRow(3, 6, 1, 1024, 0)}, map[int]uint64{2: 1700, 3: 1700}, map[int]uint64{}},
		{"a lone one's copies too", []sched.TSGView{autoRow(1, 1, 0, 2048, recent), autoRow(2, 2, 0, 2048, recent),
			autoRow(1, 4, 1, 1024, 0), autoRow(2, 5, 1, 1024, 0)}, map[int]uint64{2: 50}, map[int]uint64{2: 50}},
	} {
		got, copying := map[int]uint64{}, map[int]uint64{}
		for _, w := range roles().Assign(&sched.Snapshot{Time: now, TSGs: c.rows, GPUs: []sched.GPUView{{TraceRead: read(c.name)}}}).Wants {
			if w.Row.ID.Runlist == 0 {
				got[w.Proc.PID] = w.US
			} else {
				copying[w.Proc.PID] = w.US
			}
		}
		if !maps.Equal(got, c.want) || !maps.Equal(copying, c.copying) {
			t.Errorf("%s: %v and %v, want %v and %v", c.name, got, copying, c.want, c.copying)
		}
	}
	// What a role has set does not count as the TSG's own.
	r := roles()
	r.Original = func(gen uint64) (uint64, bool) { return 2048, gen == 2 }
	rows := []sched.TSGView{autoRow(1, 1, 0, 2048, recent), autoRow(2, 2, 0, 50, recent), autoRow(3, 3, 0, 50, recent)}
	if a := r.Assign(&sched.Snapshot{Time: now, TSGs: rows}); len(a.Wants) != 1 || a.Wants[0].Row.Gen != 2 || a.Wants[0].US != 1700 {
		t.Errorf("%+v", a.Wants)
	}
}

func TestChoices(t *testing.T) {
	if line := Choices(1, 50); line != "" {
		t.Error(line)
	}
	got := Choices(3, 1700)
	for _, part := range []string{"3 best-effort processes compete", ": 5.8 ms and 1% at 1700 us; with --be 1000us 3.6 ms and 7%, 500us 2.1 ms and 17%, 200us 1.2 ms and 37%"} {
		if !strings.HasSuffix(got, part) && !strings.HasPrefix(got, part) {
			t.Errorf("%q lacks %q", got, part)
		}
	}
	if got := Choices(2, 200); strings.Contains(got, "--be") {
		t.Error(got)
	}
}
