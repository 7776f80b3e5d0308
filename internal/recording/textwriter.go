package recording

import (
	"fmt"
	"io"

	"tsgtop/internal/sched"
)

// TextWriter writes a recording's lines as they are before compression.
type TextWriter struct {
	w     io.Writer
	lines lineMaker
	buf   []byte
}

// NewTextWriter writes the header's line to w.
func NewTextWriter(w io.Writer, h Header) (*TextWriter, error) {
	// Arguments are there only where the recording was made with them.
	t := &TextWriter{w: w, lines: newLineMaker(h, WriterOptions{Args: true})}
	var err error
	if t.buf, err = t.lines.appendHeader(t.buf, h.From, h.Part); err != nil {
		return nil, err
	}
	return t, t.flush()
}

func (t *TextWriter) flush() error {
	_, err := t.w.Write(t.buf)
	t.buf = t.buf[:0]
	if err != nil {
		return fmt.Errorf("writing the recording's text: %w", err)
	}
	return nil
}

// Write writes a line for each event.
func (t *TextWriter) Write(events []sched.Event) error {
	for _, e := range events {
		var err error
		if t.buf, err = t.lines.appendEvent(t.buf, t.lines.prepare(e)); err != nil {
			return err
		}
		if err := t.flush(); err != nil {
			return err
		}
	}
	return nil
}
