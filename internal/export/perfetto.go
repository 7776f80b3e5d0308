package export

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
)

// Perfetto writes a trace for ui.perfetto.dev and trace_processor: for each
// runlist a track with a slice for each turn, for each GPU and each TSG
// counters (a value holds until the next; where it becomes unknown an instant
// says so and why), and instants for commands with their lamps, for Xids and
// for gaps in the hardware's trace. Its clock is CLOCK_REALTIME.
func Perfetto(ctx context.Context, src Source, gpus map[int]bool, from sched.Time, w io.Writer) error {
	p := newPerfetto(w)
	err := Walk(ctx, src, gpus, from, p)
	if ferr := p.finish(); ferr != nil {
		return fmt.Errorf("export perfetto: %w", ferr)
	}
	return err
}

// Bounds of what the writer remembers. What is forgotten is written again.
const (
	maxTracks   = 1 << 13
	maxNames    = 1 << 12
	maxPending  = 256
	sequence    = 1 // there is one sequence of packets
	rankRunlist = 0
	rankCounter = 100
)

type perfetto struct {
	w        *bufio.Writer
	first    bool // a packet has been written
	began    bool
	cleared  bool // the next packet says that interned names begin anew
	names    interner
	labels   interner // names of annotations
	tracks   map[uint64]uint64
	unknown  map[uint64]bool // counters whose last value no longer holds
	pending  map[string]*sched.Command
	order    []string // of pending
	gpuNames map[int]string
	now      sched.Time

	out, packet, event, part, interned message
	newNames                           message
}

func newPerfetto(w io.Writer) *perfetto {
	return &perfetto{w: bufio.NewWriterSize(w, 256<<10), cleared: true,
		names: interner{field: fEventNames}, labels: interner{field: fDebugNames},
		tracks: map[uint64]uint64{}, unknown: map[uint64]bool{}, pending: map[string]*sched.Command{}, gpuNames: map[int]string{}}
}

// interner gives names small numbers that mean the same until it is cleared.
type interner struct {
	field protowire.Number
	ids   map[string]uint64
	next  uint64 // never given twice, also not after clearing
}

// id gives the name's number, and adds the name to d where it is new.
func (n *interner) id(name string, d *message) uint64 {
	if id, ok := n.ids[name]; ok {
		return id
	}
	if n.ids == nil {
		n.ids = map[string]uint64{}
	}
	n.next++
	n.ids[name] = n.next
	var entry message
	entry.uint(fIID, n.next).string(fIName, name)
	d.sub(n.field, &entry)
	return n.next
}

// The categories, interned with these numbers.
const (
	catTurn = iota + 1
	catCommand
	catXid
	catTrace
)

var categories = []string{catTurn: "turn", catCommand: "command", catXid: "xid", catTrace: "trace"}

// begin writes what a trace begins with, at the first instant that is known.
func (p *perfetto) begin(at sched.Time) error {
	if p.began {
		return nil
	}
	p.began = true
	return p.clocks(at, 0, 0)
}

// clocks writes one reading of the clocks; 0: not read.
func (p *perfetto) clocks(real sched.Time, mono, raw int64) error {
	var snap, c message
	for _, k := range []struct{ id, at uint64 }{{clockRealtime, uint64(real)}, {clockMono, uint64(mono)}, {clockMonoRaw, uint64(raw)}} {
		if k.at != 0 {
			snap.sub(fClocks, c.reset().uint(fClockID, k.id).uint(fClockTime, k.at))
		}
	}
	snap.uint(fPrimaryClock, clockRealtime)
	return p.write(p.packet.reset().sub(fClockSnapshot, &snap))
}

// write writes one packet of the sequence.
func (p *perfetto) write(m *message) error {
	m.uint(fSequenceID, sequence)
	if !p.first {
		p.first = true
		m.bool(fFirstOnSequence, true)
	}
	p.out.reset().sub(fTracePacket, m)
	_, err := p.w.Write(p.out.b)
	return err
}

