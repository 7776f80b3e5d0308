//go:build linux

// Package steward keeps roles: it gives the TSGs of latency-critical and
// best-effort processes the timeslices that their roles ask for, also those that
// appear later and those whose process sets its own, watches what the trace says
// of it, and lifts roles from processes that starve.
package steward

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tsgtop/actions"
	"tsgtop/internal/sched"
	"tsgtop/internal/steer"
)

// Board is what a steward sees of the machine.
type Board interface {
	Snapshot(sched.SnapshotOptions) *sched.Snapshot
	Tap(func([]sched.Event)) (untap func())
}

// StarveAfter is how long a best-effort process may be without a turn while it
// had work until it is shown as starving.
const StarveAfter = 100 * time.Millisecond

// Options are what a Steward is made of.
type Options struct {
	Board  Board
	Keeper *actions.Keeper
	Clock  actions.Clock
	Roles  *steer.Roles
	// StarveAfter bounds the time without a turn; 0: the default. Lift: roles are
	// then lifted from who starves.
	StarveAfter time.Duration
	Lift        bool
	Say         func(string) // what happens, in sentences; nil: nobody listens
}

// Paces, by the source's clock.
const (
	StepEvery  = 50 * time.Millisecond
	checkEvery = time.Second // RM's own copy is read, where nothing was seen to change it
	retryEvery = 5 * time.Second
)

// Steward keeps roles. Its methods can be called by several goroutines.
type Steward struct {
	o     Options
	untap func()

	shown atomic.Pointer[map[uint64]Shown]

	lostMu sync.Mutex
	lost   map[int]int // GPU -> records of the trace that are missing, since the last step

	mu       sync.Mutex // guards what follows, and Roles
	on       bool       // values are set
	now      *steer.Assignment
	meters   map[*steer.Meter]bool
	checked  map[uint64]sched.Time
	failed   map[uint64]sched.Time // generation -> when it could not be put back
	said     map[string]bool
	starving map[steer.Proc]time.Duration
	starved  map[steer.Proc]time.Duration // longest so far
	seen     map[uint64]actions.Kept      // the latest of each TSG, also of those that ended
	outcomes []actions.Outcome            // of what was let go on the way
	limits   map[steer.Proc]steer.Limits
}

// New makes a steward that sets nothing yet.
func New(o Options) *Steward {
	if o.StarveAfter <= 0 {
		o.StarveAfter = StarveAfter
	}
	if o.Say == nil {
		o.Say = func(string) {}
	}
	s := &Steward{o: o, lost: map[int]int{}, meters: map[*steer.Meter]bool{}, checked: map[uint64]sched.Time{}, failed: map[uint64]sched.Time{}, said: map[string]bool{},
		starving: map[steer.Proc]time.Duration{}, starved: map[steer.Proc]time.Duration{}, seen: map[uint64]actions.Kept{}, limits: map[steer.Proc]steer.Limits{}}
	s.o.Roles.Original = s.original // called under the lock
	s.untap = o.Board.Tap(s.countLost)
	return s
}

// Close ends the steward's look at the machine; what it keeps is the Keeper's.
func (s *Steward) Close() { s.untap() }

func (s *Steward) countLost(events []sched.Event) {
	for _, e := range events {
		b, ok := e.(sched.TraceBatch)
		if !ok {
			continue
		}
		for i := range b.Records {
			if n := b.Records[i].Gap; n > 0 {
				s.lostMu.Lock()
				s.lost[b.GPU] += int(min(n, 1<<20))
				s.lostMu.Unlock()
			}
		}
	}
}

// On has the roles' values set from the next step on.
func (s *Steward) On(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on = on
}

// Mark gives a process a role, or takes it away.
func (s *Steward) Mark(p steer.Proc, role steer.Role) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.o.Roles.Mark(p, role)
	delete(s.o.Roles.Lifted, p)
}

// Clear takes all marks and rules away: one undo of everything.
func (s *Steward) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.o.Roles.Marks, s.o.Roles.Rules = nil, nil
}

