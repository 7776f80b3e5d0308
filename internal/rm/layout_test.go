package rm

import (
	"encoding/binary"
	"reflect"
	"testing"
)

// layoutTable was written by hand from what a C compiler makes of the driver's
// own structs (550.90.12, 570.211.01, 580.142, 590.48.01, 595.45.04), and what
// worked on an H200 with 580.159.04. Offsets are those of the fields in order.
var layoutTable = []struct {
	layout  any
	size    int
	offsets []int
}{
	{FreeParams{}, 16, []int{0, 4, 8, 12}},
	{ControlParams{}, 32, []int{0, 4, 8, 12, 16, 24, 28}},
	{AllocParams{}, 32, []int{0, 4, 8, 12, 16, 24, 28}},
	{Alloc64Params{}, 48, []int{0, 4, 8, 12, 16, 24, 32, 36, 40}},
	{DupParams{}, 28, []int{0, 4, 8, 12, 16, 20, 24}},
	{MapMemoryParams{}, 56, []int{0, 4, 8, 16, 24, 32, 40, 44, 48}},
	{UnmapMemoryParams{}, 32, []int{0, 4, 8, 16, 24, 28}},
	{XferParams{}, 16, []int{0, 4, 8}},
	{CardInfo{}, 0x48, []int{0, 4, 8, 9, 10, 12, 14, 16, 20, 24, 32, 40, 48, 0x38, 60}},
	{RegisterFDParams{}, 4, []int{0}},
	{OSEventParams{}, 16, []int{0, 4, 8, 12}},
	{VersionParams{}, 72, []int{0, 4, 8}},

	{ClientDatabaseInfoParams{}, 16, []int{0, 8}},
	{HandleInfoParams{}, 16, []int{0, 4, 8}},
	{AccessRightsParams{}, 12, []int{0, 4, 8}},
	{ChildHandleParams{}, 12, []int{0, 4, 8}},
	{AttachedIDsParams{}, 128, []int{0}},
	{ProbedIDsParams{}, 384, []int{0, 128, 256}},
	{AttachIDsParams{}, 132, []int{0, 128}},
	{DetachIDsParams{}, 128, []int{0}},
	{GPUIDInfoParams{}, 32, []int{0, 4, 8, 0xc, 16, 20, 24, 28}},
	{PCIInfoParams{}, 12, []int{0, 4, 8, 10}},
	{RPCMeterParams{}, 4, []int{0}},
	{RPCMeterEntry{}, 32, []int{0, 8, 16, 24}},
	{RPCMeterDumpParams{}, 3224, []int{0, 4, 8, 16, 24}},

	{ClientAlloc{}, 0x78, []int{0, 4, 8, 0x70}},
	{DeviceAlloc{}, 0x38, []int{0, 4, 8, 12, 16, 24, 32, 40, 48}},
	{SubdeviceAlloc{}, 4, []int{0}},
	{TSGAlloc{}, 0x14, []int{0, 4, 8, 0xc, 0x10}},
	{ContextShareAlloc{}, 12, []int{0, 4, 8}},
	{MemoryDesc{}, 0x18, []int{0, 8, 16, 20}},
	{ChannelAlloc{}, 0x170, []int{0, 4, 8, 0x10, 0x14, 0x18, 0x1c, 0x20, 0x40, 0x80, 0x84, 0x88, 0x8c,
		0x90, 0xa8, 0xc0, 0xd8, 0xf0, 0xf4, 0xf8, 0x110, 0x128, 0x12c, 0x130, 0x13c, 0x148, 0x168}},
	{MemoryAlloc{}, 0x80, []int{0, 4, 8, 12, 16, 20, 0x18, 0x1c, 32, 36, 40, 48, 56, 0x40, 72, 80, 88, 96, 104, 108, 112, 116, 120}},
	{EventBufferAlloc{}, 0x48, []int{0, 8, 0x10, 0x14, 0x18, 0x20, 0x24, 0x28, 0x30, 0x34, 0x38, 0x3c, 0x40, 0x44}},

	{GPUIDParams{}, 4, []int{0}},
	{EnginesParams{}, 340, []int{0, 4}},
	{EngineRunlistsParams{}, 0x3f0, []int{0, 0x150, 0x2a0}},
	{GPUPIDsParams{}, 0xee4, []int{0, 4, 8, 0xc}},
	{ComputePolicy{}, 8, []int{0, 4}},
	{ComputePoliciesParams{}, 260, []int{0, 4}},
	{GPUTimeParams{}, 8, []int{0}},
	{TimeSample{}, 16, []int{0, 8}},
	{GPUTimeCorrelationParams{}, 264, []int{0, 1, 8}},
	{AllocatedChannelsParams{}, 0x204, []int{0, 4}},
	{TSGUniqueIDsParams{}, 0x610, []int{0, 4, 8, 0xc, 0x10, 0x210, 0x410}},
	{ChannelUniqueIDsParams{}, 0x604, []int{0, 0x200, 0x400, 0x404}},
	{SchedPolicyParams{}, 8, []int{0, 4}},
	{DisableChannelsParams{}, 0x218, []int{0, 4, 8, 9, 0x10, 0x18, 0x118}},
	{ContextSwitchStatsParams{}, 0x20, []int{0, 4, 8, 0xc, 0x10, 0x14, 0x18, 0x1c}},
	{ContextSwitchModesParams{}, 24, []int{0, 4, 8, 12, 16, 20}},
	{PreemptionModeParams{}, 0x20, []int{0, 4, 8, 0xc, 0x10, 0x18}},

	{ScheduleParams{}, 3, []int{0, 1, 2}},
	{BindParams{}, 4, []int{0}},
	{TimesliceParams{}, 8, []int{0}},
	{PreemptParams{}, 8, []int{0, 1, 4}},
	{TSGInfoParams{}, 4, []int{0}},
	{InterleaveParams{}, 4, []int{0}},
	{RealtimeParams{}, 1, []int{0}},
	{RestartRunlistParams{}, 2, []int{0, 1}},
	{StopParams{}, 1, []int{0}},
	{ContextIDParams{}, 4, []int{0}},
	{WorkSubmitTokenParams{}, 4, []int{0}},
	{HWStateParams{}, 4, []int{0}},
	{ClassEngineIDParams{}, 16, []int{0, 4, 8, 12}},

	{FECSBindParams{}, 0x14, []int{0, 4, 8, 0xc, 0x10}},
	{FECSBindV2Params{}, 0x18, []int{0, 4, 8, 0xc, 0x10, 0x14}},
	{EventBufferEnableParams{}, 8, []int{0, 4}},
	{EventBufferUpdateGetParams{}, 8, []int{0, 4}},
	{EventBufferHeader{}, 0x20, []int{0, 4, 8, 0x10, 0x18}},
	{FECSRecord{}, 32, []int{0, 2, 4, 8, 9, 10, 12, 16, 22, 23, 24}},
}

