//go:build linux

package actions

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tsgtop/actions/journal"
	"tsgtop/internal/sched"
)

// The test binary is also the victim that is killed, and its watcher.
func TestMain(m *testing.M) {
	switch {
	case IsWatch():
		os.Exit(watch(os.Args[2:], func(j *journal.Journal, self journal.Owner) (Actuator, error) {
			return metered{fileGPU{os.Getenv("TSGTOP_TEST_GPU")}, j, self}, nil
		}))
	case os.Getenv("TSGTOP_TEST_VICTIM") != "":
		os.Exit(victim(os.Getenv("TSGTOP_TEST_VICTIM"), os.Getenv("TSGTOP_TEST_GPU")))
	}
	os.Exit(m.Run())
}

// fileGPU is hardware that outlives every process: a file of two numbers, the
// timeslice and the interleave level.
type fileGPU struct{ path string }

// metered is one with an RPC meter, which the journal alone knows of.
type metered struct {
	fileGPU
	j    *journal.Journal
	self journal.Owner
}

func (m metered) MeterOff() error { return m.j.Meter(m.self, false) }

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
