package sim

import (
	"fmt"

	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
)

// process is one CUDA process: a client, a device, one compute TSG of eight
// channels and three copy TSGs of four, as libcuda makes them.
type process struct {
	gpu     int
	pid     int
	start   uint64
	client  sched.Handle
	who     identity
	memory  uint64
	compute *tsg
	groups  []group
	closed  bool
}

// group is one of a process's TSGs.
type group struct {
	object   sched.Handle
	engine   uint32
	runlist  int
	number   int
	unique   uint32
	slice    uint64
	channels []channel
}

type channel struct {
	object  sched.Handle
	context uint32
	chid    uint32
}

type identity struct{ exe, user, unit string }

// identities are who the first processes are; later ones are numbered.
var identities = []identity{
	{"/usr/bin/train.py", "ada", "k8s:job-7"},
	{"/opt/serve/serve", "bob", "docker:api"},
	{"/usr/bin/render", "eve", "slurm:4711"},
	{"/usr/lib/jupyter/kernel", "mallory", "systemd:jupyter.service"},
}

// Handles that libcuda gives its objects: the same in each process.
const (
	handleDevice    sched.Handle = 0x5c000001
	handleSubdevice sched.Handle = 0x5c000002
	handleCompute   sched.Handle = 0x5c000015
	handleCopy      sched.Handle = 0x5c000030 // and every 0x10 after
)

// Where the copy engines' TSGs of a CUDA process are.
var copyRunlists = []int{1, 3, 10}

// kernelLengths, in ns: the target's first. Back to back 30 ms kernels as on
// the H200, or kernels of unrelated lengths that end before the timeslice.
var shortLengths = []float64{310e3, 430e3, 190e3, 520e3}

const longLength = 30e6

// The latency-critical target, in ns: the kernel's length, and the mean time
// from its end to the next launch.
const (
	lcLength = 1e6
	lcGap    = 9e6
)

// newProcess makes the j-th process of a GPU.
func (m *Machine) newProcess(gpu, j int) *process {
	n := &m.nextIDs
	who := identity{fmt.Sprintf("/usr/bin/worker-%d", j), fmt.Sprintf("user%d", j%8), fmt.Sprintf("k8s:worker-%d", j)}
	if j < len(identities) {
		who = identities[j]
	}
	number := 7 + j // the first target is always 0:0:7
	if j == 1 {
		number = 6
	}
	p := &process{gpu: gpu, pid: n.pid, start: n.start, client: n.client, who: who, memory: uint64(9+j%5) << 30}
	n.pid++
	n.start += 137
	n.client += 0x11
	p.compute = &tsg{number: number, pid: p.pid, slice: libcudaSlice, slots: 1, arrives: never,
		program: program{length: longLength, noise: m.config.Noise}}
	if m.config.ShortKernels {
		p.compute.program.length = shortLengths[j%len(shortLengths)]
	}
	if gpu == 0 && j == 0 {
		p.compute.program.idle = m.config.Idle
		if m.config.LC {
			p.compute.program.length, p.compute.program.gap = lcLength, lcGap
		}
	}
	p.populate(n, number)
	p.compute.context = p.groups[0].channels[0].context
	// It is somewhere in a kernel when the machine is first looked at.
	length, _ := p.compute.program.next(-1, m.rand)
	p.compute.work, p.compute.since, p.compute.launched = 1+int64(m.rand.Float64()*float64(length)), int64(m.now), int64(m.now)
	return p
}

// populate makes the process's TSGs and channels.
func (p *process) populate(n *ids, number int) {
	add := func(g group, channels int) {
		g.unique = n.unique
		n.unique++
		for i := range channels {
			g.channels = append(g.channels, channel{object: g.object + 7 + sched.Handle(i), context: n.context, chid: n.context & 0xfff})
			n.context++
		}
		p.groups = append(p.groups, g)
	}
	add(group{object: handleCompute, engine: engineGR0, runlist: 0, number: number, slice: libcudaSlice}, 8)
	for i, runlist := range copyRunlists {
		add(group{object: handleCopy + sched.Handle(i)*0x10, engine: engineCE0 + 2 + uint32(i), runlist: runlist,
			number: number, slice: rmDefaultSlice}, 4)
	}
}

func (p *process) identity(t sched.Time) sched.Process {
	comm := p.who.exe
	for i := len(comm) - 1; i >= 0; i-- {
		if comm[i] == '/' {
			comm = comm[i+1:]
			break
		}
	}
	return sched.Process{Time: t, PID: p.pid, Start: p.start, Exe: p.who.exe, Comm: comm, UID: sched.Ptr(1000 + len(p.who.user)),
		User: p.who.user, Cgroup: "/simulated/" + p.who.unit, Unit: p.who.unit}
}

