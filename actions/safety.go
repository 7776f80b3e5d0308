package actions

import (
	"fmt"
	"time"

	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
)

// Bounds of what is sent. RM has none: it was seen to take timeslices of 0 and
// of 100 s.
const (
	// MinTimesliceUS and MaxTimesliceUS bound a timeslice, in microseconds. At
	// 50 us, a context is switched out about as fast as it can be switched in
	// (75 to 80 us on an H200); for 1 s, everybody else stands still.
	MinTimesliceUS = 50
	MaxTimesliceUS = 1_000_000
	// With force it is these. Never 0.
	MinForcedUS = 1
	MaxForcedUS = 100_000_000
	// MaxPreempts bounds one command's preempts; MinPreemptGap is the least
	// pause from one to the next. Repeated preempts always wait: without, the
	// driver's own header declares them undefined.
	MaxPreempts   = 10_000
	MinPreemptGap = 1500 * time.Microsecond
)

// watchdogUS is when the driver's watchdog takes a GPU for hung, in microseconds.
const watchdogUS = 7_000_000

// longUS is a timeslice, in microseconds, from which on others' waits are told.
const longUS = 100_000

// What one switch takes on an H200, in microseconds: nobody resident, and what a
// turn lasts over its timeslice.
const (
	switchUS = 79
	overUS   = 110
)

// timesliceRange is what a timeslice may be.
func timesliceRange(force bool) (lo, hi uint64) {
	if force {
		return MinForcedUS, MaxForcedUS
	}
	return MinTimesliceUS, MaxTimesliceUS
}

// checkIntent refuses what is out of bounds, with the bounds.
func checkIntent(in *Intent, force bool) error {
	switch in.Op {
	case sched.OpTimeslice:
		lo, hi := timesliceRange(force)
		switch {
		case in.Value == nil:
			return fmt.Errorf("timeslice: %w: a value in microseconds is needed", ErrBounds)
		case *in.Value < lo || *in.Value > hi:
			more := ""
			if !force {
				more = fmt.Sprintf("; with --force %d to %d us", MinForcedUS, MaxForcedUS)
			}
			return fmt.Errorf("timeslice %d us: %w: want %d to %d us%s", *in.Value, ErrBounds, lo, hi, more)
		}
	case sched.OpInterleave:
		if in.Value == nil || *in.Value > rm.InterleaveHigh {
			return fmt.Errorf("interleave: %w: want low, medium or high (0, 1, 2)", ErrBounds)
		}
	case sched.OpPreempt:
		in.Value = nil
		in.Count = max(1, in.Count)
		if in.Count > MaxPreempts {
			return fmt.Errorf("%d preempts: %w: want 1 to %d", in.Count, ErrBounds, MaxPreempts)
		}
		if in.Count > 1 {
			if in.Every == 0 {
				in.Every = 2 * time.Millisecond
			}
			if in.Every < MinPreemptGap {
				return fmt.Errorf("a preempt every %v: %w: want %v or more from one to the next", in.Every, ErrBounds, MinPreemptGap)
			}
		}
	default:
		return fmt.Errorf("operation %q: %w: want %s, %s or %s", in.Op, ErrBounds, sched.OpPreempt, sched.OpTimeslice, sched.OpInterleave)
	}
	return nil
}

// checkRow refuses rows that stand for nothing that can be acted on.
func checkRow(t *sched.TSGView) error {
	refuse := func(why string) error { return fmt.Errorf("TSG %s: %w: %s", t.ID, ErrUnfit, why) }
	switch {
	case t.Context:
		return refuse("this row is a context of the trace whose TSG is not known")
	case t.Process.PID <= 0:
		return refuse("it belongs to no process that is known: a TSG of the kernel's own, or of UVM, is not touched")
	case t.Object.Client == 0 || t.Object.Handle == 0:
		return refuse("RM made it by itself for a channel without a group: it has no handle to send a command to")
	}
	return nil
}

