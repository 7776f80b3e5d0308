package recording

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"tsgtop/internal/sched"
	"tsgtop/internal/text"
)

// allTypes has one value of each type of event.
var allTypes = []sched.Event{
	sched.SourceInfo{}, sched.ProbeStatus{}, sched.GPU{}, sched.GPUSample{}, sched.Process{}, sched.ProcessExit{},
	sched.Call{}, sched.CallBatch{}, sched.CallCounts{}, sched.Inventory{}, sched.TraceBatch{}, sched.Loss{},
	sched.Xid{}, sched.ClockTie{}, sched.Lifecycle{}, sched.Command{}, sched.SwitchCounters{},
}

// randomEvent fills an event of a random type with random values of the
// ranges that events have.
func randomEvent(r *rand.Rand) sched.Event {
	v := reflect.New(reflect.TypeOf(allTypes[r.IntN(len(allTypes))])).Elem()
	fill(r, v, "")
	return v.Interface().(sched.Event)
}

func fill(r *rand.Rand, v reflect.Value, name string) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(r, v.Field(i), v.Type().Field(i).Name)
		}
	case reflect.Pointer:
		if r.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem(), name)
		}
	case reflect.Slice:
		if n := r.IntN(6); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				fill(r, v.Index(i), name)
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(r, v.Index(i), name)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 1 + r.IntN(3) {
			k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(r, k, "")
			fill(r, e, "")
			v.SetMapIndex(k, e)
		}
	case reflect.String:
		if v.Type() == reflect.TypeFor[sched.LampState]() {
			v.SetString([]string{"", "waiting", "yes", "no", "unknown"}[r.IntN(5)])
			return
		}
		v.SetString([]string{"", "train.py", "größe", "a\"b\\c</>&", "列車"}[r.IntN(5)])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Float64:
		v.SetFloat(r.NormFloat64() * 1000)
	default:
		n := r.Uint64() >> r.IntN(64)
		if name == "GPU" || name == "Index" || name == "Runlist" || name == "TSG" || name == "ID" {
			n %= 200
		}
		if v.CanInt() {
			v.SetInt(int64(n) >> (64 - v.Type().Bits()))
		} else {
			v.SetUint(n >> (64 - v.Type().Bits()))
		}
	}
}

func record(t testing.TB, opts WriterOptions, events ...sched.Event) []byte {
	t.Helper()
	var b bytes.Buffer
	opts.Wait = true
	w, err := NewWriter(&b, Header{Tool: "test", Host: "node", Started: 1}, opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(events); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// read gives all good events of a recording and how it ended.
func read(t testing.TB, data []byte) ([]sched.Event, error) {
	t.Helper()
	r, err := NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var events []sched.Event
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
}

func mustRead(t testing.TB, data []byte) []sched.Event {
	t.Helper()
	events, err := read(t, data)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func mustEqual(t testing.TB, got, want []sched.Event) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d events, want %d", len(got), len(want))
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("event %d:\n got %+v\nwant %+v", i, got[i], want[i])
		}
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		var want []sched.Event
		for range 200 {
			want = append(want, randomEvent(r))
		}
		first := record(t, WriterOptions{Args: true}, want...)
		got := mustRead(t, first)
		mustEqual(t, got, want)
		again := mustRead(t, record(t, WriterOptions{Args: true}, got...))
		mustEqual(t, again, want)
	}
}

func TestEveryTypeHasAKind(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range allTypes {
		k := kindOf(e)
		if k == "" || seen[k] {
			t.Errorf("%T has kind %q", e, k)
		}
		seen[k] = true
		mustEqual(t, mustRead(t, record(t, WriterOptions{Args: true}, e)), []sched.Event{e})
	}
}

type notOurs struct{}

func (notOurs) When() sched.Time { return 0 }

