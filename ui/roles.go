package ui

import (
	"fmt"
	"strconv"

	tea "charm.land/bubbletea/v2"

	"tsgtop/internal/sched"
)

// Role words, as a Steerer takes and gives them.
const (
	roleLC = "lc" // latency-critical
	roleBE = "be" // best-effort
)

// Steerer keeps the roles of processes. Mark is called outside the screen's
// goroutine; Role at each frame.
type Steerer interface {
	// Mark gives the process of a TSG a role, "lc" or "be", or with "" takes it away.
	Mark(gen uint64, role string) error
	// Role is the role of a TSG's process, and why it is suspended, if it is.
	Role(gen uint64) (role, lifted string)
	// Explain says what a role would do to the process of a TSG.
	Explain(gen uint64, role string) string
}

var roleNames = map[string]string{roleLC: "latency-critical", roleBE: "best-effort", "": "without a role"}

// steer asks whether to give the selected TSG's process a role, or, where it has
// that role, to take it away.
func (m *Model) steer(t *sched.TSGView, role string) tea.Cmd {
	s := m.opts.Roles
	if s == nil {
		m.say(roleWarn, "nothing keeps roles here")
		return nil
	}
	if now, _ := s.Role(t.Gen); now == role {
		role = ""
	}
	m.panel = &rolePanel{gen: t.Gen, pid: t.Process.PID, exe: processName(t), role: role, does: s.Explain(t.Gen, role)}
	return nil
}

// rolePanel asks before a role is given or taken away. Cancel has the focus.
type rolePanel struct {
	gen   uint64
	pid   int
	exe   string
	role  string
	does  string
	focus int
}

func (p *rolePanel) key(m *Model, k tea.KeyPressMsg) (bool, tea.Cmd) {
	if !buttonKey(k.String(), &p.focus, 2) {
		return false, nil
	}
	if p.focus == 0 {
		m.say(roleDim, "cancelled: nothing was sent")
		return true, nil
	}
	s := m.opts.Roles
	return true, guard(func() tea.Msg { return roleMsg{p.pid, p.role, s.Mark(p.gen, p.role)} })
}

func (p *rolePanel) lines(c *Common, _ int) []string {
	title, button := "Make it "+roleNames[p.role]+"?", "Give it"
	if p.role == "" {
		title, button = "Take its role away?", "Take it away"
	}
	return c.box(title).
		fact("process", strconv.Itoa(p.pid)+"  "+p.exe).
		words(rolePlain, p.does).
		blank().buttons([]string{"Cancel", button}, p.focus).lines()
}

// roleMsg is what came of a mark.
type roleMsg struct {
	pid  int
	role string
	err  error
}

func (m *Model) marked(msg roleMsg) {
	if msg.err != nil {
		m.say(roleBad, fmt.Sprintf("pid %d: the role was not given: %v", msg.pid, msg.err))
		return
	}
	m.say(roleAccent, fmt.Sprintf("pid %d is %s", msg.pid, roleNames[msg.role]))
	m.renew(true)
}

// roleCell is the column ROLE: LC, BE, and in parentheses where it is suspended.
func roleCell(c *Common, t *sched.TSGView) (string, role) {
	word := roleWord(c, t)
	if word == "" {
		return "", roleDim
	}
	return word, roleAccent
}

func roleWord(c *Common, t *sched.TSGView) string {
	if c.opts.Roles == nil || t.Context {
		return ""
	}
	r, lifted := c.opts.Roles.Role(t.Gen)
	word := map[string]string{roleLC: "LC", roleBE: "BE"}[r]
	if word != "" && lifted != "" {
		return "(" + word + ")"
	}
	return word
}
