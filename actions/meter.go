//go:build linux

package actions

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tsgtop/actions/journal"
	"tsgtop/internal/rm"
	"tsgtop/internal/rmdev"
	"tsgtop/internal/sched"
)

// meterControls are the calls on our own client that the meter needs.
type meterControls interface {
	Client() uint32
	ControlOn(client, object, cmd uint32, params []byte) (status uint32, err error)
}

// meter is RM's own RPC meter: one list of the RPCs that RM waited for, of the
// whole machine. It is exact on a machine of one GPU: controls that are routed
// to the GSP hold that GPU's lock, and the list has none of its own.
//
// Rules: it is left alone where somebody else has it on or has an unread log in
// it; the journal knows that it is on before it is; it is read from entry 0,
// at most one dump, while it is off; and it is turned off whatever happens,
// after a crash by whoever reads the journal next.
type meter struct {
	journal *journal.Journal
	self    journal.Owner

	mu   sync.Mutex // one call at a time
	dump rm.RPCMeterDumpParams
	left bool // it could not be turned off
}

// meterPatience is how long a call waits for the meter of another call of ours:
// as long as RPCs take, and not longer. Its target has been looked at, its
// descriptor is borrowed, and what was found must not get old.
const meterPatience = 20 * time.Millisecond

// lock waits for the meter, if another call of ours has it.
func (m *meter) lock() bool {
	for until := time.Now().Add(meterPatience); !m.mu.TryLock(); time.Sleep(200 * time.Microsecond) {
		if time.Now().After(until) {
			return false
		}
	}
	return true
}

// disarm turns the meter off and gives what it saw; nil where it is not on.
type disarm func() []rm.RPCMeterEntry

// drop turns it off, where it is on, and forgets what it saw.
func (d disarm) drop() {
	if d != nil {
		d()
	}
}

// arm turns the meter on. why is empty when it is; then disarm must be called.
func (m *meter) arm(d meterControls) (off disarm, why string) {
	if !m.lock() {
		return nil, "another command of this tsgtop uses RM's RPC meter"
	}
	unlock, err := m.journal.LockMeter()
	give := func(why string) (disarm, string) {
		if unlock != nil {
			unlock()
		}
		m.mu.Unlock()
		return nil, why
	}
	if errors.Is(err, journal.ErrBusy) {
		return give("another tsgtop uses RM's RPC meter")
	} else if err != nil {
		return give(err.Error())
	}
	if m.left {
		m.off(d)
	}
	if m.left {
		return give("RM's RPC meter was left on: it could not be turned off after another call")
	}
	// A log that somebody else has not read yet would be lost by turning it on.
	switch st, err := m.read(d); {
	case err != nil:
		return give("RM's RPC meter: " + err.Error())
	case st != 0:
		return give(fmt.Sprintf("RM's RPC meter is in use by another tool, or this driver has none: %s (0x%x)", rm.StatusName(st), st))
	case m.dump.Count > 0 || m.dump.Remaining > 0:
		return give("RM's RPC meter holds a log of another tool's, which is left alone")
	}
	if err := m.journal.Meter(m.self, true); err != nil {
		return give("the journal could not be told that RM's RPC meter goes on: " + err.Error())
	}
	if st, err := m.set(d, rm.RPCMeterOn); err != nil || st != 0 {
		m.off(d)
		return give(fmt.Sprintf("RM's RPC meter could not be turned on: %s", answer(st, err)))
	}
	return func() []rm.RPCMeterEntry {
		defer m.mu.Unlock()
		defer unlock()
		return m.off(d)
	}, ""
}

// off turns the meter off, reads what it has, drops that and tells the journal.
// nil: it could not be read. The journal keeps the note where turning it off
// failed.
func (m *meter) off(d meterControls) []rm.RPCMeterEntry {
	m.left = true
	if st, err := m.set(d, rm.RPCMeterOff); err != nil || st != 0 {
		return nil
	}
	st, err := m.read(d)
	var entries []rm.RPCMeterEntry
	if err == nil && st == 0 && m.dump.Remaining == 0 && m.dump.Count <= rm.RPCMeterEntries {
		entries = append([]rm.RPCMeterEntry{}, m.dump.Entries[:m.dump.Count]...)
	}
	if st, err := m.set(d, rm.RPCMeterReset); err == nil && st == 0 {
		m.left = m.journal.Meter(m.self, false) != nil
	}
	return entries
}

