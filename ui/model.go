package ui

import (
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"tsgtop/internal/sched"
	"tsgtop/themes"
)

// The smallest terminal that the screens are made for.
const (
	leastWidth  = 60
	leastHeight = 15
)

// How often what is drawn is renewed. People cannot read numbers that change
// more often, and a slow line cannot carry them.
const (
	numbersEvery = time.Second // a multiple of picturesEach
	picturesEach = 500 * time.Millisecond
	seekStep     = 5 * time.Second
	beginning    = 10 * time.Second // after which an idle machine is taken to be one
	// rewindPatience is how long a selection waits for its TSG after a replay
	// went back.
	rewindPatience = 3 * time.Second
)

// Model is the root of the screen.
type Model struct {
	*Common
	themes  *themes.Set
	profile colorprofile.Profile

	on, before screenID
	tsgs       *tsgsScreen
	calls      *callsScreen
	score      *scoreScreen
	xids       *xidScreen
	detail     *detailScreen
	help       *helpScreen
	panel      panel // over the screen; nil: none

	view  tea.View
	dirty bool
	err   error // why the screen ends, where it is no plain quit
}

// panel is a question over the screen. It has all keys while it is there.
type panel interface {
	// key handles a key; done: the panel goes away.
	key(m *Model, k tea.KeyPressMsg) (done bool, cmd tea.Cmd)
	// lines draws it, at most height lines of the screen's width.
	lines(c *Common, height int) []string
}

// New makes the screen's model. It draws nothing until it is told its size.
func New(opts Options) (*Model, error) {
	if opts.Board == nil {
		return nil, fmt.Errorf("ui: no board to show")
	}
	set := opts.Themes
	if set == nil {
		var err error
		if set, err = themes.Builtin(); err != nil {
			return nil, fmt.Errorf("ui: %w", err)
		}
	}
	name := opts.Theme
	if name == "" {
		name = themes.Default
	}
	theme, err := set.Get(name)
	if err != nil {
		return nil, fmt.Errorf("ui: %w", err)
	}
	columns := opts.Columns
	if columns == nil {
		columns = defaultColumns
		if opts.Roles != nil {
			columns = slices.Insert(slices.Clone(columns), 2, "role")
		}
	}
	for _, id := range columns {
		if _, ok := columnByID(id); !ok {
			return nil, fmt.Errorf("ui: no such column; there are: %s", strings.Join(ColumnIDs(), ", "))
		}
	}
	c := &Common{opts: &opts, signs: &unicodeSigns, onGPU: sched.Unknown, window: opts.Window, speed: opts.Speed}
	if c.speed <= 0 {
		c.speed = 1
	}
	if opts.ASCII {
		c.signs = &asciiSigns
	}
	if opts.GPU != nil {
		c.onGPU = *opts.GPU
	}
	c.input = textinput.New()
	c.input.CharLimit = 200
	m := &Model{Common: c, themes: set, profile: opts.Profile, dirty: true}
	if m.profile == colorprofile.Unknown {
		m.profile = colorprofile.TrueColor
	}
	if opts.NoColor {
		m.profile = min(m.profile, colorprofile.ASCII)
	}
	c.style = newStyles(theme, m.profile)

	s := shape{flat: opts.Flat}
	if s.sort, s.desc, err = sortOption(opts.Sort); err != nil {
		return nil, err
	}
	if i := slices.Index(groupNames[:], opts.Group); i >= 0 {
		s.group = groupBy(i)
	} else {
		return nil, fmt.Errorf("ui: group by process, user or unit")
	}
	m.tsgs = &tsgsScreen{table: table{Common: c, shape: s, columns: columns, natural: columns}, lane: newLane(opts.Lane)}
	m.calls = &callsScreen{Common: c, follow: true}
	m.score = newScoreScreen(c)
	m.xids = &xidScreen{Common: c, follow: true}
	m.detail = &detailScreen{Common: c}
	m.help = &helpScreen{Common: c}
	return m, nil
}

// sortOption reads "share" or "-share": in the column's natural direction, or
// the other way round.
func sortOption(s string) (id string, desc bool, err error) {
	id, reverse := strings.CutPrefix(s, "-")
	if id == "" || id == "tsg" {
		return id, reverse, nil
	}
	col, ok := columnByID(id)
	if !ok {
		return "", false, fmt.Errorf("ui: no such column to sort by; there are: tsg, %s", strings.Join(ColumnIDs(), ", "))
	}
	return id, col.highFirst != reverse, nil
}

// Init begins the frames.
func (m *Model) Init() tea.Cmd {
	return tea.Batch(m.nextTick(), m.waitFailed())
}

func (m *Model) nextTick() tea.Cmd {
	return tea.Tick(m.frame(), func(time.Time) tea.Msg { return tickMsg{} })
}

