//go:build linux

package workload

import (
	"context"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"tsgtop/internal/sched"
)

func TestParseLine(t *testing.T) {
	for line, want := range map[string]struct {
		name  string
		value float64
		ok    bool
	}{
		"1234": {"", 1234, true}, "  12.5\r": {"", 12.5, true}, "latency_us 7": {"latency_us", 7, true}, "p99: 3e2": {"p99", 300, true}, "a= 1": {"a", 1, true},
		"": {}, "warming up": {}, "NaN": {}, "inf": {}, "x 1 2": {}, ": 5": {}, strings.Repeat("n", 65) + " 1": {}, "12us": {},
	} {
		name, v, ok := ParseLine(line)
		if name != want.name || v != want.value || ok != want.ok {
			t.Errorf("%q: %q %g %v", line, name, v, ok)
		}
	}
}

func FuzzParseLine(f *testing.F) {
	f.Add("latency_us 12.5")
	f.Add("1e309")
	f.Fuzz(func(t *testing.T, line string) {
		if name, v, ok := ParseLine(line); ok && (math.IsNaN(v) || math.IsInf(v, 0) || len(name) > maxName) {
			t.Errorf("%q: %q %g", line, name, v)
		}
	})
}

// A probe's numbers are read as they come, and it ends with its children.
func TestProbe(t *testing.T) {
	p, err := StartProbe("echo warm up now; echo 1; echo lat 2.5; sleep 60 & sleep 60", sched.Now, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; len(p.Readings()) < 2 && i < 500; i++ {
		time.Sleep(10 * time.Millisecond)
	}
	r := p.Readings()
	if len(r) != 2 || r[0].Value != 1 || r[1].Name != "lat" || r[1].At == 0 {
		t.Errorf("%+v", r)
	}
	if ended, _ := p.Ended(); ended {
		t.Error("it has ended by itself")
	}
	p.Stop()
	if ended, _ := p.Ended(); !ended {
		t.Error("it has not ended: a child holds its output")
	}
}

func TestCommand(t *testing.T) {
	c, err := StartCommand([]string{"sh", "-c", "exit 3"}, strings.NewReader(""), os.Stdout, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	if e := c.End(); e.Code != 3 {
		t.Errorf("%+v", e)
	}
	c, err = StartCommand([]string{"sleep", "60"}, strings.NewReader(""), os.Stdout, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	c.Stop(context.Background())
	if e := c.End(); e.Code != -1 || !strings.Contains(e.Why, "terminated") {
		t.Errorf("%+v", e)
	}
	if _, err := StartCommand([]string{"/no/such/program"}, nil, nil, nil); err == nil || !strings.Contains(err.Error(), "/no/such/program") {
		t.Errorf("%v", err)
	}
}
