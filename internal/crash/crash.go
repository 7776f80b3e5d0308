// Package crash brings a panic of any goroutine to whoever holds the terminal,
// so that the terminal is given back before the program ends. Where nobody
// does, a panic ends the program at once, as ever.
package crash

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// Error is a panic: what it was and where.
type Error struct {
	Value any
	Stack []byte
}

func (e *Error) Error() string { return fmt.Sprintf("internal error: %v\n\n%s", e.Value, e.Stack) }

var (
	mu    sync.Mutex
	taker chan error // nil: nobody
)

// Take has panics sent to the channel that it gives, the first one at least,
// until stop. There is one taker at a time: the latest.
func Take() (failed <-chan error, stop func()) {
	c := make(chan error, 1)
	mu.Lock()
	taker = c
	mu.Unlock()
	return c, func() {
		mu.Lock()
		defer mu.Unlock()
		if taker == c {
			taker = nil
		}
	}
}

// Go runs f in a goroutine of its own, and Guard over it.
func Go(f func()) {
	go func() {
		defer Guard()
		f()
	}()
}

// Guard, deferred first in a goroutine, gives a panic to the taker. The
// goroutine ends, the program goes on until the taker ends it.
func Guard() {
	r := recover()
	if r == nil {
		return
	}
	mu.Lock()
	c := taker
	mu.Unlock()
	if c == nil {
		panic(r)
	}
	select {
	case c <- &Error{Value: r, Stack: debug.Stack()}:
	default: // one is told already
	}
}
