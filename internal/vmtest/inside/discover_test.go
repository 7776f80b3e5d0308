//go:build vmtest

package inside

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"tsgtop/internal/rmdev"
	"tsgtop/internal/sched"
	"tsgtop/probes/discover"
)

func newDiscoverer(t *testing.T) *discover.Discoverer {
	t.Helper()
	d := discover.New(rmdev.New(nil), discover.Options{Budget: 10 * time.Second}) // emulation is slow
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func full(t *testing.T, d *discover.Discoverer) sched.Inventory {
	t.Helper()
	inv, err := d.Full(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

// has says whether the inventory has all of a process's TSGs and channels, right.
func has(inv sched.Inventory, rows []tsgRow, p *process, gpu int) error {
	i := slices.IndexFunc(inv.Clients, func(c sched.FoundClient) bool { return uint32(c.Client) == p.Client })
	if i < 0 {
		return fmt.Errorf("client %x of pid %d was not found", p.Client, p.PID)
	}
	if c := inv.Clients[i]; c.PID != p.PID || c.GPU != gpu {
		return fmt.Errorf("client: %+v, want pid %d, GPU %d", c, p.PID, gpu)
	}
	for _, handle := range append([]uint32{p.TSG}, p.CopyTSGs...) {
		i := slices.IndexFunc(inv.TSGs, func(x sched.FoundTSG) bool {
			return uint32(x.Client) == p.Client && uint32(x.Handle) == handle
		})
		r := slices.IndexFunc(rows, func(x tsgRow) bool { return x.client == p.Client && x.tsg == handle })
		if i < 0 || r < 0 {
			return fmt.Errorf("TSG %x of pid %d was not found", handle, p.PID)
		}
		got, want := inv.TSGs[i], rows[r]
		if got.Number == nil || *got.Number != want.number || got.UniqueID == nil || *got.UniqueID != want.unique ||
			got.Runlist != int(want.runlist) || got.GPU != gpu || got.Timeslice == nil || *got.Timeslice != want.timeslice || got.PID != p.PID {
			return fmt.Errorf("TSG %x: found %+v, want %+v", handle, got, want)
		}
	}
	for i, handle := range p.Channels {
		j := slices.IndexFunc(inv.Channels, func(x sched.FoundChannel) bool {
			return uint32(x.Client) == p.Client && uint32(x.Handle) == handle
		})
		if j < 0 {
			return fmt.Errorf("channel %x of pid %d was not found", handle, p.PID)
		}
		if c := inv.Channels[j]; uint32(c.TSG) != p.TSG || c.Class != 0xc86f || c.Context == nil || *c.Context != p.Contexts[i] || c.Runlist == nil || *c.Runlist != 0 {
			return fmt.Errorf("channel %x: %+v", handle, c)
		}
	}
	return nil
}

// TestDiscover: what ran before is found whole, on each GPU and of each user, also
// inside a pid namespace, without a line in the kernel log.
func TestDiscover(t *testing.T) {
	loadModel(t, "nvidia", "gpus=8")
	mark := markLog(t)
	a := startProcess(t, 0, nil)
	b := startProcess(t, 5, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}})
	c := startProcess(t, 0, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS})
	d := newDiscoverer(t)
	inv, rows := full(t, d), tsgRows(t)
	for _, x := range []struct {
		p   *process
		gpu int
	}{{a, 0}, {b, 5}, {c, 0}} {
		if err := has(inv, rows, x.p, x.gpu); err != nil {
			t.Error(err)
		}
	}
	if len(inv.TSGs) != 12 {
		t.Errorf("%d TSGs found, want 12", len(inv.TSGs))
	}
	gpus, err := d.GPUs(context.Background())
	if err != nil || len(gpus) != 8 || gpus[0].PCI == "" || len(gpus[5].Runlists) == 0 {
		t.Errorf("GPUs: %+v, %v", gpus, err)
	}
	a.end()
	if inv := full(t, d); has(inv, tsgRows(t), a, 0) == nil {
		t.Error("a process that ended is still found")
	}
	if log := dmesgSince(t, mark); containsModelLine(log) {
		t.Errorf("the scan wrote to the kernel log: %s", log)
	}
}

// TestDiscoverWrap: clients' handles are an index of 20 bits that wraps.
func TestDiscoverWrap(t *testing.T) {
	loadModel(t, "nvidia", "")
	knob(t, "next_client", "0xffffe")
	mark := markLog(t)
	a := startProcess(t, 0, nil)
	b := startProcess(t, 0, nil)
	c := startProcess(t, 0, nil)
	inv, rows := full(t, newDiscoverer(t)), tsgRows(t)
	for _, p := range []*process{a, b, c} {
		if err := has(inv, rows, p, 0); err != nil {
			t.Error(err)
		}
	}
	if log := dmesgSince(t, mark); containsModelLine(log) {
		t.Errorf("the scan wrote to the kernel log: %s", log)
	}
}

// TestBorrow: a call through the borrowed file is taken, through our own it is not;
// the descriptor is gone when the process is, and the driver unloads.
func TestBorrow(t *testing.T) {
	loadModel(t, "nvidia", "")
	p := startProcess(t, 0, nil)
	rm := rmdev.New(nil)
	dev, err := rm.Open()
	if err != nil {
		t.Fatal(err)
	}
	if st, err := dev.ControlOn(p.Client, p.TSG, 0xa06c0106, make([]byte, 4)); err != nil || st != statusInvalidClient {
		t.Errorf("another's client through our own file: %#x, %v", st, err)
	}
	b, err := rm.Borrow(p.PID, p.CtlFD)
	if err != nil {
		t.Fatal(err)
	}
	if st, err := b.Control(p.Client, p.TSG, 0xa06c0103, le.AppendUint64(nil, 640)); err != nil || st != 0 {
		t.Errorf("through the borrowed file: %#x, %v", st, err)
	}
	if i := slices.IndexFunc(tsgRows(t), func(r tsgRow) bool { return r.client == p.Client && r.effective == 640 }); i < 0 {
		t.Error("the borrowed call changed nothing")
	}
	p.end() // our descriptor is now the last one
	b.Close()
	rm.WaitCloses()
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
	if i := slices.IndexFunc(tsgRows(t), func(r tsgRow) bool { return r.client == p.Client }); i >= 0 {
		t.Error("the dead process's client lives on")
	}
	if _, err := rm.Borrow(p.PID, p.CtlFD); err == nil {
		t.Error("borrowed from a dead process")
	}
}

// TestRelease: let go, the driver unloads; taken again, all is found again.
func TestRelease(t *testing.T) {
	loadModel(t, "nvidia", "")
	d := newDiscoverer(t)
	full(t, d)
	if err := rmmodNow("nvidia"); err == nil {
		t.Error("unloaded under an open device")
	}
	d.Release()
	if _, err := d.Full(context.Background()); !errors.Is(err, discover.ErrReleased) {
		t.Errorf("a scan while released: %v", err)
	}
	if err := rmmod("nvidia"); err != nil {
		t.Fatal(err)
	}
	if err := insmod("nvidia", ""); err != nil {
		t.Fatal(err)
	}
	d.Resume()
	p := startProcess(t, 0, nil)
	if err := has(full(t, d), tsgRows(t), p, 0); err != nil {
		t.Error(err)
	}
}
