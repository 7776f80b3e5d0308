package sched

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tsgtop/internal/rm"
)

// tree writes a snapshot's rows: "0:0:7 c1d00001/5c000015 pid 479 2048 seen [5c00001c ctx 3f]".
func tree(s *State) []string {
	var out []string
	for _, v := range s.Snapshot(SnapshotOptions{}).TSGs {
		w := fmt.Sprintf("%s %s pid %d", v.ID, v.Object, v.Process.PID)
		if v.Context {
			w = fmt.Sprintf("%s context pid %d", v.ID, v.Process.PID)
		}
		if v.Timeslice != nil {
			w += fmt.Sprintf(" %d %s", *v.Timeslice, v.TimesliceFrom)
		}
		var ch []string
		for _, c := range v.Channels {
			x := c.Object.String()
			if c.Context != nil {
				x += fmt.Sprintf(" ctx %x", *c.Context)
			}
			ch = append(ch, x)
		}
		slices.Sort(ch)
		out = append(out, w+" "+fmt.Sprint(ch))
	}
	return out
}

func kinds(facts []Lifecycle) string {
	var out []string
	for _, f := range facts {
		w := string(f.Kind)
		if f.Value != nil {
			w += fmt.Sprintf("=%d", *f.Value)
		}
		out = append(out, w)
	}
	return strings.Join(out, " ")
}

const (
	clientA Handle = 0xc1d00001
	clientB Handle = 0xc1d00002
)

