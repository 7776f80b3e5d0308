package recording

import (
	"slices"

	"tsgtop/internal/sched"
	"tsgtop/internal/text"
)

// safeString makes one foreign string fit to stand in a recording.
func safeString(s string) string { return text.Bound(text.Clean(s), maxString) }

// safeEvent is the event with all its text made safe and numbers that JSON
// cannot hold left out. What it gets is never changed: parts are copied where
// they differ.
func safeEvent(e sched.Event) sched.Event { return mapText(e, safeString) }

// mapText is the event with f applied to each of its strings.
func mapText(e sched.Event, f func(string) string) sched.Event {
	switch v := e.(type) {
	case sched.SourceInfo:
		v.Label, v.Host, v.BootID, v.Kernel, v.Tool = f(v.Label), f(v.Host), f(v.BootID), f(v.Kernel), f(v.Tool)
		v.Notes = mapStrings(v.Notes, f)
		return v
	case sched.ProbeStatus:
		v.Probe, v.Rung, v.What, v.Why, v.Help = f(v.Probe), f(v.Rung), f(v.What), f(v.Why), f(v.Help)
		v.State = sched.ProbeState(f(string(v.State)))
		return v
	case sched.GPU:
		v.PCI, v.UUID, v.Name, v.Driver, v.Why = f(v.PCI), f(v.UUID), f(v.Name), f(v.Driver), f(v.Why)
		return v
	case sched.Process:
		v.Exe, v.Comm, v.User, v.Cgroup, v.Unit, v.WhyNull = f(v.Exe), f(v.Comm), f(v.User), f(v.Cgroup), f(v.Unit), f(v.WhyNull)
		v.Args = mapStrings(v.Args, f)
		return v
	case sched.Call:
		mapCall(&v, f)
		return v
	case sched.CallBatch:
		v.Calls = mapCalls(v.Calls, f)
		return v
	case sched.Inventory:
		v.Why, v.TSGs = f(v.Why), mapFound(v.TSGs, f)
		return v
	case sched.Xid:
		v.PCI, v.Name, v.Text, v.From = f(v.PCI), f(v.Name), f(v.Text), f(v.From)
		return v
	case sched.SwitchCounters:
		v.Why = f(v.Why)
		return v
	case sched.Lifecycle:
		v.Kind, v.Command = sched.LifecycleKind(f(string(v.Kind))), f(v.Command)
		return v
	case sched.Command:
		return mapCommand(v, f)
	}
	return e
}

func mapCall(c *sched.Call, f func(string) string) {
	c.Comm, c.Command = f(c.Comm), f(c.Command)
	c.Where = sched.Where(f(string(c.Where)))
}

// mapCalls copies the calls only from the first one on that changes.
func mapCalls(calls []sched.Call, f func(string) string) []sched.Call {
	copied := false
	for i := range calls {
		c := calls[i]
		mapCall(&c, f)
		if c.Comm == calls[i].Comm && c.Command == calls[i].Command && c.Where == calls[i].Where {
			continue
		}
		if !copied {
			calls, copied = slices.Clone(calls), true
		}
		calls[i] = c
	}
	return calls
}

// mapFound copies the TSGs only where a word in one changes.
func mapFound(tsgs []sched.FoundTSG, f func(string) string) []sched.FoundTSG {
	copied := false
	for i := range tsgs {
		from := sched.ValueFrom(f(string(tsgs[i].TimesliceFrom)))
		if from == tsgs[i].TimesliceFrom {
			continue
		}
		if !copied {
			tsgs, copied = slices.Clone(tsgs), true
		}
		tsgs[i].TimesliceFrom = from
	}
	return tsgs
}

func mapCommand(v sched.Command, f func(string) string) sched.Command {
	v.ID, v.Actuator, v.Undo, v.Why = f(v.ID), f(v.Actuator), f(v.Undo), f(v.Why)
	v.Op, v.Step = sched.Op(f(string(v.Op))), sched.CommandStep(f(string(v.Step)))
	v.Target.Exe, v.Target.User, v.Target.Unit = f(v.Target.Exe), f(v.Target.User), f(v.Target.Unit)
	if v.Calls.ByStatus != nil {
		by := make(map[string]int, len(v.Calls.ByStatus))
		for k, n := range v.Calls.ByStatus {
			by[f(k)] += n
		}
		v.Calls.ByStatus = by
	}
	mapLamp(&v.Ran, f)
	mapLamp(&v.Accepted.Lamp, f)
	mapLamp(&v.Changed.Lamp, f)
	v.Accepted.Status, v.Accepted.Where = f(v.Accepted.Status), f(v.Accepted.Where)
	v.Changed.Metric, v.Changed.Evidence = f(v.Changed.Metric), f(v.Changed.Evidence)
	v.Changed = finiteChanged(v.Changed)
	return v
}

func mapLamp(l *sched.Lamp, f func(string) string) {
	l.State, l.Why = sched.LampState(f(string(l.State))), f(l.Why)
}

// finiteChanged leaves out evidence with numbers that are none.
func finiteChanged(c sched.Changed) sched.Changed {
	c.Ratio, c.P = finite(c.Ratio), finite(c.P)
	if c.CI != nil && (finite(&c.CI[0]) == nil || finite(&c.CI[1]) == nil) {
		c.CI = nil
	}
	if finite(&c.Level) == nil {
		c.Level = 0
	}
	for _, s := range []**sched.Sample{&c.Before, &c.After} {
		if *s != nil && (finite(&(*s).P50) == nil || finite(&(*s).Mean) == nil) {
			*s = nil
		}
	}
	if v := c.Victim; v != nil {
		c.Victim = &sched.Cost{ShareBefore: finite(v.ShareBefore), ShareAfter: finite(v.ShareAfter),
			SwitchTaxBefore: finite(v.SwitchTaxBefore), SwitchTaxAfter: finite(v.SwitchTaxAfter)}
	}
	return c
}

// mapStrings copies the list only where something in it changes.
func mapStrings(list []string, f func(string) string) []string {
	copied := false
	for i, s := range list {
		t := f(s)
		if t == s {
			continue
		}
		if !copied {
			list, copied = slices.Clone(list), true
		}
		list[i] = t
	}
	return list
}
