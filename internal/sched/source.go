package sched

import "context"

// Source gives a stream of events: a live machine, a recording or the
// simulated GPU. Nobody downstream can tell them apart, except by the label.
type Source interface {
	// Run sends events to sink until ctx ends (nil), the stream is over (nil)
	// or cannot go on (an error that says what was tried and what would help).
	// sink is called by one goroutine at a time, and must not keep the slice.
	Run(ctx context.Context, sink func([]Event)) error
}

// Looker is a Source that can stream calls that it otherwise only counts.
type Looker interface {
	// Look tells whether somebody looks at all calls (the calls screen).
	Look(bool)
}

// CounterLooker is a Source that can read the GSP's counters of context
// switches, which it does only while somebody looks: each reading is a call to
// the GSP.
type CounterLooker interface {
	// LookCounters tells whether somebody looks at the counters. Who turned it on
	// turns it off; they are read as long as anybody has it on.
	LookCounters(bool)
}

// Releaser is a Source that can let go of the GPU's devices, so that an
// operator can reset the GPU, unload the driver or change MIG; and take them
// again.
type Releaser interface {
	Release()
	Resume()
}

// Player is a Source that can be steered in time: a recording.
type Player interface {
	Pause(bool)
	SetSpeed(float64)
	Seek(Time)
	// Position: where the player is, and the recording's first and last instant.
	Position() (at, first, last Time)
}
