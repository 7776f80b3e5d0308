package sched

import (
	"fmt"

	"tsgtop/internal/rm"
	"tsgtop/internal/text"
)

// CallJSON is one line of `tsgtop calls --json`, whatever it tells of. Fields
// that a line does not have are left out.
type CallJSON struct {
	Time     string   `json:"time"`
	DurUS    *float64 `json:"dur_us,omitempty"`
	PID      int      `json:"pid"`
	TID      int      `json:"tid,omitempty"`
	Exe      string   `json:"exe,omitempty"`
	File     uint32   `json:"file,omitempty"`
	Kind     string   `json:"kind"` // control, alloc, free, dup, close, exit, xid or a LifecycleKind
	Name     string   `json:"name,omitempty"`
	Number   *string  `json:"number,omitempty"` // hex
	Client   *Handle  `json:"client,omitempty"`
	Parent   *Handle  `json:"parent,omitempty"`
	Object   *Handle  `json:"object,omitempty"`
	Class    *string  `json:"class,omitempty"` // hex
	Status   string   `json:"status,omitempty"`
	Errno    int      `json:"errno,omitempty"`
	Where    Where    `json:"where,omitempty"`
	RPCUS    *float64 `json:"rpc_us,omitempty"`
	Params   *Params  `json:"params,omitempty"`
	TSG      *LSTSGID `json:"tsg,omitempty"`
	Value    *uint64  `json:"value,omitempty"` // timeslice in microseconds, or interleave level
	Command  string   `json:"command,omitempty"`
	GPU      *int     `json:"gpu,omitempty"`
	Xid      *uint32  `json:"xid,omitempty"`
	Text     string   `json:"text,omitempty"`
	Sequence uint64   `json:"seq,omitempty"`
	Process  string   `json:"process,omitempty"` // name in an Xid's message
}

// LSTSGID names a TSG; what is not known is null.
type LSTSGID struct {
	GPU     *int `json:"gpu"`
	Runlist *int `json:"runlist"`
	TSG     *int `json:"tsg"`
}

// LineJSON gives one line of the call stream as `calls --json` prints it, a
// CallJSON. exeOf names a process's executable; nil: none are named.
func LineJSON(l *CallLine, exeOf func(pid int) string) any {
	if exeOf == nil {
		exeOf = func(int) string { return "" }
	}
	return lineJSON(l, exeOf)
}

func lineJSON(l *CallLine, exeOf func(pid int) string) CallJSON {
	var out CallJSON
	switch {
	case l.Call != nil:
		out = callJSON(l.Call)
	case l.Lifecycle != nil:
		out = lifecycleJSON(l.Lifecycle)
	case l.Exit != nil:
		out = CallJSON{Time: jsonTime(l.Exit.Time), PID: l.Exit.PID, Kind: "exit"}
	case l.Xid != nil:
		x := l.Xid
		out = CallJSON{
			Time: jsonTime(x.Time), PID: x.PID, Kind: "xid", Name: rm.XidName(x.Code), Process: text.Clean(x.Name),
			GPU: knownInt(x.GPU), Xid: Ptr(x.Code), Text: text.Clean(x.Text),
		}
	}
	out.Sequence = l.Seq
	if out.PID > 0 {
		out.Exe = text.Clean(exeOf(out.PID))
	}
	return out
}

func callJSON(c *Call) CallJSON {
	out := CallJSON{
		Time: jsonTime(c.Start), DurUS: Ptr(float64(c.End-c.Start) / 1e3), PID: c.PID, TID: c.TID, File: c.File,
		Kind: KindName(c.Kind), Name: CallName(c), Client: Ptr(c.Client), Parent: knownHandle(c.Parent), Object: Ptr(c.Object),
		Status: rm.StatusName(c.Status), Errno: c.Errno, Where: Where(text.Clean(string(c.Where))), Params: c.Params, Command: text.Clean(c.Command),
	}
	switch c.Kind {
	case CallControl:
		out.Number = Ptr(jsonHex(c.Number))
	case CallAlloc:
		out.Number = Ptr(jsonHex(c.Number))
		out.Class = out.Number
	}
	if c.Errno != 0 { // the status was not written
		out.Status = ""
	}
	if c.RPC > 0 {
		out.RPCUS = Ptr(float64(c.RPC) / 1e3)
	}
	return out
}

func lifecycleJSON(f *Lifecycle) CallJSON {
	return CallJSON{
		Time: jsonTime(f.Time), PID: f.PID, Kind: text.Clean(string(f.Kind)), Client: Ptr(f.Object.Client), Object: knownHandle(f.Object.Handle),
		TSG:    &LSTSGID{knownInt(f.ID.GPU), knownInt(f.ID.Runlist), knownInt(f.ID.TSG)},
		Status: rm.StatusName(f.Status), Value: f.Value, Command: text.Clean(f.Command),
	}
}

func jsonHex(n uint32) string { return fmt.Sprintf("0x%x", n) }
