package shot

import (
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"tsgtop/ui"
)

// Session drives the screen without a terminal.
type Session struct {
	model         tea.Model
	width, height int
}

// NewSession makes a session of a size.
func NewSession(opts ui.Options, width, height int) (*Session, error) {
	m, err := ui.New(opts)
	if err != nil {
		return nil, err
	}
	s := &Session{model: m, width: width, height: height}
	s.send(tea.WindowSizeMsg{Width: width, Height: height})
	return s, nil
}

var special = map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "up": tea.KeyUp, "down": tea.KeyDown, "tab": tea.KeyTab, "end": tea.KeyEnd, "home": tea.KeyHome}

// Press presses keys: single characters, or enter, esc, up, down, tab, home, end.
func (s *Session) Press(keys ...string) error {
	for _, k := range keys {
		msg := tea.KeyPressMsg{Text: k}
		if code, ok := special[k]; ok {
			msg = tea.KeyPressMsg{Code: code}
		} else if rs := []rune(k); len(rs) == 1 {
			msg.Code = rs[0]
		} else {
			return fmt.Errorf("no key %q", k)
		}
		s.send(msg)
	}
	return nil
}

// send gives the screen a message, and runs what it asks for; what takes
// longer than a moment is its own timers.
func (s *Session) send(msg tea.Msg) {
	var cmd tea.Cmd
	s.model, cmd = s.model.Update(msg)
	if cmd == nil {
		return
	}
	answer := make(chan tea.Msg, 1)
	go func() { answer <- cmd() }()
	select {
	case m := <-answer:
		if m != nil {
			s.send(m)
		}
	case <-time.After(300 * time.Millisecond):
	}
}

// Shoot is what is on the screen.
func (s *Session) Shoot() *Screen {
	return Draw(s.model.View().Content, s.width, s.height)
}
