package sched

import (
	"bufio"
	"compress/gzip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"tsgtop/internal/rm"
)

// t0 is where the tests' clocks begin: a whole second.
const t0 = Time(1_800_000_000_000_000_000)

const (
	us = Time(time.Microsecond)
	ms = Time(time.Millisecond)
)

// feed applies events in order and collects the lifecycle facts.
func feed(s *State, events ...Event) []Lifecycle {
	var out []Lifecycle
	for _, e := range events {
		out = append(out, s.Apply(e)...)
	}
	return out
}

func allocClient(at Time, pid int, client Handle, file uint32) Call {
	return Call{Start: at - 3*us, End: at, PID: pid, File: file, Kind: CallAlloc, Number: rm.ClassClient, Client: client, Object: client}
}

func alloc(at Time, pid int, client, parent, object Handle, class uint32, p *Params) Call {
	return Call{Start: at - 3*us, End: at, PID: pid, Kind: CallAlloc, Number: class, Client: client, Parent: parent, Object: object, Params: p}
}

func free(at Time, pid int, client, object Handle) Call {
	return Call{Start: at - 3*us, End: at, PID: pid, Kind: CallFree, Client: client, Object: object}
}

func control(at Time, pid int, client, object Handle, number uint32, p *Params) Call {
	return Call{Start: at - 3*us, End: at, PID: pid, Kind: CallControl, Number: number, Client: client, Object: object, Params: p}
}

// The handles that libcuda gives, the same in every process.
const (
	hDevice  Handle = 0x5c000001
	hTSG     Handle = 0x5c000015
	hChannel Handle = 0x5c00001c
)

// cudaProcess is what a process does to get a compute TSG with one channel.
func cudaProcess(at Time, pid int, client Handle, file, context uint32) []Event {
	return []Event{
		allocClient(at, pid, client, file),
		alloc(at+10*us, pid, client, client, hDevice, rm.ClassDevice, &Params{DeviceInstance: Ptr(uint32(0))}),
		alloc(at+20*us, pid, client, hDevice, hTSG, rm.ClassTSG, &Params{Engine: Ptr(uint32(1))}),
		alloc(at+30*us, pid, client, hTSG, hChannel, rm.ClassChannelHopper, &Params{Engine: Ptr(uint32(1)), Context: Ptr(context)}),
		control(at+40*us, pid, client, hChannel, rm.CtrlWorkSubmitToken, &Params{Runlist: Ptr(uint32(0)), ChID: Ptr(uint32(8))}),
		control(at+50*us, pid, client, hTSG, rm.CtrlTSGInfo, &Params{TSGNumber: Ptr(uint32(7))}),
		control(at+60*us, pid, client, hTSG, rm.CtrlTSGSetTimeslice, &Params{Timeslice: Ptr(uint64(2048))}),
		control(at+70*us, pid, client, hTSG, rm.CtrlTSGSchedule, &Params{Enable: Ptr(true)}),
	}
}

func h200() GPU {
	return GPU{
		Time: t0, Index: 0, ID: 0x100, Minor: 0, DeviceInstance: 0, Name: "NVIDIA H200", Open: Ptr(true), MIG: Ptr(false),
		Runlists: []Runlist{{ID: 0, Engines: []uint32{1}}, {ID: 1, Engines: []uint32{9}}, {ID: 3, Engines: []uint32{11}}},
	}
}

// records builds a trace batch from "6 3f @100" like triples.
type rec struct {
	tag uint8
	ctx uint32
	at  Time // after t0
	gap uint32
}

func traceOf(gpu int, readTo Time, recs ...rec) TraceBatch {
	b := TraceBatch{Time: t0 + readTo, GPU: gpu}
	for _, r := range recs {
		b.Records = append(b.Records, TraceRecord{Time: t0 + r.at, Context: r.ctx, PID: 1000 + r.ctx, Tag: r.tag, Gap: r.gap})
	}
	return b
}

// alternate makes turns of two contexts one after the other: lengths in us,
// with a switch of 80 us after each, from an instant after t0.
func alternate(from Time, n int, a, b uint32, lenA, lenB Time) ([]rec, Time) {
	var out []rec
	t := from
	for i := range n {
		ctx, l := a, lenA
		if i%2 == 1 {
			ctx, l = b, lenB
		}
		out = append(out, rec{TagStart, ctx, t, 0}, rec{TagEnd, ctx, t + l, 0})
		t += l + 80*us
	}
	return out, t
}

// row finds the one row of a snapshot with that pid.
func rowByPID(t *testing.T, s *Snapshot, pid int) *TSGView {
	t.Helper()
	var found *TSGView
	for i := range s.TSGs {
		if s.TSGs[i].Process.PID == pid {
			if found != nil {
				t.Fatalf("two rows of pid %d", pid)
			}
			found = &s.TSGs[i]
		}
	}
	if found == nil {
		t.Fatalf("no row of pid %d among %d", pid, len(s.TSGs))
	}
	return found
}

// measured reads a trace that was measured on an H200.
func measured(t testing.TB, name string) []TraceRecord {
	t.Helper()
	f, err := os.Open("testdata/" + name + ".csv.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var out []TraceRecord
	lines := bufio.NewScanner(z)
	for lines.Scan() {
		c := strings.Split(lines.Text(), ",")
		tag, _ := strconv.Atoi(c[0])
		ctx, _ := strconv.ParseUint(c[1], 16, 32)
		pid, _ := strconv.Atoi(c[2])
		at, err := strconv.ParseInt(c[3], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, TraceRecord{Time: Time(at), Context: uint32(ctx), PID: uint32(pid), Tag: uint8(tag)})
	}
	if lines.Err() != nil || len(out) == 0 {
		t.Fatal("empty trace", lines.Err())
	}
	return out
}
