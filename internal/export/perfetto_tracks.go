package export

import (
	"fmt"
	"hash/fnv"

	"tsgtop/internal/sched"
)

// uuid names a track by what it is of.
func uuid(format string, args ...any) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, format, args...)
	return h.Sum64() | 1
}

// track describes a track, unless it was described like this before.
func (p *perfetto) track(id, parent uint64, name string, more func(*message)) error {
	d := (&message{}).uint(fTrackUUID, id)
	if parent != 0 {
		d.uint(fTrackParent, parent)
	}
	if name != "" {
		d.string(fTrackName, name)
	}
	if more != nil {
		more(d)
	}
	h := fnv.New64a()
	h.Write(d.b)
	if sum := h.Sum64(); p.tracks[id] != sum {
		if len(p.tracks) >= maxTracks {
			clear(p.tracks)
		}
		p.tracks[id] = sum
		return p.write(p.packet.reset().sub(fTrackDescriptor, d))
	}
	return nil
}

func (p *perfetto) gpuTrack(gpu int) (uint64, error) {
	name := fmt.Sprintf("GPU%d", gpu)
	if gpu == sched.Unknown {
		name = "GPU not known"
	}
	if n := p.gpuNames[gpu]; n != "" {
		name += " " + n
	}
	id := uuid("gpu %d", gpu)
	return id, p.track(id, 0, name, func(d *message) { d.uint(fTrackOrder, trackOrderByRank) })
}

func (p *perfetto) laneTrack(l Lane) (uint64, error) {
	parent, err := p.gpuTrack(l.GPU)
	if err != nil {
		return 0, err
	}
	name := fmt.Sprintf("gr%d", l.N)
	if l.Runlist != sched.Unknown {
		name += fmt.Sprintf(" (runlist %d)", l.Runlist)
	}
	id := uuid("lane %d %d", l.GPU, l.N)
	return id, p.track(id, parent, name, func(d *message) { d.uint(fTrackRank, rankRunlist) })
}

func (p *perfetto) processTrack(r *Row) (uint64, error) {
	if r.PID <= 0 {
		return p.gpuTrack(r.ID.GPU)
	}
	id := uuid("process %d %d", r.PID, r.Start)
	return id, p.track(id, 0, "", func(d *message) {
		proc := (&message{}).uint(fProcessPID, uint64(r.PID)).string(fProcessName, r.Name)
		d.sub(fTrackProcess, proc)
	})
}

func (p *perfetto) counterTrack(id, parent uint64, name, unit string) error {
	return p.track(id, parent, name, func(d *message) {
		d.sub(fTrackCounter, (&message{}).string(fCounterUnitName, unit)).uint(fTrackRank, rankCounter)
	})
}

// label names a turn: the process and the TSG.
func label(r *Row) string {
	name := r.Name
	if name == "" {
		name = "unknown"
		if r.PID > 0 {
			name = fmt.Sprintf("pid %d", r.PID)
		}
	}
	if r.Context {
		return name + " (TSG not known)"
	}
	return name + " " + target(r.ID)
}

func target(id sched.TSGID) string {
	part := func(n int) string {
		if n == sched.Unknown {
			return "?"
		}
		return fmt.Sprint(n)
	}
	return part(id.GPU) + ":" + part(id.Runlist) + ":" + part(id.TSG)
}
