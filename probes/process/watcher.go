package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"tsgtop/internal/sched"
	"tsgtop/internal/text"
)

// Options say where and what to read.
type Options struct {
	Root   string // where proc is mounted; empty: /proc
	Passwd string // empty: /etc/passwd
	Args   bool   // arguments, too: they hold secrets
}

// Watcher describes processes and remembers what it read. It may be used from
// any goroutine.
type Watcher struct {
	opts  Options
	users *users

	mu    sync.Mutex
	known map[int]sched.Process
}

// maxKnown is how many processes are remembered.
const maxKnown = 4096

// New makes a Watcher.
func New(o Options) *Watcher {
	if o.Root == "" {
		o.Root = "/proc"
	}
	if o.Passwd == "" {
		o.Passwd = "/etc/passwd"
	}
	return &Watcher{opts: o, users: &users{path: o.Passwd}, known: make(map[int]sched.Process)}
}

func (w *Watcher) dir(pid int) string { return filepath.Join(w.opts.Root, strconv.Itoa(pid)) }

func (w *Watcher) exists(pid int) bool {
	_, err := os.Stat(w.dir(pid))
	return err == nil
}

func (w *Watcher) stat(pid int) (stat, error) {
	b, err := readFile(filepath.Join(w.dir(pid), "stat"))
	if err != nil {
		return stat{}, err
	}
	return parseStat(b)
}

// Describe says who a process is: from memory, where the same process (by its
// start time) was described before and has not executed something else since,
// as its name tells. Of one that has ended since it is what is remembered. Gone:
// there is no such process, and nothing is remembered of it.
func (w *Watcher) Describe(pid int) sched.Process {
	for range 3 {
		st, err := w.stat(pid)
		if err != nil {
			return w.undescribed(pid, err)
		}
		w.mu.Lock()
		p, ok := w.known[pid]
		w.mu.Unlock()
		if ok && p.Start == st.start && p.Comm == text.Bound(st.comm, maxString) {
			return p
		}
		p = w.describe(pid, st)
		// What was read is of one process only if it is still there: its pid
		// can have gone to another in between.
		after, err := w.stat(pid)
		if err != nil {
			return w.undescribed(pid, err)
		}
		if after.start != st.start {
			continue
		}
		p.Gone = false
		w.remember(p)
		return p
	}
	return sched.Process{Time: sched.Now(), PID: pid, WhyNull: "processes of this number come and go too fast to be read"}
}

func (w *Watcher) remember(p sched.Process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.known) >= maxKnown {
		for pid := range w.known { // first those that ended, then any
			if !w.exists(pid) {
				delete(w.known, pid)
			}
		}
		for pid := range w.known {
			if len(w.known) < maxKnown*3/4 {
				break
			}
			delete(w.known, pid)
		}
	}
	w.known[p.PID] = p
}

func (w *Watcher) undescribed(pid int, err error) sched.Process {
	if gone(err) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if p, ok := w.known[pid]; ok {
			return p
		}
		return sched.Process{Time: sched.Now(), PID: pid, Gone: true, WhyNull: "it ended before it could be read"}
	}
	why := fmt.Sprintf("it could not be read: %v", err)
	if errors.Is(err, fs.ErrPermission) {
		why = "it may not be read (root may)"
	}
	return sched.Process{Time: sched.Now(), PID: pid, WhyNull: text.Bound(why, maxString)}
}

// Alive tells whether the process of that number still is the one that began at start.
func (w *Watcher) Alive(pid int, start uint64) bool {
	st, err := w.stat(pid)
	return err == nil && st.start == start && st.state != 'Z'
}

// Forget drops what is remembered of a process, as after its exit.
func (w *Watcher) Forget(pid int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.known, pid)
}

// initPIDNamespace is the first pid namespace's inode number, the same on
// every machine: PID_NS_INIT_INO in the kernel's include/uapi/linux/nsfs.h,
// PROC_PID_INIT_INO before.
const initPIDNamespace = "pid:[4026531836]"

// SamePIDNamespaceAsInit tells whether the pids in our /proc are the
// machine's, as eBPF and the driver's trace give them. If not, why says what
// was found: then no number of theirs may be looked up here.
func (w *Watcher) SamePIDNamespaceAsInit() (same bool, why string) {
	self := filepath.Join(w.opts.Root, "self")
	ns, err := os.Readlink(filepath.Join(self, "ns", "pid"))
	if err != nil {
		return false, text.Bound(fmt.Sprintf("which pid namespace this is cannot be told: %v", err), maxString)
	}
	if ns != initPIDNamespace {
		return false, text.Bound("this is a pid namespace of its own ("+ns+"), as in a container: the numbers of processes that the kernel and the driver give are not those of this /proc; run in the machine's (docker and podman: --pid=host, Kubernetes: hostPID)", maxString)
	}
	// Ours is the machine's; so must be the one that /proc was mounted for.
	b, err := readFile(filepath.Join(self, "status"))
	if err != nil {
		return false, text.Bound(fmt.Sprintf("whose /proc is mounted here cannot be told: %v", err), maxString)
	}
	if n := parseStatus(b).nspid; len(n) > 1 {
		return false, "the /proc that is mounted here is not of this pid namespace (it calls us " + strings.Trim(fmt.Sprint(n), "[]") + "): mount one that is"
	}
	return true, ""
}
