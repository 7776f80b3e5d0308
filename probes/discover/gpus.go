//go:build linux

package discover

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"tsgtop/internal/rm"
	"tsgtop/internal/rmdev"
	"tsgtop/internal/sched"
)

// attach takes a GPU and asks what it has. What cannot be known is in why.
func (d *Discoverer) attach(g rmdev.GPU) gpu {
	out := gpu{GPU: g}
	a, err := d.dev.Attach(g)
	if err != nil {
		out.why = err.Error()
		return out
	}
	out.attached, out.GPU = a, a.GPU
	mig, err := d.dev.MIG(a)
	if err != nil {
		// Without knowing, nothing is asked that MIG makes noisy.
		out.why = err.Error()
		return out
	}
	out.mig = &mig
	if mig {
		out.why = "runlists are not known with MIG on: each instance numbers its engines by itself"
		return out
	}
	if !d.layout.EngineRunlists {
		out.why = fmt.Sprintf("driver %s does not tell which engines a runlist feeds", d.layout.Driver)
		return out
	}
	if out.runlists, err = d.runlists(a); err != nil {
		out.why = err.Error()
	}
	return out
}

// runlists asks which engines each runlist of a GPU feeds. RM is asked only
// about engines that the GPU says it has and that do have a runlist.
func (d *Discoverer) runlists(g *rmdev.AttachedGPU) ([]sched.Runlist, error) {
	var have rm.EnginesParams
	if err := d.dev.Control(g.Subdevice, rm.CtrlEngines, rmdev.Bytes(&have)[:d.layout.EnginesSize]); err != nil {
		return nil, fmt.Errorf("GPU%d's engines: %w", g.Index, err)
	}
	var p rm.EngineRunlistsParams
	n := 0
	for _, e := range have.Engines[:min(have.Count, rm.MaxEngines)] {
		if hasRunlist(e) {
			p.Engines[n] = e
			n++
		}
	}
	if err := d.dev.Control(g.Subdevice, rm.CtrlEngineRunlists, rmdev.Bytes(&p)[:d.layout.EngineRunlistsSize]); err != nil {
		return nil, fmt.Errorf("GPU%d's runlists: %w", g.Index, err)
	}
	var out []sched.Runlist
	for i, id := range p.Runlists[:n] {
		if id == rm.NoRunlist || id == rm.RunlistError {
			continue
		}
		j := slices.IndexFunc(out, func(r sched.Runlist) bool { return r.ID == int(id) })
		if j < 0 {
			j = len(out)
			out = append(out, sched.Runlist{ID: int(id)})
		}
		out[j].Engines = append(out[j].Engines, p.Engines[i])
	}
	slices.SortFunc(out, func(a, b sched.Runlist) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}

// hasRunlist tells whether work is given to engines of a kind through runlists.
func hasRunlist(engine uint32) bool {
	name := rm.EngineName(engine)
	for _, kind := range []string{"gr", "ce", "nvdec", "nvenc", "nvjpeg", "ofa", "sec2", "decompce"} {
		if strings.HasPrefix(name, kind) {
			return true
		}
	}
	return false
}

// GPUs describes the machine's GPUs, with their runlists.
func (d *Discoverer) GPUs(ctx context.Context) ([]sched.GPU, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := d.open(); err != nil {
		return nil, fmt.Errorf("list the GPUs: %w", err)
	}
	driver, err := d.rm.Driver()
	var out []sched.GPU
	for _, g := range d.gpus {
		s := sched.GPU{
			Time: d.opts.Now(), Index: g.Index, ID: g.ID, Minor: g.Minor, DeviceInstance: g.DeviceInstance,
			PCI: g.PCI, UUID: g.Information.UUID, Name: g.Information.Model, Driver: driver.Version,
			MIG: g.mig, Runlists: slices.Clone(g.runlists), Why: g.why,
		}
		if err == nil {
			s.Open = sched.Ptr(driver.Open)
		}
		if g.Information.Firmware != "" {
			s.GSP = sched.Ptr(g.Information.GSP())
		}
		out = append(out, s)
	}
	return out, nil
}
