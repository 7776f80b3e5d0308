package ui

import (
	"cmp"
	"math"
	"path"
	"slices"
	"strconv"

	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
)

// column is one column of the table of TSGs. Its width never depends on what
// is in it, so that nothing moves from frame to frame; columns give way by
// rank when the terminal is narrow, those of the highest rank first.
type column struct {
	id, title string
	width     int // cells
	stretch   int // cells that it may grow by where there is room
	rank      int // 1 is the last to give way
	left      bool
	cell      func(*Common, *sched.TSGView) (string, role)
	text      func(*sched.TSGView) string // instead of cell: untrusted text
	group     func(*Common, *row) string  // of a group's TSGs together; nil: they have none
	compare   func(c *Common, a, b *sched.TSGView) int
	known     func(*Common, *sched.TSGView) bool // nil: always; unknown values come last
	highFirst bool                               // its natural direction
}

// allColumns in the order in which they stand. The tree column is the first
// and always there.
var allColumns = []column{
	{id: "pid", title: "PID", width: 7, rank: 1,
		cell: func(_ *Common, t *sched.TSGView) (string, role) {
			if t.Process.PID == 0 {
				return "", roleDim
			}
			return strconv.Itoa(t.Process.PID), rolePlain
		},
		compare: func(_ *Common, a, b *sched.TSGView) int { return cmp.Compare(a.Process.PID, b.Process.PID) }},
	{id: "process", title: "PROCESS", width: 10, stretch: 16, rank: 2, left: true, text: processName,
		compare: func(_ *Common, a, b *sched.TSGView) int { return cmp.Compare(processName(a), processName(b)) }},
	{id: "user", title: "USER", width: 8, stretch: 4, rank: 9, left: true,
		text: func(t *sched.TSGView) string { return userName(&t.Process) },
		compare: func(_ *Common, a, b *sched.TSGView) int {
			return cmp.Compare(userName(&a.Process), userName(&b.Process))
		}},
	{id: "unit", title: "UNIT", width: 12, stretch: 16, rank: 10, left: true,
		text:    func(t *sched.TSGView) string { return t.Process.Unit },
		compare: func(_ *Common, a, b *sched.TSGView) int { return cmp.Compare(a.Process.Unit, b.Process.Unit) }},
	{id: "engine", title: "ENGINE", width: 8, rank: 22, left: true,
		cell: func(_ *Common, t *sched.TSGView) (string, role) { return engineText(t.Engine), rolePlain },
		compare: func(_ *Common, a, b *sched.TSGView) int {
			return cmp.Compare(engineText(a.Engine), engineText(b.Engine))
		}},
	{id: "role", title: "ROLE", width: 4, rank: 8, left: true, cell: roleCell,
		compare: func(c *Common, a, b *sched.TSGView) int { return cmp.Compare(roleWord(c, a), roleWord(c, b)) },
		known:   func(c *Common, t *sched.TSGView) bool { return roleWord(c, t) != "" }},
	{id: "timeslice", title: "TIMESLICE", width: 9, rank: 4, highFirst: true, cell: timesliceCell,
		compare: func(_ *Common, a, b *sched.TSGView) int { return cmp.Compare(deref(a.Timeslice), deref(b.Timeslice)) },
		known:   func(_ *Common, t *sched.TSGView) bool { return t.Timeslice != nil }},
	{id: "interleave", title: "INTERL", width: 6, rank: 20, cell: interleaveCell,
		compare: func(_ *Common, a, b *sched.TSGView) int { return cmp.Compare(deref(a.Interleave), deref(b.Interleave)) },
		known:   func(_ *Common, t *sched.TSGView) bool { return t.Interleave != nil }},
	statColumn("residency", "RESIDENCY p50/p95", 17, 3, func(s *sched.Score) *sched.Stats { return s.Residency },
		func(c *Common, s *sched.Stats) string { return c.pair(s.P50, s.P95) },
		func(s *sched.Stats) float64 { return s.P50 }),
	{id: "share", title: "SHARE", width: 6, rank: 5, highFirst: true,
		group: func(c *Common, r *row) string { return c.orDash(r.share, percent) },
		cell: func(c *Common, t *sched.TSGView) (string, role) {
			if s := t.Score[c.window].Share; s != nil {
				return percent(*s), rolePlain
			}
			return "", roleDim
		},
		compare: func(c *Common, a, b *sched.TSGView) int {
			return cmp.Compare(deref(a.Score[c.window].Share), deref(b.Score[c.window].Share))
		},
		known: func(c *Common, t *sched.TSGView) bool { return t.Score[c.window].Share != nil }},
	{id: "turns", title: "TURNS/s", width: 7, rank: 7, highFirst: true,
		group: func(c *Common, r *row) string { return c.orDash(r.turns, rate) },
		cell: func(c *Common, t *sched.TSGView) (string, role) {
			if s := t.Score[c.window].TurnsPerS; s != nil {
				return rate(*s), rolePlain
			}
			return "", roleDim
		},
		compare: func(c *Common, a, b *sched.TSGView) int {
			return cmp.Compare(deref(a.Score[c.window].TurnsPerS), deref(b.Score[c.window].TurnsPerS))
		},
		known: func(c *Common, t *sched.TSGView) bool { return t.Score[c.window].TurnsPerS != nil }},
	statColumn("wait", "WAIT p95", 8, 6, func(s *sched.Score) *sched.Stats { return s.Wait },
		func(c *Common, s *sched.Stats) string { return c.brief(s.P95) },
		func(s *sched.Stats) float64 { return s.P95 }),
	statColumn("off", "OFF p95", 8, 21, func(s *sched.Score) *sched.Stats { return s.Off },
		func(c *Common, s *sched.Stats) string { return c.brief(s.P95) },
		func(s *sched.Stats) float64 { return s.P95 }),
	{id: "mem", title: "MEM", width: 6, rank: 12, highFirst: true,
		cell: func(_ *Common, t *sched.TSGView) (string, role) {
			if t.MemoryBytes == nil {
				return "", roleDim
			}
			return bytesText(*t.MemoryBytes), rolePlain
		},
		compare: func(_ *Common, a, b *sched.TSGView) int {
			return cmp.Compare(deref(a.MemoryBytes), deref(b.MemoryBytes))
		},
		known: func(_ *Common, t *sched.TSGView) bool { return t.MemoryBytes != nil }},
	{id: "channels", title: "CHANS", width: 5, rank: 23, highFirst: true,
		cell: func(_ *Common, t *sched.TSGView) (string, role) {
			if t.Context {
				return "", roleDim
			}
			return strconv.Itoa(len(t.Channels)), rolePlain
		},
		compare: func(_ *Common, a, b *sched.TSGView) int { return cmp.Compare(len(a.Channels), len(b.Channels)) }},
}

