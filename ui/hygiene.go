package ui

import (
	"bytes"
	"io"
	"os"
)

// quietWriter keeps from the terminal what it would answer or would have to
// forget again: questions (modes, colours, cursor, version, keyboard flags) and
// the keyboard protocols. bubbletea asks at start; over a slow line the answers
// come as typed text, perhaps into the shell that follows, and sudo hides from
// it that there is such a line. Nothing here needs the answers.
type quietWriter struct {
	w    io.Writer
	held []byte // the beginning of a sequence that a write cut off
	out  bytes.Buffer
}

func (q *quietWriter) Write(p []byte) (int, error) {
	b := p
	if len(q.held) > 0 {
		b = append(q.held, p...)
		q.held = nil
	}
	q.out.Reset()
	for len(b) > 0 {
		i := bytes.IndexByte(b, 0x1b)
		if i < 0 {
			q.out.Write(b)
			break
		}
		q.out.Write(b[:i])
		b = b[i:]
		n, whole := sequenceLen(b)
		if !whole {
			if len(b) < 4096 {
				q.held = append([]byte(nil), b...)
			}
			break
		}
		if !forbidden(b[:n]) {
			q.out.Write(b[:n])
		}
		b = b[n:]
	}
	if q.out.Len() == 0 {
		return len(p), nil
	}
	if _, err := q.w.Write(q.out.Bytes()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// sequenceLen is the length of the escape sequence that b begins with.
func sequenceLen(b []byte) (n int, whole bool) {
	if len(b) < 2 {
		return 0, false
	}
	switch b[1] {
	case '[':
		for i := 2; i < len(b); i++ {
			if b[i] >= 0x40 && b[i] <= 0x7e {
				return i + 1, true
			}
			if b[i] < 0x20 || b[i] > 0x7e {
				return i, true // broken off by a control character: the terminal drops it too
			}
		}
		return 0, false
	case ']', 'P', '_', '^', 'X':
		for i := 2; i < len(b); i++ {
			if b[i] == 0x07 {
				return i + 1, true
			}
			if b[i] == 0x1b {
				if i+1 == len(b) {
					return 0, false
				}
				if b[i+1] == '\\' {
					return i + 2, true
				}
				return i, true
			}
		}
		return 0, false
	default:
		return 2, true
	}
}

// forbidden tells whether a whole sequence asks something or changes the keyboard.
func forbidden(seq []byte) bool {
	if len(seq) < 3 {
		return false
	}
	final := seq[len(seq)-1]
	switch seq[1] {
	case '[':
		body := seq[2 : len(seq)-1]
		private := byte(0)
		if len(body) > 0 && body[0] >= '<' && body[0] <= '?' {
			private = body[0]
		}
		switch {
		case final == 'c' || final == 'n': // device attributes, device status
			return true
		case final == 'u' && private != 0: // kitty's keyboard protocol: ask, push, pop, set
			return true
		case final == 'm' && private != 0: // modifyOtherKeys
			return true
		case final == 'q' && private == '>': // name and version
			return true
		case final == 'p' && bytes.HasSuffix(body, []byte("$")): // is a mode set
			return true
		case final == 't': // window reports and changes
			return true
		}
	case ']':
		return bytes.Contains(seq, []byte(";?"))
	case 'P':
		return bytes.HasPrefix(seq, []byte("\x1bP+q")) || bytes.HasPrefix(seq, []byte("\x1bP$q"))
	}
	return false
}

// quietTerminal is a quietWriter that still is a terminal to bubbletea.
type quietTerminal struct {
	*os.File
	quiet quietWriter
}

func (t *quietTerminal) Write(p []byte) (int, error) { return t.quiet.Write(p) }

// WriteString goes through Write, not to the file.
func (t *quietTerminal) WriteString(s string) (int, error) { return t.quiet.Write([]byte(s)) }

// ReadFrom goes through Write, not to the file.
func (t *quietTerminal) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{&t.quiet}, r)
}

// quiet wraps an output.
func quiet(w io.Writer) io.Writer {
	if f, ok := w.(*os.File); ok {
		return &quietTerminal{File: f, quiet: quietWriter{w: f}}
	}
	return &quietWriter{w: w}
}
