//go:build linux

package rmfake

import "encoding/binary"

// Switches are the GSP's counters of a TSG's context switches, in the order in
// which RM gives them: save, restore, WFI, CTA, CILP, GFXP.
type Switches [6]uint32

// SetSwitches sets a TSG's switch counters.
func (c *Client) SetSwitches(tsg uint32, s Switches) {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	c.objects[tsg].switches = s
}

// switchCounters answers 0x20801215, which the GSP knows for the graphics
// engine's TSGs alone. A reset changes what others read, so it is a line in the
// log.
func (d *Driver) switchCounters(c *Client, params []byte) uint32 {
	le := binary.LittleEndian
	t := c.objects[le.Uint32(params)]
	switch {
	case t == nil:
		return statusObjectNotFound
	case t.runlist != 0:
		return 0x1a
	}
	if le.Uint32(params[4:])&1 != 0 {
		d.logf("the switch counters of TSG %#x were reset", t.handle)
		t.switches = Switches{}
	}
	for i, n := range t.switches {
		le.PutUint32(params[8+4*i:], n)
	}
	return statusOK
}
