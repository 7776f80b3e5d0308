package sched

import "time"

// Windows are made of buckets at fixed places on the clock: the 1 s window of
// the running bucket of 250 ms and the four before it (1.00 to 1.25 s), the 10 s
// window of the running second and the ten before it (10 to 11 s). Rates are
// taken over the span that a window really has.
const (
	quarter  = Time(250 * time.Millisecond)
	second   = Time(time.Second)
	quarters = 5
	seconds  = 11
	// shareSeconds is how far back the share per second is kept.
	shareSeconds = 301
)

// The quantities of a scorecard.
const (
	qResidency = iota
	qWait
	qOff
	numQuantities
)

// windowStart is where w begins when it ends at end; 0 for since start.
func windowStart(w Window, end Time) Time {
	switch w {
	case Window1s:
		return (end/quarter - (quarters - 1)) * quarter
	case Window10s:
		return (end/second - (seconds - 1)) * second
	}
	return 0
}

// tally is what is counted per bucket of time. A row of the tree counts turns
// and the competed time in which it was resident; an engine counts starts, all
// competed time, and what of that went into switching.
type tally struct {
	index    int64 // of the bucket on the clock
	turns    uint64
	competed int64 // ns
	switched int64 // ns
}

// ring is a scalar's buckets for all windows.
type ring struct {
	q   [quarters]tally
	s   [seconds]tally
	all tally
}

// slotAt finds the bucket i on the clock, taking over the place of an older one.
func slotAt(slots []tally, i int64) *tally {
	t := &slots[int(i%int64(len(slots)))]
	switch {
	case t.index == i:
		return t
	case t.index < i:
		*t = tally{index: i}
		return t
	}
	return nil // so old that its place is taken
}

// addTurn counts a turn (or a start) at t.
func (r *ring) addTurn(t Time) {
	r.all.turns++
	if b := slotAt(r.q[:], int64(t/quarter)); b != nil {
		b.turns++
	}
	if b := slotAt(r.s[:], int64(t/second)); b != nil {
		b.turns++
	}
}

// addSpan adds the time from a to b, to the buckets that it covers.
func (r *ring) addSpan(a, b Time, switched bool) {
	if b <= a {
		return
	}
	n := int64(b - a)
	r.all.add(n, switched)
	if lo := a / quarter; lo == (b-1)/quarter { // nearly all spans: in one bucket
		if t := slotAt(r.q[:], int64(lo)); t != nil {
			t.add(n, switched)
		}
		if t := slotAt(r.s[:], int64(a/second)); t != nil {
			t.add(n, switched)
		}
		return
	}
	split(r.q[:], quarter, a, b, switched)
	split(r.s[:], second, a, b, switched)
}

func (t *tally) add(ns int64, switched bool) {
	t.competed += ns
	if switched {
		t.switched += ns
	}
}

func split(slots []tally, size, a, b Time, switched bool) {
	first, last := a/size, (b-1)/size
	if oldest := last - Time(len(slots)) + 1; first < oldest {
		first = oldest
		a = first * size
	}
	for i := first; i <= last; i++ {
		if t := slotAt(slots, int64(i)); t != nil {
			t.add(int64(min(b, (i+1)*size)-max(a, i*size)), switched)
		}
	}
}

// sum adds up the buckets of w, ending at end.
func (r *ring) sum(w Window, end Time) tally {
	switch w {
	case Window1s:
		return sumSince(r.q[:], int64(end/quarter)-(quarters-1))
	case Window10s:
		return sumSince(r.s[:], int64(end/second)-(seconds-1))
	}
	return r.all
}

func sumSince(slots []tally, oldest int64) tally {
	var t tally
	for i := range slots {
		if slots[i].index >= oldest {
			t.turns += slots[i].turns
			t.competed += slots[i].competed
			t.switched += slots[i].switched
		}
	}
	return t
}

// merge adds o's buckets.
func (r *ring) merge(o *ring) {
	mergeSlots(r.q[:], o.q[:])
	mergeSlots(r.s[:], o.s[:])
	r.all.turns += o.all.turns
	r.all.competed += o.all.competed
	r.all.switched += o.all.switched
}

func mergeSlots(to, from []tally) {
	for i := range from {
		if t := slotAt(to, from[i].index); t != nil {
			t.turns += from[i].turns
			t.competed += from[i].competed
			t.switched += from[i].switched
		}
	}
}

// secondsRing keeps one number for each of the last 300 seconds.
type secondsRing struct {
	index [shareSeconds]int64
	ns    [shareSeconds]uint32
}

