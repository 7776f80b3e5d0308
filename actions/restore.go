package actions

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"

	"tsgtop/actions/journal"
	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
)

// OutcomeState is what became of putting one value back.
type OutcomeState string

// The outcomes. OutcomeFailed and OutcomePending leave
// something changed that should not be, or may.
const (
	OutcomeRestored OutcomeState = "restored" // it was set, and RM took it
	OutcomeAlready  OutcomeState = "already"  // it was back before
	OutcomeGone     OutcomeState = "gone"     // the TSG has ended: there is nothing to put back
	OutcomeForeign  OutcomeState = "foreign"  // somebody else has set it since: left alone
	OutcomeShared   OutcomeState = "shared"   // another tsgtop has set it since, and will put it back
	OutcomeKept     OutcomeState = "kept"     // on purpose
	OutcomeHeld     OutcomeState = "held"     // a tsgtop that runs holds it
	OutcomePending  OutcomeState = "pending"  // RM has not answered the command yet: the watcher puts it back
	OutcomeFailed   OutcomeState = "failed"   // it is still changed
)

// Outcome is one value and what became of putting it back.
type Outcome struct {
	Op       sched.Op     `json:"op"`
	Target   sched.Target `json:"target"`
	Was      *uint64      `json:"was"`   // what tsgtop had set
	Value    *uint64      `json:"value"` // what it was put back to
	Commands []string     `json:"commands,omitempty"`
	State    OutcomeState `json:"state"`
	Why      string       `json:"why"`
}

// Done tells whether the journal needs to know of the value no more.
func (o Outcome) Done() bool {
	switch o.State {
	case OutcomeFailed, OutcomePending, OutcomeKept, OutcomeHeld:
		return false
	}
	return true
}

func (o Outcome) String() string { return fmt.Sprintf("%s of TSG %s: %s", o.Op, o.Target.TSGID, o.Why) }

// defaultInterleave is the level that a TSG has which nobody has touched.
const defaultInterleave = rm.InterleaveLow

// putBack sets a value of a target back to want, if it still is what tsgtop
// made of it: one of ours. want nil: what it was is not known (interleave,
// which cannot be read back), and the default is assumed.
func putBack(ctx context.Context, a Actuator, op sched.Op, t sched.Target, command string, ours []uint64, want *uint64) Outcome {
	o := Outcome{Op: op, Target: t, Commands: []string{command}}
	if len(ours) > 0 {
		o.Was = &ours[0]
	}
	end := func(s OutcomeState, format string, args ...any) Outcome {
		o.State, o.Why = s, fmt.Sprintf(format, args...)
		return o
	}
	assumed := ""
	if want == nil {
		if op != sched.OpInterleave {
			return end(OutcomeFailed, "what it was is not known")
		}
		want, assumed = sched.Ptr(uint64(defaultInterleave)), "; that it was the default is an assumption: it cannot be read back"
	}
	o.Value = want
	in, err := a.Inspect(ctx, t)
	if outcome, known := notThere(end, err); known {
		return outcome
	}
	if err != nil {
		return end(OutcomeFailed, "not put back to %s: %v", valueText(op, *want), err)
	}
	q := Request{ID: callID(), Command: command, Op: op, Target: in.Target, Value: *want}
	if op == sched.OpTimeslice && in.Timeslice != nil {
		now := *in.Timeslice
		if now == *want {
			return end(OutcomeAlready, "it is %s, as it was", valueText(op, now))
		}
		if !contains(ours, now) {
			return end(OutcomeForeign, "it is %s now, which is not what tsgtop set: its process or somebody else has set it since, and it is left alone", valueText(op, now))
		}
		q.Expect = &now
	}
	r := a.Do(ctx, q)
	if outcome, known := notThere(end, r.Err); known {
		return outcome
	}
	switch {
	case errors.Is(r.Err, ErrMoved):
		return end(OutcomeForeign, "somebody set it just now: it is left alone")
	case r.Err != nil:
		return end(OutcomeFailed, "not put back to %s: %v", valueText(op, *want), r.Err)
	case r.Status != 0:
		return end(OutcomeFailed, "not put back to %s: RM answered %s (0x%x)", valueText(op, *want), rm.StatusName(r.Status), r.Status)
	}
	return end(OutcomeRestored, "put back to %s%s", valueText(op, *want), assumed)
}

