package recording

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"tsgtop/internal/sched"
)

// Reader reads a recording's events in their order. What it holds at any time
// is bounded, whatever the file is.
type Reader struct {
	name   string
	header Header
	dec    *zstd.Decoder
	buf    *bufio.Reader
	long   []byte // a line that does not fit buf
	line   int
	err    error // sticky
	close  io.Closer
}

// Open opens a recording. Close it after use.
func Open(path string) (*Reader, error) {
	f, err := OpenFile(path)
	if err != nil {
		return nil, err
	}
	r, err := newReader(f, path)
	if err != nil {
		f.Close()
		return nil, err
	}
	r.close = f
	return r, nil
}

// NewReader reads a recording from a stream. Errors name it by r's Name
// method, where it has one.
func NewReader(r io.Reader) (*Reader, error) {
	name := "recording"
	if n, ok := r.(interface{ Name() string }); ok {
		name = n.Name()
	}
	return newReader(r, name)
}

func newReader(src io.Reader, name string) (*Reader, error) {
	dec, err := zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(maxDecoder))
	if err != nil {
		return nil, fmt.Errorf("reading the recording %s: %w", name, err)
	}
	r := &Reader{name: name, dec: dec, buf: bufio.NewReaderSize(dec, 64<<10)}
	if err := r.readHeader(); err != nil {
		dec.Close()
		return nil, err
	}
	return r, nil
}

func (r *Reader) readHeader() error {
	line, err := r.readLine()
	if err != nil {
		if errors.Is(err, io.EOF) {
			return &Error{r.name, 1, fmt.Errorf("%w: it is empty", ErrForeign)}
		}
		return err
	}
	// A header is recognised by little, so that those of newer versions are.
	var first struct {
		Kind   string `json:"k"`
		Schema int    `json:"schema"`
	}
	if checkShape(line) != nil || json.Unmarshal(line, &first) != nil || first.Kind != kindHeader || first.Schema < 1 {
		return &Error{r.name, 1, fmt.Errorf("%w: its first line is not a header", ErrForeign)}
	}
	if first.Schema > sched.SchemaVersion {
		return &Error{r.name, 1, fmt.Errorf("%w: schema version %d, and this tsgtop reads up to %d; a newer tsgtop reads it",
			ErrNewer, first.Schema, sched.SchemaVersion)}
	}
	var h Header
	if err := json.Unmarshal(line, &h); err != nil {
		return &Error{r.name, 1, fmt.Errorf("the header: %w", err)}
	}
	h.Tool, h.Host, h.Label = safeString(h.Tool), safeString(h.Host), safeString(h.Label)
	h.Notes = mapStrings(h.Notes, safeString)
	r.header = h
	return nil
}

// Header is the recording's first line.
func (r *Reader) Header() Header { return r.header }

// Line is the number of the line that was read last.
func (r *Reader) Line() int { return r.line }

// Next gives the next event. At the regular end of the recording the error is
// io.EOF; every other one is an *Error, and what was given before it is good.
func (r *Reader) Next() (sched.Event, error) {
	if r.err != nil {
		return nil, r.err
	}
	e, err := r.next()
	if err != nil {
		r.err = err
	}
	return e, err
}

func (r *Reader) next() (sched.Event, error) {
	line, err := r.readLine()
	if err != nil {
		return nil, err
	}
	e, err := decodeLine(line)
	if err != nil {
		return nil, &Error{r.name, r.line, fmt.Errorf("damaged: %w", err)}
	}
	return e, nil
}

// Close releases the decoder, and the file where Open opened it.
func (r *Reader) Close() error {
	if r.err == nil {
		r.err = &Error{r.name, r.line, errors.New("the recording was closed")}
	}
	r.dec.Close()
	if r.close != nil {
		return r.close.Close()
	}
	return nil
}

// readLine gives one line without its end; it is valid until the next call.
func (r *Reader) readLine() ([]byte, error) {
	r.long = r.long[:0]
	for {
		part, err := r.buf.ReadSlice('\n')
		if len(r.long)+len(part) > maxLine+1 {
			return nil, &Error{r.name, r.line + 1, fmt.Errorf("longer than %d bytes: damaged, or not a recording", maxLine)}
		}
		switch {
		case err == nil:
			r.line++
			if len(r.long) > 0 {
				r.long = append(r.long, part...)
				part = r.long
			}
			return bytes.TrimSuffix(part, []byte("\n")), nil
		case errors.Is(err, bufio.ErrBufferFull):
			r.long = append(r.long, part...)
		case errors.Is(err, io.EOF) && len(r.long)+len(part) == 0:
			return nil, io.EOF
		default:
			return nil, r.readError(err)
		}
	}
}

// readError says what an error of the decoder means for a recording.
func (r *Reader) readError(err error) error {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		err = ErrTruncated
	case errors.Is(err, zstd.ErrMagicMismatch) && r.line == 0:
		err = fmt.Errorf("%w: it is not zstd", ErrForeign)
	case errors.Is(err, zstd.ErrMagicMismatch):
		err = errors.New("damaged: something that is not a zstd frame follows")
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		err = fmt.Errorf("a zstd frame asks for more memory than a recording needs: %w", err)
	default:
		err = fmt.Errorf("damaged: %w", err)
	}
	return &Error{r.name, r.line + 1, err}
}

var kindPrefix = []byte(`{"k":"`)

// decodeLine makes the event of one line.
func decodeLine(line []byte) (sched.Event, error) {
	kind := ""
	if rest, ok := bytes.CutPrefix(line, kindPrefix); ok {
		if end := bytes.IndexByte(rest[:min(len(rest), 24)], '"'); end >= 0 {
			kind = string(rest[:end])
		}
	}
	if kind != kindTrace {
		if err := checkShape(line); err != nil {
			return nil, err
		}
	}
	if kind == "" { // written by something else, with its members in another order
		var k struct {
			Kind string `json:"k"`
		}
		if err := json.Unmarshal(line, &k); err != nil {
			return nil, err
		}
		kind = k.Kind
	}
	e, err := decodeBody(kind, line)
	if err != nil {
		return nil, err
	}
	if err := checkEvent(e); err != nil {
		return nil, err
	}
	return safeEvent(e), nil
}