func (r *secondsRing) addSpan(a, b Time) {
	if b <= a {
		return
	}
	first, last := a/second, (b-1)/second
	if first < last-shareSeconds+1 {
		first = last - shareSeconds + 1
	}
	for i := first; i <= last; i++ {
		k := int(int64(i) % shareSeconds)
		if r.index[k] > int64(i) {
			continue
		}
		if r.index[k] < int64(i) {
			r.index[k], r.ns[k] = int64(i), 0
		}
		r.ns[k] = uint32(min(int64(second), int64(r.ns[k])+int64(min(b, (i+1)*second)-max(a, i*second))))
	}
}

func (r *secondsRing) at(i int64) (int64, bool) {
	k := int(i % shareSeconds)
	if i < 0 || r.index[k] != i {
		return 0, false
	}
	return int64(r.ns[k]), true
}

func (r *secondsRing) merge(o *secondsRing) {
	for k, i := range o.index {
		if o.ns[k] > 0 {
			r.addSpan(Time(i)*second, Time(i)*second+Time(o.ns[k]))
		}
	}
}

// histSlot is the histograms of one bucket.
type histSlot struct {
	index int64
	h     [numQuantities]hist
}

// rowStats are the statistics of one row of the tree.
type rowStats struct {
	ring
	share secondsRing
	hq    [quarters]histSlot
	hs    [seconds]histSlot
	hall  [numQuantities]hist
	// open is the bucket of hq that values go to. It is folded into its second
	// and into hall when the clock leaves it.
	open int64
}

// add takes in a duration that ended at t.
func (r *rowStats) add(quantity int, t Time, ns int64) {
	if i := int64(t / quarter); i > r.open {
		r.advance(i)
	}
	r.hq[r.open%quarters].h[quantity].add(ns)
}

// addTurn counts a turn that ended at t, in the bucket that its durations go to.
func (r *rowStats) addTurn(t Time) {
	i := int64(t / quarter)
	if i > r.open {
		r.advance(i)
	}
	r.ring.addTurn(max(t, Time(r.open)*quarter))
}

// advance closes the running bucket and opens bucket i.
func (r *rowStats) advance(i int64) {
	from := &r.hq[r.open%quarters]
	if s := r.secondSlot(r.open / int64(second/quarter)); s != nil {
		for k := range from.h {
			s.h[k].merge(&from.h[k])
		}
	}
	for k := range from.h {
		r.hall[k].merge(&from.h[k])
	}
	r.open = i
	to := &r.hq[i%quarters]
	to.index = i
	for k := range to.h {
		to.h[k].reset()
	}
}

func (r *rowStats) secondSlot(i int64) *histSlot {
	s := &r.hs[i%seconds]
	if s.index > i {
		return nil
	}
	if s.index < i {
		s.index = i
		for k := range s.h {
			s.h[k].reset()
		}
	}
	return s
}

// collect joins the values of one quantity in a window that ends at end.
func (r *rowStats) collect(p *pool, quantity int, w Window, end Time) {
	p.reset()
	r.gather(p, quantity, w, end)
}

// gather joins them to what p holds already.
func (r *rowStats) gather(p *pool, quantity int, w Window, end Time) {
	switch w {
	case Window1s:
		oldest := int64(end/quarter) - (quarters - 1)
		for i := range r.hq {
			if r.hq[i].index >= oldest {
				p.join(&r.hq[i].h[quantity])
			}
		}
		return
	case Window10s:
		oldest := int64(end/second) - (seconds - 1)
		for i := range r.hs {
			if r.hs[i].index >= oldest {
				p.join(&r.hs[i].h[quantity])
			}
		}
		if r.open/int64(second/quarter) < oldest {
			return
		}
	default:
		p.join(&r.hall[quantity])
	}
	p.join(&r.hq[r.open%quarters].h[quantity])
}

// merge adds o's statistics: a context turned out to belong to this row.
func (r *rowStats) merge(o *rowStats) {
	i := max(r.open, o.open)
	if r.open < i {
		r.advance(i)
	}
	if o.open < i {
		o.advance(i)
	}
	r.ring.merge(&o.ring)
	r.share.merge(&o.share)
	for k := range o.hq {
		from, to := &o.hq[k], &r.hq[k]
		if from.index < to.index {
			continue
		}
		if from.index > to.index { // only closed ones: the open one is the same
			*to = *from
			continue
		}
		for j := range to.h {
			to.h[j].merge(&from.h[j])
		}
	}
	for k := range o.hs {
		if s := r.secondSlot(o.hs[k].index); s != nil {
			for j := range s.h {
				s.h[j].merge(&o.hs[k].h[j])
			}
		}
	}
	for j := range r.hall {
		r.hall[j].merge(&o.hall[j])
	}
}
