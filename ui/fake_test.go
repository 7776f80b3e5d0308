package ui

import (
	"fmt"
	"math"
	"time"

	"tsgtop/internal/sched"
)

// evil is a name as a hostile process would choose it.
const evil = "e\x1b[2J\x1b]0;gone\x07vil\u202eexe\u200b🚀\xff\n"

// t0 is the instant of the synthetic snapshots.
var t0 = sched.Time(time.Date(2026, 3, 4, 14, 20, 7, 120e6, time.UTC).UnixNano())

// fakeBoard answers with a synthetic machine, at the instant now.
type fakeBoard struct {
	now   sched.Time
	snap  func(now sched.Time) *sched.Snapshot
	calls []sched.CallLine
	asked sched.SnapshotOptions
	asks  int
}

func (b *fakeBoard) Snapshot(o sched.SnapshotOptions) *sched.Snapshot {
	b.asked = o
	b.asks++
	s := b.snap(b.now)
	if o.LaneSpan > 0 {
		s.Lanes = lanes(s, o.LaneSpan)
	}
	if o.Detail != 0 {
		s.Detail = detailOf(s, o.Detail)
	}
	if o.Group != nil {
		s.Groups, s.GroupTag = groupsOf(s, o.Group), o.GroupTag
	}
	return s
}

func (b *fakeBoard) Calls(after uint64, most int, filter func(*sched.Call) bool) []sched.CallLine {
	var out []sched.CallLine
	for _, l := range b.calls {
		if l.Seq > after && len(out) < most && (l.Call == nil || filter == nil || filter(l.Call)) {
			out = append(out, l)
		}
	}
	return out
}

// groupsOf gives each group the median of its key's length in ms, and as many
// forced switches, so that a row shows whose numbers it has.
func groupsOf(s *sched.Snapshot, group func(*sched.TSGView) (string, bool)) []sched.GroupView {
	var out []sched.GroupView
	met := map[string]bool{}
	for i := range s.TSGs {
		key, in := group(&s.TSGs[i])
		if !in || met[key] {
			continue
		}
		met[key] = true
		g := sched.GroupView{Key: key}
		for w := range g.Score {
			n := float64(len(key))
			g.Score[w].Residency = stats(100, n*1000, n*1000+5)
			g.Score[w].Switches = &sched.Switches{Forced: uint64(len(key)), Voluntary: 3, SpanS: 1}
		}
		out = append(out, g)
	}
	return out
}

func u32(v uint32) *uint32   { return &v }
func u64(v uint64) *uint64   { return &v }
func f64(v float64) *float64 { return &v }

func stats(n uint64, p50, p95 float64) *sched.Stats {
	return &sched.Stats{N: n, Min: p50 * 0.97, Mean: p50 * 1.001, StdDev: p50 * 0.01, P50: p50, P95: p95, P99: p95 * 1.003, Max: p95 * 1.2}
}

func competing(p50, share, turns, wait float64) [sched.NumWindows]sched.Score {
	var out [sched.NumWindows]sched.Score
	for w, secs := range []float64{1, 10, 60} {
		n := uint64(turns * secs)
		out[w] = sched.Score{Residency: stats(n, p50, p50+5), Wait: stats(n, wait*0.95, wait), Off: stats(n, wait*0.95, wait),
			Share: f64(share), Turns: n, TurnsPerS: f64(turns), Switches: &sched.Switches{Forced: n * 4 / 5, Voluntary: n / 5, SpanS: secs}}
	}
	return out
}

func process(pid int, exe, user, unit string) sched.Process {
	return sched.Process{PID: pid, Start: uint64(pid) * 100, Exe: exe, User: user, Unit: unit}
}

