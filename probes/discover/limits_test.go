//go:build linux

package discover

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"tsgtop/internal/rm"
	"tsgtop/internal/rmdev/rmfake"
	"tsgtop/internal/sched"
)

func TestWhatForbids(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(*rmfake.Driver)
		state   sched.ProbeState
		why     string
	}{
		{"nothing", func(*rmfake.Driver) {}, sched.ProbeOK, ""},
		{"pid namespace", func(d *rmfake.Driver) { d.PIDNamespace = "pid:[4026532500]" }, sched.ProbeLimited, "pid namespace of its own"},
		{"yama", func(d *rmfake.Driver) { d.Yama, d.RefuseBorrow = "3", true }, sched.ProbeLimited, "ptrace_scope is 3"},
		{"no right", func(d *rmfake.Driver) { d.RefuseBorrow = true }, sched.ProbeLimited, "CAP_SYS_PTRACE"},
		{"no driver", func(d *rmfake.Driver) { d.Missing = true }, sched.ProbeMissing, "no NVIDIA"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := rmfake.New()
			g := d.AddGPU()
			cuda(d, g, 479)
			c.prepare(d)
			x := discoverer(t, d, Options{})
			inv, err := x.Full(context.Background())
			if (err != nil) != d.Missing {
				t.Fatal(err)
			}
			if c.state == sched.ProbeLimited {
				if len(inv.Clients) != 0 || len(inv.TSGs) != 0 || inv.UnattributedClients != 1 || inv.Complete || inv.Why == "" {
					t.Errorf("inventory %+v", inv)
				}
			}
			s := x.Status()
			if s.State != c.state || !strings.Contains(s.Why, c.why) {
				t.Errorf("status %+v", s)
			}
			if os.Geteuid() == 0 && strings.Contains(s.Help, "sudo") {
				t.Errorf("root is told to run it with sudo: %+v", s)
			}
		})
	}
}

func TestOldDriver(t *testing.T) {
	d := rmfake.New()
	d.Version = "550.163.01"
	g := d.AddGPU()
	_, _, tsgs := cuda(d, g, 479)
	x := discoverer(t, d, Options{})
	inv := full(t, x)
	if len(inv.TSGs) != len(tsgs) || inv.TSGs[0].UniqueID != nil || inv.TSGs[0].Contexts != nil || inv.TSGs[0].Engine != nil {
		t.Errorf("%+v", inv.TSGs)
	}
	for _, cmd := range []uint32{rm.CtrlTSGUniqueIDs, rm.CtrlEngineRunlists, rm.CtrlChannelContextID} {
		if d.Calls(cmd) != 0 {
			t.Errorf("%s was asked", rm.ControlName(cmd))
		}
	}
	gpus, _ := x.GPUs(context.Background())
	if !strings.Contains(gpus[0].Why, "550.163.01") {
		t.Errorf("why %q", gpus[0].Why)
	}
}

func TestMIG(t *testing.T) {
	d := rmfake.New()
	g := d.AddGPU()
	g.MIG = true
	_, _, tsgs := cuda(d, g, 479)
	x := discoverer(t, d, Options{})
	if inv := full(t, x); len(inv.TSGs) != len(tsgs) {
		t.Errorf("%d TSGs, want %d", len(inv.TSGs), len(tsgs))
	}
	gpus, _ := x.GPUs(context.Background())
	if !*gpus[0].MIG || !strings.Contains(gpus[0].Why, "MIG") || d.Calls(rm.CtrlEngineRunlists) != 0 {
		t.Errorf("%+v", gpus[0])
	}
}

// What is asked about a client grows with what it has, and no faster: its file is
// borrowed meanwhile, and it chooses how much that is.
func TestQuestionsGrowWithObjects(t *testing.T) {
	questions := func(contexts int) uint32 {
		d := rmfake.New()
		g := d.AddGPU()
		p := d.AddProcess(479, "hoarder")
		p.Open(5)
		c := p.NewClient(5)
		for i := range contexts {
			c.CUDA(g, 0x5c000000+uint32(i)*0x80)
		}
		x := discoverer(t, d, Options{MissRun: 64, Budget: time.Minute})
		inv := full(t, x)
		if len(inv.TSGs) != 4*contexts || inv.TSGs[0].Engine == nil {
			t.Fatalf("%d TSGs of %d contexts", len(inv.TSGs), contexts)
		}
		return uint32(d.Calls(rm.CtrlHandleInfo))
	}
	if few, many := questions(8), questions(32); many > 5*few {
		t.Errorf("%d questions about 8 contexts, %d about 32", few, many)
	}
}
