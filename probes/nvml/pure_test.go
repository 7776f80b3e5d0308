package nvml

import (
	"encoding/json"
	"strings"
	"testing"

	"tsgtop/internal/sched"
)

func TestNormalPCI(t *testing.T) {
	for in, want := range map[string]string{
		"00000000:1B:00.0": "0000:1b:00.0", "0000:1b:00.0": "0000:1b:00.0", "1b:00.0": "0000:1b:00.0", "0000:1b:00": "0000:1b:00.0",
		"00010000:01:00.1": "10000:01:00.1", "0009:01:00.0": "0009:01:00.0", "": "", "GPU-1": "", "0000:1b:00.9": "", "123456789:01:00.0": "",
	} {
		if got := normalPCI(in); got != want {
			t.Errorf("normalPCI(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestPlace(t *testing.T) {
	known := []sched.GPU{
		{Index: 0, PCI: "0000:1b:00.0", UUID: "GPU-a", Name: "old"},
		{Index: 1, PCI: "0000:43:00.0"},
		{Index: 2, UUID: "GPU-c"},
	}
	for _, c := range []struct {
		name  string
		known []sched.GPU
		d     device
		want  int
		ok    bool
	}{
		{"by PCI", known, device{PCI: "0000:43:00.0", UUID: "GPU-b"}, 1, true},
		{"by UUID", known, device{UUID: "GPU-a"}, 0, true},
		{"by UUID where the address is missing", known, device{PCI: "0000:99:00.0", UUID: "GPU-c"}, 2, true},
		{"same UUID at another address", known, device{PCI: "0000:99:00.0", UUID: "GPU-a"}, 0, false},
		{"same address, another UUID", known, device{PCI: "0000:1b:00.0", UUID: "GPU-z"}, 0, false},
		{"neither", known, device{Name: "H200"}, 0, false},
		{"never by order", known, device{PCI: "0000:01:00.0"}, 0, false},
		{"nothing known", nil, device{PCI: "0000:01:00.0"}, 7, true},
	} {
		g, ok := place(c.known, 7, c.d)
		if ok != c.ok || ok && g.Index != c.want {
			t.Errorf("%s: %+v, %v", c.name, g, ok)
		}
	}
	if g, _ := place(known, 0, device{PCI: "0000:1b:00.0"}); g.Name != "old" || g.UUID != "GPU-a" || g.MIG != nil {
		t.Errorf("what NVML did not say is gone: %+v", g)
	}
	if g, _ := place(nil, 4, device{}); g.Minor != sched.Unknown || g.DeviceInstance != sched.Unknown {
		t.Errorf("%+v", g)
	}
}

func TestSampleBounds(t *testing.T) {
	l, err := parseLine([]byte(`{"k":"sample","index":1,"sample":{"sm":101,"mem_used":18446744073709551615,"mem_total":10,"power_mw":99999999999,"temp_c":-300,
		"process_mem":[{"pid":0,"bytes":1},{"pid":-4,"bytes":1},{"pid":5,"bytes":6},{"pid":99999999,"bytes":1},{"pid":7,"bytes":18446744073709551615}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	s := l.Sample
	if s.SMPercent != nil || s.MemUsed != nil || *s.MemTotal != 10 || s.PowerMilliW != nil || s.TemperatureC != nil || len(s.ProcessMem) != 1 || s.ProcessMem[0].PID != 5 {
		t.Errorf("%+v", s)
	}
}

func TestBadLines(t *testing.T) {
	for _, in := range []string{"", "null", "{}", `{"k":"banana"}`, `{"k":"device"}`, `{"k":"sample","index":0}`, `{"k":"failed"}`, `{"k":"starting","index":-1}`,
		`{"k":"sample","index":256,"sample":{}}`, `{"k":"sample","sample":{"sm":"x"}}`} {
		if l, err := parseLine([]byte(in)); err == nil {
			t.Errorf("%s was taken as %+v", in, l)
		}
	}
}

func TestLongestSampleFits(t *testing.T) {
	s := &sample{}
	for i := range maxProcesses {
		s.ProcessMem = append(s.ProcessMem, sched.ProcessMemory{PID: 1<<22 - i, Bytes: maxMemory - uint64(i)})
	}
	b, err := json.Marshal(line{Kind: lineSample, Sample: s})
	if err != nil || len(b) >= maxLine {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

func TestVersions(t *testing.T) {
	for in, want := range map[string]string{
		"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (dvs-builder@x)  Tue\nGCC version:  gcc version 12.2.0\n": "580.159.04",
		"NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6 22:20:39 UTC 2023\n":                                                    "535.54.03",
		"GCC version:  gcc version 12.2.0 (Debian)\n": "", "": "",
	} {
		if got := parseKernelVersion(in); got != want {
			t.Errorf("%q gave %q", in, got)
		}
	}
	maps := "7f00-7f01 r-xp 00000000 00:1f 12 /usr/lib/libc.so.6\n7f02-7f03 r-xp 00000000 00:1f 13                     /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.580.159.04\n"
	if got := libraryVersion(loadedLibrary(maps)); got != "580.159.04" {
		t.Errorf("library version %q", got)
	}
	if got := libraryVersion("/usr/lib/libnvidia-ml.so.1"); got != "" {
		t.Errorf("library version %q of a file that names none", got)
	}
	if got := loadedLibrary("7f00 [heap]\n"); got != "" {
		t.Errorf("library %q", got)
	}
}

func TestSentences(t *testing.T) {
	for _, f := range []failure{{Reason: failNotBuiltIn}, {Reason: failNoLibrary, Detail: "d"}, {Reason: failMismatch}, {Reason: failNoDriver}, {Reason: failPermission}, {Reason: failNoGPU}, {Reason: "new"}} {
		if why, _ := f.sentence(); why == "" || strings.Contains(why, "%!") {
			t.Errorf("%+v: %q", f, why)
		}
	}
	if why, _ := (failure{Reason: failMismatch}).sentence(); !strings.Contains(why, "cannot be told") {
		t.Errorf("versions were made up: %q", why)
	}
}

func FuzzParseLine(f *testing.F) {
	for _, s := range []string{deviceLine, sampleLine, `{"k":"failed","failed":{"reason":"other","detail":"\u001b[2J"}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := parseLine(b)
		if err != nil {
			return
		}
		if l.Failed != nil && l.Kind == lineFailed {
			if why, _ := l.Failed.sentence(); strings.ContainsAny(why, "\x1b\n\x00") {
				t.Fatalf("%q", why)
			}
		}
		if l.Kind == lineDevice {
			if g, ok := place(nil, l.Index, *l.Device); ok && strings.ContainsAny(g.Name+g.UUID+g.Driver+g.PCI, "\x1b\n\x00") {
				t.Fatalf("%+v", g)
			}
		}
	})
}
