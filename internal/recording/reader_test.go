package recording

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"tsgtop/internal/sched"
)

// pack makes one zstd frame of each text.
func pack(t testing.TB, texts ...string) []byte {
	t.Helper()
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer enc.Close()
	var out []byte
	for _, s := range texts {
		out = enc.EncodeAll([]byte(s), out)
	}
	return out
}

const goodHeader = `{"k":"header","schema":1}` + "\n"

// someSeconds are events over n seconds: a frame for each.
func someSeconds(n int) []sched.Event {
	var events []sched.Event
	for i := range n {
		at := sched.Time(1e9 + i*1e9)
		events = append(events, sched.TraceBatch{Time: at, Records: []sched.TraceRecord{{Time: at - 9, Context: 128, PID: 3, Tag: 6}}},
			sched.Process{Time: at + 1, PID: 10 + i, Comm: "train.py"})
	}
	return events
}

func TestCutOffAnywhere(t *testing.T) {
	want := someSeconds(5)
	data := record(t, WriterOptions{}, want...)
	frames := lastFrames(bytes.NewReader(data), int64(len(data)))
	if len(frames) < 6 || frames[len(frames)-1].to != int64(len(data)) {
		t.Fatalf("frames of the recording of %d bytes: %v", len(data), frames)
	}
	whole := make(map[int64]bool)
	for _, f := range frames {
		whole[f.to] = true
	}
	for cut := 1; cut < len(data); cut++ {
		got, err := read(t, data[:cut])
		var where *Error
		switch {
		case whole[int64(cut)]:
			if err != nil {
				t.Fatalf("cut between frames at %d: %v", cut, err)
			}
		case !errors.As(err, &where):
			t.Fatalf("cut at %d: error %v", cut, err)
		case int64(cut) > frames[0].to && !errors.Is(err, ErrTruncated):
			t.Fatalf("cut at %d: %v, want ErrTruncated", cut, err)
		}
		frame := 0
		for _, f := range frames {
			if f.to <= int64(cut) {
				frame++
			}
		}
		// the first frame is the header; each further one has two events, the last is what Close wrote
		if min(2*(frame-1), len(want)) > len(got) {
			t.Fatalf("cut at %d after %d frames: only %d events", cut, frame, len(got))
		}
		for i := range got {
			if !reflect.DeepEqual(got[i], want[i]) {
				t.Fatalf("cut at %d: event %d differs", cut, i)
			}
		}
	}
}