// oneGPU is a machine with one H200 on which two processes compete.
func oneGPU(now sched.Time) *sched.Snapshot {
	gr := []uint32{1}
	s := &sched.Snapshot{Time: now,
		Source: sched.SourceInfo{Label: "LIVE", Host: "dgx-07"},
		GPUs: []sched.GPUView{{
			GPU: sched.GPU{Index: 0, Name: "NVIDIA H200", Driver: "580.159.04", Open: sched.Ptr(true), GSP: sched.Ptr(true), MemoryBytes: 139 << 30,
				Runlists: []sched.Runlist{{ID: 0, Engines: gr}, {ID: 1, Engines: []uint32{11}}, {ID: 3, Engines: []uint32{13}}}},
			Sample: &sched.GPUSample{SMPercent: sched.Ptr(92), MemUsed: u64(22978 << 20), MemTotal: u64(139 << 30),
				PowerMilliW: u64(612_400), TemperatureC: sched.Ptr(61)},
			Competing: 2, SwitchesPerS: f64(487), SwitchTax: [sched.NumWindows]*float64{f64(0.037), f64(0.036), f64(0.036)},
		}},
		Probes: []sched.ProbeStatus{
			{Probe: "rm", GPU: -1, State: sched.ProbeOK, Rung: "fentry"}, {Probe: "ctxsw", State: sched.ProbeOK},
			{Probe: "xid", GPU: -1, State: sched.ProbeOK}, {Probe: "nvml", GPU: -1, State: sched.ProbeOK}},
		CallRate: 1234,
	}
	train := process(479, "/home/ada/train.py", "ada", "k8s:job-7")
	serve := process(480, "/usr/bin/serve", "bob", "docker:api")
	s.TSGs = []sched.TSGView{
		{Gen: 2, ID: sched.TSGID{GPU: 0, Runlist: 0, TSG: 6}, Object: sched.Object{Client: 0xc1d0001d, Handle: 0x5c000015}, Process: serve,
			Engine: u32(1), Timeslice: u64(2048), TimesliceFrom: sched.FromRead, Score: competing(2197, 0.472, 243, 2312), MemoryBytes: u64(9 << 30)},
		{Gen: 1, ID: sched.TSGID{GPU: 0, Runlist: 0, TSG: 7}, Object: sched.Object{Client: 0xc1d0001c, Handle: 0x5c000015}, Process: train,
			Engine: u32(1), Timeslice: u64(2048), TimesliceFrom: sched.FromSeen, Score: competing(2197, 0.485, 243, 2305), MemoryBytes: u64(12 << 30),
			Interleave: u32(2), Scheduled: sched.Ptr(true), Resident: true, UniqueID: u32(0x2a),
			Channels: []sched.ChannelView{{Object: 0x5c000016, Class: 0xc86f, ChID: u32(12), Context: u32(0x3f)}, {Object: 0x5c00001c, Class: 0xc86f}}},
		{Gen: 3, ID: sched.TSGID{GPU: 0, Runlist: 1, TSG: 2}, Object: sched.Object{Client: 0xc1d0001c, Handle: 0x5c000031}, Process: train,
			Engine: u32(11), Timeslice: u64(1024), TimesliceFrom: sched.FromDefault, WhyNull: "copy engine: no trace"},
		{Gen: 4, ID: sched.TSGID{GPU: 0, Runlist: 3, TSG: 1}, Object: sched.Object{Client: 0xc1d0001d, Handle: 0x5c000041}, Process: serve,
			Engine: u32(13), Timeslice: u64(1024), TimesliceFrom: sched.FromDefault, WhyNull: "copy engine: no trace"},
	}
	return s
}

