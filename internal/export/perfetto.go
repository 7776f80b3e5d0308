package export

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

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

// finish writes commands whose lamps never came to rest, and all that is buffered.
func (p *perfetto) finish() error {
	for _, id := range slices.Sorted(maps.Keys(p.pending)) {
		if err := p.command(p.pending[id]); err != nil {
			return err
		}
	}
	return p.w.Flush()
}
