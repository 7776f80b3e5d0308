package ui

// Frame does what the next frame does and gives the screen, line by line with
// its colours, for those who drive a Model without a terminal. Before, tell it
// its size by a tea.WindowSizeMsg.
func (m *Model) Frame() string {
	m.Update(tickMsg{})
	return m.View().Content
}
