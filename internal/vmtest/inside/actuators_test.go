//go:build vmtest

package inside

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"tsgtop/actions"
	"tsgtop/actions/journal"
	"tsgtop/internal/rmdev"
	"tsgtop/internal/sched"
	"tsgtop/probes/rmcalls"
)

// ranWitness is the probe of RM calls as what sees our own.
type ranWitness struct{ p *rmcalls.Probe }

func (w ranWitness) Expect(id uint64, command string, tid, fd int, arg, params uintptr) error {
	return w.p.Expect(rmcalls.Expected{ID: id, Command: command, TID: tid, FD: fd, Arg: arg, Params: params})
}

func (w ranWitness) Forget(tid int) { w.p.Forget(tid) }

func (w ranWitness) Wait(id uint64, limit time.Duration) (actions.OwnCall, error) {
	out, err := w.p.WaitOwn(id, rmcalls.OwnExit, limit)
	in, entryErr := w.p.WaitOwn(id, rmcalls.OwnEntry, 0)
	c := actions.OwnCall{Entry: entryErr == nil, Exit: err == nil, At: in.Time}
	if err == nil {
		c.Took, c.Read, c.Number, c.Client, c.Object, c.Status = out.Duration, out.Read, out.Number, out.Client, out.Object, out.Status
	}
	return c, err
}

