package export

import (
	"context"
	"flag"
	"fmt"
	"iter"
	"maps"
	"testing"
	"time"

	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
	"tsgtop/internal/sim"
)

var update = flag.Bool("update", false, "write the goldens again")

func mapKeys(m map[string]string) iter.Seq[string] { return maps.Keys(m) }

// sourceOf gives events as a recording's reader would, some at a time.
func sourceOf(events []sched.Event) Source {
	return func(ctx context.Context, sink func([]sched.Event)) error {
		for i := 0; i < len(events) && ctx.Err() == nil; i += 100 {
			sink(events[i:min(i+100, len(events))])
		}
		return nil
	}
}

// machineEvents is what a simulated GPU gave in a while.
func machineEvents(t testing.TB, knobs string, d time.Duration) []sched.Event {
	t.Helper()
	c, err := sim.ParseKnobs(knobs)
	if err != nil {
		t.Fatal(err)
	}
	c.Start = sched.Time(1_800_000_000e9)
	m, err := sim.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return m.Advance(d)
}

// pair is a turn as two records of the trace tell it.
type pair struct {
	context  string
	from, to int64
}

// pairs are the turns of GPU 0 of which both records are there: found without
// anything of the state.
func pairs(events []sched.Event) []pair {
	var out []pair
	var on uint32
	var from sched.Time
	for _, e := range events {
		b, ok := e.(sched.TraceBatch)
		if !ok || b.GPU != 0 {
			continue
		}
		for _, r := range b.Records {
			switch {
			case r.Tag == sched.TagStart:
				on, from = r.Context, r.Time
			case r.Tag == sched.TagEnd && from != 0 && r.Context == on:
				out = append(out, pair{fmt.Sprint(on), int64(from), int64(r.Time)})
				from = 0
			}
		}
	}
	return out
}

// story0 is when the small story begins.
const story0 = sched.Time(1_800_000_000e9)

// smallStory is two processes that take turns, a gap, a process whose TSG is
// not known, a command and an Xid.
func smallStory() []sched.Event {
	const us, ms = sched.Time(1e3), sched.Time(1e6)
	events := []sched.Event{
		sched.SourceInfo{Time: story0, Label: "LIVE", Host: "h"},
		sched.GPU{Time: story0, Index: 0, ID: 0x100, Name: "NVIDIA H200", Runlists: []sched.Runlist{{ID: 0, Engines: []uint32{1}}}},
		sched.ProbeStatus{Time: story0, Probe: "ctxsw", GPU: 0, State: sched.ProbeOK},
		sched.ClockTie{Time: story0, Monotonic: 5e9, Raw: 6e9, GPU: sched.Unknown},
		sched.Process{Time: story0, PID: 479, Start: 1, Exe: "/home/ada/train.py", Unit: "k8s:job"},
		sched.Process{Time: story0, PID: 480, Start: 2, Exe: "=2+5"},
		sched.Process{Time: story0, PID: 481, Start: 3, Comm: "who"},
	}
	inv := sched.Inventory{Start: story0, End: story0}
	for i, pid := range []int{479, 480} {
		client, context := sched.Handle(0xc1d00001+i), uint32(0x3f+i)
		inv.Clients = append(inv.Clients, sched.FoundClient{Client: client, PID: pid, PIDs: []int{pid}})
		inv.TSGs = append(inv.TSGs, sched.FoundTSG{Object: sched.Object{Client: client, Handle: 0x5c000015}, GPU: 0, Runlist: 0,
			Number: sched.Ptr(uint32(7 - i)), Engine: sched.Ptr(uint32(1)), Contexts: []uint32{context}, Timeslice: sched.Ptr(uint64(2048)), PID: pid})
		inv.Channels = append(inv.Channels, sched.FoundChannel{Object: sched.Object{Client: client, Handle: 0x5c000016}, TSG: 0x5c000015,
			Class: rm.ClassChannelHopper, Context: sched.Ptr(context)})
	}
	events = append(events, inv)
	b := sched.TraceBatch{GPU: 0}
	at := story0 + ms
	turn := func(context uint32, pid uint32, d sched.Time, gap uint32) {
		b.Records = append(b.Records, sched.TraceRecord{Time: at, Context: context, PID: pid, Tag: sched.TagStart, Gap: gap},
			sched.TraceRecord{Time: at + d, Context: context, PID: pid, Tag: sched.TagEnd})
		at += d + 80*us
	}
	for range 2 {
		turn(0x3f, 479, 2197*us, 0)
		turn(0x40, 480, 300*us, 0)
	}
	turn(0x3f, 479, 2197*us, 4)
	turn(0x99, 481, 100*us, 0)
	turn(0x40, 480, 2197*us, 0)
	b.Time = at + ms
	events = append(events, b,
		sched.Command{Time: at, ID: "a1", Number: 1, Asked: at - ms, Issued: at - ms/2, Op: sched.OpPreempt, Actuator: "fd", Step: sched.StepJudged,
			Target: sched.Target{TSGID: sched.TSGID{GPU: 0, Runlist: 0, TSG: 7}, PID: 479, Exe: "/home/ada/train.py"},
			Ran:    sched.Lamp{State: sched.LampYes, Why: "seen"}},
		sched.Xid{Time: at, GPU: 0, Code: 31, From: "tracepoint"})
	return events
}
