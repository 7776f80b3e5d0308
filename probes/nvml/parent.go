package nvml

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"tsgtop/internal/crash"
	"tsgtop/internal/sched"
	"tsgtop/internal/text"
)

// running is one Run of a probe.
type running struct {
	probe *Probe
	sink  func([]sched.Event)
	said  sched.ProbeStatus // last, without its time
}

// say sends a status, if it is not the one that was sent last.
func (r *running) say(s sched.ProbeStatus) {
	s.Probe, s.GPU = "nvml", sched.Unknown
	if s == r.said {
		return
	}
	r.said = s
	s.Time = sched.Now()
	r.sink([]sched.Event{s})
}

// child runs one child to its end. The error says what became of it; it is a
// failure where NVML cannot be used.
func (r *running) child(ctx context.Context) error {
	p := r.probe
	cmd := exec.Command(p.command[0], p.command[1:]...)
	cmd.Env = append(os.Environ(), p.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the terminal's Ctrl-C is for us
	var stderr head
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe() // its end tells the child that we are gone
	if err != nil {
		return fmt.Errorf("could not be started: %w", err)
	}
	defer stdin.Close()
	out, in, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("could not be started: %w", err)
	}
	defer out.Close()
	cmd.Stdout = in
	err = cmd.Start()
	in.Close()
	if err != nil {
		return fmt.Errorf("could not be started: %w", err)
	}
	cmd.WaitDelay = time.Second // for standard error, should something else still hold it
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()

	said := r.listen(ctx, out)

	// Also a child that said why it ends, or ended its output, may not end by itself.
	if errors.Is(said, io.EOF) {
		select {
		case err := <-ended:
			return died(err, stderr.line())
		case <-time.After(p.limits.die):
		}
	}
	_ = cmd.Process.Kill()
	select {
	case <-ended:
	case <-time.After(p.limits.die):
		// A second one would hang in the same place: wait, however long it takes.
		r.say(sched.ProbeStatus{State: sched.ProbeMissing, What: gives, Why: "NVML hangs inside the driver, and its process cannot be killed"})
		select {
		case <-ended:
		case <-ctx.Done():
		}
	}
	if errors.Is(said, io.EOF) {
		return errors.New("ended its output and did not end")
	}
	return said
}

// died says how a child ended by itself.
func died(err error, stderr string) error {
	what := "ended without a word"
	if err != nil {
		what = "ended: " + err.Error()
	}
	if stderr != "" {
		what += ": " + text.Bound(text.Clean(stderr), 300)
	}
	return errors.New(what)
}

// got is one line of the child, or why there is none.
type got struct {
	line line
	err  error
}

// listen takes what the child says until it ends its output (io.EOF), says
// that NVML cannot be used (a failure), says nothing for too long, or says
// what it must not; or until ctx ends.
func (r *running) listen(ctx context.Context, out io.Reader) error {
	lines := make(chan got)
	done := make(chan struct{})
	defer close(done)
	crash.Go(func() {
		buf := bufio.NewReaderSize(out, maxLine)
		for {
			g := readOne(buf)
			select {
			case lines <- g:
			case <-done:
				return
			}
			if g.err != nil {
				return
			}
		}
	})
	at := make(map[int]int) // sched's index by NVML's
	missing := make(map[int]bool)
	limit := r.probe.limits.start
	silence := time.NewTimer(limit)
	defer silence.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-silence.C:
			return fmt.Errorf("said nothing for %v, and was killed", limit)
		case g := <-lines:
			if g.err != nil {
				return g.err
			}
			switch l := g.line; l.Kind {
			case lineFailed:
				return *l.Failed
			case lineDevice:
				limit = r.probe.limits.hang
				r.device(l, at, missing)
			case lineSample:
				if index, ok := at[l.Index]; ok {
					r.sink([]sched.Event{sched.GPUSample{Time: sched.Now(), GPU: index, SMPercent: l.Sample.SMPercent, MemUsed: l.Sample.MemUsed, MemTotal: l.Sample.MemTotal,
						PowerMilliW: l.Sample.PowerMilliW, TemperatureC: l.Sample.TemperatureC, ProcessMem: l.Sample.ProcessMem}})
				}
			}
			silence.Reset(limit)
		}
	}
}

func readOne(buf *bufio.Reader) got {
	b, err := buf.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return got{err: fmt.Errorf("sent a line of more than %d bytes, and was killed", maxLine)}
	case errors.Is(err, io.EOF):
		return got{err: io.EOF} // half a line is none
	case err != nil:
		return got{err: fmt.Errorf("could not be read from: %w", err)}
	}
	l, err := parseLine(b)
	if err != nil {
		return got{err: fmt.Errorf("sent what cannot be read (%.200s), and was killed", text.Clean(err.Error()))}
	}
	return got{line: l}
}

// device sends what a GPU is, if it is one of the machine's, and says that
// the probe works.
func (r *running) device(l line, at map[int]int, missing map[int]bool) {
	g, ok := place(r.probe.known(), l.Index, *l.Device)
	if ok {
		at[l.Index] = g.Index
		delete(missing, l.Index)
		r.sink([]sched.Event{g})
	} else {
		delete(at, l.Index)
		missing[l.Index] = true
	}
	s := sched.ProbeStatus{State: sched.ProbeOK, What: gives}
	if n := len(missing); n > 0 {
		s.State = sched.ProbeLimited
		s.Why = fmt.Sprintf("%d of NVML's GPUs could not be matched with one of the machine's by PCI address or UUID, and are left out", n)
	}
	r.say(s)
}

// head keeps the beginning of what is written to it: the reason stands there,
// in the loader's messages and before Go's own traces.
type head struct {
	mu sync.Mutex
	b  []byte
}

const headBytes = 1 << 10

func (h *head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.b = append(h.b, p[:min(len(p), headBytes-len(h.b))]...)
	return len(p), nil
}

// line is the first line that says something.
func (h *head) line() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range strings.Lines(string(h.b)) {
		if l = strings.TrimSpace(l); l != "" {
			return l
		}
	}
	return ""
}
