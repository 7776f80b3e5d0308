package ui

import (
	"fmt"
	"slices"

	"tsgtop/internal/sched"
)

// table is the list of TSGs of the tsgs and score screens: what is selected,
// what is in view, how it is arranged.
type table struct {
	*Common
	shape
	columns []string
	natural []string // as the screen begins

	rows    []row
	sel     rowID // sticks to the TSG, wherever it moves
	selName string
	index   int // of sel in rows
	offset  int // first row in view
	height  int // rows in view, as last drawn
}

// refresh makes the rows of the present snapshot and finds the selection.
func (t *table) refresh() {
	t.find()
	if v := t.selected(); v != nil {
		t.selName = fmt.Sprintf("TSG %s of pid %d", v.ID, v.Process.PID)
	}
}

func (t *table) find() {
	t.rows = t.Common.rows(&t.shape)
	if len(t.rows) == 0 {
		if t.rewound == 0 {
			t.index, t.offset = 0, 0
		}
		return
	}
	if t.sel == (rowID{}) {
		t.index = t.firstChoice()
		t.sel = t.rows[t.index].rowID
		return
	}
	if i := slices.IndexFunc(t.rows, func(r row) bool { return r.rowID == t.sel }); i >= 0 {
		t.index = i
		return
	}
	if t.rewound > 0 { // it may come yet
		t.index = min(t.index, len(t.rows)-1)
		return
	}
	// It ended, or was folded or filtered away: what stands there now.
	if t.sel.kind == rowTSG && t.tsg(t.sel.gen) == nil {
		t.say(roleWarn, t.selName+" ended; the selection moved on")
	}
	t.index = min(t.index, len(t.rows)-1)
	if !t.filter.empty() && t.rows[t.index].tsg == nil {
		t.index = t.firstChoice() // what was looked for, not the line over it
	}
	t.sel = t.rows[t.index].rowID
}

// firstChoice is the first TSG that competes, else the first TSG.
func (t *table) firstChoice() int {
	first := -1
	for i, r := range t.rows {
		if r.tsg == nil {
			continue
		}
		if first < 0 {
			first = i
		}
		if r.tsg.Score[sched.Window1s].Turns > 0 {
			return i
		}
	}
	return max(first, 0)
}

// selected is the TSG that is selected; nil on another row or none.
func (t *table) selected() *sched.TSGView {
	if t.index < len(t.rows) {
		return t.rows[t.index].tsg
	}
	return nil
}

// gpu is the GPU that is looked at: the selection's.
func (t *table) gpu() int {
	if t.index < len(t.rows) {
		r := &t.rows[t.index]
		switch {
		case r.tsg != nil:
			return r.tsg.ID.GPU
		case r.kind == rowGPU || r.kind == rowRunlist:
			return r.rowID.gpu
		}
	}
	if t.onGPU != sched.Unknown {
		return t.onGPU
	}
	if t.snap != nil && len(t.snap.GPUs) > 0 {
		return t.snap.GPUs[0].Index
	}
	return sched.Unknown
}

func (t *table) move(by int) { t.moveTo(t.index + by) }

func (t *table) moveTo(i int) {
	if len(t.rows) == 0 {
		return
	}
	t.index = min(max(i, 0), len(t.rows)-1)
	t.sel = t.rows[t.index].rowID
}

// act does what a key means for any table; false: the key is not for it.
func (t *table) act(a action) bool {
	switch a {
	case actUp:
		t.move(-1)
	case actDown:
		t.move(1)
	case actPageUp:
		t.move(-max(t.height-1, 1))
	case actPageDown:
		t.move(max(t.height-1, 1))
	case actTop:
		t.moveTo(0)
	case actBottom:
		t.moveTo(len(t.rows) - 1)
	case actSort:
		t.nextSort()
	case actReverse:
		t.desc = !t.desc
		t.say(roleDim, "sorted by "+t.sortWords())
	case actFlat:
		t.flat = !t.flat
		t.group = byNothing
		t.say(roleDim, map[bool]string{true: "flat list", false: "tree"}[t.flat])
	case actGroup:
		t.group = (t.group + 1) % numGroupings
		if t.group == byNothing {
			t.say(roleDim, "not grouped")
		} else {
			t.say(roleDim, "grouped by "+groupNames[t.group])
		}
	case actFold:
		t.fold()
	default:
		return false
	}
	t.refresh()
	return true
}

