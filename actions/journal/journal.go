//go:build linux

package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tsgtop/actions/rootfile"
	"tsgtop/internal/sched"
)

// DefaultPath is where the journal is.
const DefaultPath = "/var/lib/tsgtop/journal"

// compactOver is the size in bytes above which the file is written anew.
const compactOver = 64 << 10

// lockPatience is how long an operation waits for another process to be done.
const lockPatience = 5 * time.Second

// Journal is the machine's, or one in memory for a simulated GPU. Its methods
// can be called by several goroutines.
type Journal struct {
	path string // empty: in memory
	boot string
	mu   sync.Mutex
	mem  State
	lock *os.File // of the file beside the journal: held open, so that byte locks last
	dir  *rootfile.Dir
	held held
}

// Memory is a journal that ends with the process, for a GPU that does so too.
func Memory() *Journal { return &Journal{} }

// Open opens the journal of the machine, and makes it where there is none.
func Open(path string) (*Journal, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil, fmt.Errorf("journal: which boot this is: %w", err)
	}
	dir, err := rootfile.OpenDir(filepath.Dir(path), 0o700)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	name := filepath.Base(path)
	lock, err := dir.Open(name+".lock", os.O_RDWR|os.O_CREATE)
	if err != nil {
		dir.Close()
		return nil, fmt.Errorf("journal: %w", err)
	}
	j := &Journal{path: filepath.Join(dir.Path(), name), boot: strings.TrimSpace(string(b)), lock: lock, dir: dir}
	if _, err := j.State(); err != nil {
		j.Close()
		return nil, err
	}
	return j, nil
}

// Path is the file's; empty for one in memory.
func (j *Journal) Path() string { return j.path }

// Close lets go of the files, and of all locks.
func (j *Journal) Close() error {
	if j.path == "" {
		return nil
	}
	return errors.Join(j.lock.Close(), j.dir.Close())
}

// State reads the journal.
func (j *Journal) State() (State, error) {
	var out State
	err := j.locked(func(s *State, _ *os.File) error {
		out = *s
		out.Entries = nil
		for i := range s.Entries {
			out.Entries = append(out.Entries, s.Entries[i].clone())
		}
		return nil
	})
	return out, err
}

// Hold writes down, before it is done, that the owner changes a value. The
// first original wins: it is returned as the journal then has it.
func (j *Journal) Hold(op sched.Op, t sched.Target, original *uint64, h Hold) (Entry, error) {
	h.When = time.Now().Format(time.RFC3339)
	var e Entry
	err := j.write(func(s *State) *line {
		return &line{Do: "hold", Op: op, Target: &t, Original: original, Hold: &h}
	}, func(s *State) { e = s.Find(KeyOf(op, t)).clone() })
	return e, err
}

// Keep marks what an owner changed as kept on purpose: it is listed, and put
// back only by hand.
func (j *Journal) Keep(op sched.Op, t sched.Target, o Owner) error {
	return j.write(func(s *State) *line { return &line{Do: "keep", Op: op, Target: &t, Owner: &o} }, nil)
}

// Release takes an owner's hold off, once the value is back or there is nothing
// to put back any more. why is for people who read the file.
func (j *Journal) Release(op sched.Op, t sched.Target, o Owner, why string) error {
	return j.write(func(s *State) *line { return &line{Do: "release", Op: op, Target: &t, Owner: &o, Why: why} }, nil)
}

// Forget takes an entry off with all holds.
func (j *Journal) Forget(op sched.Op, t sched.Target, why string) error {
	return j.write(func(s *State) *line { return &line{Do: "release", Op: op, Target: &t, Why: why} }, nil)
}

// Meter writes down, before it is done, that the owner turns the RPC meter on;
// or, afterwards, that it is off.
func (j *Journal) Meter(o Owner, on bool) error {
	return j.write(func(s *State) *line {
		if on {
			return &line{Do: "meter-on", Owner: &o}
		}
		return &line{Do: "meter-off", Owner: &o}
	}, nil)
}

// write appends one line, on the disk before it returns.
func (j *Journal) write(build func(*State) *line, then func(*State)) error {
	return j.locked(func(s *State, f *os.File) error {
		l := build(s)
		l.Boot = j.boot
		if f != nil {
			b, err := json.Marshal(l)
			if err != nil {
				return fmt.Errorf("journal %s: %w", j.path, err)
			}
			if err := rootfile.AppendLine(f, b); err != nil {
				return fmt.Errorf("journal: %w", err)
			}
		}
		s.apply(*l)
		if then != nil {
			then(s)
		}
		if f != nil {
			return j.compact(s, f)
		}
		return nil
	})
}

