package ui

import (
	"strconv"
	"time"

	tea "charm.land/bubbletea/v2"

	"tsgtop/internal/sched"
)

// key handles a key: Ctrl-C always quits, then the panel, the text that is
// typed, and the key table have it, in this order.
func (m *Model) key(k tea.KeyPressMsg) tea.Cmd {
	stroke := k.String()
	if stroke == "ctrl+c" {
		return tea.Quit
	}
	if m.panel != nil {
		p := m.panel
		done, cmd := p.key(m, k)
		if done && m.panel == p {
			m.panel = nil
		}
		return cmd
	}
	if m.typing {
		return m.typeFilter(k)
	}
	m.toast = ""
	b, ok := actionOf(stroke, m.on)
	if !ok {
		return nil
	}
	if m.width < leastWidth || m.height < leastHeight {
		// What cannot be seen is not done, apart from leaving.
		if b.act == actQuit || b.act == actSuspend {
			return m.do(b.act)
		}
		return nil
	}
	if why, ok := m.can(b.need); !ok {
		m.say(roleWarn, b.Help().Key+": "+why)
		return nil
	}
	return m.do(b.act)
}

// do does what a key means.
func (m *Model) do(a action) tea.Cmd {
	switch a {
	case actQuit:
		return tea.Quit
	case actSuspend:
		return func() tea.Msg { return suspendMsg{} }
	case actRedraw:
		m.renew(true)
		return tea.ClearScreen
	case actTSGs:
		m.show(screenTSGs)
	case actCalls:
		m.show(screenCalls)
	case actScore:
		m.show(screenScore)
	case actXid:
		m.show(screenXid)
	case actHelp:
		if m.on == screenHelp {
			m.show(m.before)
		} else {
			m.help.of = m.on
			m.show(screenHelp)
		}
	case actBack:
		m.back()
	case actFilter:
		m.typing = true
		m.input.SetValue(m.filter.text)
		m.input.CursorEnd()
		m.input.Focus() // its blinking is left out: it would be a frame twice a second
	case actTheme:
		t := m.themes.Next(m.style.theme.Name)
		m.style = newStyles(t, m.profile)
		m.say(roleAccent, "theme "+t.Name+": "+t.About)
	case actWindow:
		m.window = (m.window + 1) % sched.NumWindows
		m.tsgs.refresh()
		m.score.refresh()
		m.say(roleDim, "numbers are "+windowWords[m.window])
	case actGPU:
		m.nextGPU()
	case actPause:
		m.pause(!m.paused)
	case actZoomIn, actZoomOut, actZoomReset:
		m.zoom(a)
	case actLeft, actRight, actPanLeft, actPanRight:
		m.travel(a)
	case actSlower, actFaster, actNextMark, actPrevMark:
		m.replay(a)
	case actRecord:
		return m.record()
	case actRelease:
		m.release()
	case actArm, actPreempt, actRepeat, actTimeslice, actInterleave, actMarkLC, actMarkBE, actUndo:
		return m.acting(a)
	default:
		m.onScreen(a)
	}
	return nil
}

// onScreen gives an action to the screen that is shown.
func (m *Model) onScreen(a action) {
	switch m.on {
	case screenTSGs, screenScore:
		t := &m.tsgs.table
		if m.on == screenScore {
			t = &m.score.table
		}
		switch a {
		case actDetail:
			if sel := t.selected(); sel != nil {
				m.openDetail(sel.Gen)
			} else {
				t.act(actFold)
			}
		case actColumns:
			m.panel = newColumnsPanel(t)
		case actMetric:
			m.score.nextMetric()
		default:
			t.act(a)
		}
		if a == actGroup && m.on == screenScore {
			m.renew(true) // with what the new groups have together
			return
		}
		m.redraw()
	case screenCalls:
		m.calls.act(a)
	case screenXid:
		m.xids.act(a)
	case screenDetail:
		m.detail.act(a)
	case screenHelp:
		m.help.act(a)
	}
}

var windowWords = [sched.NumWindows]string{"of the last second", "of the last 10 seconds", "since start"}

// showsSwitches tells whether a screen shows what the GSP counts.
func showsSwitches(s screenID) bool { return s == screenScore || s == screenDetail }

// show goes to a screen, and tells the source whether all calls, and the GSP's
// counters, are looked at.
func (m *Model) show(s screenID) {
	if s == m.on {
		return
	}
	if m.opts.Looker != nil && (s == screenCalls) != (m.on == screenCalls) {
		m.opts.Looker.Look(s == screenCalls)
	}
	if m.opts.Counters != nil && showsSwitches(s) != showsSwitches(m.on) {
		m.opts.Counters.LookCounters(showsSwitches(s))
	}
	m.before, m.on = m.on, s
	if m.before == screenHelp {
		m.before = screenTSGs
	}
	m.renew(true)
}

func (m *Model) back() {
	switch {
	case m.on == screenHelp || m.on == screenDetail:
		m.show(m.before)
	case !m.filter.empty():
		m.setFilter("")
	case m.on != screenTSGs:
		m.show(screenTSGs)
	}
}

func (m *Model) openDetail(gen uint64) {
	m.detail.open(gen)
	m.show(screenDetail)
}

