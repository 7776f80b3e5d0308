package sched

import (
	"fmt"
	"strings"

	"tsgtop/internal/rm"
)

// KindName is the word for a kind of call.
func KindName(k CallKind) string {
	switch k {
	case CallControl:
		return "control"
	case CallAlloc:
		return "alloc"
	case CallFree:
		return "free"
	case CallDup:
		return "dup"
	case CallClose:
		return "close"
	}
	return fmt.Sprintf("kind-%d", k)
}

// CallName names what a call did: the control command or the class by the
// driver's own name, or the kind of call where it has neither.
func CallName(c *Call) string {
	switch c.Kind {
	case CallControl:
		return rm.ControlName(c.Number)
	case CallAlloc:
		return rm.ClassName(c.Number)
	}
	return KindName(c.Kind)
}

// ParamsText writes the parameters that are there on one line, each with a
// space before it: " timeslice=200us wait". Empty where there are none.
func ParamsText(p *Params) string {
	if p == nil {
		return ""
	}
	var b strings.Builder
	num := func(name string, v *uint32) {
		if v != nil {
			fmt.Fprintf(&b, " %s=%d", name, *v)
		}
	}
	flag := func(name string, v *bool) {
		switch {
		case v == nil:
		case *v:
			b.WriteString(" " + name)
		default:
			b.WriteString(" " + name + "=false")
		}
	}
	if p.Engine != nil {
		b.WriteString(" engine=" + rm.EngineName(*p.Engine))
	}
	if p.Context != nil {
		fmt.Fprintf(&b, " context=0x%x", *p.Context)
	}
	num("tsg", p.TSGNumber)
	if p.Timeslice != nil {
		fmt.Fprintf(&b, " timeslice=%dus", *p.Timeslice)
	}
	if p.Interleave != nil {
		b.WriteString(" interleave=" + InterleaveName(*p.Interleave))
	}
	flag("wait", p.Wait)
	if p.TimeoutUS != nil {
		fmt.Fprintf(&b, " timeout=%dus", *p.TimeoutUS)
	}
	flag("enable", p.Enable)
	flag("skip-submit", p.SkipSubmit)
	flag("immediate", p.Immediate)
	flag("force", p.Force)
	num("runlist", p.Runlist)
	num("chid", p.ChID)
	num("device", p.DeviceInstance)
	num("subdevice", p.SubDevice)
	if p.SrcClient != nil && p.SrcObject != nil {
		fmt.Fprintf(&b, " from=%s", Object{Client: *p.SrcClient, Handle: *p.SrcObject})
	}
	num("process", p.ProcessID)
	if p.Faulted {
		b.WriteString(" (parameters could not be read)")
	}
	return b.String()
}

// InterleaveName is the word for an interleave level.
func InterleaveName(level uint32) string {
	switch level {
	case 0:
		return "low"
	case 1:
		return "medium"
	case 2:
		return "high"
	}
	return fmt.Sprintf("%d", level)
}
