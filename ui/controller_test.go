package ui

import (
	"errors"
	"fmt"

	"tsgtop/internal/sched"
)

// fakeController notes what it is asked to do.
type fakeController struct {
	armed  bool
	why    string
	refuse error
	log    []string
}

func (f *fakeController) Armed() bool { return f.armed }

func (f *fakeController) Arm(on bool) error {
	f.log = append(f.log, fmt.Sprint("arm ", on))
	f.armed = on
	return nil
}

func (f *fakeController) Why() string                      { return f.why }
func (f *fakeController) ActuatorName() string             { return "fd" }
func (f *fakeController) TimesliceRange() (uint64, uint64) { return 100, 60000 }

func (f *fakeController) Prepare(in Intent) (Preview, error) {
	f.log = append(f.log, fmt.Sprintf("prepare %s %d %v %d", in.Op, in.Gen, deref(in.Value), in.Count))
	if f.refuse != nil {
		return Preview{}, f.refuse
	}
	p := Preview{Intent: in, Actuator: "borrowed fd", Cost: "the target loses the rest of its turn, the GPU one switch of 75 us",
		UndoWords: "nothing to undo: the next turn is as before", Container: "k8s pod job-7 (" + evil + ")",
		Target:   sched.Target{TSGID: sched.TSGID{GPU: 0, Runlist: 0, TSG: 7}, Gen: in.Gen, PID: 479, Exe: "/home/ada/" + evil, User: "ada", Unit: "k8s:job-7"},
		Warnings: []string{"this TSG is another user's (ada)", "an MPS server: 4 clients share it"}, New: in.Value}
	if in.Op == sched.OpTimeslice {
		p.Old = u64(2048)
	}
	return p, nil
}

func (f *fakeController) Submit(p Preview) (string, error) {
	f.log = append(f.log, "submit "+string(p.Op))
	if p.Op == sched.OpInterleave {
		return "", errors.New("the audit line could not be written: no space left on device")
	}
	return "x1", nil
}

func (f *fakeController) Undo(id string) error {
	f.log = append(f.log, "undo "+id)
	return nil
}
