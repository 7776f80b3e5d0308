package sched

import (
	"slices"
	"time"
)

// Limits of what a State keeps, whatever a source sends. What exceeds one is
// counted in Snapshot.Cut.
const (
	maxGPUs      = 64
	maxEngines   = 16 // graphics engines of one GPU: more than one only with MIG
	maxClients   = 1 << 14
	maxObjects   = 1 << 16 // devices, TSGs and channels
	maxOrphans   = 1 << 10 // of one client: objects whose parent is not known
	maxTSGs      = 1 << 12
	maxContexts  = 1 << 12 // of all GPUs' traces
	maxProcesses = 1 << 14
	maxProbes    = 256
	maxCommands  = 200
	maxXids      = 200
	maxText      = 4 << 10 // bytes of one text from a source
)

// maxTime keeps sums of instants and durations inside 64 bits.
const maxTime = Time(1) << 62

// sweepEvery is how often the state looks for what is over.
const sweepEvery = quarter

// Options set up a State.
type Options struct {
	// GPUs are the indices that snapshots show; nil: all.
	GPUs map[int]bool
	// LaneKeep is how long turns are kept for lanes, and the names and numbers
	// of TSGs after their end; 0: 60 s.
	LaneKeep time.Duration
	// LaneTurns is how many turns of one engine are kept at most; 0: 262,144.
	LaneTurns int
	// CallsKept is how many lines of the call stream are kept; 0: 10,000.
	CallsKept int
}

func (o Options) withDefaults() Options {
	if o.LaneKeep <= 0 {
		o.LaneKeep = time.Minute
	}
	if o.LaneTurns <= 0 {
		o.LaneTurns = 1 << 18
	}
	if o.CallsKept <= 0 {
		o.CallsKept = 10_000
	}
	return o
}

// State is what all events so far say: GPUs, runlists, TSGs, channels and
// contexts with their statistics. Its memory is bounded. It is not safe for
// concurrent use; Board is.
type State struct {
	opt        Options
	now        Time // newest instant seen
	swept      Time
	source     SourceInfo
	gpus       []*gpu // by index
	probes     []ProbeStatus
	loss       Loss
	clients    map[Handle]*client
	objects    map[Object]*object
	tsgs       []*tsg // that live
	ended      []*row // that are over, oldest first
	ctxRows    []*row // made from the trace alone
	owners     map[uint32]*tsg
	contexts   int // in all engines
	processes  map[int]*process
	files      map[uint32]int // RM files: number of clients
	closes     bool           // the call probe sees files close
	tombs      tombs
	nextGen    uint64
	cut        uint64
	found      Unattributed // as the newest inventory says
	commands   []Command
	xids       []Xid
	log        callLog
	tsgCalls   int     // kept with TSGs, in all
	keptParams *Params // the log's copy of those of the call that is being applied
	rate       ring    // turns: calls
	counted    countedRate
	derived    []Lifecycle // of the event that is being applied
	pool       pool
}

// NewState gives a state that knows nothing yet.
func NewState(opt Options) *State {
	opt = opt.withDefaults()
	return &State{
		opt:       opt,
		clients:   map[Handle]*client{},
		objects:   map[Object]*object{},
		owners:    map[uint32]*tsg{},
		processes: map[int]*process{},
		files:     map[uint32]int{},
		log:       callLog{limit: opt.CallsKept},
	}
}