// Role is the role of a process now, and why it is suspended, if it is.
func (s *Steward) Role(p steer.Proc) (role steer.Role, lifted string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil {
		return steer.NoRole, ""
	}
	for _, m := range s.now.Members {
		if m.Proc == p {
			return m.Role, m.Lifted
		}
	}
	return steer.NoRole, ""
}

// Assignment is who has which role, as of the latest step.
func (s *Steward) Assignment() *steer.Assignment {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil {
		return &steer.Assignment{}
	}
	return s.now
}

// Watch makes a meter of a GPU that each step feeds.
func (s *Steward) Watch(gpu int) *steer.Meter {
	m := steer.NewMeter(gpu)
	s.mu.Lock()
	defer s.mu.Unlock()
	// Called while a step holds the lock.
	m.Role = func(p steer.Proc) steer.Role {
		if s.now == nil {
			return steer.NoRole
		}
		return s.now.Of(p)
	}
	m.Limits = func(p steer.Proc) (steer.Limits, bool) {
		l, ok := s.limits[p]
		return l, ok
	}
	s.meters[m] = true
	return m
}

// Unwatch ends a meter.
func (s *Steward) Unwatch(m *steer.Meter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.meters, m)
}

// Locked runs f while no step runs: for who reads a meter.
func (s *Steward) Locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// Run keeps the roles until ctx ends.
func (s *Steward) Run(ctx context.Context) {
	for ctx.Err() == nil {
		s.Step(ctx)
		s.o.Clock.Sleep(ctx, StepEvery)
	}
}

// Step looks once, and does what is to be done.
func (s *Steward) Step(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.o.Clock.Now()
	s.look(now)
	if s.on {
		s.set(ctx, now)
	}
	s.release(ctx, now)
	s.count()
}

// Look is a step that changes nothing: only the meters go on.
func (s *Steward) Look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.look(s.o.Clock.Now())
}

func (s *Steward) look(now sched.Time) {
	var span time.Duration
	for m := range s.meters {
		span = max(span, m.LaneSpan(now))
	}
	snap := s.o.Board.Snapshot(sched.SnapshotOptions{LaneSpan: min(span, 50*time.Second)})
	s.now = s.o.Roles.Assign(snap)
	s.show(snap)
	s.limit()
	s.lostMu.Lock()
	lost := s.lost
	s.lost = map[int]int{}
	s.lostMu.Unlock()
	for m := range s.meters {
		m.Take(snap)
		m.Missing(lost[m.GPU])
	}
	s.starve()
	for _, n := range s.now.Notes {
		s.once(n)
	}
}

// Shown is the role of a TSG's process, and why it is suspended, if it is.
type Shown struct {
	Role   steer.Role
	Lifted string
}

func (s *Steward) show(snap *sched.Snapshot) {
	by := map[steer.Proc]Shown{}
	for _, m := range s.now.Members {
		by[m.Proc] = Shown{m.Role, m.Lifted}
	}
	shown := map[uint64]Shown{}
	for i := range snap.TSGs {
		if x, ok := by[steer.ProcOf(&snap.TSGs[i])]; ok && !snap.TSGs[i].Context {
			shown[snap.TSGs[i].Gen] = x
		}
	}
	s.shown.Store(&shown)
}

// RoleOf is the role of a TSG's process as of the latest step. It never waits,
// also not while RM hangs.
func (s *Steward) RoleOf(gen uint64) Shown {
	if m := s.shown.Load(); m != nil {
		return (*m)[gen]
	}
	return Shown{}
}

// Idle tells whether nobody has a role or can get one, and nothing is kept.
func (s *Steward) Idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.o.Roles.Marks) == 0 && len(s.o.Roles.Rules) == 0 && len(s.o.Keeper.All()) == 0
}

// count keeps the latest of each TSG.
func (s *Steward) count() {
	for _, k := range s.o.Keeper.All() {
		s.seen[k.Target.Gen] = k
	}
}

func (s *Steward) once(line string) {
	if !s.said[line] && len(s.said) < 1000 {
		s.said[line] = true
		s.o.Say(line)
	}
}

// Outcomes are those of what was put back on the way.
func (s *Steward) Outcomes() []actions.Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.outcomes)
}