func TestLayouts(t *testing.T) {
	for _, c := range layoutTable {
		typ := reflect.TypeOf(c.layout)
		if got := int(typ.Size()); got != c.size {
			t.Errorf("%s: in memory %d bytes, want %d", typ.Name(), got, c.size)
		}
		if got := binary.Size(c.layout); got != c.size {
			t.Errorf("%s: encoded %d bytes, want %d", typ.Name(), got, c.size)
		}
		var got []int
		for i := range typ.NumField() {
			if f := typ.Field(i); f.Name != "_" {
				got = append(got, int(f.Offset))
			}
		}
		if !reflect.DeepEqual(got, c.offsets) {
			t.Errorf("%s: offsets %#x, want %#x", typ.Name(), got, c.offsets)
		}
	}
}

// What is written into each field comes back from where the table has it.
func TestEncodeAndDecodeGoToTheSamePlaces(t *testing.T) {
	for _, c := range layoutTable {
		typ := reflect.TypeOf(c.layout)
		in := make([]byte, c.size+5)
		for i := range in {
			in[i] = byte(i*7 + 1)
		}
		v := reflect.New(typ)
		if err := Decode(in, v.Interface()); err != nil {
			t.Errorf("%s: %v", typ.Name(), err)
			continue
		}
		out, err := Encode(v.Interface())
		if err != nil {
			t.Errorf("%s: %v", typ.Name(), err)
			continue
		}
		if len(out) != c.size {
			t.Errorf("%s: %d bytes, want %d", typ.Name(), len(out), c.size)
			continue
		}
		for i, f := range reflect.VisibleFields(typ) {
			for b := f.Offset; b < f.Offset+f.Type.Size(); b++ {
				if f.Name == "_" && out[b] != 0 || f.Name != "_" && f.Type.Kind() != reflect.Array && f.Type.Kind() != reflect.Struct && out[b] != in[b] {
					t.Errorf("%s: byte %d, of field %d %s: %#x became %#x", typ.Name(), b, i, f.Name, in[b], out[b])
				}
			}
		}
		if err := Decode(in[:c.size-1], v.Interface()); err == nil {
			t.Errorf("%s: one byte too few was no error", typ.Name())
		}
	}
	if err := Decode(make([]byte, 8), &struct{ S string }{}); err == nil {
		t.Error("decoding into a string was no error")
	}
	if _, err := Encode(struct{ S string }{}); err == nil {
		t.Error("encoding a string was no error")
	}
}

func TestEncodePreempt(t *testing.T) {
	got, err := Encode(PreemptParams{Wait: 1, ManualTimeout: 1, TimeoutUS: 0x0f4240})
	want := []byte{1, 1, 0, 0, 0x40, 0x42, 0x0f, 0}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Encode = % x, %v; want % x", got, err, want)
	}
}

func TestWorkSubmitToken(t *testing.T) {
	for _, c := range []struct{ token, runlist, channel uint32 }{
		{0x00000000, 0, 0},
		{0x00000007, 0, 7},
		{0x000a01ff, 10, 0x1ff},
		{0x00030fff, 3, 0xfff},
		{0x407f0001, 0x7f, 1}, // Blackwell sets bit 30
	} {
		if r, ch := WorkSubmitToken(c.token); r != c.runlist || ch != c.channel {
			t.Errorf("WorkSubmitToken(%#x) = %d, %d, want %d, %d", c.token, r, ch, c.runlist, c.channel)
		}
	}
}
