//go:build linux

package actions

import (
	"context"
	"strings"
	"testing"

	"tsgtop/actions/journal"
	"tsgtop/internal/sched"
)

// What a run left behind that was killed together with its watcher is put back
// at the next start, and named.
func TestRecover(t *testing.T) {
	dir, g := newGPU(t)
	self, _ := journal.Self()
	c, j, err := fileController(dir, g, self, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	dead := journal.Owner{PID: 1 << 22, Start: 7}
	tgt := targetOf(&c.o.Board.Snapshot(sched.SnapshotOptions{}).TSGs[0])
	hold := func() {
		j.Hold(sched.OpTimeslice, tgt, sched.Ptr(uint64(2048)), journal.Hold{Owner: dead, Command: "old", Value: 200, Before: 2048, Actuator: "file"})
		g.set(sched.OpTimeslice, 200)
	}
	hold()
	ro, jr, err := fileController(dir, g, self, func(o *Options) { o.ReadOnly = "--read-only was given" })
	if err == nil {
		t.Fatal("armed")
	}
	defer jr.Close()
	out, err := ro.Recover(context.Background())
	if err != nil || len(out) != 1 || out[0].State != OutcomeFailed || g.value(sched.OpTimeslice) != 200 {
		t.Errorf("read-only: %+v, %v", out, err)
	}
	dry, jd, err := fileController(dir, g, self, func(o *Options) { o.DryRun = true })
	if err != nil {
		t.Fatal(err)
	}
	defer jd.Close()
	out, err = dry.Recover(context.Background())
	if err != nil || len(out) != 1 || out[0].State != OutcomeFailed || !strings.Contains(out[0].Why, "dry run") || g.value(sched.OpTimeslice) != 200 {
		t.Errorf("a dry run: %+v, %v, %d us", out, err, g.value(sched.OpTimeslice))
	}
	j.Keep(sched.OpTimeslice, tgt, dead)
	if out, err = ro.Recover(context.Background()); err != nil || len(out) != 1 || out[0].State != OutcomeKept {
		t.Errorf("kept on purpose: %+v, %v", out, err)
	}
	hold()
	out, err = c.Recover(context.Background())
	if err != nil || len(out) != 1 || out[0].State != OutcomeRestored || g.value(sched.OpTimeslice) != 2048 || out[0].Commands[0] != "old" {
		t.Errorf("%+v, %v, %d us", out, err, g.value(sched.OpTimeslice))
	}
	hold()
	g.set(sched.OpTimeslice, 777)
	out, err = c.Recover(context.Background())
	if err != nil || len(out) != 1 || out[0].State != OutcomeForeign || g.value(sched.OpTimeslice) != 777 {
		t.Errorf("set since by its process: %+v, %v", out, err)
	}
}
