//go:build vmtest

package inside

import (
	"bufio"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"tsgtop/actions/kfunc"
	"tsgtop/bpf"
	"tsgtop/internal/sched"
)

// TestKfuncFuzz: no argument that a program can pass does anything to a TSG that
// was not meant, or to the kernel.
func TestKfuncFuzz(t *testing.T) {
	loadModel(t, "nvidia", "")
	loadTsgtop(t, "rate=1000000")
	c := startCUDA(t, 0)
	knobFor(t, "rpc_us", 0)
	var objs bpf.ActionObjects
	spec, err := bpf.LoadAction()
	if err != nil {
		t.Fatal(err)
	}
	if err := spec.Variables[bpf.ActionVarHaveKfunc].Set(true); err != nil {
		t.Fatal(err)
	}
	if err := spec.LoadAndAssign(&objs, nil); err != nil {
		t.Fatal(err)
	}
	defer objs.Close()
	rng := rand.New(rand.NewPCG(1, 2))
	pick := func(known ...uint32) uint32 {
		if n := rng.IntN(len(known) + 2); n < len(known) {
			return known[n]
		}
		return rng.Uint32() >> rng.IntN(32)
	}
	before := tsgRows(t)
	me := c.row(t)
	for i := range 1000 {
		a := bpf.ActionActionArgs{Id: uint64(i), Value: uint64(pick(0, 1, 2, 7, 200))<<rng.IntN(32) | uint64(pick(0, 1, 2)), Cookie: uint64(pick(0, 1, uint32(i)))}
		a.Op = bpf.ActionActionOp(pick(1, 2, 3, 4, 5, 6))
		a.LimitMs = pick(0, 1, 10)
		a.Target = bpf.ActionTsgtopTarget{Client: pick(c.client, 0, 0xc1e00001), Tsg: pick(c.tsg, c.client, c.device, c.channels[0]), Number: pick(0, me.number), Unique: me.unique + 1 + rng.Uint32N(1000)}
		if _, err := objs.Action.Run(&ebpf.RunOptions{Context: &a, ContextOut: &a}); err != nil {
			t.Fatalf("run %d: %v", i, err)
		}
		if a.Ran == 0 { // the ring is full: nobody reads it here
			if err := objs.Close(); err != nil {
				t.Fatal(err)
			}
			spec, err := bpf.LoadAction()
			if err != nil {
				t.Fatal(err)
			}
			if err := spec.Variables[bpf.ActionVarHaveKfunc].Set(true); err != nil {
				t.Fatal(err)
			}
			if err := spec.LoadAndAssign(&objs, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if after := tsgRows(t); fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("arguments with another's unique id changed something:\n%v\n%v", before, after)
	}
}

var chaosSteps = flag.Int("chaos", 200, "steps of TestKfuncChaos")

// TestKfuncChaos: random interleavings of commands, of the target's deaths and of
// unloads of either module: never an oops, never a change to another TSG.
func TestKfuncChaos(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	defer rmmod("nvidia")
	defer rmmod("tsgtop")
	must(insmod("nvidia", ""))
	knob(t, "rpc_us", 0)
	must(insmod("tsgtop", "rate=1000000"))
	nvidia, tsgtop := true, true
	var k *kfunc.Kfunc
	var c *cudaProcess
	var target sched.Target
	var err error
	did := map[string]int{}
	for steps := range *chaosSteps {
		switch n := rng.IntN(100); {
		case k == nil && tsgtop && n < 70:
			k, err = kfunc.Open()
			must(err)
		case c == nil && nvidia && n < 70:
			if c, err = newCUDA(0); err != nil {
				t.Fatal(err)
			}
			target = c.target(t)
		case n < 75 && k != nil:
			if nvidia && rng.IntN(8) == 0 { // slow calls are still under way when the next step comes
				knob(t, "rpc_us", []int{0, 1000, 5000, 30000}[rng.IntN(4)])
			}
			r, err := k.Do(uint64(steps+1), []sched.Op{sched.OpPreempt, sched.OpTimeslice, sched.OpInterleave}[rng.IntN(3)], target, uint64(1+rng.IntN(2)), false, time.Duration(rng.IntN(3))*time.Millisecond)
			must(err)
			did["command"]++
			switch {
			case r.Answered:
				did["answered"]++
			case r.Errno == syscall.EINPROGRESS:
				did["left under way"]++
			case r.Vanished():
				did["refused: the target is gone"]++
			default:
				did["refused: "+r.Why]++
			}
			if r.Answered && c == nil {
				t.Fatalf("step %d: answered for a dead target: %+v", steps, r)
			}
			if c != nil && nvidia && r.Errno != 0 && r.Errno != syscall.EINPROGRESS && r.Errno != syscall.EAGAIN {
				t.Fatalf("step %d: a live target refused: %+v", steps, r)
			}
		case n < 84 && c != nil:
			c.close()
			c = nil
			did["death"]++
		case n < 88 && k != nil:
			must(k.Close())
			k = nil
		case n < 94:
			if k != nil && rng.IntN(2) == 0 {
				must(k.Close())
				k = nil
			}
			if tsgtop && k == nil {
				must(rmmod("tsgtop")) // it may be asked again: calls in flight and dead programs hold it
				tsgtop = false
				did["unload tsgtop"]++
			} else if tsgtop {
				if unix.DeleteModule("tsgtop", unix.O_NONBLOCK) == nil {
					t.Fatal("tsgtop unloaded under a program")
				}
			} else {
				must(insmod("tsgtop", "rate=1000000"))
				tsgtop = true
			}
		default:
			if c != nil && rng.IntN(2) == 0 {
				c.close()
				c = nil
				did["death"]++
			}
			if nvidia && unix.DeleteModule("nvidia", unix.O_NONBLOCK) == nil {
				nvidia = false
				did["unload nvidia"]++
				if c != nil {
					t.Fatal("nvidia unloaded under an open file")
				}
			} else if !nvidia {
				must(insmod("nvidia", ""))
				knob(t, "rpc_us", 0)
				nvidia = true
			}
		}
	}
	t.Log(*chaosSteps, "steps:", did)
	if c != nil {
		c.close()
	}
	if k != nil {
		must(k.Close())
	}
	if did["command"] < 10 || did["death"] == 0 || did["unload tsgtop"] == 0 || did["unload nvidia"] == 0 || did["left under way"] == 0 || did["answered"] == 0 {
		t.Error("too little happened")
	}
}

// TestKfuncKill: a program that waits for RM dies with its process, at once.
func TestKfuncKill(t *testing.T) {
	if os.Getenv("KFUNC_KILL") != "" {
		k, err := kfunc.Open()
		if err != nil {
			t.Fatal(err)
		}
		var target sched.Target
		if _, err := fmt.Sscan(os.Getenv("KFUNC_KILL"), (*uint32)(&target.Object.Client), (*uint32)(&target.Object.Handle), &target.TSG); err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString("going\n")
		k.Do(1, sched.OpTimeslice, target, 400, false, time.Minute)
		return
	}
	loadModel(t, "nvidia", "")
	loadTsgtop(t, "")
	c := startCUDA(t, 0)
	target := c.target(t)
	knob(t, "hang_ms", 2000)
	cmd := exec.Command(os.Args[0], "-test.run=^TestKfuncKill$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("KFUNC_KILL=%d %d %d", target.Object.Client, target.Object.Handle, target.TSG))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for s := bufio.NewScanner(out); s.Scan() && s.Text() != "going"; {
	}
	for range 500 { // until the call is in the driver
		if b, _ := os.ReadFile("/sys/module/tsgtop/parameters/status"); len(b) > 0 && !containsLine(b, "calls in flight: 0") {
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if b, _ := os.ReadFile("/sys/module/tsgtop/parameters/status"); !containsLine(b, "calls in flight: 1") {
		t.Errorf("the process did not die before the call came back: %s", b)
	}
	knob(t, "hang_ms", 0)
}

func containsLine(b []byte, want string) bool {
	return slices.Contains(strings.Split(string(b), "\n"), want)
}
