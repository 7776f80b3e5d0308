package actions

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"tsgtop/actions/verdict"
	"tsgtop/internal/sched"
)

// Board is what commands see of the machine and show themselves on.
type Board interface {
	Snapshot(sched.SnapshotOptions) *sched.Snapshot
	Tap(func([]sched.Event)) (untap func())
	Feed([]sched.Event)
}

// tape keeps the last seconds of the trace and of what concerns commands, so
// that a command that is asked for has a baseline at once.
type tape struct {
	mu   sync.Mutex
	from uint64 // number of the first entry
	last []sched.Event
}

// tapeSpan is how much is kept: a baseline, and a little.
const tapeSpan = verdict.Baseline + 500*time.Millisecond

// tapeMost bounds the entries, whatever comes.
const tapeMost = 1 << 16

func (t *tape) take(events []sched.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range events {
		switch e := e.(type) {
		case sched.TraceBatch:
			e.Records = slices.Clone(e.Records)
			t.last = append(t.last, e)
		case sched.Lifecycle, sched.ProcessExit, sched.Xid:
			t.last = append(t.last, e)
		case sched.ProbeStatus:
			if e.Probe == "ctxsw" {
				t.last = append(t.last, e)
			}
		}
	}
	if n := len(t.last); n > 0 {
		old := t.last[n-1].When().Add(-tapeSpan)
		cut := max(0, n-tapeMost)
		for cut < n && t.last[cut].When() < old {
			cut++
		}
		// What is kept moves only when it is worth it.
		if cut > 256 || cut > n/2 {
			t.from += uint64(cut)
			t.last = slices.Delete(t.last, 0, cut)
		}
	}
}

// since gives the entries from number at on, and the number to go on from. lost:
// how many are not there any more; from 0 on, whatever is there is all.
func (t *tape) since(at uint64) (events []sched.Event, next, lost uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at < t.from {
		if at > 0 {
			lost = t.from - at
		}
		at = t.from
	}
	return slices.Clone(t.last[at-t.from:]), t.from + uint64(len(t.last)), lost
}

// planOf is what the judge is asked, from a snapshot.
func planOf(cmd sched.Command, wait time.Duration, snap *sched.Snapshot) verdict.Plan {
	others := map[uint32]verdict.TSG{}
	for i := range snap.TSGs {
		v := &snap.TSGs[i]
		if v.ID.GPU != cmd.Target.GPU || v.Gen == cmd.Target.Gen {
			continue
		}
		o := verdict.TSG{Key: v.Gen}
		if v.Timeslice != nil {
			o.TimesliceUS = *v.Timeslice
		}
		for _, c := range v.Channels {
			if c.Context != nil {
				others[*c.Context] = o
			}
		}
	}
	return verdict.Plan{Op: cmd.Op, Target: cmd.Target, Old: cmd.Old, New: cmd.New, Wait: wait,
		Others: func(c uint32) verdict.TSG { return others[c] }, NoTrace: noTrace(snap, cmd.Target.GPU)}
}

// noTrace says why there is no trace of a GPU; empty when there is one.
func noTrace(snap *sched.Snapshot, gpu int) string {
	why := fmt.Sprintf("no context-switch trace of GPU%d is read", gpu)
	for _, p := range snap.Probes {
		if p.Probe != "ctxsw" || p.GPU != gpu && p.GPU != sched.Unknown {
			continue
		}
		if p.State == sched.ProbeMissing || p.State == sched.ProbeReleased {
			return why + ": " + p.Why
		}
		return ""
	}
	return why
}

