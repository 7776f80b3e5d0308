//go:build linux

package probes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tsgtop/internal/rmdev"
	"tsgtop/internal/rmdev/rmfake"
	"tsgtop/internal/sched"
	"tsgtop/probes/discover"
	"tsgtop/probes/process"
)

// Pids that no process of this machine has: the fake's are looked up in its /proc.
const noSuchPID = 1 << 22

// cuda starts a process with one CUDA context on a GPU.
func cuda(d *rmfake.Driver, g *rmfake.GPU, pid int) (*rmfake.Process, []rmfake.TSG) {
	p := d.AddProcess(pid, "train")
	p.Open(4)
	return p, p.NewClient(4).CUDA(g, 0x5c000000)
}

// observe runs all probes on a driver until each has said how well it works,
// and gives what the state then holds, and all events.
func observe(t *testing.T, d *rmfake.Driver, o Options, enough func(s *sched.Snapshot) bool) (*sched.Snapshot, []sched.Event) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("skip: needs root: observing a machine")
	}
	o.system = d
	l, err := NewLive(o)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var all []sched.Event
	b := sched.NewBoard(l, sched.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got := make(chan struct{}, 1)
	untap := b.Tap(func(es []sched.Event) {
		all = append(all, es...)
		select {
		case got <- struct{}{}:
		default:
		}
	})
	defer untap()
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	<-l.Ready()
	for snap := b.Snapshot(sched.SnapshotOptions{}); ; snap = b.Snapshot(sched.SnapshotOptions{}) {
		if enough(snap) {
			cancel()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			return snap, all
		}
		select {
		case <-got:
		case err := <-done:
			t.Fatalf("it ended: %v; %+v", err, snap.Probes)
		}
	}
}

// eachTraceSpoke: every GPU's trace has said how well it works.
func eachTraceSpoke(s *sched.Snapshot) bool {
	n := 0
	for _, p := range s.Probes {
		if p.Probe == "ctxsw" && p.GPU != sched.Unknown {
			n++
		}
	}
	return len(s.GPUs) > 0 && n == len(s.GPUs) && len(s.TSGs) > 0
}

// Eight GPUs, one of them in MIG mode: each process's TSGs are on its own GPU, and
// the one without a trace says why.
func TestEightGPUsOneInMIG(t *testing.T) {
	const mig = 3
	d := rmfake.New()
	want := map[int]int{} // TSGs by GPU
	for i := range 8 {
		g := d.AddGPU()
		g.MIG = i == mig
		_, tsgs := cuda(d, g, noSuchPID+i)
		want[i] = len(tsgs)
	}
	snap, _ := observe(t, d, Options{}, func(s *sched.Snapshot) bool { return len(s.GPUs) == 8 && eachTraceSpoke(s) })
	got := map[int]int{}
	for i := range snap.TSGs {
		r := &snap.TSGs[i]
		got[r.ID.GPU]++
		if r.Process.PID != noSuchPID+r.ID.GPU {
			t.Errorf("TSG %s is of process %d", r.ID, r.Process.PID)
		}
		if s := r.Score[sched.Window1s]; s.Residency != nil || s.Share != nil || r.WhyNull == "" {
			t.Errorf("TSG %s, without a record of the trace: %+v, %q", r.ID, s, r.WhyNull)
		}
	}
	for gpu, n := range want {
		if got[gpu] != n {
			t.Errorf("GPU%d: %d TSGs, want %d", gpu, got[gpu], n)
		}
		why, isMIG := snap.GPUs[gpu].TraceWhy, gpu == mig
		if strings.Contains(why, "not with MIG") != isMIG || snap.GPUs[gpu].MIG == nil || *snap.GPUs[gpu].MIG != isMIG {
			t.Errorf("GPU%d: MIG %v, trace %q", gpu, snap.GPUs[gpu].MIG, why)
		}
		if n := snap.GPUs[gpu].SwitchesPerS; isMIG && n != nil {
			t.Errorf("GPU%d has no trace, and %v switches a second", gpu, *n)
		}
	}
	if n := d.OpenFiles(); n != 0 {
		t.Errorf("%d descriptors are open after the end", n)
	}
	if log := d.Log(); len(log) != 0 {
		t.Errorf("kernel log: %q", log)
	}
}

