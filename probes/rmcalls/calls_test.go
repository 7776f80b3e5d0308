package rmcalls

import (
	"encoding/binary"
	"os"
	"reflect"
	"testing"

	"golang.org/x/sys/unix"

	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
)

func u32(v ...uint32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.NativeEndian.AppendUint32(b, x)
	}
	return b
}

func u64(v uint64) []byte { return binary.NativeEndian.AppendUint64(nil, v) }

// at gives n bytes with v at an offset.
func at(n, offset int, v []byte) []byte {
	b := make([]byte, n)
	copy(b[offset:], v)
	return b
}

// TestShapesThroughKernel makes each call that shapes scheduling, in each form
// that it has, and wants it back decoded.
func TestShapesThroughKernel(t *testing.T) { eachRung(t, testShapesThroughKernel) }

func testShapesThroughKernel(t *testing.T, rung Rung) {
	p := open(t, Options{Rung: rung})
	c := newCaller(t)
	got := collect(t, p)
	const client, parent, object = 0xc1d00001, 0x5c000001, 0x5c000015
	var want []sched.Call
	expect := func(kind sched.CallKind, number uint32, parent, object sched.Handle, status uint32, params *sched.Params) {
		want = append(want, sched.Call{
			Kind: kind, Number: number, Client: client, Parent: parent, Object: object, Status: status,
			Errno: int(unix.ENOTTY), PID: os.Getpid(), Params: params,
		})
	}

	controls := []struct {
		number uint32
		bytes  []byte
		want   *sched.Params
	}{
		{rm.CtrlTSGSchedule, []byte{1, 0, 1}, &sched.Params{Enable: sched.Ptr(true), SkipSubmit: sched.Ptr(false)}},
		{rm.CtrlTSGSchedule, []byte{0, 1}, &sched.Params{Enable: sched.Ptr(false), SkipSubmit: sched.Ptr(true)}},
		{rm.CtrlChannelSchedule, []byte{1, 0, 0}, &sched.Params{Enable: sched.Ptr(true), SkipSubmit: sched.Ptr(false)}},
		{rm.CtrlTSGBind, u32(9), &sched.Params{Engine: sched.Ptr(uint32(9))}},
		{rm.CtrlChannelBind, u32(1), &sched.Params{Engine: sched.Ptr(uint32(1))}},
		{rm.CtrlTSGSetTimeslice, u64(1 << 40), &sched.Params{Timeslice: sched.Ptr(uint64(1 << 40))}},
		{rm.CtrlTSGPreempt, []byte{1, 1, 0, 0, 0x10, 0x27, 0, 0}, &sched.Params{Wait: sched.Ptr(true), TimeoutUS: sched.Ptr(uint32(10000))}},
		{rm.CtrlTSGPreempt, []byte{0, 0, 0, 0, 1, 0, 0, 0}, &sched.Params{Wait: sched.Ptr(false)}},
		{rm.CtrlTSGSetInterleave, u32(2), &sched.Params{Interleave: sched.Ptr(uint32(2))}},
		{rm.CtrlChannelSetInterleave, u32(1), &sched.Params{Interleave: sched.Ptr(uint32(1))}},
		{rm.CtrlChannelRestartRunlist, []byte{1, 0}, &sched.Params{Force: sched.Ptr(true)}},
		{rm.CtrlChannelStop, []byte{1}, &sched.Params{Immediate: sched.Ptr(true)}},
		// What RM answers is not there to be read when the call failed.
		{rm.CtrlTSGGetTimeslice, u64(5), nil},
		{rm.CtrlTSGInfo, u32(7), nil},
		{rm.CtrlChannelContextID, u32(63), nil},
		{rm.CtrlWorkSubmitToken, u32(3<<16 | 12), nil},
		{rm.CtrlTSGPreempt, nil, nil},
	}
	for i, k := range controls {
		arg := rm.ControlParams{Client: client, Object: object, Cmd: k.number, ParamsSize: uint32(len(k.bytes)), Status: uint32(i)}
		if k.bytes != nil {
			arg.Params = c.put(paramsAt, k.bytes)
		}
		c.call(rm.EscControl, arg)
		expect(sched.CallControl, k.number, 0, object, uint32(i), k.want)
	}

	allocs := []struct {
		class, number uint32
		bytes         []byte
		want          *sched.Params
	}{
		{rm.ClassClient, rm.ClassClient, at(0x78, 4, u32(4711)), &sched.Params{ProcessID: sched.Ptr(uint32(4711))}},
		{0, rm.ClassClient, nil, nil},
		{1, rm.ClassClient, nil, nil},
		{rm.ClassDevice, rm.ClassDevice, at(0x38, 0, u32(3)), &sched.Params{DeviceInstance: sched.Ptr(uint32(3))}},
		{rm.ClassSubdevice, rm.ClassSubdevice, u32(1), &sched.Params{SubDevice: sched.Ptr(uint32(1))}},
		{rm.ClassTSG, rm.ClassTSG, at(0x14, 0xc, u32(1)), &sched.Params{Engine: sched.Ptr(uint32(1))}},
		{rm.ClassChannelHopper, rm.ClassChannelHopper, at(0x170, 0x80, u32(10, 0x3f)), &sched.Params{Engine: sched.Ptr(uint32(10))}},
		{rm.ClassChannelTuring, rm.ClassChannelTuring, at(0x168, 0x80, u32(1, 0x3f)), &sched.Params{Engine: sched.Ptr(uint32(1))}},
		{rm.ClassContextShare, rm.ClassContextShare, at(0xc, 0, u32(1)), nil},
		{rm.ClassMPS, rm.ClassMPS, nil, nil},
	}
	for i, k := range allocs {
		for _, form := range []string{"NVOS21", "NVOS64", "NVOS64 in XFER"} {
			var params uint64
			if k.bytes != nil {
				params = c.put(paramsAt, k.bytes)
			}
			short := rm.AllocParams{Client: client, Parent: parent, Object: object, Class: k.class, Params: params, ParamsSize: uint32(len(k.bytes)), Status: uint32(i)}
			long := rm.Alloc64Params{Client: client, Parent: parent, Object: object, Class: k.class, Params: params, ParamsSize: uint32(len(k.bytes)), Flags: 0xffffffff, Status: uint32(i)}
			switch form {
			case "NVOS21":
				c.call(rm.EscAlloc, short)
			case "NVOS64":
				c.call(rm.EscAlloc, long)
			default:
				c.call(rm.EscXfer, rm.XferParams{Cmd: rm.EscAlloc, Size: 48, Ptr: c.put(128, long)})
			}
			expect(sched.CallAlloc, k.number, parent, object, uint32(i), k.want)
		}
	}

	c.call(rm.EscFree, rm.FreeParams{Client: client, Parent: parent, Object: object, Status: 0x57})
	expect(sched.CallFree, 0, parent, object, 0x57, nil)
	c.call(rm.EscDup, rm.DupParams{Client: client, Parent: parent, Object: object, SrcClient: 0xc1d00002, SrcObject: 0x33, Flags: 1, Status: 0x1b})
	expect(sched.CallDup, 0, parent, object, 0x1b, &sched.Params{SrcClient: sched.Ptr(sched.Handle(0xc1d00002)), SrcObject: sched.Ptr(sched.Handle(0x33))})

	calls := got.take()
	if len(calls) != len(want) {
		t.Fatalf("%d calls came, want %d", len(calls), len(want))
	}
	for i, g := range calls {
		if g.Start == 0 || g.End < g.Start || g.TID == 0 || g.Comm == "" || g.File != calls[0].File || g.File == 0 {
			t.Errorf("call %d: start %d end %d tid %d comm %q file %d", i, g.Start, g.End, g.TID, g.Comm, g.File)
		}
		g.Start, g.End, g.TID, g.Comm, g.File = 0, 0, 0, "", 0
		if !reflect.DeepEqual(g, want[i]) {
			t.Errorf("call %d:\n got %+v %+v\nwant %+v %+v", i, g, g.Params, want[i], want[i].Params)
		}
	}
	if loss, err := p.Losses(); err != nil || loss.Faults+loss.Ring+loss.Queue+loss.Malformed != 0 {
		t.Errorf("losses %+v, %v", loss, err)
	}
}

