package crash

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	if os.Getenv("TSGTOP_CRASH_CHILD") != "" {
		done := make(chan struct{})
		Go(func() { defer close(done); panic("torn") })
		<-done
		select {}
	}
	os.Exit(m.Run())
}

func TestTakerGetsPanicsWithTheirPlace(t *testing.T) {
	failed, stop := Take()
	defer stop()
	Go(tear)
	err := <-failed
	for range 3 { // more than anybody reads: the others are not held up
		guarded()
	}
	var e *Error
	if !errors.As(err, &e) || e.Value != "torn" || !strings.Contains(err.Error(), "crash.tear") {
		t.Errorf("%v", err)
	}
}

func tear() { panic("torn") }

func guarded() {
	defer Guard()
	tear()
}

func TestLatestTakerOnly(t *testing.T) {
	first, stopFirst := Take()
	second, stopSecond := Take()
	stopFirst() // no longer its own
	Go(tear)
	if err := <-second; err == nil {
		t.Error("nothing came")
	}
	stopSecond()
	select {
	case err := <-first:
		t.Errorf("the earlier taker got %v", err)
	default:
	}
}

func TestWithoutTakerThePanicEndsTheProgram(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TSGTOP_CRASH_CHILD=1")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(string(out), "panic: torn") || !strings.Contains(string(out), "crash.TestMain.func1") {
		t.Errorf("%v:\n%s", err, out)
	}
}