// locked runs f with the state, while no other process or goroutine changes it.
// The file is nil for a journal in memory.
func (j *Journal) locked(f func(*State, *os.File) error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.path == "" {
		return f(&j.mem, nil)
	}
	if err := j.flock(); err != nil {
		return err
	}
	defer unix.Flock(int(j.lock.Fd()), unix.LOCK_UN)
	file, err := j.dir.Open(filepath.Base(j.path), os.O_RDWR|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	defer file.Close()
	s, err := j.read(file)
	if err != nil {
		return err
	}
	return f(s, file)
}

func (j *Journal) flock() error {
	until := time.Now().Add(lockPatience)
	for {
		err := unix.Flock(int(j.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return nil
		}
		if err != unix.EWOULDBLOCK && err != unix.EINTR || time.Now().After(until) {
			return fmt.Errorf("journal %s: lock: %w (another tsgtop has held it for %v)", j.path, err, lockPatience)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// maxJournal bounds what is read, in bytes.
const maxJournal = 16 << 20

func (j *Journal) read(f *os.File) (*State, error) {
	b, err := io.ReadAll(io.NewSectionReader(f, 0, maxJournal+1))
	if err != nil {
		return nil, fmt.Errorf("journal: read %s: %w", j.path, err)
	}
	if len(b) > maxJournal {
		return nil, fmt.Errorf("journal %s: more than %d bytes: this is no journal of tsgtop's; move it away", j.path, maxJournal)
	}
	return parse(b, j.boot), nil
}

// parse folds the file's lines. Lines of another boot are void.
func parse(b []byte, boot string) *State {
	s := &State{}
	stale := &State{}
	for len(b) > 0 {
		raw, rest, _ := bytes.Cut(b, []byte{'\n'})
		b = rest
		if len(bytes.TrimSpace(raw)) == 0 {
			continue
		}
		var l line
		if err := json.Unmarshal(raw, &l); err != nil || !l.valid() {
			s.Unreadable++
			continue
		}
		if l.Boot != boot {
			stale.apply(l)
			continue
		}
		s.apply(l)
	}
	s.Stale = len(stale.Entries)
	return s
}

// compact writes the file anew where it has grown long, or holds nothing any
// more. A crash on the way leaves the old file or the new one.
func (j *Journal) compact(s *State, f *os.File) error {
	st, err := f.Stat()
	empty := len(s.Entries) == 0 && s.Meter == nil
	if err != nil || st.Size() < compactOver && !empty {
		return err
	}
	name := filepath.Base(j.path)
	if err := j.dir.Remove(name + ".new"); err != nil {
		return nil //nolint:nilerr // what counts is written; the next one compacts
	}
	g, err := j.dir.Open(name+".new", os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return nil //nolint:nilerr // likewise
	}
	defer g.Close()
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	for i := range s.Entries {
		e := &s.Entries[i]
		for k := range e.Holds {
			enc.Encode(line{Boot: j.boot, Do: "hold", Op: e.Op, Target: &e.Target, Original: e.Original, Hold: &e.Holds[k]})
		}
	}
	if s.Meter != nil {
		enc.Encode(line{Boot: j.boot, Do: "meter-on", Owner: s.Meter})
	}
	if _, err := g.Write(out.Bytes()); err != nil || g.Sync() != nil {
		j.dir.Remove(name + ".new")
		return nil // the long file stays
	}
	if err := j.dir.Rename(name+".new", name); err != nil {
		j.dir.Remove(name + ".new")
	}
	return nil
}

// Self names this process.
func Self() (Owner, error) {
	start, err := ProcessStart(os.Getpid())
	if err != nil {
		return Owner{}, err
	}
	return Owner{PID: os.Getpid(), Start: start}, nil
}

// Alive tells whether an owner's process still runs.
func (o Owner) Alive() bool {
	start, err := ProcessStart(o.PID)
	return err == nil && start == o.Start
}

// ProcessStart is field 22 of /proc/PID/stat: when a process started, in clock
// ticks since boot. A process all of whose threads have ended has ended, waited
// for or not; one of which a thread still is in a call has not.
func ProcessStart(pid int) (uint64, error) {
	path := fmt.Sprintf("/proc/%d/stat", pid)
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	start, state, err := ParseStart(path, b)
	if err != nil {
		return 0, err
	}
	if state == 'Z' || state == 'X' {
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil || len(threads) < 2 {
			return 0, fmt.Errorf("read %s: %w: the process has ended", path, os.ErrNotExist)
		}
	}
	return start, nil
}

// ParseStart reads the start time, and the state of the first thread, out of the
// text of /proc/PID/stat.
func ParseStart(path string, b []byte) (start uint64, state byte, err error) {
	// The name, in parentheses, can hold anything: what follows its last ")" counts.
	i := bytes.LastIndexByte(b, ')')
	fields := strings.Fields(string(b[i+1:]))
	if i < 0 || len(fields) < 20 {
		return 0, 0, fmt.Errorf("read %s: want at least 22 fields", path)
	}
	if start, err = strconv.ParseUint(fields[19], 10, 64); err != nil {
		return 0, 0, fmt.Errorf("read %s: start time: %w", path, err)
	}
	return start, fields[0][0], nil
}