// send writes the event that was built in p.event, with names that are new.
func (p *perfetto) send(at sched.Time) error {
	flags := uint64(seqNeedsIncrementalState)
	m := p.packet.reset().uint(fTimestamp, uint64(max(at, 0))).uint(fTimestampClockID, clockRealtime)
	if p.cleared {
		flags |= seqIncrementalStateCleared
		for id, c := range categories {
			if c != "" {
				p.newNames.sub(fCategories, p.interned.reset().uint(fIID, uint64(id)).string(fIName, c))
			}
		}
		p.cleared = false
	}
	m.uint(fSequenceFlags, flags).sub(fTrackEvent, &p.event)
	if len(p.newNames.b) > 0 {
		m.sub(fInternedData, &p.newNames)
		p.newNames.reset()
	}
	if err := p.write(m); err != nil {
		return err
	}
	if len(p.names.ids) >= maxNames {
		clear(p.names.ids)
		clear(p.labels.ids)
		p.cleared = true
	}
	return nil
}

// open begins an event.
func (p *perfetto) open(kind uint64, track uint64) *message {
	return p.event.reset().uint(fType, kind).uint(fEventTrack, track)
}

func (p *perfetto) name(category uint64, name string) {
	p.event.uint(fCategoryIIDs, category).uint(fNameIID, p.names.id(name, &p.newNames))
}

// note adds an annotation. Empty text says nothing.
func (p *perfetto) note(name string, v any) {
	a := p.part.reset().uint(fDebugNameIID, p.labels.id(name, &p.newNames))
	switch v := v.(type) {
	case string:
		if v == "" {
			return
		}
		a.string(fDebugString, clean(v))
	case bool:
		a.bool(fDebugBool, v)
	case uint64:
		a.uint(fDebugUint, v)
	case int:
		a.int(fDebugInt, int64(v))
	case float64:
		a.double(fDebugDouble, v)
	default:
		return
	}
	p.event.sub(fDebug, a)
}

// uuid names a track by what it is of.
func uuid(format string, args ...any) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, format, args...)
	return h.Sum64() | 1
}

// track describes a track, unless it was described like this before.
func (p *perfetto) track(id, parent uint64, name string, more func(*message)) error {
	d := (&message{}).uint(fTrackUUID, id)
	if parent != 0 {
		d.uint(fTrackParent, parent)
	}
	if name != "" {
		d.string(fTrackName, name)
	}
	if more != nil {
		more(d)
	}
	h := fnv.New64a()
	h.Write(d.b)
	if sum := h.Sum64(); p.tracks[id] != sum {
		if len(p.tracks) >= maxTracks {
			clear(p.tracks)
		}
		p.tracks[id] = sum
		return p.write(p.packet.reset().sub(fTrackDescriptor, d))
	}
	return nil
}

func (p *perfetto) gpuTrack(gpu int) (uint64, error) {
	name := fmt.Sprintf("GPU%d", gpu)
	if gpu == sched.Unknown {
		name = "GPU not known"
	}
	if n := p.gpuNames[gpu]; n != "" {
		name += " " + n
	}
	id := uuid("gpu %d", gpu)
	return id, p.track(id, 0, name, func(d *message) { d.uint(fTrackOrder, trackOrderByRank) })
}

func (p *perfetto) laneTrack(l Lane) (uint64, error) {
	parent, err := p.gpuTrack(l.GPU)
	if err != nil {
		return 0, err
	}
	name := fmt.Sprintf("gr%d", l.N)
	if l.Runlist != sched.Unknown {
		name += fmt.Sprintf(" (runlist %d)", l.Runlist)
	}
	id := uuid("lane %d %d", l.GPU, l.N)
	return id, p.track(id, parent, name, func(d *message) { d.uint(fTrackRank, rankRunlist) })
}

func (p *perfetto) processTrack(r *Row) (uint64, error) {
	if r.PID <= 0 {
		return p.gpuTrack(r.ID.GPU)
	}
	id := uuid("process %d %d", r.PID, r.Start)
	return id, p.track(id, 0, "", func(d *message) {
		proc := (&message{}).uint(fProcessPID, uint64(r.PID)).string(fProcessName, r.Name)
		d.sub(fTrackProcess, proc)
	})
}

