package sched

import (
	"context"
	"slices"
	"sync"
)

// Board owns a State, feeds it from a Source, and gives snapshots of it to any
// number of readers.
type Board struct {
	src Source
	opt Options

	feeding sync.Mutex // one feeder at a time; held while taps are called
	taps    []*tap
	out     []Event

	mu    sync.Mutex // guards state
	state *State
}

type tap struct {
	events func([]Event)
	lines  func(*CallLine)
}

// NewBoard gives a board for a source; nil where events only come by Feed.
func NewBoard(src Source, opt Options) *Board {
	return &Board{src: src, opt: opt, state: NewState(opt)}
}

// Source is what feeds the board.
func (b *Board) Source() Source { return b.src }

// Run pumps the source into the state until the source ends, and returns its
// error. Without a source it waits for the end of ctx.
func (b *Board) Run(ctx context.Context) error {
	if b.src == nil {
		<-ctx.Done()
		return nil
	}
	return b.src.Run(ctx, b.Feed)
}

// Feed takes in events: the source's, and extra ones such as Commands. It
// keeps nothing of the slice.
func (b *Board) Feed(events []Event) {
	b.feeding.Lock()
	defer b.feeding.Unlock()
	lines := b.apply(events)
	for _, t := range b.taps {
		if t.events != nil && len(b.out) > 0 {
			t.events(b.out)
		}
		if t.lines != nil {
			for i := range lines {
				t.lines(&lines[i])
			}
		}
	}
	clear(b.out)
}

// apply folds events into the state. It fills out with what the taps want, and
// gives the lines that they want. The lock does not outlive a panic: whoever
// shows the state has still to be able to end.
func (b *Board) apply(events []Event) (lines []CallLine) {
	b.out = b.out[:0]
	wantLines := slices.ContainsFunc(b.taps, func(t *tap) bool { return t.lines != nil })
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, ev := range events {
		seq := b.state.log.seq
		derived := b.state.Apply(ev)
		if len(b.taps) == 0 {
			continue
		}
		if wantLines {
			lines = b.state.linesSince(lines, seq)
		}
		if _, own := ev.(Lifecycle); !own {
			b.out = append(b.out, ev)
		}
		for i := range derived {
			b.out = append(b.out, derived[i])
		}
	}
	return lines
}

// Tap has f called with every event, in order, with the Lifecycle facts that
// follow from each right after it. f may read the board but not feed it, must
// not keep the slice or what its events' slices hold, and holds up the source
// while it runs. untap ends it.
func (b *Board) Tap(f func([]Event)) (untap func()) {
	return b.tap(&tap{events: f})
}

// TapLines has f called with every line of the call stream, under the same
// terms as Tap; it may keep the line.
func (b *Board) TapLines(f func(*CallLine)) (untap func()) {
	return b.tap(&tap{lines: f})
}

func (b *Board) tap(t *tap) (untap func()) {
	b.feeding.Lock()
	defer b.feeding.Unlock()
	return b.addTap(t)
}

// addTap is tap for who holds feeding.
func (b *Board) addTap(t *tap) (untap func()) {
	b.taps = append(b.taps[:len(b.taps):len(b.taps)], t)
	return func() {
		b.feeding.Lock()
		defer b.feeding.Unlock()
		var left []*tap
		for _, o := range b.taps {
			if o != t {
				left = append(left, o)
			}
		}
		b.taps = left
	}
}

// Snapshot gives the state now.
func (b *Board) Snapshot(opt SnapshotOptions) *Snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state.Snapshot(opt)
}

// Calls gives lines of the call stream; see State.Calls.
func (b *Board) Calls(after uint64, limit int, filter func(*Call) bool) []CallLine {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state.Calls(after, limit, filter)
}

// Turns gives the turns of one TSG; see State.Turns.
func (b *Board) Turns(gen uint64, from, to Time) []Turn {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state.Turns(gen, from, to)
}

// ExeOf gives the executable of a process, or its comm; empty where neither is
// known. It is untrusted text.
func (b *Board) ExeOf(pid int) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.state.processes[pid]
	switch {
	case p == nil:
		return ""
	case p.Exe != "":
		return p.Exe
	}
	return p.Comm
}

// Reset forgets everything: a player is about to send its recording again from
// an earlier place. Taps stay. Generations start anew, so that the same events
// give the same ones.
func (b *Board) Reset() {
	b.feeding.Lock()
	defer b.feeding.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state = NewState(b.opt)
}
