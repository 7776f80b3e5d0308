package sched

import "time"

// SchemaVersion is the version of Snapshot's and the recordings' JSON.
const SchemaVersion = 1

// Window is a span over which numbers are taken, ending now.
type Window int

// The windows.
const (
	Window1s Window = iota
	Window10s
	WindowAll // since start
	NumWindows
)

// Snapshot is the state at an instant, for readers: nothing in it is shared
// with the state, and nothing in it changes.
type Snapshot struct {
	Time         Time // newest instant that the state knows of
	Source       SourceInfo
	GPUs         []GPUView     // by index
	TSGs         []TSGView     // by GPU, runlist, TSG number, generation
	Probes       []ProbeStatus // in the order first met
	Lost         Loss
	Unattributed Unattributed
	Commands     []Command   // oldest first, the latest 200
	Xids         []Xid       // oldest first, the latest 200
	Lanes        []Lane      // as asked for in SnapshotOptions
	Detail       *Detail     // as asked for
	Groups       []GroupView // as asked for, in the order in which they are met in TSGs
	GroupTag     string      // as in the options
	CallRate     float64     // RM calls a second, over 1 s, counted ones included
	Cut          uint64      // what was not kept because a limit of the state was reached
}

// Unattributed counts what is there but has no known owner.
type Unattributed struct {
	Contexts int    `json:"contexts"` // contexts in the trace whose TSG is not known
	Channels int    `json:"channels"`
	Clients  int    `json:"clients"`
	Why      string `json:"why,omitempty"`
}

// SnapshotOptions says what costly parts a reader wants.
type SnapshotOptions struct {
	LaneSpan  time.Duration // 0: no lanes
	LaneUntil Time          // 0: now
	Detail    uint64        // generation of the TSG to detail; 0: none
	// Group names the group of a row, or says that it is in none; nil: no groups.
	// It is called while the state is locked: it must not wait, nor use the board.
	Group    func(*TSGView) (key string, in bool)
	GroupTag string // comes back in Snapshot.GroupTag: which grouping it was
}

// GroupView is several TSGs together. Its statistics are of all their turns,
// with percentiles as exact as a single TSG's; its shares and turns are sums.
type GroupView struct {
	Key   string
	TSGs  int
	Score [NumWindows]Score
}

// GPUView is one GPU.
type GPUView struct {
	GPU
	Sample       *GPUSample
	Competing    int                  // TSGs that had a turn in the last second, where at least two had
	SwitchesPerS *float64             // over 1 s; nil without a trace
	SwitchTax    [NumWindows]*float64 // share of competed time with nobody resident
	TraceWhy     string               // why there is no trace, or what limits it; empty when it is good
	TraceRead    Time                 // up to where the trace was read; 0: none was
	XidCount     int
}

// ValueFrom says how a value came to be known.
type ValueFrom string

// Where a timeslice is known from.
const (
	FromSeen    ValueFrom = "seen"    // our stream saw it set
	FromRead    ValueFrom = "read"    // RM's own copy, read back
	FromDefault ValueFrom = "default" // RM's default: nobody was seen to set it
	FromNowhere ValueFrom = ""
)

// TSGView is one TSG, or a context of the trace whose TSG is not known.
type TSGView struct {
	Gen           uint64 // names this TSG for the whole run; handles and numbers are reused
	ID            TSGID  // Unknown parts are -1
	Object        Object
	UniqueID      *uint32
	Device        Handle
	Engine        *uint32
	Context       bool // a row made from the trace alone: TSG not known
	Process       Process
	HolderPIDs    []int   // who holds the file of a client that has a handle to it
	Timeslice     *uint64 // us
	TimesliceFrom ValueFrom
	Interleave    *uint32 // nil: cannot be read back and was not seen set
	Scheduled     *bool   // nil: not known
	Channels      []ChannelView
	Clients       int  // of other processes that have a handle to it
	MPS           bool // clients of an MPS server share it
	MemoryBytes   *uint64
	Created       Time // 0: before we started
	Score         [NumWindows]Score
	WhyNull       string // why the trace's numbers are null: "copy engine: no trace", "alone: nothing to switch to", …
	Resident      bool   // it is on the engine now, as far as the trace was read
	LastTurn      Time
}

// ChannelView is one channel of a TSG.
type ChannelView struct {
	Object  Handle  `json:"object"`
	Class   uint32  `json:"class"`
	ChID    *uint32 `json:"chid"`
	Context *uint32 `json:"context"`
}

// Score is the scorecard of a TSG in one window.
type Score struct {
	Residency *Stats   // us: length of turns
	Wait      *Stats   // us: off after a turn that its timeslice or a preempt ended
	Off       *Stats   // us: off, for whatever reason
	Share     *float64 // of competed time
	Turns     uint64
	TurnsPerS *float64
	WhyNull   string // why what is null in this window is null

	Switches    *Switches // as the GSP counts them
	SwitchesWhy string    // why it is nil
}

// Stats summarises one quantity. Percentiles are within 0.1% of the true ones.
type Stats struct {
	N      uint64  `json:"n"`
	Min    float64 `json:"min"`
	Mean   float64 `json:"mean"`
	StdDev float64 `json:"stddev"`
	P50    float64 `json:"p50"`
	P95    float64 `json:"p95"`
	P99    float64 `json:"p99"`
	Max    float64 `json:"max"`
}

// EndedBy is what ended a turn, as far as it can be told.
type EndedBy uint8

// What can end a turn.
const (
	EndUnknown   EndedBy = iota // the record of the end is missing, or a gap touches the turn
	EndTimeslice                // it lasted at least its timeslice while another waited
	EndVoluntary                // shorter than its timeslice: no more work, or a sync
	EndPreempt                  // one of our preempts, or another's that we saw, cut it
	EndOpen                     // still on the engine
)

// Turn is one stay of a TSG on its engine.
type Turn struct {
	Gen     uint64 // of the TSG
	Context uint32
	Start   Time
	End     Time // of the part known so far, where EndedBy is EndOpen
	EndedBy EndedBy
	Clean   bool // no gap in the trace touches it: it counts in statistics
}

// Lane is what one runlist's engine did in a span, for the drawing over the tree.
type Lane struct {
	GPU, Runlist int
	From, To     Time
	Turns        []Turn // in order; gaps between them: nobody resident
	Gaps         []Time // where trace records are missing
}

// Detail is what only the detail screen needs of one TSG.
type Detail struct {
	Gen        uint64
	Residency  Histogram
	Wait       Histogram
	Share      []SharePoint // one a second, the last 5 minutes
	Timeslices []TimesliceChange
	Calls      []Call // the latest 100 of this TSG and its channels
	InForce    InForce
}

// Histogram counts values in bins with a constant ratio of bounds.
type Histogram struct {
	Bins  []Bin
	Total uint64
}

// Bin is one bin of a histogram, in us: From <= value < To.
type Bin struct {
	From, To float64
	N        uint64
}

// SharePoint is a share of competed time in one second; nil: nothing competed.
type SharePoint struct {
	Time  Time
	Share *float64
}

// TimesliceChange is one setting of a timeslice, with who made it.
type TimesliceChange struct {
	Time    Time
	Value   uint64
	PID     int
	Command string
	Status  uint32
}
