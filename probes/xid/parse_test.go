package xid

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"tsgtop/internal/sched"
)

func TestParse(t *testing.T) {
	ch := sched.Ptr[int]
	for _, c := range []struct {
		line string
		want sched.Xid
		uuid string
	}{
		{"NVRM: Xid (PCI:0000:01:00): 79, pid=1234, name=foo, Ch 00000008, errorString CTX SWITCH TIMEOUT",
			sched.Xid{PCI: "0000:01:00.0", Code: 79, PID: 1234, Name: "foo", Channel: ch(8), Text: "Ch 00000008, errorString CTX SWITCH TIMEOUT"}, ""},
		{"NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
			sched.Xid{PCI: "0000:01:00.0", Code: 79, Text: "GPU has fallen off the bus."}, ""},
		{"NVRM: Xid (PCI:0000:3b:00): 13, pid=4711, name=python3, Graphics SM Warp Exception on (GPC 0, TPC 1, SM 0): Out Of Range Address",
			sched.Xid{PCI: "0000:3b:00.0", Code: 13, PID: 4711, Name: "python3", Text: "Graphics SM Warp Exception on (GPC 0, TPC 1, SM 0): Out Of Range Address"}, ""},
		{"NVRM: Xid (PCI:0000:c1:00): 31, pid=9, name=a, channel 0x0000001f, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted",
			sched.Xid{PCI: "0000:c1:00.0", Code: 31, PID: 9, Name: "a", Channel: ch(0x1f), Text: "channel 0x0000001f, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted"}, ""},
		{"NVRM: Xid (PCI:0000:01:00): 45, pid=1234, Ch 00000010",
			sched.Xid{PCI: "0000:01:00.0", Code: 45, PID: 1234, Channel: ch(16), Text: "Ch 00000010"}, ""},
		{"NVRM: Xid (PCI:0000:01:00): 31, Ch 00000008, engmask 00000101, intr 10000000",
			sched.Xid{PCI: "0000:01:00.0", Code: 31, Channel: ch(8), Text: "Ch 00000008, engmask 00000101, intr 10000000"}, ""},
		{"NVRM: Xid (0000:01:00): 31, Ch 0000000a, engmask 00000101",
			sched.Xid{PCI: "0000:01:00.0", Code: 31, Channel: ch(10), Text: "Ch 0000000a, engmask 00000101"}, ""},
		{"NVRM: Xid (PCI:0000:01:00 GPU-I:05 GPU-CI:00): 43, pid=7, name=train.py, Ch 00000014",
			sched.Xid{PCI: "0000:01:00.0", Code: 43, PID: 7, Name: "train.py", Channel: ch(0x14), Text: "Ch 00000014"}, ""},
		{"NVRM: Xid (PCI:0001:00:00): 119, Timeout after 6s of waiting for RPC response from GPU0 GSP! Expected function 76 (GSP_RM_CONTROL) (0xa06c0105 0x8).",
			sched.Xid{PCI: "0001:00:00.0", Code: 119, Text: "Timeout after 6s of waiting for RPC response from GPU0 GSP! Expected function 76 (GSP_RM_CONTROL) (0xa06c0105 0x8)."}, ""},
		{"NVRM: Xid (PCI:0000:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
			sched.Xid{PCI: "0000:01:00.0", Code: 154, Text: "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"}, ""},
		{"NVRM: Xid (GPU-8d5d0a0c-1111-2222-3333-444455556666): 61, pid=5, name=x",
			sched.Xid{Code: 61, PID: 5, Name: "x"}, "GPU-8d5d0a0c-1111-2222-3333-444455556666"},
		{"NVRM: Xid (PCI:0000:01:00): 62", sched.Xid{PCI: "0000:01:00.0", Code: 62}, ""},
		{"NVRM: Xid (PCI:0000:01:00): 45, pid=1, name=p, preempted channel Channel ID 0000000b.",
			sched.Xid{PCI: "0000:01:00.0", Code: 45, PID: 1, Name: "p", Channel: ch(0xb), Text: "preempted channel Channel ID 0000000b."}, ""},
		{"NVRM: Xid (PCI:0000:01:00): 8, pid=1, name=p, Channel bad", // no number
			sched.Xid{PCI: "0000:01:00.0", Code: 8, PID: 1, Name: "p", Text: "Channel bad"}, ""},
		{"NVRM: Xid (PCI:zz:01:00): 8", sched.Xid{Code: 8}, ""},
	} {
		got, uuid, err := Parse(c.line)
		c.want.GPU = sched.Unknown
		if err != nil || uuid != c.uuid || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s\n got %+v %q %v\nwant %+v %q", c.line, got, uuid, err, c.want, c.uuid)
		}
	}
	for _, line := range []string{"", "usb 1-1: new device", "NVRM: GPU at PCI:0000:01:00: GPU-8d5d", "NVRM: Xid (PCI:0000:01:00", "NVRM: Xid (PCI:0000:01:00): x, y",
		"NVRM: Xid (PCI:0000:01:00): 99999999999", "NVRM: Xid (PCI:0000:01:00): -1, y"} {
		if x, _, err := Parse(line); !errors.Is(err, ErrNoXid) {
			t.Errorf("%q: %+v, %v; want no Xid", line, x, err)
		}
	}
}

func TestNormalPCI(t *testing.T) {
	for in, want := range map[string]string{
		"0000:01:00": "0000:01:00.0", "0000:01:00.0": "0000:01:00.0", "00000000:C1:00.0": "0000:c1:00.0", "01:00": "0000:01:00.0",
		"00010000:01:1f.7": "10000:01:1f.7", "0000:01:00.1": "0000:01:00.1",
		"": "", "0000": "", "x:y:z": "", "0000:100:00": "", "0000:01:20": "", "0000:01:00.8": "", "::": "",
	} {
		if got := NormalPCI(in); got != want {
			t.Errorf("NormalPCI(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestParseRecord(t *testing.T) {
	r, err := parseRecord([]byte("4,1234,567890,-;NVRM: Xid (x): 1; and more\n SUBSYSTEM=pci\n"))
	if err != nil || r.facility != 0 || r.text != "NVRM: Xid (x): 1; and more" {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := parseRecord([]byte("12,1,1,-;forged")); err != nil || r.facility != 1 {
		t.Errorf("a process's record: %+v, %v", r, err)
	}
	for _, b := range []string{"", "4,1,2,-", "x,1,2,-;text", ";text"} {
		if _, err := parseRecord([]byte(b)); err == nil {
			t.Errorf("%q: no error", b)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("4,1,1,-;NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', name=<unknown>, Ch 00000008")
	f.Add("4,1,1,-;NVRM: Xid (GPU-1 GPU-I:05): 31, pid=1, name=, channel 0x")
	f.Add("NVRM: Xid (PCI:01:00.7): 4294967295,Channel ID ")
	f.Fuzz(func(t *testing.T, s string) {
		if r, err := parseRecord([]byte(s)); err == nil {
			s = r.text
		}
		x, _, err := Parse(s)
		if err != nil {
			return
		}
		if !strings.Contains(s, x.Text) || !strings.Contains(s, x.Name) || x.PID < 0 || x.Channel != nil && *x.Channel < 0 {
			t.Errorf("%q: %+v", s, x)
		}
		if x.PCI != "" && NormalPCI(x.PCI) != x.PCI {
			t.Errorf("%q: PCI %q is not normal", s, x.PCI)
		}
	})
}
