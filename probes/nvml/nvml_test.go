package nvml

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"tsgtop/internal/sched"
)

// TestMain lets the test binary stand in for the child.
func TestMain(m *testing.M) {
	if how := os.Getenv("NVML_TEST_CHILD"); how != "" {
		os.Exit(fakeChild(how))
	}
	os.Exit(m.Run())
}

const (
	deviceLine = `{"k":"device","index":0,"device":{"pci":"00000000:1B:00.0","uuid":"GPU-1","name":"NVIDIA H200","driver":"580.159.04","mig":false,"persistence":true,"memory_bytes":150754820096}}`
	sampleLine = `{"k":"sample","index":0,"sample":{"sm":92,"mem_used":1000,"mem_total":2000,"power_mw":612000,"temp_c":61,"process_mem":[{"pid":479,"bytes":500}]}}`
)

func fakeChild(how string) int {
	ignore := make(chan os.Signal, 1)
	signal.Notify(ignore, syscall.SIGTERM, syscall.SIGINT) // only a kill ends it
	fmt.Println(`{"k":"starting"}`)
	if how == "hang-early" {
		select {}
	}
	if how == "failed" {
		fmt.Println(`{"k":"failed","failed":{"reason":"mismatch","library":"/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.570.86.15","kernel":"580.159.04"}}`)
		return 3
	}
	fmt.Println(deviceLine)
	fmt.Println(sampleLine)
	switch how {
	case "good":
		for {
			time.Sleep(20 * time.Millisecond)
			fmt.Println(sampleLine)
		}
	case "slow": // a line in pieces, and pauses shorter than the limit
		for {
			fmt.Print(sampleLine[:20])
			time.Sleep(50 * time.Millisecond)
			fmt.Println(sampleLine[20:])
			time.Sleep(50 * time.Millisecond)
		}
	case "hang":
		select {}
	case "deaf": // says no more and does not end
		os.Stdout.Close()
		select {}
	case "crash":
		fmt.Fprintln(os.Stderr, "symbol lookup error: undefined symbol: nvmlNew\x1b[2J")
		return 127
	case "segv":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSEGV)
		select {}
	case "garbage":
		fmt.Println("\x7fELF not JSON \x1b[2J")
		select {}
	case "long":
		fmt.Println(strings.Repeat("x", maxLine+10))
		select {}
	case "quiet-end":
		return 0
	}
	return 1
}

// fake is a probe of a fake child, and its events.
func fake(t *testing.T, how string, o Options) (p *Probe, events chan sched.Event) {
	t.Helper()
	p = New(o)
	p.command, p.env, p.builtIn = []string{"/proc/self/exe"}, []string{"NVML_TEST_CHILD=" + how}, true
	p.limits = limits{start: 20 * time.Second, hang: 20 * time.Second, die: 10 * time.Second, first: 5 * time.Millisecond,
		most: 20 * time.Millisecond, steady: time.Hour, failed: 20 * time.Millisecond}
	events = make(chan sched.Event, 10_000)
	return p, events
}

func start(t *testing.T, p *Probe, events chan sched.Event) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := p.Run(ctx, func(es []sched.Event) {
			for _, e := range es {
				select {
				case events <- e:
				default: // nobody reads any more
				}
			}
		}); err != nil {
			t.Errorf("Run: %v", err)
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
}

