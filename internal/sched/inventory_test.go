package sched

import (
	"slices"
	"strings"
	"testing"

	"tsgtop/internal/rm"
)

// scanOf is what a scan finds of one CUDA process.
func scanOf(start, end Time, complete bool, pid int, client Handle, context uint32, slice uint64) Inventory {
	return Inventory{Start: start, End: end, Complete: complete,
		Clients: []FoundClient{{Client: client, PID: pid, PIDs: []int{pid}}},
		TSGs: []FoundTSG{{Object: Object{client, hTSG}, Device: hDevice, GPU: 0, Runlist: 0, Number: Ptr(uint32(7)),
			Contexts: []uint32{context}, Timeslice: Ptr(slice), PID: pid}},
		Channels: []FoundChannel{{Object: Object{client, hChannel}, TSG: hTSG, Class: rm.ClassChannelHopper, Context: Ptr(context), Runlist: Ptr(uint32(0)), ChID: Ptr(uint32(8))}},
	}
}

func TestInventoryJoinsStream(t *testing.T) {
	stream := cudaProcess(t0, 479, clientA, 1, 0x3f)
	seen := "0:0:7 c1d00001/5c000015 pid 479 2048 seen [5c00001c ctx 3f]"
	read := "0:0:7 c1d00001/5c000015 pid 479 2048 read [5c00001c ctx 3f]"
	scan := func(start Time, slice uint64) Inventory {
		return scanOf(start, start+5*ms, true, 479, clientA, 0x3f, slice)
	}
	empty := func(start Time) Inventory { return Inventory{Start: start, End: start + 5*ms, Complete: true} }
	partly := func(v Inventory) Inventory { v.Complete = false; return v }
	for _, c := range []struct {
		name   string
		events []Event
		tree   []string
		facts  string
	}{
		{"a scan alone", []Event{scan(t0, 2048)}, []string{read}, ""},
		{"twice the same scan", []Event{scan(t0, 2048), scan(t0+second, 2048)}, []string{read}, ""},
		{"the stream, then a scan", append(slices.Clone(stream), scan(t0+second, 2048)), []string{seen}, "tsg-created timeslice-set=2048 tsg-scheduled"},
		{"a scan reads another value than was seen: somebody set it unseen", append(slices.Clone(stream), scan(t0+second, 512)),
			[]string{"0:0:7 c1d00001/5c000015 pid 479 512 read [5c00001c ctx 3f]"}, "tsg-created timeslice-set=2048 tsg-scheduled"},
		{"a scan that began before the value was set", append(slices.Clone(stream), scan(t0-ms, 1024)), []string{seen}, "tsg-created timeslice-set=2048 tsg-scheduled"},
		{"a scan overtakes the records of the calls", append([]Event{scan(t0+second, 2048)}, stream...),
			[]string{read}, "tsg-created timeslice-set=2048 tsg-scheduled"},
		{"a scan sees what is allocated while it runs, and overtakes the records", append([]Event{scan(t0-ms, 2048)}, stream...),
			[]string{seen}, "tsg-created timeslice-set=2048 tsg-scheduled"},
		{"freed while the scan ran: it does not come back", append(slices.Clone(stream), free(t0+second+ms, 479, clientA, hTSG), scan(t0+second, 2048)),
			nil, "tsg-created timeslice-set=2048 tsg-scheduled tsg-destroyed"},
		{"freed while the scan ran, which nobody knew of", []Event{free(t0+ms, 479, clientA, hTSG), scan(t0, 2048)}, nil, ""},
		{"the client ended while the scan ran", append(slices.Clone(stream), free(t0+second+ms, 479, clientA, clientA), scan(t0+second, 2048)),
			nil, "tsg-created timeslice-set=2048 tsg-scheduled tsg-destroyed"},
		{"its device was freed while the scan ran", []Event{free(t0+ms, 479, clientA, hDevice), scan(t0, 2048)}, nil, ""},
		{"freed before the scan and found: allocated again unseen", append(slices.Clone(stream), free(t0+ms, 479, clientA, hTSG), scan(t0+second, 1024)),
			[]string{"0:0:7 c1d00001/5c000015 pid 479 1024 read [5c00001c ctx 3f]"}, "tsg-created timeslice-set=2048 tsg-scheduled tsg-destroyed"},
		{"a complete scan lacks it", append(slices.Clone(stream), empty(t0+second)), nil, "tsg-created timeslice-set=2048 tsg-scheduled tsg-destroyed"},
		{"a partial scan lacks it", append(slices.Clone(stream), partly(empty(t0+second))), []string{seen}, "tsg-created timeslice-set=2048 tsg-scheduled"},
		{"a complete scan that began before it was made lacks it", append(slices.Clone(stream), empty(t0-ms)), []string{seen}, "tsg-created timeslice-set=2048 tsg-scheduled"},
		{"a scan looked for the client in vain", append(slices.Clone(stream), Inventory{Start: t0 + second, End: t0 + second + ms, Gone: []Handle{clientA}}), nil, "tsg-created timeslice-set=2048 tsg-scheduled tsg-destroyed"},
		{"a scan looked for the client in vain before it was made", append(slices.Clone(stream), Inventory{Start: t0 - ms, End: t0, Gone: []Handle{clientA}}), []string{seen}, "tsg-created timeslice-set=2048 tsg-scheduled"},
		{"a scan of the client lacks the TSG", append(slices.Clone(stream), Inventory{Start: t0 + second, End: t0 + second + ms, Clients: []FoundClient{{Client: clientA, PID: 479}}}), nil, "tsg-created timeslice-set=2048 tsg-scheduled tsg-destroyed"},
		{"a scan of the client that left some out lacks the TSG", append(slices.Clone(stream), Inventory{Start: t0 + second, End: t0 + second + ms, Partial: true, Complete: true, Clients: []FoundClient{{Client: clientA, PID: 479}}}), []string{seen}, "tsg-created timeslice-set=2048 tsg-scheduled"},
		{"a scan of another client", append(slices.Clone(stream), Inventory{Start: t0 + second, End: t0 + second + ms, Clients: []FoundClient{{Client: clientB, PID: 480}}}), []string{seen}, "tsg-created timeslice-set=2048 tsg-scheduled"},
		{"found, then the stream frees it", []Event{scan(t0, 2048), free(t0+second, 479, clientA, hTSG)}, nil, "tsg-destroyed"},
		{"found, then a free comes late that was before the scan", []Event{scan(t0, 2048), free(t0-ms, 479, clientA, hTSG)}, []string{read}, ""},
		{"found channel before its TSG", []Event{
			Inventory{Start: t0, End: t0 + ms, Channels: scan(t0, 0).Channels}, partly(scan(t0+second, 2048))}, []string{read}, ""},
		{"another process dups a found TSG: it is one", []Event{scan(t0, 2048), func() Inventory {
			v := partly(scanOf(t0+ms, t0+2*ms, false, 480, clientB, 0x3f, 2048))
			v.Channels = nil
			return v
		}()}, []string{read}, ""},
		{"what cannot be told is left open", []Event{Inventory{Start: t0, End: t0, Clients: []FoundClient{{Client: clientA, PID: 479}},
			TSGs: []FoundTSG{{Object: Object{clientA, hTSG}, GPU: Unknown, Runlist: Unknown, PID: 479}}}},
			[]string{"-1:-1:-1 c1d00001/5c000015 pid 479 []"}, ""},
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
		})
	}
}

// Children that share a file, and MPS, as a scan tells.
func TestFoundHolders(t *testing.T) {
	s := NewState(Options{})
	v := scanOf(t0, t0+ms, true, 479, clientA, 0x3f, 2048)
	v.Clients[0].PIDs = []int{500, 479, 501}
	v.Clients[0].MPS = true
	v.UnattributedClients, v.UnattributedChannels, v.Why = 2, 3, "kernel clients"
	s.Apply(v)
	snap := s.Snapshot(SnapshotOptions{})
	r := rowByPID(t, snap, 479)
	if !slices.Equal(r.HolderPIDs, []int{479, 500, 501}) || !r.MPS {
		t.Errorf("holders %v, MPS %t", r.HolderPIDs, r.MPS)
	}
	if snap.Unattributed != (Unattributed{Clients: 2, Channels: 3, Why: "kernel clients"}) {
		t.Errorf("%+v", snap.Unattributed)
	}
	s.Apply(ProcessExit{Time: t0 + second, PID: 479})
	if r := rowByPID(t, s.Snapshot(SnapshotOptions{}), 479); !slices.Equal(r.HolderPIDs, []int{500, 501}) {
		t.Errorf("holders %v after one exited", r.HolderPIDs)
	}
}