// commands in every state that a lamp can have.
func commands(now sched.Time) []sched.Command {
	at := func(ago time.Duration) sched.Time { return now.Add(-ago) }
	target := sched.Target{TSGID: sched.TSGID{GPU: 0, Runlist: 0, TSG: 7}, Gen: 1, PID: 479, Exe: "/home/ada/train.py", User: "ada", Unit: "k8s:job-7"}
	yes := func(why string) sched.Lamp { return sched.Lamp{State: sched.LampYes, Why: why} }
	accepted := sched.Accepted{Lamp: yes("the GSP took it"), Status: "NV_OK", Where: "gsp", RPCus: sched.Ptr(int64(412)), CallUS: sched.Ptr(int64(430))}
	return []sched.Command{
		{Number: 1, ID: "a1", Asked: at(80 * time.Second), Issued: at(80 * time.Second), Op: sched.OpInterleave, Target: target, Step: sched.StepJudged, New: u64(0),
			Ran:      yes("seen"),
			Accepted: sched.Accepted{Lamp: sched.Lamp{State: sched.LampNo, Why: "stub: the GSP was never asked"}, Status: "NV_OK", Where: "driver"},
			Changed:  sched.Changed{Lamp: sched.Lamp{State: sched.LampUnknown, Why: "only 12 turns in 3 s"}}},
		{Number: 2, ID: "a2", Asked: at(70 * time.Second), Op: sched.OpTimeslice, Target: target, Step: sched.StepRefused, Old: u64(2048), New: u64(100_000_000),
			Why: "100000000 is out of range: 100 to 60000 microseconds"},
		{Number: 3, ID: "a3", Asked: at(65 * time.Second), Issued: at(65 * time.Second), Op: sched.OpTimeslice, Target: target, Step: sched.StepJudged, Old: u64(2048), New: u64(200),
			Ran: yes("our eBPF program saw this call go in and come back"), Accepted: accepted, Undo: "sets 2048 us again",
			Changed: sched.Changed{Lamp: yes("residency fell"), Metric: "residency_us", Evidence: "residency p50 2197 -> 302 us (x0.14, 99.9% CI 0.12-0.15), 487/775 turns in 24/38 blocks",
				Victim: &sched.Cost{ShareBefore: f64(0.485), ShareAfter: f64(0.11)}, TookNS: 1.2e9}},
		{Number: 4, ID: "a4", Asked: at(26 * time.Second), Issued: at(26 * time.Second), Op: sched.OpInterleave, Target: target, Step: sched.StepJudged, New: u64(2),
			Ran: yes("seen"), Accepted: accepted, Xid: []uint32{13},
			Changed: sched.Changed{Lamp: sched.Lamp{State: sched.LampNo, Why: "equivalent"}, Evidence: "share 48.5 -> 48.4%, turns 243 -> 243/s"}},
		{Number: 5, ID: "a5", Asked: at(2 * time.Second), Issued: at(1900 * time.Millisecond), Op: sched.OpPreempt, Target: target, Step: sched.StepIssued, Count: 50,
			Ran: yes("seen"), Accepted: accepted, Changed: sched.Changed{Lamp: sched.Lamp{State: sched.LampWaiting, Why: "waiting for the context's end"}}},
	}
}

// busy is two GPUs with everything that can be shown, commands and Xids too.
func busy(now sched.Time) *sched.Snapshot {
	s := oneGPU(now)
	s.GPUs = append(s.GPUs, sched.GPUView{GPU: sched.GPU{Index: 1, Name: "NVIDIA H200", Driver: "580.159.04", MemoryBytes: 139 << 30},
		Sample: &sched.GPUSample{SMPercent: sched.Ptr(7), MemUsed: u64(900 << 20)}, TraceWhy: "MIG is on: no trace", XidCount: 2})
	s.TSGs = append(s.TSGs,
		sched.TSGView{Gen: 10, ID: sched.TSGID{GPU: 0, Runlist: 0, TSG: -1}, Context: true, Process: process(9001, "", "", ""),
			Channels: []sched.ChannelView{{Context: u32(0xabc)}}, Score: competing(150, 0.04, 12, 90_000)},
		sched.TSGView{Gen: 11, ID: sched.TSGID{GPU: 1, Runlist: 0, TSG: 2047}, Object: sched.Object{Client: 0xc1d00044, Handle: 0x5c000015},
			Process: process(4194303, "/tmp/"+evil, "mallory\x1b[31m", "docker:"+evil), Engine: u32(1), Timeslice: u64(100_000_000), TimesliceFrom: sched.FromRead,
			WhyNull: "no trace on GPU1: MIG is on", MemoryBytes: u64(80 << 30)},
		sched.TSGView{Gen: 12, ID: sched.TSGID{GPU: 1, Runlist: -1, TSG: -1}, Object: sched.Object{Client: 0xc1d00044, Handle: 0x5c000022},
			Process: sched.Process{PID: 77, Comm: "日本語プロセス名前", Gone: true, WhyNull: "it ended before it could be read"}, WhyNull: "not on a runlist yet"},
	)
	s.Probes[1].State, s.Probes[1].GPU = sched.ProbeLimited, 1
	s.Probes[1].Why = "MIG is on: no trace on GPU1"
	s.Probes[2].State, s.Probes[2].Why = sched.ProbeMissing, "the tracepoint nvidia_dev_xid is not there"
	s.Lost = sched.Loss{Ring: 3, Queue: 0, Trace: 123456, Faults: 2}
	s.Commands = commands(now)
	s.Xids = []sched.Xid{
		{Time: now.Add(-25900 * time.Millisecond), GPU: 0, Code: 13, PID: 479, Name: evil, Channel: sched.Ptr(12), Text: "Graphics Exception " + evil, From: "tracepoint"},
		{Time: now.Add(-3 * time.Second), GPU: 1, Code: 79, Text: "GPU has fallen off the bus.", From: "kernel log"},
	}
	return s
}

