package export

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"tsgtop/internal/recording"
	"tsgtop/internal/sched"
)

func recorded(t testing.TB, events []sched.Event) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := recording.NewWriter(&b, recording.Header{Tool: "v", Host: "h", Started: story0}, recording.WriterOptions{Wait: true})
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

func zstdcat(t *testing.T, b []byte) []byte {
	t.Helper()
	d, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	text, err := d.DecodeAll(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func jsonOf(b []byte) (string, error) {
	r, err := recording.NewReader(bytes.NewReader(b))
	if err != nil {
		return "", err
	}
	defer r.Close()
	var out bytes.Buffer
	err = JSON(context.Background(), r, &out)
	return out.String(), err
}

func TestJSONIsTheRecordingsText(t *testing.T) {
	rec := recorded(t, append(machineEvents(t, "tsgs=3", 3*time.Second), smallStory()...))
	got, err := jsonOf(rec)
	if err != nil {
		t.Fatal(err)
	}
	if want := string(zstdcat(t, rec)); got != want {
		t.Error("it differs from what zstdcat gives")
	}
	n := 0
	for line := range strings.Lines(got) {
		if n++; !json.Valid([]byte(line)) {
			t.Fatalf("line %d is no JSON", n)
		}
	}
	if n < 100 {
		t.Errorf("%d lines", n)
	}
}

// What was cut off, or was written by somebody else, is checked and cleaned.
func TestJSONOfForeignRecordings(t *testing.T) {
	rec := recorded(t, machineEvents(t, "", 3*time.Second))
	got, err := jsonOf(rec[:len(rec)-20])
	if !errors.Is(err, recording.ErrTruncated) || strings.Count(got, "\n") < 10 {
		t.Errorf("cut off: %v after %d lines", err, strings.Count(got, "\n"))
	}
	evil := `{"k":"header","schema":1,"host":"\u001b[2J"}` + "\n" + `{"k":"xid","t":5,"gpu":0,"code":31,"text":"\u001b]0;x\u0007","from":"y","more":"\u001b"}` + "\n"
	enc, _ := zstd.NewWriter(nil)
	got, err = jsonOf(enc.EncodeAll([]byte(evil), nil))
	if err != nil || strings.Contains(got, "\x1b") || strings.Contains(got, `\u001b`) || !strings.Contains(got, `\\x1b]0;x`) {
		t.Errorf("%v: %q", err, got)
	}
}

// hostileEvents are n of everything that a recording can bring in numbers.
func hostileEvents(n int) Source {
	return func(ctx context.Context, sink func([]sched.Event)) error {
		var id int
		for i := range n {
			if ctx.Err() != nil {
				return nil
			}
			id++
			at := story0 + sched.Time(i)*1e6
			name := fmt.Sprintf("/x/%d/%s", i, strings.Repeat("n", 300))
			client := sched.Handle(i + 1)
			sink([]sched.Event{
				sched.Process{Time: at, PID: i + 2, Start: uint64(i), Exe: name, User: name, Unit: name},
				sched.GPU{Time: at, Index: i, Name: name},
				sched.Inventory{Start: at, End: at, Clients: []sched.FoundClient{{Client: client, PID: i + 2}},
					TSGs: []sched.FoundTSG{{Object: sched.Object{Client: client, Handle: 9}, GPU: i % 3, Runlist: i, Number: sched.Ptr(uint32(i)), Contexts: []uint32{uint32(i)}}}},
				sched.Command{Time: at, ID: name, Number: i, Op: sched.Op(name), Step: sched.StepIssued},
				sched.Xid{Time: at, GPU: i, Code: uint32(i), Text: name},
				sched.TraceBatch{Time: at + 9e5, GPU: i % 3, Records: []sched.TraceRecord{
					{Time: at, Context: uint32(i), PID: uint32(i + 2), Tag: sched.TagStart, Gap: uint32(i % 2), GI: uint8(i)}, {Time: at + 5e5, Context: uint32(i), Tag: sched.TagEnd, GI: uint8(i)}}},
			})
		}
		return nil
	}
}

// peak runs f and gives the most memory that the heap held meanwhile, over
// what it held before.
func peak(f func()) uint64 {
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	stop, done := make(chan struct{}), make(chan uint64)
	go func() {
		var most uint64
		for {
			select {
			case <-stop:
				done <- most
				return
			case <-time.After(50 * time.Millisecond):
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapAlloc)
			}
		}
	}()
	f()
	close(stop)
	most := <-done
	if most < before.HeapAlloc {
		return 0
	}
	return most - before.HeapAlloc
}

type nowhere struct{ n int64 }

func (w *nowhere) Write(p []byte) (int, error) { w.n += int64(len(p)); return len(p), nil }

// Memory stays bounded whatever a recording holds: more of everything
// than is kept.
func TestHostileRecordingsAreBounded(t *testing.T) {
	const limit = 64 << 20
	for name, f := range map[string]func(Source) error{
		"csv":      func(s Source) error { return CSV(context.Background(), s, nil, 0, &nowhere{}) },
		"perfetto": func(s Source) error { return Perfetto(context.Background(), s, nil, 0, &nowhere{}) },
	} {
		used := peak(func() {
			if err := f(hostileEvents(5_000)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		t.Logf("%s: %d MiB", name, used>>20)
		if used > limit {
			t.Errorf("%s held %d MiB", name, used>>20)
		}
	}
}

func FuzzExports(f *testing.F) {
	text := zstdcat2(f, recorded(f, smallStory()))
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
		if err != nil {
			t.Fatal(err)
		}
		rec := enc.EncodeAll(text, nil)
		src := func(ctx context.Context, sink func([]sched.Event)) error {
			r, err := recording.NewReader(bytes.NewReader(rec))
			if err != nil {
				return err
			}
			defer r.Close()
			return recording.ReadAll(ctx, r, 0, sink)
		}
		_, _ = jsonOf(rec)
		_ = CSV(context.Background(), src, nil, 0, &nowhere{})
		var b bytes.Buffer
		if Perfetto(context.Background(), src, nil, 0, &b) == nil {
			readTrace(t, b.Bytes())
		}
		_ = Cast(context.Background(), src, CastOptions{Width: 80, Height: 24, FPS: 1, First: story0, Last: story0 + 1e9}, &nowhere{})
	})
}

func zstdcat2(f *testing.F, b []byte) []byte {
	d, err := zstd.NewReader(nil)
	if err != nil {
		f.Fatal(err)
	}
	defer d.Close()
	text, err := d.DecodeAll(b, nil)
	if err != nil {
		f.Fatal(err)
	}
	return text
}
