// Package simtest is a simulated GPU for tests: its clock goes on only when somebody
// waits.
package simtest

import (
	"context"
	"sync"
	"testing"
	"time"

	"tsgtop/internal/sched"
	"tsgtop/internal/sim"
)

// Start is when the simulated clock begins.
const Start sched.Time = 1_790_000_000_000_000_000

// GPU is a simulated machine with a board that sees all it does. It is a clock for
// what acts on it.
type GPU struct {
	Machine *sim.Machine
	Board   *sched.Board
	Wakeup  func() // called at each step of the clock; nil: nobody

	mu sync.Mutex // one step at a time
}

// New makes one with these knobs.
func New(t testing.TB, knobs string) *GPU {
	t.Helper()
	config, err := sim.ParseKnobs(knobs)
	if err != nil {
		t.Fatal(err)
	}
	config.Start = Start
	m, err := sim.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return &GPU{Machine: m, Board: sched.NewBoard(nil, sched.Options{})}
}

// Now is the simulated clock.
func (g *GPU) Now() sched.Time { return g.Machine.Now() }

// Sleep lets the simulated time pass at once.
func (g *GPU) Sleep(ctx context.Context, d time.Duration) error {
	g.mu.Lock()
	g.Board.Feed(g.Machine.Advance(d))
	f := g.Wakeup
	g.mu.Unlock()
	if f != nil {
		f()
	}
	return ctx.Err()
}
