package ui

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"tsgtop/internal/sched"
)

// rowKind is what a row of the table stands for.
type rowKind uint8

const (
	rowTSG rowKind = iota
	rowRunlist
	rowGPU
	rowGroup
)

// rowID names a row from frame to frame. The TSG's generation, not its number
// or its handle, which are reused.
type rowID struct {
	kind         rowKind
	gpu, runlist int
	group        string
	gen          uint64
}

// row is one row of the table.
type row struct {
	rowID
	depth  int
	tsg    *sched.TSGView
	label  string           // of a row that is no TSG: our own words
	name   string           // of a group: untrusted
	count  int              // TSGs under it
	of     []*sched.TSGView // them, where it is a group
	sum    *sched.Score     // what a group has together, where the snapshot says it
	share  *float64
	turns  *float64
	folded bool
}

// groupBy is how TSGs are gathered.
type groupBy uint8

const (
	byNothing groupBy = iota
	byProcess
	byUser
	byUnit
	numGroupings
)

var groupNames = [numGroupings]string{"", "process", "user", "unit"}

// shape is how the table is arranged.
type shape struct {
	sort  string // column id; empty: as the hardware counts
	desc  bool
	flat  bool
	group groupBy
	folds map[rowID]bool // what the operator opened or folded; others: foldedAtFirst
}

// rows makes the table's rows of the snapshot that is shown.
func (c *Common) rows(s *shape) []row {
	if c.snap == nil {
		return nil
	}
	var ts []*sched.TSGView
	for i := range c.snap.TSGs {
		t := &c.snap.TSGs[i]
		if c.shown(t.ID.GPU) && (c.filter.empty() || c.filter.matches(t)) {
			ts = append(ts, t)
		}
	}
	if s.group != byNothing {
		return c.groupRows(s, ts)
	}
	if s.flat {
		c.sortTSGs(s, ts)
		out := make([]row, 0, len(ts))
		for _, t := range ts {
			out = append(out, tsgRow(t, 0))
		}
		return out
	}
	return c.treeRows(s, ts)
}

func tsgRow(t *sched.TSGView, depth int) row {
	return row{rowID: rowID{kind: rowTSG, gen: t.Gen}, depth: depth, tsg: t}
}

func (c *Common) treeRows(s *shape, ts []*sched.TSGView) []row {
	slices.SortStableFunc(ts, func(a, b *sched.TSGView) int {
		return cmp.Or(cmp.Compare(a.ID.GPU, b.ID.GPU), compareRunlists(a.ID.Runlist, b.ID.Runlist))
	})
	several := len(c.snap.GPUs) > 1
	depth := 0
	if several {
		depth = 1
	}
	var out []row
	for i := 0; i < len(ts); {
		gpu := ts[i].ID.GPU
		end := i
		for end < len(ts) && ts[end].ID.GPU == gpu {
			end++
		}
		if several {
			id := rowID{kind: rowGPU, gpu: gpu}
			head := row{rowID: id, label: c.gpuLabel(gpu), count: end - i, folded: s.folded(c, id, ts[i:end])}
			out = append(out, head)
			if head.folded {
				i = end
				continue
			}
		}
		for i < end {
			runlist, from := ts[i].ID.Runlist, i
			for i < end && ts[i].ID.Runlist == runlist {
				i++
			}
			of := ts[from:i]
			id := rowID{kind: rowRunlist, gpu: gpu, runlist: runlist}
			head := row{rowID: id, depth: depth, label: c.runlistLabel(gpu, runlist), count: len(of), folded: s.folded(c, id, of)}
			out = append(out, head)
			if head.folded {
				continue
			}
			c.sortTSGs(s, of)
			for _, t := range of {
				out = append(out, tsgRow(t, depth+1))
			}
		}
	}
	return out
}

func compareRunlists(a, b int) int {
	if (a == sched.Unknown) != (b == sched.Unknown) {
		return -cmp.Compare(a, b) // what is not known comes last
	}
	return cmp.Compare(a, b)
}

func (c *Common) gpuLabel(gpu int) string {
	if gpu == sched.Unknown {
		return "GPU not known"
	}
	return "GPU" + strconv.Itoa(gpu)
}

func (c *Common) runlistLabel(gpu, runlist int) string {
	if runlist == sched.Unknown {
		return "runlist not known"
	}
	if name := runlistName(c.gpu(gpu), runlist); name != "" {
		return fmt.Sprintf("%s (runlist %d)", name, runlist)
	}
	return "runlist " + strconv.Itoa(runlist)
}

