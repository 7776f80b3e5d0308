//go:build linux

package actions

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tsgtop/actions/audit"
	"tsgtop/actions/journal"
	"tsgtop/internal/sched"
)

// kill -9 at random moments leaves nothing changed. TSGTOP_KILLS says how often;
// 40 by default.
func TestKillLeavesNothingChanged(t *testing.T) {
	kills := 40
	if n, err := strconv.Atoi(os.Getenv("TSGTOP_KILLS")); err == nil {
		kills = n
	} else if testing.Short() {
		kills = 5
	}
	dir, g := newGPU(t)
	r := rand.New(rand.NewPCG(1, 2))
	changed := 0
	for i := range kills {
		cmd := startVictim(t, dir, g)
		time.Sleep(time.Duration(r.IntN(20000)) * time.Microsecond)
		cmd.Process.Kill()
		if g.value(sched.OpTimeslice) != 2048 || g.value(sched.OpInterleave) != 0 {
			changed++
		}
		cmd.Wait()
		slice, level, left := restored(t, dir, g)
		if slice != 2048 || level != 0 || left != 0 {
			t.Fatalf("kill %d: timeslice %d us, interleave %d, %d entries in the journal", i, slice, level, left)
		}
	}
	if changed < kills/4 {
		t.Errorf("only %d of %d kills came while something was changed: the test does not test", changed, kills)
	}
	t.Logf("%d kills, %d of them while something was changed", kills, changed)
}

// What ends a terminal, a session or a process group does not end the watcher.
func TestWatcherOutlivesTheSession(t *testing.T) {
	dir, g := newGPU(t)
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		cmd := startVictim(t, dir, g)
		// The whole process group, as the kernel does when a terminal goes away. The
		// victim has no handler and dies by it.
		if err := syscall.Kill(-cmd.Process.Pid, sig); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		if slice, level, left := restored(t, dir, g); slice != 2048 || level != 0 || left != 0 {
			t.Fatalf("%v: timeslice %d us, interleave %d, %d entries", sig, slice, level, left)
		}
	}
}