// TestOldAllocWithoutSize: the short form may leave the parameters' size at 0.
func TestOldAllocWithoutSize(t *testing.T) { eachRung(t, testOldAllocWithoutSize) }

func testOldAllocWithoutSize(t *testing.T, rung Rung) {
	p := open(t, Options{Rung: rung})
	c := newCaller(t)
	got := collect(t, p)
	params := c.put(paramsAt, at(0x38, 0, u32(3)))
	c.call(rm.EscAlloc, rm.AllocParams{Client: 1, Class: rm.ClassDevice, Params: params})
	c.call(rm.EscAlloc, rm.AllocParams{Client: 1, Class: rm.ClassClient, Params: params})
	calls := got.take()
	if len(calls) != 2 {
		t.Fatalf("%d calls, want 2", len(calls))
	}
	if d := calls[0].Params; d == nil || d.DeviceInstance == nil || *d.DeviceInstance != 3 {
		t.Errorf("device: %+v", d)
	}
	if d := calls[1].Params; d != nil {
		t.Errorf("client with a bare handle: %+v, want none", d)
	}
}

// TestShapesAgree: what the programs stream always is what rm says shapes
// scheduling.
func TestShapesAgree(t *testing.T) { eachRung(t, testShapesAgree) }

func testShapesAgree(t *testing.T, rung Rung) {
	p := open(t, Options{Rung: rung})
	c := newCaller(t)
	got := collect(t, p)
	numbers := []uint32{0, 1, rm.CtrlGPUID, rm.CtrlFECSBindV2, rm.CtrlRPCMeter, rm.CtrlDisableChannels, rm.CtrlSetSchedPolicy,
		rm.CtrlSetPreemptionMode, rm.CtrlDeviceStopRunlist, rm.CtrlDeviceStartRunlist, rm.CtrlDeviceIdleChannels, rm.CtrlResetChannel,
		rm.CtrlWorkSubmitToken, rm.CtrlChannelHWState, rm.CtrlSetComputePolicy, rm.CtrlGetComputePolicy}
	for _, s := range rm.ShapingControls {
		numbers = append(numbers, s.Number)
	}
	for n := uint32(0xa06c0100); n < 0xa06c0140; n++ {
		numbers = append(numbers, n)
	}
	for n := uint32(0xa06f0100); n < 0xa06f0140; n++ {
		numbers = append(numbers, n)
	}
	classes := []uint32{0, 1, rm.ClassClient, rm.ClassDevice, rm.ClassSubdevice, rm.ClassTSG, rm.ClassContextShare, rm.ClassMPS,
		rm.ClassEventBuffer, rm.ClassOSEvent, rm.ClassDevicelessMemory, rm.ClassVASpace}
	classes = append(classes, rm.ChannelClasses...)
	for _, n := range numbers {
		c.control(n, nil)
	}
	for _, n := range classes {
		c.call(rm.EscAlloc, rm.Alloc64Params{Class: n})
	}
	streamed := map[[2]uint32]bool{}
	for _, call := range got.take() {
		streamed[[2]uint32{uint32(call.Kind), call.Number}] = true
	}
	for _, n := range numbers {
		if s, w := streamed[[2]uint32{uint32(sched.CallControl), n}], rm.ShapesScheduling(rm.EscControl, n); s != w {
			t.Errorf("control %#x: streamed %t, rm says %t", n, s, w)
		}
	}
	for _, n := range classes {
		seen := n
		if n <= 1 {
			seen = rm.ClassClient
		}
		if s, w := streamed[[2]uint32{uint32(sched.CallAlloc), seen}], rm.ShapesScheduling(rm.EscAlloc, n); s != w {
			t.Errorf("class %#x: streamed %t, rm says %t", n, s, w)
		}
	}
}

