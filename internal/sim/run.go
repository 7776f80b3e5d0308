package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"tsgtop/internal/sched"
)

// tick is how often Run hands events over, in the wall's time.
const tick = 20 * time.Millisecond

// catchUp is the most simulated time that Run makes between two hand-overs: a
// machine that cannot keep up falls behind instead of stalling.
const catchUp = time.Second

// Run implements sched.Source: it lets the machine's clock go, Speed times as
// fast as the wall's, until ctx ends.
func (m *Machine) Run(ctx context.Context, sink func([]sched.Event)) error {
	m.mu.Lock()
	if !m.wall.IsZero() {
		m.mu.Unlock()
		return errors.New("run the simulated GPU: it is running already")
	}
	m.wall, m.wallBase = time.Now(), m.now
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		m.wall = time.Time{}
		m.mu.Unlock()
	}()
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		m.mu.Lock()
		until := m.clock()
		if until.Sub(m.now) > catchUp {
			until = m.now.Add(catchUp)
			m.wall, m.wallBase = time.Now(), until
		}
		m.advance(until)
		out := m.out
		m.out = nil
		m.mu.Unlock()
		if len(out) > 0 {
			sink(out)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// Sleep waits for a while of the machine's own clock, or until ctx ends. Where
// nobody runs the machine, it runs it for that while; the next Advance hands
// over the events.
func (m *Machine) Sleep(ctx context.Context, d time.Duration) error {
	m.mu.Lock()
	if m.wall.IsZero() {
		m.advance(m.now.Add(d))
		m.mu.Unlock()
		return ctx.Err()
	}
	m.mu.Unlock()
	t := time.NewTimer(time.Duration(float64(d) / m.config.Speed))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Kill ends a process at once: its TSGs die with the last close of its file,
// and a run that was under way has no end in the trace. It reports whether
// there was such a process.
func (m *Machine) Kill(pid int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.living(pid)
	if p == nil {
		return false
	}
	now := m.clock()
	p.closed = true
	e := m.gpus[p.gpu].engine
	e.at(int64(now), func(e *engine) { e.remove(p.compute) })
	m.out = append(m.out, sched.ProcessExit{Time: now, PID: pid})
	m.calls = append(m.calls, sched.Call{Start: now, End: now.Add(3 * time.Millisecond), PID: pid, TID: pid, File: uint32(pid),
		Kind: sched.CallClose, Client: p.client, Object: p.client})
	return true
}

// Respawn starts a copy of a process that was killed: the same program, object
// handles and TSG numbers, another pid, client, unique ids and contexts. It
// gives the copy's target.
func (m *Machine) Respawn(pid int) (sched.Target, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, p := range m.procs {
		if p.pid != pid || !p.closed {
			continue
		}
		j := i % m.config.TSGs
		c := m.newProcess(p.gpu, j)
		now := m.clock()
		m.procs[i] = c
		e := m.gpus[p.gpu].engine
		e.at(int64(now), func(e *engine) {
			for k := range e.tsgs {
				if e.tsgs[k] == p.compute {
					e.tsgs[k] = c.compute
				}
			}
			c.compute.since = e.now
		})
		calls := c.creation(now)
		m.out = append(m.out, c.identity(now))
		m.calls = append(m.calls, calls...)
		return c.target(), true
	}
	return sched.Target{}, false
}

// Reprogram gives a process kernels of another length, from its next one on. It
// reports whether there is such a process.
func (m *Machine) Reprogram(pid int, kernel time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.living(pid)
	if p == nil {
		return false
	}
	m.gpus[p.gpu].engine.at(int64(m.clock()), func(*engine) { p.compute.program.length = float64(kernel) })
	return true
}

// Next gives the length of a process's next kernel and the pause before it.
type Next func(now sched.Time, r *rand.Rand) (length, pause time.Duration)

// Feed lets a program of the caller's own feed a process's TSG, from its next kernel
// on: for workloads that no knob makes. It reports whether there is such a process.
func (m *Machine) Feed(pid int, next Next) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.living(pid)
	if p == nil {
		return false
	}
	m.gpus[p.gpu].engine.at(int64(m.clock()), func(*engine) { p.compute.program.own = next })
	return true
}

// Launches are the kernels that a latency-critical process finished since an
// instant, the oldest first; those of very long ago are forgotten. Nil for a
// process that has none such.
func (m *Machine) Launches(pid int, since sched.Time) []Launch {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.living(pid)
	if p == nil {
		return nil
	}
	var out []Launch
	for _, l := range p.compute.launches {
		if l.At >= since {
			out = append(out, l)
		}
	}
	return out
}

func (m *Machine) living(pid int) *process {
	for _, p := range m.procs {
		if p.pid == pid && !p.closed {
			return p
		}
	}
	return nil
}
