package metrics

import (
	"bytes"
	"fmt"
	"math"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"tsgtop/internal/sched"
	"tsgtop/internal/sim"
)

const t0 = sched.Time(1_800_000_000e9)

func machine(t testing.TB, knobs string) *sim.Machine {
	t.Helper()
	c, err := sim.ParseKnobs(knobs)
	if err != nil {
		t.Fatal(err)
	}
	c.Start = t0
	m, err := sim.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func attached(t testing.TB, o Options) (*sched.Board, *Collector) {
	t.Helper()
	// What ended is forgotten soon: the counters must not need it.
	b := sched.NewBoard(nil, sched.Options{LaneKeep: 10 * time.Second})
	c := New(b, o)
	t.Cleanup(c.Attach())
	return b, c
}

// gathered is what a scrape gives, by name and labels: the value, or of a
// histogram the count.
func gathered(t testing.TB, c *Collector) (values map[string]float64, families []*dto.MetricFamily) {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	if err := reg.Register(c); err != nil {
		t.Fatal(err)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values = map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			var l []string
			for _, p := range m.Label {
				if !utf8.ValidString(p.GetValue()) || strings.ContainsRune(p.GetValue(), '\x1b') {
					t.Errorf("label %q", p.GetValue())
				}
				l = append(l, p.GetName()+"="+p.GetValue())
			}
			v := m.GetGauge().GetValue() + m.GetCounter().GetValue()
			if h := m.GetHistogram(); h != nil {
				v = float64(h.GetSampleCount())
			}
			values[f.GetName()+"{"+strings.Join(l, ",")+"}"] = v
		}
	}
	return values, families
}

func near(t *testing.T, values map[string]float64, name string, want, by float64) {
	t.Helper()
	if got, ok := values[name]; !ok || math.Abs(got-want) > by {
		t.Errorf("%s = %v (there: %v), want %v", name, got, ok, want)
	}
}

// The numbers are those of the board.
func TestNumbers(t *testing.T) {
	b, c := attached(t, Options{Version: "v9"})
	m := machine(t, "tsgs=3")
	for range 40 {
		b.Feed(m.Advance(500 * time.Millisecond))
	}
	v, _ := gathered(t, c)
	snap := b.Snapshot(sched.SnapshotOptions{})
	g := snap.GPUs[0]
	near(t, v, "tsgtop_gpu_switch_tax_ratio{gpu=0}", *g.SwitchTax[sched.Window10s], 0)
	near(t, v, "tsgtop_gpu_switching_seconds_total{gpu=0}", v["tsgtop_gpu_competed_seconds_total{gpu=0}"]**g.SwitchTax[sched.WindowAll], 1e-9)
	near(t, v, "tsgtop_gpu_competing{gpu=0}", 3, 0)
	for i := range snap.TSGs {
		s := &snap.TSGs[i]
		sc := s.Score[sched.WindowAll]
		if sc.Residency == nil {
			continue
		}
		l := fmt.Sprintf("{gpu=0,process=%s,unit=%s}", s.Process.Name(), s.Process.Unit)
		near(t, v, "tsgtop_process_turns_total"+l, float64(sc.Turns), 0)
		near(t, v, "tsgtop_process_residency_seconds"+l, float64(sc.Residency.N), 0)
		near(t, v, "tsgtop_process_wait_seconds"+l, float64(sc.Wait.N), 0)
		near(t, v, "tsgtop_process_share_ratio"+l, *s.Score[sched.Window10s].Share, 1e-12)
		near(t, v, "tsgtop_process_resident_competed_seconds_total"+l, *sc.Share*v["tsgtop_gpu_competed_seconds_total{gpu=0}"], 1e-6)
	}
	near(t, v, "tsgtop_source_info{host=simulated,source=SIMULATED}", 1, 0)
}