func (p *perfetto) counterTrack(id, parent uint64, name, unit string) error {
	return p.track(id, parent, name, func(d *message) {
		d.sub(fTrackCounter, (&message{}).string(fCounterUnitName, unit)).uint(fTrackRank, rankCounter)
	})
}

// label names a turn: the process and the TSG.
func label(r *Row) string {
	name := r.Name
	if name == "" {
		name = "unknown"
		if r.PID > 0 {
			name = fmt.Sprintf("pid %d", r.PID)
		}
	}
	if r.Context {
		return name + " (TSG not known)"
	}
	return name + " " + target(r.ID)
}

func target(id sched.TSGID) string {
	part := func(n int) string {
		if n == sched.Unknown {
			return "?"
		}
		return fmt.Sprint(n)
	}
	return part(id.GPU) + ":" + part(id.Runlist) + ":" + part(id.TSG)
}

// Turn implements Visitor.
func (p *perfetto) Turn(t Turn) error {
	if err := p.begin(t.Start); err != nil {
		return err
	}
	track, err := p.laneTrack(t.Lane)
	if err != nil {
		return err
	}
	if _, err := p.processTrack(t.Row); err != nil {
		return err
	}
	p.now = max(p.now, t.End)
	p.open(typeSliceBegin, track)
	p.name(catTurn, label(t.Row))
	if t.Row.PID > 0 {
		p.note("pid", t.Row.PID)
	}
	p.note("unit", t.Row.Unit)
	p.note("context", uint64(t.Context))
	p.note("ended by", endedBy(t.EndedBy))
	if !t.Clean {
		p.note("clean", false)
	}
	if err := p.send(t.Start); err != nil {
		return err
	}
	p.open(typeSliceEnd, track)
	return p.send(t.End)
}

// Gap implements Visitor.
func (p *perfetto) Gap(l Lane, at sched.Time) error {
	if err := p.begin(at); err != nil {
		return err
	}
	track, err := p.laneTrack(l)
	if err != nil {
		return err
	}
	p.open(typeInstant, track)
	p.name(catTrace, "trace records missing before this")
	return p.send(at)
}

// Xid implements Visitor.
func (p *perfetto) Xid(x *sched.Xid) error {
	if err := p.begin(x.Time); err != nil {
		return err
	}
	track, err := p.gpuTrack(x.GPU)
	if err != nil {
		return err
	}
	p.open(typeInstant, track)
	name := fmt.Sprintf("Xid %d", x.Code)
	if n := rm.XidName(x.Code); n != "" {
		name += " " + n
	}
	p.name(catXid, name)
	p.note("code", uint64(x.Code))
	if x.PID > 0 {
		p.note("pid", x.PID)
	}
	p.note("process", x.Name)
	p.note("text", x.Text)
	p.note("from", x.From)
	return p.send(x.Time)
}

// Tie implements Visitor: it lets the trace be laid beside others.
func (p *perfetto) Tie(c *sched.ClockTie) error {
	if c.Time <= 0 || c.Monotonic <= 0 {
		return nil
	}
	p.began = true
	return p.clocks(c.Time, c.Monotonic, max(c.Raw, 0))
}

// Tick implements Visitor.
func (p *perfetto) Tick(s *sched.Snapshot) error {
	if s.Time <= 0 {
		return nil
	}
	if err := p.begin(s.Time); err != nil {
		return err
	}
	for i := range s.GPUs {
		g := &s.GPUs[i]
		p.gpuNames[g.Index] = clean(g.Name)
		track, err := p.gpuTrack(g.Index)
		if err != nil {
			return err
		}
		why := cmp.Or(g.TraceWhy, "nothing competed in the last second")
		if err := p.counter(s.Time, track, "switch tax", "%", scaled(g.SwitchTax[sched.Window1s], 100), why); err != nil {
			return err
		}
		if err := p.counter(s.Time, track, "switches/s", "1/s", g.SwitchesPerS, why); err != nil {
			return err
		}
	}
	for i := range s.TSGs {
		t := &s.TSGs[i]
		sc := &t.Score[sched.Window1s]
		r := rowOf(t)
		track, err := p.processTrack(r)
		if err != nil {
			return err
		}
		what := "share " + target(r.ID)
		if t.Context && len(t.Channels) > 0 && t.Channels[0].Context != nil {
			what = fmt.Sprintf("share context 0x%x", *t.Channels[0].Context)
		}
		if err := p.counter(s.Time, track, what, "%", scaled(sc.Share, 100), cmp.Or(sc.WhyNull, t.WhyNull)); err != nil {
			return err
		}
	}
	return nil
}

