package recording

import (
	"context"
	"errors"
	"io"
	"time"

	"tsgtop/internal/sched"
)

// maxCommands bounds the memory of which commands were met already.
const maxCommands = 100_000

// feed is one reading of a player's recording from its beginning.
type feed struct {
	p        *Player
	reader   *Reader
	sink     func([]sched.Event)
	batch    []sched.Event
	next     sched.Event // read, not given yet
	fed      sched.Time  // newest instant that was given
	begun    bool
	over     bool  // nothing more to read
	err      error // why, where it is not the regular end
	forward  bool  // as fast as possible, up to target
	target   sched.Time
	commands map[string]bool
	source   sched.SourceInfo // latest
}

// move is what to do next.
type move uint8

const (
	moveGive move = iota
	moveWait
	moveAgain
	moveEnd
)

func (f *feed) run(ctx context.Context) (again bool, err error) {
	defer f.flush()
	for ctx.Err() == nil {
		if f.next == nil && !f.over {
			f.read()
		}
		do, wait := f.decide()
		switch do {
		case moveGive:
			e := f.next
			f.next = nil
			f.give(e)
		case moveWait:
			f.flush()
			if !f.wait(ctx, wait) {
				return false, nil
			}
		case moveAgain:
			return true, nil
		case moveEnd:
			return false, f.err
		}
	}
	return false, nil
}

// read takes the next event from the recording.
func (f *feed) read() {
	e, err := f.reader.Next()
	if _, own := e.(sched.SourceInfo); !own && !f.begun {
		f.give(f.p.sourceInfo())
	}
	f.begun = true
	switch {
	case err == nil:
		if s, ok := e.(sched.SourceInfo); ok {
			e = f.p.relabel(s)
		}
		f.next = e
	case errors.Is(err, io.EOF):
		f.over = true
	default:
		f.over, f.err = true, err
		s := f.source
		s.Notes = append(append([]string(nil), s.Notes...), err.Error())
		f.give(s)
	}
}

// decide says what to do now, and how long to wait at the most (0: until steered).
func (f *feed) decide() (move, time.Duration) {
	p := f.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seek != nil {
		if *p.seek < f.fed {
			return moveAgain, 0 // the request stays, for the next reading
		}
		f.forward, f.target, p.seek = true, *p.seek, nil
		p.ending = false
		p.clock.hold(true)
	}
	if f.over {
		return f.decideEnd()
	}
	t := f.next.When()
	switch {
	case f.forward && t > f.target:
		p.clock.set(f.target)
		p.clock.hold(false)
		f.forward = false
	case f.forward, p.mark:
		if f.isMark(f.next) && !f.forward {
			p.mark = false
		}
		p.clock.set(max(t, p.clock.now()))
		return moveGive, 0
	}
	if t <= p.clock.now() {
		f.isMark(f.next)
		return moveGive, 0
	}
	switch {
	case p.clock.paused:
		return moveWait, 0
	case p.clock.speed == 0:
		f.isMark(f.next)
		p.clock.set(t)
		return moveGive, 0
	}
	return moveWait, max(quantum, time.Duration(min(float64(t-p.clock.now())/p.clock.speed, float64(time.Hour))))
}

func (f *feed) decideEnd() (move, time.Duration) {
	p := f.p
	p.mark = false
	if f.forward {
		p.clock.set(f.target)
		p.clock.hold(false)
		f.forward = false
	}
	switch {
	case p.opts.Loop && f.err == nil && f.fed > p.first && !p.clock.paused:
		p.clock.hold(false)
		return moveAgain, 0
	case p.opts.Hold, p.opts.Loop:
		if !p.ending {
			p.ending = true
			p.clock.set(max(p.clock.now(), p.last))
			p.clock.hold(true)
		}
		return moveWait, 0
	}
	return moveEnd, 0
}

// isMark tells of Xids, and of commands the first time that they come, after
// the recording's beginning proper.
func (f *feed) isMark(e sched.Event) bool {
	switch v := e.(type) {
	case sched.Xid:
		return v.Time >= f.p.first
	case sched.Command:
		if f.commands[v.ID] {
			return false
		}
		if len(f.commands) < maxCommands {
			f.commands[v.ID] = true
		}
		return v.Time >= f.p.first
	}
	return false
}

func (f *feed) give(e sched.Event) {
	if s, ok := e.(sched.SourceInfo); ok {
		f.source = s
	}
	f.fed = max(f.fed, e.When())
	if f.batch = append(f.batch, e); len(f.batch) >= batchEvents {
		f.flush()
	}
}

func (f *feed) flush() {
	if len(f.batch) > 0 {
		f.sink(f.batch)
		clear(f.batch)
		f.batch = f.batch[:0]
	}
}

// wait waits for so long (0: for ever) or until the player is steered; false: ctx ended.
func (f *feed) wait(ctx context.Context, d time.Duration) bool {
	var due <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		due = t.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-f.p.wake:
	case <-due:
	}
	return true
}