// Apply folds one event into the state and gives the lifecycle facts that
// follow from it, usually none. It keeps nothing of the event's slices.
func (s *State) Apply(ev Event) []Lifecycle {
	s.derived = nil
	switch e := ev.(type) {
	case TraceBatch:
		s.applyTrace(&e)
	case *TraceBatch:
		s.applyTrace(e)
	case CallBatch:
		for i := range e.Calls {
			s.applyCall(&e.Calls[i])
		}
	case *CallBatch:
		for i := range e.Calls {
			s.applyCall(&e.Calls[i])
		}
	case Call:
		s.applyCall(&e)
	case CallCounts:
		s.applyCallCounts(&e)
	case Inventory:
		s.tick(e.End)
		s.applyInventory(&e)
	case Process:
		s.tick(e.Time)
		s.applyProcess(e)
	case ProcessExit:
		s.tick(e.Time)
		s.log.addExit(e)
		s.applyExit(e)
	case SourceInfo:
		e.Notes = slices.Clone(e.Notes)
		s.source = e
	case ProbeStatus:
		s.applyProbe(e)
	case GPU:
		s.tick(e.Time)
		s.applyGPU(e)
	case GPUSample:
		s.tick(e.Time)
		s.applySample(e)
	case Loss:
		s.tick(e.Time)
		s.loss = e
	case Xid:
		s.tick(e.Time)
		s.applyXid(e)
	case Command:
		s.applyCommand(e)
	case ClockTie:
		s.tick(e.Time)
	case SwitchCounters:
		s.tick(e.Time)
		s.applySwitches(&e)
	case Lifecycle:
		// A source's own derivation; this state makes its own.
	}
	if s.now-s.swept >= sweepEvery {
		s.sweep()
	}
	return s.derived
}

// tick moves the newest instant, by what was observed. What a source says of
// itself and commands do not move it: they can bear another clock's time than
// the recording that is played.
func (s *State) tick(t Time) {
	if t > s.now && t <= maxTime {
		s.now = t
	}
}

func (s *State) gen() uint64 {
	s.nextGen++
	return s.nextGen
}

func (s *State) applyProbe(p ProbeStatus) {
	if p.Probe == "ctxsw" && (p.State == ProbeMissing || p.State == ProbeReleased) {
		for _, g := range s.gpus {
			if p.GPU == Unknown || p.GPU == g.view.Index {
				g.interruptTrace(s, p.Time)
			}
		}
	}
	for i := range s.probes {
		if s.probes[i].Probe == p.Probe && s.probes[i].GPU == p.GPU {
			s.probes[i] = p
			return
		}
	}
	if len(s.probes) == maxProbes {
		s.cut++
		return
	}
	s.probes = append(s.probes, p)
}

func (s *State) applyXid(x Xid) {
	x.Text, x.Name = clip(x.Text), clip(x.Name)
	s.xids = keepLast(s.xids, x, maxXids)
	if g := s.gpu(x.GPU); g != nil {
		g.xids++
	}
	s.log.addXid(x)
}

// applyCommand replaces what is known of the command.
func (s *State) applyCommand(c Command) {
	for i := len(s.commands) - 1; i >= 0; i-- {
		if s.commands[i].ID == c.ID {
			s.commands[i] = c
			return
		}
	}
	s.commands = keepLast(s.commands, c, maxCommands)
}

// keepLast appends v, dropping the oldest above limit.
func keepLast[T any](l []T, v T, limit int) []T {
	if len(l) >= limit {
		n := copy(l, l[len(l)-limit+1:])
		l = l[:n]
	}
	return append(l, v)
}

func clip(s string) string {
	if len(s) > maxText {
		return s[:maxText]
	}
	return s
}

// countedRate is the rate of the calls that only the kernel counted.
type countedRate struct {
	at   Time
	perS float64
}

func (s *State) applyCallCounts(c *CallCounts) {
	s.tick(c.Time)
	var n uint64
	for i := range c.Counts {
		n += c.Counts[i].N
	}
	if d := c.Time - s.counted.at; s.counted.at > 0 && d > 0 {
		s.counted.perS = float64(n) / time.Duration(d).Seconds()
	}
	s.counted.at = c.Time
}

// sweep ends and forgets what is over.
func (s *State) sweep() {
	s.swept = s.now
	s.endOrphans()
	s.dropContextRows()
	s.dropEnded()
	s.dropProcesses()
	s.tombs.expire(s.now)
}
