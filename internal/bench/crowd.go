package main

import (
	"errors"
	"fmt"
	"time"

	"tsgtop/internal/recording"
	"tsgtop/internal/sched"
)

// crowd writes a recording of so many TSGs, four to a process, that take turns
// on one GPU's engine with so many switches a second.
func crowd(path string, tsgs, switches int, span time.Duration) (err error) {
	w, err := recording.Create(path, recording.WriterOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	start := sched.Now()
	events := []sched.Event{
		sched.SourceInfo{Time: start, Label: "LIVE", Host: "bench", Started: start},
		sched.GPU{Time: start, Index: 0, Name: "NVIDIA H200", Driver: "580.159.04", MemoryBytes: 139 << 30,
			Runlists: []sched.Runlist{{ID: 0, Engines: []uint32{1}}}},
	}
	for _, p := range []string{"rm", "ctxsw", "xid"} {
		events = append(events, sched.ProbeStatus{Time: start, Probe: p, GPU: sched.Unknown, State: sched.ProbeOK})
	}
	inv := sched.Inventory{Start: start, End: start, Complete: true}
	for i := range tsgs {
		pid := 1000 + i/4
		client := sched.Handle(0xc1d00001 + i/4)
		if i%4 == 0 {
			events = append(events, sched.Process{Time: start, PID: pid, Start: uint64(pid), Exe: fmt.Sprintf("/usr/bin/worker-%02d", i/4),
				User: fmt.Sprintf("user%d", i%7), Unit: fmt.Sprintf("k8s:job-%d", i/8)})
			inv.Clients = append(inv.Clients, sched.FoundClient{Client: client, PID: pid})
		}
		tsg := sched.Object{Client: client, Handle: sched.Handle(0x5c000010 + i%4)}
		inv.TSGs = append(inv.TSGs, sched.FoundTSG{Object: tsg, Number: sched.Ptr(uint32(i + 1)), Engine: sched.Ptr(uint32(1)),
			Timeslice: sched.Ptr(uint64(2048)), Contexts: []uint32{contextID(i)}, PID: pid})
		inv.Channels = append(inv.Channels, sched.FoundChannel{Object: sched.Object{Client: client, Handle: sched.Handle(0x5c000100 + i)},
			TSG: tsg.Handle, Class: 0xc86f, Context: sched.Ptr(contextID(i)), ChID: sched.Ptr(uint32(i + 8))})
	}
	if err := w.Write(append(events, inv)); err != nil {
		return err
	}
	turn := sched.Time(time.Second) / sched.Time(switches)
	const flush = 5 * time.Millisecond
	who := 0
	for at := start; at < start.Add(span); at = at.Add(flush) {
		batch := sched.TraceBatch{Time: at.Add(flush)}
		for t := at; t+turn <= batch.Time; t += turn {
			// A little unevenly, so that numbers move as they do on a GPU.
			uneven := sched.Time(uint64(t)/1000*2654435761%97) * turn / 2000
			pid := uint32(1000 + who/4)
			batch.Records = append(batch.Records,
				sched.TraceRecord{Time: t, Context: contextID(who), PID: pid, Tag: sched.TagStart},
				sched.TraceRecord{Time: t + turn*9/10 + uneven, Context: contextID(who), PID: pid, Tag: sched.TagEnd})
			who = (who + 1) % tsgs
		}
		out := []sched.Event{batch}
		if int64(at.Sub(start))%int64(time.Second) == 0 {
			out = append(out, sched.GPUSample{Time: at, GPU: 0, SMPercent: sched.Ptr(90 + who%8), MemUsed: sched.Ptr(uint64(22 << 30)),
				PowerMilliW: sched.Ptr(uint64(600_000 + 1000*(who%9))), TemperatureC: sched.Ptr(60)})
		}
		if err := w.Write(out); err != nil {
			return err
		}
	}
	return nil
}

// contextID is the context id of a TSG.
func contextID(i int) uint32 { return uint32(0x40 + i) }
