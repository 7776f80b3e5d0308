package rmcalls

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"

	"tsgtop/bpf"
	"tsgtop/internal/sched"
)

// Status says how well the probe works, by which rung, and why not by a better
// one.
func (p *Probe) Status() sched.ProbeStatus {
	s := sched.ProbeStatus{
		Time: sched.Now(), Probe: "rm", GPU: sched.Unknown, State: sched.ProbeOK,
		Rung: p.rung.Title(), What: "RM calls of all processes",
	}
	var why []string
	if len(p.refusals) > 0 {
		why = append(why, together(p.refusals))
	}
	if p.rung == RungTP {
		why = append(why, "calls of 32-bit programs are not seen by this hook")
	}
	if p.noClose != nil {
		why = append(why, "the last close of a file is not seen: "+p.noClose.Error())
	}
	loss, err := p.Losses()
	if err != nil {
		why = append(why, err.Error())
		s.State = sched.ProbeLimited
	} else if text := lossText(loss); text != "" {
		why = append(why, text)
		s.State = sched.ProbeLimited
	}
	s.Why, s.Help = strings.Join(why, "; "), help(p.refusals)
	return s
}

// ExitStatus says whether ends of processes are seen.
func (p *Probe) ExitStatus() sched.ProbeStatus {
	s := sched.ProbeStatus{
		Time: sched.Now(), Probe: "exit", GPU: sched.Unknown, State: sched.ProbeOK,
		Rung: "tp_btf sched_process_exit", What: "ends of processes that made RM calls",
	}
	if p.noExit != nil {
		s.State, s.Why = sched.ProbeMissing, p.noExit.Error()
	}
	return s
}

// Missing is the status where Open gave err.
func Missing(err error) sched.ProbeStatus {
	s := sched.ProbeStatus{
		Time: sched.Now(), Probe: "rm", GPU: sched.Unknown, State: sched.ProbeMissing,
		What: "RM calls of all processes", Why: err.Error(),
	}
	var u *Unavailable
	if errors.As(err, &u) {
		s.Help = help(u.Refusals)
	}
	return s
}

// together says the refusals in their order, those with the same reason as one.
func together(refusals []*Refusal) string {
	var reasons []string
	rungs := map[string][]string{}
	for _, r := range refusals {
		why := r.why()
		if rungs[why] == nil {
			reasons = append(reasons, why)
		}
		rungs[why] = append(rungs[why], string(r.Rung))
	}
	for i, why := range reasons {
		reasons[i] = strings.Join(rungs[why], ", ") + ": " + why
	}
	return strings.Join(reasons, "; ")
}

// help is what would make the refused rungs work, each thing once.
func help(refusals []*Refusal) string {
	var all []string
	for _, r := range refusals {
		if h := r.Help(); h != "" && !slices.Contains(all, h) {
			all = append(all, h)
		}
	}
	return strings.Join(all, "; ")
}

// Losses reads the counters of what went missing since Open. Loss holds sums
// over places; Unmatched is a lower bound, because a program that the kernel
// skipped may or may not also show as an end without a beginning.
func (p *Probe) Losses() (l sched.Loss, err error) {
	err = p.use(func() error {
		l, err = p.losses()
		return err
	})
	return l, err
}

func (p *Probe) losses() (sched.Loss, error) {
	var perCPU []bpf.RMCallsRmLosses
	if err := p.coll.Maps["losses"].Lookup(uint32(0), &perCPU); err != nil {
		return sched.Loss{}, fmt.Errorf("reading the loss counters: %w", err)
	}
	l := sched.Loss{Time: sched.Now(), Queue: p.queueLost.Load(), Malformed: p.malformed.Load()}
	for _, c := range perCPU {
		l.Ring += c.Ring + c.OwnRing
		l.Faults += c.ArgFaults + c.ParamsFaults
		l.Compat += c.Compat
		l.Unmatched += c.Unmatched + c.Unstored + c.Uncounted
	}
	l.Unmatched = max(l.Unmatched, p.skipped())
	return l, nil
}

// skipped is how often the kernel left out one of the programs because
// another task's run of it was under way on the same CPU.
func (p *Probe) skipped() uint64 {
	var n uint64
	for _, prog := range p.coll.Programs {
		n += misses(prog)
	}
	return n
}

func misses(prog *ebpf.Program) uint64 {
	s, err := prog.Stats()
	if err != nil {
		return 0 // before 5.12 the kernel does not tell
	}
	return s.RecursionMisses
}

func lossText(l sched.Loss) string {
	var parts []string
	add := func(n uint64, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	add(l.Ring, "calls lost: the ring was full")
	add(l.Queue, "calls lost: the queue was full")
	add(l.Faults, "reads of a caller's memory faulted")
	add(l.Compat, "calls through the 32-bit entry, only counted")
	add(l.Unmatched, "calls of which only one end was seen")
	add(l.Malformed, "records could not be decoded")
	return strings.Join(parts, ", ")
}