// folded tells whether a node is folded: as the operator left it, else a
// runlist of which the trace says nothing at all is, unless something is
// looked for.
func (s *shape) folded(c *Common, id rowID, of []*sched.TSGView) bool {
	if f, ok := s.folds[id]; ok {
		return f
	}
	if id.kind != rowRunlist || !c.filter.empty() || id.runlist == sched.Unknown {
		return false
	}
	for _, t := range of {
		if t.Score[sched.WindowAll].Turns > 0 || t.Resident || isGraphics(t.Engine) || t.Engine == nil && id.runlist == 0 {
			return false
		}
	}
	return true
}

// groupRows gathers TSGs by process, user or unit, with what they use together.
func (c *Common) groupRows(s *shape, ts []*sched.TSGView) []row {
	type group struct {
		head row
		of   []*sched.TSGView
	}
	var groups []*group
	byKey := map[string]*group{}
	for _, t := range ts {
		key, name := groupKey(s.group, t)
		g := byKey[key]
		if g == nil {
			g = &group{head: row{rowID: rowID{kind: rowGroup, group: key}, name: name}}
			byKey[key] = g
			groups = append(groups, g)
		}
		g.of = append(g.of, t)
	}
	sums := c.groupSums(s)
	for _, g := range groups {
		g.head.count, g.head.of = len(g.of), g.of
		if v := sums[g.head.group]; v != nil {
			g.head.sum = &v.Score[c.window]
		}
		for _, t := range g.of {
			g.head.share = plus(g.head.share, t.Score[c.window].Share)
			g.head.turns = plus(g.head.turns, t.Score[c.window].TurnsPerS)
		}
		g.head.folded = s.folds[g.head.rowID]
	}
	slices.SortStableFunc(groups, func(a, b *group) int {
		if s.sort == "turns" {
			return compareKnown(a.head.turns, b.head.turns, s.desc)
		}
		if s.sort == "share" || s.sort == "" {
			return cmp.Or(compareKnown(a.head.share, b.head.share, s.sort == "" || s.desc), cmp.Compare(a.head.group, b.head.group))
		}
		n := cmp.Compare(a.head.group, b.head.group)
		if s.desc {
			return -n
		}
		return n
	})
	var out []row
	for _, g := range groups {
		out = append(out, g.head)
		if g.head.folded {
			continue
		}
		c.sortTSGs(s, g.of)
		for _, t := range g.of {
			out = append(out, tsgRow(t, 1))
		}
	}
	return out
}

func groupKey(by groupBy, t *sched.TSGView) (key, name string) {
	p := &t.Process
	switch by {
	case byUser:
		if u := userName(p); u != "" {
			return u, u
		}
		return "", "user not known"
	case byUnit:
		if p.Unit != "" {
			return p.Unit, p.Unit
		}
		return "", "no unit"
	default:
		if p.PID == 0 {
			return "", "process not known"
		}
		return fmt.Sprintf("%08d/%d", p.PID, p.Start), strconv.Itoa(p.PID) + " " + processName(t)
	}
}

func plus(a, b *float64) *float64 {
	switch {
	case b == nil:
		return a
	case a == nil:
		return sched.Ptr(*b)
	default:
		return sched.Ptr(*a + *b)
	}
}

func compareKnown(a, b *float64, desc bool) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	case desc:
		return cmp.Compare(*b, *a)
	default:
		return cmp.Compare(*a, *b)
	}
}

// sortTSGs sorts by the chosen column; what is not known comes last, in either
// direction, and equals stay as the hardware counts them.
func (c *Common) sortTSGs(s *shape, ts []*sched.TSGView) {
	col, ok := columnByID(s.sort)
	if !ok {
		if s.sort == "tsg" {
			slices.SortStableFunc(ts, func(a, b *sched.TSGView) int {
				n := cmp.Or(cmp.Compare(a.ID.GPU, b.ID.GPU), cmp.Compare(a.ID.Runlist, b.ID.Runlist), cmp.Compare(a.ID.TSG, b.ID.TSG))
				if s.desc {
					return -n
				}
				return n
			})
		}
		return
	}
	slices.SortStableFunc(ts, func(a, b *sched.TSGView) int {
		if col.known != nil {
			ka, kb := col.known(c, a), col.known(c, b)
			switch {
			case !ka && !kb:
				return 0
			case !ka:
				return 1
			case !kb:
				return -1
			}
		}
		n := col.compare(c, a, b)
		if s.desc {
			return -n
		}
		return n
	})
}
