package sim

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
)

// flushEvery is how often the trace is read: as the live reader flushes it.
const flushEvery = 5 * time.Millisecond

// Machine is the simulated machine. It is a sched.Source (Run), can be stepped
// as fast as possible instead (Advance), and takes commands (Do). All methods
// can be called by several goroutines.
type Machine struct {
	config Config

	mu       sync.Mutex
	start    sched.Time
	now      sched.Time // all engines are here
	gpus     []*gpu
	procs    []*process
	rand     *rand.Rand
	out      []sched.Event // made, not yet handed over
	calls    []sched.Call  // of commands, to be shown at their ends
	sampled  sched.Time
	lost     uint64
	nextIDs  ids
	wall     time.Time // when Run began; zero: not running
	wallBase sched.Time
}

// gpu is one simulated GPU.
type gpu struct {
	index  int
	engine *engine
}

// ids are the counters that name things: none of them repeats.
type ids struct {
	pid     int
	client  sched.Handle
	context uint32
	unique  uint32
	start   uint64
}

// New makes a machine whose first target, 0:0:7, has been running for a while.
func New(c Config) (*Machine, error) {
	if c.GPUs < 1 || c.GPUs > maxGPUs || c.TSGs < 1 || c.TSGs > maxTSGs || !(c.Speed > 0) {
		return nil, fmt.Errorf("simulated GPU: %d GPUs of %d TSGs at speed %g: want 1 to %d GPUs, 1 to %d TSGs, a speed over 0; begin with Default",
			c.GPUs, c.TSGs, c.Speed, maxGPUs, maxTSGs)
	}
	m := &Machine{config: c, start: c.Start, rand: rand.New(rand.NewPCG(c.Seed, 0x7a6d)),
		nextIDs: ids{pid: 479, client: 0xc1d00007, context: 0x3f, unique: 11, start: 81234}}
	if m.start == 0 {
		m.start = sched.Now()
	}
	m.now = m.start
	for i := range c.GPUs {
		e := &engine{now: int64(m.now), lose: c.Lose, rand: rand.New(rand.NewPCG(c.Seed, uint64(i)+1))}
		m.gpus = append(m.gpus, &gpu{index: i, engine: e})
		for j := range c.TSGs {
			p := m.newProcess(i, j)
			m.procs = append(m.procs, p)
			e.tsgs = append(e.tsgs, p.compute)
		}
		// The target has been alone until now: resident, with no record of it.
		e.resident, e.slices, e.idle, e.save = e.tsgs[0], e.now, e.now, int64(saveTime)
		e.period = int64(e.resident.slice) * timesliceUnit
	}
	m.out = m.begin()
	return m, nil
}

// Open is New on a list of knobs.
func Open(knobs string) (*Machine, error) {
	c, err := ParseKnobs(knobs)
	if err != nil {
		return nil, err
	}
	return New(c)
}

// begin is what the source says first: who it is, what there is, and, where
// there is more than one process, the calls by which the last one began.
func (m *Machine) begin() []sched.Event {
	t := m.now
	events := []sched.Event{sched.SourceInfo{Time: t, Label: "SIMULATED", Host: "simulated", BootID: "00000000-0000-0000-0000-000000000000",
		Kernel: "6.18.0", Started: t, Notes: []string{"a simulated GPU, not a real one: it behaves as an H200 was measured to, but for its knobs"}}}
	for _, p := range []string{"rm", "discover", "xid", "exit", "nvml"} {
		events = append(events, sched.ProbeStatus{Time: t, Probe: p, GPU: sched.Unknown, State: sched.ProbeOK, What: "simulated"})
	}
	for _, g := range m.gpus {
		events = append(events, sched.ProbeStatus{Time: t, Probe: "ctxsw", GPU: g.index, State: sched.ProbeOK, What: "simulated"}, m.describe(g))
	}
	inventory := sched.Inventory{Start: t - 4e6, End: t, Complete: true, PerProcessNS: 4e6}
	var late *process
	if n := len(m.procs); n > 1 {
		late = m.procs[n-1]
	}
	for _, p := range m.procs {
		events = append(events, p.identity(t))
		if p != late {
			p.found(&inventory)
		}
	}
	events = append(events, inventory)
	if late != nil {
		events = append(events, sched.CallBatch{Calls: late.creation(t)})
	}
	return events
}

