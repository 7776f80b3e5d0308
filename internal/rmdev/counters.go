//go:build linux

package rmdev

import "tsgtop/internal/rm"

// SwitchCounters reads the counters that the GSP keeps of a TSG's context
// switches, on the TSG's own client and that client's subdevice. It resets
// nothing. RM answers 0x1a for TSGs of copy engines, without a line in the
// kernel log (seen on an H200, driver 580.159.04).
func (b *Borrowed) SwitchCounters(client, subdevice, tsg uint32) (p rm.ContextSwitchStatsParams, status uint32, err error) {
	p.TSG = tsg
	status, err = b.Control(client, subdevice, rm.CtrlContextSwitchStats, Bytes(&p))
	return p, status, err
}

// Subdevice asks for a client's subdevice under one of its devices; 0 where it
// has none, or RM does not tell.
func (b *Borrowed) Subdevice(client, device uint32) (uint32, error) {
	p := rm.ChildHandleParams{Parent: device, Class: rm.InternalClassSubdevice}
	status, err := b.Control(client, client, rm.CtrlChildHandle, Bytes(&p))
	if err != nil || status != rm.StatusOK {
		return 0, err
	}
	return p.Object, nil
}
