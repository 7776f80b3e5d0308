package steer

import (
	"math/rand/v2"
	"slices"
	"time"

	"tsgtop/internal/sched"
)

// switchMost is the longest time between two turns that is a switch; when nobody
// is resident for longer, nobody wanted the engine. One takes 75 to 85 us on an
// H200.
const switchMost = time.Millisecond

// competes is how long after another's turn a turn still counts as competed.
const competes = 100 * time.Millisecond

// samplesMost bounds the values that are kept of one quantity; above it, each
// has the same chance to be among them.
const samplesMost = 20000

// Samples are values of one quantity, in us.
type Samples struct {
	N    int       // how many there were
	Kept []float64 // all of them, or a random part
}

func (s *Samples) add(x float64, r *rand.Rand) {
	s.N++
	if len(s.Kept) < samplesMost {
		s.Kept = append(s.Kept, x)
	} else if i := r.IntN(s.N); i < samplesMost {
		s.Kept[i] = x
	}
}

// Quantile is the nearest-rank quantile; nil where there are no values.
func (s *Samples) Quantile(q float64) *float64 {
	if len(s.Kept) == 0 {
		return nil
	}
	x := slices.Clone(s.Kept)
	slices.Sort(x)
	return sched.Ptr(x[max(0, min(len(x)-1, int(q*float64(len(x))+0.999999)-1))])
}

// Mean is the mean; nil where there are no values.
func (s *Samples) Mean() *float64 {
	if len(s.Kept) == 0 {
		return nil
	}
	sum := 0.0
	for _, x := range s.Kept {
		sum += x
	}
	return sched.Ptr(sum / float64(len(s.Kept)))
}

// Use is what one process did on its graphics engine in a span.
type Use struct {
	Turns     int           // that ended
	Clean     int           // of them, those that no gap in the trace touches
	Competed  time.Duration // resident while another competed
	Residency Samples       // of clean turns
	Forced    int           // clean turns that the timeslice or a preempt ended while another waited
	Unknown   int           // clean turns of which it is not known what ended them
	Waits     Samples       // off the engine after such a turn
	// LeftFor are the lengths of clean turns right after which an LC process came on.
	LeftFor Samples
	// Blocks are, for each block of time, how many of the turns after which another
	// came on were shorter than they could be under the timeslice Floor.
	Blocks []Block
}

// Block counts turns in one stretch of time.
type Block struct {
	Short, All int
	Below      int // of Short: shorter than the new timeslice, too
	At         int // of All: as long as the old timeslice makes a turn
	Held       int // of At: another was known to wait all through it
	Near       int // of All: longer than that, up to twice the old timeslice
	// Left are the lengths of the turns right after which an LC process came on, in
	// us: of the first leftMost of each block.
	Left []float64
}

// blockSpan is how long a block is, and leftMost and leftBlocks bound what is kept
// of the lengths in it.
const (
	blockSpan  = 250 * time.Millisecond
	leftMost   = 100
	leftBlocks = 4000
)

// Span is what a Meter has seen between two instants.
type Span struct {
	From, To  sched.Time
	Read      time.Duration // of trace
	Gaps      int
	Torn      int // turns left out because records are missing
	Switches  int
	Competed  time.Duration // of all, switches included
	Switching time.Duration
	Uses      map[Proc]*Use
}

// Share is a process's part of the competed time; nil where nothing competed.
func (s *Span) Share(p Proc) *float64 {
	if u := s.Uses[p]; u != nil && s.Competed > 0 {
		return sched.Ptr(float64(u.Competed) / float64(s.Competed))
	}
	return nil
}

// Tax is the part of the competed time in which nobody was resident; nil where
// nothing competed.
func (s *Span) Tax() *float64 {
	if s.Competed <= 0 {
		return nil
	}
	return sched.Ptr(float64(s.Switching) / float64(s.Competed))
}

// PerSecond is n a second of trace; nil where none was read.
func (s *Span) PerSecond(n int) *float64 {
	if s.Read < 10*time.Millisecond {
		return nil
	}
	return sched.Ptr(float64(n) / s.Read.Seconds())
}

