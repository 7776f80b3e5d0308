//go:build vmtest

package inside

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tsgtop/internal/sched"
	"tsgtop/probes/xid"
)

// TestXid: an Xid that the driver tells by its tracepoint and in the kernel log
// comes once, with what each knows; let go, the log alone tells it and the
// module can be unloaded.
func TestXid(t *testing.T) {
	if err := insmod("nvidia", ""); err != nil {
		t.Fatal(err)
	}
	loaded := true
	t.Cleanup(func() {
		if loaded {
			_ = rmmod("nvidia")
		}
	})
	p, err := xid.Open(xid.Options{GPUByPCI: func(string) int { return 5 }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	if s := p.Status(); s.State != sched.ProbeOK || s.Why != "" {
		t.Errorf("status %+v", s)
	}
	c := runProbe(t, p.Run)
	xids := func(n int) []sched.Xid {
		t.Helper()
		var found []sched.Xid
		for range 300 {
			found = nil
			c.mu.Lock()
			for _, e := range c.events {
				if x, ok := e.(sched.Xid); ok {
					found = append(found, x)
				}
			}
			c.mu.Unlock()
			if len(found) >= n {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(500 * time.Millisecond) // a second telling would come in this time
		return found
	}

	knob(t, "xid", "0 79 pid=1234, name=train.py, Ch 00000008, GPU has fallen off the bus.")
	found := xids(1)
	if len(found) != 1 {
		t.Fatalf("told as %+v, want it once", found)
	}
	x := found[0]
	if x.Code != 79 || x.From != "tracepoint" || x.PID != 1234 || x.Name != "train.py" || x.Channel == nil || *x.Channel != 8 || x.GPU != 5 || x.PCI == "" || x.Time == 0 {
		t.Errorf("%+v", x)
	}

	if err := rmmodNow("nvidia"); !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EBUSY) {
		t.Errorf("unloading the driver under the tracepoint: %v", err)
	}
	p.Release()
	if s := p.Status(); s.State != sched.ProbeReleased {
		t.Errorf("status after Release: %+v", s)
	}
	c.mu.Lock()
	c.events = nil
	c.mu.Unlock()
	knob(t, "xid", "0 13 pid=99, name=a, Graphics Exception")
	if found := xids(1); len(found) != 1 || found[0].Code != 13 || found[0].From != "kernel log" || found[0].PID != 99 {
		t.Errorf("told by the log as %+v", found)
	}
	if err := rmmod("nvidia"); err != nil {
		t.Errorf("unloading the driver after Release: %v", err)
	}
	loaded = false
}
