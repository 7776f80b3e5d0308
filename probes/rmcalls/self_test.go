package rmcalls

import (
	"os"
	"testing"
)

// TestSkipSelf: this process's own calls are left out, but for announced ones;
// those of others are not.
func TestSkipSelf(t *testing.T) { eachRung(t, testSkipSelf) }

func testSkipSelf(t *testing.T, rung Rung) {
	p := open(t, Options{Rung: rung, SkipSelf: true})
	p.Look(true)
	c := newCaller(t)
	got := collect(t, p)
	got.mu.Lock()
	got.all = true
	got.mu.Unlock()
	tid := locked(t)
	c.timeslice(200)
	if err := p.Expect(Expected{ID: 9, Command: "c-9", TID: tid, FD: c.fd, Arg: c.base, Params: c.base + paramsAt}); err != nil {
		t.Fatal(err)
	}
	c.timeslice(300)
	c.timeslice(400)
	child, end := startChild(t, "one", nil)
	end()
	own, others := 0, 0
	for _, call := range got.take() {
		if call.Command == "c-9" {
			own++
		} else if call.PID == os.Getpid() {
			t.Errorf("a call of our own came through: %+v", call)
		} else if call.PID == child {
			others++
		}
	}
	if own != 1 || others != 1 {
		t.Errorf("%d announced and %d of a child's calls came, want one each", own, others)
	}
}