// TornShare is the part of the turns that had to be left out.
func (s *Span) TornShare() float64 {
	n := s.Torn
	for _, u := range s.Uses {
		n += u.Clean
	}
	if n == 0 {
		return 0
	}
	return float64(s.Torn) / float64(n)
}

// Limits are the timeslices between which the short turns of a process are
// counted, in us: what it had, and what its role gives it.
type Limits struct{ Old, New uint64 }

// Meter folds the lanes of snapshots into spans, one GPU's engine. Feed it
// snapshots whose lanes reach back to the one before; it takes each turn once.
type Meter struct {
	GPU int
	// Role tells who is LC; Limits what is short. Both can be nil.
	Role   func(Proc) Role
	Limits func(Proc) (Limits, bool)

	cur    Span
	rand   *rand.Rand
	done   sched.Time      // turns that ended up to here are in
	read   sched.Time      // the trace was read up to here, as far as turns show
	who    map[uint64]Proc // by generation
	ends   map[Proc]sched.Time
	forced map[Proc]sched.Time // who was taken off with work left, and when
	onNow  Proc                // is on the engine, or was just now
}

// NewMeter makes a meter of a GPU.
func NewMeter(gpu int) *Meter {
	return &Meter{GPU: gpu, rand: rand.New(rand.NewPCG(1, 2)), who: map[uint64]Proc{}, ends: map[Proc]sched.Time{}, forced: map[Proc]sched.Time{}}
}

// Begin starts a span at an instant and gives the one before.
func (m *Meter) Begin(at sched.Time) *Span {
	old := m.cur
	if old.To == 0 || old.To > at {
		old.To = at
	}
	if old.From > 0 {
		old.Read = max(0, min(old.To, m.done).Sub(old.From))
	}
	m.cur = Span{From: at, Uses: map[Proc]*Use{}}
	if m.done == 0 {
		m.done = at
	}
	return &old
}

// End has the span end at an instant: what is read of the trace from then on
// belongs to none until the next Begin.
func (m *Meter) End(at sched.Time) { m.cur.To = at }

// Peek is the span so far.
func (m *Meter) Peek() *Span {
	s := m.cur
	s.To = max(m.done, s.From)
	s.Read = max(0, m.done.Sub(s.From))
	return &s
}

// LaneSpan is how much of the lane the meter needs of a snapshot at now.
func (m *Meter) LaneSpan(now sched.Time) time.Duration {
	return max(50*time.Millisecond, now.Sub(m.done)+20*time.Millisecond)
}

// Take takes in the turns of a snapshot. The newest is left for the next, since
// what came after it is not known yet.
func (m *Meter) Take(snap *sched.Snapshot) {
	if m.cur.Uses == nil {
		m.Begin(snap.Time)
	}
	for i := range snap.TSGs {
		v := &snap.TSGs[i]
		m.who[v.Gen] = ProcOf(v)
	}
	for i := range snap.Lanes {
		l := &snap.Lanes[i]
		if l.GPU != m.GPU {
			continue
		}
		m.onNow = Proc{}
		for k := 0; k < len(l.Turns); k++ {
			t := l.Turns[k]
			m.read = max(m.read, t.End)
			if t.EndedBy == sched.EndOpen {
				m.onNow = m.who[t.Gen]
			}
			if t.EndedBy == sched.EndOpen || t.End <= m.done {
				continue
			}
			var next *sched.Turn
			if k+1 < len(l.Turns) {
				next = &l.Turns[k+1]
			} else if l.To.Sub(t.End) < 20*time.Millisecond {
				m.onNow = m.who[t.Gen] // it may be, for all that is known
				break
			}
			m.turn(t, next, l.Gaps)
		}
	}
	// Where nothing switches, there is nothing to wait for.
	m.done = max(m.done, m.read.Add(-50*time.Millisecond))
}

// Missing tells of records of the trace that are known to be missing: two make a
// turn.
func (m *Meter) Missing(records int) { m.cur.Torn += records / 2 }

