//go:build linux

package discover

import (
	"context"
	"slices"

	"tsgtop/internal/rm"
	"tsgtop/internal/rmdev"
)

// Handles of clients that user space and other kernel modules have: a base and
// an index of 20 bits, given out in order, that wraps.
const (
	clientBase = 0xc1d00000
	ringSize   = 1 << 20
	ringMask   = ringSize - 1
)

// ring is what is known of the machine's clients.
type ring struct {
	known []uint32 // clients that lived at the last look, ours left out; ascending
	upper uint32   // index of the newest client at the last look
	begun bool     // the ring was walked down from base to 0
	base  uint32   // index of the newest client at the first look
	next  uint32   // index from which the rest of the ring is still to be walked down to base
	whole bool     // it was: nothing is hidden by a wrap
}

// alive asks whether a client exists. This control is the only one that is
// quiet where it does not.
func alive(dev *rmdev.Device, client uint32) (bool, error) {
	p := rm.AccessRightsParams{Object: client, Client: client}
	status, err := dev.ControlOn(dev.Client(), dev.Client(), rm.CtrlAccessRights, rmdev.Bytes(&p))
	return status == rm.StatusOK && err == nil, err
}

// walker asks about many clients.
type walker struct {
	ctx   context.Context
	r     *rmdev.RM
	dev   *rmdev.Device
	left  int // clients to be found until all are; negative: not known
	found []uint32
}

// down walks n indices downwards from an index, with the wrap.
func (w *walker) down(from uint32, n int) error {
	for i := range n {
		if i%256 == 255 {
			if err := w.ctx.Err(); err != nil {
				return err
			}
		}
		if w.left == 0 {
			return nil
		}
		client := clientBase | (from-uint32(i))&ringMask
		live, err := alive(w.dev, client)
		if err != nil {
			return err
		}
		if !live {
			continue
		}
		w.left--
		if !w.r.Own(client) {
			w.found = append(w.found, client)
		}
	}
	return nil
}

// look brings the ring up to date: what was created since the last look is
// found by walking down from a fresh client's handle, what was known is asked
// whether it lives. d.mu is held.
func (d *Discoverer) look(ctx context.Context) error {
	fresh, err := d.rm.Open()
	if err != nil {
		return err
	}
	upper := fresh.Client() & ringMask
	fresh.Close()
	w := &walker{ctx: ctx, r: d.rm, dev: d.dev, left: d.clientCount()}
	r := &d.ring
	if !r.begun {
		if err := w.down(upper, int(upper)+1); err != nil {
			return err
		}
		r.known, r.upper, r.begun = w.found, upper, true
		r.base, r.next, r.whole = upper, ringMask, w.left == 0
		slices.Sort(r.known)
		return nil
	}
	// Handles are given out upwards from the last upper end. A client between
	// the two ends that lived before has been found before.
	known := r.known[:0:0]
	for _, client := range r.known {
		live, err := alive(d.dev, client)
		if err != nil {
			return err
		}
		if live {
			known = append(known, client)
		}
	}
	w.left = -1
	n := int((upper - r.upper) & ringMask)
	if n > ringSize/2 {
		// The last upper end lay above the index: where a handle is taken RM
		// gives one further up.
		n = 4096
	}
	if err := w.down(upper, n); err != nil {
		return err
	}
	r.known = append(known, w.found...)
	slices.Sort(r.known)
	r.known = slices.Compact(r.known)
	r.upper = upper
	return nil
}

// lookBehind walks at most n indices of the rest of the ring, where clients are
// that were created before the index wrapped. All of it are a million
// questions: seconds. d.mu is held.
func (d *Discoverer) lookBehind(ctx context.Context, n int) error {
	r := &d.ring
	if r.whole {
		return nil
	}
	n = min(n, int(r.next)-int(r.base))
	w := &walker{ctx: ctx, r: d.rm, dev: d.dev, left: -1}
	if err := w.down(r.next, n); err != nil {
		return err
	}
	r.add(w.found...)
	r.next -= uint32(n)
	r.whole = r.next == r.base
	return nil
}

// add notes clients that the stream of calls has shown and that live.
func (r *ring) add(clients ...uint32) {
	r.known = append(r.known, clients...)
	slices.Sort(r.known)
	r.known = slices.Compact(r.known)
}

// clientCount is how many clients the machine has, RM's own internal ones among
// them; negative where RM does not tell.
func (d *Discoverer) clientCount() int {
	var p rm.ClientDatabaseInfoParams
	if err := d.dev.Control(d.dev.Client(), rm.CtrlClientDatabaseInfo, rmdev.Bytes(&p)); err != nil {
		return -1
	}
	return int(p.Clients)
}