// fold opens or folds the selected node, or the one that the selected TSG is in.
func (t *table) fold() {
	i := t.index
	for i >= 0 && i < len(t.rows) && t.rows[i].kind == rowTSG {
		i--
	}
	if i < 0 || i >= len(t.rows) {
		return
	}
	if t.folds == nil {
		t.folds = map[rowID]bool{}
	}
	t.folds[t.rows[i].rowID] = !t.rows[i].folded
	t.sel = t.rows[i].rowID
}

func (t *table) nextSort() {
	ids := []string{""}
	for _, c := range layout(t.columns, t.Common.width-t.treeWidth()) {
		ids = append(ids, c.id)
	}
	at := slices.Index(ids, t.sort)
	t.sort = ids[(at+1)%len(ids)]
	t.desc = false
	if c, ok := columnByID(t.sort); ok {
		t.desc = c.highFirst
	}
	t.say(roleDim, "sorted by "+t.sortWords())
}

func (t *table) sortWords() string {
	c, ok := columnByID(t.sort)
	if !ok {
		return "runlist and TSG"
	}
	if t.desc {
		return c.title + ", highest first"
	}
	return c.title + ", lowest first"
}

// treeWidth is the width of the first column: runlist and TSG.
func (t *table) treeWidth() int {
	w := 12
	if t.Common.width >= 100 {
		w = 19
	}
	if t.flat || t.group != byNothing {
		w = max(w, 14)
	}
	return w
}

// lines draws headings and rows, height lines in all.
func (t *table) lines(height int, slots *slotTable) []string {
	if height <= 0 {
		return nil
	}
	tree := t.treeWidth()
	cols := layout(t.columns, t.Common.width-1-tree) // a cell of margin, as at the left
	out := append(make([]string, 0, height), t.heading(tree, cols))
	t.height = height - 1
	if len(t.rows) == 0 {
		for _, s := range t.whyEmpty() {
			if len(out) < height {
				out = append(out, t.line().put(rolePlain, " ").cut(roleDim, t.own(s), t.Common.width-2).String())
			}
		}
	}
	t.scroll()
	for i := t.offset; i < len(t.rows) && len(out) < height; i++ {
		r := &t.rows[i]
		if r.tsg != nil {
			out = append(out, t.tsgLine(r, tree, cols, slots, i == t.index))
		} else {
			out = append(out, t.nodeLine(r, tree, cols, i == t.index))
		}
	}
	blank := t.line().String()
	for len(out) < height {
		out = append(out, blank)
	}
	return out
}

// scroll keeps the selection in view, and its node's row with it at the top.
func (t *table) scroll() {
	if t.height <= 0 {
		return
	}
	if t.index < t.offset {
		t.offset = t.index
	}
	if t.index >= t.offset+t.height {
		t.offset = t.index - t.height + 1
	}
	t.offset = max(min(t.offset, len(t.rows)-t.height), 0)
}

func (t *table) heading(tree int, cols []column) string {
	l := t.line()
	title := "RUNLIST/TSG"
	if t.flat || t.group != byNothing {
		title = "GPU:RL:TSG"
	}
	l.left(roleHead, " "+title, tree)
	for _, c := range cols {
		ro, title, sep := roleHead, c.title, " "
		if c.id == t.sort {
			ro = roleAccent
			sign := t.signs.up
			if t.desc {
				sign = t.signs.down
			}
			switch { // beside the title, where there is room
			case cellCount(title) >= c.width:
				sep = sign
			case c.left:
				title += sign
			default:
				title = sign + title
			}
		}
		l.put(roleAccent, sep)
		if c.left {
			l.left(ro, title, c.width)
		} else {
			l.right(ro, title, c.width)
		}
	}
	return l.String()
}

