package sched

import "time"

// LampState is what a lamp shows.
type LampState string

// The states of a lamp. LampWaiting never is a final answer.
const (
	LampWaiting LampState = "waiting"
	LampYes     LampState = "yes"
	LampNo      LampState = "no"
	LampUnknown LampState = "unknown"
)

// Op is what a command does.
type Op string

// The operations.
const (
	OpPreempt    Op = "preempt"
	OpTimeslice  Op = "timeslice"
	OpInterleave Op = "interleave"
)

// CommandStep is how far a command's life has gone.
type CommandStep string

// The steps of a command, in order; the last three are ends.
const (
	StepAsked     CommandStep = "asked"
	StepConfirmed CommandStep = "confirmed"
	StepJournaled CommandStep = "journaled"
	StepBaseline  CommandStep = "baseline"
	StepIssued    CommandStep = "issued"
	StepObserved  CommandStep = "observed"
	StepJudged    CommandStep = "judged"
	StepUndone    CommandStep = "undone"
	StepRefused   CommandStep = "refused" // by us: nothing was sent
)

// Target is the TSG that a command is for, with what never repeats: handles
// and TSG numbers do.
type Target struct {
	TSGID
	Gen      uint64   `json:"-"`
	Object   Object   `json:"handles"`
	UniqueID *uint32  `json:"unique,omitempty"`
	Contexts []uint32 `json:"contexts,omitempty"`
	Engine   *uint32  `json:"engine,omitempty"`
	PID      int      `json:"pid"`
	Start    uint64   `json:"start,omitempty"` // of the process, clock ticks since boot
	Exe      string   `json:"exe"`
	User     string   `json:"user,omitempty"`
	Unit     string   `json:"unit,omitempty"`
}

// Command is a command and its three lamps. It is sent again, whole, at each
// change. Each lamp has its own witness; none is derived from another.
type Command struct {
	Time     Time          `json:"time_ns"` // of this state of the command
	ID       string        `json:"id"`
	Number   int           `json:"number"` // #3 on the screen
	Asked    Time          `json:"asked_ns"`
	Issued   Time          `json:"issued_ns,omitempty"`
	Op       Op            `json:"op"`
	Target   Target        `json:"target"`
	Old      *uint64       `json:"old"` // timeslice us or interleave level; nil: cannot be known
	New      *uint64       `json:"new"`
	Count    int           `json:"count,omitempty"` // preempt: how often
	Every    time.Duration `json:"every_ns,omitempty"`
	Actuator string        `json:"actuator"` // "kfunc", "fd" or "sim"
	Step     CommandStep   `json:"step"`
	Calls    CallTally     `json:"calls"`
	Ran      Lamp          `json:"ran"`
	Accepted Accepted      `json:"accepted"`
	Changed  Changed       `json:"changed"`
	Undo     string        `json:"undo,omitempty"`     // how it is undone, or why it cannot be
	Restored *bool         `json:"restored,omitempty"` // the old value was put back
	Xid      []uint32      `json:"xid,omitempty"`      // Xids that came while it was in flight
	Why      string        `json:"why,omitempty"`      // for StepRefused
}

// CallTally counts the RM calls of a command.
type CallTally struct {
	Sent     int            `json:"sent"`
	OK       int            `json:"ok"`
	ByStatus map[string]int `json:"by_status,omitempty"`
}

// Lamp is one lamp: its state and, in a sentence, why.
type Lamp struct {
	State LampState `json:"state"`
	Why   string    `json:"why"`
}

// Accepted is the lamp ACCEPTED: the NV_STATUS and where it was answered.
type Accepted struct {
	Lamp
	Status     string `json:"status,omitempty"` // name
	StatusCode uint32 `json:"status_code"`
	Where      string `json:"where"`              // gsp, driver or unknown
	Inferred   bool   `json:"inferred,omitempty"` // where was inferred from the duration, not witnessed
	RPCus      *int64 `json:"rpc_us,omitempty"`
	CallUS     *int64 `json:"call_us,omitempty"`
}

// Changed is the lamp CHANGED with its evidence.
type Changed struct {
	Lamp
	Metric   string      `json:"metric,omitempty"` // residency_us, beat, share, turns_per_s, run_end
	Before   *Sample     `json:"before,omitempty"`
	After    *Sample     `json:"after,omitempty"`
	Ratio    *float64    `json:"ratio,omitempty"`
	CI       *[2]float64 `json:"ci,omitempty"`       // of the ratio
	Level    float64     `json:"ci_level,omitempty"` // e.g. 0.999
	P        *float64    `json:"p,omitempty"`
	AsAsked  *bool       `json:"as_asked,omitempty"`
	Victim   *Cost       `json:"victim,omitempty"`
	Evidence string      `json:"evidence,omitempty"` // one line of numbers
	TookNS   int64       `json:"took_ns,omitempty"`  // from the call to the verdict
}

// Sample summarises one side of a comparison.
type Sample struct {
	Turns  int     `json:"turns"`
	Blocks int     `json:"blocks"`
	P50    float64 `json:"p50"`
	Mean   float64 `json:"mean"`
}

// Cost is what a command did to the target's share and to the GPU.
type Cost struct {
	ShareBefore     *float64 `json:"share_before,omitempty"`
	ShareAfter      *float64 `json:"share_after,omitempty"`
	SwitchTaxBefore *float64 `json:"switch_tax_before,omitempty"`
	SwitchTaxAfter  *float64 `json:"switch_tax_after,omitempty"`
}
