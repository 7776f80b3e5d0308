package ui

import (
	"slices"
	"time"

	"tsgtop/internal/sched"
)

// The lane's spans.
const (
	laneDefault = 100 * time.Millisecond
	laneFrozen  = 10 * time.Second // what is kept to pan in while paused
	laneLookFor = time.Second      // how far back a turn of the selected TSG is looked for
	laneLabel   = 15               // cells left of the lane, the edge included
)

var laneSpans = []time.Duration{
	10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond,
	500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second,
}

// What a cell of the lane can show besides a context.
const (
	cellNobody int16 = -1 // nobody was resident
	cellGap    int16 = -2 // trace records are missing
	cellBlank  int16 = -3 // the trace was not read there
)

// laneRow is one runlist's lane, as it is drawn.
type laneRow struct {
	gpu, runlist int
	from, to     sched.Time
	cells        []int16 // slot of the context that was on longest, or a cell* constant
	marks        []int   // cells in which a command was issued
	locked       bool
}

// lane is the drawing of the hardware's trace over the table. Like an
// oscilloscope's trigger it begins at the start of a turn of the selected TSG:
// the picture then stands still while the schedule repeats itself.
type lane struct {
	span   time.Duration
	widest time.Duration // that the width allows, where the operator chose none
	chosen bool          // the span is the operator's
	rows   []laneRow
	slots  slotTable
	frozen []sched.Lane // while paused
	panTo  sched.Time   // right edge while panned; 0: not panned
}

func newLane(span time.Duration) lane {
	if span <= 0 {
		return lane{span: laneDefault}
	}
	return lane{span: min(max(span, laneSpans[0]), laneSpans[len(laneSpans)-1]), chosen: true}
}

// resize gives a narrow terminal a shorter span, unless the operator chose
// one: a cell should stay shorter than the shortest usual timeslice's turn.
func (l *lane) resize(width int) {
	if l.chosen {
		return
	}
	l.widest = laneDefault
	if width-laneLabel < 90 {
		l.widest = laneDefault / 2
	}
	l.span = l.widest
}

// adapt gives a lane of which a good part of the turns is shorter than a cell a
// shorter span, and back, unless the operator chose one: turns that are shorter
// than a cell fall out of the picture, and it cannot be held still.
func (l *lane) adapt(turns []sched.Turn, cells int) {
	if l.chosen || len(turns) < 8 {
		return
	}
	ds := make([]sched.Time, len(turns))
	several := time.Duration(0) // the mean length of 8 turns
	for i := range turns {
		ds[i] = turns[i].End - turns[i].Start
		several += 8 * time.Duration(ds[i]) / time.Duration(len(turns))
	}
	slices.Sort(ds)
	fits := func(span time.Duration, margin sched.Time) bool {
		return sched.Time(span)/sched.Time(cells)*margin <= ds[len(ds)/4]*2
	}
	i, _ := slices.BinarySearch(laneSpans, l.span)
	for i > 0 && !fits(laneSpans[i], 2) && laneSpans[i-1] >= several {
		i--
	}
	// Longer again only where there is room to spare, so that it does not go to and fro.
	for i+1 < len(laneSpans) && laneSpans[i+1] <= l.widest && (fits(laneSpans[i+1], 3) || laneSpans[i] < several) {
		i++
	}
	l.span = laneSpans[i]
}

// wants is how much of the trace a snapshot has to bring.
func (l *lane) wants() time.Duration {
	if l.span >= time.Second {
		return l.span
	}
	return l.span + laneLookFor
}

func (l *lane) zoom(by int) {
	i, found := slices.BinarySearch(laneSpans, l.span)
	if !found && by > 0 {
		i-- // the next longer one is at i
	}
	l.chosen = true
	l.span = laneSpans[min(max(i+by, 0), len(laneSpans)-1)]
}

// pan moves the right edge of the paused lane by a quarter of its span.
func (l *lane) pan(by int) {
	if len(l.frozen) == 0 {
		return
	}
	first, last := l.frozen[0].From, l.frozen[0].To
	to := l.panTo
	if to == 0 {
		to = last
	}
	to = to.Add(time.Duration(by) * l.span / 4)
	l.panTo = min(max(to, first.Add(l.span)), last)
}