// Target names the process's compute TSG as a command does.
func (p *process) target() sched.Target {
	g := p.groups[0]
	t := sched.Target{TSGID: sched.TSGID{GPU: p.gpu, Runlist: g.runlist, TSG: g.number}, Object: sched.Object{Client: p.client, Handle: g.object},
		UniqueID: sched.Ptr(g.unique), Engine: sched.Ptr(g.engine), PID: p.pid, Start: p.start, Exe: p.who.exe, User: p.who.user, Unit: p.who.unit}
	for _, c := range g.channels {
		t.Contexts = append(t.Contexts, c.context)
	}
	return t
}

// found writes the process into an inventory.
func (p *process) found(inv *sched.Inventory) {
	inv.Clients = append(inv.Clients, sched.FoundClient{Client: p.client, PID: p.pid, PIDs: []int{p.pid}, FD: 9, GPU: p.gpu})
	for _, g := range p.groups {
		f := sched.FoundTSG{Object: sched.Object{Client: p.client, Handle: g.object}, Device: handleDevice, GPU: p.gpu, Runlist: g.runlist,
			Number: sched.Ptr(uint32(g.number)), UniqueID: sched.Ptr(g.unique), Engine: sched.Ptr(g.engine), Timeslice: sched.Ptr(g.slice), PID: p.pid}
		for _, c := range g.channels {
			f.Contexts = append(f.Contexts, c.context)
			inv.Channels = append(inv.Channels, sched.FoundChannel{Object: sched.Object{Client: p.client, Handle: c.object}, TSG: g.object,
				Class: rm.ClassChannelHopper, Context: sched.Ptr(c.context), Runlist: sched.Ptr(uint32(g.runlist)), ChID: sched.Ptr(c.chid)})
		}
		inv.TSGs = append(inv.TSGs, f)
	}
}

// creation is the calls by which libcuda makes all this, ending at t.
func (p *process) creation(t sched.Time) []sched.Call {
	var calls []sched.Call
	call := func(c sched.Call) {
		c.PID, c.TID, c.Comm, c.File, c.Client = p.pid, p.pid, p.identity(t).Comm, uint32(p.pid), p.client
		calls = append(calls, c)
	}
	alloc := func(class uint32, parent, object sched.Handle, params *sched.Params) {
		call(sched.Call{Kind: sched.CallAlloc, Number: class, Parent: parent, Object: object, Params: params})
	}
	alloc(rm.ClassClient, 0, p.client, &sched.Params{ProcessID: sched.Ptr(uint32(p.pid))})
	alloc(rm.ClassDevice, p.client, handleDevice, &sched.Params{DeviceInstance: sched.Ptr(uint32(p.gpu))})
	alloc(rm.ClassSubdevice, handleDevice, handleSubdevice, &sched.Params{SubDevice: sched.Ptr(uint32(0))})
	for _, g := range p.groups {
		alloc(rm.ClassTSG, handleDevice, g.object, &sched.Params{Engine: sched.Ptr(g.engine)})
		for _, c := range g.channels {
			alloc(rm.ClassChannelHopper, g.object, c.object, &sched.Params{Engine: sched.Ptr(g.engine), Context: sched.Ptr(c.context)})
			call(sched.Call{Kind: sched.CallControl, Number: rm.CtrlWorkSubmitToken, Object: c.object,
				Params: &sched.Params{Runlist: sched.Ptr(uint32(g.runlist)), ChID: sched.Ptr(c.chid)}})
		}
		call(sched.Call{Kind: sched.CallControl, Number: rm.CtrlTSGInfo, Object: g.object, Params: &sched.Params{TSGNumber: sched.Ptr(uint32(g.number))}})
		if g.slice != rmDefaultSlice {
			call(sched.Call{Kind: sched.CallControl, Number: rm.CtrlTSGSetTimeslice, Object: g.object, Where: sched.WhereGSP, RPC: 410e3,
				Params: &sched.Params{Timeslice: sched.Ptr(g.slice)}})
		}
		call(sched.Call{Kind: sched.CallControl, Number: rm.CtrlTSGSchedule, Object: g.object, Where: sched.WhereGSP, RPC: 200e3,
			Params: &sched.Params{Enable: sched.Ptr(true)}})
	}
	at := t
	for i := len(calls) - 1; i >= 0; i-- {
		calls[i].End = at
		calls[i].Start = at - sched.Time(12e3+calls[i].RPC)
		at = calls[i].Start - 2e3
	}
	return calls
}
