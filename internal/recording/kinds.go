package recording

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"tsgtop/internal/sched"
)

// The kinds of lines, as "k" names them.
const (
	kindHeader      = "header"
	kindSource      = "source"
	kindProbe       = "probe"
	kindGPU         = "gpu"
	kindGPUSample   = "gpu-sample"
	kindProcess     = "process"
	kindProcessExit = "process-exit"
	kindCall        = "call"
	kindCallBatch   = "call-batch"
	kindCallCounts  = "call-counts"
	kindInventory   = "inventory"
	kindTrace       = "trace"
	kindLoss        = "loss"
	kindXid         = "xid"
	kindClockTie    = "clock-tie"
	kindLifecycle   = "lifecycle"
	kindCommand     = "command"
	kindSwitches    = "switch-counters"
)

// kindOf is the kind of an event's line, or empty for a type that is not one
// of sched's events.
func kindOf(e sched.Event) string {
	switch e.(type) {
	case sched.SourceInfo:
		return kindSource
	case sched.ProbeStatus:
		return kindProbe
	case sched.GPU:
		return kindGPU
	case sched.GPUSample:
		return kindGPUSample
	case sched.Process:
		return kindProcess
	case sched.ProcessExit:
		return kindProcessExit
	case sched.Call:
		return kindCall
	case sched.CallBatch:
		return kindCallBatch
	case sched.CallCounts:
		return kindCallCounts
	case sched.Inventory:
		return kindInventory
	case sched.TraceBatch:
		return kindTrace
	case sched.Loss:
		return kindLoss
	case sched.Xid:
		return kindXid
	case sched.ClockTie:
		return kindClockTie
	case sched.Lifecycle:
		return kindLifecycle
	case sched.Command:
		return kindCommand
	case sched.SwitchCounters:
		return kindSwitches
	}
	return ""
}

// decodeBody makes the event of a kind from its line.
func decodeBody(kind string, line []byte) (sched.Event, error) {
	switch kind {
	case kindTrace:
		return decodeTrace(line)
	case kindSource:
		return decodeAs[sched.SourceInfo](line)
	case kindProbe:
		return decodeAs[sched.ProbeStatus](line)
	case kindGPU:
		return decodeAs[sched.GPU](line)
	case kindGPUSample:
		return decodeAs[sched.GPUSample](line)
	case kindProcess:
		return decodeAs[sched.Process](line)
	case kindProcessExit:
		return decodeAs[sched.ProcessExit](line)
	case kindCall:
		return decodeAs[sched.Call](line)
	case kindCallBatch:
		return decodeAs[sched.CallBatch](line)
	case kindCallCounts:
		return decodeAs[sched.CallCounts](line)
	case kindInventory:
		return decodeAs[sched.Inventory](line)
	case kindLoss:
		return decodeAs[sched.Loss](line)
	case kindXid:
		return decodeAs[sched.Xid](line)
	case kindClockTie:
		return decodeAs[sched.ClockTie](line)
	case kindLifecycle:
		return decodeAs[sched.Lifecycle](line)
	case kindCommand:
		return decodeCommand(line)
	case kindSwitches:
		return decodeAs[sched.SwitchCounters](line)
	case kindHeader:
		return nil, fmt.Errorf("a second header: one recording was appended to another")
	}
	return nil, fmt.Errorf("unknown kind of line %.40q", kind)
}

func decodeAs[T sched.Event](line []byte) (sched.Event, error) {
	var e T
	if err := json.Unmarshal(line, &e); err != nil {
		return nil, err
	}
	return e, nil
}

// commandLine is a command with what its own JSON leaves out: the generation
// of the target, which means nothing outside a run or its recording.
type commandLine struct {
	Gen uint64 `json:"gen,omitempty"`
	sched.Command
}

func decodeCommand(line []byte) (sched.Event, error) {
	var c commandLine
	if err := json.Unmarshal(line, &c); err != nil {
		return nil, err
	}
	c.Command.Target.Gen = c.Gen
	return c.Command, nil
}

// encoder turns events into lines. It is not safe for use by two goroutines.
type encoder struct {
	buf  bytes.Buffer
	json *json.Encoder
	dict traceDict
}

func newEncoder() *encoder {
	e := &encoder{}
	e.json = json.NewEncoder(&e.buf)
	e.json.SetEscapeHTML(false)
	return e
}

// appendEvent appends the event's line, or lines where it has to be split.
// The event must have gone through safeEvent.
func (e *encoder) appendEvent(dst []byte, ev sched.Event) ([]byte, error) {
	switch v := ev.(type) {
	case sched.TraceBatch:
		for len(v.Records) > splitRecords {
			part := v
			part.Records = v.Records[:splitRecords:splitRecords]
			// read only so far, as long as more records of the batch come
			part.Time = part.Records[splitRecords-1].Time
			dst = e.dict.appendTrace(dst, part)
			v.Records = v.Records[splitRecords:]
		}
		return e.dict.appendTrace(dst, v), nil
	case sched.CallBatch:
		for len(v.Calls) > splitCalls {
			var err error
			dst, err = e.appendJSON(dst, kindCallBatch, sched.CallBatch{Calls: v.Calls[:splitCalls]})
			if err != nil {
				return dst, err
			}
			v.Calls = v.Calls[splitCalls:]
		}
		return e.appendJSON(dst, kindCallBatch, v)
	case sched.Command:
		return e.appendJSON(dst, kindCommand, commandLine{Gen: v.Target.Gen, Command: v})
	}
	kind := kindOf(ev)
	if kind == "" {
		return dst, fmt.Errorf("events of type %T cannot be recorded", ev)
	}
	return e.appendJSON(dst, kind, ev)
}

// appendJSON appends a line of v's members after its kind. A line that a
// reader would refuse is replaced by one that says so.
func (e *encoder) appendJSON(dst []byte, kind string, v any) ([]byte, error) {
	e.buf.Reset()
	if err := e.json.Encode(v); err != nil {
		return dst, fmt.Errorf("writing a %q line: %w", kind, err)
	}
	body := e.buf.Bytes() // "{…}\n"
	if len(body) > maxLine-len(kind)-8 || checkShape(body[:len(body)-1]) != nil {
		left := sched.ProbeStatus{Probe: "recording", GPU: sched.Unknown, State: sched.ProbeLimited,
			Why: "an event of kind " + kind + " was too large to record (" + strconv.Itoa(len(body)) + " bytes) and is missing here"}
		if ev, ok := v.(sched.Event); ok {
			left.Time = ev.When()
		}
		return e.appendJSON(dst, kindProbe, left)
	}
	dst = append(dst, `{"k":"`...)
	dst = append(dst, kind...)
	dst = append(dst, '"')
	if len(body) > len("{}\n") {
		dst = append(dst, ',')
	}
	return append(dst, body[1:]...), nil
}

// finite drops numbers that JSON has no way to write; a comparison that gave
// one has nothing to say.
func finite(p *float64) *float64 {
	if p == nil || math.IsNaN(*p) || math.IsInf(*p, 0) {
		return nil
	}
	return p
}