// draw makes the lane's rows: of the GPU that the selection is on, the
// selected TSG's runlist first, then others on which something switched.
func (l *lane) draw(c *Common, selected uint64, gpu, most int) {
	l.rows = l.rows[:0]
	snap := c.live
	if snap == nil {
		return
	}
	from := snap.Lanes
	if c.paused && len(l.frozen) > 0 {
		from = l.frozen
	}
	l.slots.update(snap)
	mine := c.tsg(selected)
	var chosen []*sched.Lane
	for i := range from {
		ln := &from[i]
		if ln.GPU != gpu {
			continue
		}
		isMine := mine != nil && mine.ID.Runlist == ln.Runlist && mine.ID.GPU == ln.GPU
		if !isMine && len(ln.Turns) == 0 && len(chosen) > 0 {
			continue
		}
		if isMine {
			chosen = slices.Insert(chosen, 0, ln)
		} else {
			chosen = append(chosen, ln)
		}
	}
	if len(chosen) > 1 && len(chosen[0].Turns) == 0 && (mine == nil || mine.ID.Runlist != chosen[0].Runlist) {
		chosen = chosen[1:]
	}
	if len(chosen) > 0 {
		l.adapt(chosen[0].Turns, max(c.width-laneLabel-1, 1))
	}
	for _, ln := range chosen[:min(len(chosen), most)] {
		l.rows = append(l.rows, l.row(c, ln, selected))
	}
}

func (l *lane) row(c *Common, ln *sched.Lane, selected uint64) laneRow {
	n := max(c.width-laneLabel-1, 1)
	r := laneRow{gpu: ln.GPU, runlist: ln.Runlist}
	end := ln.To
	if l.panTo != 0 {
		end = l.panTo
	}
	cell := sched.Time(max(int64(l.span)/int64(n), 1))
	start, locked := trigger(ln.Turns, selected, end, l.span, cell)
	if !locked {
		start, locked = trigger(ln.Turns, l.steadiest(ln.Turns, cell), end, l.span, cell)
	}
	if !locked {
		// Whole cells, so that the picture moves by cells and does not shimmer.
		start = (end - sched.Time(l.span)) / cell * cell
	}
	r.from, r.to, r.locked = start, start+cell*sched.Time(n), locked
	r.cells = l.fill(ln, r.from, cell, n)
	for i := range c.live.Commands {
		cmd := &c.live.Commands[i]
		if cmd.Issued >= r.from && cmd.Issued < r.to && cmd.Target.GPU == ln.GPU && cmd.Target.Runlist == ln.Runlist {
			r.marks = append(r.marks, int((cmd.Issued-r.from)/cell))
		}
	}
	return r
}

// steadiest is whose turns a lane is locked to that the selected TSG is not in,
// or only for shorter than a cell: of those with longer ones, who was there
// first. 0: nobody.
func (l *lane) steadiest(turns []sched.Turn, shortest sched.Time) (gen uint64) {
	least := int16(-1)
	for i := range turns {
		if turns[i].End-turns[i].Start < shortest {
			continue
		}
		if slot, ok := l.slots.has(turns[i].Gen); ok && (least < 0 || slot < least) {
			least, gen = slot, turns[i].Gen
		}
	}
	return gen
}

// trigger finds the last start of a turn of the selected TSG that has a full
// span after it. Turns much shorter than a cell cannot hold a picture still.
func trigger(turns []sched.Turn, selected uint64, end sched.Time, span time.Duration, shortest sched.Time) (sched.Time, bool) {
	latest := end - sched.Time(span)
	for i := len(turns) - 1; i >= 0; i-- {
		t := &turns[i]
		if t.Gen == selected && t.Start <= latest {
			return t.Start, t.End-t.Start >= shortest
		}
	}
	return 0, false
}

