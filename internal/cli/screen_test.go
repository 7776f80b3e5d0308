package cli

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

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

// TestBrokenProgramDoesNotHang: what failed may hold what the undo waits for.
func TestBrokenProgramDoesNotHang(t *testing.T) {
	was := brokenUndo
	brokenUndo = 10 * time.Millisecond
	defer func() { brokenUndo = was }()
	hangs := make(chan struct{})
	defer close(hangs)
	if _, err := undone(func() ([]string, error) { <-hangs; return nil, nil }, true); err == nil || !strings.Contains(err.Error(), "tsgtop restore") {
		t.Errorf("one that hangs: %v", err)
	}
	if _, err := undone(func() ([]string, error) { panic("torn") }, true); err == nil || !strings.Contains(err.Error(), "torn") {
		t.Errorf("one that fails: %v", err)
	}
	brokenUndo = time.Minute
	if left, err := undone(func() ([]string, error) { return []string{"x"}, nil }, true); err != nil || len(left) != 1 {
		t.Errorf("one that works: %v, %v", left, err)
	}
}
