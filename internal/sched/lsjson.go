package sched

import (
	"time"

	"tsgtop/internal/rm"
	"tsgtop/internal/text"
)

// LSOutput is what `tsgtop ls --json` prints. Text that came from processes is
// made safe to show.
type LSOutput struct {
	SchemaVersion int            `json:"schema_version"`
	Time          string         `json:"time"`
	Host          string         `json:"host"`
	Source        string         `json:"source"`
	GPUs          []LSGPU        `json:"gpus"`
	TSGs          []LSTSG        `json:"tsgs"`
	Unattributed  LSUnattributed `json:"unattributed"`
	Lost          LSLost         `json:"lost"`
}

// LSGPU is one GPU of LSOutput.
type LSGPU struct {
	Index        int      `json:"index"`
	Name         string   `json:"name"`
	UUID         string   `json:"uuid"`
	Driver       string   `json:"driver"`
	Open         *bool    `json:"open"`
	GSP          *bool    `json:"gsp"`
	MIG          *bool    `json:"mig"`
	SwitchesPerS *float64 `json:"switches_per_s"`
	SwitchTax    *float64 `json:"switch_tax"`
}

// LSTSG is one TSG of LSOutput. What is not known is null.
type LSTSG struct {
	GPU           *int        `json:"gpu"`
	Runlist       *int        `json:"runlist"`
	TSG           *int        `json:"tsg"`
	Engine        *string     `json:"engine"`
	Client        *Handle     `json:"client"`
	Object        *Handle     `json:"object"`
	PID           int         `json:"pid"`
	NSPID         int         `json:"nspid"`
	Exe           string      `json:"exe"`
	User          string      `json:"user"`
	Cgroup        string      `json:"cgroup"`
	Unit          string      `json:"unit"`
	TimesliceUS   *uint64     `json:"timeslice_us"`
	TimesliceFrom *string     `json:"timeslice_from"`
	Interleave    *uint32     `json:"interleave"`
	ResidencyUS   *Stats      `json:"residency_us"`
	WaitUS        *Stats      `json:"wait_us"`
	Share         *float64    `json:"share"`
	TurnsPerS     *float64    `json:"turns_per_s"`
	WhyNull       string      `json:"why_null"`
	Channels      []LSChannel `json:"channels"`
}

// LSChannel is one channel of LSTSG.
type LSChannel struct {
	Object  *Handle `json:"object"`
	Class   *string `json:"class"`
	ChID    *uint32 `json:"chid"`
	Context *uint32 `json:"context"`
}

// LSUnattributed counts what is there and has no known owner.
type LSUnattributed struct {
	Contexts int `json:"contexts"`
	Channels int `json:"channels"`
}

// LSLost counts what was seen to be missing, since the start.
type LSLost struct {
	Ring  uint64 `json:"ring"`
	Queue uint64 `json:"queue"`
	Trace uint64 `json:"trace"`
}

// LS gives the snapshot as `ls --json` prints it, with the numbers of a window.
func (s *Snapshot) LS(window Window) LSOutput {
	out := LSOutput{
		SchemaVersion: SchemaVersion,
		Time:          jsonTime(s.Time),
		Host:          text.Clean(s.Source.Host),
		Source:        sourceWord(s.Source.Label),
		GPUs:          make([]LSGPU, 0, len(s.GPUs)),
		TSGs:          make([]LSTSG, 0, len(s.TSGs)),
		Unattributed:  LSUnattributed{s.Unattributed.Contexts, s.Unattributed.Channels},
		Lost:          LSLost{s.Lost.Ring, s.Lost.Queue, s.Lost.Trace + s.Lost.Overtaken},
	}
	for i := range s.GPUs {
		out.GPUs = append(out.GPUs, s.GPUs[i].ls(window))
	}
	for i := range s.TSGs {
		out.TSGs = append(out.TSGs, s.TSGs[i].ls(window))
	}
	return out
}