func TestTree(t *testing.T) {
	failed := func(c Call) Call { c.Status = 0x1a; return c }
	broken := func(c Call) Call { c.Errno = 14; return c }
	process := cudaProcess(t0, 479, clientA, 1, 0x3f)
	oneTSG := "0:0:7 c1d00001/5c000015 pid 479 2048 seen [5c00001c ctx 3f]"
	created := "tsg-created timeslice-set=2048 tsg-scheduled"
	later := t0 + second
	tsgOnly := []Event{
		allocClient(t0, 479, clientA, 1),
		alloc(t0, 479, clientA, clientA, hDevice, rm.ClassDevice, &Params{DeviceInstance: Ptr(uint32(0))}),
		alloc(t0, 479, clientA, hDevice, hTSG, rm.ClassTSG, &Params{Engine: Ptr(uint32(9))}),
	}
	for _, c := range []struct {
		name   string
		events []Event
		tree   []string
		facts  string
	}{
		{"a CUDA process", process, []string{oneTSG}, created},
		{"the TSG is freed", append(slices.Clone(process), free(later, 479, clientA, hTSG)), nil, created + " tsg-destroyed"},
		{"the channel is freed", append(slices.Clone(process), free(later, 479, clientA, hChannel)), []string{"0:0:7 c1d00001/5c000015 pid 479 2048 seen []"}, created},
		{"the device is freed", append(slices.Clone(process), free(later, 479, clientA, hDevice)), nil, created + " tsg-destroyed"},
		{"the client is freed", append(slices.Clone(process), free(later, 479, clientA, clientA)), nil, created + " tsg-destroyed"},
		{"a free failed", append(slices.Clone(process), failed(free(later, 479, clientA, hTSG))), []string{oneTSG}, created},
		{"a free did not reach RM", append(slices.Clone(process), broken(free(later, 479, clientA, hTSG))), []string{oneTSG}, created},
		{"a free of another client's handle", append(slices.Clone(process), free(later, 479, clientB, hTSG)), []string{oneTSG}, created},
		{"a free of an unknown handle", append(slices.Clone(process), free(later, 479, clientA, 0x77)), []string{oneTSG}, created},
		{"the file is closed", append(slices.Clone(process), Call{Start: later, End: later, PID: 479, Kind: CallClose, File: 1}), nil, created + " tsg-destroyed"},
		{"another file is closed", append(slices.Clone(process), Call{Start: later, End: later, PID: 479, Kind: CallClose, File: 2}), []string{oneTSG}, created},
		{"an alloc failed", []Event{process[0], process[1], failed(process[2].(Call))}, nil, ""},
		{"two processes with the same handles", append(slices.Clone(process), cudaProcess(t0, 480, clientB, 2, 0x40)...),
			[]string{oneTSG, "0:0:7 c1d00002/5c000015 pid 480 2048 seen [5c00001c ctx 40]"}, created + " " + created},
		{"a handle is reused without a free that we saw", append(slices.Clone(process), alloc(later, 479, clientA, hDevice, hTSG, rm.ClassTSG, &Params{Engine: Ptr(uint32(1))})),
			[]string{"0:0:-1 c1d00001/5c000015 pid 479 1024 default []"}, created + " tsg-destroyed tsg-created"},
		{"a client handle is reused without an end that we saw", append(slices.Clone(process), allocClient(later, 481, clientA, 9)), nil, created + " tsg-destroyed"},
		{"nobody set the timeslice; the engine tells the runlist", tsgOnly, []string{"0:1:-1 c1d00001/5c000015 pid 479 1024 default []"}, "tsg-created"},
		{"setting a timeslice failed", append(slices.Clone(tsgOnly), failed(control(later, 479, clientA, hTSG, rm.CtrlTSGSetTimeslice, &Params{Timeslice: Ptr(uint64(5))}))),
			[]string{"0:1:-1 c1d00001/5c000015 pid 479 1024 default []"}, "tsg-created"},
		{"a timeslice is read back", append(slices.Clone(tsgOnly), control(later, 479, clientA, hTSG, rm.CtrlTSGGetTimeslice, &Params{Timeslice: Ptr(uint64(777))})),
			[]string{"0:1:-1 c1d00001/5c000015 pid 479 777 read []"}, "tsg-created"},
		{"an older setting comes late", append(slices.Clone(process), control(t0, 479, clientA, hTSG, rm.CtrlTSGSetTimeslice, &Params{Timeslice: Ptr(uint64(5))})),
			[]string{oneTSG}, created + " timeslice-set=5"},
		{"a lone channel gets a TSG from RM", []Event{tsgOnly[0], tsgOnly[1],
			alloc(t0, 479, clientA, hDevice, hChannel, rm.ClassChannelHopper, &Params{Engine: Ptr(uint32(1)), Context: Ptr(uint32(9))})},
			[]string{"0:0:-1 c1d00001/00000000 pid 479 1024 default [5c00001c ctx 9]"}, "tsg-created"},
		{"a lone channel is freed", []Event{tsgOnly[0], tsgOnly[1],
			alloc(t0, 479, clientA, hDevice, hChannel, rm.ClassChannelHopper, nil), free(later, 479, clientA, hChannel)},
			nil, "tsg-created tsg-destroyed"},
		{"a dup keeps the TSG when the first handle is freed", append(slices.Clone(process),
			allocClient(later, 480, clientB, 2),
			Call{Start: later, End: later, PID: 480, Kind: CallDup, Client: clientB, Parent: clientB, Object: 0x99, Params: &Params{SrcClient: Ptr(clientA), SrcObject: Ptr(hTSG)}},
			free(later+us, 479, clientA, hTSG)),
			[]string{"0:0:7 c1d00002/00000099 pid 480 2048 seen []"}, created},
		{"both handles are freed", append(slices.Clone(process),
			allocClient(later, 480, clientB, 2),
			Call{Start: later, End: later, PID: 480, Kind: CallDup, Client: clientB, Parent: clientB, Object: 0x99, Params: &Params{SrcClient: Ptr(clientA), SrcObject: Ptr(hTSG)}},
			free(later+us, 479, clientA, hTSG), free(later+2*us, 480, clientB, clientB)),
			nil, created + " tsg-destroyed"},
		{"a channel of a TSG that we do not know waits for it", []Event{tsgOnly[0],
			alloc(t0, 479, clientA, hTSG, hChannel, rm.ClassChannelHopper, nil),
			control(later, 479, clientA, hTSG, rm.CtrlTSGPreempt, nil)},
			[]string{"-1:-1:-1 c1d00001/5c000015 pid 479 [5c00001c]"}, "tsg-preempted"},
		{"but not for a TSG that was made after it", []Event{tsgOnly[0], tsgOnly[1],
			alloc(t0, 479, clientA, hTSG, hChannel, rm.ClassChannelHopper, nil),
			alloc(later, 479, clientA, hDevice, hTSG, rm.ClassTSG, nil)},
			[]string{"0:-1:-1 c1d00001/5c000015 pid 479 1024 default []"}, "tsg-created"},
		{"a control of a TSG that was there before us", []Event{control(t0, 479, clientA, hTSG, rm.CtrlTSGSetTimeslice, &Params{Timeslice: Ptr(uint64(200))})},
			[]string{"-1:-1:-1 c1d00001/5c000015 pid 479 200 seen []"}, "timeslice-set=200"},
		{"our own command's control does not make us the owner", []Event{func() Call {
			c := control(t0, 4242, clientA, hTSG, rm.CtrlTSGSetTimeslice, &Params{Timeslice: Ptr(uint64(200))})
			c.Command = "x"
			return c
		}()}, []string{"-1:-1:-1 c1d00001/5c000015 pid 0 200 seen []"}, "timeslice-set=200"},
		{"a failed control of an unknown TSG", []Event{failed(control(t0, 479, clientA, hTSG, rm.CtrlTSGPreempt, nil))}, nil, ""},
		{"what else RM tells of", append(slices.Clone(process),
			control(later, 479, clientA, hTSG, rm.CtrlTSGSetInterleave, &Params{Interleave: Ptr(uint32(2))}),
			control(later, 479, clientA, hTSG, rm.CtrlTSGSchedule, &Params{Enable: Ptr(false)}),
			control(later, 479, clientA, hChannel, rm.CtrlChannelSchedule, &Params{Enable: Ptr(true)}),
			control(later, 479, clientA, hChannel, rm.CtrlChannelRestartRunlist, &Params{Force: Ptr(true)}),
			control(later, 479, clientA, hChannel, rm.CtrlChannelStop, &Params{Immediate: Ptr(true)}),
			control(later, 479, clientA, hTSG, rm.CtrlTSGPreempt, nil)),
			[]string{oneTSG}, created + " interleave-set=2 tsg-idled tsg-scheduled runlist-restarted channel-stopped tsg-preempted"},
		{"parameters that could not be read change nothing", append(slices.Clone(process),
			control(later, 479, clientA, hTSG, rm.CtrlTSGSetTimeslice, &Params{Faulted: true}),
			control(later, 479, clientA, hTSG, rm.CtrlTSGSchedule, nil)), []string{oneTSG}, created},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := NewState(Options{})
			s.Apply(h200())
			facts := feed(s, c.events...)
			if got := tree(s); !slices.Equal(got, c.tree) {
				t.Errorf("tree:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(c.tree, "\n"))
			}
			if got := kinds(facts); got != c.facts {
				t.Errorf("facts: %s\nwant:  %s", got, c.facts)
			}
			// The same calls in one batch.
			s = NewState(Options{})
			s.Apply(h200())
			var batch CallBatch
			for _, e := range c.events {
				batch.Calls = append(batch.Calls, e.(Call))
			}
			if facts := kinds(s.Apply(batch)); facts != c.facts {
				t.Errorf("in a batch: %s", facts)
			}
		})
	}
}