func (m *meter) set(d meterControls, cmd uint32) (uint32, error) {
	p := rm.RPCMeterParams{Cmd: cmd}
	return d.ControlOn(d.Client(), d.Client(), rm.CtrlRPCMeter, rmdev.Bytes(&p))
}

func (m *meter) read(d meterControls) (uint32, error) {
	m.dump = rm.RPCMeterDumpParams{}
	return d.ControlOn(d.Client(), d.Client(), rm.CtrlRPCMeterDump, rmdev.Bytes(&m.dump))
}

func answer(status uint32, err error) string {
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s (0x%x)", rm.StatusName(status), status)
}

// MeterLeftOn turns off a meter that a tsgtop that has died left on.
func meterLeftOn(j *journal.Journal, self journal.Owner, d meterControls) error {
	m := &meter{journal: j, self: self}
	unlock, err := j.LockMeter()
	if err != nil {
		return err
	}
	defer unlock()
	if s, err := j.State(); err != nil || s.Meter == nil {
		return err // somebody else has turned it off meanwhile
	}
	if st, err := m.set(d, rm.RPCMeterOff); err != nil || st != 0 {
		return fmt.Errorf("turn off RM's RPC meter, which a tsgtop that died left on: %s", answer(st, err))
	}
	if st, err := m.set(d, rm.RPCMeterReset); err != nil || st != 0 {
		return fmt.Errorf("drop the log of RM's RPC meter: %s", answer(st, err))
	}
	return j.Meter(self, false)
}

// clocks are the wall's and the meter's, read together.
type clocks struct {
	wall sched.Time
	raw  int64
}

// readClocks reads the wall's clock between two readings of the meter's.
func readClocks() clocks {
	a := rawClock()
	w := sched.Now()
	b := rawClock()
	return clocks{w, a + (b-a)/2}
}

func rawClock() int64 {
	var ts unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC_RAW, &ts)
	return ts.Nano()
}

// overhead is how much of a call can lie outside its RPC: RM's own part is 10 to
// 25 us; more, and the RPC can be another client's for whose lock we waited.
const overhead = 200 * time.Microsecond

// clockSlack is how much two clocks' intervals of the same call may differ.
const clockSlack = 20 * time.Microsecond

// callRPC looks for the call's RPC among the meter's entries: a control, wholly
// within the call.
func callRPC(entries []rm.RPCMeterEntry, before, after clocks) RPC {
	return callRPCWithin(entries, before, after, time.Duration(after.raw-before.raw))
}

// callRPCWithin is callRPC where the call is known to have taken less than the
// time from before to after.
func callRPCWithin(entries []rm.RPCMeterEntry, before, after clocks, call time.Duration) RPC {
	if entries == nil {
		return RPC{Why: "RM's RPC meter could not be read, or its log was longer than one reading"}
	}
	var found []rm.RPCMeterEntry
	for _, e := range entries {
		if e.Function == rm.RPCControl && int64(e.Start) >= before.raw && int64(e.End) <= after.raw && e.End >= e.Start {
			found = append(found, e)
		}
	}
	if len(found) == 0 {
		return RPC{Exact: true}
	}
	// RPCs of other clients fall into the call while it waits for the GPU's lock:
	// its own is the last.
	last := found[0]
	for _, e := range found {
		if e.End > last.End {
			last = e
		}
	}
	took := time.Duration(last.End - last.Start)
	if rest := call - took; rest > overhead && rest > took || rest < -clockSlack {
		return RPC{Why: fmt.Sprintf("an RPC of %d us was seen within the call of %d us, and is not surely its own",
			took.Microseconds(), call.Microseconds())}
	}
	return RPC{Exact: true, Seen: true, Took: took, Start: before.wall.Add(time.Duration(int64(last.Start) - before.raw))}
}