var defaultColumns = []string{"pid", "process", "user", "unit", "timeslice", "residency", "share", "turns", "wait", "mem"}

func statColumn(id, title string, width, rank int, of func(*sched.Score) *sched.Stats,
	show func(*Common, *sched.Stats) string, by func(*sched.Stats) float64) column {
	return column{id: id, title: title, width: width, rank: rank, highFirst: true,
		cell: func(c *Common, t *sched.TSGView) (string, role) {
			if s := of(&t.Score[c.window]); s != nil && s.N > 0 {
				return show(c, s), rolePlain
			}
			return "", roleDim
		},
		compare: func(c *Common, a, b *sched.TSGView) int {
			return cmp.Compare(by(of(&a.Score[c.window])), by(of(&b.Score[c.window])))
		},
		known: func(c *Common, t *sched.TSGView) bool {
			s := of(&t.Score[c.window])
			return s != nil && s.N > 0
		}}
}

// orDash shows a number, and a dash for one that is not known.
func (c *Common) orDash(v *float64, show func(float64) string) string {
	if v == nil || math.IsNaN(*v) {
		return c.signs.dash
	}
	return show(*v)
}

func columnByID(id string) (column, bool) {
	for _, set := range [][]column{allColumns, scoreColumns} {
		if i := slices.IndexFunc(set, func(c column) bool { return c.id == id }); i >= 0 {
			return set[i], true
		}
	}
	return column{}, false
}

// ColumnIDs names the columns that can be chosen and sorted by.
func ColumnIDs() []string {
	ids := make([]string, len(allColumns))
	for i, c := range allColumns {
		ids[i] = c.id
	}
	return ids
}

// layout chooses the columns that fit into width cells and gives each its
// width. Which ones and how wide depends on the width alone.
func layout(ids []string, width int) []column {
	var cols []column
	for _, id := range ids {
		if c, ok := columnByID(id); ok {
			cols = append(cols, c)
		}
	}
	total := 0
	for _, c := range cols {
		total += c.width + 1
	}
	for total > width && len(cols) > 0 {
		worst := 0
		for i, c := range cols {
			if c.rank > cols[worst].rank {
				worst = i
			}
		}
		total -= cols[worst].width + 1
		cols = slices.Delete(cols, worst, worst+1)
	}
	for room, grown := width-total, true; room > 0 && grown; {
		grown = false
		for i := range cols {
			if cols[i].stretch > 0 && room > 0 {
				cols[i].stretch--
				cols[i].width++
				room--
				grown = true
			}
		}
	}
	return cols
}

// processName is the executable's name, which a process cannot choose freely,
// or, where it is not known, the name that it gave itself. Untrusted.
func processName(t *sched.TSGView) string {
	if t.Process.Exe != "" {
		return path.Base(t.Process.Exe)
	}
	return t.Process.Comm
}

func userName(p *sched.Process) string {
	switch {
	case p.User != "":
		return p.User
	case p.UID != nil:
		return strconv.Itoa(*p.UID)
	default:
		return ""
	}
}

// timesliceCell puts a default, which nobody was seen to set, in parentheses:
// RM answers it for any TSG that was never touched, whatever the hardware does.
func timesliceCell(c *Common, t *sched.TSGView) (string, role) {
	if t.Timeslice == nil {
		return "", roleDim
	}
	s := c.micros(float64(*t.Timeslice))
	if t.TimesliceFrom == sched.FromDefault {
		return "(" + s + ")", roleDim
	}
	return s, rolePlain
}

func interleaveCell(_ *Common, t *sched.TSGView) (string, role) {
	if t.Interleave == nil {
		return "", roleDim
	}
	return levelName(uint64(*t.Interleave)), rolePlain
}

func engineText(e *uint32) string {
	if e == nil {
		return ""
	}
	return rm.EngineName(*e)
}

func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