// observe feeds the judge what has come since the last time.
func (r *run) observe() {
	events, at, lost := r.c.tape.since(r.seen)
	if lost > 0 {
		r.judge.Spoil(fmt.Sprintf("%d pieces of the trace went by unread: this machine is too busy", lost))
	}
	r.c.steady.look()
	if why := r.c.steady.since(r.begun); why != "" {
		r.judge.Spoil(why)
	}
	if r.seen == 0 {
		r.settled(events)
	}
	r.seen = at
	for _, e := range events {
		switch e := e.(type) {
		case sched.TraceBatch:
			if e.GPU == r.cmd.Target.GPU && e.Time > r.calm {
				r.judge.Add(after(e, r.calm))
			}
		case sched.Xid:
			if e.GPU == r.cmd.Target.GPU && r.cmd.Issued > 0 && e.Time >= r.cmd.Issued {
				r.mu.Lock()
				r.cmd.Xid = append(r.cmd.Xid, e.Code)
				r.mu.Unlock()
			}
		case sched.ProcessExit:
			if e.PID == r.cmd.Target.PID && e.Time >= r.cmd.Asked {
				r.gone = "its process ended " + r.when(e.Time)
				r.judge.Spoil(r.gone)
			}
		case sched.ProbeStatus:
			if e.GPU == r.cmd.Target.GPU && e.Time >= r.cmd.Asked && (e.State == sched.ProbeMissing || e.State == sched.ProbeReleased) {
				r.judge.Spoil("the trace was turned off " + r.when(e.Time) + ": " + e.Why)
			}
		case sched.Lifecycle:
			r.lifecycle(e)
		}
	}
}

// settled begins the baseline after the last change of a timeslice or an
// interleave level on this GPU, whoever made it.
func (r *run) settled(events []sched.Event) {
	for _, e := range events {
		l, ok := e.(sched.Lifecycle)
		if !ok || l.Status != 0 || l.ID.GPU != r.cmd.Target.GPU || l.Time >= r.cmd.Asked {
			continue
		}
		if l.Kind == sched.TimesliceSet || l.Kind == sched.InterleaveSet {
			r.calm = max(r.calm, l.Time.Add(settleAfter))
		}
	}
}

// after is a batch without the records up to an instant.
func after(b sched.TraceBatch, t sched.Time) sched.TraceBatch {
	for i := range b.Records {
		if b.Records[i].Time > t {
			b.Records = b.Records[i:]
			return b
		}
	}
	b.Records = nil
	return b
}

// lifecycle notes what others do to the target, and to its competitors.
func (r *run) lifecycle(e sched.Lifecycle) {
	t := r.cmd.Target
	if e.Time < r.cmd.Asked || e.Status != 0 {
		return
	}
	own := e.Command == r.cmd.ID || e.Command == "" && e.PID == os.Getpid()
	if e.Object != t.Object {
		if !own && e.ID.GPU == t.GPU && r.cmd.Op == sched.OpInterleave && (e.Kind == sched.InterleaveSet || e.Kind == sched.TimesliceSet) {
			r.judge.Spoil(fmt.Sprintf("pid %d set %s of a TSG that competes with it %s", e.PID, kindWord(e.Kind), r.when(e.Time)))
		}
		return
	}
	switch e.Kind {
	case sched.TSGDestroyed:
		r.gone = "it ended " + r.when(e.Time)
		r.judge.Spoil("the target: " + r.gone)
	case sched.TimesliceSet, sched.InterleaveSet:
		if own {
			return
		}
		value := ""
		if e.Value != nil {
			value = fmt.Sprintf(" to %d", *e.Value)
		}
		r.judge.Spoil(fmt.Sprintf("pid %d set its %s%s %s", e.PID, kindWord(e.Kind), value, r.when(e.Time)))
	case sched.TSGIdled:
		r.judge.Spoil(fmt.Sprintf("pid %d took it off its runlist %s", e.PID, r.when(e.Time)))
	case sched.TSGPreempted:
		if !own && r.cmd.Op == sched.OpPreempt {
			r.judge.Spoil(fmt.Sprintf("pid %d preempted it too, %s", e.PID, r.when(e.Time)))
		}
	}
}

func kindWord(k sched.LifecycleKind) string {
	if k == sched.InterleaveSet {
		return "interleave level"
	}
	return "timeslice"
}

// when is an instant in words, by the call.
func (r *run) when(t sched.Time) string {
	if r.cmd.Issued == 0 || t < r.cmd.Issued {
		return "before the call"
	}
	return fmt.Sprintf("%.2f s after the call", t.Sub(r.cmd.Issued).Seconds())
}
