package ui

import (
	"runtime/debug"

	tea "charm.land/bubbletea/v2"
)

// crashMsg: work beside the screen panicked.
type crashMsg struct{ err error }

// guard makes a command whose panic ends the screen with an error, instead of
// the program with a broken terminal.
func guard(work func() tea.Msg) tea.Cmd {
	return func() (msg tea.Msg) {
		defer func() {
			if r := recover(); r != nil {
				msg = crashMsg{&PanicError{Value: r, Stack: debug.Stack()}}
			}
		}()
		return work()
	}
}
