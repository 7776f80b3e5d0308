package export

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tsgtop/internal/sched"
)

// field is one field of a protobuf message, as this test's own reader sees it:
// it shares nothing with the writer.
type field struct {
	num uint64
	n   uint64 // varint or fixed
	b   []byte // of a message or string
}

func fields(t *testing.T, b []byte) []field {
	t.Helper()
	var out []field
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 {
			t.Fatal("a tag is cut off")
		}
		b = b[n:]
		f := field{num: tag >> 3}
		switch tag & 7 {
		case 0:
			if f.n, n = binary.Uvarint(b); n <= 0 {
				t.Fatal("a number is cut off")
			}
			b = b[n:]
		case 1:
			f.n = binary.LittleEndian.Uint64(b)
			b = b[8:]
		case 2:
			l, n := binary.Uvarint(b)
			if n <= 0 || uint64(len(b)-n) < l {
				t.Fatal("a message is cut off")
			}
			f.b = b[n : n+int(l)]
			b = b[n+int(l):]
		default:
			t.Fatalf("wire type %d", tag&7)
		}
		out = append(out, f)
	}
	return out
}

func one(fs []field, num uint64) (field, bool) {
	i := slices.IndexFunc(fs, func(f field) bool { return f.num == num })
	if i < 0 {
		return field{}, false
	}
	return fs[i], true
}

// traceEvent is a slice, an instant or a counter's value, read back.
type traceEvent struct {
	track  string
	kind   string
	name   string
	from   int64
	to     int64
	value  float64
	labels map[string]string
}

// readTrace reads a Perfetto trace by the numbers of its schema. It holds the
// writer to the format's rules: tracks are described before use, interned names
// are known, slices nest, the clock is named.
func readTrace(t *testing.T, b []byte) []traceEvent {
	t.Helper()
	type track struct {
		name    string
		counter bool
	}
	tracks := map[uint64]track{}
	names := map[uint64]map[uint64]string{1: {}, 2: {}, 3: {}} // by field of InternedData
	open := map[uint64]int{}
	var out []traceEvent
	cleared := false
	for i, p := range fields(t, b) {
		if p.num != 1 {
			t.Fatalf("field %d in a trace", p.num)
		}
		packet := fields(t, p.b)
		if s, ok := one(packet, 10); !ok || s.n != 1 {
			t.Fatal("a packet of no sequence")
		}
		if _, first := one(packet, 87); first != (i == 0) {
			t.Fatalf("packet %d: first on the sequence: %v", i, first)
		}
		if c, ok := one(packet, 6); ok {
			if p, ok := one(fields(t, c.b), 2); !ok || p.n != 1 {
				t.Fatal("the trace's clock is not CLOCK_REALTIME")
			}
			continue
		}
		if d, ok := one(packet, 60); ok {
			fs := fields(t, d.b)
			id, _ := one(fs, 1)
			name, _ := one(fs, 2)
			tr := track{name: string(name.b)}
			if proc, ok := one(fs, 3); ok {
				ps := fields(t, proc.b)
				pid, _ := one(ps, 1)
				pn, _ := one(ps, 6)
				tr.name = fmt.Sprintf("%s[%d]", pn.b, pid.n)
			}
			if parent, ok := one(fs, 5); ok {
				up, ok := tracks[parent.n]
				if !ok {
					t.Fatalf("track %q hangs on one that was not described", tr.name)
				}
				tr.name = up.name + "/" + tr.name
			}
			_, tr.counter = one(fs, 8)
			tracks[id.n] = tr
			continue
		}
		flags, _ := one(packet, 13)
		if flags.n&1 != 0 {
			cleared = true
			for _, m := range names {
				clear(m)
			}
		}
		if flags.n&2 == 0 || !cleared {
			t.Fatal("a packet with interned names outside their validity")
		}
		if in, ok := one(packet, 12); ok {
			for _, f := range fields(t, in.b) {
				e := fields(t, f.b)
				id, _ := one(e, 1)
				name, _ := one(e, 2)
				if _, again := names[f.num][id.n]; again {
					t.Fatalf("name %d given twice", id.n)
				}
				names[f.num][id.n] = string(name.b)
			}
		}
		at, _ := one(packet, 8)
		if clock, ok := one(packet, 58); !ok || clock.n != 1 {
			t.Fatal("a time of no clock")
		}
		ev, ok := one(packet, 11)
		if !ok {
			t.Fatalf("a packet of nothing: %v", packet)
		}
		fs := fields(t, ev.b)
		kind, _ := one(fs, 9)
		id, _ := one(fs, 11)
		tr, ok := tracks[id.n]
		if !ok {
			t.Fatal("an event on a track that was not described")
		}
		e := traceEvent{track: tr.name, from: int64(at.n), labels: map[string]string{}}
		if n, ok := one(fs, 10); ok {
			if e.name, ok = names[2][n.n]; !ok {
				t.Fatal("an unknown name")
			}
		}
		for _, f := range fs {
			if f.num != 4 {
				continue
			}
			a := fields(t, f.b)
			n, _ := one(a, 1)
			label, ok := names[3][n.n]
			if !ok {
				t.Fatal("an unknown annotation")
			}
			v := a[1]
			switch v.num {
			case 6:
				e.labels[label] = string(v.b)
			case 2:
				e.labels[label] = fmt.Sprint(v.n == 1)
			default:
				e.labels[label] = fmt.Sprint(v.n)
			}
		}
		if tr.counter != (kind.n == 4) {
			t.Fatalf("event of type %d on track %q", kind.n, tr.name)
		}
		switch kind.n {
		case 1:
			if _, nested := open[id.n]; nested {
				t.Fatalf("a turn inside a turn on %q", tr.name)
			}
			e.kind = "slice"
			open[id.n] = len(out)
			out = append(out, e)
		case 2:
			j, ok := open[id.n]
			if !ok || out[j].from > int64(at.n) {
				t.Fatalf("the end of nothing on %q", tr.name)
			}
			out[j].to = int64(at.n)
			delete(open, id.n)
		case 3:
			e.kind = "instant"
			out = append(out, e)
		case 4:
			v, ok := one(fs, 44)
			if !ok {
				t.Fatal("a counter without a value")
			}
			e.kind, e.value = "counter", math.Float64frombits(v.n)
			out = append(out, e)
		default:
			t.Fatalf("type %d", kind.n)
		}
	}
	if len(open) > 0 {
		t.Errorf("%d turns never end", len(open))
	}
	return out
}