// fill gives each cell to who was on longest in it.
func (l *lane) fill(ln *sched.Lane, from, cell sched.Time, n int) []int16 {
	cells := make([]int16, n)
	turns := ln.Turns
	i, _ := slices.BinarySearchFunc(turns, from, func(t sched.Turn, at sched.Time) int {
		if t.End <= at {
			return -1
		}
		return 1
	})
	var owners []held
	for k := range cells {
		a := from + cell*sched.Time(k)
		b := a + cell
		switch {
		case b <= ln.From || a >= ln.To:
			cells[k] = cellBlank
			continue
		}
		owners = owners[:0]
		nobody := cell
		for j := i; j < len(turns) && turns[j].Start < b; j++ {
			t := &turns[j]
			d := min(t.End, b) - max(t.Start, a)
			if d <= 0 {
				continue
			}
			nobody -= d
			owners = addHeld(owners, l.slots.slot(t.Gen), d)
			if t.End <= b {
				i = j + 1
			}
		}
		cells[k] = cellNobody
		most := max(nobody, 0)
		for _, o := range owners {
			if o.for_ > most {
				most, cells[k] = o.for_, o.slot
			}
		}
	}
	for _, g := range ln.Gaps {
		if k := (g - from) / cell; g >= from && int(k) < n {
			cells[k] = cellGap
		}
	}
	return cells
}

type held struct {
	slot int16
	for_ sched.Time
}

func addHeld(hs []held, slot int16, d sched.Time) []held {
	for i := range hs {
		if hs[i].slot == slot {
			hs[i].for_ += d
			return hs
		}
	}
	return append(hs, held{slot, d})
}

// lines draws the lane's rows.
func (l *lane) lines(c *Common) []string {
	out := make([]string, 0, len(l.rows))
	for i := range l.rows {
		r := &l.rows[i]
		ln := c.line()
		name := runlistName(c.gpu(r.gpu), r.runlist)
		if name == "" {
			name = "rl" + idText(r.runlist)
		}
		label := name + " " + span(l.span)
		if l.panTo != 0 {
			label = name + " -" + c.brief(float64(c.live.Time.Sub(r.to).Microseconds()))
		}
		ln.put(rolePlain, " ").left(roleDim, label, laneLabel-2).put(roleBorder, c.signs.edge)
		for k, slot := range r.cells {
			if slices.Contains(r.marks, k) {
				ln.put(roleStrong, c.signs.mark)
				continue
			}
			sign, ro := c.laneSign(slot)
			ln.put(ro, sign)
		}
		out = append(out, ln.String())
	}
	return out
}

func (c *Common) laneSign(slot int16) (string, role) {
	switch {
	case slot >= 0:
		return c.signs.fills[int(slot)%len(c.signs.fills)], roleLane + role(int(slot)%c.style.lanes)
	case slot == cellGap:
		return c.signs.gap, roleBad
	case slot == cellBlank:
		return c.signs.dot, roleDim
	default:
		return c.signs.nobody, rolePlain
	}
}

// slotTable gives each context that has turns a slot, which is a colour and a
// sign, and lets it keep it as long as the TSG is there.
type slotTable struct {
	of   map[uint64]int16
	used []bool
}

func (s *slotTable) update(snap *sched.Snapshot) {
	if s.of == nil {
		s.of = map[uint64]int16{}
	}
	seen := make(map[uint64]bool, len(snap.TSGs))
	for i := range snap.TSGs {
		t := &snap.TSGs[i]
		seen[t.Gen] = true
		if t.Score[sched.WindowAll].Turns > 0 || t.Resident {
			s.slot(t.Gen)
		}
	}
	for gen, slot := range s.of {
		if !seen[gen] {
			delete(s.of, gen)
			s.used[slot] = false
		}
	}
}

func (s *slotTable) slot(gen uint64) int16 {
	if n, ok := s.of[gen]; ok {
		return n
	}
	if s.of == nil {
		s.of = map[uint64]int16{}
	}
	i := slices.Index(s.used, false)
	if i < 0 {
		i = len(s.used)
		s.used = append(s.used, false)
	}
	s.used[i] = true
	s.of[gen] = int16(i)
	return int16(i)
}

// has gives the slot of a TSG that was given one.
func (s *slotTable) has(gen uint64) (int16, bool) {
	n, ok := s.of[gen]
	return n, ok
}
