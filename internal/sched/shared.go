package sched

import (
	"slices"
	"strings"
)

// A TSG can have handles in several clients. That is how MPS works (seen on an
// H200, driver 580.159.04): the server makes the compute TSG, each of its clients
// gets a handle to it and hangs channels of its own in it, and all of them take
// their turns as one. Copy engines' TSGs they have each their own.

// mpsServerName is how the names of the server and of its control daemon begin: the
// kernel keeps 15 characters of them.
const mpsServerName = "nvidia-cuda-mps"

func (c *client) isMPSServer() bool {
	return c.mps && c.proc != nil && strings.HasPrefix(c.proc.Name(), mpsServerName)
}

// owner is the handle by which a TSG is shown and acted on: the MPS server's
// where it has one, else the first.
func (t *tsg) owner() (c *client, at Object, device Handle) {
	if len(t.handles) > 1 && t.client != nil && !t.client.isMPSServer() {
		for _, n := range t.handles {
			if n.client.isMPSServer() && !t.internal() {
				if d := n.deviceOf(); d != nil {
					return n.client, n.Object, d.Handle
				}
			}
		}
	}
	return t.client, t.object, t.device
}

// sharing is who shares a TSG: the number of other processes' clients that have a
// handle to it, whether that is MPS, and all processes that hold the file of
// one of them, sorted.
func (s *State) sharing(t *tsg, owner *client) (clients int, mps bool, holders []int) {
	holders = slices.Clone(owner.holders)
	mps = owner.mps
	var seen []*client
	for _, n := range t.handles {
		c := n.client
		if c == owner || slices.Contains(seen, c) || c.proc != nil && c.proc == owner.proc {
			continue
		}
		seen = append(seen, c)
		mps = mps || c.mps
		holders = append(holders, c.holders...)
	}
	if len(seen) > 0 {
		slices.Sort(holders)
		holders = slices.Compact(holders)
	} else if yes, known := s.graphics(t); known && !yes && owner.proc != nil && owner.proc.Name() != "" && !owner.isMPSServer() {
		// A client of MPS, and a copy engine's TSG of its own. Compute TSGs are shared,
		// whether the handles can be seen to be one TSG's (not before driver 570) or not.
		mps = false
	}
	return len(seen), mps, holders
}
