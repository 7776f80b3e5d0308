package recording

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"tsgtop/internal/sched"
)

// steadyTrace is a trace as two processes with timeslices of 2048 us gave it
// on an H200: turns of about 2197 us with a jitter of some microseconds, 80 us
// between them, times in steps of 32 ns; read 50 times a second.
func steadyTrace(records, perBatch int) []sched.Event {
	seed := uint64(1)
	jitter := func(n uint64) sched.Time {
		seed = seed*6364136223846793005 + 1442695040888963407
		return sched.Time(seed >> 33 % n * 32)
	}
	at := sched.Time(1795966946365947552)
	var events []sched.Event
	var b sched.TraceBatch
	for i := range records {
		ctx := uint32(0x80 + 2*(i/2%2))
		b.Records = append(b.Records, sched.TraceRecord{Time: at, Context: ctx, PID: 536 + ctx&2/2, Tag: sched.TagStart + uint8(i%2)})
		if i%2 == 0 {
			at += 2197_000/32*32 + jitter(300)
		} else {
			at += 80_000/32*32 + jitter(200)
		}
		if len(b.Records) == perBatch {
			b.Time = at + jitter(20000)
			events = append(events, b)
			b.Records = nil
		}
	}
	return events
}

func BenchmarkWriteTrace(b *testing.B) {
	events := steadyTrace(100_000, 100)
	var size, records int
	for b.Loop() {
		size = len(record(b, WriterOptions{}, events...))
		records += 100_000
	}
	b.ReportMetric(float64(size)/100_000, "bytes/record")
	b.ReportMetric(float64(records)/b.Elapsed().Seconds(), "records/s")
}

func BenchmarkReadTrace(b *testing.B) {
	data := record(b, WriterOptions{}, steadyTrace(100_000, 100)...)
	n := 0
	for b.Loop() {
		r, err := NewReader(bytes.NewReader(data))
		if err != nil {
			b.Fatal(err)
		}
		for {
			e, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
			n += len(e.(sched.TraceBatch).Records)
		}
		r.Close()
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "records/s")
}

func BenchmarkReadCalls(b *testing.B) {
	batch := sched.CallBatch{}
	for i := range 100 {
		batch.Calls = append(batch.Calls, sched.Call{Start: sched.Time(i), End: sched.Time(i + 9), PID: 479, TID: 480, Comm: "python", File: 3,
			Kind: sched.CallControl, Number: 0xa06c0103, Client: 0xc1d00001, Object: 0x5c000015, Params: &sched.Params{Timeslice: sched.Ptr(uint64(2048))}})
	}
	events := make([]sched.Event, 100)
	for i := range events {
		events[i] = batch
	}
	data := record(b, WriterOptions{}, events...)
	n := 0
	for b.Loop() {
		n += 100 * len(mustRead(b, data))
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "calls/s")
}
