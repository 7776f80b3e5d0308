//go:build vmtest

package inside

import (
	"os"
	"testing"
	"time"
)

// feeder writes GPU 0's trace as if its processes ran long kernels back to back:
// they take turns, each as long as the stand-in's hardware gives it (the effective
// timeslice and 120 us), with a switch of 78 us between; a preempt that came while a
// turn was on ends it 400 us later. So the stand-in's knobs decide what the trace
// shows, as on a GPU.
type feeder struct {
	t        *testing.T
	turns    []*process
	preempts map[uint32]uint32 // by client, as last seen
	at       time.Time         // trace time
	who      int
	seq      uint16
	left     time.Duration // of the turn that is on
	on       bool
	rows     map[uint32]tsgRow // by client, as of the last look: what holds from then on
}

// startFeeder runs until the test ends.
func startFeeder(t *testing.T, processes ...*process) {
	t.Helper()
	f := &feeder{t: t, turns: processes, preempts: map[uint32]uint32{}, at: time.Now()}
	f.look()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
				f.advance(time.Now())
				f.look()
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-done })
}

// look reads what the stand-in's hardware does from now on. Records of earlier
// times are written by then, so no effect comes before its cause.
func (f *feeder) look() {
	rows := map[uint32]tsgRow{}
	for _, r := range tsgRows(f.t) {
		for _, p := range f.turns {
			if r.client == p.Client && r.tsg == p.TSG {
				rows[r.client] = r
			}
		}
	}
	f.rows = rows
}

// advance writes the records up to now.
func (f *feeder) advance(now time.Time) {
	var out []byte
	write := func(tag byte, context uint32) {
		f.seq++
		r := record(tag, f.seq, context, uint64(f.at.UnixNano()))
		le.PutUint32(r[16:], uint32(f.turns[f.who].PID))
		out = append(out, r...)
	}
	for f.at.Before(now) {
		p := f.turns[f.who]
		row, alive := f.rows[p.Client]
		if !f.on {
			if !alive {
				f.who = (f.who + 1) % len(f.turns)
				f.at = f.at.Add(time.Millisecond)
				continue
			}
			write(6, p.Contexts[0])
			f.on, f.left = true, time.Duration(row.effective)*time.Microsecond+120*time.Microsecond
			f.preempts[p.Client] = row.preempts
		}
		if row.preempts != f.preempts[p.Client] {
			f.preempts[p.Client] = row.preempts
			f.left = min(f.left, 400*time.Microsecond)
		}
		step := min(f.left, now.Sub(f.at)+time.Microsecond)
		f.at, f.left = f.at.Add(step), f.left-step
		if f.left <= 0 {
			write(7, p.Contexts[0])
			f.on = false
			f.who = (f.who + 1) % len(f.turns)
			f.at = f.at.Add(78 * time.Microsecond)
		}
	}
	if len(out) > 0 {
		if err := os.WriteFile(knobDir+"fecs0", out, 0); err != nil {
			f.t.Error(err)
		}
	}
}
