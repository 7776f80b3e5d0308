package ui

import (
	"fmt"
	"strconv"
	"strings"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"tsgtop/internal/sched"
)

// armPanel asks before control is armed.
type armPanel struct{ focus int }

func (p *armPanel) key(m *Model, k tea.KeyPressMsg) (bool, tea.Cmd) {
	if !buttonKey(k.String(), &p.focus, 2) {
		return false, nil
	}
	if p.focus == 0 {
		return true, nil
	}
	return true, m.arm(true)
}

func (p *armPanel) lines(c *Common, _ int) []string {
	return c.box("Arm control?").
		words(rolePlain, "Commands then change how the GPU schedules other people's processes. Each asks first, "+
			"each is written to the audit log, and what was changed is put back when tsgtop ends.").
		fact("actuator", c.opts.Controller.ActuatorName()).
		blank().buttons([]string{"Cancel", "Arm"}, p.focus).lines()
}

// confirmPanel shows what a command would do, and sends it. Cancel has the focus.
type confirmPanel struct {
	preview Preview
	focus   int
	top     int
}

func (p *confirmPanel) key(m *Model, k tea.KeyPressMsg) (bool, tea.Cmd) {
	switch k.String() {
	case "up", "k":
		p.top = max(p.top-1, 0)
		return false, nil
	case "down", "j":
		p.top++
		return false, nil
	}
	if !buttonKey(k.String(), &p.focus, 2) {
		return false, nil
	}
	if p.focus == 0 {
		m.say(roleDim, "cancelled: nothing was sent")
		return true, nil
	}
	return true, m.submit(p.preview)
}

func (p *confirmPanel) lines(c *Common, height int) []string {
	ls, b := p.box(c, false)
	if len(ls) > height {
		ls, b = p.box(c, true)
	}
	if len(ls) <= height || height < 6 {
		p.top = 0
		return ls
	}
	// Still too tall: the buttons are never out of sight, and the rest scrolls.
	head, body, feet := ls[:1], ls[1:len(ls)-2], ls[len(ls)-2:]
	room := height - len(head) - len(feet) - 1
	p.top = min(p.top, len(body)-room)
	more := c.line().gap(b.left).put(roleBorder, c.signs.box[5]).put(roleWarn, " there is more: up and down show it")
	more.to(b.left+b.width-1).put(roleBorder, c.signs.box[5])
	out := append([]string{}, head...)
	out = append(out, body[p.top:p.top+room]...)
	return append(append(out, more.String()), feet...)
}

// box draws the panel; tight: in fewer lines, for small terminals.
func (p *confirmPanel) box(c *Common, tight bool) ([]string, *box) {
	v := &p.preview
	t := &v.Target
	title := string(v.Op) + " TSG " + idText(t.TSG)
	if v.DryRun {
		title += " (dry run: nothing is sent)"
	}
	b := c.box(title)
	where := fmt.Sprintf("GPU%d, runlist %s, TSG %s", t.GPU, idText(t.Runlist), idText(t.TSG))
	if name := runlistName(c.gpu(t.GPU), t.Runlist); name != "" {
		where = fmt.Sprintf("GPU%d, runlist %s (%s), TSG %s", t.GPU, idText(t.Runlist), name, idText(t.TSG))
	}
	b.fact("target", where)
	b.fact("process", strconv.Itoa(t.PID)+"  "+t.Exe)
	who, container := t.User, v.Container
	if who == "" {
		who = "not known"
	}
	if container == "" {
		container = t.Unit
	}
	if tight && container != "" {
		b.fact("user", who+"  in "+container)
	} else {
		b.fact("user", who)
		b.fact("container", container)
	}
	switch {
	case v.Op == sched.OpPreempt && v.Count > 1:
		b.fact("does", fmt.Sprintf("%d preempts, each waiting for its end, %s apart", v.Count, span(v.Every)))
	case v.Op == sched.OpPreempt:
		b.fact("does", "one preempt: off the engine, if it is on it")
	default:
		b.fact("changes", c.value(v.Op, v.Old)+" "+c.signs.arrow+" "+c.value(v.Op, v.New))
	}
	for _, w := range v.Warnings {
		b.words(roleWarn, "! "+w)
	}
	b.sentence("cost", v.Cost)
	b.sentence("undo", v.UndoWords)
	if !tight {
		b.fact("actuator", v.Actuator)
	}
	do := strings.ToUpper(string(v.Op)[:1]) + string(v.Op)[1:]
	return b.buttons([]string{"Cancel", do}, p.focus).lines(), b
}

// undoPanel asks before a change is put back.
type undoPanel struct {
	cmd   sched.Command
	focus int
}

func (p *undoPanel) key(m *Model, k tea.KeyPressMsg) (bool, tea.Cmd) {
	if !buttonKey(k.String(), &p.focus, 2) {
		return false, nil
	}
	if p.focus == 0 {
		return true, nil
	}
	ctl, id := m.opts.Controller, p.cmd.ID
	return true, guard(func() tea.Msg { return undoneMsg{id, ctl.Undo(id)} })
}

func (p *undoPanel) lines(c *Common, _ int) []string {
	t := &p.cmd.Target
	b := c.box(fmt.Sprintf("undo #%d", p.cmd.Number)).
		fact("target", fmt.Sprintf("GPU%d, runlist %s, TSG %s", t.GPU, idText(t.Runlist), idText(t.TSG))).
		fact("process", strconv.Itoa(t.PID)+"  "+t.Exe).fact("user", t.User).fact("container", t.Unit).
		fact("changes", c.value(p.cmd.Op, p.cmd.New)+" "+c.signs.arrow+" "+c.value(p.cmd.Op, p.cmd.Old))
	if p.cmd.Undo != "" {
		b.fact("how", c.own(p.cmd.Undo))
	}
	return b.blank().buttons([]string{"Cancel", "Put back"}, p.focus).lines()
}