// notThere is the outcome for a target that has ended.
func notThere(end func(OutcomeState, string, ...any) Outcome, err error) (Outcome, bool) {
	if errors.Is(err, ErrGone) || errors.Is(err, ErrReplaced) {
		return end(OutcomeGone, "there is nothing to put back: %v", err), true
	}
	return Outcome{}, false
}

func contains(values []uint64, v uint64) bool {
	for _, x := range values {
		if x == v {
			return true
		}
	}
	return false
}

// valueText is a value in words: "200 us", "high".
func valueText(op sched.Op, v uint64) string {
	if op != sched.OpInterleave {
		return fmt.Sprintf("%d us", v)
	}
	switch v {
	case rm.InterleaveLow:
		return "low"
	case rm.InterleaveMedium:
		return "medium"
	case rm.InterleaveHigh:
		return "high"
	}
	return fmt.Sprintf("level %d", v)
}

// callID makes an id for one call, never 0.
func callID() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:]) | 1
}

// keptWhy is what is said of a value that was kept.
func keptWhy(op sched.Op, v uint64) string {
	return fmt.Sprintf("kept at %s on purpose; tsgtop restore puts it back", valueText(op, v))
}

const sharedWhy = "another tsgtop has set it since, and will put it back"

// restoreEntry puts back what one owner changed, and tells the journal.
func restoreEntry(ctx context.Context, a Actuator, j *journal.Journal, e journal.Entry, owner journal.Owner) Outcome {
	h := e.HeldBy(owner)
	if h == nil {
		return Outcome{Op: e.Op, Target: e.Target, State: OutcomeAlready, Why: "it is not held any more"}
	}
	want, inForce := e.Without(owner)
	var o Outcome
	if inForce {
		o = putBack(ctx, a, e.Op, e.Target, h.Command, []uint64{h.Value, h.Before}, want)
	} else {
		o = Outcome{Op: e.Op, Target: e.Target, Was: &h.Value, Commands: []string{h.Command}, State: OutcomeShared,
			Why: sharedWhy}
	}
	if !o.Done() {
		return o
	}
	if err := j.Release(e.Op, e.Target, owner, o.Why); err != nil {
		o.Why += "; but the journal could not be told, and will name it again: " + err.Error()
	}
	return o
}

// RestoreOf puts back what an owner that has ended left changed. kept: also what
// was kept on purpose.
func RestoreOf(ctx context.Context, a Actuator, j *journal.Journal, owner journal.Owner, kept bool) ([]Outcome, error) {
	s, err := j.State()
	if err != nil {
		return nil, err
	}
	var out []Outcome
	entries := s.Of(owner)
	for i := len(entries) - 1; i >= 0; i-- {
		e := entries[i]
		if h := e.HeldBy(owner); h.Kept && !kept {
			out = append(out, Outcome{Op: e.Op, Target: e.Target, Was: &h.Value, Value: e.Original, Commands: []string{h.Command},
				State: OutcomeKept, Why: keptWhy(e.Op, h.Value)})
			continue
		}
		out = append(out, restoreEntry(ctx, a, j, e, owner))
	}
	return out, nil
}

// RestoreAll puts back what tsgtops that have ended left changed, turns off RM's
// RPC meter if one of them left it on, and lists what those that run hold.
// kept: also what was kept on purpose.
func RestoreAll(ctx context.Context, a Actuator, j *journal.Journal, kept bool) ([]Outcome, error) {
	s, err := j.State()
	if err != nil {
		return nil, err
	}
	var out []Outcome
	seen := map[journal.Owner]bool{}
	for i := range s.Entries {
		for _, h := range s.Entries[i].Holds {
			if seen[h.Owner] {
				continue
			}
			seen[h.Owner] = true
			if !h.Owner.Alive() {
				more, err := RestoreOf(ctx, a, j, h.Owner, kept)
				if err != nil {
					return out, err
				}
				out = append(out, more...)
				continue
			}
			for _, e := range s.Of(h.Owner) {
				m := e.HeldBy(h.Owner)
				out = append(out, Outcome{Op: e.Op, Target: e.Target, Was: &m.Value, Value: e.Original, Commands: []string{m.Command},
					State: OutcomeHeld, Why: fmt.Sprintf("held at %s by tsgtop, pid %d, which runs", valueText(e.Op, m.Value), h.PID)})
			}
		}
	}
	if s.Meter != nil && !s.Meter.Alive() {
		if m, ok := a.(interface{ MeterOff() error }); ok {
			err = m.MeterOff()
		}
	}
	return out, err
}
