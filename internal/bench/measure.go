package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/creack/pty"
)

// settle is left out at the start: the first screen, and the runtime's own start.
const settle = 2 * time.Second

// result is what one program cost.
type result struct {
	cpu     float64       // of one core
	early   float64       // bytes resident, as the measurement begins
	half    float64       // bytes, half the time later
	rss     float64       // bytes, at the end
	mostRSS float64       // bytes
	bytes   float64       // a second, to the terminal
	first   time.Duration // until the first full screen; 0: it was not looked for
}

// output counts what a program writes, and notes when all of want were in it.
type output struct {
	mu    sync.Mutex
	begun time.Time
	n     int64
	seen  bytes.Buffer
	want  []string
	first time.Duration
}

func (o *output) add(p []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.n += int64(len(p))
	if o.first != 0 || len(o.want) == 0 {
		return
	}
	o.seen.Write(p)
	for _, w := range o.want {
		if !strings.Contains(o.seen.String(), w) {
			return
		}
	}
	o.first = time.Since(o.begun)
	o.seen = bytes.Buffer{}
}

func (o *output) count() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.n
}

func measure(s subject, span time.Duration) (r result, err error) {
	cmd := exec.Command(s.args[0], s.args[1:]...)
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "COLORTERM=truecolor", "LC_ALL=C.UTF-8", "HOME=/nonexistent", "XDG_CONFIG_HOME=")
	out := &output{begun: time.Now(), want: s.full}
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 120, Rows: 40})
	if err != nil {
		return r, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		buf := make([]byte, 64<<10)
		for {
			n, err := tty.Read(buf)
			out.add(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
		_ = tty.Close()
		<-ended
	}()
	pause := func(d time.Duration) error {
		select {
		case <-time.After(d):
			return nil
		case <-ended:
			return errors.New("it ended by itself")
		}
	}
	if err := pause(settle); err != nil {
		return r, err
	}
	from, bytes0 := time.Now(), out.count()
	cpu0, err := cpuTime(cmd.Process.Pid)
	if err != nil {
		return r, err
	}
	if r.early, _, err = memory(cmd.Process.Pid); err != nil {
		return r, err
	}
	half := (span - settle) / 2
	if err := pause(half); err != nil {
		return r, err
	}
	if r.half, _, err = memory(cmd.Process.Pid); err != nil {
		return r, err
	}
	if err := pause(span - settle - half); err != nil {
		return r, err
	}
	cpu1, err := cpuTime(cmd.Process.Pid)
	if err != nil {
		return r, err
	}
	took := time.Since(from)
	r.cpu, r.bytes = float64(cpu1-cpu0)/float64(took), float64(out.count()-bytes0)/took.Seconds()
	if r.rss, r.mostRSS, err = memory(cmd.Process.Pid); err != nil {
		return r, err
	}
	out.mu.Lock()
	defer out.mu.Unlock()
	if r.first = out.first; r.first == 0 && len(s.full) > 0 {
		return r, fmt.Errorf("its first screen never had all of %q", s.full)
	}
	return r, nil
}

// cpuTime is what a process has used, from /proc/PID/schedstat of its threads
// (nanoseconds; /proc/PID/stat counts in hundredths of a second).
func cpuTime(pid int) (time.Duration, error) {
	dir := fmt.Sprintf("/proc/%d/task", pid)
	tasks, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	for _, t := range tasks {
		b, err := os.ReadFile(dir + "/" + t.Name() + "/schedstat")
		if err != nil {
			continue // a thread that ended
		}
		if f := strings.Fields(string(b)); len(f) > 0 {
			n, err := strconv.ParseInt(f[0], 10, 64)
			if err != nil {
				return 0, fmt.Errorf("%s/%s/schedstat: %w", dir, t.Name(), err)
			}
			sum += time.Duration(n)
		}
	}
	if sum == 0 {
		return 0, fmt.Errorf("%s: no schedstat here (CONFIG_SCHED_INFO)", dir)
	}
	return sum, nil
}

// memory is a process's resident memory, now and at most, in bytes.
func memory(pid int) (now, most float64, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		kb, _ := strconv.ParseFloat(f[1], 64) // no number in the lines of other names
		switch f[0] {
		case "VmRSS:":
			now = kb * 1024
		case "VmHWM:":
			most = kb * 1024
		}
	}
	return now, most, nil
}