// What is not known has no series: never a zero.
func TestWhatIsNotKnown(t *testing.T) {
	b, c := attached(t, Options{})
	v, _ := gathered(t, c)
	for name := range v {
		if strings.HasPrefix(name, "tsgtop_gpu") || strings.HasPrefix(name, "tsgtop_process") {
			t.Errorf("of an empty board: %s", name)
		}
	}
	b.Feed([]sched.Event{sched.GPU{Time: t0, Index: 0, ID: 1, Name: "G"}, sched.ProbeStatus{Time: t0, Probe: "ctxsw", GPU: 0, State: sched.ProbeMissing, Why: "w"}})
	v, _ = gathered(t, c)
	for _, name := range []string{"tsgtop_gpu_switches_total{gpu=0}", "tsgtop_gpu_switch_tax_ratio{gpu=0}", "tsgtop_gpu_competed_seconds_total{gpu=0}"} {
		if _, ok := v[name]; ok {
			t.Errorf("without a trace: %s", name)
		}
	}
	near(t, v, "tsgtop_probe_state{gpu=0,probe=ctxsw,state=missing}", 1, 0)
}

// brief is a process that lives for one turn.
func brief(i int, exe string) []sched.Event {
	at := t0 + sched.Time(i)*20e6
	pid, context := i+10, uint32(i+1)
	return []sched.Event{
		sched.Process{Time: at, PID: pid, Start: uint64(i + 1), Exe: exe},
		sched.TraceBatch{Time: at + 6e6, GPU: 0, Records: []sched.TraceRecord{
			{Time: at + 1e6, Context: context, PID: uint32(pid), Tag: sched.TagStart}, {Time: at + 5e6, Context: context, PID: uint32(pid), Tag: sched.TagEnd}}},
		sched.ProcessExit{Time: at + 7e6, PID: pid},
	}
}

func totalTurns(v map[string]float64) (turns float64, series int) {
	for name, n := range v {
		if strings.HasPrefix(name, "tsgtop_process_turns_total{") {
			turns += n
			series++
		}
	}
	return turns, series
}

// Ten thousand processes of one program are one series, and not a turn of
// theirs is lost though each is forgotten soon.
func TestTenThousandShortProcesses(t *testing.T) {
	const n = 10_000
	b, c := attached(t, Options{})
	for i := range n {
		b.Feed(brief(i, "/usr/bin/worker"))
	}
	v, _ := gathered(t, c)
	turns, series := totalTurns(v)
	if turns != n || series != 1 {
		t.Errorf("%v turns in %d series, want %d in 1", turns, series, n)
	}
	near(t, v, "tsgtop_gpu_switches_total{gpu=0}", n, 0)
	if len(c.ledger.rows) > 5000 {
		t.Errorf("%d rows are remembered", len(c.ledger.rows))
	}
}

