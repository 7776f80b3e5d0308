//go:build vmtest

package inside

import (
	"os"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"tsgtop/internal/sched"
)

const tracefs = "/sys/kernel/tracing/"

// traced enables one of tsgtop's trace events and gives what it wrote since.
func traced(t *testing.T, event string) func() string {
	t.Helper()
	enable := tracefs + "events/tsgtop/" + event + "/enable"
	for file, text := range map[string]string{tracefs + "trace": "", enable: "1"} {
		if err := os.WriteFile(file, []byte(text), 0); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { os.WriteFile(enable, []byte("0"), 0) })
	return func() string {
		b, err := os.ReadFile(tracefs + "trace")
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
}

// TestKmodTracepoint: each call leaves its mark, for tracefs and for a raw
// tracepoint program, which can attach where fentry is refused.
func TestKmodTracepoint(t *testing.T) {
	loadModel(t, "nvidia", "")
	loadTsgtop(t, "")
	k := openKfunc(t)
	c := startCUDA(t, 0)
	seen, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 6})
	if err != nil {
		t.Fatal(err)
	}
	defer seen.Close()
	// Stores the tracepoint's six arguments: cookie, client, object, cmd, status, ns.
	var insns asm.Instructions
	insns = append(insns, asm.Mov.Reg(asm.R6, asm.R1))
	for i := range 6 {
		insns = append(insns,
			asm.LoadMem(asm.R7, asm.R6, int16(8*i), asm.DWord),
			asm.StoreMem(asm.RFP, -8, asm.R7, asm.DWord),
			asm.StoreImm(asm.RFP, -12, int64(i), asm.Word),
			asm.LoadMapPtr(asm.R1, seen.FD()),
			asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -12),
			asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, -8),
			asm.Mov.Imm(asm.R4, 0),
			asm.FnMapUpdateElem.Call())
	}
	insns = append(insns, asm.Mov.Imm(asm.R0, 0), asm.Return())
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.RawTracepoint, Instructions: insns, License: "GPL"})
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	l, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: "tsgtop_call_answered", Program: prog})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	log := traced(t, "tsgtop_call_sent")
	knobFor(t, "timeslice_mode", 3)
	knobFor(t, "status", "0x5a5a")
	r := do(t, k, sched.OpTimeslice, c.target(t), 777)
	want := []uint64{r.Cookie, uint64(c.client), uint64(c.tsg), 0xa06c0103, 0x5a5a, uint64(r.DurNS)}
	for i, w := range want {
		var got uint64
		if err := seen.Lookup(uint32(i), &got); err != nil {
			t.Fatal(err)
		}
		if i > 0 && i < 5 {
			got, w = got&0xffffffff, w&0xffffffff
		}
		if got != w {
			t.Errorf("argument %d of the tracepoint: %#x, want %#x", i, got, w)
		}
	}
	if !strings.Contains(log(), "cmd=a06c0103") {
		t.Errorf("nothing in the trace: %s", log())
	}
}

// TestKmodRPCWitness: the experiment sees which calls of any process went to the
// GSP, also where the driver is loaded after it, and tells a stub.
func TestKmodRPCWitness(t *testing.T) {
	loadTsgtop(t, "rpc_probes=1")
	loadModel(t, "nvidia", "")
	status, err := os.ReadFile("/sys/module/tsgtop/parameters/status")
	if err != nil || strings.Count(string(status), "attached") != 3 {
		t.Fatalf("witnesses: %s, %v", status, err)
	}
	c := startCUDA(t, 0)
	log := traced(t, "tsgtop_rpc")
	call := func(cmd uint32, params []byte) int {
		t.Helper()
		before := strings.Count(log(), "function=76")
		if st, err := c.ctl.control(c.client, c.tsg, cmd, params); st != 0 || err != nil {
			t.Fatalf("control %x: %x, %v", cmd, st, err)
		}
		return strings.Count(log(), "function=76") - before
	}
	if n := call(0xa06c0103, le.AppendUint64(nil, 2048)); n != 1 {
		t.Errorf("a timeslice made %d RPCs", n)
	}
	if n := call(0xa06c0104, make([]byte, 8)); n != 0 {
		t.Errorf("reading a timeslice made %d RPCs", n)
	}
	knobFor(t, "timeslice_mode", 2)
	if n := call(0xa06c0103, le.AppendUint64(nil, 2048)); n != 0 {
		t.Errorf("a stub made %d RPCs", n)
	}
	if !strings.Contains(log(), "number=a06c0103 status=0x0") {
		t.Errorf("the RPC is not told whole: %s", log())
	}
	c.close()
	if !strings.Contains(log(), "function=10 ") {
		t.Error("frees were not seen")
	}
}

// TestEBPFCannotProbeRPC: why the experiment needs a module at all: eBPF's kprobes
// want an ftrace location, which the driver's core has none of.
func TestEBPFCannotProbeRPC(t *testing.T) {
	loadModel(t, "nvidia", "")
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.Kprobe, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}})
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	if l, err := link.Kprobe("rpcRmApiControl_GSP", prog, nil); err == nil {
		l.Close()
		t.Error("a kprobe attached to a function without an ftrace location")
	}
	l, err := link.Kprobe("nvidia_unlocked_ioctl", prog, nil)
	if err != nil {
		t.Error("nvidia_unlocked_ioctl:", err)
	} else {
		l.Close()
	}
}
