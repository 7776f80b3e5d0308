//go:build linux

package discover

import (
	"slices"
	"sync"
	"time"

	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
)

// Bounds on what is remembered of the stream.
const (
	maxDirty = 4096 // clients to look at again; more: everything is looked at
	maxHints = 4096 // handles of one client
)

// news is what the stream of calls has told since the last look.
type news struct {
	mu      sync.Mutex
	wake    chan struct{}
	dirty   map[uint32]*change
	hints   map[uint32][]sched.Handle // of clients that have TSGs or channels, as allocated
	pids    map[uint32]int            // of the processes that made the calls
	full    bool                      // look at everything
	recheck bool                      // ask all known clients whether they live
	scan    struct {                  // the last scan: calls that overlap it touch what it found
		start, end sched.Time // end 0: it runs
	}
}

// change is that a client was touched.
type change struct {
	first, last time.Time // when we heard
}

func (n *news) init() {
	if n.dirty == nil {
		n.dirty, n.hints, n.pids = map[uint32]*change{}, map[uint32][]sched.Handle{}, map[uint32]int{}
		n.wake = make(chan struct{}, 1)
	}
}

func (n *news) poke() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// all asks for a look at everything.
func (n *news) all() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.init()
	n.full = true
	n.poke()
}

// Observe takes note of calls that the stream of RM calls has shown. Clients
// that made TSGs or channels are looked at some milliseconds later by Run, and
// so is each client that a call has touched while it was being looked at. It
// never blocks on a scan.
func (d *Discoverer) Observe(calls []sched.Call) {
	n := &d.news
	n.mu.Lock()
	defer n.mu.Unlock()
	n.init()
	poke := false
	for i := range calls {
		c := &calls[i]
		if c.Status != rm.StatusOK || c.Errno != 0 || d.rm.Own(uint32(c.Client)) {
			continue
		}
		if n.take(c) {
			poke = true
		}
	}
	if poke {
		n.poke()
	}
}

// take notes one call and tells whether there is something to look at.
func (n *news) take(c *sched.Call) bool {
	client := uint32(c.Client)
	touched := false
	switch c.Kind {
	case sched.CallAlloc:
		switch {
		case c.Number == rm.ClassTSG || rm.IsChannelClass(c.Number) || c.Number == rm.ClassMPS:
			n.hint(client, c.Object)
			touched = true
		case c.Number == rm.ClassDevice || c.Number == rm.ClassSubdevice:
			n.hint(client, c.Object)
		case c.Number == rm.ClassClient || c.Number == rm.ClassRoot:
			return false
		}
	case sched.CallDup:
		n.hint(client, c.Object)
		touched = true
	case sched.CallControl:
		// Only now is it certain that a TSG's channels have their runlist.
		touched = c.Number == rm.CtrlTSGSchedule || c.Number == rm.CtrlTSGBind ||
			c.Number == rm.CtrlChannelSchedule || c.Number == rm.CtrlChannelBind
	case sched.CallFree:
		n.unhint(client, c.Object)
		touched = c.Object == c.Client
	case sched.CallClose:
		n.recheck = true
		return true
	}
	overlaps := n.scan.start != 0 && c.End >= n.scan.start && (n.scan.end == 0 || c.Start <= n.scan.end)
	if !touched && (!overlaps || c.Kind == sched.CallControl) {
		return false
	}
	now := time.Now()
	ch := n.dirty[client]
	if ch == nil {
		if len(n.dirty) >= maxDirty {
			n.full = true
			return true
		}
		ch = &change{first: now}
		n.dirty[client] = ch
	}
	ch.last = now
	if c.PID > 0 {
		n.pids[client] = c.PID
	}
	return true
}

func (n *news) hint(client uint32, object sched.Handle) {
	list := n.hints[client]
	if len(list) >= maxHints || (list == nil && len(n.hints) >= maxDirty) || slices.Contains(list, object) {
		return
	}
	n.hints[client] = append(list, object)
}

func (n *news) unhint(client uint32, object sched.Handle) {
	if uint32(object) == client {
		delete(n.hints, client)
		return
	}
	if list, ok := n.hints[client]; ok {
		n.hints[client] = slices.DeleteFunc(list, func(h sched.Handle) bool { return h == object })
	}
}

// allHints are the handles that the stream has told of each client.
func (n *news) allHints() map[sched.Handle][]sched.Handle {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := make(map[sched.Handle][]sched.Handle, len(n.hints))
	for c, list := range n.hints {
		out[sched.Handle(c)] = slices.Clone(list)
	}
	return out
}

// forget drops what was noted of a client that is no more.
func (n *news) forget(client uint32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.hints, client)
}

// due takes the clients out that have been quiet for delay, or waited eight
// times as long; next is when the next one may be.
func (n *news) due(now time.Time, delay time.Duration) (hints map[sched.Handle][]sched.Handle, pids []int, next time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.init()
	hints = map[sched.Handle][]sched.Handle{}
	next = time.Hour
	for client, ch := range n.dirty {
		wait := min(delay-now.Sub(ch.last), 8*delay-now.Sub(ch.first))
		if wait > 0 {
			next = min(next, wait)
			continue
		}
		hints[sched.Handle(client)] = slices.Clone(n.hints[client])
		if pid := n.pids[client]; pid > 0 {
			pids = append(pids, pid)
		}
		delete(n.dirty, client)
		delete(n.pids, client)
	}
	return hints, pids, next
}

// begin and end stamp a scan, for calls that overlap it.
func (n *news) begin(t sched.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.init()
	n.scan.start, n.scan.end = t, 0
}

func (n *news) end(t sched.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.scan.end = t
}

func (n *news) takeFlags() (full, recheck bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.init()
	full, recheck = n.full, n.recheck
	n.full, n.recheck = false, false
	return full, recheck
}

// restoreFull asks for a look at everything at the next step.
func (n *news) restoreFull() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.full = true
}