func perfettoOf(t *testing.T, events []sched.Event) []traceEvent {
	t.Helper()
	var b bytes.Buffer
	if err := Perfetto(context.Background(), sourceOf(events), nil, 0, &b); err != nil {
		t.Fatal(err)
	}
	return readTrace(t, b.Bytes())
}

// Every turn that the records of the trace tell is a slice with the same times.
func TestPerfettoHasEveryTurn(t *testing.T) {
	events := machineEvents(t, "tsgs=3,noise=10", 12*time.Second)
	want := pairs(events)
	var got []pair
	shares := map[string][]float64{}
	for _, e := range perfettoOf(t, events) {
		switch {
		case e.kind == "slice" && e.track == "GPU0 Simulated H200/gr0 (runlist 0)":
			if e.labels["ended by"] == "open" || e.labels["clean"] == "false" {
				continue // has only one record
			}
			if !strings.HasPrefix(e.name, "train.py 0:0:7") && !strings.HasPrefix(e.name, "serve 0:0:6") && !strings.HasPrefix(e.name, "render 0:0:") {
				t.Fatalf("a turn called %q", e.name)
			}
			got = append(got, pair{e.labels["context"], e.from, e.to})
		case e.kind == "slice":
			t.Fatalf("a turn on %q", e.track)
		case e.kind == "counter":
			shares[e.track] = append(shares[e.track], e.value)
		}
	}
	if len(want) < 1000 || !slices.Equal(got, want) {
		t.Errorf("%d turns, want the %d that the records tell", len(got), len(want))
	}
	if v := shares["train.py[479]/share 0:0:7"]; len(v) < 8 || v[5] < 25 || v[5] > 40 {
		t.Errorf("shares of three equal competitors: %v", v)
	}
	if v := shares["GPU0 Simulated H200/switch tax"]; len(v) < 8 || v[5] < 1 || v[5] > 10 {
		t.Errorf("switch tax %v", v)
	}
}

