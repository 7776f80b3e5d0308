package ui

import (
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"tsgtop/internal/sched"
)

// What `P` asks for: enough preempts to catch a target that has half of the
// engine, with pauses that are no multiple of a timeslice.
const (
	repeatCount = 50
	repeatEvery = 23 * time.Millisecond
)

// acting begins a command on the selected TSG, or arms control.
func (m *Model) acting(a action) tea.Cmd {
	if a == actArm {
		if m.armed() {
			return m.arm(false)
		}
		m.panel = &armPanel{}
		return nil
	}
	t := m.target()
	if a == actUndo {
		cmd := m.undoable(t)
		if cmd == nil {
			m.say(roleDim, "nothing that a command of this run changed is still changed")
			return nil
		}
		m.panel = &undoPanel{cmd: *cmd}
		return nil
	}
	if t == nil {
		m.say(roleDim, "select a TSG first")
		return nil
	}
	if t.Context {
		m.say(roleWarn, "this context's TSG is not known: there is nothing to send a command to")
		return nil
	}
	switch a {
	case actPreempt:
		return m.prepare(Intent{Op: sched.OpPreempt, Gen: t.Gen, Count: 1})
	case actRepeat:
		return m.prepare(Intent{Op: sched.OpPreempt, Gen: t.Gen, Count: repeatCount, Every: repeatEvery})
	case actTimeslice:
		m.panel = newTimeslicePanel(m, t)
	case actInterleave:
		m.panel = newInterleavePanel(t)
	case actMarkLC:
		return m.steer(t, roleLC)
	case actMarkBE:
		return m.steer(t, roleBE)
	}
	return nil
}

// target is the TSG that a command would be for.
func (m *Model) target() *sched.TSGView {
	switch m.on {
	case screenDetail:
		return m.tsg(m.detail.gen)
	case screenScore:
		return m.score.selected()
	default:
		return m.tsgs.selected()
	}
}

// undoable is the latest command whose change is still there: of the selected
// TSG, else of any.
func (m *Model) undoable(t *sched.TSGView) *sched.Command {
	var any *sched.Command
	for i := len(m.live.Commands) - 1; i >= 0; i-- {
		c := &m.live.Commands[i]
		if c.Op == sched.OpPreempt || c.Restored != nil && *c.Restored || c.Issued == 0 ||
			c.Step == sched.StepRefused || c.Step == sched.StepUndone {
			continue
		}
		if t != nil && sameTSG(c, t) {
			return c
		}
		if any == nil {
			any = c
		}
	}
	return any
}

func (m *Model) arm(on bool) tea.Cmd {
	ctl := m.opts.Controller
	return guard(func() tea.Msg { return armedMsg{on, ctl.Arm(on)} })
}

func (m *Model) armedNow(msg armedMsg) {
	switch {
	case msg.err != nil:
		m.say(roleBad, "control: "+msg.err.Error())
	case msg.on:
		m.say(roleWarn, "armed: p, t and i now ask before each command; C disarms")
	default:
		m.say(roleGood, "read-only again")
	}
}

// prepare has the controller look at an intent, beside the screen.
func (m *Model) prepare(in Intent) tea.Cmd {
	ctl := m.opts.Controller
	return guard(func() tea.Msg {
		p, err := ctl.Prepare(in)
		return preparedMsg{in, p, err}
	})
}

func (m *Model) prepared(msg preparedMsg) {
	switch {
	case msg.err != nil:
		m.say(roleBad, string(msg.intent.Op)+" refused: "+msg.err.Error())
	case m.panel != nil:
		// Another question came up meanwhile; this one is asked again by its key.
	default:
		m.panel = &confirmPanel{preview: msg.preview}
	}
}

// submit sends what was confirmed, beside the screen: an RM call can hang.
func (m *Model) submit(p Preview) tea.Cmd {
	m.remember(p.Gen)
	ctl := m.opts.Controller
	return guard(func() tea.Msg {
		id, err := ctl.Submit(p)
		return submittedMsg{p.Op, id, err}
	})
}

// remember keeps the target's histogram as it is before a command, to lay it
// over what comes after.
func (m *Model) remember(gen uint64) {
	snap := m.opts.Board.Snapshot(sched.SnapshotOptions{Detail: gen})
	if snap == nil || snap.Detail == nil {
		return
	}
	number := 1
	if n := len(snap.Commands); n > 0 {
		number = snap.Commands[n-1].Number + 1
	}
	if m.detail.before == nil {
		m.detail.before = map[uint64]baseline{}
	}
	m.detail.before[gen] = baseline{number: number, hist: snap.Detail.Residency}
	for g := range m.detail.before {
		if len(m.detail.before) > 64 && g != gen {
			delete(m.detail.before, g)
		}
	}
}

func (m *Model) submitted(msg submittedMsg) {
	if msg.err != nil {
		m.say(roleBad, fmt.Sprintf("%s not sent: %v", msg.op, msg.err))
		return
	}
	m.renew(true)
}
