package ui

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/charmbracelet/colorprofile"

	"tsgtop/internal/sched"
)

// BenchmarkFrame200 is a frame with everything in it renewed: 200 TSGs at 120x40.
func BenchmarkFrame200(b *testing.B) {
	snap := crowd(t0)
	h := start(b, 120, 40, func(sched.Time) *sched.Snapshot { return snap }, nil)
	b.ReportAllocs()
	for b.Loop() {
		h.m.renew(true)
		if len(h.m.View().Content) == 0 {
			b.Fatal("an empty frame")
		}
	}
}

// BenchmarkFrameIdle is a frame in which nothing is due.
func BenchmarkFrameIdle(b *testing.B) {
	h := start(b, 120, 40, crowd, nil)
	h.send(tickMsg{})
	b.ReportAllocs()
	for b.Loop() {
		h.m.frames = 0
		h.m.Update(tickMsg{})
		h.m.View()
	}
}

// countingWriter counts what goes to the terminal.
type countingWriter struct{ n atomic.Int64 }

func (w *countingWriter) Write(p []byte) (int, error) {
	w.n.Add(int64(len(p)))
	return len(p), nil
}

// movingBoard answers with the machine as it is at the present instant.
type movingBoard struct {
	snap  func(sched.Time) *sched.Snapshot
	start time.Time
}

func (b *movingBoard) Snapshot(o sched.SnapshotOptions) *sched.Snapshot {
	s := b.snap(t0.Add(time.Since(b.start)))
	if o.LaneSpan > 0 {
		s.Lanes = lanes(s, o.LaneSpan)
	}
	return s
}

func (b *movingBoard) Calls(uint64, int, func(*sched.Call) bool) []sched.CallLine { return nil }

// BenchmarkBytesToTerminal runs the screen at 120x40 and 10 frames a second
// and counts what it sends, the first full frame apart.
func BenchmarkBytesToTerminal(b *testing.B) {
	for _, bc := range []struct {
		name string
		snap func(sched.Time) *sched.Snapshot
	}{
		{"2TSGs", func(now sched.Time) *sched.Snapshot { return moving(oneGPU(now)) }},
		{"200TSGs", crowd},
	} {
		b.Run(bc.name, func(b *testing.B) {
			for b.Loop() {
				var w countingWriter
				ctx, cancel := context.WithTimeout(b.Context(), 5*time.Second)
				var first int64
				time.AfterFunc(time.Second, func() { first = w.n.Load() })
				err := Run(ctx, Options{Board: &movingBoard{bc.snap, time.Now()}, Profile: colorprofile.TrueColor,
					Input: neverReader{ctx}, Output: &w, Env: []string{"TERM=xterm-256color", "LANG=C.UTF-8"}, Width: 120, Height: 40})
				cancel()
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(w.n.Load()-first)/4, "B/s")
				b.ReportMetric(float64(first), "B-first")
			}
		})
	}
}

// moving lets the numbers of a snapshot change with time as they do on a GPU.
func moving(s *sched.Snapshot) *sched.Snapshot {
	k := float64(s.Time/1e6%997) / 997
	for i := range s.TSGs {
		if st := s.TSGs[i].Score[0].Residency; st != nil {
			*st = *stats(243, 2195+5*k, 2200+7*k)
			s.TSGs[i].Score[0].Share = f64(0.47 + 0.02*k)
			s.TSGs[i].Score[0].TurnsPerS = f64(240 + 6*k)
		}
	}
	s.GPUs[0].SwitchesPerS = f64(480 + 10*k)
	s.GPUs[0].SwitchTax[0] = f64(0.036 + 0.002*k)
	return s
}

// neverReader is a terminal at which nobody types.
type neverReader struct{ ctx context.Context }

func (r neverReader) Read([]byte) (int, error) {
	<-r.ctx.Done()
	return 0, io.EOF
}
