//go:build linux

package ctxsw

import (
	"errors"
	"fmt"
	"time"

	"tsgtop/internal/rmdev"
	"tsgtop/internal/sched"
)

// Pauses before a GPU without a trace is tried again.
const (
	retryPassing = 30 * time.Second // no memory, the GPU not there, MIG
	retryBind    = 5 * time.Minute  // a refused binding: trying disturbs other listeners
	retryLongest = time.Hour
)

// trace is the trace of one GPU, bound or not.
type trace struct {
	gpu      rmdev.GPU
	dev      *rmdev.Device // nil: not bound
	attached *rmdev.AttachedGPU
	buf      *buffer
	dec      decoder
	clock    gpuClock
	status   sched.ProbeStatus
	said     sched.ProbeStatus // as it was last sent

	retryAt   time.Time
	retryWait time.Duration // after a refused binding
	tieAt     time.Time
	readAt    time.Time // last read, for the fallback
	sentAt    time.Time // last batch
	upTo      sched.Time
	active    time.Time // when a record last came
}

// What the trace gives, and what it costs.
const (
	whatItGives = "start and end of each turn on the graphics/compute engine; costs about 3% of the work at 6,000 switches a second, nothing while nothing switches (measured on an H200)"
	holdsOpen   = "while it runs, the driver cannot be unloaded, the GPU not reset and MIG not changed"
)

func (t *trace) say(state sched.ProbeState, why, help string) {
	t.status = sched.ProbeStatus{Probe: "ctxsw", GPU: t.gpu.Index, State: state, What: whatItGives, Why: why, Help: help}
	if state == sched.ProbeOK {
		t.status.What += "; " + holdsOpen
	}
}

// start binds the trace, or says why it cannot be and when to try again.
func (t *trace) start(p *Probe, now time.Time) {
	if !p.opts.Root() {
		t.say(sched.ProbeMissing, "without root the driver blurs the trace and hides whose contexts they are", "run it with sudo")
		t.retryAt = now.Add(retryLongest)
		return
	}
	err := t.bind(p)
	var refused *bindError
	switch {
	case err == nil:
		t.say(sched.ProbeOK, "", "")
		t.retryWait = 0
		if t.buf.size < sizes[0] {
			t.status.Why = fmt.Sprintf("the buffer holds only %d records: there was not enough contiguous memory for more", t.buf.size)
		}
	case errors.Is(err, errMIG):
		t.say(sched.ProbeMissing, "not with MIG: the driver gives the trace only to who is subscribed to an instance", "")
		t.retryAt = now.Add(retryPassing)
	case errors.As(err, &refused):
		t.retryWait = min(max(2*t.retryWait, retryBind), retryLongest)
		t.retryAt = now.Add(t.retryWait)
		t.say(sched.ProbeMissing, err.Error(), fmt.Sprintf("it is tried again in %v, not sooner: a refused binding stops the driver's timer for other listeners", t.retryWait))
	default:
		t.retryAt = now.Add(retryPassing)
		t.say(sched.ProbeMissing, err.Error(), fmt.Sprintf("it is tried again in %v", retryPassing))
	}
}

var errMIG = errors.New("MIG is on")

// bind takes the GPU and binds the trace. It asks first whether that can work.
func (t *trace) bind(p *Probe) (err error) {
	dev, err := p.rm.Open()
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			dev.Close()
		}
	}()
	attached, err := dev.Attach(t.gpu)
	if err != nil {
		return err
	}
	mig, err := dev.MIG(attached)
	if err != nil {
		return err
	}
	if mig {
		return errMIG
	}
	tie, err := readTie(dev, attached, p.opts.Clocks)
	if err != nil {
		return err
	}
	buf, err := newBuffer(dev, attached, p.opts.sizes)
	if err != nil {
		return err
	}
	buf.newest = p.opts.KeepNewest
	if err := buf.bind(attached); err != nil {
		return err
	}
	t.dev, t.attached, t.buf = dev, attached, buf
	counted := t.dec
	t.dec = decoder{gaps: counted.gaps, malformed: counted.malformed, suspect: counted.begun}
	t.clock = gpuClock{}
	t.clock.tie(tie.GPUTime, int64(tie.Time), tie.ErrorNS)
	now := time.Now()
	t.readAt, t.active, t.tieAt = now, now, time.Time{}
	return nil
}

// stop lets the GPU go: every descriptor is closed.
func (t *trace) stop() {
	if t.dev == nil {
		return
	}
	t.buf.enable(false) // closing ends it anyway
	t.dev.Close()
	t.dev, t.attached, t.buf = nil, nil, nil
	t.retryAt = time.Time{}
}

// fail says that a bound trace does not work any more, and lets it go.
func (t *trace) fail(err error, now time.Time) {
	t.stop()
	t.retryAt = now.Add(retryPassing)
	t.say(sched.ProbeMissing, err.Error(), fmt.Sprintf("it is tried again in %v", retryPassing))
}

// stall is how long the fallback buffer may go unread before it must be feared
// that it was written round more than once.
const stall = 250 * time.Millisecond

// margin is how long after a switch its record may come to be seen, in ns: the
// hardware writes one record when both saving and restoring are done (75 to
// 150 us on an H200).
const margin = 1e6

// read reads what has come and makes a batch of it. flushed is the wall time
// just before the flush: what happened before it, less a margin, is in. An
// empty batch comes at most ten times a second.
func (t *trace) read(flushed int64, now time.Time) (batch sched.TraceBatch, overtaken uint64, ok bool, err error) {
	b, dropped, overtaken, err := t.buf.read()
	if err != nil {
		return batch, 0, false, err
	}
	if t.buf.newest && now.Sub(t.readAt) > stall && len(b) > 0 {
		t.dec.suspect = true
	}
	t.readAt = now
	// Overtaken records were the oldest of what was read, dropped ones come behind it.
	t.dec.overtaken += overtaken
	if len(b) > 0 {
		batch.Records = t.dec.decode(b, &t.clock, make([]sched.TraceRecord, 0, len(b)/recordBytes))
	}
	t.dec.dropped += dropped
	if len(batch.Records) > 0 {
		t.active = now
	} else if now.Sub(t.sentAt) < time.Second/10 {
		return batch, overtaken, false, nil
	}
	upTo := sched.Time(flushed - margin)
	if n := len(batch.Records); n > 0 {
		upTo = max(upTo, batch.Records[n-1].Time)
	}
	if t.upTo-upTo < sched.Time(step) { // else the wall clock was set back
		upTo = max(upTo, t.upTo)
	}
	t.upTo, t.sentAt = upTo, now
	batch.Time, batch.GPU = upTo, t.gpu.Index
	return batch, overtaken, true, nil
}