func (t *table) tsgLine(r *row, tree int, cols []column, slots *slotTable, picked bool) string {
	l := t.line()
	l.picked = picked
	v := r.tsg
	if picked {
		l.put(roleAccent, t.signs.sel)
	} else {
		l.put(rolePlain, " ")
	}
	l.gap(r.depth)
	if slot, ok := slots.has(v.Gen); ok {
		sign, ro := t.laneSign(slot)
		l.put(ro, sign)
	} else {
		l.put(rolePlain, " ")
	}
	l.put(rolePlain, " ")
	plain := rolePlain
	if v.Process.Gone {
		plain = roleDim
	}
	switch {
	case v.Context:
		l.cut(roleDim, contextLabel(v), tree-l.w)
	case t.flat || t.group != byNothing:
		l.cut(plain, t.own(idText(v.ID.GPU)+":"+idText(v.ID.Runlist)+":"+idText(v.ID.TSG)), tree-l.w)
	default:
		l.left(plain, idText(v.ID.TSG), 4)
	}
	if v.Object.Handle != 0 && l.w+9 <= tree {
		l.put(rolePlain, " ").put(roleDim, v.Object.Handle.String())
	}
	l.to(tree)
	for i := range cols {
		t.cell(l, &cols[i], v, plain)
	}
	return l.String()
}

// contextLabel names a row that is known from the trace alone.
func contextLabel(v *sched.TSGView) string {
	for _, ch := range v.Channels {
		if ch.Context != nil {
			return fmt.Sprintf("ctx %x", *ch.Context)
		}
	}
	return "ctx ?"
}

func (t *table) cell(l *line, c *column, v *sched.TSGView, plain role) {
	l.put(rolePlain, " ")
	if c.text != nil {
		if s := c.text(v); s != "" {
			width := c.width
			if c.id == "process" && v.Process.Gone {
				l.put(plain, t.signs.gone)
				width--
			}
			l.fit(plain, s, width)
			return
		}
		l.left(roleDim, t.signs.dash, c.width)
		return
	}
	s, ro := c.cell(t.Common, v)
	if s == "" {
		s, ro = t.signs.dash, roleDim
	}
	if ro == rolePlain {
		ro = plain
	}
	if c.left {
		l.left(ro, s, c.width)
	} else {
		l.right(ro, s, c.width)
	}
}

// nodeLine draws a GPU, a runlist or a group.
func (t *table) nodeLine(r *row, tree int, cols []column, picked bool) string {
	l := t.line()
	l.picked = picked
	mark := " "
	if picked {
		mark = t.signs.sel
	}
	l.put(roleAccent, mark).gap(r.depth)
	sign := t.signs.open
	if r.folded {
		sign = t.signs.folded
	}
	l.put(roleAccent, sign+" ")
	// What a group's TSGs have together stands in its columns; its name has the
	// room before them.
	from := t.Common.width
	x := tree
	for i := range cols {
		if r.kind == rowGroup && cols[i].group != nil {
			from = min(from, x)
		}
		x += cols[i].width + 1
	}
	tail := "  " + plural(r.count, "TSG")
	room := max(min(from, t.Common.width)-l.w-cellCount(tail), 4)
	if r.kind == rowGroup {
		l.cut(roleTitle, r.name, room)
	} else {
		l.cut(roleTitle, r.label, room)
	}
	if l.w+cellCount(tail) <= from {
		l.put(roleDim, tail)
	}
	if r.kind == rowGroup && from < t.Common.width {
		x = tree
		for i := range cols {
			if cols[i].group != nil {
				s, ro := cols[i].group(t.Common, r), roleStrong
				if s == t.signs.dash {
					ro = roleDim
				}
				l.to(x + 1)
				l.right(ro, s, cols[i].width)
			}
			x += cols[i].width + 1
		}
	}
	return l.String()
}

// whyEmpty says why no row is there.
func (t *table) whyEmpty() []string {
	switch {
	case t.snap == nil:
		return []string{"waiting for the first events"}
	case !t.filter.empty() && len(t.snap.TSGs) > 0:
		return []string{fmt.Sprintf("none of %s matches the filter; esc clears it", plural(len(t.snap.TSGs), "TSG"))}
	}
	out := []string{"no TSG is known: no process has one, or it could not be seen"}
	for _, p := range t.snap.Probes {
		if p.State != sched.ProbeOK && p.Why != "" {
			out = append(out, p.Probe+": "+p.Why)
		}
	}
	return append(out, t.snap.Source.Notes...)
}
