package nvml

import "tsgtop/internal/sched"

// place says which of the machine's GPUs a device of NVML's is, and gives it
// with NVML's members put in. GPUs are matched by PCI address, or by UUID
// where an address is missing, and never by their place in the order: inside
// a container NVML can count fewer than there are. Where the machine's GPUs
// are not known, NVML's own count stands: it is nvidia-smi's.
func place(known []sched.GPU, index int, d device) (sched.GPU, bool) {
	if len(known) == 0 {
		return d.into(sched.GPU{Index: index, Minor: sched.Unknown, DeviceInstance: sched.Unknown, PCI: d.PCI}), true
	}
	for _, g := range known {
		samePCI := d.PCI != "" && normalPCI(g.PCI) == d.PCI
		otherPCI := d.PCI != "" && g.PCI != "" && !samePCI
		sameUUID := d.UUID != "" && g.UUID == d.UUID
		otherUUID := d.UUID != "" && g.UUID != "" && !sameUUID
		if (samePCI || sameUUID) && !otherPCI && !otherUUID {
			return d.into(g), true
		}
	}
	return sched.GPU{}, false
}

// into puts what NVML knows into g.
func (d device) into(g sched.GPU) sched.GPU {
	g.Time = sched.Now()
	for _, m := range []struct {
		to   *string
		from string
	}{{&g.UUID, d.UUID}, {&g.Name, d.Name}, {&g.Driver, d.Driver}} {
		if m.from != "" {
			*m.to = m.from
		}
	}
	if d.MIG != nil {
		g.MIG = d.MIG
	}
	if d.Persistence != nil {
		g.Persistence = d.Persistence
	}
	if d.MemoryBytes != 0 {
		g.MemoryBytes = d.MemoryBytes
	}
	return g
}
