package sched

import (
	"encoding/json"
	"reflect"
	"testing"

	"tsgtop/internal/rm"
)

// busyState has a bit of everything that a preamble must carry over.
func busyState() []Event {
	const clientC, clientD Handle = 0xc1d0003c, 0xc1d0003d
	ev := []Event{
		SourceInfo{Time: t0, Label: "LIVE", Host: "h", Notes: []string{"n"}, Started: t0},
		h200(),
		GPU{Time: t0, Index: 1, ID: 0x200, Minor: 1, DeviceInstance: 1},
		ProbeStatus{Time: t0, Probe: "rm", GPU: Unknown, State: ProbeOK},
		ProbeStatus{Time: t0, Probe: "ctxsw", GPU: 0, State: ProbeLimited, Why: "w"},
		Process{Time: t0, PID: 479, Start: 9, Exe: "/a/train", User: "ada", UID: Ptr(1), Args: []string{"x"}},
		Process{Time: t0, PID: 480, Start: 10, Exe: "/a/serve", Unit: "docker:api"},
		Process{Time: t0, PID: 481, Start: 11, Exe: "/a/gone"},
		ProcessExit{Time: t0 + ms, PID: 481},
		GPUSample{Time: t0, GPU: 0, SMPercent: Ptr(92), ProcessMem: []ProcessMemory{{479, 1 << 30}}},
	}
	ev = append(ev, cudaProcess(t0+ms, 479, clientA, 4, 0x3f)...)
	ev = append(ev,
		// Interleave seen set, and a second TSG that nobody set a timeslice of.
		control(t0+2*ms, 479, clientA, hTSG, rm.CtrlTSGSetInterleave, &Params{Interleave: Ptr(uint32(2))}),
		alloc(t0+2*ms, 479, clientA, hDevice, 0x5c000031, rm.ClassTSG, &Params{Engine: Ptr(uint32(9))}),
		// A lone channel, for which RM makes a TSG.
		allocClient(t0+3*ms, 480, clientC, 5),
		alloc(t0+3*ms, 480, clientC, clientC, hDevice, rm.ClassDevice, &Params{DeviceInstance: Ptr(uint32(0))}),
		alloc(t0+3*ms, 480, clientC, hDevice, hChannel, rm.ClassChannelHopper, &Params{Engine: Ptr(uint32(1)), Context: Ptr(uint32(0x51))}),
		// The first TSG under a second handle, in another client that uses MPS.
		allocClient(t0+4*ms, 480, clientD, 6),
		alloc(t0+4*ms, 480, clientD, clientD, 0x77, rm.ClassMPS, nil),
		alloc(t0+4*ms, 480, clientD, clientD, hDevice, rm.ClassDevice, &Params{DeviceInstance: Ptr(uint32(0))}),
		Call{Start: t0 + 4*ms, End: t0 + 4*ms, PID: 480, Kind: CallDup, Client: clientD, Parent: hDevice, Object: 0x99,
			Params: &Params{SrcClient: Ptr(clientA), SrcObject: Ptr(hTSG)}},
		// Found by a scan, on the other GPU; timeslice read back.
		Inventory{Start: t0 + 5*ms, End: t0 + 6*ms,
			Clients: []FoundClient{{Client: clientB, PID: 480, PIDs: []int{479, 480}}},
			TSGs: []FoundTSG{{Object: Object{clientB, hTSG}, Device: hDevice, GPU: 1, Runlist: 0, Number: Ptr(uint32(3)), UniqueID: Ptr(uint32(17)),
				Contexts: []uint32{0x61}, Engine: Ptr(uint32(1)), Timeslice: Ptr(uint64(512)), PID: 480}},
			Channels:             []FoundChannel{{Object: Object{clientB, hChannel}, TSG: hTSG, Class: rm.ClassChannelHopper, Context: Ptr(uint32(0x61)), ChID: Ptr(uint32(4))}},
			UnattributedChannels: 2, Why: "kernel clients"},
		Command{Time: t0, ID: "a", Number: 1, Op: OpTimeslice, Step: StepJudged},
		Xid{Time: t0 + 7*ms, GPU: 0, Code: 109},
		Loss{Time: t0 + 8*ms, Ring: 3},
		traceOf(0, 20*ms, rec{TagStart, 0x3f, 10 * ms, 0}, rec{TagEnd, 0x3f, 12 * ms, 0}, rec{TagStart, 0x51, 12*ms + 80*us, 0}),
	)
	return ev
}