// A GPU that is described after its TSGs were made still gets them.
func TestGPUComesLater(t *testing.T) {
	s := NewState(Options{})
	feed(s, cudaProcess(t0, 479, clientA, 1, 0x3f)...)
	if got := tree(s)[0]; !strings.HasPrefix(got, "-1:0:7") {
		t.Errorf("before: %s", got)
	}
	s.Apply(h200())
	if got := tree(s)[0]; !strings.HasPrefix(got, "0:0:7") {
		t.Errorf("after: %s", got)
	}
	// NVML's description knows nothing of RM's numbers and must not overwrite them.
	s.Apply(GPU{Time: t0, Index: 0, UUID: "GPU-1", Minor: 0, DeviceInstance: 5})
	v := s.Snapshot(SnapshotOptions{}).GPUs[0]
	if v.DeviceInstance != 0 || v.UUID != "GPU-1" || v.Name != "NVIDIA H200" || len(v.Runlists) != 3 {
		t.Errorf("merged: %+v", v.GPU)
	}
}

func TestProcessEnds(t *testing.T) {
	base := cudaProcess(t0, 479, clientA, 1, 0x3f)
	shared := Inventory{Start: t0 + ms, End: t0 + 2*ms, Partial: true, Clients: []FoundClient{{Client: clientA, PID: 479, PIDs: []int{479, 500}}}}
	exit := func(at Time, pid int) Event { return ProcessExit{Time: t0 + at, PID: pid} }
	tick := func(at Time) Event { return ClockTie{Time: t0 + at} }
	closing := Call{Start: t0, End: t0, Kind: CallClose, File: 77}
	for _, c := range []struct {
		name   string
		events []Event
		alive  bool
	}{
		{"it runs", []Event{tick(20 * second)}, true},
		{"it exited, no closes are seen, within the grace", []Event{exit(second, 479), tick(second + 900*ms)}, true},
		{"it exited, no closes are seen, after the grace", []Event{exit(second, 479), tick(2*second + 300*ms)}, false},
		{"it exited, but it still has turns", []Event{exit(second, 479),
			traceOf(0, 2*second, rec{6, 0x3f, 1900 * ms, 0}, rec{7, 0x3f, 1950 * ms, 0}), tick(2*second + 500*ms)}, true},
		{"it exited, closes are seen: the close is what ends it", []Event{closing, exit(second, 479), tick(3 * second)}, true},
		{"it exited, and its close was lost", []Event{closing, exit(second, 479), tick(11*second + 300*ms)}, false},
		{"another process still holds the file", []Event{shared, exit(second, 479), tick(20 * second)}, true},
		{"all processes that held the file exited", []Event{shared, exit(second, 479), exit(2*second, 500), tick(4 * second)}, false},
		{"a process that has nothing to do with it", []Event{exit(second, 4), tick(20 * second)}, true},
		{"a scan shows that it is gone", []Event{exit(second, 479), Inventory{Start: t0 + second + ms, End: t0 + second + 2*ms, Complete: true}}, false},
		{"the pid was reused", []Event{Process{Time: t0, PID: 479, Start: 5}, Process{Time: t0 + second, PID: 479, Start: 6}, tick(3 * second)}, false},
	} {
		s := NewState(Options{})
		s.Apply(h200())
		feed(s, base...)
		facts := feed(s, c.events...)
		if alive := len(s.Snapshot(SnapshotOptions{}).TSGs) == 1; alive != c.alive {
			t.Errorf("%s: alive %t, want %t", c.name, alive, c.alive)
		}
		if destroyed := kinds(facts) == "tsg-destroyed"; destroyed == c.alive {
			t.Errorf("%s: facts %q", c.name, kinds(facts))
		}
	}
}