// Ten thousand programs stay within the limit; the rest are "other".
func TestTenThousandPrograms(t *testing.T) {
	const n, limit = 10_000, 100
	b, c := attached(t, Options{MaxSeries: limit})
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range n {
		b.Feed(brief(i, fmt.Sprintf("/usr/bin/w%d", i)))
	}
	v, families := gathered(t, c)
	turns, series := totalTurns(v)
	if turns != n || series > limit+1 {
		t.Errorf("%v turns in %d series, want %d in at most %d", turns, series, n, limit+1)
	}
	if v["tsgtop_series_folded_total{}"] < n/2 {
		t.Errorf("%v folded", v["tsgtop_series_folded_total{}"])
	}
	if _, ok := v["tsgtop_process_turns_total{gpu=0,process=other,unit=other}"]; !ok {
		t.Error("no series of the others")
	}
	all := 0
	for _, f := range families {
		all += len(f.Metric)
	}
	if all > 6*(limit+1)+60 {
		t.Errorf("%d series in all", all)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 64<<20 {
		t.Errorf("%d MiB more", grown>>20)
	}
}

// Programs that are gone for long make room.
func TestForgets(t *testing.T) {
	b, c := attached(t, Options{MaxSeries: 2})
	b.Feed(brief(0, "/bin/a"))
	b.Feed(brief(1, "/bin/b"))
	v, _ := gathered(t, c)
	if _, ok := v["tsgtop_process_turns_total{gpu=0,process=a,unit=unknown}"]; !ok {
		t.Errorf("%v", v)
	}
	const later = 40 * 60 * 50 // 40 minutes, in steps of 20 ms
	b.Feed(brief(later, "/bin/c"))
	gathered(t, c)
	b.Feed(brief(later+200, "/bin/d"))
	v, _ = gathered(t, c)
	if _, ok := v["tsgtop_process_turns_total{gpu=0,process=d,unit=unknown}"]; !ok {
		t.Errorf("no room for a new program: %v", v)
	}
}

// A context that turns out to be a TSG's is not counted twice; a board that
// begins anew goes on counting.
func TestCountersNeverGoBackOrDouble(t *testing.T) {
	b, c := attached(t, Options{})
	trace := func(at sched.Time) sched.TraceBatch {
		return sched.TraceBatch{Time: at + 6e6, GPU: 0, Records: []sched.TraceRecord{
			{Time: at, Context: 7, PID: 479, Tag: sched.TagStart}, {Time: at + 5e6, Context: 7, PID: 479, Tag: sched.TagEnd}}}
	}
	b.Feed([]sched.Event{sched.Process{Time: t0, PID: 479, Start: 1, Exe: "/bin/a"}, trace(t0 + 1e6)})
	v, _ := gathered(t, c)
	const name = "tsgtop_process_turns_total{gpu=0,process=a,unit=unknown}"
	near(t, v, name, 1, 0)
	at := t0 + 20e6
	b.Feed([]sched.Event{sched.Inventory{Start: at, End: at, Clients: []sched.FoundClient{{Client: 5, PID: 479, PIDs: []int{479}}},
		TSGs: []sched.FoundTSG{{Object: sched.Object{Client: 5, Handle: 9}, GPU: 0, Runlist: 0, Contexts: []uint32{7}}}}, trace(at + 1e6)})
	for range 2 {
		v, _ = gathered(t, c)
		near(t, v, name, 2, 0)
	}
	b.Feed([]sched.Event{trace(at + 20e6)}) // not scraped before the end
	c.Restart()
	b.Feed([]sched.Event{sched.Process{Time: t0, PID: 479, Start: 1, Exe: "/bin/a"}, trace(t0 + 1e6)})
	v, _ = gathered(t, c)
	near(t, v, name, 4, 0)
	near(t, v, "tsgtop_gpu_switches_total{gpu=0}", 4, 0)
}

func TestXidsAndCommands(t *testing.T) {
	b, c := attached(t, Options{})
	cmd := sched.Command{Time: t0, ID: "a", Op: sched.OpTimeslice, Step: sched.StepIssued, Ran: sched.Lamp{State: sched.LampYes}}
	judged := cmd
	judged.Step, judged.Accepted.State, judged.Changed.State = sched.StepJudged, sched.LampYes, sched.LampUnknown
	undone := judged
	undone.Step = sched.StepUndone
	b.Feed([]sched.Event{cmd, judged, judged, undone,
		sched.Command{Time: t0, ID: "b", Op: sched.OpPreempt, Step: sched.StepRefused},
		sched.Command{Time: t0, ID: "c", Op: "\x1b[2J", Step: sched.StepJudged, Ran: sched.Lamp{State: "\xff"}},
		sched.Xid{Time: t0, GPU: 0, Code: 109}, sched.Xid{Time: t0, GPU: 0, Code: 109}, sched.Xid{Time: t0, GPU: -1, Code: 31}})
	for i := range 1000 {
		b.Feed([]sched.Event{sched.Xid{Time: t0, GPU: 1, Code: uint32(i)}})
	}
	v, families := gathered(t, c)
	near(t, v, "tsgtop_commands_total{accepted=yes,changed=unknown,op=timeslice,ran=yes,step=judged}", 1, 0)
	near(t, v, "tsgtop_commands_total{accepted=,changed=,op=preempt,ran=,step=refused}", 1, 0)
	near(t, v, "tsgtop_commands_total{accepted=other,changed=other,op=other,ran=other,step=judged}", 1, 0)
	near(t, v, "tsgtop_xids_total{gpu=0,xid=109}", 2, 0)
	near(t, v, "tsgtop_xids_total{gpu=unknown,xid=31}", 1, 0)
	sum := 0.0
	for name, n := range v {
		if strings.HasPrefix(name, "tsgtop_xids_total") {
			sum += n
		}
	}
	if sum != 1003 {
		t.Errorf("%v Xids, want 1003", sum)
	}
	for _, f := range families {
		if len(f.Metric) > maxCounters+1 {
			t.Errorf("%s has %d series", f.GetName(), len(f.Metric))
		}
	}
}

// What a recording invents cannot break a scrape or grow it.
func TestHostileLabels(t *testing.T) {
	b, c := attached(t, Options{MaxSeries: 10})
	long := strings.Repeat("\xff\x1b[2J\u202e", 500)
	for i := range 300 {
		b.Feed([]sched.Event{
			sched.SourceInfo{Time: t0, Label: long, Host: long},
			sched.GPU{Time: t0, Index: i, ID: 1, Name: long, UUID: long, Driver: long},
			sched.ProbeStatus{Time: t0, Probe: long + fmt.Sprint(i), GPU: -i, State: sched.ProbeState(long)},
			sched.Process{Time: t0, PID: i + 1, Start: 1, Exe: "/" + long + fmt.Sprint(i), Unit: long},
			sched.Inventory{Start: t0, End: t0, Clients: []sched.FoundClient{{Client: sched.Handle(i + 1), PID: i + 1}},
				TSGs: []sched.FoundTSG{{Object: sched.Object{Client: sched.Handle(i + 1), Handle: 9}, GPU: i * 1000, Runlist: 0}}},
		})
	}
	_, families := gathered(t, c) // fails on an invalid or doubled series
	n := 0
	for _, f := range families {
		n += len(f.Metric)
		for _, m := range f.Metric {
			for _, l := range m.Label {
				if len(l.GetValue()) > maxUnitLabel {
					t.Errorf("a label of %d bytes", len(l.GetValue()))
				}
			}
		}
	}
	if n > 1000 {
		t.Errorf("%d series", n)
	}
}

// A scrape a second, and more, beside a source that runs.
func TestScrapesBesideTheSource(t *testing.T) {
	b, c := attached(t, Options{})
	m := machine(t, "tsgs=8")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 100 {
			b.Feed(m.Advance(100 * time.Millisecond))
		}
	}()
	last := -1.0
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		v, _ := gathered(t, c)
		if n := v["tsgtop_gpu_switches_total{gpu=0}"]; n < last {
			t.Fatalf("switches went from %v to %v", last, n)
		} else {
			last = n
		}
	}
	if last < 2000 {
		t.Errorf("%v switches", last)
	}
}

// promtool holds names, types and help to Prometheus' rules.
func TestPromtool(t *testing.T) {
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("skip: needs promtool (Debian package prometheus)")
	}
	b, c := attached(t, Options{})
	b.Feed(machine(t, "tsgs=3").Advance(12 * time.Second))
	b.Feed([]sched.Event{sched.Xid{Time: t0, Code: 31}, sched.Command{Time: t0, ID: "a", Op: sched.OpPreempt, Step: sched.StepJudged}})
	_, body, _ := get(t, served(t, c, true).URL+"/metrics", nil)
	cmd := exec.Command(tool, "check", "metrics")
	cmd.Stdin = strings.NewReader(body)
	if out, err := cmd.CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

func BenchmarkScrape(b *testing.B) {
	board, c := attached(b, Options{})
	m := machine(b, "tsgs=200,gpus=1")
	board.Feed(m.Advance(12 * time.Second))
	reg := prometheus.NewRegistry()
	reg.MustRegister(c)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := reg.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}