// The watcher goes home when there is nothing left to restore, and ignores the
// signals that a terminal sends.
func TestWatcherIsDismissed(t *testing.T) {
	dir, _ := newGPU(t)
	j, err := journal.Open(filepath.Join(dir, "journal"))
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	self, _ := journal.Self()
	w, err := startWatcher(j, self, "", "stay")
	if err != nil {
		t.Fatal(err)
	}
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM} {
		if err := w.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(20 * time.Millisecond)
	if !w.alive() {
		t.Fatal("a signal of the terminal's ended the watcher")
	}
	if sid, err := unix.Getsid(w.cmd.Process.Pid); err != nil || sid != w.cmd.Process.Pid {
		t.Errorf("it is in session %d, %v", sid, err)
	}
	w.dismiss()
	for range 2000 {
		if !w.alive() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Error("it did not go home")
}

// A value that would be changed with nobody to put it back is not changed.
func TestNoWatcherNoChange(t *testing.T) {
	dir, g := newGPU(t)
	self, _ := journal.Self()
	c, j, err := fileController(dir, g, self, func(o *Options) { o.Watch, o.WatchArgs = true, []string{"stay"} })
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	// The watcher cannot open the journal: it does not come up.
	os.Chmod(dir, 0o777)
	p, err := c.Prepare(Intent{Op: sched.OpTimeslice, Gen: 1, Value: sched.Ptr(uint64(200))})
	if err != nil {
		t.Fatal(err)
	}
	id, err := c.Submit(p)
	if err != nil {
		t.Fatal(err)
	}
	cmd, _ := c.Wait(context.Background(), id)
	if cmd.Step != sched.StepRefused || !errors.Is(c.Refusal(id), ErrNoWatcher) || g.value(sched.OpTimeslice) != 2048 {
		t.Errorf("%+v, %v", cmd, c.Refusal(id))
	}
}

// A second tsgtop on the same TSG: one command at a time, and the first
// original comes back when the last of them ends.
func TestTwoTsgtops(t *testing.T) {
	send := func(t *testing.T, c *Controller, us uint64) sched.Command {
		t.Helper()
		p, err := c.Prepare(Intent{Op: sched.OpTimeslice, Gen: 1, Value: &us})
		if err != nil {
			t.Fatal(err)
		}
		id, err := c.Submit(p)
		if err != nil {
			t.Fatal(err)
		}
		cmd, _ := c.Wait(context.Background(), id)
		return cmd
	}
	self, _ := journal.Self()
	start, err := journal.ProcessStart(os.Getppid())
	if err != nil {
		t.Fatal(err)
	}
	other := journal.Owner{PID: os.Getppid(), Start: start} // another process that runs
	two := func(t *testing.T) (a, b *Controller, ja *journal.Journal, g fileGPU) {
		dir, g := newGPU(t)
		a, ja, err := fileController(dir, g, self, nil)
		if err != nil {
			t.Fatal(err)
		}
		b, jb, err := fileController(dir, g, other, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ja.Close(); jb.Close() })
		return a, b, ja, g
	}
	state := func(c *Controller) OutcomeState { return c.Close(context.Background())[0].State }
	t.Run("the first ends first", func(t *testing.T) {
		a, b, _, g := two(t)
		send(t, a, 200)
		p, err := b.Prepare(Intent{Op: sched.OpTimeslice, Gen: 1, Value: sched.Ptr(uint64(500))})
		if err != nil || !strings.Contains(strings.Join(p.Warnings, " "), "another tsgtop") {
			t.Errorf("no warning of the other: %v, %v", p.Warnings, err)
		}
		send(t, b, 500)
		if s := state(a); g.value(sched.OpTimeslice) != 500 {
			t.Errorf("%s, %d us: the second's value is gone", s, g.value(sched.OpTimeslice))
		}
		if s := state(b); g.value(sched.OpTimeslice) != 2048 || s != OutcomeRestored {
			t.Errorf("%s, %d us", s, g.value(sched.OpTimeslice))
		}
	})
	t.Run("the second ends first", func(t *testing.T) {
		a, b, _, g := two(t)
		send(t, a, 200)
		send(t, b, 500)
		if s := state(b); g.value(sched.OpTimeslice) != 200 || s != OutcomeRestored {
			t.Errorf("%s, %d us: the first's value is not back", s, g.value(sched.OpTimeslice))
		}
		if s := state(a); g.value(sched.OpTimeslice) != 2048 || s != OutcomeRestored {
			t.Errorf("%s, %d us", s, g.value(sched.OpTimeslice))
		}
	})
	t.Run("the first dies", func(t *testing.T) {
		a, b, j, g := two(t)
		send(t, a, 200)
		send(t, b, 500)
		// As its watcher would.
		if _, err := RestoreOf(context.Background(), g, j, self, false); err != nil || g.value(sched.OpTimeslice) != 500 {
			t.Errorf("%v, %d us", err, g.value(sched.OpTimeslice))
		}
		if s := state(b); g.value(sched.OpTimeslice) != 2048 || s != OutcomeRestored {
			t.Errorf("%s, %d us", s, g.value(sched.OpTimeslice))
		}
	})
	t.Run("at once", func(t *testing.T) {
		a, b, _, g := two(t)
		hang := make(chan struct{})
		a.o.Actuator = slow{g, hang}
		p, err := a.Prepare(Intent{Op: sched.OpTimeslice, Gen: 1, Value: sched.Ptr(uint64(200))})
		if err != nil {
			t.Fatal(err)
		}
		id, err := a.Submit(p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Submit(p); !errors.Is(err, journal.ErrBusy) {
			t.Errorf("the second's command was taken: %v", err)
		}
		close(hang)
		a.Wait(context.Background(), id)
		send(t, b, 500)
		if g.value(sched.OpTimeslice) != 500 {
			t.Errorf("%d us", g.value(sched.OpTimeslice))
		}
	})
}

// Killed between the journal's line for a second command and its call: the
// hardware has the first command's value still, and it is ours.
func TestKilledBetweenJournalAndCall(t *testing.T) {
	dir, g := newGPU(t)
	self, _ := journal.Self()
	hang := make(chan struct{})
	c, j, err := fileController(dir, g, self, nil)
	if err != nil {
		t.Fatal(err)
	}
	send := func(us uint64) string {
		t.Helper()
		p, err := c.Prepare(Intent{Op: sched.OpTimeslice, Gen: 1, Value: &us})
		if err != nil {
			t.Fatal(err)
		}
		id, err := c.Submit(p)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	c.Wait(context.Background(), send(200))
	c.o.Actuator = slow{g, hang}
	second := send(500)
	defer func() { // what hangs writes to the journal still, whose folder goes
		close(hang)
		c.Wait(context.Background(), second)
	}()
	for i := 0; ; i++ {
		s, err := j.State()
		if err != nil || i > 5000 {
			t.Fatalf("the second command is not in the journal: %+v, %v", s, err)
		}
		if len(s.Entries) == 1 && s.Entries[0].Holds[0].Value == 500 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	out, err := RestoreOf(context.Background(), g, j, self, false)
	if err != nil || len(out) != 1 || out[0].State != OutcomeRestored || g.value(sched.OpTimeslice) != 2048 {
		t.Errorf("%+v, %v, %d us", out, err, g.value(sched.OpTimeslice))
	}
}

// What cannot be written down is not sent; a result that cannot be is said.
func TestAuditAndJournalMustBeWritable(t *testing.T) {
	self, _ := journal.Self()
	run := func(t *testing.T, full string) (sched.Command, fileGPU, *audit.Log) {
		dir, g := newGPU(t)
		path := filepath.Join(dir, "audit")
		if full == "audit" {
			small := rootDir(t)
			mountSmall(t, small)
			path = filepath.Join(small, "audit")
		}
		log, err := audit.Open(path, "test")
		if err != nil {
			t.Fatal(err)
		}
		if full == "audit" {
			fill(t, filepath.Dir(path))
		}
		jdir := dir
		if full == "journal" {
			jdir = rootDir(t)
			mountSmall(t, jdir)
		}
		c, j, err := fileController(jdir, g, self, func(o *Options) { o.Audit = log })
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { j.Close(); log.Close() })
		if full == "journal" {
			fill(t, jdir)
		}
		p, err := c.Prepare(Intent{Op: sched.OpTimeslice, Gen: 1, Value: sched.Ptr(uint64(200))})
		if err != nil {
			t.Fatal(err)
		}
		id, err := c.Submit(p)
		if err != nil {
			t.Fatal(err)
		}
		cmd, _ := c.Wait(context.Background(), id)
		c.Close(context.Background())
		return cmd, g, log
	}
	for _, full := range []string{"audit", "journal"} {
		cmd, g, _ := run(t, full)
		if cmd.Step != sched.StepRefused || cmd.Calls.Sent != 0 || g.value(sched.OpTimeslice) != 2048 || !strings.Contains(cmd.Why, "no space left") || !strings.Contains(cmd.Why, full) {
			t.Errorf("%s full: %+v", full, cmd)
		}
	}
	cmd, _, log := run(t, "")
	if cmd.Step != sched.StepUndone && cmd.Step != sched.StepJudged {
		t.Errorf("%+v", cmd)
	}
	b, err := os.ReadFile(log.Path())
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	for i, want := range []string{`"event":"intent"`, `"event":"result"`, `"event":"undo"`} {
		if i >= len(lines) || !strings.Contains(lines[i], want) || !strings.Contains(lines[i], cmd.ID) {
			t.Errorf("line %d: no %s in\n%s", i, want, b)
		}
	}
	if !strings.Contains(lines[1], `"accepted":{"state":"yes"`) || !strings.Contains(lines[1], `"old":2048`) || !strings.Contains(lines[1], `"took_ms"`) {
		t.Errorf("result: %s", lines[1])
	}
}

func mountSmall(t *testing.T, dir string) {
	t.Helper()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=32k,mode=700"); err != nil {
		if os.Geteuid() == 0 && !errors.Is(err, unix.EPERM) {
			t.Fatal(err)
		}
		t.Skip("skip: mount: a small disk needs CAP_SYS_ADMIN")
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
}

// fill leaves no room on a disk.
func fill(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
}
