//go:build linux

package actions

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tsgtop/actions/audit"
	"tsgtop/actions/journal"
	"tsgtop/internal/sched"
)

// The test binary is also the victim that is killed, and its watcher.
func TestMain(m *testing.M) {
	switch {
	case IsWatch():
		os.Exit(watch(os.Args[2:], func(*journal.Journal, journal.Owner) (Actuator, error) {
			return fileGPU{os.Getenv("TSGTOP_TEST_GPU")}, nil
		}))
	case os.Getenv("TSGTOP_TEST_VICTIM") != "":
		os.Exit(victim(os.Getenv("TSGTOP_TEST_VICTIM"), os.Getenv("TSGTOP_TEST_GPU")))
	}
	os.Exit(m.Run())
}

// fileGPU is hardware that outlives every process: a file of two numbers, the
// timeslice and the interleave level.
type fileGPU struct{ path string }

func (g fileGPU) Name() string { return "file" }
func (g fileGPU) Why() string  { return "" }
func (g fileGPU) Release()     {}

func (g fileGPU) Counters(context.Context, sched.Target) *Counters { return nil }

func offset(op sched.Op) int64 {
	if op == sched.OpInterleave {
		return 8
	}
	return 0
}

func (g fileGPU) value(op sched.Op) uint64 {
	f, err := os.Open(g.path)
	if err != nil {
		return 1<<64 - 1
	}
	defer f.Close()
	var b [8]byte
	f.ReadAt(b[:], offset(op))
	return binary.LittleEndian.Uint64(b[:])
}

func (g fileGPU) set(op sched.Op, v uint64) {
	f, err := os.OpenFile(g.path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	f.WriteAt(binary.LittleEndian.AppendUint64(nil, v), offset(op))
}

func (g fileGPU) Inspect(_ context.Context, t sched.Target) (Inspection, error) {
	return Inspection{Target: t, Timeslice: sched.Ptr(g.value(sched.OpTimeslice))}, nil
}

func (g fileGPU) Do(_ context.Context, q Request) Result {
	if q.Expect != nil && g.value(q.Op) != *q.Expect {
		return Result{Err: ErrMoved}
	}
	start := sched.Now()
	g.set(q.Op, q.Value)
	time.Sleep(300 * time.Microsecond) // it is done, and RM has not answered yet
	return Result{Sent: true, Answered: true, Start: start, End: sched.Now(), RPC: RPC{Exact: true, Seen: true, Took: 300 * time.Microsecond},
		Ran: Ran{Have: true, Entry: true, Exit: true}}
}

// still is a board with one TSG, on which nothing happens.
type still struct {
	mu       sync.Mutex
	commands []sched.Command
}

var fileTarget = sched.Object{Client: 0xc1d00007, Handle: 0x5c000015}

func (b *still) Snapshot(sched.SnapshotOptions) *sched.Snapshot {
	return &sched.Snapshot{TSGs: []sched.TSGView{{Gen: 1, ID: first, Object: fileTarget, UniqueID: sched.Ptr(uint32(11)),
		Interleave: sched.Ptr(uint32(0)), Process: sched.Process{PID: 479, Start: 5, User: "ada"}}}}
}

func (b *still) Tap(func([]sched.Event)) func() { return func() {} }

func (b *still) Feed(es []sched.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range es {
		if c, ok := e.(sched.Command); ok {
			b.commands = append(b.commands, c)
		}
	}
}

// fileController is a controller on the file's GPU, with the journal in dir.
func fileController(dir string, g fileGPU, self journal.Owner, change func(*Options)) (*Controller, *journal.Journal, error) {
	j, err := journal.Open(filepath.Join(dir, "journal"))
	if err != nil {
		return nil, nil, err
	}
	o := Options{Board: &still{}, Actuator: g, Journal: j, Clock: WallClock{}, Self: self, Me: "ada"}
	if change != nil {
		change(&o)
	}
	c := New(o)
	return c, j, c.Arm(true)
}

// victim sends commands and undoes some, until it is killed.
func victim(dir, gpu string) int {
	self, _ := journal.Self()
	c, _, err := fileController(dir, fileGPU{gpu}, self, func(o *Options) { o.Watch, o.WatchArgs = true, []string{"stay"} })
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	r := rand.New(rand.NewPCG(uint64(self.PID), self.Start))
	for n := 0; ; n++ {
		in := Intent{Op: sched.OpTimeslice, Gen: 1, Value: sched.Ptr(100 + r.Uint64N(10000))}
		if r.IntN(3) == 0 {
			in = Intent{Op: sched.OpInterleave, Gen: 1, Value: sched.Ptr(r.Uint64N(3))}
		}
		p, err := c.Prepare(in)
		if err != nil {
			fmt.Fprintln(os.Stderr, "prepare:", err)
			return 1
		}
		id, err := c.Submit(p)
		if err != nil {
			fmt.Fprintln(os.Stderr, "submit:", err)
			return 1
		}
		if cmd, err := c.Wait(context.Background(), id); err != nil || cmd.Step == sched.StepRefused && !strings.Contains(cmd.Why, ErrMoved.Error()) {
			fmt.Fprintln(os.Stderr, "command:", cmd.Why, err)
			return 1
		}
		if n == 0 {
			fmt.Println("ready")
		}
		for r.IntN(2) == 0 && c.Undo("") == nil {
		}
	}
}

// startVictim starts one in a session of its own, and waits until it has
// changed something.
func startVictim(t *testing.T, dir string, g fileGPU) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TSGTOP_TEST_VICTIM="+dir, "TSGTOP_TEST_GPU="+g.path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	one := make([]byte, 1)
	if n, _ := out.Read(one); n != 1 {
		cmd.Wait()
		t.Fatalf("the victim did not come up: %s", stderr.String())
	}
	return cmd
}

// restored waits until the journal is empty and says what the hardware has.
func restored(t *testing.T, dir string, g fileGPU) (slice, level uint64, left int) {
	t.Helper()
	j, err := journal.Open(filepath.Join(dir, "journal"))
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for range 3000 {
		s, err := j.State()
		if err != nil {
			t.Fatal(err)
		}
		if left = len(s.Entries); left == 0 {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	return g.value(sched.OpTimeslice), g.value(sched.OpInterleave), left
}

func newGPU(t *testing.T) (dir string, g fileGPU) {
	t.Helper()
	dir = rootDir(t)
	g = fileGPU{filepath.Join(dir, "gpu")}
	g.set(sched.OpTimeslice, 2048)
	g.set(sched.OpInterleave, 0)
	return dir, g
}

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