func TestCountedAndLookedAt(t *testing.T) { eachRung(t, testCountedAndLookedAt) }

func testCountedAndLookedAt(t *testing.T, rung Rung) {
	p := open(t, Options{Rung: rung})
	c := newCaller(t)
	got := collect(t, p)
	c.control(rm.CtrlGPUID, u32(0))
	c.control(rm.CtrlGPUID, u32(0))
	c.call(rm.EscAlloc, rm.Alloc64Params{Client: 1, Class: rm.ClassOSEvent})
	p.Look(true)
	c.control(rm.CtrlGPUTime, nil)
	p.Look(false)
	c.control(rm.CtrlGPUID, u32(0))
	calls := got.take()
	if len(calls) != 1 || calls[0].Number != rm.CtrlGPUTime || calls[0].Params != nil {
		t.Errorf("streamed %+v, want the one call that was looked at", calls)
	}
	want := map[sched.CallCount]uint64{
		{Kind: sched.CallControl, Number: rm.CtrlGPUID}:   3,
		{Kind: sched.CallAlloc, Number: rm.ClassOSEvent}:  1,
		{Kind: sched.CallControl, Number: rm.CtrlGPUTime}: 0,
	}
	for k, n := range want {
		g := got.counts[k]
		if g.N != n || g.Failed != n || n > 0 && g.NS == 0 {
			t.Errorf("kind %d number %#x: counted %+v, want %d, all failed", k.Kind, k.Number, g, n)
		}
	}
}