func (m *Model) waitFailed() tea.Cmd {
	if m.opts.Failed == nil {
		return nil
	}
	failed := m.opts.Failed
	return func() tea.Msg {
		if err := <-failed; err != nil {
			return failedMsg{err}
		}
		return nil
	}
}

// Update handles a message. A panic in it ends the screen with an error that
// says where, once the terminal is back as it was.
func (m *Model) Update(msg tea.Msg) (model tea.Model, cmd tea.Cmd) {
	defer func() {
		if r := recover(); r != nil {
			m.err = &PanicError{Value: r, Stack: debug.Stack()}
			model, cmd = m, tea.Quit
		}
	}()
	if m.err != nil {
		return m, tea.Quit
	}
	if _, tick := msg.(tickMsg); !tick {
		m.dirty = true
	}
	return m, m.update(msg)
}

func (m *Model) update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tickMsg:
		m.tick()
		return m.nextTick()
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		m.tsgs.lane.resize(m.width)
		m.renew(true)
	case tea.KeyPressMsg:
		return m.key(msg)
	case tea.PasteMsg:
		if m.typing {
			m.input.SetValue(m.input.Value() + msg.Content)
			m.input.CursorEnd()
			m.setFilter(m.input.Value())
		}
	case tea.MouseWheelMsg:
		switch msg.Button {
		case tea.MouseWheelUp:
			return m.do(actUp)
		case tea.MouseWheelDown:
			return m.do(actDown)
		}
	case tea.MouseClickMsg:
		m.click(msg.Y)
	case stuckMsg:
		m.say(roleWarn, "cannot suspend: no shell is above this program that could bring it back")
	case tea.ResumeMsg:
		m.renew(true)
		return tea.ClearScreen
	case preparedMsg:
		m.prepared(msg)
	case roleMsg:
		m.marked(msg)
	case submittedMsg:
		m.submitted(msg)
	case undoneMsg:
		if msg.err != nil {
			m.say(roleBad, "undo failed: "+msg.err.Error())
		} else {
			m.say(roleGood, "put back; the lamps show what came of it")
		}
	case armedMsg:
		m.armedNow(msg)
	case recordedMsg:
		m.recorded(msg)
	case signalMsg:
		m.err = &SignalError{Signal: msg.sig}
		return tea.Quit
	case failedMsg:
		m.err = msg.err
		return tea.Quit
	case crashMsg:
		m.err = msg.err
		return tea.Quit
	}
	return nil
}

// tick renews what is due in this frame.
func (m *Model) tick() {
	m.frames++
	m.rewound = max(m.rewound-1, 0)
	if m.toast != "" {
		if m.toastAt--; m.toastAt <= 0 {
			m.toast = ""
			m.dirty = true
		}
	}
	if m.live == nil || m.every(picturesEach) || m.begins() || m.waiting() {
		m.renew(false)
	}
}

// begins tells whether there is nothing to see yet, or a replay is on its way
// back to where it was: what comes first is then shown at once.
func (m *Model) begins() bool {
	return len(m.live.TSGs) == 0 && m.frames < int(beginning/m.frame()) || m.rewound > 0
}

// waiting tells whether a lamp is still waiting: then every frame counts.
func (m *Model) waiting() bool {
	for i := len(m.live.Commands) - 1; i >= 0 && i >= len(m.live.Commands)-4; i-- {
		c := &m.live.Commands[i]
		if c.Step != sched.StepRefused && (c.Ran.State == sched.LampWaiting || c.Changed.State == sched.LampWaiting) {
			return true
		}
	}
	return false
}

// renew takes a snapshot and brings the screen up to date. all: everything
// now, whatever is due.
func (m *Model) renew(all bool) {
	m.dirty = true
	opts := sched.SnapshotOptions{}
	switch m.on {
	case screenTSGs:
		opts.LaneSpan = m.tsgs.lane.wants()
	case screenDetail:
		opts.LaneSpan = m.tsgs.lane.wants()
		opts.Detail = m.detail.gen
	case screenScore:
		m.askGroups(&opts, all)
	}
	snap := m.opts.Board.Snapshot(opts)
	if snap == nil {
		return
	}
	old := m.live
	if old != nil && snap.Groups == nil && m.on == screenScore {
		snap.Groups, snap.GroupTag = old.Groups, old.GroupTag // not asked for this time
	}
	m.live = snap
	m.watchRewind(old)
	frozen := m.paused && m.opts.Player == nil && m.snap != nil
	if !frozen && (all || m.snap == nil || m.every(numbersEvery) || old == nil ||
		len(old.TSGs) != len(snap.TSGs) || len(old.GPUs) != len(snap.GPUs) || snap.Time < m.snap.Time) {
		m.snap = snap
	}
	m.tsgs.refresh()
	m.score.refresh()
	if m.on == screenCalls {
		m.calls.pull(m.paused && m.opts.Player == nil)
	}
	m.redraw()
}

