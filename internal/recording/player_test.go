package recording

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tsgtop/internal/sched"
)

var (
	_ sched.Source = (*Player)(nil)
	_ sched.Player = (*Player)(nil)
)

// screen is a sink that remembers, and can be read while the player runs.
type screen struct {
	mu     sync.Mutex
	events []sched.Event
	resets int
}

func (s *screen) sink(b []sched.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, b...)
}

func (s *screen) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events, s.resets = nil, s.resets+1
}

// seen is the events but for the sources, and the latest source.
func (s *screen) seen() ([]sched.Event, sched.SourceInfo, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []sched.Event
	var source sched.SourceInfo
	for _, e := range s.events {
		if v, ok := e.(sched.SourceInfo); ok {
			source = v
		} else {
			out = append(out, e)
		}
	}
	return out, source, s.resets
}

func player(t *testing.T, s *screen, opts PlayerOptions, events ...sched.Event) *Player {
	t.Helper()
	data := record(t, WriterOptions{}, events...)
	p, err := NewPlayer(bytes.NewReader(data), "x.tsg.zst", opts)
	if err != nil {
		t.Fatal(err)
	}
	p.OnReset(s.reset)
	return p
}

// exits are n process exits, one a second from 1 s on.
func exits(n int) []sched.Event {
	var out []sched.Event
	for i := range n {
		out = append(out, sched.ProcessExit{Time: sched.Time(1e9 * (i + 1)), PID: i})
	}
	return out
}

func TestPlayerAsFastAsPossible(t *testing.T) {
	var s screen
	want := someSeconds(400)
	p := player(t, &s, PlayerOptions{AsFastAsPossible: true, Notes: []string{"built in"}}, append([]sched.Event{
		sched.SourceInfo{Time: 1e9, Label: "LIVE", Host: "node", Notes: []string{"n"}}}, want...)...)
	if err := p.Run(context.Background(), s.sink); err != nil {
		t.Fatal(err)
	}
	got, source, _ := s.seen()
	mustEqual(t, got, want)
	if source.Label != "RECORDING" || source.Host != "node" || strings.Join(source.Notes, ",") != "built in,n" {
		t.Errorf("source %+v", source)
	}
	if at, first, last := p.Position(); first != 1e9 || last != 400e9+1 || at != last {
		t.Errorf("at %d of %d to %d", at, first, last)
	}
}

func TestPlayerSaysWhatWasRecorded(t *testing.T) {
	var s screen
	p := player(t, &s, PlayerOptions{Label: "DEMO"}, sched.SourceInfo{Time: 1, Label: "SIMULATED"})
	if err := p.Run(context.Background(), s.sink); err != nil {
		t.Fatal(err)
	}
	if _, source, _ := s.seen(); source.Label != "DEMO" || len(source.Notes) != 1 || !strings.Contains(source.Notes[0], "SIMULATED") {
		t.Errorf("source %+v", source)
	}
}

func TestPlayerKeepsTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s screen
		p := player(t, &s, PlayerOptions{Speed: 2}, exits(20)...)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx, s.sink) }()
		count := func() int { got, _, _ := s.seen(); return len(got) }
		after := func(d time.Duration, want int, what string) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if n := count(); n != want {
				t.Errorf("%s: %d events, want %d", what, n, want)
			}
		}
		after(1100*time.Millisecond, 3, "1.1 s at speed 2")
		if at, _, last := p.Position(); at != 3.2e9 || last != 20e9 {
			t.Errorf("at %d of %d", at, last)
		}
		p.Pause(true)
		after(time.Hour, 3, "paused")
		if at, _, _ := p.Position(); at != 3.2e9 || !p.Paused() {
			t.Errorf("paused, but at %d", at)
		}
		p.SetSpeed(1)
		p.Pause(false)
		after(900*time.Millisecond, 4, "going on at speed 1")
		p.SetSpeed(-3)
		after(time.Millisecond, 20, "speed 0")
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		default:
			t.Error("it did not end with the recording")
		}
		cancel()
	})
}

func TestPlayerSeeks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s screen
		p := player(t, &s, PlayerOptions{Paused: true, Hold: true, Start: 3500 * time.Millisecond}, exits(20)...)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go p.Run(ctx, s.sink)
		at := func(events, resets int, where sched.Time) {
			t.Helper()
			synctest.Wait()
			got, _, r := s.seen()
			mustEqual(t, got, exits(20)[:events])
			if r != resets {
				t.Errorf("%d resets, want %d", r, resets)
			}
			if at, _, _ := p.Position(); at != where {
				t.Errorf("at %d, want %d", at, where)
			}
		}
		at(4, 0, 4.5e9)
		p.Seek(10e9)
		at(10, 0, 10e9)
		p.Seek(3e9)
		at(3, 1, 3e9)
		p.Seek(3.9e9)
		at(3, 1, 3.9e9)
		p.Seek(0)
		at(1, 2, 1e9)
		p.Seek(1e18)
		at(20, 2, 20e9)
		if !p.AtEnd() {
			t.Error("not at the end")
		}
		p.Seek(6e9)
		at(6, 3, 6e9)
		p.Pause(false)
		p.SetSpeed(1)
		time.Sleep(1500 * time.Millisecond)
		at(7, 3, 7.5e9)
	})
}

func TestPlayerStepsToMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s screen
		events := exits(30)
		events[5] = sched.Xid{Time: 6e9, Code: 31}
		for i, id := range []string{"a", "a", "b"} {
			events[10+i] = sched.Command{Time: sched.Time(11e9 + i*1e9), ID: id}
		}
		p := player(t, &s, PlayerOptions{Paused: true, Hold: true}, events...)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go p.Run(ctx, s.sink)
		for _, want := range []int{6, 11, 13, 30} {
			p.NextMark()
			synctest.Wait()
			got, _, _ := s.seen()
			mustEqual(t, got, events[:want])
		}
		p.Seek(8e9) // commands count as new again after the reset
		synctest.Wait()
		p.NextMark()
		synctest.Wait()
		got, _, _ := s.seen()
		mustEqual(t, got, events[:11])
	})
}

func TestPlayerLoops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s screen
		p := player(t, &s, PlayerOptions{Speed: 1, Loop: true}, exits(3)...)
		ctx, cancel := context.WithCancel(t.Context())
		go p.Run(ctx, s.sink)
		time.Sleep(5100 * time.Millisecond) // two rounds of 2 s, and 1.1 s
		synctest.Wait()
		got, _, resets := s.seen()
		mustEqual(t, got, exits(3)[:2])
		if resets != 2 {
			t.Errorf("%d resets", resets)
		}
		cancel()
	})
}

// TestPlayerBeginsWhereTheRecordingDoes: what an excerpt tells of the time
// before it comes at once, and is no mark.
func TestPlayerBeginsWhereTheRecordingDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		w, err := NewWriter(&b, Header{From: 3600e9}, WriterOptions{Wait: true})
		if err != nil {
			t.Fatal(err)
		}
		events := []sched.Event{sched.ProcessExit{Time: 1, PID: 1}, sched.Xid{Time: 2}, sched.ProcessExit{Time: 3600e9, PID: 2}, sched.Xid{Time: 3605e9}, sched.ProcessExit{Time: 3609e9}}
		if err := errors.Join(w.Write(events), w.Close()); err != nil {
			t.Fatal(err)
		}
		var s screen
		p, err := NewPlayer(bytes.NewReader(b.Bytes()), "x", PlayerOptions{Speed: 1, Hold: true})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go p.Run(ctx, s.sink)
		synctest.Wait()
		got, _, _ := s.seen()
		mustEqual(t, got, events[:3])
		p.NextMark()
		synctest.Wait()
		got, _, _ = s.seen()
		mustEqual(t, got, events[:4])
	})
}

func TestPlayerOfADamagedFile(t *testing.T) {
	whole := record(t, WriterOptions{}, someSeconds(5)...)
	data := whole[:len(whole)-10]
	for _, hold := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var s screen
			p, err := NewPlayer(bytes.NewReader(data), "x.tsg.zst", PlayerOptions{Hold: hold, AsFastAsPossible: true})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- p.Run(ctx, s.sink) }()
			synctest.Wait()
			got, source, _ := s.seen()
			if len(got) < 8 {
				t.Errorf("%d events", len(got))
			}
			if n := source.Notes; len(n) != 1 || !strings.Contains(n[0], "x.tsg.zst: line") {
				t.Errorf("notes %q", n)
			}
			cancel()
			if err := <-ended; hold && err != nil || !hold && !errors.Is(err, ErrTruncated) {
				t.Errorf("hold %v: it ended with %v", hold, err)
			}
		})
	}
}

func TestOpenPlayer(t *testing.T) {
	dir := t.TempDir()
	if _, err := OpenPlayer(dir, PlayerOptions{}); err == nil || !strings.Contains(err.Error(), "regular") {
		t.Errorf("a folder: %v", err)
	}
	path := filepath.Join(dir, "a")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenPlayer(path, PlayerOptions{}); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), path) {
		t.Errorf("a script: %v", err)
	}
	path = filepath.Join(dir, "b")
	if err := os.WriteFile(path, record(t, WriterOptions{}, exits(3)...), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := OpenPlayer(path, PlayerOptions{AsFastAsPossible: true})
	if err != nil {
		t.Fatal(err)
	}
	var s screen
	if err := errors.Join(p.Run(context.Background(), s.sink), p.Close()); err != nil {
		t.Fatal(err)
	}
	got, _, _ := s.seen()
	mustEqual(t, got, exits(3))
}

func TestPlayerOfAStream(t *testing.T) {
	if _, err := NewPlayer(io.MultiReader(), "/dev/stdin", PlayerOptions{}); err == nil || !strings.Contains(err.Error(), "/dev/stdin") {
		t.Errorf("got %v", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if _, err := NewPlayer(r, "/dev/stdin", PlayerOptions{}); err == nil || !strings.Contains(err.Error(), "file") {
		t.Errorf("got %v", err)
	}
}

func TestReadUntil(t *testing.T) {
	var s screen
	p := player(t, &s, PlayerOptions{Label: "DEMO"}, exits(20)...)
	for _, c := range []struct {
		until sched.Time
		want  int
	}{{0, 20}, {5.5e9, 5}, {1, 0}} {
		s.reset()
		if err := p.ReadUntil(context.Background(), c.until, s.sink); err != nil {
			t.Fatal(err)
		}
		got, source, _ := s.seen()
		mustEqual(t, got, exits(20)[:c.want])
		if c.want > 0 && source.Label != "DEMO" {
			t.Errorf("source %+v", source)
		}
	}
}