func TestForeignTypeIsAnErrorThatStays(t *testing.T) {
	w, err := NewWriter(io.Discard, Header{}, WriterOptions{Args: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write([]sched.Event{notOurs{}}); err == nil || !strings.Contains(err.Error(), "notOurs") {
		t.Errorf("Write gave %v", err)
	}
	if err := w.Write([]sched.Event{sched.Loss{}}); err == nil {
		t.Error("the error did not stay")
	}
	if err := w.Close(); err == nil {
		t.Error("Close forgot the error")
	}
}

func TestTraceExtremes(t *testing.T) {
	var long []sched.TraceRecord
	for i := range 3000 {
		long = append(long, sched.TraceRecord{Time: sched.Time(i * i * 32), Context: uint32(i), PID: uint32(i % 7), Tag: uint8(6 + i%2)})
	}
	want := []sched.Event{
		sched.TraceBatch{Time: 5, GPU: 1},
		sched.TraceBatch{Time: -1 << 63, GPU: 0, Records: []sched.TraceRecord{{Time: 1<<63 - 1, Context: 1<<32 - 1, PID: 1<<32 - 1, Gap: 1<<32 - 1, Tag: 255, GI: 255, CI: 255}}},
		sched.TraceBatch{Time: 1, Records: []sched.TraceRecord{{Time: -1 << 63}, {Time: 1<<63 - 1}, {Time: 0}, {Time: -1 << 63}, {Time: 0}}},
		sched.TraceBatch{Time: 1 << 60, Records: []sched.TraceRecord{{Time: 1 << 60, Tag: 6}, {Time: 1 << 60, Tag: 7}}},
		sched.TraceBatch{Time: 9, Records: long},
	}
	mustEqual(t, mustRead(t, record(t, WriterOptions{Args: true}, want...)), want)
}

func TestLongBatchesAreSplit(t *testing.T) {
	b := sched.TraceBatch{Time: 1 << 40, GPU: 2}
	for i := range splitRecords*2 + 3 {
		b.Records = append(b.Records, sched.TraceRecord{Time: sched.Time(i), Context: 3, Tag: 6})
	}
	c := sched.CallBatch{Calls: make([]sched.Call, splitCalls+1)}
	for i := range c.Calls {
		c.Calls[i] = sched.Call{End: sched.Time(i), Kind: sched.CallControl, Comm: "python"}
	}
	var records []sched.TraceRecord
	var calls []sched.Call
	n := 0
	var last sched.Time
	for _, e := range mustRead(t, record(t, WriterOptions{Args: true}, b, c)) {
		n++
		switch v := e.(type) {
		case sched.TraceBatch:
			records = append(records, v.Records...)
			last = v.Time
		case sched.CallBatch:
			calls = append(calls, v.Calls...)
		}
	}
	if n != 5 || last != b.Time || !reflect.DeepEqual(records, b.Records) || !reflect.DeepEqual(calls, c.Calls) {
		t.Errorf("%d events, the last trace batch to %d, %d records, %d calls", n, last, len(records), len(calls))
	}
}

func TestTooLargeIsSaid(t *testing.T) {
	big := sched.Inventory{End: 7, TSGs: make([]sched.FoundTSG, maxElements+1)}
	got := mustRead(t, record(t, WriterOptions{Args: true}, big, sched.Loss{Time: 8}))
	if len(got) != 2 {
		t.Fatalf("%d events", len(got))
	}
	s, ok := got[0].(sched.ProbeStatus)
	if !ok || s.Time != 7 || s.State != sched.ProbeLimited || !strings.Contains(s.Why, "inventory") {
		t.Errorf("got %+v", got[0])
	}
}

func TestTextIsSafeInTheFile(t *testing.T) {
	bad := "a\x1b[2J\u202eb\u009b\xff\n"
	want := text.Clean(bad)
	events := []sched.Event{
		sched.Process{PID: 1, Exe: bad, Comm: bad, User: bad, Cgroup: bad, Unit: bad, Args: []string{"x", bad}},
		sched.CallBatch{Calls: []sched.Call{{Comm: "ok"}, {Comm: bad}}},
		sched.Xid{Name: bad, Text: bad}, sched.SourceInfo{Host: bad, Notes: []string{bad}},
		sched.Command{ID: "1", Target: sched.Target{Exe: bad}, Calls: sched.CallTally{ByStatus: map[string]int{bad: 1}}},
		sched.Process{Comm: strings.Repeat("x", 3*maxString)},
	}
	kept := fmt.Sprintf("%+v", events)
	got := mustRead(t, record(t, WriterOptions{Args: true}, events...))
	if fmt.Sprintf("%+v", events) != kept {
		t.Error("the writer changed the events that it was given")
	}
	p := got[0].(sched.Process)
	for _, s := range []string{p.Exe, p.Comm, p.User, p.Cgroup, p.Unit, p.Args[1], got[1].(sched.CallBatch).Calls[1].Comm,
		got[2].(sched.Xid).Text, got[3].(sched.SourceInfo).Notes[0], got[4].(sched.Command).Target.Exe} {
		if s != want {
			t.Errorf("%q, want %q", s, want)
		}
	}
	if n := len(got[5].(sched.Process).Comm); n != maxString {
		t.Errorf("a long string is %d bytes", n)
	}
	mustEqual(t, mustRead(t, record(t, WriterOptions{Args: true}, got...)), got)
}

// safeText fails on text that a terminal could act on.
func safeText(t testing.TB, e sched.Event) {
	t.Helper()
	eachString(reflect.ValueOf(e), func(s string) {
		if text.Clean(s) != s || !utf8.ValidString(s) {
			t.Fatalf("%T holds %q", e, s)
		}
	})
}

// eachString gives every string in a value, whatever it is in.
func eachString(v reflect.Value, give func(string)) {
	switch v.Kind() {
	case reflect.String:
		give(v.String())
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			eachString(v.Elem(), give)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			eachString(v.Index(i), give)
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			eachString(it.Key(), give)
			eachString(it.Value(), give)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			eachString(v.Field(i), give)
		}
	}
}
