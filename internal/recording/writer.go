package recording

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"tsgtop/internal/crash"
	"tsgtop/internal/sched"
)

// WriterOptions say what a recording holds and how large it may become.
type WriterOptions struct {
	Scrub bool // names of users and hosts, and arguments, are taken out
	// ScrubNames: users' names that are known beforehand. Others are taken out
	// from the event on that gives them as such.
	ScrubNames []string
	Args       bool // arguments of processes are left in; they hold secrets. Not with Scrub
	// MaxBytes: from this size on, the recording goes on in a new file, and
	// the old one becomes FILE.1, the one before FILE.2, and so on. 0: never.
	// Only for Create.
	MaxBytes int64
	MaxFiles int // with MaxBytes: files that are kept, the current one included; 0: 8
	// ToolVersion is the version that Create's header names.
	ToolVersion string
	// From is Header.From of Create's header: where the recording proper begins,
	// when what was there already is written first.
	From sched.Time
	// Wait: Write waits where the disk is slower than the events, as when a
	// recording is made from another. Otherwise events are dropped, counted,
	// and the count is written to the recording.
	Wait bool
}

// maxQueued is how much text may wait for the disk, in bytes.
const maxQueued = 32 << 20

// Writer writes a recording. Write and Close may be called from any goroutine.
type Writer struct {
	opts WriterOptions
	out  output
	zstd *zstd.Encoder

	mu      sync.Mutex
	room    *sync.Cond // signalled when the queue has shrunk
	lines   lineMaker
	frame   []byte     // text of the frame in the making
	began   sched.Time // newest event when the frame was begun
	queue   []job
	queued  int // bytes of text in queue
	dropped int
	keep    *keeper // only with rotation
	rotate  bool    // the file is large enough
	part    int
	err     error // sticky
	closed  bool

	wake chan struct{}
	done chan struct{}
}

// job is a frame to write, or the beginning of a new file.
type job struct {
	text []byte
	next bool
}

// output is where frames go.
type output interface {
	io.WriteCloser
	// next goes on in a new file.
	next() error
	// written is the size of the current file in bytes.
	written() int64
}

// NewWriter begins a recording on w and writes its header. It does not close w.
func NewWriter(w io.Writer, h Header, opts WriterOptions) (*Writer, error) {
	if opts.MaxBytes > 0 {
		return nil, errors.New("a recording that rotates needs a file of its own: use Create")
	}
	return newWriter(&stream{w: w}, h, opts)
}

func newWriter(out output, h Header, opts WriterOptions) (*Writer, error) {
	enc, err := newFrameEncoder()
	if err != nil {
		return nil, err
	}
	w := &Writer{opts: opts, out: out, zstd: enc, lines: newLineMaker(h, opts), wake: make(chan struct{}, 1), done: make(chan struct{})}
	w.room = sync.NewCond(&w.mu)
	if opts.MaxBytes > 0 {
		w.keep = newKeeper()
	}
	if w.frame, err = w.lines.appendHeader(nil, 0, 0); err != nil {
		return nil, err
	}
	// The header is written at once, so that a file is a recording from the
	// first moment, and a disk that takes nothing is known before the run.
	if _, err := out.Write(enc.EncodeAll(w.frame, nil)); err != nil {
		return nil, fmt.Errorf("writing the recording's header: %w", err)
	}
	w.frame = nil
	crash.Go(w.flush)
	return w, nil
}

func newFrameEncoder() (*zstd.Encoder, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20), zstd.WithEncoderLevel(zstd.SpeedBetterCompression))
	if err != nil {
		return nil, fmt.Errorf("starting the zstd encoder: %w", err)
	}
	return enc, nil
}

// Write records events. It does not wait for the disk, unless the options say
// so. An error is final: it comes again from every further call.
func (w *Writer) Write(events []sched.Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range events {
		for w.opts.Wait && w.err == nil && w.queued > maxQueued {
			w.room.Wait()
		}
		if w.err != nil {
			return w.err
		}
		if w.closed {
			return errors.New("the recording is closed")
		}
		if err := w.add(e); err != nil {
			w.err = fmt.Errorf("recording: %w", err)
			return w.err
		}
	}
	return w.err
}

func (w *Writer) add(e sched.Event) error {
	e = w.lines.prepare(e)
	if w.rotate && w.keep != nil {
		w.seal()
		w.rotate = false
		if err := w.enqueueNext(e.When()); err != nil {
			return err
		}
	}
	if w.keep != nil {
		w.keep.apply(e)
	}
	if w.queued > maxQueued {
		w.dropped++
		return nil
	}
	if w.dropped > 0 {
		e := sched.Event(sched.ProbeStatus{Time: e.When(), Probe: "recording", GPU: sched.Unknown, State: sched.ProbeLimited,
			Why: fmt.Sprintf("%d events are missing here: the disk was too slow for them", w.dropped)})
		w.dropped = 0
		var err error
		if w.frame, err = w.lines.appendEvent(w.frame, e); err != nil {
			return err
		}
	}
	var err error
	if w.frame, err = w.lines.appendEvent(w.frame, e); err != nil {
		return err
	}
	switch t := e.When(); {
	case len(w.frame) >= frameBytes:
		w.seal()
		w.began = t
	case w.began == 0:
		w.began = t
	case t.Sub(w.began) >= frameSpan:
		w.seal()
		w.began = t
	}
	return nil
}