// A process that has ended when it is to be read, and one whose child holds its
// file: the row stays, with what is known.
func TestProcessGoneBeforeItIsRead(t *testing.T) {
	d := rmfake.New()
	p, tsgs := cuda(d, d.AddGPU(), noSuchPID)
	p.Fork(noSuchPID + 1)
	snap, _ := observe(t, d, Options{}, eachTraceSpoke)
	if len(snap.TSGs) != len(tsgs) {
		t.Fatalf("%d rows, want %d", len(snap.TSGs), len(tsgs))
	}
	for _, r := range snap.TSGs {
		if r.Process.PID != noSuchPID || r.Process.Exe != "" || !strings.Contains(r.Process.WhyNull, "ended before it could be read") {
			t.Errorf("process %+v", r.Process)
		}
		if !slices.Equal(r.HolderPIDs, []int{noSuchPID + 1}) {
			t.Errorf("holders %v", r.HolderPIDs)
		}
	}
}

// In a pid namespace of our own nothing is looked up by the kernel's numbers: the
// same number is another process here.
func TestOwnPIDNamespace(t *testing.T) {
	root := t.TempDir()
	const pid = 479
	for path, content := range map[string]string{
		"1/status": "Uid:\t0\t0\t0\t0\nNSpid:\t1\n",
		"479/stat": "479 (wrong) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 77 0 0\n", "479/status": "Uid:\t5\t5\t5\t5\n", "479/cgroup": "0::/docker/wrong\n",
	} {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(root, "1/ns"), 0o755); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"self": "1", "1/ns/pid": "pid:[4026532500]", "479/exe": "/bin/wrong"} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	procs := process.New(process.Options{Root: root})
	if p := procs.Describe(pid); p.Exe != "/bin/wrong" {
		t.Fatalf("the folder does not read like /proc: %+v", p)
	}

	d := rmfake.New()
	d.PIDNamespace = "pid:[4026532500]"
	cuda(d, d.AddGPU(), pid)
	snap, all := observe(t, d, Options{procs: procs}, func(s *sched.Snapshot) bool {
		return slices.ContainsFunc(s.Probes, func(p sched.ProbeStatus) bool { return p.Probe == "discover" })
	})
	for _, e := range all {
		if p, ok := e.(sched.Process); ok && (p.Exe != "" || p.User != "" || p.Unit != "" || p.Comm != "") {
			t.Errorf("looked up: %+v", p)
		}
	}
	var said []string
	for _, p := range snap.Probes {
		said = append(said, fmt.Sprintf("%s %s %s", p.Probe, p.State, p.Why))
	}
	if all := strings.Join(said, "\n"); !strings.Contains(all, "process missing no process is named, and none can be acted on") || !strings.Contains(all, "discover limited") {
		t.Errorf("it says\n%s", all)
	}

	// What the stream and NVML tell.
	l := &Live{procs: procs, foreign: "a reason", met: map[int]bool{}, missing: map[string]bool{}, find: discover.New(rmdev.New(d), discover.Options{})}
	var got []sched.Event
	l.sink = func(es []sched.Event) { got = append(got, es...) }
	l.emit([]sched.Event{
		sched.CallBatch{Calls: []sched.Call{{PID: pid, Comm: "right", Kind: sched.CallControl}}},
		sched.GPUSample{GPU: 0, ProcessMem: []sched.ProcessMemory{{PID: pid, Bytes: 5}}},
		sched.TraceBatch{Records: []sched.TraceRecord{{PID: pid}}},
	})
	people := 0
	for _, e := range got {
		switch e := e.(type) {
		case sched.Process:
			people++
			if e.PID != pid || e.Exe != "" || e.User != "" || e.WhyNull == "" {
				t.Errorf("looked up: %+v", e)
			}
		case sched.GPUSample:
			if e.ProcessMem != nil {
				t.Errorf("memory of %+v", e.ProcessMem)
			}
		case sched.CallBatch:
			if e.Calls[0].Comm != "right" {
				t.Error("the kernel's own word for the caller is lost")
			}
		}
	}
	if people != 1 {
		t.Errorf("%d processes, want the one, once", people)
	}
}

// What a probe says itself is not overwritten by the bare error that it ends with.
func TestMissingProbeSaysWhatItWouldGive(t *testing.T) {
	d := rmfake.New()
	snap, _ := observe(t, d, Options{}, func(s *sched.Snapshot) bool {
		return slices.ContainsFunc(s.Probes, func(p sched.ProbeStatus) bool { return p.Probe == "discover" })
	})
	for _, p := range snap.Probes {
		if p.State == sched.ProbeMissing && (p.What == "" || p.Why == "") {
			t.Errorf("%+v: want what it would give, and why it does not", p)
		}
	}
	if len(snap.GPUs) != 0 || len(snap.TSGs) != 0 {
		t.Errorf("a driver without GPUs has %d GPUs and %d TSGs", len(snap.GPUs), len(snap.TSGs))
	}
}
