package xid

import (
	"time"

	"tsgtop/internal/sched"
)

// window is how long one witness waits for the other: both are written within
// one call of the driver.
const window = 250 * time.Millisecond

// source is which witness told of an Xid.
type source int

const (
	fromTracepoint source = iota
	fromLog
)

// merger makes one Xid of what the two witnesses tell of it.
type merger struct {
	pending [2][]waiting
}

type waiting struct {
	xid   sched.Xid
	until time.Time
}

// add takes an Xid from one witness. It gives the whole Xid where the other
// has told of it, and nothing while that is waited for.
func (m *merger) add(s source, x sched.Xid, now time.Time) []sched.Xid {
	other := &m.pending[1-s]
	for i, w := range *other {
		if w.xid.Code == x.Code && (w.xid.PCI == x.PCI || w.xid.PCI == "" || x.PCI == "") {
			*other = append((*other)[:i:i], (*other)[i+1:]...)
			if s == fromTracepoint {
				return []sched.Xid{combine(x, w.xid)}
			}
			return []sched.Xid{combine(w.xid, x)}
		}
	}
	m.pending[s] = append(m.pending[s], waiting{x, now.Add(window)})
	return nil
}

// expired gives the Xids of which only one witness told in time.
func (m *merger) expired(now time.Time) []sched.Xid {
	var out []sched.Xid
	for s := range m.pending {
		p := m.pending[s]
		n := 0
		for n < len(p) && !p[n].until.After(now) {
			out = append(out, p[n].xid)
			n++
		}
		m.pending[s] = p[n:]
	}
	return out
}

// rest gives all that still waits.
func (m *merger) rest() []sched.Xid { return m.expired(time.Unix(1<<40, 0)) }

// combine: the tracepoint's time and text, the log's process.
func combine(trace, log sched.Xid) sched.Xid {
	x := trace
	if log.PID != 0 || log.Name != "" {
		x.PID, x.Name = log.PID, log.Name
	}
	if x.PCI == "" {
		x.PCI = log.PCI
	}
	if x.GPU == sched.Unknown {
		x.GPU = log.GPU
	}
	if x.Text == "" {
		x.Text = log.Text
	}
	if x.Channel == nil {
		x.Channel = log.Channel
	}
	return x
}
