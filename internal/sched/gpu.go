package sched

import "slices"

// gpu is one GPU and the timelines of its graphics engines.
type gpu struct {
	view      GPU
	sample    *GPUSample
	xids      int
	engines   []*engine
	traceFrom Time // the trace is being read since
	traceTo   Time // it has been read up to here
	read      ring // how much of each bucket of time was read (as competed)
}

// gpu finds a GPU by its index, and makes one that nobody described yet. Nil
// where the index cannot be, or there are too many.
func (s *State) gpu(index int) *gpu {
	i, ok := slices.BinarySearchFunc(s.gpus, index, func(g *gpu, x int) int { return g.view.Index - x })
	if ok {
		return s.gpus[i]
	}
	if index < 0 || index >= maxGPUs {
		if index != Unknown {
			s.cut++
		}
		return nil
	}
	g := &gpu{view: GPU{Index: index, Minor: Unknown, DeviceInstance: Unknown}}
	s.gpus = slices.Insert(s.gpus, i, g)
	return g
}

// applyGPU takes what is new in a description. Several probes describe a GPU,
// each with what it knows, so an empty field changes nothing.
func (s *State) applyGPU(e GPU) {
	g := s.gpu(e.Index)
	if g == nil {
		return
	}
	v := &g.view
	v.Time = e.Time
	// A description without the GPU's id did not come from RM: its zeroes for
	// RM's numbers mean nothing.
	if e.ID != 0 || v.ID == 0 {
		if e.Minor != Unknown {
			v.Minor = e.Minor
		}
		if e.DeviceInstance != Unknown {
			v.DeviceInstance = e.DeviceInstance
		}
	}
	take(&v.ID, e.ID)
	take(&v.PCI, clip(e.PCI))
	take(&v.UUID, clip(e.UUID))
	take(&v.Name, clip(e.Name))
	take(&v.Driver, clip(e.Driver))
	take(&v.Open, e.Open)
	take(&v.GSP, e.GSP)
	take(&v.MIG, e.MIG)
	take(&v.Persistence, e.Persistence)
	take(&v.MemoryBytes, e.MemoryBytes)
	take(&v.Why, clip(e.Why))
	if len(e.Runlists) > 0 {
		v.Runlists = slices.Clone(e.Runlists[:min(len(e.Runlists), 256)])
		for i := range v.Runlists {
			v.Runlists[i].Engines = slices.Clone(v.Runlists[i].Engines)
		}
	}
	for _, t := range s.tsgs {
		s.locate(t)
	}
}

func take[T comparable](to *T, v T) {
	var zero T
	if v != zero {
		*to = v
	}
}

func (s *State) applySample(e GPUSample) {
	if g := s.gpu(e.GPU); g != nil {
		e.ProcessMem = slices.Clone(e.ProcessMem[:min(len(e.ProcessMem), maxProcesses)])
		g.sample = &e
	}
}

// runlistOf gives the one runlist that feeds an engine; Unknown where the map
// is not known or names several.
func (g *gpu) runlistOf(engine uint32) int {
	id := Unknown
	for _, r := range g.view.Runlists {
		if slices.Contains(r.Engines, engine) {
			if id != Unknown && id != r.ID {
				return Unknown
			}
			id = r.ID
		}
	}
	return id
}

// enginesOf gives the engines of a runlist.
func (g *gpu) enginesOf(runlist int) []uint32 {
	for _, r := range g.view.Runlists {
		if r.ID == runlist {
			return r.Engines
		}
	}
	return nil
}
