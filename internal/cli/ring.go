package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"tsgtop/internal/recording"
	"tsgtop/internal/sched"
)

// ringOptions say how the last while is kept, and what has it written.
type ringOptions struct {
	recording.RingOptions
	out   string
	onXid bool
	after time.Duration // how long to go on after an Xid: what follows it matters, too
	most  int           // files; a storm of Xids must not fill the disk
}

// ringRecorder keeps the last while of a source in memory, and writes it to a
// file of its own each time that something asks for it.
type ringRecorder struct {
	opts  ringOptions
	ring  *recording.Ring
	say   func(string)
	wrote int

	mu   sync.Mutex
	xid  *time.Timer // runs from an Xid to its write
	due  chan string // why the ring is to be written
	fail error
}

// keepLast keeps the last while of the source, until it ends or ctx does, and
// writes it on SIGQUIT (Ctrl-\) and, if asked for, on an Xid.
func (o *options) keepLast(ctx context.Context, s *opened, ro ringOptions, calls bool) error {
	ring, err := recording.NewRing(recording.Header{Tool: version}, ro.RingOptions)
	if err != nil {
		return fail(exitUsage, "record --last: %w", err)
	}
	r := &ringRecorder{opts: ro, ring: ring, due: make(chan string, 1),
		say: o.sayLine}
	if l, ok := s.src.(sched.Looker); ok && calls {
		l.Look(true)
		defer l.Look(false)
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGQUIT)
	defer signal.Stop(asked)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	untap := s.board.Join(r.take)
	defer untap()
	blind := s.watchProbes(ctx, stop)
	if s.live != nil {
		go o.releaseOnSignal(ctx, s.live)
		go o.sayReady(ctx, s)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.board.Run(ctx) }()
	how := "Ctrl-\\ or kill -QUIT writes it"
	if ro.onXid {
		how += ", and so does an Xid"
	}
	r.say(fmt.Sprintf("keeping the last %v in memory; %s", ro.Span, how))
	for {
		select {
		case <-asked:
			err = r.write("asked for")
		case why := <-r.due:
			err = r.write(why)
		case err := <-ended:
			if b := blind(); b != nil {
				return b
			}
			return r.finish(err)
		}
		if err != nil {
			r.say(err.Error()) // go on: the next may have room
		}
	}
}

// take is the tap.
func (r *ringRecorder) take(events []sched.Event) {
	err := r.ring.Write(events)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil && r.fail == nil {
		r.fail = err
	}
	if !r.opts.onXid || r.xid != nil {
		return
	}
	for _, e := range events {
		if x, ok := e.(sched.Xid); ok {
			why := fmt.Sprintf("Xid %d on GPU%d", x.Code, x.GPU)
			r.xid = time.AfterFunc(r.opts.after, func() {
				r.mu.Lock()
				r.xid = nil
				r.mu.Unlock()
				select {
				case r.due <- why:
				default: // one is due already, and has this one, too
				}
			})
			return
		}
	}
}

// write writes the ring to the next file.
func (r *ringRecorder) write(why string) error {
	if r.wrote >= r.opts.most {
		return fmt.Errorf("%s: not written: %d files were written already (--max-files)", why, r.wrote)
	}
	path := r.opts.out
	if r.wrote > 0 {
		path = fmt.Sprintf("%s.%d", r.opts.out, r.wrote+1)
	}
	span, _ := r.ring.Kept()
	if err := r.ring.DumpFile(path); err != nil {
		return fmt.Errorf("%s: %w", why, err)
	}
	r.wrote++
	r.say(fmt.Sprintf("%s: the last %v are in %s", why, span.Round(100*time.Millisecond), path))
	return nil
}

// finish is the end of the source. Who did not ask for Xids alone gets what is
// kept, if nothing was written yet.
func (r *ringRecorder) finish(err error) error {
	r.mu.Lock()
	pending := r.xid != nil && r.xid.Stop()
	fault := r.fail
	r.mu.Unlock()
	switch {
	case fault != nil:
		return fail(exitUsage, "record --last: %w", fault)
	case pending || len(r.due) > 0:
		if werr := r.write("Xid"); werr != nil {
			return fail(exitUsage, "record --last: %w", werr)
		}
	case r.wrote == 0 && !r.opts.onXid:
		if werr := r.write("ended"); werr != nil {
			return fail(exitUsage, "record --last: %w", werr)
		}
	}
	return err
}