func (g *GPUView) ls(window Window) LSGPU {
	return LSGPU{
		Index: g.Index, Name: text.Clean(g.Name), UUID: text.Clean(g.UUID), Driver: text.Clean(g.Driver),
		Open: g.Open, GSP: g.GSP, MIG: g.MIG, SwitchesPerS: g.SwitchesPerS, SwitchTax: g.SwitchTax[window],
	}
}

func (t *TSGView) ls(window Window) LSTSG {
	sc := &t.Score[window]
	out := LSTSG{
		GPU: knownInt(t.ID.GPU), Runlist: knownInt(t.ID.Runlist), TSG: knownInt(t.ID.TSG),
		PID: t.Process.PID, NSPID: t.Process.NSPID,
		Exe: text.Clean(t.Process.Exe), User: text.Clean(t.Process.User),
		Cgroup: text.Clean(t.Process.Cgroup), Unit: text.Clean(t.Process.Unit),
		TimesliceUS: t.Timeslice, Interleave: t.Interleave,
		ResidencyUS: sc.Residency, WaitUS: sc.Wait, Share: sc.Share, TurnsPerS: sc.TurnsPerS, WhyNull: text.Clean(sc.WhyNull),
		Channels: make([]LSChannel, 0, len(t.Channels)),
	}
	if t.Engine != nil {
		out.Engine = Ptr(rm.EngineName(*t.Engine))
	}
	if t.TimesliceFrom != FromNowhere {
		out.TimesliceFrom = Ptr(text.Clean(string(t.TimesliceFrom)))
	}
	if !t.Context {
		out.Client = Ptr(t.Object.Client)
		out.Object = knownHandle(t.Object.Handle)
	}
	for _, c := range t.Channels {
		l := LSChannel{Object: knownHandle(c.Object), ChID: c.ChID, Context: c.Context}
		if c.Class != 0 {
			l.Class = Ptr(jsonHex(c.Class))
		}
		out.Channels = append(out.Channels, l)
	}
	return out
}

func knownInt(n int) *int {
	if n == Unknown {
		return nil
	}
	return &n
}

func knownHandle(h Handle) *Handle {
	if h == 0 {
		return nil
	}
	return &h
}

// jsonTime is an instant in RFC 3339, UTC, to the nanosecond; empty where it is not known.
func jsonTime(t Time) string {
	if t == 0 {
		return ""
	}
	return t.Std().UTC().Format(time.RFC3339Nano)
}

// sourceWord is the word of the command line for a source's label.
func sourceWord(label string) string {
	switch label {
	case "LIVE":
		return "live"
	case "DEMO":
		return "demo"
	case "SIMULATED":
		return "sim"
	case "RECORDING":
		return "recording"
	}
	return text.Clean(label)
}

// ScoreOutput is what `tsgtop score --json` prints: the scorecard of a window.
type ScoreOutput struct {
	SchemaVersion int          `json:"schema_version"`
	Time          string       `json:"time"`
	Source        string       `json:"source"`
	Window        string       `json:"window"` // "1s", "10s" or "all"
	GPUs          []ScoreGPU   `json:"gpus"`
	TSGs          []ScoreTSG   `json:"tsgs"`
	Groups        []ScoreGroup `json:"groups,omitempty"` // where they were asked for
	Lost          LSLost       `json:"lost"`
}

// ScoreGPU is one GPU's part of the scorecard.
type ScoreGPU struct {
	Index        int      `json:"index"`
	Competing    int      `json:"competing"`
	SwitchesPerS *float64 `json:"switches_per_s"`
	SwitchTax    *float64 `json:"switch_tax"`
	TraceWhy     string   `json:"trace_why"`
}

// SwitchesJSON is how many context switches the GSP counted in a window, and
// over which span; null where that is not known.
type SwitchesJSON struct {
	Forced    *uint64  `json:"forced"`    // in the middle of a kernel
	Voluntary *uint64  `json:"voluntary"` // its kernel had ended
	SpanS     *float64 `json:"switches_span_s"`
	Why       string   `json:"switches_why"`
}

func (sc *Score) switchesJSON() SwitchesJSON {
	if s := sc.Switches; s != nil {
		return SwitchesJSON{Forced: &s.Forced, Voluntary: &s.Voluntary, SpanS: &s.SpanS}
	}
	return SwitchesJSON{Why: text.Clean(sc.SwitchesWhy)}
}

