package rm

import (
	"bytes"
	"testing"
)

// Records written by hand from the layout: the first is version 2, the second
// version 1, whose pid has 64 bits and no MIG instances behind.
var (
	recordV2 = []byte{
		2, 0, 0xff, 0, 0x20, 0, 0, 0, // type, subtype, vardata
		6, 0, 0x34, 0x12, 0x3f, 0, 0, 0, // tag, vmid, seq, context
		0x39, 0x30, 0, 0, 0xaa, 0xaa, 1, 2, // pid, reserved, instances
		0x15, 0xcd, 0x5b, 0x07, 0, 0, 0, 0x18, // timestamp
	}
	recordV1 = []byte{
		134, 0, 0, 0, 0, 0, 0, 0,
		7, 0, 0xff, 0xff, 0x40, 0, 0, 0,
		0x39, 0x30, 0, 0, 0, 0, 9, 9,
		1, 0, 0, 0, 0, 0, 0, 0,
	}
)

func TestDecodeFECS(t *testing.T) {
	r, ok := DecodeFECS(recordV2)
	want := FECSRecord{Type: 2, Subtype: 0xff, Vardata: 0x20, Tag: FECSTagStart, Seq: 0x1234, Context: 0x3f,
		PID: 12345, GPUInstance: 1, ComputeInstance: 2, Timestamp: 0x18000000075bcd15}
	if !ok || r != want {
		t.Errorf("version 2: %+v, %v; want %+v", r, ok, want)
	}
	r, ok = DecodeFECS(recordV1)
	want = FECSRecord{Type: 134, Tag: FECSTagEnd, Seq: 0xffff, Context: 0x40, PID: 12345, Timestamp: 1}
	if !ok || r != want {
		t.Errorf("version 1: %+v, %v; want %+v", r, ok, want)
	}
	for name, b := range map[string][]byte{
		"short":        recordV2[:31],
		"empty":        nil,
		"never filled": make([]byte, 32),
		"another type": append([]byte{1}, recordV2[1:]...),
		"type's high":  append([]byte{2, 1}, recordV2[2:]...),
	} {
		if r, ok := DecodeFECS(b); ok || r != (FECSRecord{}) {
			t.Errorf("%s: %+v, %v; want nothing", name, r, ok)
		}
	}
}

func TestFECSNames(t *testing.T) {
	if got := FECSTagName(FECSTagStart); got != "SIMPLE_START" {
		t.Errorf("tag 6 is %q", got)
	}
	if got := FECSTagName(0x42); got != "0x42" {
		t.Errorf("tag 0x42 is %q", got)
	}
	for reason := uint32(0); reason <= FECSReasonNeedCapability; reason++ {
		if got := FECSReasonName(reason); got == hex(reason) {
			t.Errorf("reason %d has no words", reason)
		}
	}
	if got := FECSReasonName(6); got != "0x6" {
		t.Errorf("reason 6 is %q", got)
	}
}

func FuzzDecodeFECS(f *testing.F) {
	f.Add(recordV2)
	f.Add(recordV1)
	f.Add(make([]byte, 32))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, ok := DecodeFECS(b)
		if !ok {
			if r != (FECSRecord{}) {
				t.Fatalf("refused, and yet %+v", r)
			}
			return
		}
		// The generic decoder reads the same of it, but for what version 1 lacks.
		var g FECSRecord
		if err := Decode(b, &g); err != nil {
			t.Fatal(err)
		}
		if r.Type == RecordFECSV1 {
			g.GPUInstance, g.ComputeInstance = 0, 0
		}
		if r != g {
			t.Fatalf("%+v, and %+v from the layout", r, g)
		}
	})
}

func FuzzDecodeLayouts(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 0x40, 0x42, 0x0f, 0})
	f.Add(bytes.Repeat([]byte{0xff}, 3224))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, v := range []any{
			&ControlParams{}, &Alloc64Params{}, &TimesliceParams{}, &PreemptParams{}, &ScheduleParams{},
			&TSGUniqueIDsParams{}, &EngineRunlistsParams{}, &RPCMeterDumpParams{}, &CardInfo{},
		} {
			if err := Decode(b, v); err != nil {
				continue
			}
			out, err := Encode(v)
			if err != nil || len(out) > len(b) {
				t.Fatalf("%T: %d bytes of %d, %v", v, len(out), len(b), err)
			}
		}
	})
}

func BenchmarkDecodeFECS(b *testing.B) {
	var sum uint64
	for b.Loop() {
		r, _ := DecodeFECS(recordV2)
		sum += r.Timestamp
	}
	_ = sum
}
