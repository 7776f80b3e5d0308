package rmcalls

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cilium/ebpf/ringbuf"

	"tsgtop/internal/crash"
	"tsgtop/internal/sched"
)

const (
	batchLen = 1024                  // calls in one batch at most
	busyPoll = 2 * time.Millisecond  // how long to let records gather while there are some
	idlePoll = 20 * time.Millisecond // and while there are none
)

// Run sends what is observed to sink until ctx ends or the probe is closed:
// calls in batches, exits, and each second the counts and, where they changed,
// losses and status. A sink that is too slow costs calls, which are counted;
// it never holds up the kernel.
func (p *Probe) Run(ctx context.Context, sink func([]sched.Event)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	queue := make(chan []sched.Event, p.opts.QueueLen)
	failed := make(chan error, 1)
	crash.Go(func() { failed <- p.read(ctx, p.ring, queue) })
	// The ring has one reader: do not return before it is gone.
	defer func() { cancel(); <-failed }()

	counter := newCounter(p.coll.Maps["counts"])
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	sink([]sched.Event{p.Status(), p.ExitStatus()})
	var lossSeen sched.Loss
	for {
		select {
		case events := <-queue:
			sink(events)
		case <-ticker.C:
			p.clock.tie()
			p.tell(counter, &lossSeen, sink)
		case err := <-failed:
			failed <- nil
			p.drain(queue, sink)
			p.tell(counter, &lossSeen, sink)
			return err
		case <-ctx.Done():
			cancel()
			err := <-failed
			failed <- nil
			p.drain(queue, sink)
			p.tell(counter, &lossSeen, sink)
			return err
		}
	}
}

func (p *Probe) drain(queue <-chan []sched.Event, sink func([]sched.Event)) {
	for {
		select {
		case events := <-queue:
			sink(events)
		default:
			return
		}
	}
}

// tell sends counts, and losses and status where they changed.
func (p *Probe) tell(counter *counter, seen *sched.Loss, sink func([]sched.Event)) {
	var events []sched.Event
	var counts sched.CallCounts
	err := p.use(func() (err error) {
		counts, err = counter.since()
		return err
	})
	if err == nil && len(counts.Counts) > 0 {
		events = append(events, counts)
	}
	if loss, err := p.Losses(); err == nil {
		t := loss.Time
		loss.Time = seen.Time
		if loss != *seen {
			loss.Time = t
			*seen = loss
			events = append(events, loss, p.Status())
		}
	}
	if len(events) > 0 {
		sink(events)
	}
}

// ringReader is the part of a ringbuf.Reader that read needs.
type ringReader interface {
	ReadInto(*ringbuf.Record) error
	SetDeadline(time.Time)
}

// read takes records from a ring into the queue until ctx ends.
func (p *Probe) read(ctx context.Context, ring ringReader, queue chan<- []sched.Event) error {
	d := decoder{toTime: p.toTime, command: p.own.command}
	b := batcher{queue: queue, lost: func(n int) { p.queueLost.Add(uint64(n)) }}
	var raw ringbuf.Record
	var rec record
	wait := busyPoll
	// A ring that is filled as fast as it is read is never empty: look up now and then.
	most := p.opts.RingBytes / exitSize
	for last := false; !last; {
		if last = ctx.Err() != nil; last {
			wait = 0 // what is there now still belongs to this run
		}
		ring.SetDeadline(time.Now().Add(wait))
		n := 0
		for n < most {
			err := ring.ReadInto(&raw)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if errors.Is(err, ringbuf.ErrClosed) {
				b.flush()
				return nil
			}
			if err != nil {
				return fmt.Errorf("reading the ring of RM calls: %w", err)
			}
			n++
			if err := d.decode(raw.RawSample, &rec); err != nil {
				p.malformed.Add(1)
				continue
			}
			b.add(&rec)
		}
		b.flush()
		if n > 0 {
			wait = busyPoll
		} else {
			wait = min(wait*2, idlePoll)
		}
	}
	return nil
}

// batcher gathers calls into batches for the queue, and keeps the order of
// calls and exits.
type batcher struct {
	queue chan<- []sched.Event
	lost  func(n int)
	wait  bool // rather than lose: for what has no kernel at its other end
	calls []sched.Call
	room  int // for the next batch: as much as the last one took
}

func (b *batcher) add(r *record) {
	if r.isExit {
		b.flush()
		b.put([]sched.Event{r.exit}, 1)
		return
	}
	if b.calls == nil {
		b.calls = make([]sched.Call, 0, max(b.room, 16))
	}
	b.calls = append(b.calls, r.call)
	if len(b.calls) >= batchLen {
		b.flush()
	}
}

func (b *batcher) flush() {
	if len(b.calls) == 0 {
		return
	}
	b.put([]sched.Event{sched.CallBatch{Calls: b.calls}}, len(b.calls))
	b.room = len(b.calls)
	b.calls = nil
}

func (b *batcher) put(events []sched.Event, n int) {
	if b.wait {
		b.queue <- events
		return
	}
	select {
	case b.queue <- events:
	default:
		b.lost(n)
	}
}