// typeFilter edits the filter; it counts from the first letter on.
func (m *Model) typeFilter(k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "enter":
		m.typing = false
		m.input.Blur()
		return nil
	case "esc":
		m.typing = false
		m.input.Blur()
		m.setFilter("")
		return nil
	case "up", "down":
		a := actUp
		if k.String() == "down" {
			a = actDown
		}
		return m.do(a)
	}
	m.input, _ = m.input.Update(k)
	m.setFilter(m.input.Value())
	return nil
}

func (m *Model) setFilter(s string) {
	m.filter = parseFilter(s)
	m.tsgs.refresh()
	m.score.refresh()
	m.calls.again()
	if m.on == screenCalls {
		m.calls.pull(false)
	}
	m.redraw()
}

func (m *Model) nextGPU() {
	gs := m.snap.GPUs
	at := -1
	for i := range gs {
		if gs[i].Index == m.onGPU {
			at = i
		}
	}
	if at+1 < len(gs) {
		m.onGPU = gs[at+1].Index
		m.say(roleDim, "GPU"+strconv.Itoa(m.onGPU)+" alone")
	} else {
		m.onGPU = sched.Unknown
		m.say(roleDim, "all GPUs")
	}
	m.tsgs.refresh()
	m.score.refresh()
	m.redraw()
}

// pause holds what is shown still. A recording stops; live, the state goes on
// and is only not shown, apart from the lamps.
func (m *Model) pause(on bool) {
	m.paused = on
	l := &m.tsgs.lane
	l.panTo, l.frozen = 0, nil
	if m.opts.Player != nil {
		m.opts.Player.Pause(on)
	}
	if on {
		l.frozen = m.opts.Board.Snapshot(sched.SnapshotOptions{LaneSpan: laneFrozen}).Lanes
		m.redraw()
		return
	}
	m.renew(true)
}

func (m *Model) zoom(a action) {
	l := &m.tsgs.lane
	switch a {
	case actZoomIn:
		l.zoom(-1)
	case actZoomOut:
		l.zoom(1)
	default:
		l.chosen, l.panTo = false, 0
		l.resize(m.width)
	}
	m.say(roleDim, "lane: "+span(l.span))
	m.renew(false)
}

// travel goes back or forward in time: a recording by seeking, else the paused lane.
func (m *Model) travel(a action) {
	by := 1
	if a == actLeft || a == actPanLeft {
		by = -1
	}
	if p := m.opts.Player; p != nil && (a == actLeft || a == actRight) {
		at, first, last := p.Position()
		p.Seek(min(max(at.Add(time.Duration(by)*seekStep), first), last))
		m.tsgs.lane.frozen, m.tsgs.lane.panTo = nil, 0
		m.renew(true)
		return
	}
	if !m.paused {
		m.say(roleDim, "space pauses; then the lane can be panned")
		return
	}
	m.tsgs.lane.pan(by)
	m.redraw()
}

// replay steers a recording.
func (m *Model) replay(a action) {
	p := m.opts.Player
	switch a {
	case actSlower, actFaster:
		if a == actFaster {
			m.speed = min(m.speed*2, 64)
		} else {
			m.speed = max(m.speed/2, 1.0/64)
		}
		p.SetSpeed(m.speed)
		return
	}
	if a == actNextMark {
		if marks, ok := p.(Marker); ok {
			marks.NextMark()
			m.say(roleDim, "on to the next command or Xid")
		}
		return
	}
	at, first, _ := p.Position()
	to, found := m.markBefore(at.Add(-time.Second))
	if !found || to < first {
		m.say(roleDim, "no command or Xid before this")
		return
	}
	p.Seek(to)
	m.renew(true)
}

// markBefore is the latest command or Xid before t, of those that were played.
func (m *Model) markBefore(t sched.Time) (at sched.Time, found bool) {
	for i := range m.live.Commands {
		if a := m.live.Commands[i].Asked; a < t && a > at {
			at, found = a, true
		}
	}
	for i := range m.live.Xids {
		if a := m.live.Xids[i].Time; a < t && a > at {
			at, found = a, true
		}
	}
	return at, found
}

func (m *Model) release() {
	if m.released {
		m.opts.Releaser.Resume()
		m.say(roleGood, "taking the GPUs' devices again")
	} else {
		m.opts.Releaser.Release()
		m.say(roleWarn, "let go of the GPUs' devices: they can be reset, the driver unloaded, MIG changed; r takes them again")
	}
	m.released = !m.released
}

// record starts or stops a recording, beside the screen: a disk can be slow.
func (m *Model) record() tea.Cmd {
	rec, on := m.opts.Recorder, m.recording == ""
	return guard(func() tea.Msg {
		if on {
			path, err := rec.Start()
			return recordedMsg{true, path, err}
		}
		path, err := rec.Stop()
		return recordedMsg{false, path, err}
	})
}

func (m *Model) recorded(msg recordedMsg) {
	switch {
	case msg.err != nil:
		m.recording = ""
		m.say(roleBad, "recording: "+msg.err.Error())
	case msg.on:
		m.recording = msg.path
		m.say(roleGood, "recording to "+msg.path)
	default:
		m.recording = ""
		m.say(roleGood, "recorded "+msg.path)
	}
}

// click selects the row at a line of the screen.
func (m *Model) click(y int) {
	if m.panel != nil || m.on != screenTSGs {
		return
	}
	t := &m.tsgs.table
	if i := y - m.tsgs.top + t.offset; y >= m.tsgs.top && i < len(t.rows) && y-m.tsgs.top < t.height {
		t.moveTo(i)
		m.redraw()
	}
}
