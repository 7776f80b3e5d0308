package ui

import (
	"io"
	"time"

	"github.com/charmbracelet/colorprofile"

	"tsgtop/internal/sched"
	"tsgtop/themes"
)

// Board is the state that the screen reads.
type Board interface {
	Snapshot(sched.SnapshotOptions) *sched.Snapshot
	// Calls gives lines of the call stream numbered above after, at most max,
	// oldest first; filter nil: all. Lines that are no calls always pass it.
	Calls(after uint64, max int, filter func(*sched.Call) bool) []sched.CallLine
}

// Intent is what the operator asks for.
type Intent struct {
	Op    sched.Op
	Gen   uint64        // of the TSG that was selected
	Value *uint64       // timeslice in microseconds, or interleave level 0..2
	Count int           // preempt: how often; 0 is once
	Every time.Duration // preempt: pause between two
	Undo  string        // id of the command that this one undoes; empty otherwise
}

// Preview is a command that was prepared and not sent: what the confirm panel
// shows.
type Preview struct {
	Intent
	Target    sched.Target
	Container string  // the cgroup or container in words; empty where there is none
	Old, New  *uint64 // nil: cannot be known, or the operation has none
	Warnings  []string
	Cost      string // what it may cost, in a sentence
	UndoWords string // how it is undone, or why it cannot be
	Actuator  string
	DryRun    bool
	Token     any // the controller's own
}

// Controller is what the screen needs to act. Prepare, Submit and Undo are
// called outside the screen's goroutine and may take time.
type Controller interface {
	Armed() bool
	Arm(bool) error
	// Why says why it cannot act, in a sentence; empty when it can once armed.
	Why() string
	ActuatorName() string
	// TimesliceRange is what a timeslice may be, in microseconds.
	TimesliceRange() (lo, hi uint64)
	// Prepare checks an intent and says what it would do; an error is a refusal.
	Prepare(Intent) (Preview, error)
	// Submit sends it; the command then shows in snapshots.
	Submit(Preview) (commandID string, err error)
	// Undo puts back what a command changed; empty: the last one's.
	Undo(commandID string) error
}

// Recorder writes a recording while it runs.
type Recorder interface {
	Start() (path string, err error)
	Stop() (path string, err error)
}

// Marker is a Player that goes on, as fast as it can, until the next command
// or Xid.
type Marker interface{ NextMark() }

// Options are all that the screen is given. Board is required.
type Options struct {
	Board      Board
	Controller Controller // nil: read-only
	ReadOnly   string     // why there is no controller, in a sentence
	Player     sched.Player
	Speed      float64 // of the Player, as it begins; 0: 1
	Looker     sched.Looker
	Counters   sched.CounterLooker
	Releaser   sched.Releaser
	Recorder   Recorder
	Roles      Steerer // nil: nobody keeps roles

	Themes  *themes.Set // nil: the built-in ones
	Theme   string      // name; empty: the default
	ASCII   bool
	NoColor bool
	Profile colorprofile.Profile // colours of the terminal; zero: asked of the environment
	FPS     int                  // frames a second, 1..60; 0: 10
	Query   bool                 // let questions to the terminal go out
	Mouse   bool

	Columns []string // ids of columns to show, in order; nil: the default ones
	Sort    string   // id of a column; "-id" the other way round
	Flat    bool
	Group   string        // "", "process", "user" or "unit"
	Lane    time.Duration // span of the lane; 0: 100 ms
	GPU     *int          // show only this one; nil: all
	Window  sched.Window  // over which the numbers are taken

	Input  io.Reader // nil: the terminal
	Output io.Writer // nil: standard output
	Env    []string  // nil: the process's
	Width  int       // where Output is no terminal
	Height int

	// Failed ends the screen with an error that came up elsewhere, such as a
	// panic that another goroutine recovered from.
	Failed <-chan error
}
