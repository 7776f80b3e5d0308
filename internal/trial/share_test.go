package trial

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// made is a report of the built-in plan with plausible numbers.
func made(t *testing.T, simulated bool) *Report {
	t.Helper()
	p := Builtin()
	var runs []Run
	for round := range p.Repeats {
		for _, a := range p.Arms {
			v := Values{"residency_p50_us": 2197 + float64(round), "residency_mean_us": 2190, "turns_per_s": 240, "share": 0.48, "switch_tax": 0.036, "others_share": 0.48, "wait_p95_us": 2360}
			calls := Calls{Sent: 1, Accepted: 1, Where: map[string]int{"gsp": 1}, ByStatus: map[string]int{"NV_OK": 1}}
			switch {
			case a.Timeslice > 0:
				v["residency_p50_us"] = 1.024*float64(a.Timeslice) + 100 + float64(round)
			case a.Preempt > 0:
				v["residency_mean_us"] = 900
			case a.Idle():
				calls = Calls{}
			}
			runs = append(runs, Run{Round: round, Arm: a.Name, Target: "0:0:7", Seconds: 1.5, Forced: 0.95, Values: v, Calls: calls, Restored: true})
		}
	}
	yes := true
	return Analyse(Machine{Chip: "NVIDIA H200", Driver: "580.159.04", Open: &yes, GSP: &yes, Tool: "0.1.0", Simulated: simulated}, p, []uint64{2048}, runs, true, 1_790_000_000_000_000_000, time.Minute)
}

func TestShareRoundTrip(t *testing.T) {
	r := made(t, false)
	s, err := r.Share()
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, personal := range []string{"pid", "0:0:7", "host", "user", "exe", "time"} {
		if strings.Contains(strings.ReplaceAll(string(b), "timeslice", ""), personal) {
			t.Errorf("%q is in the share file: %s", personal, b)
		}
	}
	back, err := ReadShare(bytes.NewReader(b))
	if err != nil || back.Machine.Chip != "NVIDIA H200" || len(back.Answers) != 3 || !back.Competitors {
		t.Fatalf("%v %+v", err, back)
	}
	var page bytes.Buffer
	if err := Chips(&page, []*Share{back}); err != nil {
		t.Fatal(err)
	}
	if want := "| NVIDIA H200 | 580.159.04 | open | GSP | obeyed | ignored | obeyed | 5 |"; !strings.Contains(page.String(), want) {
		t.Errorf("no %q in\n%s", want, page.String())
	}
	p := r.Plan
	p.Name = "other"
	r.Plan = p
	if _, err := r.Share(); err == nil {
		t.Error("another plan's result was shared")
	}
}

// Simulated chips do not get into the page.
func TestChipsRefusesSimulated(t *testing.T) {
	s, err := made(t, true).Share()
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := Chips(&page, []*Share{s}); err == nil || page.Len() > 0 {
		t.Errorf("%v\n%s", err, page.String())
	}
	if err := chips(&page, []*Share{s}); err != nil || !strings.Contains(page.String(), "(simulated)") {
		t.Errorf("marked: %v\n%s", err, page.String())
	}
}

func TestReadShareRefuses(t *testing.T) {
	s, err := made(t, false).Share()
	if err != nil {
		t.Fatal(err)
	}
	good, _ := json.Marshal(s)
	for name, b := range map[string]string{
		"empty":         "",
		"another kind":  strings.Replace(string(good), "tsgtop-chip", "recipe", 1),
		"a new key":     strings.Replace(string(good), `"kind"`, `"host":"x","kind"`, 1),
		"a knob":        strings.Replace(string(good), `"knob":"timeslice"`, `"knob":"volume"`, 1),
		"a verdict":     strings.Replace(string(good), `"verdict":"obeyed"`, `"verdict":"<b>"`, 1),
		"an arm's name": strings.Replace(string(good), `"arm":"timeslice-256us"`, `"arm":"a|b"`, 1),
		"no chip":       strings.Replace(string(good), "NVIDIA H200", "", 1),
		"a long name":   strings.Replace(string(good), "NVIDIA H200", strings.Repeat("x", 200), 1),
		"long":          strings.Repeat(" ", maxShare+1),
	} {
		if _, err := ReadShare(strings.NewReader(b)); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	evil := strings.Replace(string(good), "NVIDIA H200", `NVIDIA\u001b[2J|H200<script>`, 1)
	e, err := ReadShare(strings.NewReader(evil))
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := Chips(&page, []*Share{e}); err != nil || strings.ContainsAny(page.String(), "\x1b") || strings.Contains(page.String(), "<script") || strings.Contains(page.String(), "J|H") {
		t.Errorf("%v\n%s", err, page.String())
	}
}

func FuzzReadShare(f *testing.F) {
	f.Add([]byte(`{"kind":"tsgtop-chip","schema_version":1,"machine":{"chip":"a","driver":"b"},"answers":[]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := ReadShare(bytes.NewReader(b)); err == nil {
			s.Machine.Simulated = false
			var page bytes.Buffer
			if err := Chips(&page, []*Share{s}); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestReports(t *testing.T) {
	r := made(t, false)
	var md, svg bytes.Buffer
	r.Markdown(&md, "plot.svg")
	r.SVG(&svg)
	for _, want := range []string{"| timeslice | **obeyed** | gsp |", "| interleave | **ignored** |", "as asked", "99% interval"} {
		if !strings.Contains(md.String(), want) {
			t.Errorf("no %q in\n%s", want, md.String())
		}
	}
	if strings.Count(svg.String(), "<svg") != 1 || !strings.Contains(svg.String(), "timeslice-8192us") || strings.Contains(svg.String(), "NaN") {
		t.Errorf("%s", svg.String())
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}
