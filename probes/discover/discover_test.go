//go:build linux

package discover

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"tsgtop/internal/rm"
	"tsgtop/internal/rmdev"
	"tsgtop/internal/rmdev/rmfake"
	"tsgtop/internal/sched"
)

// cuda starts a process with one CUDA context on a GPU.
func cuda(d *rmfake.Driver, g *rmfake.GPU, pid int) (*rmfake.Process, *rmfake.Client, []rmfake.TSG) {
	p := d.AddProcess(pid, "train (1) x")
	p.Open(4)
	p.OpenOther(5, "/dev/null")
	p.Open(7) // where mappings go: no client
	c := p.NewClient(4)
	return p, c, c.CUDA(g, 0x5c000000)
}

func discoverer(t *testing.T, d *rmfake.Driver, opts Options) *Discoverer {
	t.Helper()
	if opts.Behind == 0 {
		opts.Behind = time.Millisecond
	}
	x := New(rmdev.New(d), opts)
	t.Cleanup(func() {
		x.Close()
		x.rm.WaitCloses()
		if n := d.OpenFiles(); n != 0 {
			t.Errorf("%d descriptors left open", n)
		}
		for _, line := range d.Log() {
			t.Errorf("kernel log: %s", line)
		}
	})
	return x
}

func full(t *testing.T, x *Discoverer) sched.Inventory {
	t.Helper()
	inv, err := x.Full(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

// compare holds what was found against what CUDA made.
func compare(t *testing.T, inv sched.Inventory, client *rmfake.Client, pid, gpu int, want []rmfake.TSG) {
	t.Helper()
	engines := map[uint32]uint32{0: 1, 1: 11, 3: 13, 10: 18}
	got := 0
	for _, f := range inv.TSGs {
		if uint32(f.Client) == client.Handle {
			got++
		}
	}
	if got != len(want) {
		t.Errorf("client %08x: %d TSGs, want %d", client.Handle, got, len(want))
	}
	for _, w := range want {
		i := slices.IndexFunc(inv.TSGs, func(f sched.FoundTSG) bool {
			return uint32(f.Client) == client.Handle && uint32(f.Handle) == w.Handle
		})
		if i < 0 {
			t.Errorf("TSG %08x not found", w.Handle)
			continue
		}
		f := inv.TSGs[i]
		if f.PID != pid || f.GPU != gpu || f.Runlist != int(w.Runlist) || uint32(f.Device) != w.Device ||
			*f.Number != w.Number || *f.Timeslice != w.Timeslice || *f.UniqueID != w.Unique {
			t.Errorf("TSG %08x: %+v, want %+v", w.Handle, f, w)
		}
		if f.Engine == nil || *f.Engine != engines[w.Runlist] {
			t.Errorf("TSG %08x: engine %v, want %d", w.Handle, f.Engine, engines[w.Runlist])
		}
		var contexts []uint32
		for _, ch := range w.Channels {
			contexts = append(contexts, ch.Context)
			j := slices.IndexFunc(inv.Channels, func(f sched.FoundChannel) bool {
				return uint32(f.Client) == client.Handle && uint32(f.Handle) == ch.Handle
			})
			if j < 0 {
				t.Errorf("channel %08x not found", ch.Handle)
				continue
			}
			c := inv.Channels[j]
			if uint32(c.TSG) != w.Handle || *c.Context != ch.Context || *c.ChID != ch.ChID || *c.Runlist != w.Runlist || c.Class != rm.ClassChannelHopper {
				t.Errorf("channel %08x: %+v, want %+v", ch.Handle, c, ch)
			}
		}
		if !slices.Equal(f.Contexts, contexts) {
			t.Errorf("TSG %08x: contexts %x, want %x", w.Handle, f.Contexts, contexts)
		}
	}
}

func TestFindsEveryTSG(t *testing.T) {
	d := rmfake.New()
	g := d.AddGPU()
	_, c1, t1 := cuda(d, g, 479)
	_, c2, t2 := cuda(d, g, 480)
	x := discoverer(t, d, Options{})
	inv := full(t, x)
	compare(t, inv, c1, 479, 0, t1)
	compare(t, inv, c2, 480, 0, t2)
	if len(inv.Clients) != 2 || inv.Clients[0].FD != 4 || inv.Clients[0].PID != 479 || !slices.Equal(inv.Clients[0].PIDs, []int{479}) || inv.Clients[0].GPU != 0 {
		t.Errorf("clients %+v", inv.Clients)
	}
	if inv.UnattributedChannels != 0 || inv.UnattributedClients != 0 || inv.Why != "" || inv.Partial {
		t.Errorf("unattributed %d, %d, %q", inv.UnattributedChannels, inv.UnattributedClients, inv.Why)
	}
	if inv.Start == 0 || inv.End < inv.Start || inv.PerProcessNS <= 0 {
		t.Errorf("stamps %d, %d, %d", inv.Start, inv.End, inv.PerProcessNS)
	}
	// Each process costs a bounded number of questions: at 2.8 us each on an
	// H200 these are the 5 ms that it may take.
	if n := d.Calls(rm.CtrlHandleInfo) / 2; n > 1500 {
		t.Errorf("%d questions for each process", n)
	}
	// Looking again finds the same.
	again := full(t, x)
	if len(again.TSGs) != len(inv.TSGs) || len(again.Channels) != len(inv.Channels) || len(again.Gone) != 0 {
		t.Errorf("looked again: %d TSGs, %d channels, gone %v", len(again.TSGs), len(again.Channels), again.Gone)
	}
}

func TestForkedProcessesShareAFile(t *testing.T) {
	for _, noCompare := range []bool{false, true} {
		t.Run(fmt.Sprintf("kcmp %v", !noCompare), func(t *testing.T) {
			d := rmfake.New()
			d.NoCompare = noCompare
			g := d.AddGPU()
			p, c, tsgs := cuda(d, g, 479)
			p.Fork(600)
			child := p.Fork(601)
			x := discoverer(t, d, Options{})
			inv := full(t, x)
			compare(t, inv, c, 479, 0, tsgs)
			if len(inv.Clients) != 1 || !slices.Equal(inv.Clients[0].PIDs, []int{479, 600, 601}) {
				t.Fatalf("clients %+v", inv.Clients)
			}
			// The parent ends: its client does not.
			p.Exit()
			inv = full(t, x)
			compare(t, inv, c, 600, 0, tsgs)
			if len(inv.Gone) != 0 || !slices.Equal(inv.Clients[0].PIDs, []int{600, 601}) {
				t.Errorf("after the parent's end: gone %v, clients %+v", inv.Gone, inv.Clients)
			}
			_ = child
		})
	}
}

// A client that is older than the wrap of the handles' index is found all the same.
func TestClientsBehindAWrap(t *testing.T) {
	d := rmfake.New()
	g := d.AddGPU()
	d.NextIndex = 0xffff0
	_, c1, t1 := cuda(d, g, 479)
	d.NextIndex = 0x20
	_, c2, t2 := cuda(d, g, 480)
	x := discoverer(t, d, Options{})
	inv := full(t, x)
	compare(t, inv, c1, 479, 0, t1)
	compare(t, inv, c2, 480, 0, t2)
	if !inv.Complete {
		t.Error("not complete, though all of the ring was walked")
	}
	// From now on only what is new is asked about.
	asked := d.Calls(rm.CtrlAccessRights)
	d.NextIndex = 0xfffff
	_, c3, t3 := cuda(d, g, 481)
	cuda(d, g, 482) // behind the wrap
	inv = full(t, x)
	compare(t, inv, c3, 481, 0, t3)
	if len(inv.Clients) != 4 || !inv.Complete {
		t.Errorf("%d clients, complete %v", len(inv.Clients), inv.Complete)
	}
	if n := d.Calls(rm.CtrlAccessRights) - asked; n < 1<<19 && n > 5000 {
		t.Errorf("%d questions for four clients", n)
	}
}

// The count of clients, where no internal ones hide in it, ends the walk.
func TestCountEndsTheWalk(t *testing.T) {
	d := rmfake.New()
	d.InternalClients = 0
	g := d.AddGPU()
	d.NextIndex = 0x80000
	cuda(d, g, 479)
	x := discoverer(t, d, Options{})
	inv := full(t, x)
	if n := d.Calls(rm.CtrlAccessRights); n > 100 || !inv.Complete || len(inv.Clients) != 1 {
		t.Errorf("%d questions, complete %v, %d clients", n, inv.Complete, len(inv.Clients))
	}
}

// A process can die between any two of our questions.
func TestProcessDiesAtAnyMoment(t *testing.T) {
	total := 0
	for at := 1; at < 800; at += 1 + at/12 {
		d := rmfake.New()
		g := d.AddGPU()
		p, _, _ := cuda(d, g, 479)
		_, c2, t2 := cuda(d, g, 480)
		x := discoverer(t, d, Options{})
		n := 0
		d.Hook = func(_, _, cmd uint32) {
			if cmd != rm.CtrlAccessRights {
				n++
			}
			if n == at {
				n++
				p.Exit()
			}
		}
		inv, err := x.Full(context.Background())
		if err != nil {
			t.Fatalf("death at question %d: %v", at, err)
		}
		compare(t, inv, c2, 480, 0, t2)
		x.rm.WaitCloses()
		inv = full(t, x)
		if n >= at && (len(inv.Clients) != 1 || len(inv.TSGs) != 4) {
			t.Fatalf("death at question %d: afterwards %d clients, %d TSGs", at, len(inv.Clients), len(inv.TSGs))
		}
		total++
	}
	if total < 30 {
		t.Errorf("only %d moments tried", total)
	}
}

// A client that ends between the walk of the clients and the look at the files
// is not asked anything: that would be a line in the kernel log for each file.
func TestProcessDiesBeforeItsFilesAreRead(t *testing.T) {
	d := rmfake.New()
	g := d.AddGPU()
	cuda(d, g, 479)
	_, c2, t2 := cuda(d, g, 480)
	d.OnReadDir = func(path string) {
		if path == "/proc/480/fd" {
			d.Kill(479)
		}
	}
	x := discoverer(t, d, Options{})
	inv := full(t, x)
	compare(t, inv, c2, 480, 0, t2)
	if len(inv.Clients) != 1 || len(inv.Gone) != 1 || inv.UnattributedClients != 0 {
		t.Errorf("%d clients, gone %v, unattributed %d", len(inv.Clients), inv.Gone, inv.UnattributedClients)
	}
}

func TestKernelClientsAreCounted(t *testing.T) {
	d := rmfake.New()
	g := d.AddGPU()
	k := d.KernelClient()
	kt := k.CUDA(g, 0x5c000000) // nobody's: not to be looked into
	cuda(d, g, 479)
	x := discoverer(t, d, Options{})
	for range 2 {
		inv := full(t, x)
		if inv.UnattributedClients != 1 || inv.UnattributedChannels != len(kt[0].Channels) || len(inv.Clients) != 1 {
			t.Errorf("unattributed %d clients, %d channels; %d clients found", inv.UnattributedClients, inv.UnattributedChannels, len(inv.Clients))
		}
	}
}

func TestGPUsAndTheirOrder(t *testing.T) {
	d := rmfake.New()
	var gpus []*rmfake.GPU
	for range 8 {
		gpus = append(gpus, d.AddGPU())
	}
	for i, g := range gpus {
		g.Bus, g.DeviceInstance = uint8(0xf0-0x10*i), uint32(i) // PCI order is the reverse
	}
	_, c, tsgs := cuda(d, gpus[2], 479)
	more := c.CUDA(gpus[7], 0x5c001000) // a second context, elsewhere
	x := discoverer(t, d, Options{MissRun: 0x1100})
	inv := full(t, x)
	for _, f := range inv.TSGs {
		want := 5
		if f.Handle > 0x5c001000 {
			want = 0
		}
		if f.GPU != want {
			t.Errorf("TSG %v on GPU%d, want GPU%d", f.Object, f.GPU, want)
		}
	}
	if len(inv.TSGs) != len(tsgs)+len(more) {
		t.Errorf("%d TSGs, want %d", len(inv.TSGs), len(tsgs)+len(more))
	}
	list, err := x.GPUs(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range list {
		if g.Index != i || g.ID != gpus[7-i].ID || g.DeviceInstance != 7-i || g.Driver != "580.159.04" || !*g.Open || !*g.GSP || *g.MIG || g.Why != "" {
			t.Errorf("GPU %d: %+v", i, g)
		}
		if len(g.Runlists) != 5 || g.Runlists[0].ID != 0 || !slices.Equal(g.Runlists[0].Engines, []uint32{1, 9}) {
			t.Errorf("GPU %d: runlists %v", i, g.Runlists)
		}
	}
}

// Handles elsewhere than libcuda's are found from those that RM or the stream tells.
func TestHandlesElsewhere(t *testing.T) {
	d := rmfake.New()
	g := d.AddGPU()
	p := d.AddProcess(7, "vulkan")
	p.Open(3)
	c := p.NewClient(3)
	tsgs := c.CUDA(g, 0xbeef0000)
	x := discoverer(t, d, Options{})
	compare(t, full(t, x), c, 7, 0, tsgs)

	// A TSG far from all others is known from the stream alone.
	far := c.AddTSG(0x12340000, tsgs[0].Device, 0, 2)
	inv, err := x.Client(context.Background(), sched.Handle(c.Handle), []sched.Handle{0x12340000})
	if err != nil {
		t.Fatal(err)
	}
	compareHandles(t, inv, append(slices.Clone(tsgs), far))
}

func compareHandles(t *testing.T, inv sched.Inventory, want []rmfake.TSG) {
	t.Helper()
	var got, wanted []uint32
	for _, f := range inv.TSGs {
		got = append(got, uint32(f.Handle))
	}
	for _, w := range want {
		wanted = append(wanted, w.Handle)
	}
	slices.Sort(got)
	slices.Sort(wanted)
	if !slices.Equal(got, wanted) {
		t.Errorf("TSGs %x, want %x", got, wanted)
	}
}

func TestClientThatDoesNotExist(t *testing.T) {
	d := rmfake.New()
	d.AddGPU()
	x := discoverer(t, d, Options{})
	inv, err := x.Client(context.Background(), 0xc1d12345, nil)
	if err != nil || !slices.Equal(inv.Gone, []sched.Handle{0xc1d12345}) || len(inv.Clients) != 0 {
		t.Errorf("%+v, %v", inv, err)
	}
}

func TestMPS(t *testing.T) {
	d := rmfake.New()
	g := d.AddGPU()
	p := d.AddProcess(5, "nvidia-cuda-mps") // as the kernel cuts the server's name
	p.Open(3)
	p.NewClient(3).CUDA(g, 0x5c000000)
	_, c, _ := cuda(d, g, 6)
	c.Add(0x5c000900, c.Handle, rm.ClassMPS, g)
	_, _, _ = cuda(d, g, 8)
	x := discoverer(t, d, Options{MissRun: 0x1000})
	inv := full(t, x)
	for i, want := range []bool{true, true, false} {
		if inv.Clients[i].MPS != want {
			t.Errorf("client of pid %d: MPS %v, want %v", inv.Clients[i].PID, inv.Clients[i].MPS, want)
		}
	}
}

func TestReleaseClosesEverything(t *testing.T) {
	d := rmfake.New()
	g := d.AddGPU()
	_, c, tsgs := cuda(d, g, 479)
	x := discoverer(t, d, Options{})
	full(t, x)
	x.Release()
	x.rm.WaitCloses()
	if n := d.OpenFiles(); n != 0 {
		t.Errorf("%d descriptors open", n)
	}
	if _, err := x.Full(context.Background()); err == nil || x.Status().State != sched.ProbeReleased {
		t.Errorf("scanned while released: %v, %+v", err, x.Status())
	}
	x.Resume()
	compare(t, full(t, x), c, 479, 0, tsgs)
}

func TestCancel(t *testing.T) {
	d := rmfake.New()
	g := d.AddGPU()
	d.NextIndex = 0xfff00
	cuda(d, g, 479)
	x := discoverer(t, d, Options{})
	ctx, cancel := context.WithCancel(context.Background())
	n := 0
	d.Hook = func(_, _, cmd uint32) {
		if n++; n == 1000 {
			cancel()
		}
	}
	if _, err := x.Full(ctx); err == nil {
		t.Error("no error")
	}
	if n > 5000 {
		t.Errorf("%d more questions after the end", n-1000)
	}
}
