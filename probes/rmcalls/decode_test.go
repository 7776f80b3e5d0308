package rmcalls

import (
	"encoding/binary"
	"reflect"
	"strings"
	"testing"

	"tsgtop/bpf"
	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
)

// raw writes a call record by hand, at the offsets of struct rm_call.
type raw struct {
	kind, flags, paramsLen uint8
	errno                  int32
	number, status         uint32
	params                 []byte
}

func (r raw) bytes() []byte {
	b := make([]byte, 104)
	ne := binary.NativeEndian
	ne.PutUint32(b[0:], 1)
	b[4], b[5], b[6] = r.kind, r.flags, r.paramsLen
	ne.PutUint64(b[8:], 1000) // start
	ne.PutUint64(b[16:], 50)  // duration
	ne.PutUint64(b[24:], 9)   // command
	for i, v := range []uint32{11, 12, 13, uint32(-r.errno), r.number, 0xc1d00001, 0x5c000001, 0x5c000015, r.status, 0xc1d00002, 0x33} {
		ne.PutUint32(b[32+4*i:], v)
	}
	copy(b[80:], "python3\x00garbage")
	copy(b[96:], r.params)
	return b
}

func testDecoder() *decoder {
	return &decoder{
		toTime:  func(m uint64) sched.Time { return sched.Time(m) + 7 },
		command: func(id uint64) string { return "cmd" + string(rune('0'+id)) },
	}
}

func TestDecode(t *testing.T) {
	p := func(b ...byte) []byte { return b }
	call := func(kind sched.CallKind, number uint32, params *sched.Params) sched.Call {
		return sched.Call{
			Start: 1007, End: 1057, PID: 11, TID: 12, File: 13, Comm: "python3", Kind: kind, Number: number,
			Client: 0xc1d00001, Parent: 0x5c000001, Object: 0x5c000015, Command: "cmd9", Params: params,
		}
	}
	ptr := sched.Ptr[uint32]
	for name, c := range map[string]struct {
		in     raw
		number uint32
		params *sched.Params
	}{
		"TSG number":       {raw{kind: 1, number: rm.CtrlTSGInfo, paramsLen: 4, params: p(7, 0, 0, 0)}, rm.CtrlTSGInfo, &sched.Params{TSGNumber: ptr(7)}},
		"context id":       {raw{kind: 1, number: rm.CtrlChannelContextID, paramsLen: 4, params: p(0x3f, 0, 0, 0)}, rm.CtrlChannelContextID, &sched.Params{Context: ptr(0x3f)}},
		"token":            {raw{kind: 1, number: rm.CtrlWorkSubmitToken, paramsLen: 4, params: p(0x15, 0x02, 0x0a, 0)}, rm.CtrlWorkSubmitToken, &sched.Params{Runlist: ptr(10), ChID: ptr(0x215)}},
		"timeslice read":   {raw{kind: 1, number: rm.CtrlTSGGetTimeslice, paramsLen: 8, params: u64(2048)}, rm.CtrlTSGGetTimeslice, &sched.Params{Timeslice: sched.Ptr(uint64(2048))}},
		"timeslice set":    {raw{kind: 1, number: rm.CtrlTSGSetTimeslice, paramsLen: 8, params: u64(200)}, rm.CtrlTSGSetTimeslice, &sched.Params{Timeslice: sched.Ptr(uint64(200))}},
		"channel":          {raw{kind: 2, number: rm.ClassChannelHopper, paramsLen: 8, params: u32(1, 0x3f)}, rm.ClassChannelHopper, &sched.Params{Engine: ptr(1), Context: ptr(0x3f)}},
		"root class":       {raw{kind: 2, number: 0, paramsLen: 4, params: u32(99)}, rm.ClassClient, &sched.Params{ProcessID: ptr(99)}},
		"params cut short": {raw{kind: 1, number: rm.CtrlTSGSetTimeslice, paramsLen: 4, params: u64(200)}, rm.CtrlTSGSetTimeslice, nil},
		"no params":        {raw{kind: 1, number: rm.CtrlTSGPreempt}, rm.CtrlTSGPreempt, nil},
		"params faulted":   {raw{kind: 1, flags: 1, number: rm.CtrlTSGPreempt}, rm.CtrlTSGPreempt, &sched.Params{Faulted: true}},
		"unknown control":  {raw{kind: 1, number: 0x20801fff, paramsLen: 8, params: u64(1)}, 0x20801fff, nil},
		"free":             {raw{kind: 3}, 0, nil},
		"dup":              {raw{kind: 4}, 0, &sched.Params{SrcClient: sched.Ptr(sched.Handle(0xc1d00002)), SrcObject: sched.Ptr(sched.Handle(0x33))}},
	} {
		var r record
		err := testDecoder().decode(c.in.bytes(), &r)
		want := call(sched.CallKind(c.in.kind), c.number, c.params)
		if err != nil || r.isExit || !reflect.DeepEqual(r.call, want) {
			t.Errorf("%s:\n got %+v %+v %v\nwant %+v %+v", name, r.call, r.call.Params, err, want, want.Params)
		}
	}
}

