package sched

import (
	"path"
	"slices"
	"time"
)

// process is one process; its pid may be reused after its exit.
type process struct {
	Process
	exited Time // 0: not seen to end
}

// Name is the short name of a process: the last part of its executable's path,
// or its comm. It is untrusted text. Empty where neither is known.
func (e Process) Name() string {
	if e.Exe != "" {
		return path.Base(e.Exe)
	}
	return e.Comm
}

// process finds the running process of that pid, or makes one of which nothing
// else is known. at is when it was seen to run. Nil for no pid.
func (s *State) process(pid int, at Time) *process {
	if pid <= 0 {
		return nil
	}
	p := s.processes[pid]
	if p != nil && (p.exited == 0 || at <= p.exited) {
		return p
	}
	if p == nil && len(s.processes) >= maxProcesses {
		s.cut++
		return nil
	}
	p = &process{Process: Process{PID: pid}}
	s.processes[pid] = p
	return p
}

func (s *State) applyProcess(e Process) {
	p := s.processes[e.PID]
	if p != nil && p.Start != 0 && e.Start != 0 && p.Start != e.Start && p.exited == 0 {
		// The pid was reused and the exit was not seen.
		s.applyExit(ProcessExit{Time: e.Time, PID: e.PID})
	}
	p = s.process(e.PID, e.Time)
	if p == nil {
		return
	}
	e.Exe, e.Comm, e.User = clip(e.Exe), clip(e.Comm), clip(e.User)
	e.Cgroup, e.Unit, e.WhyNull = clip(e.Cgroup), clip(e.Unit), clip(e.WhyNull)
	e.Args = slices.Clone(e.Args[:min(len(e.Args), 1024)])
	if e.Gone && p.Start != 0 {
		return // it was read while it ran; that says more
	}
	p.Process = e
	if e.Gone && p.exited == 0 {
		s.applyExit(ProcessExit{Time: e.Time, PID: e.PID})
	}
}

// applyExit notes the end of a process. Its clients live until their file is
// closed; see endOrphans for when nobody tells.
func (s *State) applyExit(e ProcessExit) {
	p := s.processes[e.PID]
	if p == nil || p.exited != 0 {
		return
	}
	p.exited = max(e.Time, 1)
	for _, c := range s.clients {
		c.holderGone(e.PID, p.exited)
	}
}

// Grace after the exit of the last process known to hold a client, in which
// nothing of the client was on the engine, before the client counts as ended:
// where the call probe sees files close, that close is what ends it, and the
// grace only covers a close that was lost.
const (
	graceNoCloses = Time(time.Second)
	graceCloses   = 10 * Time(time.Second)
)

func (s *State) endOrphans() {
	grace := graceNoCloses
	if s.closes {
		grace = graceCloses
	}
	for _, c := range s.clientsWhere(func(c *client) bool {
		return c.orphaned != 0 && s.now-max(c.orphaned, c.lastTurn()) >= grace
	}) {
		s.endClient(c, s.now)
	}
}

// lastTurn is when something of the client was last seen on an engine.
func (c *client) lastTurn() Time {
	var last Time
	c.root.each(func(n *object) {
		if n.tsg != nil {
			last = max(last, n.tsg.lastSeen())
		}
	})
	return last
}

// each visits all nodes below n.
func (n *object) each(f func(*object)) {
	for c := n.child; c != nil; c = c.next {
		f(c)
		c.each(f)
	}
}

func (s *State) dropProcesses() {
	keep := Time(s.opt.LaneKeep)
	for pid, p := range s.processes {
		if p.exited != 0 && s.now-p.exited > keep {
			delete(s.processes, pid)
		}
	}
}
