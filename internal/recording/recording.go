// Package recording writes and reads recordings of a source's events.
//
// A recording is JSON lines in zstd frames, about one frame a second, so
// that `zstdcat FILE | jq` reads it and a file that was cut off anywhere
// still gives everything up to its last whole frame. The first line is the
// header; every other line is one event, told by its "k". The members are
// those of the event's type in internal/sched, except for the records of the
// context-switch trace, which are columns of differences (see trace.go).
//
// Text in a recording is safe to print: what came from processes went
// through internal/text before it was written, and goes through it again
// when it is read, because a recording can come from anybody.
package recording

import (
	"errors"
	"fmt"
	"time"

	"tsgtop/internal/sched"
)

// Limits that writer and reader share. A reader refuses what exceeds them, so
// that its memory stays bounded whatever it is given.
const (
	maxLine         = 4 << 20   // bytes of one line, without its line end
	maxTraceRecords = 256 << 10 // trace records of one line
	maxElements     = 128 << 10 // elements of all arrays of one line that is not a trace line
	maxDepth        = 16        // containers inside containers
	maxString       = 4 << 10   // bytes of one string; longer ones are cut with "..."
	maxWindow       = 8 << 20   // bytes of a zstd frame's window
	maxDecoder      = 64 << 20  // bytes that the zstd decoder may hold

	splitCalls   = 4096     // a longer CallBatch is written as several
	splitRecords = 64 << 10 // a longer TraceBatch is written as several

	frameSpan  = time.Second // of a zstd frame, by the clock and by the events' times
	frameBytes = 2 << 20     // of text, after which a frame is closed early
)

// Header is the first line of a recording.
type Header struct {
	Schema  int        `json:"schema"` // sched.SchemaVersion of the writer; set by it
	Tool    string     `json:"tool,omitempty"`
	Host    string     `json:"host,omitempty"`
	Label   string     `json:"label,omitempty"` // of the recorded source: LIVE, SIMULATED, …
	Started sched.Time `json:"started,omitempty"`
	// From is where the recording proper begins; events before it only say
	// what was there already. Zero: the first event.
	From     sched.Time `json:"from,omitempty"`
	Part     int        `json:"part,omitempty"` // of a rotated recording, from 1; 0: not rotated yet
	Scrubbed bool       `json:"scrubbed,omitempty"`
	Notes    []string   `json:"notes,omitempty"`
}

// Errors that a caller may want to tell apart. Each comes wrapped in an *Error.
var (
	// ErrTruncated: the recording ends in the middle of a frame or a line,
	// as when its writer was killed or the disk was full.
	ErrTruncated = errors.New("the recording is cut off here; everything before it was read")
	// ErrNewer: the recording was written by a newer tsgtop.
	ErrNewer = errors.New("the recording is of a newer kind")
	// ErrForeign: the file is not a recording of tsgtop.
	ErrForeign = errors.New("not a tsgtop recording")
)

// Error says where in which recording reading went wrong.
type Error struct {
	File string // path or other name of the recording
	Line int    // of the text, from 1
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("%s: line %d: %v", e.File, e.Line, e.Err) }

func (e *Error) Unwrap() error { return e.Err }