// TestAnswersOfFailedCalls: what RM writes is not told where it did not.
func TestAnswersOfFailedCalls(t *testing.T) {
	for _, number := range []uint32{rm.CtrlTSGInfo, rm.CtrlChannelContextID, rm.CtrlWorkSubmitToken, rm.CtrlTSGGetTimeslice} {
		for _, in := range []raw{
			{kind: 1, number: number, paramsLen: 8, params: u64(1), status: 0x57},
			{kind: 1, number: number, paramsLen: 8, params: u64(1), errno: 14},
		} {
			var r record
			if err := testDecoder().decode(in.bytes(), &r); err != nil || r.call.Params != nil || r.call.Status != in.status || r.call.Errno != int(in.errno) {
				t.Errorf("%#x: %+v %+v, %v", number, r.call, r.call.Params, err)
			}
		}
	}
	var r record
	in := raw{kind: 2, number: rm.ClassChannelHopper, paramsLen: 8, params: u32(1, 0x3f), status: 0x57}
	if err := testDecoder().decode(in.bytes(), &r); err != nil || r.call.Params == nil || r.call.Params.Context != nil || *r.call.Params.Engine != 1 {
		t.Errorf("failed channel: %+v, %v", r.call.Params, err)
	}
}

func TestDecodeRefusesWhatThePrograms(t *testing.T) {
	good := raw{kind: 1}.bytes()
	exit := make([]byte, 16)
	binary.NativeEndian.PutUint32(exit, 2)
	for name, b := range map[string][]byte{
		"empty":           nil,
		"no type":         {1, 0},
		"unknown type":    make([]byte, 104),
		"short call":      good[:103],
		"short exit":      exit[:15],
		"unknown kind":    raw{kind: 6}.bytes(),
		"kind 0":          raw{}.bytes(),
		"too many params": raw{kind: 1, paramsLen: 9}.bytes(),
	} {
		var r record
		if err := testDecoder().decode(b, &r); err == nil {
			t.Errorf("%s: decoded to %+v", name, r)
		}
	}
	var r record
	binary.NativeEndian.PutUint32(exit[4:], 4711)
	binary.NativeEndian.PutUint64(exit[8:], 100)
	if err := testDecoder().decode(exit, &r); err != nil || !r.isExit || r.exit != (sched.ProcessExit{Time: 107, PID: 4711}) {
		t.Errorf("exit: %+v, %v", r, err)
	}
}

// TestLayout: the sizes that the hand-written records above go by.
func TestLayout(t *testing.T) {
	if callSize != 104 || exitSize != 16 || ownSize != 56 {
		t.Errorf("call %d, exit %d, own %d bytes", callSize, exitSize, ownSize)
	}
	if bpf.RMCallsRmKindRM_KIND_CLOSE != bpf.RMCallsRmKind(sched.CallClose) || bpf.RMCallsRmKindRM_KIND_CONTROL != bpf.RMCallsRmKind(sched.CallControl) {
		t.Error("kinds of the programs are not those of sched")
	}
}

func TestNamesAreBounded(t *testing.T) {
	var n names
	for i := range uint32(10 * maxNames) {
		var comm [16]uint8
		copy(comm[:], u32(i|0x01010101))
		if got := n.of(comm); got != strings.TrimRight(string(comm[:]), "\x00") {
			t.Fatalf("%q became %q", comm, got)
		}
		if len(n) > maxNames {
			t.Fatalf("%d names kept", len(n))
		}
	}
	full := [16]uint8{'0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'}
	if got := n.of(full); got != "0123456789abcdef" {
		t.Errorf("name without an end: %q", got)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(raw{kind: 1, number: rm.CtrlTSGPreempt, paramsLen: 8, params: u64(1)}.bytes())
	f.Add(raw{kind: 2, number: rm.ClassChannelHopper, paramsLen: 8, params: u64(1)}.bytes())
	f.Add(raw{kind: 4, flags: 1}.bytes())
	f.Add([]byte{2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		d := testDecoder()
		var r, again record
		err := d.decode(b, &r)
		if err2 := d.decode(b, &again); (err == nil) != (err2 == nil) || err == nil && !reflect.DeepEqual(r, again) {
			t.Errorf("decoded twice, differently: %+v, %+v", r, again)
		}
		if err != nil || r.isExit {
			return
		}
		c := r.call
		if c.Kind < sched.CallControl || c.Kind > sched.CallClose || len(c.Comm) > 16 || c.Errno < 0 {
			t.Errorf("%+v", c)
		}
		if p := c.Params; p != nil && c.Status != 0 && (p.TSGNumber != nil || p.Context != nil || p.ChID != nil) {
			t.Errorf("answers of a failed call: %+v %+v", c, p)
		}
	})
}