func TestWhatIsNoRecording(t *testing.T) {
	for _, c := range []struct {
		name string
		data []byte
		want error
		says string
	}{
		{"empty", nil, ErrForeign, "empty"},
		{"text", []byte("hello\n"), ErrForeign, "not zstd"},
		{"gzip", []byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"), ErrForeign, "not zstd"},
		{"other zstd", pack(t, "hello\nworld\n"), ErrForeign, "header"},
		{"other JSON", pack(t, `{"a":1}`+"\n"), ErrForeign, "header"},
		{"no schema", pack(t, `{"k":"header"}`+"\n"), ErrForeign, "header"},
		{"newer", pack(t, `{"k":"header","schema":99,"host":{"now":"an object"}}`+"\n"), ErrNewer, "99"},
		{"zeros", make([]byte, 100), ErrForeign, "not zstd"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := NewReader(bytes.NewReader(c.data))
			if !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), c.says) || !strings.Contains(fmt.Sprint(err), "line 1") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestDamage(t *testing.T) {
	good := `{"k":"process-exit","t":1,"pid":2}` + "\n"
	for _, c := range []struct{ name, line, says string }{
		{"not JSON", "hello", "invalid character"},
		{"kind of another", `{"k":"banana","t":1}`, `unknown kind of line "banana"`},
		{"no kind", `{"t":1}`, "unknown kind"},
		{"kind of no string", `{"k":7}`, "cannot unmarshal"},
		{"second header", strings.TrimSpace(goodHeader), "second header"},
		{"type", `{"k":"loss","ring":"many"}`, "cannot unmarshal"},
		{"GPU", `{"k":"gpu","index":100000}`, "GPU 100000 is out of range"},
		{"GPU of the trace", `{"k":"trace","t":1,"gpu":-7}`, "GPU -7 is out of range"},
		{"runlist", `{"k":"gpu","runlists":[{"id":99999999}]}`, "runlist 99999999"},
		{"TSG", `{"k":"lifecycle","id":{"gpu":0,"runlist":0,"tsg":9999999}}`, "out of range"},
		{"lamp", `{"k":"command","ran":{"state":"maybe"}}`, `a lamp cannot be "maybe"`},
		{"differences", `{"k":"trace","t":1,"ctx":[[6,1,2]],"x":[0,0],"dt":[]}`, "2 records, but 0 differences"},
		{"context of none", `{"k":"trace","t":1,"ctx":[[6,1,2]],"x":[1]}`, "record 0 is of context 1 of 1"},
		{"context before", `{"k":"trace","t":1,"ctx":[[6,1,2]],"x":[-1]}`, "context -1"},
		{"short context", `{"k":"trace","t":1,"ctx":[[6]],"x":[0]}`, "want tag, context, pid"},
		{"tag", `{"k":"trace","t":1,"ctx":[[600,1,2]],"x":[0]}`, "out of range"},
		{"gap", `{"k":"trace","t":1,"ctx":[[6,1,2]],"x":[0],"gap":[[5,1]]}`, "gap [5 1]"},
		{"fraction", `{"k":"trace","t":1,"ctx":[[6,1,2]],"x":[0.5]}`, "integers"},
		{"too many digits", `{"k":"trace","t":1,"ctx":[[6,1,2]],"x":[0,0],"dt":[99999999999999999999]}`, "64 bits"},
		{"objects for numbers", `{"k":"trace","t":1,"ctx":[{"a":1}],"x":[0]}`, "integers"},
		{"deep", `{"k":"loss","x":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`, "nested deeper"},
		{"many elements", `{"k":"call-batch","calls":[` + strings.Repeat("0,", maxElements+5) + `0]}`, "array elements"},
		{"many records", `{"k":"trace","t":1,"ctx":[[6,1,2]],"x":[` + strings.Repeat("0,", maxTraceRecords) + `0]}`, "more than"},
		{"long line", `{"k":"loss","x":"` + strings.Repeat("a", maxLine) + `"}`, "longer than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := read(t, pack(t, goodHeader+good, c.line+"\n"+good))
			if len(got) != 1 {
				t.Errorf("%d events before the damage, want 1", len(got))
			}
			var where *Error
			if !errors.As(err, &where) || where.Line != 3 || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %.300v", err)
			}
			if len(fmt.Sprint(err)) > 1000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		})
	}
}

func TestMembersInAnyOrder(t *testing.T) {
	data := pack(t, `{"schema":1,"k":"header","new":"member"}`+"\n", ` { "pid" : 2, "more":[1], "t":1, "k":"process-exit" }`+"\n",
		`{"dt":[ 10 ,-3],"x":[0,1 , 0],"gpu":3,"ctx":[ [6,1,2] , [7,1,2,1,0]],"k":"trace","t":100,"b":-50,"gap":[ [1,4] ]}`+"\n")
	mustEqual(t, mustRead(t, data), []sched.Event{sched.ProcessExit{Time: 1, PID: 2},
		sched.TraceBatch{Time: 100, GPU: 3, Records: []sched.TraceRecord{{Time: 50, Context: 1, PID: 2, Tag: 6},
			{Time: 60, Context: 1, PID: 2, Tag: 7, GI: 1, Gap: 4}, {Time: 57, Context: 1, PID: 2, Tag: 6}}}})
}

func TestHostileTextIsCleanedOnReading(t *testing.T) {
	data := pack(t, goodHeader+`{"k":"process","pid":1,"comm":"a\u001b[2J\u202e"}`+"\n")
	if got := mustRead(t, data)[0].(sched.Process).Comm; got != `a\x1b[2J\u202e` {
		t.Errorf("comm %q", got)
	}
}