func clientsText(n int) string {
	if n == 1 {
		return "1 client"
	}
	return fmt.Sprintf("%d clients", n)
}

// warningsOf is what the operator should know before saying yes. watched: the
// trace has been looked at for long enough that its silence says something.
func warningsOf(in Intent, t *sched.TSGView, old *uint64, me string, watched bool) []string {
	var w []string
	say := func(format string, args ...any) { w = append(w, fmt.Sprintf(format, args...)) }
	if t.MPS {
		who := "its clients"
		if t.Clients > 0 {
			who = clientsText(t.Clients)
		}
		say("this TSG is an MPS server's, shared with %s: all of them are hit", who)
	} else if t.Clients > 0 {
		say("shared with %s of other processes, which are hit too", clientsText(t.Clients))
	}
	if t.Process.User != "" && me != "" && t.Process.User != me {
		say("it belongs to user %s, not to you (%s)", t.Process.User, me)
	}
	if in.Op == sched.OpTimeslice {
		switch v := *in.Value; {
		case v >= watchdogUS:
			say("longer than the driver's watchdog of 7 s: it can take the GPU for hung, and end every process on it")
		case v >= longUS:
			say("everybody else on this engine can wait %v for each of its turns", time.Duration(v)*time.Microsecond)
		case v < MinTimesliceUS:
			say("shorter than a switch takes: the GPU can come to do little else")
		}
		if old != nil && *old == *in.Value {
			say("it is %d us already: it is judged all the same, and the right answer is that nothing changes", *old)
		}
		if t.TimesliceFrom == sched.FromDefault || old != nil && *old == rm.DefaultTimesliceUS {
			say("RM says %d us of any TSG that nobody has set, whatever the hardware does: that is what undo will set", rm.DefaultTimesliceUS)
		}
	}
	if t.Engine != nil && !rm.IsGraphicsEngine(*t.Engine) {
		say("a copy engine has no trace: whether the hardware changes cannot be known")
	} else if why := t.WhyNull; why != "" && watched {
		say("the trace may not show a change: %s", why)
	}
	return w
}

// costOf is what a command may cost, in a sentence.
func costOf(in Intent, t *sched.TSGView, old *uint64) string {
	switch in.Op {
	case sched.OpTimeslice:
		tax := func(us uint64) float64 { return 100 * switchUS / float64(us+overUS+switchUS) }
		s := fmt.Sprintf("while others compete, each of its turns lasts about %d us and costs a switch of about %d us (measured on an H200): %.1f%% of its part of the time",
			*in.Value+overUS, switchUS, tax(*in.Value))
		if old != nil {
			s += fmt.Sprintf(", against %.1f%% now", tax(*old))
		}
		return s
	case sched.OpInterleave:
		return "others may get fewer or more turns; on an H200 it was accepted and changed nothing"
	}
	if in.Count > 1 {
		return fmt.Sprintf("%d preempts, each about half a millisecond in the driver, under one GPU's lock, and a switch of about %d us", in.Count, switchUS)
	}
	return fmt.Sprintf("its run is cut short, if it is on the engine: a switch of about %d us, and a turn's wait", switchUS)
}

// undoWords is how a command is undone, or why it cannot be.
func undoWords(in Intent, old *uint64, keep bool) string {
	how := "put back by undo, at exit, and if tsgtop is killed"
	if keep {
		how = "kept at exit (tsgtop restore puts it back)"
	}
	switch {
	case in.Op == sched.OpPreempt:
		return "nothing to undo: the TSG gets its next turn as always"
	case in.Op == sched.OpInterleave && old == nil:
		return how + ": to " + valueText(in.Op, defaultInterleave) + ", the default, which is an assumption: what it is now cannot be read back"
	case old == nil:
		return "what it is now cannot be read, so that it could not be undone"
	}
	return how + ": to " + valueText(in.Op, *old)
}