// turn takes in one turn that ended, and who came next (nil: nobody soon).
func (m *Meter) turn(t sched.Turn, next *sched.Turn, gaps []sched.Time) {
	p, ok := m.who[t.Gen]
	m.done = t.End
	if !ok {
		p = Proc{PID: -int(t.Context)} // not known whose it is: still somebody else
	}
	gapAfter := next != nil && slices.ContainsFunc(gaps, func(g sched.Time) bool { return g > t.End && g <= next.Start })
	defer m.note(t, p)
	if t.Start < m.cur.From || m.cur.To > 0 && t.End > m.cur.To {
		return
	}
	u := m.use(p)
	u.Turns++
	if from := m.ends[p]; from > 0 && m.forced[p] == from && t.Start >= from {
		u.Waits.add(float64(t.Start-from)/1e3, m.rand)
	}
	if !t.Clean {
		m.cur.Torn++
		return
	}
	u.Clean++
	u.Residency.add(float64(t.End-t.Start)/1e3, m.rand)
	if other := m.otherThan(p); other > 0 {
		if d := min(t.End, other.Add(competes)).Sub(t.Start); d > 0 {
			u.Competed += d
			m.cur.Competed += d
		}
	}
	switch t.EndedBy {
	case sched.EndTimeslice, sched.EndPreempt:
		u.Forced++
	case sched.EndUnknown:
		u.Unknown++
	}
	if next != nil && !gapAfter && next.Gen != t.Gen && next.Start.Sub(t.End) <= switchMost {
		m.cur.Switches++
		m.cur.Switching += next.Start.Sub(t.End)
		m.cur.Competed += next.Start.Sub(t.End)
		m.followed(u, t, p, next)
	}
}

// followed takes in a turn right after which another process came on.
func (m *Meter) followed(u *Use, t sched.Turn, p Proc, next *sched.Turn) {
	us := float64(t.End-t.Start) / 1e3
	forLC := m.Role != nil && m.Role(p) == BE && m.Role(m.who[next.Gen]) == LC
	if forLC {
		u.LeftFor.add(us, m.rand)
	}
	if m.Limits == nil {
		return
	}
	lim, ok := m.Limits(p)
	if !ok {
		return
	}
	i := int(t.End.Sub(m.cur.From) / blockSpan)
	for len(u.Blocks) <= i && len(u.Blocks) < 1<<16 {
		u.Blocks = append(u.Blocks, Block{})
	}
	if i >= len(u.Blocks) {
		return
	}
	b := &u.Blocks[i]
	b.All++
	if forLC && len(b.Left) < leftMost && i < leftBlocks {
		b.Left = append(b.Left, us)
	}
	low, high := float64(min(lim.Old, lim.New)), float64(max(lim.Old, lim.New))
	if us < 0.98*high {
		b.Short++
		if us < 0.98*low {
			b.Below++
		}
	} else if us <= 1.05*high+250 {
		b.At++
		if m.contested(p, t.Start) {
			b.Held++
		}
	} else if us <= 2*high {
		b.Near++
	}
}

// contested tells whether a process other than p is known to wait since before an
// instant: it was taken off with work left, and has had no turn since.
func (m *Meter) contested(p Proc, at sched.Time) bool {
	for q, since := range m.forced {
		if q != p && since > 0 && since <= at && m.ends[q] == since {
			return true
		}
	}
	return false
}

func (m *Meter) use(p Proc) *Use {
	u := m.cur.Uses[p]
	if u == nil {
		u = &Use{}
		m.cur.Uses[p] = u
	}
	return u
}

// note remembers when a process was last on the engine, and whether it was taken
// off with work left.
func (m *Meter) note(t sched.Turn, p Proc) {
	m.ends[p], m.forced[p] = t.End, 0
	if t.Clean && (t.EndedBy == sched.EndTimeslice || t.EndedBy == sched.EndPreempt) {
		m.forced[p] = t.End
	}
}

// otherThan is when another process than p was last on the engine.
func (m *Meter) otherThan(p Proc) (at sched.Time) {
	for q, t := range m.ends {
		if q != p {
			at = max(at, t)
		}
	}
	return at
}

// Waiting are the processes that have waited for longer than a bound, and how
// long: they were taken off with work left, and have had no turn since, as far
// as the trace was read.
func (m *Meter) Waiting(bound time.Duration) map[Proc]time.Duration {
	out := map[Proc]time.Duration{}
	for p, since := range m.forced {
		if since > 0 && m.ends[p] == since && m.read.Sub(since) > bound && m.onNow != p {
			out[p] = m.read.Sub(since)
		}
	}
	return out
}