// mps is an MPS server whose two clients share its compute TSG.
func mps(now sched.Time) *sched.Snapshot {
	s := oneGPU(now)
	t := &s.TSGs[0]
	t.Process, t.MPS, t.Clients, t.HolderPIDs = process(654, "/usr/bin/nvidia-cuda-mps-server", "root", ""), true, 2, []int{649, 650, 654}
	return s
}

// eight is a machine with eight GPUs.
func eight(now sched.Time) *sched.Snapshot {
	s := oneGPU(now)
	for i := 1; i < 8; i++ {
		g := s.GPUs[0]
		g.Index = i
		g.Sample = &sched.GPUSample{SMPercent: sched.Ptr(i * 14), MemUsed: u64(uint64(i) << 34)}
		s.GPUs = append(s.GPUs, g)
		t := s.TSGs[0]
		t.Gen, t.ID.GPU = uint64(100+i), i
		s.TSGs = append(s.TSGs, t)
	}
	return s
}

// crowd is 200 TSGs of 50 processes that compete on one GPU, whose numbers
// change with time.
func crowd(now sched.Time) *sched.Snapshot {
	s := oneGPU(now)
	s.TSGs = nil
	step := float64(now/1e8) * 0.7
	for i := range 200 {
		w := math.Sin(step + float64(i))
		s.TSGs = append(s.TSGs, sched.TSGView{Gen: uint64(i + 1), ID: sched.TSGID{Runlist: 0, TSG: i + 1},
			Object:  sched.Object{Client: sched.Handle(0xc1d00000 + i/4), Handle: sched.Handle(0x5c000015 + i)},
			Process: process(1000+i/4, fmt.Sprintf("/usr/bin/worker-%02d", i/4), "user"+fmt.Sprint(i%7), fmt.Sprintf("k8s:job-%d", i/8)),
			Engine:  u32(1), Timeslice: u64(2048), TimesliceFrom: sched.FromRead, MemoryBytes: u64(uint64(i+1) << 28),
			Score: competing(2197+5*w, 0.005+0.0004*w, 25+w, 400_000+1000*w)})
	}
	s.GPUs[0].Competing, s.GPUs[0].SwitchesPerS = 200, f64(5000+10*math.Sin(step))
	return s
}

// lanes lets the TSGs that have turns go round, each for its residency, with
// 75 us between, a little unevenly.
func lanes(s *sched.Snapshot, span time.Duration) []sched.Lane {
	from := s.Time.Add(-span)
	ln := sched.Lane{GPU: 0, Runlist: 0, From: from, To: s.Time}
	var on []*sched.TSGView
	for i := range s.TSGs {
		if t := &s.TSGs[i]; t.ID.GPU == 0 && t.Score[0].Residency != nil {
			on = append(on, t)
		}
	}
	if len(on) == 0 {
		return []sched.Lane{ln}
	}
	period := sched.Time(0)
	for _, t := range on {
		period += sched.Time(t.Score[0].Residency.P50*1000) + 75_000
	}
	for at := from / period * period; at < s.Time; {
		for i, t := range on {
			jitter := sched.Time((uint64(at)/1000*2654435761 + uint64(i)*97) % 9000)
			d := sched.Time(t.Score[0].Residency.P50*1000) + jitter
			if at+d > from && at < s.Time {
				ln.Turns = append(ln.Turns, sched.Turn{Gen: t.Gen, Start: max(at, from), End: min(at+d, s.Time), EndedBy: sched.EndTimeslice, Clean: true})
			}
			at += d + 75_000
		}
	}
	return []sched.Lane{ln, {GPU: 0, Runlist: 1, From: from, To: s.Time}}
}

