package cli

import (
	"errors"
	"fmt"
)

// Exit codes, as docs/cli.md lists them.
const (
	exitOK          = 0
	exitUsage       = 1
	exitPrivilege   = 2
	exitRefused     = 3
	exitUnchanged   = 4
	exitUnknown     = 5
	exitNotRun      = 6
	exitTarget      = 7
	exitRestore     = 8
	exitNoAnswer    = 9
	exitInternal    = 70
	exitInterrupted = 130
)

// exitError is an error that ends the program with a code of its own.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// fail makes an error with an exit code.
func fail(code int, format string, args ...any) error {
	return &exitError{code, fmt.Errorf(format, args...)}
}

// codeOf gives the exit code of an error; errors without one are bad usage or
// input.
func codeOf(err error) int {
	if err == nil {
		return exitOK
	}
	var e *exitError
	if errors.As(err, &e) {
		return e.code
	}
	return exitUsage
}