func scaled(v *float64, by float64) *float64 {
	if v == nil {
		return nil
	}
	return sched.Ptr(*v * by)
}

// counter writes a value, or, where a value was known before, that it is not
// known any more and why. What was never known has no track.
func (p *perfetto) counter(at sched.Time, parent uint64, name, unit string, v *float64, why string) error {
	id := uuid("counter %d %s", parent, name)
	lost, known := p.unknown[id]
	if len(p.unknown) >= maxTracks {
		clear(p.unknown)
	}
	if v == nil {
		if !known || lost {
			return nil
		}
		p.unknown[id] = true
		p.open(typeInstant, parent)
		p.name(catTrace, name+" is not known from here on")
		p.note("why", why)
		return p.send(at)
	}
	p.unknown[id] = false
	if err := p.counterTrack(id, parent, name, unit); err != nil {
		return err
	}
	p.open(typeCounter, id).double(fDoubleCounter, *v)
	return p.send(at)
}

// Command implements Visitor: a command is written once its lamps are final.
func (p *perfetto) Command(c *sched.Command) error {
	switch c.Step {
	case sched.StepJudged, sched.StepRefused, sched.StepUndone:
		delete(p.pending, c.ID)
		p.order = slices.DeleteFunc(p.order, func(id string) bool { return id == c.ID })
		return p.command(c)
	}
	if p.pending[c.ID] == nil {
		if len(p.order) >= maxPending {
			old := p.pending[p.order[0]]
			delete(p.pending, p.order[0])
			p.order = p.order[1:]
			if err := p.command(old); err != nil {
				return err
			}
		}
		p.order = append(p.order, c.ID)
	}
	p.pending[c.ID] = c
	return nil
}

func (p *perfetto) command(c *sched.Command) error {
	at, name := c.Issued, fmt.Sprintf("#%d %s %s", c.Number, clean(string(c.Op)), target(c.Target.TSGID))
	switch {
	case c.Step == sched.StepUndone:
		at, name = c.Time, name+" undone"
	case c.Step == sched.StepRefused:
		name += " refused"
	}
	at = cmp.Or(at, c.Asked, c.Time)
	if err := p.begin(at); err != nil {
		return err
	}
	track := uuid("commands")
	if err := p.track(track, 0, "commands", nil); err != nil {
		return err
	}
	p.open(typeInstant, track)
	p.name(catCommand, name)
	p.note("id", c.ID)
	p.note("step", string(c.Step))
	p.note("target", clean(c.Target.Exe))
	p.note("pid", c.Target.PID)
	for _, v := range []struct {
		name string
		v    *uint64
	}{{"old", c.Old}, {"new", c.New}} {
		if v.v != nil {
			p.note(v.name, *v.v)
		}
	}
	p.note("actuator", c.Actuator)
	for _, l := range []struct {
		name string
		lamp *sched.Lamp
	}{{"RAN", &c.Ran}, {"ACCEPTED", &c.Accepted.Lamp}, {"CHANGED", &c.Changed.Lamp}} {
		p.note(l.name, string(l.lamp.State))
		p.note(l.name+" why", l.lamp.Why)
	}
	p.note("status", c.Accepted.Status)
	p.note("where", c.Accepted.Where)
	p.note("evidence", c.Changed.Evidence)
	p.note("why", c.Why)
	return p.send(at)
}

// finish writes commands whose lamps never came to rest, and all that is buffered.
func (p *perfetto) finish() error {
	for _, id := range slices.Sorted(maps.Keys(p.pending)) {
		if err := p.command(p.pending[id]); err != nil {
			return err
		}
	}
	return p.w.Flush()
}
