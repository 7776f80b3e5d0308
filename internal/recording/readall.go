package recording

import (
	"context"
	"errors"
	"io"
	"slices"

	"tsgtop/internal/sched"
)

// batchEvents is how many events a sink is given at once at the most.
const batchEvents = 256

// overtake is by how much events of different probes can be out of order.
const overtake = 2e9 // ns

// ReadAll gives a recording's events to sink as fast as it takes them, up to
// and including the instant until (0: all of them). What sink is given it must
// not keep. A batch of the trace that reaches beyond until is cut there. The
// end of the recording, of ctx, or until is no error; otherwise everything
// before the error was given.
func ReadAll(ctx context.Context, r *Reader, until sched.Time, sink func([]sched.Event)) error {
	batch := make([]sched.Event, 0, batchEvents)
	give := func() {
		if len(batch) > 0 {
			sink(batch)
			clear(batch)
			batch = batch[:0]
		}
	}
	defer give()
	for ctx.Err() == nil {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if until != 0 && e.When() > until {
			if e.When() > until+overtake {
				return nil
			}
			cut, some := cutTrace(e, until)
			if !some {
				continue
			}
			e = cut
		}
		if batch = append(batch, e); len(batch) == batchEvents {
			give()
		}
	}
	return nil
}

// cutTrace is the part up to an instant of a trace batch, if e is one.
func cutTrace(e sched.Event, until sched.Time) (sched.Event, bool) {
	b, ok := e.(sched.TraceBatch)
	if !ok {
		return nil, false
	}
	n := slices.IndexFunc(b.Records, func(r sched.TraceRecord) bool { return r.Time > until })
	if n < 0 {
		n = len(b.Records)
	}
	b.Time, b.Records = until, b.Records[:n]
	return b, true
}
