package export

import (
	"context"
	"time"

	"tsgtop/internal/sched"
	"tsgtop/internal/text"
)

// Row is whose a turn was. Its text is safe to show.
type Row struct {
	Gen     uint64
	ID      sched.TSGID
	Context bool // known from the trace alone
	PID     int
	Start   uint64 // of the process, clock ticks since boot; 0: not known
	Exe     string // path or, where that is not known, the name
	Name    string // last part of Exe
	Unit    string
}

// Turn is one stay of a row on a runlist's engine. Its Start is that of the
// trace where the record of it is missing.
type Turn struct {
	sched.Turn
	Lane Lane
	Row  *Row
}

// Lane names the engine that a turn was on.
type Lane struct {
	GPU, Runlist int
	N            int // of the GPU's lanes, from 0
}

// Visitor takes what a walk finds. The first error ends the walk.
type Visitor interface {
	// Turn: turns of one lane come in the order of their ends.
	Turn(Turn) error
	// Gap: records of the trace are missing right before the instant.
	Gap(Lane, sched.Time) error
	Command(*sched.Command) error
	Xid(*sched.Xid) error
	Tie(*sched.ClockTie) error
	// Tick comes about once a second of the recording, with the state then.
	Tick(*sched.Snapshot) error
}

// Spans of the walk, of the recording's clock.
const (
	tickEvery = sched.Time(time.Second)
	// settleFor is how long a turn is held back: what ended it can become known later.
	settleFor = sched.Time(time.Second)
	// laneKeep is how long the state remembers turns and ended TSGs: longer than
	// a piece and what is held back, and no longer than that needs.
	laneKeep = 15 * time.Second
	// A batch of the trace is folded in pieces of at most this, so that its turns
	// are taken before the lane forgets them.
	pieceRecords = 8192
	pieceSpan    = sched.Time(2 * time.Second)
	maxRows      = 1 << 14
)

