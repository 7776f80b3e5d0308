package actions

import (
	"encoding/json"
	"testing"
	"time"

	"tsgtop/internal/sched"
)

// A command is looked at while it is under way, by as many as like: what they
// get does not change under their hands. (It is the race detector's to say.)
func TestCommandIsLookedAtUnderWay(t *testing.T) {
	s := simulated(t, "", nil)
	s.wakeup = func() {
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
	done, looked := make(chan struct{}), 0
	go func() {
		defer close(done)
		for {
			cmd, _ := s.c.Command(id)
			if _, err := json.Marshal(cmd); err != nil {
				t.Error(err)
			}
			looked++
			if cmd.Step == sched.StepJudged {
				return
			}
			time.Sleep(100 * time.Microsecond)
		}
	}()
	cmd := s.wait(id)
	<-done
	if cmd.Calls.Sent != 40 || len(cmd.Xid) == 0 || looked < 2 {
		t.Errorf("%+v; looked at %d times", cmd, looked)
	}
}
