//go:build linux

// Package audit writes who did what to which TSG, and what came of it: one JSON
// line before a command is sent and one with its result, in a file that only
// root can write to and that is only ever appended to.
package audit

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"tsgtop/actions/rootfile"
	"tsgtop/internal/sched"
)

// DefaultPath is where the log is.
const DefaultPath = "/var/log/tsgtop/audit.jsonl"

// SchemaVersion is that of a line.
const SchemaVersion = 1

// Event is what a line tells.
type Event string

// The events.
const (
	Intent  Event = "intent"  // about to be sent
	Result  Event = "result"  // what came of it
	Refused Event = "refused" // not sent, and why
	Undo    Event = "undo"    // the old value was put back, or why not
	Restore Event = "restore" // likewise, of what another run left
)

// Line is one line of the log.
type Line struct {
	SchemaVersion int              `json:"schema_version"`
	Time          string           `json:"time"` // RFC 3339 with nanoseconds
	Event         Event            `json:"event"`
	ID            string           `json:"id"` // the command's: of its intent and its result the same
	Who           Who              `json:"who"`
	Host          string           `json:"host"`
	PID           int              `json:"pid"` // of tsgtop
	Tool          string           `json:"tool,omitempty"`
	Op            sched.Op         `json:"op,omitempty"`
	Target        *sched.Target    `json:"target,omitempty"`
	Old           *uint64          `json:"old"` // null: cannot be known
	New           *uint64          `json:"new"`
	Count         int              `json:"count,omitempty"`
	EveryNS       int64            `json:"every_ns,omitempty"`
	Force         bool             `json:"force,omitempty"`
	Keep          bool             `json:"keep,omitempty"`
	Actuator      string           `json:"actuator,omitempty"`
	Calls         *sched.CallTally `json:"calls,omitempty"`
	Ran           *sched.Lamp      `json:"ran,omitempty"`
	Accepted      *sched.Accepted  `json:"accepted,omitempty"`
	Changed       *sched.Changed   `json:"changed,omitempty"`
	Restored      *bool            `json:"restored,omitempty"`
	Xid           []uint32         `json:"xid,omitempty"`
	TookMS        *float64         `json:"took_ms,omitempty"` // from asked to judged
	Why           string           `json:"why,omitempty"`
}

// Log is the open log. nil is one that keeps nothing, for a simulated GPU.
type Log struct {
	f    *os.File
	who  Who
	host string
	tool string
}

// Open opens the log at path, and makes it and its folder where there is none.
func Open(path, tool string) (*Log, error) {
	dir, err := rootfile.OpenDir(filepath.Dir(path), 0o700)
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	defer dir.Close()
	f, err := dir.Open(filepath.Base(path), os.O_RDWR|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	host, _ := os.Hostname()
	return &Log{f: f, who: Whoami(), host: host, tool: tool}, nil
}

// Path is the file's; empty for none.
func (l *Log) Path() string {
	if l == nil {
		return ""
	}
	return l.f.Name()
}

// Close closes the log.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	return l.f.Close()
}

// Write appends a line, on the disk before it returns. An error means that the
// line is not there; what it was about must then not be done.
func (l *Log) Write(line Line) error {
	if l == nil {
		return nil
	}
	line.SchemaVersion, line.Time = SchemaVersion, time.Now().Format(time.RFC3339Nano)
	line.Who, line.Host, line.PID, line.Tool = l.who, l.host, os.Getpid(), l.tool
	b, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("audit log %s: %w", l.Path(), err)
	}
	until := time.Now().Add(5 * time.Second)
	for {
		if err = unix.Flock(int(l.f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
			break
		}
		if err != unix.EWOULDBLOCK && err != unix.EINTR || time.Now().After(until) {
			return fmt.Errorf("audit log %s: lock: %w", l.Path(), err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	defer unix.Flock(int(l.f.Fd()), unix.LOCK_UN)
	if err := rootfile.AppendLine(l.f, b); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	return nil
}

// OfCommand fills a line from a command as it stands.
func OfCommand(e Event, c sched.Command) Line {
	l := Line{Event: e, ID: c.ID, Op: c.Op, Target: &c.Target, Old: c.Old, New: c.New, Count: c.Count, EveryNS: int64(c.Every),
		Actuator: c.Actuator, Restored: c.Restored, Xid: c.Xid, Why: c.Why}
	if e == Result {
		l.Calls, l.Ran, l.Accepted, l.Changed = &c.Calls, &c.Ran, &c.Accepted, &c.Changed
		ms := float64(c.Time-c.Asked) / 1e6
		l.TookMS = &ms
	}
	return l
}