// treeOf is what of a snapshot a preamble promises to carry over, as JSON.
func treeOf(t *testing.T, s *State) string {
	t.Helper()
	snap := s.Snapshot(SnapshotOptions{})
	for i := range snap.TSGs {
		v := &snap.TSGs[i]
		v.Score, v.WhyNull, v.Gen, v.Resident, v.LastTurn = [NumWindows]Score{}, "", 0, false, 0
	}
	for i := range snap.GPUs {
		g := &snap.GPUs[i]
		g.Competing, g.SwitchesPerS, g.SwitchTax, g.TraceWhy, g.TraceRead = 0, nil, [NumWindows]*float64{}, "", 0
	}
	snap.Time, snap.CallRate = 0, 0
	b, err := json.MarshalIndent(snap, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestPreamble(t *testing.T) {
	b := NewBoard(nil, Options{})
	b.Feed(busyState())
	pre := b.Preamble()
	again := NewState(Options{})
	feed(again, pre...)
	want, got := treeOf(t, b.state), treeOf(t, again)
	if got != want {
		t.Errorf("the preamble gives another tree: %s", firstDifference(got, want))
	}
	if n := len(again.Snapshot(SnapshotOptions{}).TSGs); n != 4 {
		t.Errorf("%d TSGs, want 4", n)
	}

	// It goes through a recording as it is.
	for _, e := range pre {
		if v, ok := e.(Inventory); ok {
			text, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			var back Inventory
			if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back, v) {
				t.Errorf("the inventory does not survive JSON: %v", err)
			}
		}
	}

	// What comes next means the same to both.
	next := []Event{
		Call{Start: t0 + 30*ms, End: t0 + 30*ms, Kind: CallClose, File: 4},
		free(t0+31*ms, 480, 0xc1d0003c, hChannel),
		control(t0+32*ms, 480, clientB, hTSG, rm.CtrlTSGSetTimeslice, &Params{Timeslice: Ptr(uint64(200))}),
		traceOf(0, 40*ms, rec{TagEnd, 0x51, 33 * ms, 0}),
	}
	b.Feed(next)
	feed(again, next...)
	if want, got := treeOf(t, b.state), treeOf(t, again); got != want {
		t.Errorf("the same events afterwards give another tree: %s", firstDifference(got, want))
	}
}

func firstDifference(a, b string) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	from := max(0, i-200)
	return "\n" + a[from:min(len(a), i+200)] + "\n--- want ---\n" + b[from:min(len(b), i+200)]
}

func TestPreambleOfNothing(t *testing.T) {
	if pre := NewBoard(nil, Options{}).Preamble(); len(pre) != 0 {
		t.Errorf("%v", pre)
	}
}

// A preamble shares nothing with the state.
func TestPreambleIsACopy(t *testing.T) {
	b := NewBoard(nil, Options{})
	b.Feed(busyState())
	want := treeOf(t, b.state)
	for _, e := range b.Preamble() {
		switch v := e.(type) {
		case SourceInfo:
			v.Notes[0] = "changed"
		case GPU:
			for i := range v.Runlists {
				v.Runlists[i].Engines[0] = 77
			}
		case Process:
			if len(v.Args) > 0 {
				v.Args[0] = "changed"
			}
		case GPUSample:
			v.ProcessMem[0].Bytes = 1
		case Inventory:
			for i := range v.Clients {
				clear(v.Clients[i].PIDs)
			}
		}
	}
	if treeOf(t, b.state) != want {
		t.Error("changing a preamble changed the state")
	}
}

// Where a timeslice is known from is shown: a recording cannot put words there.
func TestTimesliceFromNowhereElse(t *testing.T) {
	s := NewState(Options{})
	feed(s, Inventory{Start: t0, End: t0, Clients: []FoundClient{{Client: clientA, PID: 479}},
		TSGs: []FoundTSG{{Object: Object{clientA, hTSG}, Timeslice: Ptr(uint64(5)), TimesliceFrom: "\x1b[2J", GPU: Unknown, Runlist: Unknown}}})
	if got := s.Snapshot(SnapshotOptions{}).TSGs[0].TimesliceFrom; got != FromRead {
		t.Errorf("%q", got)
	}
}

func TestJoin(t *testing.T) {
	b := NewBoard(nil, Options{})
	b.Feed(busyState())
	var batches [][]Event
	untap := b.Join(func(es []Event) { batches = append(batches, append([]Event(nil), es...)) })
	b.Feed([]Event{Xid{Time: t0 + 50*ms, GPU: 0, Code: 31}})
	untap()
	b.Feed([]Event{Xid{Time: t0 + 60*ms, GPU: 0, Code: 13}})
	if len(batches) != 2 || len(batches[0]) < 10 || len(batches[1]) != 1 {
		t.Fatalf("%d batches", len(batches))
	}
	if _, ok := batches[0][0].(SourceInfo); !ok {
		t.Errorf("it begins with %T", batches[0][0])
	}
}