// ScoreTSG is one TSG's scorecard. What is not known is null.
type ScoreTSG struct {
	GPU         *int     `json:"gpu"`
	Runlist     *int     `json:"runlist"`
	TSG         *int     `json:"tsg"`
	Client      *Handle  `json:"client"`
	Object      *Handle  `json:"object"`
	PID         int      `json:"pid"`
	Exe         string   `json:"exe"`
	TimesliceUS *uint64  `json:"timeslice_us"`
	Turns       uint64   `json:"turns"`
	TurnsPerS   *float64 `json:"turns_per_s"`
	Share       *float64 `json:"share"`
	ResidencyUS *Stats   `json:"residency_us"`
	WaitUS      *Stats   `json:"wait_us"`
	OffUS       *Stats   `json:"off_us"`
	WhyNull     string   `json:"why_null"`
	SwitchesJSON
}

// ScoreGroup is the scorecard of several TSGs together. What is not known is null.
type ScoreGroup struct {
	By          string   `json:"by"`    // "process", "user" or "unit"
	Group       string   `json:"group"` // which one
	TSGs        int      `json:"tsgs"`
	Turns       uint64   `json:"turns"`
	TurnsPerS   *float64 `json:"turns_per_s"`
	Share       *float64 `json:"share"` // sum of theirs
	ResidencyUS *Stats   `json:"residency_us"`
	WaitUS      *Stats   `json:"wait_us"`
	OffUS       *Stats   `json:"off_us"`
	WhyNull     string   `json:"why_null"`
	SwitchesJSON
}

// ScoreOutput gives the snapshot as `score --json` prints it, with the numbers of
// a window.
func (s *Snapshot) ScoreOutput(window Window) ScoreOutput {
	out := ScoreOutput{
		SchemaVersion: SchemaVersion, Time: jsonTime(s.Time), Source: sourceWord(s.Source.Label), Window: window.String(),
		GPUs: make([]ScoreGPU, 0, len(s.GPUs)), TSGs: make([]ScoreTSG, 0, len(s.TSGs)),
		Lost: LSLost{s.Lost.Ring, s.Lost.Queue, s.Lost.Trace + s.Lost.Overtaken},
	}
	for i := range s.GPUs {
		g := &s.GPUs[i]
		out.GPUs = append(out.GPUs, ScoreGPU{g.Index, g.Competing, g.SwitchesPerS, g.SwitchTax[window], text.Clean(g.TraceWhy)})
	}
	for i := range s.TSGs {
		t := s.TSGs[i].ls(window)
		sc := &s.TSGs[i].Score[window]
		out.TSGs = append(out.TSGs, ScoreTSG{
			GPU: t.GPU, Runlist: t.Runlist, TSG: t.TSG, Client: t.Client, Object: t.Object, PID: t.PID, Exe: t.Exe,
			TimesliceUS: t.TimesliceUS, Turns: sc.Turns, TurnsPerS: sc.TurnsPerS, Share: sc.Share,
			ResidencyUS: sc.Residency, WaitUS: sc.Wait, OffUS: sc.Off, WhyNull: text.Clean(sc.WhyNull),
			SwitchesJSON: sc.switchesJSON(),
		})
	}
	for i := range s.Groups {
		g := &s.Groups[i]
		sc := &g.Score[window]
		out.Groups = append(out.Groups, ScoreGroup{
			By: text.Clean(s.GroupTag), Group: text.Clean(g.Key), TSGs: g.TSGs, Turns: sc.Turns, TurnsPerS: sc.TurnsPerS, Share: sc.Share,
			ResidencyUS: sc.Residency, WaitUS: sc.Wait, OffUS: sc.Off, WhyNull: text.Clean(sc.WhyNull), SwitchesJSON: sc.switchesJSON(),
		})
	}
	return out
}

// String is the window's name: 1s, 10s or all.
func (w Window) String() string {
	switch w {
	case Window1s:
		return "1s"
	case Window10s:
		return "10s"
	}
	return "all"
}