func detailOf(s *sched.Snapshot, gen uint64) *sched.Detail {
	d := &sched.Detail{Gen: gen, InForce: sched.InForce{Known: true, AsSet: true, CutUS: 2197}}
	for i := range 40 {
		from := 100 * math.Pow(1.1, float64(i))
		n := uint64(1000 * math.Exp(-math.Pow(math.Log(from/2150)/0.08, 2)))
		w := uint64(400*math.Exp(-math.Pow(math.Log(from/2300)/0.2, 2)) + 60*math.Exp(-math.Pow(math.Log(from/400)/0.3, 2)))
		d.Residency.Bins = append(d.Residency.Bins, sched.Bin{From: from, To: from * 1.1, N: n})
		d.Residency.Total += n
		d.Wait.Bins = append(d.Wait.Bins, sched.Bin{From: from, To: from * 1.1, N: w})
		d.Wait.Total += w
	}
	for i := range 300 {
		p := sched.SharePoint{Time: s.Time.Add(-time.Duration(300-i) * time.Second)}
		if i > 40 {
			p.Share = f64(0.5 + 0.4*math.Sin(float64(i)/20))
		}
		d.Share = append(d.Share, p)
	}
	d.Timeslices = []sched.TimesliceChange{{Time: s.Time.Add(-300 * time.Second), Value: 2048, PID: 479}, {Time: s.Time.Add(-65 * time.Second), Value: 200, PID: 900, Command: "a3"},
		{Time: s.Time.Add(-60 * time.Second), Value: 7, PID: 901, Status: 0x56}}
	for _, l := range callLines(s.Time) {
		if l.Call != nil && l.Call.PID == 479 {
			d.Calls = append(d.Calls, *l.Call)
		}
	}
	return d
}

func callLines(now sched.Time) []sched.CallLine {
	at := func(ms int) sched.Time { return now.Add(time.Duration(ms-100) * time.Millisecond) }
	call := func(ms, us int, c sched.Call) *sched.Call {
		c.End = at(ms)
		c.Start = c.End.Add(-time.Duration(us) * time.Microsecond)
		return &c
	}
	ls := []sched.CallLine{
		{Call: call(1, 35, sched.Call{PID: 479, Comm: "train.py", Kind: sched.CallAlloc, Number: 0xa06c, Client: 0xc1d0001c, Object: 0x5c000015, Where: sched.WhereDriver, Params: &sched.Params{Engine: u32(1)}})},
		{Lifecycle: &sched.Lifecycle{Time: at(1), Kind: sched.TSGCreated, Gen: 1, ID: sched.TSGID{GPU: 0, Runlist: -1, TSG: -1}, Object: sched.Object{Handle: 0x5c000015}, PID: 479}},
		{Call: call(3, 430, sched.Call{PID: 479, Comm: "train.py", Kind: sched.CallControl, Number: 0xa06c0103, Client: 0xc1d0001c, Object: 0x5c000015, Where: sched.WhereGSP, Params: &sched.Params{Timeslice: u64(2048)}})},
		{Lifecycle: &sched.Lifecycle{Time: at(3), Kind: sched.TimesliceSet, Gen: 1, ID: sched.TSGID{GPU: 0, Runlist: 0, TSG: 7}, Object: sched.Object{Handle: 0x5c000015}, PID: 479, Value: u64(2048)}},
		{Call: call(4, 3, sched.Call{PID: 4194303, Comm: evil, Kind: sched.CallControl, Number: 0x20801234, Client: 0xc1d00044, Object: 0xcaf00001, Status: 0x56})},
		{Call: call(5, 2, sched.Call{PID: 480, Comm: "serve", Kind: sched.CallFree, Client: 0xc1d0001d, Object: 0x5c000041, Errno: 14})},
		{Call: call(6, 560, sched.Call{PID: 900, Comm: "tsgtop", Kind: sched.CallControl, Number: 0xa06c0105, Client: 0xc1d0001c, Object: 0x5c000015, Where: sched.WhereGSP, Params: &sched.Params{Wait: sched.Ptr(true)}, Command: "a5"})},
		{Xid: &sched.Xid{Time: at(7), GPU: 0, Code: 13, PID: 479, Name: evil}},
		{Exit: &sched.ProcessExit{Time: at(8), PID: 480}},
	}
	for i := range ls {
		ls[i].Seq = uint64(i + 1)
	}
	return ls
}