func (m *Machine) describe(g *gpu) sched.GPU {
	return sched.GPU{Time: m.now, Index: g.index, ID: uint32(0x1b00 + g.index*0x100), Minor: g.index, DeviceInstance: g.index,
		PCI: fmt.Sprintf("00000000:%02X:00.0", 0x1b+g.index), UUID: fmt.Sprintf("GPU-51300000-0000-0000-0000-%012x", g.index),
		Name: "Simulated H200", Driver: "580.159.04", Open: sched.Ptr(true), GSP: sched.Ptr(true), MIG: sched.Ptr(false), Persistence: sched.Ptr(true),
		MemoryBytes: 139 << 30,
		Runlists: []sched.Runlist{{ID: 0, Engines: []uint32{engineGR0}}, {ID: 1, Engines: []uint32{engineCE0 + 2}},
			{ID: 3, Engines: []uint32{engineCE0 + 3}}, {ID: 10, Engines: []uint32{engineCE0 + 4}}}}
}

// NV2080 engine types of the simulated engines.
const (
	engineGR0 uint32 = 1
	engineCE0 uint32 = 9
)

// Now is the present instant of the machine's own clock.
func (m *Machine) Now() sched.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clock()
}

func (m *Machine) clock() sched.Time {
	if m.wall.IsZero() {
		return m.now
	}
	return max(m.now, m.wallBase.Add(time.Duration(float64(time.Since(m.wall))*m.config.Speed)))
}

// Advance runs the machine for a while of its own clock, as fast as possible,
// and gives the events of that while, in order; the first call also gives those
// that every source begins with. Not to be mixed with Run.
func (m *Machine) Advance(d time.Duration) []sched.Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance(m.now.Add(d))
	out := m.out
	m.out = nil
	return out
}

// advance runs to an instant, and leaves the events in m.out.
func (m *Machine) advance(until sched.Time) {
	for m.now < until {
		m.now = min(until, m.now.Add(flushEvery))
		for _, g := range m.gpus {
			g.engine.run(int64(m.now))
			m.out = append(m.out, sched.TraceBatch{Time: m.now, GPU: g.index, Records: g.engine.records})
			g.engine.records = nil
		}
		m.showCalls()
		if m.now.Sub(m.sampled) >= time.Second {
			m.sample()
		}
	}
}

// showCalls hands over the commands' calls that have ended by now.
func (m *Machine) showCalls() {
	var ended, left []sched.Call
	for _, c := range m.calls {
		if c.End <= m.now {
			ended = append(ended, c)
		} else {
			left = append(left, c)
		}
	}
	m.calls = left
	if len(ended) > 0 {
		m.out = append(m.out, sched.CallBatch{Calls: ended})
	}
}

// sample makes what comes once a second: NVML's numbers, the GSP's
// switch counters, counted calls, losses.
func (m *Machine) sample() {
	m.sampled = m.now
	counts := sched.CallCounts{Time: m.now}
	var lost uint64
	for _, g := range m.gpus {
		s := sched.GPUSample{Time: m.now, GPU: g.index, SMPercent: sched.Ptr(90 + m.rand.IntN(9)), MemTotal: sched.Ptr(uint64(139 << 30)),
			PowerMilliW: sched.Ptr(uint64(600000 + m.rand.IntN(20000))), TemperatureC: sched.Ptr(60 + m.rand.IntN(3))}
		var used uint64
		for _, p := range m.procs {
			if p.gpu == g.index && !p.compute.dead {
				used += p.memory
				s.ProcessMem = append(s.ProcessMem, sched.ProcessMemory{PID: p.pid, Bytes: p.memory})
				m.out = append(m.out, p.switchCounters(m.now))
			}
		}
		s.MemUsed = &used
		m.out = append(m.out, s)
		lost += g.engine.lost
	}
	n := uint64(len(m.procs)) * 40
	counts.Counts = []sched.CallCount{{Kind: sched.CallControl, Number: rm.CtrlGPUTime, N: n, NS: n * 2800}}
	m.out = append(m.out, counts)
	if lost != m.lost {
		m.lost = lost
		m.out = append(m.out, sched.Loss{Time: m.now, Trace: lost})
	}
}
