//go:build linux

// Package workload runs a command of the operator's beside a measurement: a probe
// whose output are numbers, or the work that is to be protected.
package workload

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"tsgtop/internal/sched"
	"tsgtop/internal/steer"
)

// What is taken of a probe's output.
const (
	maxLine     = 4096
	maxReadings = 1 << 20
	maxName     = 64
)

// ParseLine reads a line of a probe's output: a number, or a name and a number.
// Units, if there are any, belong into the name. Everything else is no reading.
func ParseLine(line string) (name string, value float64, ok bool) {
	f := strings.Fields(line)
	switch len(f) {
	case 1:
	case 2:
		name = strings.TrimSuffix(strings.TrimSuffix(f[0], ":"), "=")
		if len(name) > maxName || name == "" {
			return "", 0, false
		}
	default:
		return "", 0, false
	}
	v, err := strconv.ParseFloat(f[len(f)-1], 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return "", 0, false
	}
	return name, v, true
}

// Probe is a command that prints numbers while it runs.
type Probe struct {
	cmd  *exec.Cmd
	done chan struct{}

	mu       sync.Mutex
	readings []steer.Reading
	other    int // lines that were no reading
	err      error
}

// StartProbe starts a command by the shell. Its readings are stamped by now as
// they come. Its standard error goes to errs.
func StartProbe(command string, now func() sched.Time, errs io.Writer) (*Probe, error) {
	p := &Probe{cmd: exec.Command("/bin/sh", "-c", command), done: make(chan struct{})}
	p.cmd.Stderr = errs
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its children end with it
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("probe: %w", err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("probe %q: %w", command, err)
	}
	go func() {
		defer close(p.done)
		p.read(out, now)
		err := p.cmd.Wait()
		p.mu.Lock()
		p.err = err
		p.mu.Unlock()
	}()
	return p, nil
}

func (p *Probe) read(out io.Reader, now func() sched.Time) {
	r := bufio.NewReaderSize(out, maxLine)
	for {
		line, long, err := r.ReadLine()
		if err != nil {
			return
		}
		name, v, ok := ParseLine(string(line))
		p.mu.Lock()
		if !ok || long {
			p.other++
		} else if len(p.readings) < maxReadings {
			p.readings = append(p.readings, steer.Reading{At: now(), Name: name, Value: v})
		}
		p.mu.Unlock()
	}
}

// Readings are those so far, the oldest first.
func (p *Probe) Readings() []steer.Reading {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.readings[:len(p.readings):len(p.readings)]
}

// Ended tells whether it ended by itself, and how.
func (p *Probe) Ended() (ended bool, err error) {
	select {
	case <-p.done:
		p.mu.Lock()
		defer p.mu.Unlock()
		return true, p.err
	default:
		return false, nil
	}
}

// Stop ends the probe and what it started.
func (p *Probe) Stop() {
	stopGroup(p.cmd.Process.Pid, p.done)
}

// patience is how long a command is given to end after SIGTERM.
const patience = 2 * time.Second

func stopGroup(pid int, done <-chan struct{}) {
	_ = syscall.Kill(-pid, syscall.SIGTERM)
	select {
	case <-done:
	case <-time.After(patience):
		_ = syscall.Kill(-pid, syscall.SIGKILL)
		select {
		case <-done:
		case <-time.After(patience): // a descendant holds the pipe in another group
		}
	}
}

// Command is the work that is run while something is held.
type Command struct {
	Args []string
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// StartCommand starts a command on our own terminal.
func StartCommand(args []string, in io.Reader, out, errs io.Writer) (*Command, error) {
	c := &Command{Args: args, cmd: exec.Command(args[0], args[1:]...), done: make(chan struct{})}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = in, out, errs
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("run %s: %w", args[0], err)
	}
	go func() {
		c.err = c.cmd.Wait()
		close(c.done)
	}()
	return c, nil
}

// PID is its process's.
func (c *Command) PID() int { return c.cmd.Process.Pid }

// Done is closed when it has ended.
func (c *Command) Done() <-chan struct{} { return c.done }

// Stop asks it to end, and waits; after a while it is killed.
func (c *Command) Stop(ctx context.Context) {
	select {
	case <-c.done:
		return
	default:
	}
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.done:
	case <-ctx.Done():
		_ = c.cmd.Process.Signal(os.Kill)
		<-c.done
	}
}

// End is how it ended; call it after Done.
func (c *Command) End() steer.CommandEnd {
	e := steer.CommandEnd{Args: c.Args}
	var exit *exec.ExitError
	switch {
	case c.err == nil:
	case errors.As(c.err, &exit):
		e.Code = exit.ExitCode()
		if e.Code < 0 {
			e.Why = exit.String()
		}
	default:
		e.Code, e.Why = -1, c.err.Error()
	}
	return e
}
