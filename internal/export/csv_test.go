package export

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"testing"
	"time"

	"tsgtop/internal/sched"
	"tsgtop/internal/sim"
)

func csvOf(t *testing.T, events []sched.Event, gpus map[int]bool, from sched.Time) [][]string {
	t.Helper()
	var b bytes.Buffer
	if err := CSV(context.Background(), sourceOf(events), gpus, from, &b); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(rows[0], CSVHeader) {
		t.Errorf("columns %q", rows[0])
	}
	return rows[1:]
}

func TestCSVGolden(t *testing.T) {
	var b bytes.Buffer
	if err := CSV(context.Background(), sourceOf(smallStory()), nil, 0, &b); err != nil {
		t.Fatal(err)
	}
	golden(t, "story.csv", b.String())
}

func TestCSVHasEveryTurn(t *testing.T) {
	events := machineEvents(t, "gpus=2,tsgs=4", 8*time.Second)
	var got []pair
	for _, r := range csvOf(t, events, map[int]bool{0: true}, 0) {
		if r[0] != "0" {
			t.Fatalf("a turn of GPU %s", r[0])
		}
		if r[10] != "true" {
			continue
		}
		from, err1 := strconv.ParseInt(r[6], 10, 64)
		to, err2 := strconv.ParseInt(r[7], 10, 64)
		if err1 != nil || err2 != nil || r[8] != fmt.Sprintf("%.3f", float64(to-from)/1e3) {
			t.Fatalf("%q", r)
		}
		got = append(got, pair{r[5], from, to})
	}
	if want := pairs(events); len(want) < 1000 || !slices.Equal(got, want) {
		t.Errorf("%d turns, want the %d that the records tell", len(got), len(want))
	}
}

// One batch that spans more than the state keeps loses no turn.
func TestCSVOfOneLongBatch(t *testing.T) {
	events := machineEvents(t, "short-kernels", 10*time.Second)
	var whole sched.TraceBatch
	var rest []sched.Event
	for _, e := range events {
		if b, ok := e.(sched.TraceBatch); ok {
			whole.Time = b.Time
			whole.Records = append(whole.Records, b.Records...)
			continue
		}
		rest = append(rest, e)
	}
	// Far apart, too: an hour in one batch.
	for i := range whole.Records {
		whole.Records[i].Time += sched.Time(i/1000) * 60e9
	}
	whole.Time = whole.Records[len(whole.Records)-1].Time
	events = append(rest, whole)
	clean := 0
	for _, r := range csvOf(t, events, nil, 0) {
		if r[10] == "true" {
			clean++
		}
	}
	if want := len(pairs(events)); clean != want {
		t.Errorf("%d turns, want %d", clean, want)
	}
}

// A process that is long gone when its turns are written still has its name.
func TestCSVOfTheDead(t *testing.T) {
	c := sim.Default()
	c.Start = story0
	m, err := sim.New(c)
	if err != nil {
		t.Fatal(err)
	}
	events := m.Advance(300 * time.Millisecond)
	pid := 479
	seen := []string{}
	for range 20 {
		if !m.Kill(pid) {
			t.Fatalf("no process %d", pid)
		}
		seen = append(seen, fmt.Sprint(pid))
		events = append(events, m.Advance(20*time.Millisecond)...)
		target, ok := m.Respawn(pid)
		if !ok {
			t.Fatalf("no copy of %d", pid)
		}
		pid = target.PID
		events = append(events, m.Advance(20*time.Millisecond)...)
	}
	rows := csvOf(t, events, nil, 0)
	for _, pid := range seen {
		n := 0
		for _, r := range rows {
			if r[3] == pid && r[4] == "/usr/bin/train.py" && r[2] == "7" {
				n++
			}
		}
		if n == 0 {
			t.Errorf("no turn of process %s", pid)
		}
	}
	for _, r := range rows {
		if r[2] == "" || r[4] == "" {
			t.Errorf("a turn of nobody: %q", r)
		}
	}
}

func TestCSVFrom(t *testing.T) {
	events := machineEvents(t, "", 6*time.Second)
	from := story0 + 3e9
	rows := csvOf(t, events, nil, from)
	first, _ := strconv.ParseInt(rows[0][7], 10, 64)
	if d := first - int64(from); d < 0 || d > 5e6 {
		t.Errorf("the first turn ends %d ns after the instant asked for", d)
	}
}

type fullDisk struct{ room int }

var errFull = errors.New("no space left on device")

func (f *fullDisk) Write(p []byte) (int, error) {
	if f.room -= len(p); f.room < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// A disk that fills up ends every export with its error.
func TestFullDisk(t *testing.T) {
	events := machineEvents(t, "", 60*time.Second)
	for name, f := range map[string]func(io.Writer) error{
		"csv":      func(w io.Writer) error { return CSV(context.Background(), sourceOf(events), nil, 0, w) },
		"perfetto": func(w io.Writer) error { return Perfetto(context.Background(), sourceOf(events), nil, 0, w) },
		"cast": func(w io.Writer) error {
			return Cast(context.Background(), sourceOf(events), CastOptions{Width: 80, Height: 24, First: story0, Last: story0 + 60e9}, w)
		},
	} {
		for _, room := range []int{0, 40_000} {
			if err := f(&fullDisk{room}); !errors.Is(err, errFull) {
				t.Errorf("%s with room for %d bytes: %v", name, room, err)
			}
		}
	}
}