// TestBombs gives small files that unpack to much.
func TestBombs(t *testing.T) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(64<<20))
	if err != nil {
		t.Fatal(err)
	}
	defer enc.Close()
	oneLine := append(pack(t, goodHeader), enc.EncodeAll(make([]byte, 256<<20), nil)...)
	for name, data := range map[string][]byte{"one line": oneLine, "window": enc.EncodeAll(make([]byte, 32<<20), nil)} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		_, err := read(t, data)
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > 64<<20 {
			t.Errorf("%s: %d bytes in the file made the reader take %d MiB", name, len(data), got>>20)
		}
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "folder") {
		t.Errorf("got %v", err)
	}
	path := filepath.Join(dir, "a.tsg.zst")
	if err := os.WriteFile(path, record(t, WriterOptions{}, someSeconds(2)...)[:150], 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if r.Header().Host != "node" {
		t.Errorf("header %+v", r.Header())
	}
	err = ReadAll(context.Background(), r, 0, func([]sched.Event) {})
	if !errors.Is(err, ErrTruncated) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := r.Next(); err == nil {
		t.Error("Next after Close gave no error")
	}
}

func TestReadAllUntil(t *testing.T) {
	events := []sched.Event{
		sched.ProcessExit{Time: 1e9, PID: 1},
		sched.TraceBatch{Time: 3e9, Records: []sched.TraceRecord{{Time: 1.5e9, Context: 1}, {Time: 2e9, Context: 2}, {Time: 2.5e9, Context: 3}}},
		sched.ProcessExit{Time: 1.9e9, PID: 2},
		sched.ProcessExit{Time: 2.1e9, PID: 3},
		sched.ProcessExit{Time: 9e9, PID: 4},
	}
	r, err := NewReader(bytes.NewReader(record(t, WriterOptions{}, events...)))
	if err != nil {
		t.Fatal(err)
	}
	var got []sched.Event
	if err := ReadAll(context.Background(), r, 2e9, func(b []sched.Event) { got = append(got, b...) }); err != nil {
		t.Fatal(err)
	}
	mustEqual(t, got, []sched.Event{events[0], sched.TraceBatch{Time: 2e9, Records: events[1].(sched.TraceBatch).Records[:2]}, events[2]})
}

func FuzzReader(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	var events []sched.Event
	for range 40 {
		events = append(events, randomEvent(r))
	}
	whole := record(f, WriterOptions{}, events...)
	f.Add(whole, true)
	f.Add(whole[:len(whole)-5], true)
	dec, _ := zstd.NewReader(nil)
	text, err := dec.DecodeAll(whole, nil)
	if err != nil {
		f.Fatal(err)
	}
	for i, line := range bytes.Split(text, []byte("\n")) {
		if i > 0 {
			f.Add(line, false)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, raw bool) {
		if !raw {
			data = pack(t, goodHeader+string(data)+"\n")
		}
		got, err := read(t, data)
		var where *Error
		if err != nil && !errors.As(err, &where) {
			t.Fatalf("an error without its place: %v", err)
		}
		for _, e := range got {
			safeText(t, e)
			if err := checkEvent(e); err != nil {
				t.Fatal(err)
			}
		}
		enc := newEncoder()
		var text []byte
		for _, e := range got {
			if text, err = enc.appendEvent(text, e); err != nil {
				t.Fatal(err)
			}
		}
		n := 0
		for line := range bytes.Lines(text) {
			if _, err := decodeLine(line[:len(line)-1]); err != nil {
				t.Fatalf("%q is written as %q: %v", data, line, err)
			}
			n++
		}
		if n < len(got) {
			t.Fatalf("%d events came back as %d", len(got), n)
		}
		if _, err := NewPlayer(bytes.NewReader(data), "x", PlayerOptions{}); err != nil && !errors.As(err, &where) {
			t.Fatal(err)
		}
	})
}