// watchRewind notes that a replay went back: its events come again from the
// beginning, and until they have reached the place that is asked for, what is
// not there yet has not ended.
func (m *Model) watchRewind(old *sched.Snapshot) {
	p := m.opts.Player
	if p == nil || old == nil {
		return
	}
	at, _, _ := p.Position()
	if m.live.Time < old.Time || m.rewound > 0 && at.Sub(m.live.Time) > 2*time.Second {
		m.rewound = int(rewindPatience / m.frame())
	}
}

// redraw makes the lane again from what is there: after a snapshot, and when
// the selection, the span or the place in time changed.
func (m *Model) redraw() {
	m.dirty = true
	switch m.on {
	case screenTSGs:
		gen := uint64(0)
		if t := m.tsgs.selected(); t != nil {
			gen = t.Gen
		}
		m.tsgs.lane.draw(m.Common, gen, m.tsgs.gpu(), m.tsgs.laneRows())
	case screenDetail:
		if t := m.tsg(m.detail.gen); t != nil {
			m.tsgs.lane.draw(m.Common, t.Gen, t.ID.GPU, 1)
		}
	}
}

// View draws the screen, where something changed since it was last drawn.
func (m *Model) View() (view tea.View) {
	if !m.dirty && m.view.AltScreen {
		return m.view
	}
	defer func() {
		if r := recover(); r != nil {
			m.err = &PanicError{Value: r, Stack: debug.Stack()}
			view = tea.NewView("")
			view.AltScreen = true
			m.view, m.dirty = view, false
		}
	}()
	m.dirty = false
	v := tea.NewView(strings.Join(m.screen(), "\n"))
	v.AltScreen = true
	v.DisableBracketedPasteMode = false
	if m.opts.Mouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	m.view = v
	return v
}

// screen is the whole screen, line by line.
func (m *Model) screen() []string {
	if m.width <= 0 || m.height <= 0 {
		return nil
	}
	if m.width < leastWidth || m.height < leastHeight {
		return m.tooSmall()
	}
	var out []string
	switch m.on {
	case screenTSGs:
		out = m.tsgs.lines(m)
	case screenCalls:
		out = m.calls.lines(m)
	case screenScore:
		out = m.score.lines(m)
	case screenXid:
		out = m.xids.lines(m)
	case screenDetail:
		out = m.detail.lines(m)
	case screenHelp:
		out = m.help.lines(m)
	}
	blank := m.line().String()
	for len(out) < m.height {
		out = append(out, blank)
	}
	return out[:m.height]
}

// tooSmall is what a terminal gets that the screens do not fit on.
func (m *Model) tooSmall() []string {
	s := fmt.Sprintf("tsgtop wants %dx%d, this is %dx%d: q quits", leastWidth, leastHeight, m.width, m.height)
	if cellCount(s) > m.width {
		s = fmt.Sprintf("%dx%d; q quits", leastWidth, leastHeight)
	}
	out := []string{m.line().put(rolePlain, s).String()}
	for len(out) < m.height {
		out = append(out, m.line().String())
	}
	return out
}

// frameOf puts a screen together: the header, what is over the body, the body
// or a panel in its place, the status line and the footer.
func (m *Model) frameOf(over []string, under []string, sel *sched.TSGView, body func(height int) []string) []string {
	out := append(make([]string, 0, m.height), m.header(m.tsgs.gpu()))
	out = append(out, over...)
	height := m.height - len(out) - len(under) - 2
	if m.panel == nil {
		out = append(out, body(height)...)
		out = append(out, under...)
		return append(out, m.statusLine(sel), m.footer(m.on))
	}
	// A question has the whole body and, where it needs them, the lines over it.
	height += len(under)
	ls := m.panel.lines(m.Common, height)
	if whole := m.height - 3; len(ls) >= height && whole > height {
		height, out = whole, out[:1]
		ls = m.panel.lines(m.Common, height)
	}
	out = append(out, m.centred(ls, height)...)
	return append(out, m.statusLine(sel), m.line().put(rolePlain, " ").put(roleKey, "tab ").put(roleDim, "moves  ").
		put(roleKey, "enter ").put(roleDim, "presses  ").put(roleKey, "esc ").put(roleDim, "cancels").String())
}

func (m *Model) centred(ls []string, height int) []string {
	ls = ls[:min(len(ls), max(height, 0))]
	blank := m.line().String()
	out := make([]string, 0, max(height, 0))
	for range (height - len(ls)) / 2 {
		out = append(out, blank)
	}
	out = append(out, ls...)
	for len(out) < height {
		out = append(out, blank)
	}
	return out
}

// PanicError is a panic in the screen: what it was and where.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("the screen failed: %v\n\n%s", e.Value, e.Stack)
}
