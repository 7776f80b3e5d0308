package ui

import (
	"fmt"
	"strconv"
	"strings"

	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
)

// detailScreen is all that is known of one TSG.
type detailScreen struct {
	*Common
	gen    uint64
	last   sched.TSGView // as it was when it was last there
	top    int
	height int
	total  int
	before map[uint64]baseline // histograms as they were when a command was sent
}

// baseline is a TSG's residency histogram when a command was sent to it.
type baseline struct {
	number int
	hist   sched.Histogram
}

func (s *detailScreen) open(gen uint64) {
	if gen != s.gen {
		s.gen, s.top = gen, 0
	}
	if t := s.tsg(gen); t != nil {
		s.last = *t
	}
}

func (s *detailScreen) act(a action) { s.top = scrolled(a, s.top, s.height, s.total) }

func (s *detailScreen) lines(m *Model) []string {
	t := s.tsg(s.gen)
	ended := t == nil && s.rewound == 0
	if t == nil {
		t = &s.last
	} else {
		s.last = *t
	}
	over := []string{s.title(t, ended)}
	over = append(over, m.tsgs.lane.lines(s.Common)...)
	return m.frameOf(over, nil, t, func(height int) []string {
		s.height = height // before the body: its pictures are as high as there is room
		all := s.body(t)
		s.total = len(all)
		s.top = max(min(s.top, s.total-height), 0)
		return pad(s.Common, append([]string{}, all[s.top:min(s.top+max(height, 0), s.total)]...), height)
	})
}

func (s *detailScreen) title(t *sched.TSGView, ended bool) string {
	l := s.line().put(rolePlain, " ")
	name := "TSG " + t.ID.String()
	switch {
	case t.Context:
		name = contextLabel(t)
	case t.ID.TSG == sched.Unknown:
		name = "TSG of unknown number"
	}
	l.put(roleTitle, name)
	sep := "  "
	if t.Object.Handle != 0 {
		l.put(roleDim, sep+t.Object.String())
	}
	p := &t.Process
	if p.PID != 0 {
		l.put(rolePlain, sep+"pid "+strconv.Itoa(p.PID))
	}
	l.put(rolePlain, sep).cut(roleStrong, processName(t), 24)
	if ended {
		l.put(roleBad, sep+"ENDED")
	}
	return l.String()
}

func (s *detailScreen) body(t *sched.TSGView) []string {
	var out []string
	d := s.live.Detail
	if d == nil || d.Gen != s.gen {
		d = &sched.Detail{}
	}
	out = append(out, s.facts(t, d)...)
	out = append(out, s.histograms(t, d)...)
	out = append(out, s.shares(d)...)
	out = append(out, s.scoreTable(t)...)
	out = append(out, s.commands(t)...)
	out = append(out, s.timeslices(d)...)
	out = append(out, s.channels(t)...)
	return append(out, s.tsgCalls(d)...)
}

// facts are who it is and what it has.
func (s *detailScreen) facts(t *sched.TSGView, d *sched.Detail) []string {
	p := &t.Process
	var ps []part
	say := func(r role, label, value string) {
		if value != "" {
			value = strings.TrimSpace(value)
			room := max(s.width-4-len(label), 10)
			ps = append(ps, part{cols: 1, draw: func(l *line) { l.put(roleDim, label+" ").cut(r, value, min(room, 60)) }})
		}
	}
	add := func(label, value string) { say(rolePlain, label, value) }
	add("exe", p.Exe)
	if p.Comm != "" && p.Comm != processName(t) {
		add("calls itself", p.Comm)
	}
	add("user", userName(p))
	add("unit", p.Unit)
	if p.NSPID != 0 && p.NSPID != p.PID {
		add("pid inside", strconv.Itoa(p.NSPID))
	}
	if len(t.HolderPIDs) > 1 {
		what := "file held by"
		if t.Clients > 0 {
			what = "its clients' files held by"
		}
		add(what, strconv.Itoa(len(t.HolderPIDs))+" processes")
	}
	ts := s.signs.dash
	if t.Timeslice != nil {
		ts = fmt.Sprintf("%d%ss (%s)", *t.Timeslice, s.signs.micro, map[sched.ValueFrom]string{
			sched.FromSeen: "seen set", sched.FromRead: "RM's own copy", sched.FromDefault: "RM's default: nobody was seen to set it"}[t.TimesliceFrom])
	}
	add("timeslice", ts)
	inForce := rolePlain
	if d.InForce.Known && !d.InForce.AsSet {
		inForce = roleBad
	}
	say(inForce, "in force", s.inForce(t, &d.InForce))
	il := "not known: it cannot be read back, and was not seen set"
	if t.Interleave != nil {
		il = levelName(uint64(*t.Interleave)) + " (seen set)"
	}
	add("interleave", il)
	if t.Engine != nil {
		add("engine", rm.EngineName(*t.Engine))
	}
	if es := runlistEngines(s.gpu(t.ID.GPU), t.ID.Runlist); len(es) > 1 {
		add("its runlist feeds", strings.Join(engineNames(es), ", "))
	}
	if t.Scheduled != nil {
		add("scheduled", map[bool]string{true: "yes", false: "no"}[*t.Scheduled])
	}
	switch {
	case t.MPS && t.Clients > 0:
		add("MPS", "shared with "+plural(t.Clients, "client"))
	case t.MPS:
		add("MPS", "its clients share it")
	case t.Clients > 0:
		add("shared with", plural(t.Clients, "other client"))
	}
	if t.MemoryBytes != nil {
		add("memory of the process", bytesText(*t.MemoryBytes))
	}
	if t.Created != 0 {
		add("created", clock(t.Created))
	} else {
		add("created", "before we looked")
	}
	if t.UniqueID != nil {
		add("unique id", fmt.Sprintf("%x", *t.UniqueID))
	}
	// As many a line as fit.
	var out []string
	l := s.line().put(rolePlain, " ")
	for _, f := range ps {
		try := s.line()
		f.draw(try)
		if l.w > 1 && l.w+3+try.w > s.width-1 {
			out = append(out, l.String())
			l = s.line().put(rolePlain, " ")
		}
		if l.w > 1 {
			l.put(rolePlain, "   ")
		}
		f.draw(l)
	}
	return append(out, l.String())
}

