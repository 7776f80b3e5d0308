package verdict

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"sort"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"tsgtop/internal/sched"
	"tsgtop/internal/stat"
)

// recordings are those in which nothing was changed; testdata/README.md tells of each.
var recordings = []string{"steady", "bursty", "beating", "four", "lcbe", "mixed"}

// readTrace reads a recording; testdata/README.md says how it is written.
func readTrace(t testing.TB, name string) []sched.TraceRecord {
	t.Helper()
	f, err := os.Open("testdata/" + name + ".zst")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	r := bufio.NewReader(z)
	var n, contexts int
	var at int64
	if _, err := fmt.Fscan(r, &n, &at, &contexts); err != nil {
		t.Fatal(err)
	}
	who := make([]sched.TraceRecord, contexts)
	for i := range who {
		if _, err := fmt.Fscanf(r, " %x %d", &who[i].Context, &who[i].PID); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	which := make([]byte, n)
	if _, err := io.ReadFull(r, which); err != nil {
		t.Fatal(err)
	}
	records := make([]sched.TraceRecord, n)
	for i, w := range which {
		d, err := binary.ReadVarint(r)
		if err != nil {
			t.Fatal(err)
		}
		at += d * 32
		records[i] = who[w/2]
		records[i].Time, records[i].Tag = sched.Time(at), sched.TagStart+w%2
	}
	return records
}

// pseudo is a command that was never sent: an instant of a recording, and what
// would have been asked of whom.
type pseudo struct {
	trace  string
	target uint32
	at     sched.Time
	op     sched.Op
	value  uint64
	calls  int
}

// draw makes pseudo-commands at random times of the recordings.
func draw(r *rand.Rand, traces map[string][]sched.TraceRecord, op sched.Op) pseudo {
	names := recordings
	p := pseudo{trace: names[r.IntN(len(names))], op: op, calls: 1}
	records := traces[p.trace]
	first, last := records[0].Time, records[len(records)-1].Time
	p.at = first.Add(time.Second) + sched.Time(r.Int64N(int64(last-first)-int64(5*time.Second)))
	p.target = records[r.IntN(20)].Context
	switch op {
	case sched.OpTimeslice:
		p.value = []uint64{50, 200, 512, 1024, 1843, 2048, 2252, 4096, 8192, 65536}[r.IntN(10)]
	case sched.OpInterleave:
		p.value = uint64(r.IntN(3))
	case sched.OpPreempt:
		p.calls = []int{1, 1, 20, 200}[r.IntN(4)]
	}
	return p
}

// judge gives the verdict on a pseudo-command. All processes were at 2048 us.
func (p pseudo) judge(records []sched.TraceRecord) sched.Changed {
	from, to := p.at.Add(-Baseline), p.at.Add(DefaultWait+100*time.Millisecond)
	plan := Plan{Op: p.op, Target: sched.Target{Contexts: []uint32{p.target}}, Others: func(c uint32) TSG { return TSG{uint64(c), 2048} }}
	if p.op == sched.OpTimeslice {
		plan.Old = sched.Ptr(uint64(2048))
	}
	if p.op != sched.OpPreempt {
		plan.New = &p.value
	}
	j := New(plan)
	j.Add(sched.TraceBatch{Time: to, Records: between(records, from, to)})
	for i := range p.calls {
		at := p.at.Add(time.Duration(i) * 2 * time.Millisecond)
		j.Issue(Call{Begin: at, End: at.Add(430 * time.Microsecond), RPCAt: at.Add(6 * time.Microsecond), RPCDone: at.Add(415 * time.Microsecond)}, i == p.calls-1)
	}
	c, _ := j.Look(to)
	for c.State == sched.LampWaiting {
		to = to.Add(time.Second)
		c, _ = j.Look(to)
	}
	return c
}

func between(records []sched.TraceRecord, from, to sched.Time) []sched.TraceRecord {
	i := sort.Search(len(records), func(i int) bool { return records[i].Time >= from })
	k := sort.Search(len(records), func(i int) bool { return records[i].Time >= to })
	return records[i:k]
}

func readTraces(t testing.TB) map[string][]sched.TraceRecord {
	traces := map[string][]sched.TraceRecord{}
	for _, name := range recordings {
		traces[name] = readTrace(t, name)
	}
	return traces
}

// Nothing was changed in these recordings: of 2,000 commands that were never
// sent, at most 2 may be told to have changed something. With all trials: of
// 2,000 of each sort.
func TestNothingChanged(t *testing.T) {
	traces := readTraces(t)
	yes, drawn := 0, 0
	for i, kind := range []struct {
		op sched.Op
		n  int
	}{{sched.OpTimeslice, 1000}, {sched.OpInterleave, 400}, {sched.OpPreempt, 600}} {
		r := random(2026 + uint64(i))
		count, whys := map[sched.LampState]int{}, map[string]int{}
		for range trials(2000, kind.n) {
			p := draw(r, traces, kind.op)
			c := p.judge(traces[p.trace])
			count[c.State]++
			drawn++
			whys[p.trace+" "+string(c.State)+": "+shape(c.Why)]++
			if c.State == sched.LampYes {
				t.Logf("%+v: %s; %s", p, c.Why, c.Evidence)
			}
		}
		for why, n := range whys {
			t.Logf("%-10s %5d %s", kind.op, n, why)
		}
		if yes += count[sched.LampYes]; *full && count[sched.LampYes] > 2 {
			t.Errorf("%d of 2000 %s commands that were never sent changed something", count[sched.LampYes], kind.op)
		}
		if count[sched.LampNo] == 0 {
			t.Errorf("%s: not one was found to have changed nothing", kind.op)
		}
	}
	t.Logf("%d of %d changed something", yes, drawn)
	if !*full && yes > 2 {
		t.Errorf("%d of %d commands that were never sent changed something", yes, drawn)
	}
}

// The same test with turns taken for independent, and every difference for an
// effect: it must fail, or the test above could not.
func TestNothingChangedCanFail(t *testing.T) {
	traces := readTraces(t)
	r := random(2035)
	yes := 0
	const drawn = 250
	for range drawn {
		p := draw(r, traces, sched.OpTimeslice)
		f := newFolder([]uint32{p.target}, nil)
		for _, x := range between(traces[p.trace], p.at.Add(-Baseline), p.at.Add(DefaultWait)) {
			f.add(x)
		}
		var before, after []turn
		for _, x := range f.turns {
			switch {
			case x.tsg != 0:
			case x.end <= p.at:
				before = append(before, x)
			case x.start >= p.at:
				after = append(after, x)
			}
		}
		// Looking every 25 turns until it is sure.
		for n := 25; n <= len(after); n += 25 {
			if naive(before, after[:n]) < 0.001 {
				yes++
				break
			}
		}
	}
	t.Logf("turns taken for independent, looked at every 25 turns: %d of %d changed something", yes, drawn)
	if yes <= 2 {
		t.Errorf("the careless test found only %d changes in %d: these recordings cannot tell a bad test from a good one", yes, drawn)
	}
}

// naive is the two-sided p of a difference of means of independent numbers.
func naive(before, after []turn) float64 {
	s := sides{logsOf(before), logsOf(after)}
	d, se, df := s.welch(0)
	return 2 * stat.StudentTail(math.Abs(d)/se, df)
}

// shape is a sentence without its numbers.
func shape(s string) string {
	var b []byte
	for _, c := range []byte(s) {
		if c >= '0' && c <= '9' || c == '.' {
			if n := len(b); n > 0 && b[n-1] == '#' {
				continue
			}
			c = '#'
		}
		b = append(b, c)
	}
	return string(b)
}
