//go:build linux

package probes

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"tsgtop/internal/rmdev/rmfake"
	"tsgtop/internal/sched"
)

// While somebody looks, the counters of a compute TSG become forced and
// voluntary switches in its score, and its process's copy TSGs say why they
// have none.
func TestLiveSwitches(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skip: needs root: observing a machine")
	}
	d := rmfake.New()
	g := d.AddGPU()
	// One that lives: what a process that has ended leaves is given up in a second.
	alive := exec.Command("sleep", "60")
	if err := alive.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { alive.Process.Kill(); alive.Wait() }()
	p := d.AddProcess(alive.Process.Pid, "train")
	p.Open(4)
	c := p.NewClient(4)
	tsgs := c.CUDA(g, 0x5c000000)
	c.SetSwitches(tsgs[0].Handle, rmfake.Switches{878, 878, 118, 0, 760, 0})
	l, err := NewLive(Options{system: d})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b := sched.NewBoard(l, sched.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	read := make(chan sched.SwitchCounters, 64)
	defer b.Tap(func(es []sched.Event) {
		for _, e := range es {
			if r, ok := e.(sched.SwitchCounters); ok {
				read <- r
			}
		}
	})()
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	<-l.Ready()
	for i := range b.Snapshot(sched.SnapshotOptions{}).TSGs {
		if why := b.Snapshot(sched.SnapshotOptions{}).TSGs[i].Score[sched.WindowAll].SwitchesWhy; why == "" {
			t.Error("switches before anybody looked")
		}
	}
	l.LookCounters(true)
	defer l.LookCounters(false)
	next := func() sched.SwitchCounters {
		select {
		case r := <-read:
			return r
		case <-time.After(30 * time.Second):
			t.Fatal("nothing was read in 30 s")
		}
		return sched.SwitchCounters{}
	}
	if r := next(); r.Save != 878 || r.Status != 0 {
		t.Errorf("first reading %+v", r)
	}
	c.SetSwitches(tsgs[0].Handle, rmfake.Switches{1126, 1126, 149, 0, 977, 0})
	next()
	snap := b.Snapshot(sched.SnapshotOptions{})
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	n := 0
	for i := range snap.TSGs {
		v := &snap.TSGs[i]
		sc := &v.Score[sched.Window10s]
		if v.Object.Handle != sched.Handle(tsgs[0].Handle) {
			if sc.Switches != nil || sc.SwitchesWhy == "" {
				t.Errorf("TSG %s: %+v %q", v.ID, sc.Switches, sc.SwitchesWhy)
			}
			continue
		}
		n++
		if sc.Switches == nil || sc.Switches.Forced != 217 || sc.Switches.Voluntary != 31 {
			t.Errorf("switches %+v %q, want 217 forced and 31 voluntary", sc.Switches, sc.SwitchesWhy)
		}
	}
	if n != 1 {
		t.Errorf("%d compute TSGs", n)
	}
}
