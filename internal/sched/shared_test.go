package sched

import (
	"slices"
	"testing"

	"tsgtop/internal/rm"
)

// mpsInventory is what a scan finds of an MPS server and two clients, as on an H200:
// one compute TSG with a handle in each of three RM clients, and a copy TSG each.
// Clients of MPS come first, as their pids are lower.
func mpsInventory(at Time) Inventory {
	v := Inventory{Start: at, End: at + ms, Complete: true}
	for _, p := range []struct {
		pid               int
		client            Handle
		compute, copying  Handle
		context, ownChan  uint32
		copyTSG, copyChan uint32
	}{
		{649, 0xc1d00052, 0x5c00000f, 0x5c000027, 206, 14, 10, 209},
		{650, 0xc1d00054, 0x5c00000f, 0x5c000027, 215, 17, 13, 223},
		{654, 0xc1d0004e, 0x5c000015, 0x5c000022, 199, 10, 7, 201},
	} {
		v.Clients = append(v.Clients, FoundClient{Client: p.client, PID: p.pid, PIDs: []int{p.pid}, GPU: 0, MPS: true})
		v.TSGs = append(v.TSGs,
			FoundTSG{Object: Object{p.client, p.compute}, Device: 0x5c000002, GPU: 0, Runlist: 0, Number: Ptr(uint32(6)), UniqueID: Ptr(uint32(198)),
				Contexts: []uint32{199, 206, 215}, Engine: Ptr(uint32(1)), Timeslice: Ptr(uint64(2048)), PID: p.pid},
			FoundTSG{Object: Object{p.client, p.copying}, Device: 0x5c000002, GPU: 0, Runlist: 1, Number: Ptr(p.copyTSG), UniqueID: Ptr(p.copyChan - 1),
				Contexts: []uint32{p.copyChan}, Engine: Ptr(uint32(11)), Timeslice: Ptr(uint64(1024)), PID: p.pid})
		v.Channels = append(v.Channels,
			FoundChannel{Object: Object{p.client, p.compute + 14}, TSG: p.compute, Class: 0xc86f, Context: Ptr(p.context), Runlist: Ptr(uint32(0)), ChID: Ptr(p.ownChan)},
			FoundChannel{Object: Object{p.client, p.copying + 2}, TSG: p.copying, Class: 0xc86f, Context: Ptr(p.copyChan), Runlist: Ptr(uint32(1)), ChID: Ptr(p.copyChan)})
	}
	return v
}

func TestMPSServerOwnsWhatItsClientsShare(t *testing.T) {
	names := []Event{
		Process{Time: t0, PID: 649, Exe: "/opt/lc", Comm: "lc"}, Process{Time: t0, PID: 650, Exe: "/opt/lc", Comm: "lc"},
		Process{Time: t0, PID: 654, Exe: "/usr/bin/nvidia-cuda-mps-server", Comm: "nvidia-cuda-mps"},
	}
	for name, order := range map[string][]Event{
		"names first": append(slices.Clone(names), mpsInventory(t0+ms)),
		"names last":  append([]Event{mpsInventory(t0 + ms)}, names...),
		"twice":       append(append(slices.Clone(names), mpsInventory(t0+ms)), mpsInventory(t0+second)),
	} {
		s := NewState(Options{})
		for _, e := range order {
			s.Apply(e)
		}
		snap := s.Snapshot(SnapshotOptions{})
		if len(snap.TSGs) != 4 {
			t.Fatalf("%s: %d rows", name, len(snap.TSGs))
		}
		for _, v := range snap.TSGs {
			if v.ID.Runlist != 0 {
				if v.Clients != 0 || v.MPS != (v.Process.PID == 654) || len(v.HolderPIDs) != 1 {
					t.Errorf("%s: a copy TSG of pid %d: %d clients, MPS %t, holders %v", name, v.Process.PID, v.Clients, v.MPS, v.HolderPIDs)
				}
				continue
			}
			if v.Process.PID != 654 || v.Object != (Object{0xc1d0004e, 0x5c000015}) || v.Device != 0x5c000002 || v.Clients != 2 || !v.MPS ||
				!slices.Equal(v.HolderPIDs, []int{649, 650, 654}) || len(v.Channels) != 3 {
				t.Errorf("%s: %+v", name, v)
			}
		}
		// The same from its own preamble, as a recording has it.
		again := NewState(Options{})
		for _, e := range s.preamble() {
			again.Apply(e)
		}
		if r := firstOf(again.Snapshot(SnapshotOptions{}), 0); r == nil || r.Process.PID != 654 || r.Clients != 2 || !r.MPS {
			t.Errorf("%s, replayed: %+v", name, r)
		}
		// Without its server, what is left is shown by a handle that is there.
		s.Apply(Inventory{Start: t0 + 2*second, End: t0 + 2*second + ms, Gone: []Handle{0xc1d0004e}})
		snap = s.Snapshot(SnapshotOptions{})
		if r := firstOf(snap, 0); r == nil || r.Object.Client == 0xc1d0004e || r.Clients != 1 {
			t.Errorf("%s: without the server: %+v", name, snap.TSGs)
		}
	}
}

