package cli

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"tsgtop/internal/crash"
	"tsgtop/ui"
)

func TestScreenEndsWithItsCode(t *testing.T) {
	for _, tc := range []struct {
		err  error
		code int
		says string
	}{
		{nil, 0, ""},
		{&ui.SignalError{Signal: syscall.SIGTERM}, 143, ""},
		{&ui.SignalError{Signal: syscall.SIGHUP}, 129, ""},
		{&crash.Error{Value: "torn", Stack: []byte("main.go:1")}, exitInternal, "torn\n\nmain.go:1\nplease report"},
		{&ui.PanicError{Value: "torn", Stack: []byte("main.go:1")}, exitInternal, "main.go:1\nplease report"},
		{errors.New("no terminal"), exitUsage, "no terminal"},
	} {
		err := screenError(tc.err)
		if got := codeOf(err); got != tc.code {
			t.Errorf("%v: code %d, want %d", tc.err, got, tc.code)
		}
		if err != nil && (!strings.Contains(err.Error(), tc.says) || tc.says == "" && err.Error() != "") {
			t.Errorf("%v: says %q", tc.err, err)
		}
	}
}