// enqueueNext begins a new file with what a reader of it alone must know.
func (w *Writer) enqueueNext(from sched.Time) error {
	w.part++
	text, err := w.lines.appendHeader(nil, from, w.part)
	if err != nil {
		return err
	}
	for _, e := range w.keep.events() {
		if text, err = w.lines.appendEvent(text, e); err != nil {
			return err
		}
	}
	w.queue = append(w.queue, job{text: text, next: true})
	w.queued += len(text)
	return nil
}

// seal closes the frame in the making.
func (w *Writer) seal() {
	if len(w.frame) == 0 {
		return
	}
	w.queue = append(w.queue, job{text: w.frame})
	w.queued += len(w.frame)
	w.frame = make([]byte, 0, min(cap(w.frame), 2*frameBytes))
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// flush writes frames as they come, and once a second what there is, so that
// a crash of the program loses a second at most.
func (w *Writer) flush() {
	defer close(w.done)
	tick := time.NewTicker(frameSpan)
	defer tick.Stop()
	var frame []byte
	for {
		ticked := false
		select {
		case <-tick.C:
			ticked = true
		case <-w.wake:
		}
		w.mu.Lock()
		if ticked || w.closed {
			w.seal()
		}
		jobs, closed := w.queue, w.closed
		w.queue = nil
		w.mu.Unlock()

		var err error
		bytes := 0
		for _, j := range jobs {
			bytes += len(j.text)
			if err == nil {
				frame, err = w.write(j, frame)
			}
		}
		w.mu.Lock()
		w.queued -= bytes
		if err != nil && w.err == nil {
			w.err = err
		}
		if w.opts.MaxBytes > 0 && w.out.written() >= w.opts.MaxBytes {
			w.rotate = true
		}
		finished := closed && len(w.queue) == 0 && len(w.frame) == 0 || w.err != nil
		w.room.Broadcast()
		w.mu.Unlock()
		if finished {
			return
		}
	}
}

func (w *Writer) write(j job, frame []byte) ([]byte, error) {
	if j.next {
		if err := w.out.next(); err != nil {
			return frame, err
		}
	}
	for text := j.text; len(text) > 0; {
		var part []byte
		part, text = cutFrame(text)
		frame = w.zstd.EncodeAll(part, frame[:0])
		if _, err := w.out.Write(frame); err != nil {
			return frame, fmt.Errorf("writing the recording: %w", err)
		}
	}
	return frame, nil
}

// cutFrame splits off as many whole lines as one frame may hold: a reader
// must hold a frame's window.
func cutFrame(text []byte) (part, rest []byte) {
	if len(text) <= maxLine {
		return text, nil
	}
	n := 0
	for i, c := range text {
		if c != '\n' {
			continue
		}
		if i+1 > maxLine && n > 0 {
			break
		}
		n = i + 1
	}
	if n == 0 {
		n = len(text)
	}
	return text[:n], text[n:]
}

// Err is the error that ended the recording, or nil.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Close writes what is left and ends the recording. It waits for the disk.
func (w *Writer) Close() error {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		<-w.done
		return w.Err()
	}
	w.closed = true
	w.room.Broadcast()
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
	<-w.done
	closeErr := w.out.Close()
	if err := w.Err(); err != nil {
		return err
	}
	return closeErr
}

// lineMaker makes lines of events, with what the options take out taken out.
type lineMaker struct {
	header Header
	scrub  *scrubber
	args   bool
	enc    *encoder
}

func newLineMaker(h Header, opts WriterOptions) lineMaker {
	h.Schema = sched.SchemaVersion
	if h.Started == 0 {
		h.Started = sched.Now()
	}
	h.Tool, h.Host, h.Label, h.Notes = safeString(h.Tool), safeString(h.Host), safeString(h.Label), mapStrings(h.Notes, safeString)
	m := lineMaker{header: h, args: opts.Args, enc: newEncoder()}
	if opts.Scrub {
		m.scrub = newScrubber(h, opts.ScrubNames)
	}
	return m
}

// prepare is the event as it is recorded.
func (m *lineMaker) prepare(e sched.Event) sched.Event {
	e = safeEvent(e)
	if !m.args {
		e = withoutArgs(e)
	}
	if m.scrub != nil {
		e = m.scrub.event(e)
	}
	return e
}

func (m *lineMaker) appendEvent(dst []byte, e sched.Event) ([]byte, error) {
	return m.enc.appendEvent(dst, e)
}

func (m *lineMaker) appendHeader(dst []byte, from sched.Time, part int) ([]byte, error) {
	h := m.header
	if m.scrub != nil {
		h = m.scrub.header(h)
	}
	if from != 0 {
		h.From = from
	}
	h.Part = part
	return m.enc.appendJSON(dst, kindHeader, h)
}

// stream is an output that cannot rotate.
type stream struct {
	w io.Writer
	n int64
}

func (s *stream) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	s.n += int64(n)
	return n, err
}

func (s *stream) Close() error   { return nil }
func (s *stream) written() int64 { return s.n }
func (s *stream) next() error    { return errors.New("a stream cannot go on in a new file") }
