package verdict

import (
	"time"

	"tsgtop/internal/sched"
)

// turn is one stay of a TSG on the engine. Its times are the trace's.
type turn struct {
	tsg       int // 0: the target; others as they were first met
	start     sched.Time
	end       sched.Time
	clean     bool       // no gap in the trace touches it
	contested bool       // all of it, another TSG is known to have waited
	after     sched.Time // end of the turn before it; 0 where something may be missing between them
}

func (t turn) length() time.Duration { return t.end.Sub(t.start) }

// folder makes turns of trace records. A turn with a gap inside is kept, not
// clean; a turn whose end never came (its context died on the engine) is left
// out. A TSG is known to wait from the end of a turn that lasted its timeslice
// until its next one: the trace cannot show waiting any other way.
type folder struct {
	contexts map[uint32]int     // context -> TSG
	slices   map[int]uint64     // TSG -> timeslice in us, of those other than the target
	keys     map[uint64]int     // the caller's name of a TSG -> TSG
	others   func(uint32) TSG   // may be nil
	forced   map[int]bool       // its last turn lasted its timeslice, and it has had none since
	pids     map[int]uint32     // TSG -> pid, as the trace gives it
	turns    []turn             // ended, in the order of their ends
	open     *turn              // on the engine
	openCtx  uint32             // its context
	lastEnd  sched.Time         // of the turn before, nothing missing since; 0: not known
	lost     []loss             // where records are missing
	starts   map[int]sched.Time // TSG -> start of its latest turn
}

// loss is a hole in the trace.
type loss struct {
	at      sched.Time
	records uint32
}

// maxTurns bounds the memory that a judge takes, whatever the trace holds.
const maxTurns = 1 << 19

func newFolder(target []uint32, others func(uint32) TSG) *folder {
	f := &folder{contexts: map[uint32]int{}, slices: map[int]uint64{}, keys: map[uint64]int{}, others: others,
		forced: map[int]bool{}, pids: map[int]uint32{}, starts: map[int]sched.Time{}}
	for _, c := range target {
		f.contexts[c] = 0
	}
	return f
}

// tsgOf names the TSG of a context: a small number, 0 for the target.
func (f *folder) tsgOf(context, pid uint32) int {
	if t, ok := f.contexts[context]; ok {
		return t
	}
	var who TSG
	if f.others != nil {
		who = f.others(context)
	}
	t := len(f.pids) + 1
	if who.Key != 0 {
		if known, ok := f.keys[who.Key]; ok {
			t = known
		} else {
			f.keys[who.Key] = t
		}
	}
	f.contexts[context], f.pids[t], f.slices[t] = t, pid, who.TimesliceUS
	return t
}

func (f *folder) add(r sched.TraceRecord) {
	if r.Gap > 0 {
		f.lost = append(f.lost, loss{r.Time, r.Gap})
		f.lastEnd = 0
		clear(f.forced) // who has run unseen is not known to wait
		if f.open != nil {
			f.open.clean = false
		}
	}
	switch r.Tag {
	case sched.TagStart:
		f.start(r)
	case sched.TagEnd:
		f.finish(r)
	}
}

func (f *folder) start(r sched.TraceRecord) {
	if f.open != nil && !f.open.clean {
		f.close(r.Time)
	}
	t := f.tsgOf(r.Context, r.PID)
	delete(f.forced, t)
	f.open = &turn{tsg: t, start: r.Time, clean: true, contested: len(f.forced) > 0, after: f.lastEnd}
	f.openCtx, f.starts[t] = r.Context, r.Time
}

func (f *folder) finish(r sched.TraceRecord) {
	switch {
	case f.open == nil:
		f.lastEnd = r.Time // the first record of all, or its start was lost: nothing is known of the turn
		return
	case f.openCtx != r.Context:
		f.close(r.Time)
		return
	}
	f.close(r.Time)
	f.lastEnd = r.Time
}

// close ends the open turn.
func (f *folder) close(at sched.Time) {
	o := *f.open
	o.end, f.open = at, nil
	if len(f.turns) < maxTurns {
		f.turns = append(f.turns, o)
	}
	slice := f.slices[o.tsg]
	if o.tsg != 0 && o.clean && slice > 0 && o.length() >= lasted(slice) {
		f.forced[o.tsg] = true
	}
}

// endings are the least and the greatest length of a turn that a timeslice of
// so many us ended, where another waits. The hardware's residency is the
// timeslice and some more, never less: measured on an H200, 102 us over 200 and
// 296 over 8192; 2% are left for clocks. Longer turns lasted because nobody
// waited, or because the hardware has another timeslice.
func endings(us uint64) (least, greatest time.Duration) {
	us = min(us, 1<<40) // RM takes any value
	slice := time.Duration(us) * time.Microsecond
	return slice / 100 * 98, slice/100*105 + 250*time.Microsecond
}

// lasted is the least length of a turn that a timeslice of so many us ended.
func lasted(us uint64) time.Duration {
	least, _ := endings(us)
	return least
}

// ended tells whether a length is one that a timeslice of so many us gives.
func ended(us uint64, length time.Duration) bool {
	least, greatest := endings(us)
	return length >= least && length <= greatest
}
