package sched

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"tsgtop/internal/rm"
)

func keys(t *testing.T, v any) []string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func sorted(words string) []string {
	l := strings.Fields(words)
	slices.Sort(l)
	return l
}

func TestLSFields(t *testing.T) {
	s := measuredState(t, "steady")
	s.Apply(SourceInfo{Time: 2 * t0, Label: "RECORDING", Host: "dgx-\x1b[2J07"})
	s.Apply(GPU{Index: 0, DeviceInstance: 0, ID: 1, Name: "NVIDIA H200", UUID: "GPU-1", Driver: "580.159.04", Open: Ptr(true), GSP: Ptr(true), MIG: Ptr(false)})
	s.Apply(Process{Time: 1, PID: 536*1000 + 0x80, NSPID: 5, Exe: "/bin/\u202etrain", User: "ada", Cgroup: "/x", Unit: "docker:api"})
	s.Apply(Loss{Time: 1, Ring: 1, Queue: 2, Trace: 3, Overtaken: 4})
	out := s.Snapshot(SnapshotOptions{}).LS(Window10s)
	for _, c := range []struct {
		what string
		v    any
		want string
	}{
		{"output", out, "schema_version time host source gpus tsgs unattributed lost"},
		{"gpu", out.GPUs[0], "index name uuid driver open gsp mig switches_per_s switch_tax"},
		{"tsg", out.TSGs[0], `gpu runlist tsg engine client object pid nspid exe user cgroup unit timeslice_us timeslice_from interleave
			residency_us wait_us share turns_per_s why_null channels`},
		{"residency", out.TSGs[0].ResidencyUS, "n min mean stddev p50 p95 p99 max"},
		{"channel", out.TSGs[0].Channels[0], "object class chid context"},
		{"unattributed", out.Unattributed, "contexts channels"},
		{"lost", out.Lost, "ring queue trace"},
	} {
		if got := keys(t, c.v); !slices.Equal(got, sorted(c.want)) {
			t.Errorf("%s has the fields %v, want %v", c.what, got, sorted(c.want))
		}
	}
	b, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"schema_version":1`, `"host":"dgx-\\x1b[2J07"`, `"source":"recording"`, `"exe":"/bin/\\u202etrain"`, `"engine":"gr0"`,
		`"client":"0xc1d00080"`, `"object":"0x5c000015"`, `"class":"0xc86f"`, `"context":128`, `"timeslice_us":2048,"timeslice_from":"seen"`,
		`"interleave":null`, `"lost":{"ring":1,"queue":2,"trace":7}`, `"gpu":0,"runlist":0,"tsg":7`, `"why_null":""`,
	} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%s\nlacks %s", b, want)
		}
	}
	if strings.ContainsAny(string(b), "\x1b\u202e") {
		t.Error("untrusted text was not made safe")
	}
}

// What is not known is null, never 0, and lists are never null.
func TestLSNulls(t *testing.T) {
	empty, _ := json.Marshal(NewState(Options{}).Snapshot(SnapshotOptions{}).LS(Window1s))
	if want := `{"schema_version":1,"time":"","host":"","source":"","gpus":[],"tsgs":[],"unattributed":{"contexts":0,"channels":0},"lost":{"ring":0,"queue":0,"trace":0}}`; string(empty) != want {
		t.Errorf("%s\nwant %s", empty, want)
	}
	s := NewState(Options{})
	s.Apply(h200())
	s.Apply(control(t0, 479, clientA, hTSG, rm.CtrlTSGPreempt, nil))
	s.Apply(traceOf(0, 10*ms, rec{6, 0x3f, 0, 0}, rec{7, 0x3f, ms, 0}))
	b, _ := json.Marshal(s.Snapshot(SnapshotOptions{}).LS(Window1s).TSGs)
	for _, want := range []string{
		`{"gpu":null,"runlist":null,"tsg":null,"engine":null,"client":"0xc1d00001","object":"0x5c000015","pid":479,`,
		`"timeslice_us":null,"timeslice_from":null,"interleave":null,"residency_us":null,"wait_us":null,"share":null,"turns_per_s":null,"why_null":"its GPU is not known yet","channels":[]}`,
		`{"gpu":0,"runlist":0,"tsg":null,"engine":null,"client":null,"object":null,"pid":1063,`,
		`"channels":[{"object":null,"class":null,"chid":null,"context":63}]`,
	} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%s\nlacks %s", b, want)
		}
	}
}

func TestCallLinesAsJSON(t *testing.T) {
	call := control(t0+5*us, 479, clientA, hTSG, rm.CtrlTSGSetTimeslice, &Params{Timeslice: Ptr(uint64(200))})
	call.TID, call.File, call.Where, call.RPC, call.Command = 480, 3, WhereGSP, 2500, "abc"
	broken := call
	broken.Errno, broken.Params = 14, nil
	for _, c := range []struct {
		line CallLine
		want string
	}{
		{CallLine{Seq: 1, Call: &call}, `{"time":"2027-01-15T08:00:00.000002Z","dur_us":3,"pid":479,"tid":480,"exe":"/bin/\\x1btrain","file":3,"kind":"control","name":"NVA06C_CTRL_CMD_SET_TIMESLICE","number":"0xa06c0103","client":"0xc1d00001","object":"0x5c000015","status":"NV_OK","where":"gsp","rpc_us":2.5,"params":{"us":200},"command":"abc","seq":1}`},
		{CallLine{Seq: 2, Call: &broken}, `{"time":"2027-01-15T08:00:00.000002Z","dur_us":3,"pid":479,"tid":480,"exe":"/bin/\\x1btrain","file":3,"kind":"control","name":"NVA06C_CTRL_CMD_SET_TIMESLICE","number":"0xa06c0103","client":"0xc1d00001","object":"0x5c000015","errno":14,"where":"gsp","rpc_us":2.5,"command":"abc","seq":2}`},
		{CallLine{Seq: 3, Lifecycle: &Lifecycle{Time: t0, Kind: TimesliceSet, ID: TSGID{0, Unknown, 7}, Object: Object{clientA, hTSG}, PID: 479, Value: Ptr(uint64(200))}},
			`{"time":"2027-01-15T08:00:00Z","pid":479,"exe":"/bin/\\x1btrain","kind":"timeslice-set","client":"0xc1d00001","object":"0x5c000015","status":"NV_OK","tsg":{"gpu":0,"runlist":null,"tsg":7},"value":200,"seq":3}`},
		{CallLine{Seq: 4, Exit: &ProcessExit{Time: t0, PID: 479}}, `{"time":"2027-01-15T08:00:00Z","pid":479,"exe":"/bin/\\x1btrain","kind":"exit","seq":4}`},
	} {
		b, err := json.Marshal(LineJSON(&c.line, func(int) string { return "/bin/\x1btrain" }))
		if err != nil || string(b) != c.want {
			t.Errorf("%s\nwant %s (%v)", b, c.want, err)
		}
	}
	x := LineJSON(&CallLine{Seq: 5, Xid: &Xid{Time: t0, GPU: 0, Code: 79, Name: "a\nb", Text: "c\x1bd"}}, nil).(CallJSON)
	if x.Kind != "xid" || *x.Xid != 79 || x.Process != `a\nb` || x.Text != `c\x1bd` || *x.GPU != 0 {
		t.Errorf("%+v", x)
	}
	a := LineJSON(&CallLine{Call: Ptr(alloc(t0, 1, clientA, hDevice, hTSG, rm.ClassTSG, nil))}, nil).(CallJSON)
	if a.Class == nil || *a.Class != "0xa06c" || a.Kind != "alloc" || *a.Parent != hDevice {
		t.Errorf("%+v", a)
	}
}
