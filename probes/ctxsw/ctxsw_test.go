//go:build linux

package ctxsw

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"tsgtop/internal/rm"
	"tsgtop/internal/rmdev"
	"tsgtop/internal/rmdev/rmfake"
	"tsgtop/internal/sched"
)

// refuser is a driver that does not let event buffers move get.
type refuser struct{ *rmfake.Driver }

func (r refuser) Ioctl(fd int, request uint32, arg unsafe.Pointer) syscall.Errno {
	if nr, _, _ := rm.IoctlParts(request); nr == rm.EscControl {
		if a := (*rm.ControlParams)(arg); a.Cmd == rm.CtrlEventBufferUpdateGet {
			a.Status = rm.StatusNotSupported
			return 0
		}
	}
	return r.Driver.Ioctl(fd, request, arg)
}

func root() bool { return true }

// ticks drives a probe by hand.
type ticks struct {
	p   *Probe
	now time.Time
}

func newTicks(d *rmfake.Driver, opts Options) *ticks {
	if opts.Root == nil {
		opts.Root = root
	}
	return &ticks{p: New(rmdev.New(d), opts), now: time.Now()}
}

func (k *ticks) tick(t *testing.T, after time.Duration) []sched.Event {
	t.Helper()
	k.now = k.now.Add(after)
	events, _, err := k.p.tick(k.now, nil)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func (k *ticks) close(t *testing.T, d *rmfake.Driver) {
	t.Helper()
	k.p.Release()
	if n := d.OpenFiles(); n != 0 {
		t.Errorf("%d descriptors left open", n)
	}
}

func only[T sched.Event](events []sched.Event) []T {
	var out []T
	for _, e := range events {
		if x, ok := e.(T); ok {
			out = append(out, x)
		}
	}
	return out
}

// now makes records of this very time, as the GPU's clock has it.
func recordsNow(contexts ...uint32) []rmfake.Record {
	var out []rmfake.Record
	at := uint64(time.Now().UnixNano())
	for i, c := range contexts {
		out = append(out, rmfake.Record{Tag: uint8(6 + i%2), Context: c, PID: 479, Time: at + uint64(i)})
	}
	return out
}

func TestBatchesOfTwoGPUs(t *testing.T) {
	d := rmfake.New()
	a, b := d.AddGPU(), d.AddGPU()
	a.Bus, b.Bus = 0x90, 0x10 // nvidia-smi counts b first
	a.Clock = func() time.Time { return time.Now().Add(40 * time.Microsecond) }
	k := newTicks(d, Options{})
	defer k.close(t, d)
	first := k.tick(t, 0)
	if s := only[sched.ProbeStatus](first); len(s) != 2 || s[0].State != sched.ProbeOK || s[0].GPU != 0 || s[1].GPU != 1 || !strings.Contains(s[0].What, "3%") {
		t.Errorf("statuses %+v", s)
	}
	ties := only[sched.ClockTie](first)
	if len(ties) != 2 || ties[1].GPU != 1 {
		t.Fatalf("ties %+v", ties)
	}
	if off := ties[1].GPUTime - int64(ties[1].Time); off < 40_000-ties[1].ErrorNS || off > 40_000+ties[1].ErrorNS+1000 {
		t.Errorf("offset %d ns, half width %d", off, ties[1].ErrorNS)
	}
	if ties[0].Monotonic <= 0 || ties[0].Raw <= 0 || ties[0].ErrorNS <= 0 {
		t.Errorf("%+v", ties[0])
	}
	a.Switch(recordsNow(0x3f, 0x3f, 0x4f)...)
	b.Switch(recordsNow(0x50)...)
	batches := only[sched.TraceBatch](k.tick(t, 5*time.Millisecond))
	if len(batches) != 2 || batches[0].GPU != 0 || len(batches[0].Records) != 1 || batches[1].GPU != 1 || len(batches[1].Records) != 3 {
		t.Fatalf("batches %+v", batches)
	}
	if batches[1].Time < batches[1].Records[2].Time {
		t.Errorf("read up to %d, before its last record %d", batches[1].Time, batches[1].Records[2].Time)
	}
	if d.Calls(rm.CtrlEventBufferFlush) != 2 {
		t.Errorf("%d flushes for two ticks: one is for all GPUs", d.Calls(rm.CtrlEventBufferFlush))
	}
	// Empty batches say that nothing switched, ten times a second.
	var last sched.Time
	empty := 0
	for range 200 {
		for _, b := range only[sched.TraceBatch](k.tick(t, 5*time.Millisecond)) {
			if b.GPU == 0 {
				empty++
				if b.Time < last || len(b.Records) != 0 {
					t.Errorf("batch %+v after one up to %d", b, last)
				}
				last = b.Time
			}
		}
	}
	if empty < 9 || empty > 10 {
		t.Errorf("%d empty batches in a second", empty)
	}
	if a.Binds() != 1 || b.Binds() != 1 {
		t.Errorf("bound %d and %d times", a.Binds(), b.Binds())
	}
}

func TestRareFlushesWhileNothingSwitches(t *testing.T) {
	d := rmfake.New()
	g := d.AddGPU()
	k := newTicks(d, Options{})
	defer k.close(t, d)
	pause := func(after time.Duration) time.Duration {
		k.now = k.now.Add(after)
		_, pause, err := k.p.tick(k.now, nil)
		if err != nil {
			t.Fatal(err)
		}
		return pause
	}
	if p := pause(0); p != 5*time.Millisecond {
		t.Errorf("at first %v", p)
	}
	if p := pause(time.Second); p != 33*time.Millisecond {
		t.Errorf("idle %v", p)
	}
	g.Switch(recordsNow(1)...)
	if p := pause(time.Second); p != 5*time.Millisecond {
		t.Errorf("active %v", p)
	}
	k.p.SetFlush(0)
	g.Switch(recordsNow(1)...)
	if p := pause(0); p != MinFlush {
		t.Errorf("set to the least: %v", p)
	}
}

// A GPU in MIG mode is never asked to bind: that would stop other listeners.
func TestMIGIsNotBound(t *testing.T) {
	d := rmfake.New()
	g := d.AddGPU()
	g.MIG = true
	k := newTicks(d, Options{})
	defer k.close(t, d)
	s := only[sched.ProbeStatus](k.tick(t, 0))
	if len(s) != 1 || s[0].State != sched.ProbeMissing || !strings.HasPrefix(s[0].Why, "not with MIG") {
		t.Errorf("%+v", s)
	}
	if n := d.OpenFiles(); n != 0 {
		t.Errorf("%d descriptors held on a GPU without a trace", n)
	}
	k.tick(t, time.Second)
	if g.Binds() != 0 || len(d.Log()) != 0 {
		t.Errorf("%d binds, log %q", g.Binds(), d.Log())
	}
	// Somebody turns MIG off.
	d.Lock()
	g.MIG = false
	d.Unlock()
	s = only[sched.ProbeStatus](k.tick(t, retryPassing))
	if len(s) != 1 || s[0].State != sched.ProbeOK || g.Binds() != 1 {
		t.Errorf("%+v, %d binds", s, g.Binds())
	}
}

func TestRefusedBindIsTriedRarely(t *testing.T) {
	d := rmfake.New()
	g := d.AddGPU()
	g.BindStatus, g.BindReason = rm.StatusNotSupported, rm.FECSReasonNotEnabledGPU
	k := newTicks(d, Options{})
	defer k.close(t, d)
	s := only[sched.ProbeStatus](k.tick(t, 0))
	if len(s) != 1 || s[0].State != sched.ProbeMissing || !strings.Contains(s[0].Why, "NV_ERR_NOT_SUPPORTED") ||
		!strings.Contains(s[0].Why, "not enabled for this GPU") || !strings.Contains(s[0].Help, "5m0s") {
		t.Errorf("%+v", s)
	}
	for range 299 {
		k.tick(t, time.Second)
	}
	if g.Binds() != 1 {
		t.Fatalf("%d binds within five minutes", g.Binds())
	}
	k.tick(t, 2*time.Second)
	if g.Binds() != 2 {
		t.Fatalf("%d binds after five minutes", g.Binds())
	}
	k.tick(t, 9*time.Minute)
	if g.Binds() != 2 {
		t.Errorf("%d binds: the pause does not grow", g.Binds())
	}
	d.Lock()
	g.BindStatus = 0
	d.Unlock()
	s = only[sched.ProbeStatus](k.tick(t, 2*time.Minute))
	if len(s) != 1 || s[0].State != sched.ProbeOK {
		t.Errorf("%+v", s)
	}
}

func TestLittleContiguousMemory(t *testing.T) {
	for _, c := range []struct {
		max   uint64
		size  uint32
		state sched.ProbeState
	}{
		{0, 65536, sched.ProbeOK},
		{1 << 20, 16384, sched.ProbeOK},
		{256 << 10, 4096, sched.ProbeOK},
		{64 << 10, 0, sched.ProbeMissing},
	} {
		d := rmfake.New()
		g := d.AddGPU()
		d.MaxContiguous = c.max
		k := newTicks(d, Options{})
		s := only[sched.ProbeStatus](k.tick(t, 0))
		if len(s) != 1 || s[0].State != c.state {
			t.Fatalf("at most %d bytes: %+v", c.max, s)
		}
		if c.size > 0 && k.p.traces[0].buf.size != c.size {
			t.Errorf("at most %d bytes: %d records", c.max, k.p.traces[0].buf.size)
		}
		if (c.size == 65536) != (s[0].Why == "") {
			t.Errorf("at most %d bytes: why %q", c.max, s[0].Why)
		}
		if c.size == 0 && g.Binds() != 0 {
			t.Error("bound without memory")
		}
		k.close(t, d)
	}
}

func TestReleaseAndResume(t *testing.T) {
	d := rmfake.New()
	g := d.AddGPU()
	k := newTicks(d, Options{})
	defer k.close(t, d)
	k.tick(t, 0)
	g.Switch(recordsNow(1, 1)...)
	k.tick(t, time.Millisecond)
	k.p.Release()
	if n := d.OpenFiles(); n != 0 {
		t.Errorf("%d descriptors open after Release", n)
	}
	s := only[sched.ProbeStatus](k.tick(t, time.Second))
	if len(s) != 1 || s[0].State != sched.ProbeReleased || k.p.Status()[0].State != sched.ProbeReleased {
		t.Errorf("%+v", s)
	}
	k.p.Resume()
	s = only[sched.ProbeStatus](k.tick(t, time.Second))
	if len(s) != 1 || s[0].State != sched.ProbeOK || g.Binds() != 2 {
		t.Errorf("%+v, %d binds", s, g.Binds())
	}
	g.Switch(recordsNow(2, 2)...)
	b := only[sched.TraceBatch](k.tick(t, time.Millisecond))
	if len(b) != 1 || b[0].Records[0].Gap == 0 || b[0].Records[1].Gap != 0 {
		t.Errorf("what is missing from the time of the release is not said: %+v", b)
	}
}

func TestNotRoot(t *testing.T) {
	d := rmfake.New()
	g := d.AddGPU()
	k := newTicks(d, Options{Root: func() bool { return false }})
	s := only[sched.ProbeStatus](k.tick(t, 0))
	if len(s) != 1 || s[0].State != sched.ProbeMissing || !strings.Contains(s[0].Help, "sudo") || g.Binds() != 0 || d.OpenFiles() != 0 {
		t.Errorf("%+v", s)
	}
}

func TestNoDriver(t *testing.T) {
	d := rmfake.New()
	d.Missing = true
	k := newTicks(d, Options{})
	events, _, err := k.p.tick(time.Now(), nil)
	if s := only[sched.ProbeStatus](events); err == nil || len(s) != 1 || s[0].State != sched.ProbeMissing {
		t.Errorf("%v, %+v", err, s)
	}
}

// Two readers at once get the same records.
func TestTwoReaders(t *testing.T) {
	d := rmfake.New()
	g := d.AddGPU()
	a, b := newTicks(d, Options{}), newTicks(d, Options{})
	a.tick(t, 0)
	b.tick(t, 0)
	g.Switch(recordsNow(1, 1, 2)...)
	contexts := func(k *ticks) (out []uint32) {
		for _, batch := range only[sched.TraceBatch](k.tick(t, 5*time.Millisecond)) {
			for _, r := range batch.Records {
				out = append(out, r.Context)
			}
		}
		return out
	}
	x, y := contexts(a), contexts(b)
	if !slices.Equal(x, []uint32{1, 1, 2}) || !slices.Equal(x, y) {
		t.Errorf("%v, %v", x, y)
	}
	a.p.Release()
	b.close(t, d)
}

func TestLossIsCounted(t *testing.T) {
	d := rmfake.New()
	g := d.AddGPU()
	k := newTicks(d, Options{sizes: []uint32{64}})
	defer k.close(t, d)
	k.tick(t, 0)
	g.Switch(switches(0, 100)...)
	k.tick(t, time.Millisecond)
	g.Switch(switches(100, 1)...)
	events := k.tick(t, time.Millisecond)
	b := only[sched.TraceBatch](events)
	if l := only[sched.Loss](events); len(l) != 1 || l[0].Trace != 37 {
		t.Errorf("sent %+v", l)
	}
	if l := only[sched.Loss](k.tick(t, time.Millisecond)); len(l) != 0 {
		t.Errorf("sent again %+v", l)
	}
	if l := k.p.Loss(); l.Trace != 37 || len(b) != 1 || b[0].Records[0].Gap != 37 {
		t.Errorf("%+v, %+v", l, b)
	}
}