func TestPerfettoInstants(t *testing.T) {
	events := machineEvents(t, "", 3*time.Second)
	at := events[len(events)-1].When()
	target := sched.Target{TSGID: sched.TSGID{GPU: 0, Runlist: 0, TSG: 7}, PID: 479, Exe: "/x\x1b[2J/train"}
	cmd := sched.Command{Time: at, ID: "a1", Number: 3, Asked: at - 9, Issued: at - 5, Op: sched.OpTimeslice, Target: target, Step: sched.StepIssued,
		Old: sched.Ptr(uint64(2048)), New: sched.Ptr(uint64(200))}
	judged := cmd
	judged.Step = sched.StepJudged
	judged.Ran = sched.Lamp{State: sched.LampYes, Why: "seen"}
	judged.Changed.Lamp = sched.Lamp{State: sched.LampUnknown, Why: "too few turns"}
	judged.Changed.Evidence = "p50 2197 -> 302"
	waiting := cmd
	waiting.ID, waiting.Number = "a2", 4
	events = append(events, cmd, judged, waiting,
		sched.Xid{Time: at, GPU: 0, Code: 109, PID: 479, Text: "evil\x1b]0;x\x07"},
		sched.TraceBatch{Time: at + 2e9, GPU: 0, Records: []sched.TraceRecord{{Time: at + 1e9, Context: 0x3f, Tag: sched.TagStart, Gap: 5}}})
	var cmds []traceEvent
	var xid, gap int
	for _, e := range perfettoOf(t, events) {
		if strings.ContainsRune(fmt.Sprint(e), '\x1b') {
			t.Errorf("an escape code: %q", fmt.Sprint(e))
		}
		if e.kind != "instant" {
			continue
		}
		switch {
		case e.track == "commands":
			cmds = append(cmds, e)
		case strings.HasPrefix(e.name, "Xid 109"):
			xid++
		case strings.HasPrefix(e.name, "trace records missing"):
			gap++
		}
	}
	if xid != 1 || gap != 1 {
		t.Errorf("%d Xids, %d gaps", xid, gap)
	}
	if len(cmds) != 2 || cmds[0].name != "#3 timeslice 0:0:7" || cmds[1].name != "#4 timeslice 0:0:7" || cmds[0].from != int64(at-5) {
		t.Fatalf("commands: %v", cmds)
	}
	l := cmds[0].labels
	if l["RAN"] != "yes" || l["CHANGED"] != "unknown" || l["CHANGED why"] != "too few turns" || l["new"] != "200" || l["evidence"] == "" {
		t.Errorf("labels: %v", l)
	}
}

// A counter holds its last value, so what is no longer known must be said.
func TestPerfettoSaysWhatIsNotKnown(t *testing.T) {
	events := machineEvents(t, "", 3*time.Second)
	at := events[len(events)-1].When()
	events = append(events, sched.TraceBatch{Time: at + 10e9, GPU: 0})
	said := map[string]bool{}
	for _, e := range perfettoOf(t, events) {
		if e.kind == "instant" && strings.Contains(e.name, "not known") && e.labels["why"] != "" {
			said[e.track+": "+e.name] = true
		}
	}
	for _, want := range []string{"GPU0 Simulated H200: switch tax is not known from here on", "train.py[479]: share 0:0:7 is not known from here on"} {
		if !said[want] {
			t.Errorf("not said: %q; said: %v", want, said)
		}
	}
}

// Names that come and go do not pile up, and are right all the same.
func TestPerfettoForgetsNames(t *testing.T) {
	at := sched.Time(1_800_000_000e9)
	events := []sched.Event{sched.GPU{Time: at, Index: 0, ID: 1, Name: "G"}}
	n := 3*maxNames + 7
	for i := range n {
		id := uint32(i + 1)
		t := at + sched.Time(i)*8e6
		events = append(events, sched.Process{Time: t, PID: i + 10, Start: 1, Exe: fmt.Sprintf("/bin/p%d", i)},
			sched.TraceBatch{Time: t + 5e5, GPU: 0, Records: []sched.TraceRecord{
				{Time: t, Context: id, PID: uint32(i + 10), Tag: sched.TagStart}, {Time: t + 4e5, Context: id, PID: uint32(i + 10), Tag: sched.TagEnd}}},
			sched.ProcessExit{Time: t + 5e5, PID: i + 10})
	}
	next := 0
	for _, e := range perfettoOf(t, events) {
		if e.kind != "slice" {
			continue
		}
		if want := fmt.Sprintf("p%d (TSG not known)", next); e.name != want {
			t.Fatalf("turn %d is called %q", next, e.name)
		}
		next++
	}
	if next != n {
		t.Errorf("%d turns, want %d", next, n)
	}
}

func TestPerfettoGolden(t *testing.T) {
	var out strings.Builder
	for _, e := range perfettoOf(t, smallStory()) {
		fmt.Fprintf(&out, "%-8s %-28s %-24s %d", e.kind, e.track, e.name, e.from-int64(story0))
		if e.kind == "slice" {
			fmt.Fprintf(&out, "..%d", e.to-int64(story0))
		}
		if e.kind == "counter" {
			fmt.Fprintf(&out, " %.3f", e.value)
		}
		for _, k := range slices.Sorted(mapKeys(e.labels)) {
			fmt.Fprintf(&out, " %s=%s", k, e.labels[k])
		}
		out.WriteByte('\n')
	}
	golden(t, "story.perfetto.txt", out.String())
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update writes it again):\n%s", path, got)
	}
}
