// Package journal is the machine's list of what tsgtop has changed: one file,
// written before a value is changed, so that whoever comes after a crash knows
// what to put back. All tsgtops of a machine share it.
package journal

import (
	"slices"

	"tsgtop/internal/sched"
)

// Owner names a tsgtop process: its pid and the process's start time, in clock
// ticks since boot, since pids are reused.
type Owner struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
}

// Hold is one owner's hold on a value: what it set, and by which command.
type Hold struct {
	Owner
	Command  string `json:"command"`
	Value    uint64 `json:"value"`           // what was asked for
	Before   uint64 `json:"before"`          // what this owner's last command found
	Kept     bool   `json:"kept,omitempty"`  // on purpose: not to be put back when the owner ends
	Actuator string `json:"actuator"`        // by which it was set
	When     string `json:"when,omitempty"`  // RFC 3339
	Until    string `json:"until,omitempty"` // --for, RFC 3339; for people
}

// Entry is one value of one TSG that is not what it was.
type Entry struct {
	Op     sched.Op     `json:"op"` // timeslice or interleave
	Target sched.Target `json:"target"`
	// Original is what it was before any tsgtop touched it: the first wins,
	// whoever changes it how often. nil: it could not be known (interleave).
	Original *uint64 `json:"original"`
	// Holds are those who changed it, in the order of their last commands: the
	// value is that of the last.
	Holds []Hold `json:"holds"`
}

// Key names what an entry is about, by ids that are not reused while the
// machine is up.
type Key struct {
	Op     sched.Op
	GPU    int
	Object sched.Object
	Unique uint32
	Known  bool // Unique is: then what follows is not looked at
	PID    int
	Start  uint64
}

// KeyOf is the key of a target's value. Where the driver gives no unique id,
// the handles with the process's start time stand for it; where it does, they
// do not count: of processes that share a TSG, one tsgtop can name the one and
// another the other, or not know yet when it started.
func KeyOf(op sched.Op, t sched.Target) Key {
	k := Key{Op: op, GPU: t.GPU, Object: t.Object}
	if t.UniqueID != nil {
		k.Unique, k.Known = *t.UniqueID, true
	} else {
		k.PID, k.Start = t.PID, t.Start
	}
	return k
}

// Key is the entry's.
func (e *Entry) Key() Key { return KeyOf(e.Op, e.Target) }

// HeldBy is the hold of an owner, or nil.
func (e *Entry) HeldBy(o Owner) *Hold {
	for i := range e.Holds {
		if e.Holds[i].Owner == o {
			return &e.Holds[i]
		}
	}
	return nil
}

// Without says what is left to do when an owner lets go: the value to put
// back (nil: unknown what it was), and whether the owner's is the one that is
// in force. Where others hold the TSG still, the last of them gets its value
// back; where nobody does, the original.
func (e *Entry) Without(o Owner) (value *uint64, inForce bool) {
	n := len(e.Holds)
	if n == 0 || e.HeldBy(o) == nil {
		return nil, false
	}
	inForce = e.Holds[n-1].Owner == o
	for i := n - 1; i >= 0; i-- {
		if e.Holds[i].Owner != o {
			return &e.Holds[i].Value, inForce
		}
	}
	return e.Original, inForce
}

func (e *Entry) clone() Entry {
	c := *e
	c.Holds = slices.Clone(e.Holds)
	c.Target.Contexts = slices.Clone(e.Target.Contexts)
	return c
}

// State is what the journal says.
type State struct {
	Entries []Entry
	// Meter is who has the machine's RPC meter on; nil: no tsgtop.
	Meter *Owner
	// Stale is how many entries are of an earlier boot: void, since a boot
	// resets everything.
	Stale int
	// Unreadable is how many lines could not be read, such as one that a crash
	// cut short.
	Unreadable int
}

// Find gives an entry by its key, or nil.
func (s *State) Find(k Key) *Entry {
	for i := range s.Entries {
		if s.Entries[i].Key() == k {
			return &s.Entries[i]
		}
	}
	return nil
}

// Of are the entries that an owner holds.
func (s *State) Of(o Owner) []Entry {
	var out []Entry
	for i := range s.Entries {
		if s.Entries[i].HeldBy(o) != nil {
			out = append(out, s.Entries[i].clone())
		}
	}
	return out
}

// line is one line of the file: one change of the state.
type line struct {
	Boot     string        `json:"boot"`
	Do       string        `json:"do"` // hold, keep, release, meter-on, meter-off
	Op       sched.Op      `json:"op,omitempty"`
	Target   *sched.Target `json:"target,omitempty"`
	Original *uint64       `json:"original,omitempty"`
	Hold     *Hold         `json:"hold,omitempty"`
	Owner    *Owner        `json:"owner,omitempty"`
	Why      string        `json:"why,omitempty"` // for people
}

// apply folds one line into the state.
func (s *State) apply(l line) {
	switch l.Do {
	case "meter-on":
		s.Meter = l.Owner
	case "meter-off":
		s.Meter = nil
	case "hold":
		e := s.Find(KeyOf(l.Op, *l.Target))
		if e == nil {
			s.Entries = append(s.Entries, Entry{Op: l.Op, Target: *l.Target, Original: l.Original})
			e = &s.Entries[len(s.Entries)-1]
		}
		e.Holds = slices.DeleteFunc(e.Holds, func(h Hold) bool { return h.Owner == l.Hold.Owner })
		e.Holds = append(e.Holds, *l.Hold)
	case "keep":
		if e := s.Find(KeyOf(l.Op, *l.Target)); e != nil {
			if h := e.HeldBy(*l.Owner); h != nil {
				h.Kept = true
			}
		}
	case "release":
		k := KeyOf(l.Op, *l.Target)
		e := s.Find(k)
		if e == nil {
			return
		}
		if l.Owner == nil {
			e.Holds = nil
		} else {
			e.Holds = slices.DeleteFunc(e.Holds, func(h Hold) bool { return h.Owner == *l.Owner })
		}
		if len(e.Holds) == 0 {
			s.Entries = slices.DeleteFunc(s.Entries, func(e Entry) bool { return e.Key() == k })
		}
	}
}

// valid tells whether a line that was read has what its kind needs.
func (l *line) valid() bool {
	switch l.Do {
	case "meter-on":
		return l.Owner != nil
	case "meter-off":
		return true
	case "hold":
		return l.Target != nil && l.Hold != nil
	case "keep":
		return l.Target != nil && l.Owner != nil
	case "release":
		return l.Target != nil
	}
	return false
}
