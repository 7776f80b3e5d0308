// Package sched is the domain of tsgtop: GPUs, runlists, TSGs, channels and
// contexts, the events that tell about them, and the state and statistics
// folded from those events. It is pure: nothing in it touches the system, so
// that every number on the screen can be tested from a table of events.
package sched

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Time is an instant in nanoseconds since the Unix epoch, as CLOCK_REALTIME of
// the observed machine gives it. Sources that read other clocks (eBPF:
// CLOCK_MONOTONIC, the context-switch trace: the GPU's PTIMER) convert before
// they send an event. Zero means "not known".
type Time int64

// Now is the present instant of this machine's wall clock.
func Now() Time { return Time(time.Now().UnixNano()) }

// Std is the instant as the standard library's type, in the local zone.
func (t Time) Std() time.Time { return time.Unix(0, int64(t)) }

// Sub is the time from u to t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Add is the instant d after t.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// Handle is an RM handle: of a client, or of an object inside one. Object
// handles repeat from process to process; only (client, object) names one.
type Handle uint32

func (h Handle) String() string { return fmt.Sprintf("%08x", uint32(h)) }

// MarshalText writes the handle as hex, "0x5c000015".
func (h Handle) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "0x%x", uint32(h)), nil }

// UnmarshalText reads what MarshalText writes.
func (h *Handle) UnmarshalText(b []byte) error {
	v, err := strconv.ParseUint(strings.TrimPrefix(string(b), "0x"), 16, 32)
	if err != nil {
		return fmt.Errorf("handle %q: want hex of at most 32 bits: %w", b, err)
	}
	*h = Handle(v)
	return nil
}

// Object names an RM object: its client's handle and its own. Clients' handles
// are unique on a machine at any one time (and reused later), so this is too.
type Object struct {
	Client Handle `json:"client"`
	Handle Handle `json:"object"`
}

func (o Object) String() string { return o.Client.String() + "/" + o.Handle.String() }

// TSGID names a TSG as the hardware does. TSG numbers are unique only inside
// one runlist of one GPU, and are reused.
type TSGID struct {
	GPU     int `json:"gpu"`     // index as nvidia-smi counts
	Runlist int `json:"runlist"` // runlist id of the hardware
	TSG     int `json:"tsg"`     // TSG number ("grpID") in that runlist
}

func (t TSGID) String() string { return fmt.Sprintf("%d:%d:%d", t.GPU, t.Runlist, t.TSG) }

// Unknown stands for a GPU index, runlist or TSG number that is not known.
const Unknown = -1

// Ptr gives the address of a copy of v: how an optional number is written.
func Ptr[T any](v T) *T { return &v }