// inForce is what the trace says of the timeslice that the hardware gives.
func (s *detailScreen) inForce(t *sched.TSGView, f *sched.InForce) string {
	switch {
	case t.Timeslice == nil || t.Engine != nil && !rm.IsGraphicsEngine(*t.Engine):
		return ""
	case !f.Known && f.Why == "":
		return ""
	case !f.Known:
		return "not known: " + f.Why
	case f.CutUS == 0:
		return fmt.Sprintf("yes: others end its turns in its beat (strength %.2f)", f.Beat)
	case f.AsSet:
		return fmt.Sprintf("yes: its turns are cut at %s", s.micros(f.CutUS))
	}
	return fmt.Sprintf("NO: its turns are cut at %s", s.micros(f.CutUS))
}

func (s *detailScreen) histograms(t *sched.TSGView, d *sched.Detail) []string {
	score := &t.Score[s.window]
	res := histogramView{title: "residency", h: &d.Residency, why: t.WhyNull, marks: s.marks(score.Residency)}
	if t.Timeslice != nil {
		res.marks = append([]histMark{{float64(*t.Timeslice), "timeslice"}}, res.marks...) // first: its mark has the place where two fall together
	}
	if b, ok := s.before[t.Gen]; ok {
		after := minus(&d.Residency, &b.hist)
		if after.Total > 0 {
			res.h, res.before = after, &b.hist
			res.title = fmt.Sprintf("residency after #%d, before it %s", b.number, s.signs.dot)
		}
	}
	wait := histogramView{title: "wait", h: &d.Wait, why: t.WhyNull, marks: s.marks(score.Wait)}
	height := 8
	if s.height >= 30 {
		height = 10
	}
	if s.width < 100 {
		return append(res.draw(s.Common, s.width, height), wait.draw(s.Common, s.width, height)...)
	}
	left, right := res.draw(s.Common, s.width/2, height), wait.draw(s.Common, s.width-s.width/2, height)
	out := make([]string, height)
	for i := range out {
		out[i] = padANSI(left[i], s.width/2) + right[i]
	}
	return out
}

func (s *detailScreen) marks(st *sched.Stats) []histMark {
	if st == nil || st.N == 0 {
		return nil
	}
	return []histMark{{st.P50, "p50"}, {st.P95, "p95"}, {st.P99, "p99"}}
}

// scoreTable is the scorecard of this TSG in each window.
func (s *detailScreen) scoreTable(t *sched.TSGView) []string {
	out := []string{s.rule("scorecard " + s.signs.dot + " " + windowWords[s.window])}
	l := s.line().gap(16)
	for _, st := range scoreStats {
		l.right(roleHead, st.title, 8)
	}
	out = append(out, l.String())
	for m := range numMetrics {
		l := s.line().left(roleDim, " "+[numMetrics]string{"residency", "wait", "off"}[m], 16)
		st := statsOf(m, &t.Score[s.window])
		for _, col := range scoreStats {
			switch {
			case st == nil || st.N == 0 && col.id != "n":
				l.right(roleDim, s.signs.dash, 8)
			case col.id == "n":
				l.right(rolePlain, count(st.N), 8)
			default:
				l.right(rolePlain, s.micros(col.of(st)), 8)
			}
		}
		out = append(out, l.String())
	}
	return append(out, s.switchLine("switches", 16, &t.Score[s.window]))
}

