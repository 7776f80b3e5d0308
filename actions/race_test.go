package actions

import (
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"tsgtop/internal/sched"
)

// A command is looked at while it is under way, by as many as like: what they
// get does not change under their hands. (It is the race detector's to say.)
func TestCommandIsLookedAtUnderWay(t *testing.T) {
	s := simulated(t, "", nil)
	var looked atomic.Int64
	s.Wakeup = func() {
		for n, i := looked.Load(), 0; n == looked.Load() && i < 20; i++ { // let the other look in between
			time.Sleep(50 * time.Microsecond)
		}
		s.b.Feed([]sched.Event{sched.Xid{Time: s.Now(), GPU: 0, Code: 13}})
	}
	p, err := s.c.Prepare(Intent{Op: sched.OpPreempt, Gen: s.gen(first), Count: 40})
	if err != nil {
		t.Fatal(err)
	}
	id, err := s.c.Submit(p)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			cmd, _ := s.c.Command(id)
			if _, err := json.Marshal(cmd); err != nil {
				t.Error(err)
			}
			looked.Add(1)
			if cmd.Step == sched.StepJudged {
				return
			}
			time.Sleep(100 * time.Microsecond)
		}
	}()
	cmd := s.wait(id)
	<-done
	if cmd.Calls.Sent != 40 || len(cmd.Xid) == 0 || looked.Load() < 2 {
		t.Errorf("%+v; looked at %d times", cmd, looked.Load())
	}
}