// Walk goes through a recording and tells v of the turns, and of what else
// happened from the instant from on.
func Walk(ctx context.Context, src Source, gpus map[int]bool, from sched.Time, v Visitor) error {
	w := &walk{
		board: sched.NewBoard(nil, sched.Options{GPUs: gpus, LaneKeep: laneKeep, CallsKept: 16}),
		from:  from, v: v, rows: map[uint64]*Row{}, lanes: map[Lane]sched.Time{}, ends: map[Lane]sched.Time{}, read: map[int]sched.Time{},
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	err := src(ctx, func(events []sched.Event) {
		for _, e := range events {
			if w.err == nil {
				w.err = w.event(e)
			}
			if w.err != nil {
				stop()
				return
			}
		}
	})
	if w.err != nil {
		return w.err
	}
	w.over = true
	if werr := w.pull(true); werr != nil {
		return werr
	}
	return err
}

type walk struct {
	board *sched.Board
	from  sched.Time
	v     Visitor
	rows  map[uint64]*Row
	lanes map[Lane]sched.Time // turns that ended up to there have been told
	ends  map[Lane]sched.Time // of the newest turn that was told
	read  map[int]sched.Time  // the GPU's trace has been read up to there
	one   [1]sched.Event
	now   sched.Time
	tick  sched.Time
	told  sched.Time // of the newest snapshot that v was told of
	over  bool
	err   error
}

func (w *walk) feed(e sched.Event) {
	w.one[0] = e
	w.board.Feed(w.one[:])
	w.one[0] = nil
}

func (w *walk) event(e sched.Event) error {
	switch x := e.(type) {
	case sched.TraceBatch:
		return w.trace(x)
	case sched.Command:
		w.feed(e)
		if x.Time >= w.from {
			return w.v.Command(&x)
		}
		return nil
	case sched.Xid:
		w.feed(e)
		if x.Time >= w.from {
			return w.v.Xid(&x)
		}
		return nil
	case sched.ClockTie:
		w.feed(e)
		if x.Time >= w.from {
			return w.v.Tie(&x)
		}
		return nil
	}
	w.feed(e)
	return nil
}

// trace folds a batch, in pieces.
func (w *walk) trace(b sched.TraceBatch) error {
	for {
		piece := b
		n := 0
		for n < len(b.Records) && n < pieceRecords && (n == 0 || b.Records[n].Time-b.Records[0].Time < pieceSpan) {
			n++
		}
		piece.Records = b.Records[:n]
		if n > 0 && w.now != 0 && b.Records[0].Time-w.now > 2*settleFor {
			// The state would forget what was held back; nothing can change it any more.
			if err := w.pull(true); err != nil {
				return err
			}
		}
		last := n == len(b.Records)
		if !last {
			piece.Time = b.Records[n-1].Time
		}
		w.feed(piece)
		to := piece.Time
		for i := range piece.Records {
			to = max(to, piece.Records[i].Time)
		}
		w.read[b.GPU] = max(w.read[b.GPU], to)
		if len(w.read) > 1<<10 { // more GPUs than there can be
			clear(w.read)
		}
		w.now = max(w.now, to)
		if w.now-w.tick >= tickEvery {
			w.tick = w.now
			if err := w.pull(false); err != nil {
				return err
			}
		}
		if last {
			return nil
		}
		b.Records = b.Records[n:]
	}
}

// pull tells of what has been settled since the last time; all: also of what
// may not be settled yet.
func (w *walk) pull(all bool) error {
	if w.now == 0 {
		return w.v.Tick(w.board.Snapshot(sched.SnapshotOptions{}))
	}
	span := 2*tickEvery + settleFor
	for _, at := range w.lanes {
		span = max(span, w.now-at+tickEvery)
	}
	if len(w.lanes) == 0 {
		span = sched.Time(laneKeep)
	}
	snap := w.board.Snapshot(sched.SnapshotOptions{LaneSpan: time.Duration(min(span, sched.Time(laneKeep))), LaneUntil: w.now + 1})
	w.learn(snap)
	seen := map[int]int{}
	for i := range snap.Lanes {
		ln := &snap.Lanes[i]
		id := Lane{GPU: ln.GPU, Runlist: ln.Runlist, N: seen[ln.GPU]}
		seen[ln.GPU]++
		if err := w.lane(id, ln, all); err != nil {
			return err
		}
	}
	if snap.Time < w.from || snap.Time == w.told {
		return nil
	}
	w.told = snap.Time
	return w.v.Tick(snap)
}

func (w *walk) lane(id Lane, ln *sched.Lane, all bool) error {
	key := Lane{GPU: id.GPU, N: id.N} // its runlist may become known later
	told, to := w.lanes[key], w.read[id.GPU]
	if !all {
		to -= settleFor
	}
	for i := range ln.Turns {
		t := &ln.Turns[i]
		open := t.EndedBy == sched.EndOpen
		switch {
		case open && !w.over, !open && (t.End <= told || t.End > to), t.End < w.from:
			continue
		}
		if open {
			t.Clean = false // its end is not known
		}
		// A clock that jumped back: turns of one engine never overlap.
		if first := w.ends[key]; t.Start < first || t.End < t.Start {
			t.Start = max(t.Start, first)
			t.End, t.Clean = max(t.End, t.Start), false
		}
		w.ends[key] = t.End
		if err := w.v.Turn(Turn{Turn: *t, Lane: id, Row: w.row(t)}); err != nil {
			return err
		}
	}
	for _, at := range ln.Gaps {
		if at > told && at <= to && at >= w.from {
			if err := w.v.Gap(id, at); err != nil {
				return err
			}
		}
	}
	w.lanes[key] = max(told, to)
	return nil
}

// learn takes what is known of the rows now: more than when they were first met.
func (w *walk) learn(snap *sched.Snapshot) {
	if len(w.rows) > maxRows {
		clear(w.rows)
	}
	for i := range snap.TSGs {
		t := &snap.TSGs[i]
		w.rows[t.Gen] = rowOf(t)
	}
}

func (w *walk) row(t *sched.Turn) *Row {
	if r := w.rows[t.Gen]; r != nil {
		return r
	}
	r := &Row{Gen: t.Gen, ID: sched.TSGID{GPU: sched.Unknown, Runlist: sched.Unknown, TSG: sched.Unknown}, Context: true}
	if v, ok := w.board.TSG(t.Gen); ok {
		r = rowOf(&v)
	}
	w.rows[t.Gen] = r
	return r
}

// maxName bounds a text in an export, in bytes.
const maxName = 256

func clean(s string) string { return text.Bound(text.Clean(s), maxName) }

func rowOf(t *sched.TSGView) *Row {
	p := &t.Process
	r := &Row{Gen: t.Gen, ID: t.ID, Context: t.Context, PID: p.PID, Start: p.Start, Exe: clean(p.Exe), Name: clean(p.Name()), Unit: clean(p.Unit)}
	if r.Exe == "" {
		r.Exe = r.Name
	}
	return r
}

// endedBy is the word for what ended a turn.
func endedBy(e sched.EndedBy) string {
	switch e {
	case sched.EndTimeslice:
		return "timeslice"
	case sched.EndVoluntary:
		return "voluntary"
	case sched.EndPreempt:
		return "preempt"
	case sched.EndOpen:
		return "open"
	}
	return "unknown"
}
