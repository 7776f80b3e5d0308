package sched

import (
	"fmt"

	"tsgtop/internal/rm"
)

// Sentences for what cannot be known.
const (
	whyMIG         = "MIG is on: no trace"
	whyNoGPU       = "its GPU is not known yet"
	whyNoTurn      = "no turn yet"
	whyNoSwitch    = "nothing has switched yet: a context that is alone makes no records"
	whyAlone       = "alone: nothing to switch to"
	whyNoSlice     = "no wait: its timeslice is not known"
	whyNoneCut     = "no wait: no turn was ended by its timeslice or a preempt"
	whyAllGaps     = "no clean turn while another competed"
	whyNoOtherTurn = "no time off seen yet"
)

var nothingCompeted = [NumWindows]string{
	"nothing competed in the last second",
	"nothing competed in the last 10 s",
	"nothing has competed since the start",
}

// noTrace says why the trace gives no number of a row at all; empty where it can.
func (s *State) noTrace(g *gpu, r *row) string {
	if t := r.tsg; t != nil {
		if graphics, known := s.graphics(t); known && !graphics {
			name := "this engine"
			if t.engType.ok {
				name = rm.EngineName(t.engType.v)
				if name[0] == 'c' {
					name = "copy engine " + name
				}
			}
			return name + ": no trace, only the graphics engine has one"
		}
	}
	if g == nil {
		return whyNoGPU
	}
	if g.traceFrom == 0 {
		return s.traceWhy(g)
	}
	return ""
}

// traceWhy says why a GPU has no trace, or what limits it; empty when it is good.
func (s *State) traceWhy(g *gpu) string {
	var p *ProbeStatus
	for i := range s.probes {
		q := &s.probes[i]
		if q.Probe == "ctxsw" && (q.GPU == g.view.Index || q.GPU == Unknown && p == nil) {
			p = q
		}
	}
	switch {
	case p != nil && p.State == ProbeOK && g.traceFrom != 0:
		return ""
	case p != nil && p.State == ProbeOK:
		return fmt.Sprintf("no trace of GPU%d read yet", g.view.Index)
	case p != nil && p.State == ProbeLimited && g.traceFrom != 0:
		return p.Why
	case p != nil && p.Why != "":
		return fmt.Sprintf("no trace of GPU%d: %s", g.view.Index, p.Why)
	case p != nil && p.State == ProbeReleased:
		return fmt.Sprintf("no trace of GPU%d: let go on request", g.view.Index)
	case g.traceFrom != 0:
		return ""
	case g.view.MIG != nil && *g.view.MIG:
		return whyMIG
	}
	return fmt.Sprintf("no trace of GPU%d", g.view.Index)
}

// whyNoTurn says why a row without a finished turn has no numbers.
func (s *State) whyNoTurn(r *row, own *engine) string {
	if own != nil && own.otherThan(r) == 0 {
		return whyAlone
	}
	if len(s.gpu(r.gpu).engines) == 0 {
		return whyNoSwitch
	}
	return whyNoTurn
}

// whyPartly says why a part of a score is null though its share is not.
func (s *State) whyPartly(sc *Score, r *row, own *engine) string {
	switch {
	case sc.Turns == 0:
		return whyNoTurn
	case sc.Residency == nil:
		return whyAllGaps
	case sc.Off == nil:
		return whyNoOtherTurn
	case sc.Wait == nil && (r.tsg == nil || r.tsg.slice.from == FromNowhere):
		return whyNoSlice
	case sc.Wait == nil:
		return whyNoneCut
	}
	return ""
}