// actuators gives both, usable.
func actuators(t *testing.T) map[string]actions.Actuator {
	t.Helper()
	j, err := journal.Open(filepath.Join(t.TempDir(), "journal"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	self, err := journal.Self()
	if err != nil {
		t.Fatal(err)
	}
	p := openProbe(t, rmcalls.Auto)
	runProbe(t, p.Run)
	fd := actions.NewFD(rmdev.New(nil), j, self, ranWitness{p}, "")
	out := map[string]actions.Actuator{"fd": fd, "kfunc": actions.NewKFunc(fd)}
	for name, a := range out {
		if why := a.Why(); why != "" {
			t.Fatalf("%s: %s", name, why)
		}
		t.Cleanup(a.Release)
	}
	return out
}

// targetOf is a process's compute TSG as discovery would give it.
func targetOf(t *testing.T, p *process) sched.Target {
	t.Helper()
	for _, r := range tsgRows(t) {
		if r.client == p.Client && r.tsg == p.TSG {
			return sched.Target{TSGID: sched.TSGID{GPU: r.gpu, Runlist: int(r.runlist), TSG: int(r.number)},
				Object:   sched.Object{Client: sched.Handle(r.client), Handle: sched.Handle(r.tsg)},
				UniqueID: &r.unique, Contexts: p.Contexts, PID: p.PID}
		}
	}
	t.Fatal("no such TSG")
	return sched.Target{}
}

func effective(t *testing.T, p *process) tsgRow {
	t.Helper()
	for _, r := range tsgRows(t) {
		if r.client == p.Client && r.tsg == p.TSG {
			return r
		}
	}
	t.Fatal("no such TSG")
	return tsgRow{}
}

// TestActuators: both actuators give the same answers about the same misbehaviour,
// each with its witnesses: that the call ran, what RM said, whether the GSP was asked.
func TestActuators(t *testing.T) {
	loadModel(t, "nvidia", "")
	loadTsgtop(t, "")
	p := startProcess(t, 0, nil)
	target := targetOf(t, p)
	knob(t, "rpc_us", 20000) // so that emulation's own slowness is small beside it
	id := uint64(100)
	for name, a := range actuators(t) {
		t.Run(name, func(t *testing.T) {
			do := func(op sched.Op, value uint64, expect *uint64) actions.Result {
				id++
				return a.Do(context.Background(), actions.Request{ID: id, Command: fmt.Sprint("c", id), Op: op, Target: target, Value: value, Expect: expect, Wait: true, MeterRPC: true})
			}
			in, err := a.Inspect(context.Background(), target)
			if err != nil || in.Timeslice == nil || *in.Timeslice != effective(t, p).timeslice || in.Target.UniqueID == nil || *in.Target.UniqueID != *target.UniqueID {
				t.Fatalf("inspect: %+v, %v", in, err)
			}
			for _, x := range []struct {
				what         string
				mode, status uint32
				want         uint32
				rpc          bool
				changed      bool
			}{
				{"obey", 0, 0, 0, true, true},
				{"ignore", 1, 0, 0, true, false},
				{"stub", 2, 0, 0, false, false},
				{"refused by the GSP", 3, 0x56, 0x56, true, false},
				{"refused by the driver", 4, 0x56, 0x56, false, false},
				{"a status that nobody knows", 3, 0xabcd, 0xabcd, true, false},
			} {
				knob(t, "timeslice_mode", x.mode)
				knob(t, "status", fmt.Sprintf("%#x", x.status))
				before := effective(t, p).effective
				r := do(sched.OpTimeslice, before+100, nil)
				knob(t, "timeslice_mode", 0)
				if !r.Sent || !r.Answered || r.Err != nil || r.Status != x.want {
					t.Errorf("%s: %+v", x.what, r)
				}
				if !r.Ran.Have || !r.Ran.Entry || !r.Ran.Exit || r.Ran.Other != "" {
					t.Errorf("%s: RAN: %+v", x.what, r.Ran)
				}
				if !r.RPC.Exact || r.RPC.Seen != x.rpc {
					t.Errorf("%s: the GSP's witness: %+v, want seen %v", x.what, r.RPC, x.rpc)
				}
				if x.rpc && (r.RPC.Took < 20*time.Millisecond || r.RPC.Start < r.Start || r.RPC.Start.Add(r.RPC.Took) > r.End.Add(time.Millisecond)) {
					t.Errorf("%s: the RPC's time: %+v in %d..%d", x.what, r.RPC, r.Start, r.End)
				}
				if now := effective(t, p).effective; (now == before+100) != x.changed || !x.changed && now != before {
					t.Errorf("%s: the hardware does %d, was %d", x.what, now, before)
				}
			}
			n := effective(t, p).preempts
			if r := do(sched.OpPreempt, 0, nil); r.Status != 0 || !r.Answered || effective(t, p).preempts != n+1 {
				t.Errorf("preempt: %+v", r)
			}
			if r := do(sched.OpInterleave, 2, nil); r.Status != 0 || !r.Answered || effective(t, p).level != 2 || effective(t, p).effectiveLevel != 0 {
				t.Errorf("interleave: %+v", r)
			}
			if r := do(sched.OpTimeslice, 999, sched.Ptr(uint64(7))); !errors.Is(r.Err, actions.ErrMoved) || r.Sent {
				t.Errorf("a value that moved: %+v", r)
			}
			if c := a.Counters(context.Background(), target); c == nil {
				t.Error("no switch counters")
			}
			stale := target
			stale.UniqueID = sched.Ptr(*target.UniqueID + 1)
			if _, err := a.Inspect(context.Background(), stale); !errors.Is(err, actions.ErrReplaced) {
				t.Errorf("another's unique id: %v", err)
			}
			kernel := target
			kernel.PID, kernel.Object.Client = 0, 0xc1e00001
			if r := a.Do(context.Background(), actions.Request{ID: id + 1000, Op: sched.OpPreempt, Target: kernel}); !errors.Is(r.Err, actions.ErrUnfit) || r.Sent {
				t.Errorf("a kernel client's TSG: %+v", r)
			}
		})
	}
}

// TestActuatorsTarget: the target is another user's, in a pid namespace of its own;
// then it dies, and a copy of it takes its handles.
func TestActuatorsTarget(t *testing.T) {
	loadModel(t, "nvidia", "")
	loadTsgtop(t, "")
	p := startProcess(t, 0, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Credential: &syscall.Credential{Uid: 65534, Gid: 65534}})
	target := targetOf(t, p)
	all := actuators(t)
	mark := markLog(t)
	for name, a := range all {
		if r := a.Do(context.Background(), actions.Request{ID: 1, Op: sched.OpTimeslice, Target: target, Value: 300}); r.Err != nil || r.Status != 0 || !r.Answered {
			t.Errorf("%s: %+v", name, r)
		}
	}
	p.end()
	for name, a := range all {
		if r := a.Do(context.Background(), actions.Request{ID: 2, Op: sched.OpTimeslice, Target: target, Value: 400}); !errors.Is(r.Err, actions.ErrGone) || r.Sent {
			t.Errorf("%s: a dead target: %+v", name, r)
		}
	}
	if log := dmesgSince(t, mark); containsModelLine(log) {
		t.Errorf("asking about a dead client wrote to the kernel log: %s", log)
	}
	knob(t, "next_client", fmt.Sprintf("%#x", p.Client&0xfffff))
	restarted := startProcess(t, 0, nil)
	if restarted.Client != p.Client || restarted.TSG != p.TSG {
		t.Fatalf("the copy did not take the handles: %x, %x", restarted.Client, p.Client)
	}
	for name, a := range all {
		if r := a.Do(context.Background(), actions.Request{ID: 3, Op: sched.OpTimeslice, Target: target, Value: 500}); !errors.Is(r.Err, actions.ErrReplaced) && !errors.Is(r.Err, actions.ErrGone) || r.Sent {
			t.Errorf("%s: a restarted copy: %+v", name, r)
		}
	}
	if got := effective(t, restarted).effective; got != 2048 {
		t.Errorf("the copy was changed to %d", got)
	}
}
