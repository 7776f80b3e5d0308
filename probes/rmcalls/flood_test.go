package rmcalls

import (
	"context"
	"testing"
	"time"

	"github.com/cilium/ebpf/ringbuf"

	"tsgtop/internal/sched"
)

// flood is a ring that is filled faster than anybody can read.
type flood struct {
	record []byte
	reads  int
	stop   func() // called once some have been read
}

func (f *flood) SetDeadline(time.Time) {}

func (f *flood) ReadInto(r *ringbuf.Record) error {
	if f.reads++; f.reads == 100 {
		f.stop()
	}
	if f.reads > 1_000_000 {
		return ringbuf.ErrClosed // as seldom as never
	}
	r.RawSample = f.record
	return nil
}

// Processes that make calls without end do not keep Run from returning.
func TestReadEndsInAFlood(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := &flood{record: raw{kind: 1}.bytes(), stop: cancel}
	p := &Probe{opts: Options{RingBytes: 4096}, own: &witness{}}
	queue := make(chan []sched.Event, 4)
	if err := p.read(ctx, f, queue); err != nil {
		t.Fatal(err)
	}
	if f.reads > 1000 {
		t.Errorf("it went on for %d records after the end", f.reads)
	}
	if len(queue) == 0 {
		t.Error("what came before the end is lost")
	}
}