// What is told of a shared TSG names it as its row, and commands, do.
func TestLifecycleNamesTheServersHandle(t *testing.T) {
	s := NewState(Options{})
	feed(s, Process{Time: t0, PID: 649, Exe: "/opt/lc"}, Process{Time: t0, PID: 650, Exe: "/opt/lc"},
		Process{Time: t0, PID: 654, Exe: "/usr/bin/nvidia-cuda-mps-server"}, mpsInventory(t0+ms))
	row := firstOf(s.Snapshot(SnapshotOptions{}), 0)
	for _, by := range []Object{{0xc1d0004e, 0x5c000015}, {0xc1d00052, 0x5c00000f}} {
		s.derived = nil
		feed(s, CallBatch{Calls: []Call{{Kind: CallControl, Start: t0 + second, End: t0 + second + ms, PID: 777, Client: by.Client, Object: by.Handle,
			Number: rm.CtrlTSGSetTimeslice, Params: &Params{Timeslice: Ptr(uint64(8192))}}}})
		if len(s.derived) != 1 || s.derived[0].Object != row.Object || s.derived[0].PID != 777 {
			t.Errorf("set by %v: %+v, want object %v", by, s.derived, row.Object)
		}
	}
}

// Where the driver does not tell all contexts of a TSG, each client's handle is a row of
// its own: an MPS one, which roles leave alone.
func TestMPSWithoutUniqueIDs(t *testing.T) {
	v := mpsInventory(t0 + ms)
	own := map[Handle]uint32{0xc1d00052: 206, 0xc1d00054: 215, 0xc1d0004e: 199}
	for i := range v.TSGs {
		if v.TSGs[i].UniqueID = nil; v.TSGs[i].Runlist == 0 {
			v.TSGs[i].Contexts = []uint32{own[v.TSGs[i].Client]}
		}
	}
	s := NewState(Options{})
	feed(s, Process{Time: t0, PID: 649, Exe: "/opt/lc"}, Process{Time: t0, PID: 650, Exe: "/opt/train"},
		Process{Time: t0, PID: 654, Exe: "/usr/bin/nvidia-cuda-mps-server"}, v)
	n := 0
	for _, r := range s.Snapshot(SnapshotOptions{}).TSGs {
		if r.ID.Runlist == 0 {
			n++
		}
		if want := r.ID.Runlist == 0 || r.Process.PID == 654; r.MPS != want {
			t.Errorf("%s of pid %d: MPS %t", r.ID, r.Process.PID, r.MPS)
		}
	}
	if n != 3 {
		t.Errorf("%d compute rows", n)
	}
}

// Two clients of one process, and a handle that another process was given without MPS.
func TestSharedWithoutMPS(t *testing.T) {
	for _, c := range []struct {
		pid, clients int
		holders      []int
	}{{479, 0, []int{479}}, {480, 1, []int{479, 480}}} {
		s := NewState(Options{})
		v := scanOf(t0, t0+ms, true, 479, clientA, 0x3f, 2048)
		v.Clients = append(v.Clients, FoundClient{Client: clientB, PID: c.pid, PIDs: []int{c.pid}})
		v.TSGs = append(v.TSGs, FoundTSG{Object: Object{clientB, 0x77}, GPU: 0, Runlist: 0, Contexts: []uint32{0x3f}, PID: c.pid})
		s.Apply(v)
		r := rowByPID(t, s.Snapshot(SnapshotOptions{}), 479)
		if r.Clients != c.clients || r.MPS || !slices.Equal(r.HolderPIDs, c.holders) {
			t.Errorf("pid %d: %d clients, MPS %t, holders %v", c.pid, r.Clients, r.MPS, r.HolderPIDs)
		}
	}
}

// firstOf is the first row of a runlist.
func firstOf(snap *Snapshot, runlist int) *TSGView {
	for i := range snap.TSGs {
		if snap.TSGs[i].ID.Runlist == runlist {
			return &snap.TSGs[i]
		}
	}
	return nil
}
