package actions

import (
	"context"
	"errors"
	"time"

	"tsgtop/actions/verdict"
	"tsgtop/internal/sched"
)

// Actuator sends one command to one TSG, by one way.
type Actuator interface {
	// Name is "kfunc", "fd" or "sim".
	Name() string
	// Why says why it cannot be used, in a sentence; empty when it can.
	Why() string
	// Inspect asks who the target is now: the given target with the ids that do
	// not repeat, and RM's own copy of its timeslice. ErrGone, ErrReplaced.
	Inspect(context.Context, sched.Target) (Inspection, error)
	// Do makes sure that the target is the one that is meant and sends one call.
	// It returns when RM has answered, which can take very long.
	Do(context.Context, Request) Result
	// Counters reads the GSP's switch counters; nil where they do not answer.
	Counters(context.Context, sched.Target) *Counters
	// Release lets go of the driver's devices; the next call takes them again.
	Release()
}

// Errors about the target.
var (
	// ErrGone: its process, client or TSG has ended.
	ErrGone = errors.New("the target is gone")
	// ErrReplaced: something with its numbers is there, and is not it.
	ErrReplaced = errors.New("the target is not the one that was meant any more")
	// ErrMoved: the value is no longer what the command was based on.
	ErrMoved = errors.New("the value was changed meanwhile")
	// ErrUnfit: the target is none that may be acted on.
	ErrUnfit = errors.New("refused")
	// ErrBounds: what is asked for is out of bounds.
	ErrBounds = errors.New("out of bounds")
)

// Inspection is what a target is, as RM says.
type Inspection struct {
	Target    sched.Target
	Timeslice *uint64 // us, RM's own copy; nil: not to be read
	Warnings  []string
}

// Request is one call.
type Request struct {
	ID       uint64 // of this call: the RAN witness is told it
	Command  string // id of the command that the call is part of
	Op       sched.Op
	Target   sched.Target
	Value    uint64
	Expect   *uint64 // timeslice: what it must be now, or the call is not made
	Wait     bool    // preempt: wait until it is done
	MeterRPC bool    // have RM's RPC meter watch the call
}

// Result is what came of a call.
type Result struct {
	Sent      bool  // the call was made
	Err       error // why it was not, or why RM gave no status: ErrGone, ErrReplaced, ErrMoved, ...
	Ran       Ran
	Status    uint32 // NV_STATUS, where Answered
	Answered  bool
	Errno     int // of the ioctl itself
	RPC       RPC
	Start     sched.Time // of the call
	End       sched.Time
	Before    *Counters // the GSP's switch counters just before the call
	After     *Counters // and just after
	WasNow    *uint64   // timeslice that was read just before the call
	NoGSP     bool      // RM of this GPU does not run on a GSP: there is nobody to ask
	Simulated bool
}

// sawEntry is what an actuator's Entered says of a call that was seen to go into the driver.
const sawEntry = "the eBPF program saw the call go into the driver; it has not come back yet"

// Ran is what the RAN witness saw of one call.
type Ran struct {
	Have  bool // there is a witness
	Made  bool // it made the call itself (kfunc), and wrote a record before and after
	Why   string
	Entry bool // it saw the call go in
	Exit  bool // and come back
	At    sched.Time
	Took  time.Duration
	Other string // what it saw differs from what was sent: how
}

// RPC is what the witness of the GSP saw during one call.
type RPC struct {
	Exact bool   // "none seen" means that there was none
	Seen  bool   // the call's RPC was seen
	Why   string // why nothing can be said
	Start sched.Time
	Took  time.Duration
}

// Counters are the GSP's switch counters of a TSG, of an instant between being asked
// for (At) and the answer (Until).
type Counters = verdict.Counters

// RanWitness is the eBPF program that sees our own calls.
type RanWitness interface {
	// Expect announces one ioctl: of thread tid on descriptor fd, with its
	// argument and the parameters at these addresses. id names this call,
	// command the command that it is part of.
	Expect(id uint64, command string, tid, fd int, arg, params uintptr) error
	// Wait gives what was seen, once the call has come back, at the latest after
	// the limit.
	Wait(id uint64, limit time.Duration) (OwnCall, error)
	// Forget takes back what was announced for a thread.
	Forget(tid int)
}

// OwnCall is what the eBPF program wrote about one of our calls.
type OwnCall struct {
	Entry, Exit bool
	At          sched.Time // of the entry
	Took        time.Duration
	Read        bool // it could read the call's structure: what follows counts
	Number      uint32
	Client      sched.Handle
	Object      sched.Handle
	Status      uint32
}

// Clock is the source's: the wall's, or a simulated GPU's.
type Clock interface {
	Now() sched.Time
	// Sleep waits, or returns ctx's error.
	Sleep(ctx context.Context, d time.Duration) error
}

// WallClock is this machine's.
type WallClock struct{}

// Now is the present instant.
func (WallClock) Now() sched.Time { return sched.Now() }

// Sleep waits.
func (WallClock) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// missing is an actuator that is not to be had.
type missing struct{ name, why string }

// Missing is an actuator that cannot be used, for the reason given.
func Missing(name, why string) Actuator { return missing{name, why} }

func (m missing) Name() string { return m.name }
func (m missing) Why() string  { return m.why }
func (m missing) err() error   { return errors.New(m.name + ": " + m.why) }
func (m missing) Inspect(context.Context, sched.Target) (Inspection, error) {
	return Inspection{}, m.err()
}
func (m missing) Do(context.Context, Request) Result               { return Result{Err: m.err()} }
func (m missing) Counters(context.Context, sched.Target) *Counters { return nil }
func (m missing) Release()                                         {}

// Choose picks the first usable of the actuators, or the one by name. Where none
// is, it gives one whose Why says it of each.
func Choose(name string, candidates ...Actuator) Actuator {
	why := ""
	for _, a := range candidates {
		if name != "" && name != "auto" && name != a.Name() {
			continue
		}
		if a.Why() == "" {
			return a
		}
		if why != "" {
			why += "; "
		}
		why += a.Name() + ": " + a.Why()
	}
	if why == "" {
		why = "no actuator of the name " + name + " is here"
	}
	return Missing("none", why)
}