// TestManyCalls: none of 100,000 calls is lost or doubled, and their order is
// kept. Ring and queue have room for them all, however late the reader comes.
func TestManyCalls(t *testing.T) { eachRung(t, testManyCalls) }

func testManyCalls(t *testing.T, rung Rung) {
	p := open(t, Options{Rung: rung, RingBytes: 16 << 20, QueueLen: 256})
	c := newCaller(t)
	got := collect(t, p)
	const n = 100_000
	arg := rm.ControlParams{Client: 1, Cmd: rm.CtrlTSGPreempt}
	c.put(argAt, arg)
	word := rm.Ioctl(rm.EscControl, 32)
	for i := range uint32(n) {
		binary.NativeEndian.PutUint32(c.mem[4:], i)
		c.ioctl(word, c.base)
	}
	calls := got.take()
	if len(calls) != n {
		t.Fatalf("%d calls came, want %d; losses %+v", len(calls), n, got.loss)
	}
	for i, call := range calls {
		if uint32(call.Object) != uint32(i) {
			t.Fatalf("call %d has mark %d", i, call.Object)
		}
	}
}

func TestOtherIoctlsAreNotCalls(t *testing.T) { eachRung(t, testOtherIoctlsAreNotCalls) }

func testOtherIoctlsAreNotCalls(t *testing.T, rung Rung) {
	p := open(t, Options{Rung: rung})
	c := newCaller(t)
	got := collect(t, p)
	p.Look(true)
	c.ioctl(rm.Ioctl(rm.EscMapMemory, 56), c.base)              // another escape
	c.ioctl(rm.Ioctl(rm.EscControl, 32)&^0xff00|'G'<<8, c.base) // another driver's word
	c.call(rm.EscXfer, rm.XferParams{Cmd: rm.EscMapMemory})     // another escape inside XFER
	zero, err := os.Open("/proc/self/stat")
	if err != nil {
		t.Fatal(err)
	}
	defer zero.Close()
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, zero.Fd(), uintptr(rm.Ioctl(rm.EscControl, 32)), c.base); errno == 0 {
		t.Fatal("an ioctl on a file of /proc succeeded")
	}
	if calls := got.take(); len(calls) != 0 {
		t.Errorf("seen as calls: %+v", calls)
	}
	if loss, err := p.Losses(); err != nil || loss.Unmatched+loss.Faults != 0 {
		t.Errorf("losses %+v, %v", loss, err)
	}
}