// commands are this TSG's commands, each lamp with its whole reason.
func (s *detailScreen) commands(t *sched.TSGView) []string {
	var out []string
	for i := range s.live.Commands {
		c := &s.live.Commands[i]
		if !sameTSG(c, t) {
			continue
		}
		if out == nil {
			out = append(out, s.rule("commands on this TSG"))
		}
		out = append(out, s.commandLine(c, false))
		for _, why := range []struct{ lamp, why string }{
			{"ran", c.Ran.Why}, {"accepted", acceptedWords(c)}, {"changed", c.Changed.Why}, {"evidence", c.Changed.Evidence},
			{"cost", costWords(c.Changed.Victim)}, {"undo", c.Undo},
		} {
			if why.why != "" {
				out = append(out, s.line().gap(4).put(roleDim, why.lamp+": ").cut(rolePlain, s.own(why.why), s.width-7-len(why.lamp)).String())
			}
		}
	}
	return out
}

func sameTSG(c *sched.Command, t *sched.TSGView) bool {
	if c.Target.Gen != 0 {
		return c.Target.Gen == t.Gen
	}
	return c.Target.Object == t.Object && c.Target.TSGID == t.ID && c.Target.PID == t.Process.PID
}

func acceptedWords(c *sched.Command) string {
	a := &c.Accepted
	s := a.Why
	if a.Status != "" {
		s = a.Status + ", answered by " + whereWords(a.Where, a.Inferred) + "; " + s
	}
	if a.CallUS != nil {
		s += fmt.Sprintf("; the call took %d us", *a.CallUS)
		if a.RPCus != nil {
			s += fmt.Sprintf(", %d of them the RPC", *a.RPCus)
		}
	}
	return strings.TrimSuffix(s, "; ")
}

func whereWords(where string, inferred bool) string {
	w := map[string]string{"gsp": "the GSP", "driver": "the driver"}[where]
	if w == "" {
		return "nobody knows whom"
	}
	if inferred {
		w += " (inferred from how long it took)"
	}
	return w
}

func costWords(v *sched.Cost) string {
	if v == nil {
		return ""
	}
	var out []string
	if v.ShareBefore != nil && v.ShareAfter != nil {
		out = append(out, "share "+percent(*v.ShareBefore)+" → "+percent(*v.ShareAfter))
	}
	if v.SwitchTaxBefore != nil && v.SwitchTaxAfter != nil {
		out = append(out, "switch tax "+percent(*v.SwitchTaxBefore)+" → "+percent(*v.SwitchTaxAfter))
	}
	return strings.Join(out, ", ")
}

func (s *detailScreen) timeslices(d *sched.Detail) []string {
	if len(d.Timeslices) == 0 {
		return nil
	}
	out := []string{s.rule("timeslice: who set it")}
	from := max(len(d.Timeslices)-10, 0)
	for _, ts := range d.Timeslices[from:] {
		l := s.line().put(roleDim, " "+clockMS(ts.Time)+" ").right(rolePlain, fmt.Sprintf("%d%ss", ts.Value, s.signs.micro), 12)
		who := "pid " + strconv.Itoa(ts.PID)
		if ts.Command != "" {
			who = "tsgtop, " + s.numberOf(ts.Command)
		}
		l.put(rolePlain, "  ").cut(rolePlain, who, 40)
		if ts.Status != 0 {
			l.put(rolePlain, "  ").put(roleBad, "refused: "+statusName(ts.Status))
		}
		out = append(out, l.String())
	}
	return out
}

func (s *detailScreen) numberOf(id string) string {
	for i := range s.live.Commands {
		if s.live.Commands[i].ID == id {
			return "#" + strconv.Itoa(s.live.Commands[i].Number)
		}
	}
	return "command " + id
}

func (s *detailScreen) channels(t *sched.TSGView) []string {
	if len(t.Channels) == 0 {
		return nil
	}
	out := []string{s.rule(plural(len(t.Channels), "channel"))}
	for _, ch := range t.Channels {
		l := s.line().put(rolePlain, " "+ch.Object.String()+"  ").cut(rolePlain, rm.ClassName(ch.Class), 40)
		if ch.ChID != nil {
			l.put(roleDim, "  channel ").put(rolePlain, strconv.Itoa(int(*ch.ChID)))
		}
		if ch.Context != nil {
			l.put(roleDim, "  context ").put(rolePlain, fmt.Sprintf("%x", *ch.Context))
		}
		out = append(out, l.String())
	}
	return out
}

func (s *detailScreen) tsgCalls(d *sched.Detail) []string {
	if len(d.Calls) == 0 {
		return nil
	}
	out := []string{s.rule("latest RM calls")}
	list := callsScreen{Common: s.Common}
	from := max(len(d.Calls)-20, 0)
	for i := from; i < len(d.Calls); i++ {
		out = append(out, list.callLine(&sched.CallLine{Call: &d.Calls[i]}))
	}
	return out
}