// await gives the first event that fits.
func await[T sched.Event](t *testing.T, events chan sched.Event, fits func(T) bool) T {
	t.Helper()
	var seen []string
	for {
		select {
		case e := <-events:
			if v, ok := e.(T); ok && fits(v) {
				return v
			}
			if len(seen) < 20 {
				seen = append(seen, fmt.Sprintf("%+v", e))
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("it never came; these did:\n%s", strings.Join(seen, "\n"))
		}
	}
}

func anything[T any](T) bool { return true }

func TestGoodChild(t *testing.T) {
	known := []sched.GPU{{Index: 0, PCI: "0000:0a:00.0"}, {Index: 3, PCI: "0000:1b:00.0", Minor: 5, Runlists: []sched.Runlist{{ID: 0}}}}
	for _, how := range []string{"good", "slow"} {
		p, events := fake(t, how, Options{GPUs: known})
		start(t, p, events)
		g := await(t, events, anything[sched.GPU])
		g.Time = 0
		want := sched.GPU{Index: 3, PCI: "0000:1b:00.0", Minor: 5, Runlists: []sched.Runlist{{ID: 0}}, UUID: "GPU-1", Name: "NVIDIA H200", Driver: "580.159.04",
			MIG: sched.Ptr(false), Persistence: sched.Ptr(true), MemoryBytes: 150754820096}
		if !reflect.DeepEqual(g, want) {
			t.Errorf("%s: %+v", how, g)
		}
		s := await(t, events, anything[sched.ProbeStatus])
		if s.State != sched.ProbeOK || s.Probe != "nvml" || s.GPU != sched.Unknown {
			t.Errorf("%s: %+v", how, s)
		}
		for range 3 {
			m := await(t, events, anything[sched.GPUSample])
			if m.GPU != 3 || m.Time == 0 || *m.SMPercent != 92 || *m.PowerMilliW != 612000 || *m.TemperatureC != 61 || *m.MemUsed != 1000 || *m.MemTotal != 2000 ||
				!reflect.DeepEqual(m.ProcessMem, []sched.ProcessMemory{{PID: 479, Bytes: 500}}) {
				t.Errorf("%s: %+v", how, m)
			}
		}
	}
}

// TestBadChild: whatever becomes of a child is a sentence, and another is started.
func TestBadChild(t *testing.T) {
	for how, says := range map[string]string{
		"hang":       "said nothing for",
		"hang-early": "said nothing for",
		"deaf":       "ended its output and did not end",
		"crash":      `exit status 127: symbol lookup error: undefined symbol: nvmlNew\x1b[2J`,
		"segv":       "SIGSEGV: segmentation violation",
		"garbage":    "sent what cannot be read",
		"long":       "sent a line of more than",
		"quiet-end":  "ended without a word",
	} {
		t.Run(how, func(t *testing.T) {
			p, events := fake(t, how, Options{})
			switch how {
			case "hang":
				p.limits.hang = 100 * time.Millisecond
			case "hang-early":
				p.limits.start = 300 * time.Millisecond
			case "deaf":
				p.limits.die = 200 * time.Millisecond
			}
			start(t, p, events)
			s := await(t, events, func(s sched.ProbeStatus) bool { return s.State != sched.ProbeOK })
			if s.State != sched.ProbeLimited || !strings.Contains(s.Why, says) || strings.ContainsAny(s.Why, "\x1b\n") {
				t.Errorf("%+v", s)
			}
			if how != "hang-early" {
				await(t, events, anything[sched.GPU]) // of the next child
			}
		})
	}
}

func TestNotUsable(t *testing.T) {
	p, events := fake(t, "failed", Options{})
	start(t, p, events)
	s := await(t, events, anything[sched.ProbeStatus])
	if s.State != sched.ProbeMissing || !strings.Contains(s.Why, "driver 580.159.04 loaded") || !strings.Contains(s.Why, "library is version 570.86.15") || s.Help == "" {
		t.Errorf("%+v", s)
	}
	time.Sleep(10 * p.limits.failed) // several more tries, which say nothing new
	if n := len(events); n != 0 {
		t.Errorf("%d more events: %+v", n, <-events)
	}
}

func TestNoSuchProgram(t *testing.T) {
	p, events := fake(t, "good", Options{})
	p.command = []string{"/nonexistent/tsgtop"}
	start(t, p, events)
	if s := await(t, events, anything[sched.ProbeStatus]); !strings.Contains(s.Why, "could not be started") {
		t.Errorf("%+v", s)
	}
}

func TestRelease(t *testing.T) {
	p, events := fake(t, "good", Options{})
	start(t, p, events)
	await(t, events, anything[sched.GPUSample])
	p.Release()
	p.Release()
	if n := children(t); n != 0 {
		t.Errorf("%d children hold the devices after the release", n)
	}
	await(t, events, func(s sched.ProbeStatus) bool { return s.State == sched.ProbeReleased })
	for len(events) > 0 {
		<-events
	}
	p.Resume()
	await(t, events, anything[sched.GPU])
	await(t, events, func(s sched.ProbeStatus) bool { return s.State == sched.ProbeOK })
}

// children counts our own child processes that still run.
func children(t *testing.T) int {
	t.Helper()
	n := 0
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		b, err := os.ReadFile("/proc/self/task/" + task.Name() + "/children")
		if err != nil {
			continue
		}
		n += len(strings.Fields(string(b)))
	}
	return n
}

func TestNotBuiltIn(t *testing.T) {
	p, events := fake(t, "good", Options{})
	p.builtIn = false
	start(t, p, events)
	if s := await(t, events, anything[sched.ProbeStatus]); s.State != sched.ProbeMissing || s.Why != "this tsgtop was built without NVML" {
		t.Errorf("%+v", s)
	}
}

// TestChildWithItsParentGone: the end of standard input ends the child, also
// while NVML waits.
func TestChildWithItsParentGone(t *testing.T) {
	if os.Getenv("NVML_TEST_REAL_CHILD") != "" {
		os.Exit(ChildMain())
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestChildWithItsParentGone$")
	cmd.Env = append(os.Environ(), "NVML_TEST_REAL_CHILD=1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stdin.Close()
	err = cmd.Wait()
	var exit *exec.ExitError
	if err != nil && (!asExit(err, &exit) || exit.ExitCode() != 3) {
		t.Errorf("the child ended with %v", err)
	}
}

func asExit(err error, to **exec.ExitError) bool {
	e, ok := err.(*exec.ExitError)
	*to = e
	return ok
}

// TestRealChildWithoutLibrary runs the real child where there is no NVML.
func TestRealChildWithoutLibrary(t *testing.T) {
	if os.Getenv("NVML_TEST_REAL_CHILD") != "" {
		os.Exit(ChildMain())
	}
	if !builtIn {
		t.Skip("not in this build: NVML (cgo is off, or the tag nonvml is set)")
	}
	if _, err := os.Stat("/proc/driver/nvidia"); err == nil {
		t.Skip("an NVIDIA driver is here: its library is found")
	}
	p, events := fake(t, "", Options{})
	p.command = []string{"/proc/self/exe", "-test.run=^TestRealChildWithoutLibrary$"}
	p.env = []string{"NVML_TEST_REAL_CHILD=1"}
	start(t, p, events)
	s := await(t, events, anything[sched.ProbeStatus])
	if s.State != sched.ProbeMissing || !strings.Contains(s.Why, "libnvidia-ml.so.1 is not to be found") || s.Help == "" {
		t.Errorf("%+v", s)
	}
	t.Log(s.Why)
}

func TestIsChild(t *testing.T) {
	old := os.Args
	defer func() { os.Args = old }()
	for _, c := range []struct {
		args []string
		want bool
	}{{[]string{"tsgtop"}, false}, {[]string{"tsgtop", "__nvml"}, true}, {[]string{"tsgtop", "ls", "__nvml"}, false}, {[]string{"tsgtop", "__nvml", "x"}, false}} {
		if os.Args = c.args; IsChild() != c.want {
			t.Errorf("%q", c.args)
		}
	}
}
