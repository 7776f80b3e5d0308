package ui

import (
	"os"

	"tsgtop/internal/sched"
)

// tickMsg: time for a frame.
type tickMsg struct{}

// preparedMsg: the controller looked at an intent.
type preparedMsg struct {
	intent  Intent
	preview Preview
	err     error
}

// submittedMsg: a command was sent, or refused.
type submittedMsg struct {
	op  sched.Op
	id  string
	err error
}

// undoneMsg: a command's change was put back, or could not be.
type undoneMsg struct {
	id  string
	err error
}

// armedMsg: control was armed or disarmed, or could not be.
type armedMsg struct {
	on  bool
	err error
}

// recordedMsg: the recorder was started or stopped.
type recordedMsg struct {
	on   bool
	path string
	err  error
}

// signalMsg: the process got a signal that ends the screen.
type signalMsg struct{ sig os.Signal }

// failedMsg: something outside the screen went wrong for good.
type failedMsg struct{ err error }

// suspendMsg: stop the process, as Ctrl-Z does.
type suspendMsg struct{}

// stuckMsg: the process cannot be suspended, because nothing could bring it back.
type stuckMsg struct{}
