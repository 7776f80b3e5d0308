package recording

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"tsgtop/internal/sched"
)

// RingOptions say how much a Ring keeps.
type RingOptions struct {
	Span     time.Duration // how far back; 0: 60 s
	MaxBytes int           // of compressed frames; 0: 64 MiB. Older ones are dropped, and the header says so
	Scrub    bool          // as in WriterOptions
	Args     bool

	ScrubNames []string
}

// Ring keeps the last while of a source's events in memory, compressed, to be
// written when something has happened that nobody was recording for. It may
// be used from any goroutine.
type Ring struct {
	opts RingOptions

	mu     sync.Mutex
	enc    *zstd.Encoder
	dec    *zstd.Decoder
	lines  lineMaker
	keep   *keeper // what was before the oldest frame
	frames []ringFrame
	bytes  int        // in frames
	frame  []byte     // text in the making
	began  sched.Time // of frame
	newest sched.Time
	full   bool // frames were dropped for their size
	err    error
}

type ringFrame struct {
	data     []byte
	from, to sched.Time
}

// NewRing makes a Ring. The header is that of the recordings it writes.
func NewRing(h Header, opts RingOptions) (*Ring, error) {
	if opts.Span <= 0 {
		opts.Span = time.Minute
	}
	if opts.MaxBytes <= 0 {
		opts.MaxBytes = 64 << 20
	}
	enc, err := newFrameEncoder()
	if err != nil {
		return nil, err
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxDecoder))
	if err != nil {
		return nil, fmt.Errorf("starting the zstd decoder: %w", err)
	}
	return &Ring{opts: opts, enc: enc, dec: dec, keep: newKeeper(), lines: newLineMaker(h, WriterOptions{Scrub: opts.Scrub, ScrubNames: opts.ScrubNames, Args: opts.Args})}, nil
}

// Write takes events in. An error is final.
func (r *Ring) Write(events []sched.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range events {
		if r.err != nil {
			return r.err
		}
		e = r.lines.prepare(e)
		if r.frame, r.err = r.lines.appendEvent(r.frame, e); r.err != nil {
			return r.err
		}
		t := e.When()
		if r.began == 0 {
			r.began = t
		}
		r.newest = max(r.newest, t)
		if r.newest.Sub(r.began) >= frameSpan || len(r.frame) >= frameBytes {
			r.seal()
			r.err = r.evict()
		}
	}
	return r.err
}

func (r *Ring) seal() {
	if len(r.frame) == 0 {
		return
	}
	data := bytes.Clone(r.enc.EncodeAll(r.frame, nil))
	r.frames = append(r.frames, ringFrame{data, r.began, r.newest})
	r.bytes += len(data)
	r.frame, r.began = r.frame[:0], 0
}

// evict drops what is older than the span or too much; what it tells of
// things that still live goes to the keeper.
func (r *Ring) evict() error {
	old := r.newest.Add(-r.opts.Span)
	n := 0
	for n < len(r.frames)-1 {
		f := r.frames[n]
		if f.to >= old && r.bytes <= r.opts.MaxBytes {
			break
		}
		r.full = f.to >= old
		text, err := r.dec.DecodeAll(f.data, nil)
		if err != nil {
			return fmt.Errorf("reading back a frame of the ring: %w", err)
		}
		for line := range bytes.Lines(text) {
			if bytes.HasPrefix(line, []byte(`{"k":"trace"`)) {
				continue
			}
			e, err := decodeLine(bytes.TrimSuffix(line, []byte("\n")))
			if err != nil {
				return fmt.Errorf("reading back a line of the ring: %w", err)
			}
			r.keep.apply(e)
		}
		r.bytes -= len(f.data)
		n++
	}
	clear(r.frames[:n])
	r.frames = r.frames[n:]
	return nil
}

// Dump writes the ring's content as a recording. The ring goes on.
func (r *Ring) Dump(w io.Writer) error {
	r.mu.Lock()
	begin, frames, err := r.snapshot()
	r.mu.Unlock()
	if err != nil {
		return err
	}
	enc, err := newFrameEncoder()
	if err != nil {
		return err
	}
	for len(begin) > 0 {
		var part []byte
		part, begin = cutFrame(begin)
		if _, err := w.Write(enc.EncodeAll(part, nil)); err != nil {
			return fmt.Errorf("writing the ring's recording: %w", err)
		}
	}
	for _, f := range frames {
		if _, err := w.Write(f.data); err != nil {
			return fmt.Errorf("writing the ring's recording: %w", err)
		}
	}
	return nil
}

// snapshot is the text of header and beginning, and the frames.
func (r *Ring) snapshot() ([]byte, []ringFrame, error) {
	if r.err != nil {
		return nil, nil, r.err
	}
	r.seal()
	var from sched.Time
	if len(r.frames) > 0 {
		from = r.frames[0].from
	}
	lines := r.lines
	if r.full {
		lines.header.Notes = append(append([]string(nil), lines.header.Notes...),
			fmt.Sprintf("less than the last %v: more did not fit the %d MiB that were kept", r.opts.Span, r.opts.MaxBytes>>20))
	}
	text, err := lines.appendHeader(nil, from, 0)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range r.keep.events() {
		if text, err = lines.appendEvent(text, e); err != nil {
			return nil, nil, err
		}
	}
	return text, append([]ringFrame(nil), r.frames...), nil
}

// DumpFile writes the ring's content to a new file, as Create makes one.
func (r *Ring) DumpFile(path string) (err error) {
	f, err := createNew(path)
	if err != nil {
		return fmt.Errorf("writing the ring's recording to %s: %w", path, err)
	}
	defer func() {
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			os.Remove(path) // made a moment ago
		}
	}()
	if err := r.Dump(f); err != nil {
		return err
	}
	return f.Sync()
}

// Kept tells how much is kept: the span of time, and the bytes in memory.
func (r *Ring) Kept() (time.Duration, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	from := r.began
	if len(r.frames) > 0 {
		from = r.frames[0].from
	}
	return r.newest.Sub(from), r.bytes + len(r.frame)
}
