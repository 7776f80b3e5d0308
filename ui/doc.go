// Package ui is the screen: it reads snapshots of the state, draws them with
// bubbletea, and sends an operator's intents to a Controller. It never touches
// the system, so it shows a live machine, a recording and the simulated GPU
// alike.
//
// Model is the root; each screen and each panel is one file. All of them embed
// *Common: the options, the size, the styles and signs, and the frame's
// snapshot. Nothing but Model.Update changes any of it; work that can take
// time runs in a tea.Cmd and comes back as one of the messages of messages.go.
//
// Text that a process chose (names, paths, users, units, driver messages) goes
// through internal/text before it is drawn, always.
package ui