// Who a process is stays with the TSG when the pid is given to another.
func TestProcessIdentity(t *testing.T) {
	s := NewState(Options{})
	feed(s, cudaProcess(t0, 479, clientA, 1, 0x3f)...)
	s.Apply(Process{Time: t0 + ms, PID: 479, NSPID: 7, Start: 11, Exe: "/bin/train", User: "ada"})
	s.Apply(ProcessExit{Time: t0 + 2*ms, PID: 479})
	s.Apply(Process{Time: t0 + 3*ms, PID: 479, Start: 12, Exe: "/bin/other"})
	v := rowByPID(t, s.Snapshot(SnapshotOptions{}), 479)
	if v.Process.Exe != "/bin/train" || v.Process.Start != 11 || v.Process.NSPID != 7 || len(v.HolderPIDs) != 0 {
		t.Errorf("%+v, holders %v", v.Process, v.HolderPIDs)
	}
	s.Apply(Process{Time: t0 + 4*ms, PID: 480, Comm: "x", Gone: true})
	if p := s.processes[480]; p == nil || p.exited == 0 {
		t.Error("a process that was gone before it could be read counts as running")
	}
	if (Process{Exe: "/a/b.py"}).Name() != "b.py" || (Process{Comm: "c"}).Name() != "c" {
		t.Error("short names")
	}
}