// timeslicePanel asks for a timeslice, and refuses what is out of range.
type timeslicePanel struct {
	gen    uint64
	name   string
	old    *uint64
	lo, hi uint64
	in     textinput.Model
	wrong  string
}

func newTimeslicePanel(m *Model, t *sched.TSGView) *timeslicePanel {
	p := &timeslicePanel{gen: t.Gen, name: t.ID.String() + "  pid " + strconv.Itoa(t.Process.PID) + "  " + processName(t), old: t.Timeslice}
	p.lo, p.hi = m.opts.Controller.TimesliceRange()
	p.in = textinput.New()
	p.in.CharLimit = 12
	p.in.Focus()
	return p
}

func (p *timeslicePanel) key(m *Model, k tea.KeyPressMsg) (bool, tea.Cmd) {
	switch k.String() {
	case "esc":
		return true, nil
	case "enter":
		v, err := strconv.ParseUint(strings.TrimSpace(p.in.Value()), 10, 64)
		switch {
		case err != nil:
			p.wrong = "want a whole number of microseconds"
		case v < p.lo || v > p.hi:
			p.wrong = fmt.Sprintf("%d is out of range: %d to %d microseconds", v, p.lo, p.hi)
		default:
			return true, m.prepare(Intent{Op: sched.OpTimeslice, Gen: p.gen, Value: &v})
		}
		return false, nil
	}
	p.in, _ = p.in.Update(k)
	p.wrong = ""
	return false, nil
}

func (p *timeslicePanel) lines(c *Common, _ int) []string {
	b := c.box("timeslice").fact("target", p.name)
	old := "not known"
	if p.old != nil {
		old = c.value(sched.OpTimeslice, p.old)
	}
	b.fact("now", old).fact("range", fmt.Sprintf("%d to %d microseconds", p.lo, p.hi))
	b.inside(func(l *line) { c.drawInput(l, "new, us    ", p.in) })
	if p.wrong != "" {
		b.words(roleBad, p.wrong)
	} else {
		b.words(roleDim, "enter: go on to a question; esc: cancel")
	}
	return b.lines()
}

// interleavePanel asks for an interleave level.
type interleavePanel struct {
	gen   uint64
	name  string
	old   *uint32
	focus int
}

func newInterleavePanel(t *sched.TSGView) *interleavePanel {
	return &interleavePanel{gen: t.Gen, old: t.Interleave,
		name: t.ID.String() + "  pid " + strconv.Itoa(t.Process.PID) + "  " + processName(t)}
}

func (p *interleavePanel) key(m *Model, k tea.KeyPressMsg) (bool, tea.Cmd) {
	if !buttonKey(k.String(), &p.focus, 4) {
		return false, nil
	}
	if p.focus == 0 {
		return true, nil
	}
	v := uint64(p.focus - 1)
	return true, m.prepare(Intent{Op: sched.OpInterleave, Gen: p.gen, Value: &v})
}

func (p *interleavePanel) lines(c *Common, _ int) []string {
	old := "not known: it cannot be read back, and was not seen set"
	if p.old != nil {
		old = levelName(uint64(*p.old)) + " (seen set)"
	}
	return c.box("interleave level").fact("target", p.name).fact("now", old).
		blank().buttons([]string{"Cancel", "low", "medium", "high"}, p.focus).lines()
}

// columnsPanel chooses the columns.
type columnsPanel struct {
	t     *table
	focus int
}

func newColumnsPanel(t *table) *columnsPanel { return &columnsPanel{t: t} }

func (p *columnsPanel) choices() []string {
	ids := ColumnIDs()
	for _, id := range p.t.natural {
		if !contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (p *columnsPanel) key(_ *Model, k tea.KeyPressMsg) (bool, tea.Cmd) {
	ids := p.choices()
	switch k.String() {
	case "up", "k":
		p.focus = (p.focus + len(ids) - 1) % len(ids)
	case "down", "j", "tab":
		p.focus = (p.focus + 1) % len(ids)
	case "space":
		id := ids[p.focus]
		var next []string
		had := false
		for _, c := range p.t.columns {
			if c == id {
				had = true
				continue
			}
			next = append(next, c)
		}
		if !had {
			// Where it stands among all columns.
			next = nil
			for _, c := range ids {
				if c == id || contains(p.t.columns, c) {
					next = append(next, c)
				}
			}
		}
		p.t.columns = next
	case "d":
		p.t.columns = p.t.natural
	case "enter", "esc", "q", "c":
		return true, nil
	}
	return false, nil
}

func (p *columnsPanel) lines(c *Common, height int) []string {
	b := c.box("columns: space shows or hides, d as at first, enter closes")
	fit := layout(p.t.columns, c.width-p.t.treeWidth())
	ids := p.choices()
	room := max(height-2, 1)
	from := max(min(p.focus-room/2, len(ids)-room), 0)
	for i := from; i < len(ids) && i < from+room; i++ {
		id := ids[i]
		col, _ := columnByID(id)
		mark, note := "[ ]", ""
		if contains(p.t.columns, id) {
			mark = "[x]"
			shown := false
			for _, f := range fit {
				shown = shown || f.id == id
			}
			if !shown {
				note = "  gives way at this width"
			}
		}
		b.inside(func(l *line) {
			if i == p.focus {
				l.put(roleAccent, c.signs.sel+" ").put(roleStrong, mark+" "+col.title)
			} else {
				l.put(rolePlain, "  "+mark+" "+col.title)
			}
			l.put(roleDim, note)
		})
	}
	return b.lines()
}
