//go:build linux

package actions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"tsgtop/actions/audit"
	"tsgtop/actions/journal"
	"tsgtop/internal/rmdev"
)

// watchArg is the hidden argument by which the program is the watcher.
const watchArg = "__watch"

// The watcher is this program again, in a session and, where it can, a control
// group of its own, so that what ends the terminal or the session does not end
// it. It waits on a pipe whose other end only the watched process has: when
// that process has ended, by whatever signal, and its last call into the driver
// is back, the pipe closes. Then it puts back what the journal lists for that
// process. It holds nothing of the driver open until then.

// watchFD is the descriptor of the pipe in the watcher, readyFD the one by which
// it says that it is watching.
const (
	watchFD = 3
	readyFD = 4
)

// dismissed is what the watched process writes when there is nothing to restore.
const dismissed = 'q'

// watchRetries are the pauses between tries where a restore failed.
var watchRetries = []time.Duration{0, time.Second, 5 * time.Second, 20 * time.Second, 60 * time.Second}

// watcher is the watched process's side.
type watcher struct {
	cmd  *exec.Cmd
	pipe *os.File
	once sync.Once
}

// startWatcher starts the program again to watch over this process.
func startWatcher(j *journal.Journal, self journal.Owner, auditPath string, extra ...string) (*watcher, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start the watcher: %w", err)
	}
	defer r.Close()
	ready, readyW, err := os.Pipe()
	if err != nil {
		w.Close()
		return nil, fmt.Errorf("start the watcher: %w", err)
	}
	defer ready.Close()
	args := append([]string{watchArg, j.Path(), strconv.Itoa(self.PID), strconv.FormatUint(self.Start, 10), auditPath}, extra...)
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Args[0] = "tsgtop"
	cmd.ExtraFiles = []*os.File{r, readyW}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	readyW.Close()
	if err != nil {
		w.Close()
		return nil, fmt.Errorf("start the watcher that puts values back if tsgtop is killed: %w", err)
	}
	go cmd.Wait()
	one := make([]byte, 1)
	ready.SetReadDeadline(time.Now().Add(10 * time.Second))
	if n, err := ready.Read(one); n != 1 {
		w.Close()
		cmd.Process.Kill()
		return nil, fmt.Errorf("the watcher that puts values back if tsgtop is killed did not come up: %w", err)
	}
	return &watcher{cmd: cmd, pipe: w}, nil
}

// dismiss sends the watcher home: nothing is left to restore.
func (w *watcher) dismiss() {
	if w != nil {
		w.once.Do(func() {
			w.pipe.Write([]byte{dismissed})
			w.pipe.Close()
		})
	}
}

// leave lets go of the watcher with something left to restore: it begins at once.
func (w *watcher) leave() {
	if w != nil {
		w.once.Do(func() { w.pipe.Close() })
	}
}

// alive tells whether the watcher still watches.
func (w *watcher) alive() bool {
	return w != nil && w.cmd.Process.Signal(syscall.Signal(0)) == nil
}

// IsWatch tells whether the program was started as the watcher.
func IsWatch() bool { return len(os.Args) > 1 && os.Args[1] == watchArg }

// WatchMain is main of the watcher; it gives the exit code.
func WatchMain() int {
	return watch(os.Args[2:], func(j *journal.Journal, self journal.Owner) (Actuator, error) {
		fd := NewFD(rmdev.New(nil), j, self, nil, "the watcher has no eBPF program")
		a := Choose("auto", fd, NewKFunc(fd))
		if why := a.Why(); why != "" {
			return nil, errors.New(why)
		}
		return a, nil
	})
}

// watch waits for the owner's end and restores by the actuator that open gives.
func watch(args []string, open func(*journal.Journal, journal.Owner) (Actuator, error)) int {
	if len(args) < 4 {
		fmt.Fprintln(os.Stderr, "tsgtop: this argument is for tsgtop's own use")
		return 1
	}
	path, auditPath := args[0], args[3]
	pid, err1 := strconv.Atoi(args[1])
	start, err2 := strconv.ParseUint(args[2], 10, 64)
	if err1 != nil || err2 != nil {
		return 1
	}
	owner := journal.Owner{PID: pid, Start: start}
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGPIPE, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU)
	if len(args) < 5 || args[4] != "stay" {
		leaveControlGroup()
	}
	j, err := journal.Open(path)
	if err != nil {
		return 1
	}
	defer j.Close()
	self, err := journal.Self()
	if err != nil {
		return 1
	}
	ready := os.NewFile(readyFD, "ready")
	ready.Write([]byte{1})
	ready.Close()
	pipe := os.NewFile(watchFD, "watch")
	one := make([]byte, 1)
	if n, _ := io.ReadFull(pipe, one); n == 1 && one[0] == dismissed {
		return 0
	}
	pipe.Close()
	return restoreFor(owner, j, self, auditPath, open)
}

// restoreFor puts back what the owner left, trying again for a while.
func restoreFor(owner journal.Owner, j *journal.Journal, self journal.Owner, auditPath string, open func(*journal.Journal, journal.Owner) (Actuator, error)) int {
	var log *audit.Log // without it the values are put back all the same
	if auditPath != "" {
		log, _ = audit.Open(auditPath, "watcher")
	}
	defer log.Close()
	left := true
	for _, pause := range watchRetries {
		time.Sleep(pause)
		a, err := open(j, self)
		if err != nil {
			continue
		}
		left = false
		if s, err := j.State(); err == nil && s.Meter != nil && *s.Meter == owner {
			if m, ok := a.(interface{ MeterOff() error }); ok && m.MeterOff() != nil {
				left = true
			}
		}
		outcomes, err := RestoreOf(context.Background(), a, j, owner, false)
		a.Release()
		left = left || err != nil
		for _, o := range outcomes {
			if o.State == OutcomeKept {
				continue
			}
			left = left || o.State == OutcomeFailed
			log.Write(RestoreLine(o))
		}
		if !left {
			return 0
		}
	}
	return 1
}

// RestoreLine is the audit log's line of an outcome.
func RestoreLine(o Outcome) audit.Line {
	restored := o.State == OutcomeRestored || o.State == OutcomeAlready
	l := audit.Line{Event: audit.Restore, Op: o.Op, Target: &o.Target, Old: o.Was, New: o.Value, Restored: &restored, Why: string(o.State) + ": " + o.Why}
	if len(o.Commands) > 0 {
		l.ID = o.Commands[0]
	}
	return l
}

// leaveControlGroup moves this process to the root of the unified hierarchy,
// where it may: a service manager that kills a unit's control group does not
// find it there then.
func leaveControlGroup() {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return
	}
	for l := range strings.Lines(string(b)) {
		f := strings.Fields(l)
		for i, x := range f {
			if x == "-" && i+1 < len(f) && f[i+1] == "cgroup2" && len(f) > 4 {
				os.WriteFile(f[4]+"/cgroup.procs", []byte(strconv.Itoa(os.Getpid())), 0)
				return
			}
		}
	}
}

// ErrNoWatcher: a value would be changed that nobody puts back if tsgtop is
// killed.
var ErrNoWatcher = errors.New("no watcher")
