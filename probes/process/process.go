// Package process tells who a process is, from /proc alone: its start time,
// which with the pid names it, its executable, user, cgroup, and the unit
// (service, container, pod, job) that the cgroup names.
//
// It opens nothing of the process that a tracer would (no ptrace, no
// process_vm_readv), and blocks on nothing that the process holds. All strings
// are as the process or the machine gave them, and bounded: they go through
// internal/text before they are shown.
package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"tsgtop/internal/sched"
	"tsgtop/internal/text"
)

// maxString bounds each string, and maxFile what is read of a file of /proc, in bytes.
const (
	maxString = 4 << 10
	maxFile   = 64 << 10
	maxArgs   = 256
)

// stat is what of /proc/PID/stat is used.
type stat struct {
	comm  string
	state byte
	start uint64 // clock ticks since boot
}

var errStat = errors.New("it does not read like /proc/PID/stat")

// parseStat reads a line of /proc/PID/stat. The name in it is up to the
// process and may hold spaces, parentheses and line ends: it ends at the last
// closing parenthesis.
func parseStat(b []byte) (stat, error) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return stat{}, errStat
	}
	fields := bytes.Fields(b[end+1:]) // from field 3, the state, on
	const start = 22 - 3
	if len(fields) <= start || len(fields[0]) != 1 {
		return stat{}, errStat
	}
	ticks, err := strconv.ParseUint(string(fields[start]), 10, 64)
	if err != nil {
		return stat{}, errStat
	}
	return stat{comm: string(b[open+1 : end]), state: fields[0][0], start: ticks}, nil
}

// status is what of /proc/PID/status is used.
type status struct {
	uid   *int // effective
	nspid []int
}

// parseStatus reads /proc/PID/status. The name in it is escaped by the kernel
// (a line end is written \n), so that each line is what it seems.
func parseStatus(b []byte) status {
	var s status
	for line := range bytes.Lines(b) {
		key, value, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			continue
		}
		fields := bytes.Fields(value)
		switch string(key) {
		case "Uid": // real, effective, saved, file system
			if len(fields) == 4 {
				if n, err := strconv.ParseUint(string(fields[1]), 10, 32); err == nil {
					uid := int(n)
					s.uid = &uid
				}
			}
		case "NSpid": // from the namespace of this /proc inwards
			for _, f := range fields {
				n, err := strconv.Atoi(string(f))
				if err != nil {
					return s
				}
				s.nspid = append(s.nspid, n)
			}
		}
	}
	return s
}

// parseCgroup gives the path that names the process best: in the unified
// hierarchy, or on a machine with the old ones in systemd's, or else in any
// that is not the root.
func parseCgroup(b []byte) string {
	var unified, named, other string
	for line := range bytes.Lines(b) {
		// hierarchy:controllers:path; a path may hold colons
		parts := strings.SplitN(strings.TrimSuffix(string(line), "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		switch path := parts[2]; {
		case parts[0] == "0" && parts[1] == "":
			unified = path
		case parts[1] == "name=systemd":
			named = path
		case other == "" && path != "/" && !strings.HasPrefix(path, "/../"):
			other = path
		}
	}
	for _, path := range []string{unified, named, other} {
		if path != "" && path != "/" {
			return path
		}
	}
	return unified
}

// readFile reads at most maxFile bytes of a file of /proc. It does not follow
// a link there, and does not wait.
func readFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// gone tells of errors that mean that the process has ended.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH)
}

// describe reads all of a process but for what is shared by many (the user's
// name). st is what its stat file said.
func (w *Watcher) describe(pid int, st stat) sched.Process {
	p := sched.Process{Time: sched.Now(), PID: pid, Start: st.start, Comm: text.Bound(st.comm, maxString)}
	dir := w.dir(pid)
	var missing []string
	failed := func(what string, err error) {
		switch {
		case gone(err):
			p.Gone = true
		case errors.Is(err, fs.ErrPermission):
			missing = append(missing, what+" may not be read (root may)")
		default:
			missing = append(missing, fmt.Sprintf("%s could not be read: %v", what, err))
		}
	}
	if b, err := readFile(filepath.Join(dir, "status")); err != nil {
		failed("its user", err)
	} else {
		s := parseStatus(b)
		p.UID = s.uid
		if s.uid != nil {
			p.User = text.Bound(w.users.name(*s.uid), maxString)
		}
		if n := len(s.nspid); n > 1 && s.nspid[n-1] != pid {
			p.NSPID = s.nspid[n-1]
		}
	}
	if b, err := readFile(filepath.Join(dir, "cgroup")); err != nil {
		failed("its cgroup", err)
	} else {
		p.Cgroup = text.Bound(parseCgroup(b), maxString)
		p.Unit = text.Bound(Unit(p.Cgroup), maxString)
	}
	switch exe, err := os.Readlink(filepath.Join(dir, "exe")); {
	case err == nil:
		p.Exe = text.Bound(exe, maxString)
	case gone(err) && st.state != 'Z' && w.exists(pid):
		missing = append(missing, "it is a thread of the kernel: no executable")
	case gone(err) && st.state == 'Z':
		missing = append(missing, "it has ended and waits for its parent: no executable any more")
	default:
		failed("its executable", err)
	}
	if w.opts.Args {
		if b, err := readFile(filepath.Join(dir, "cmdline")); err != nil {
			failed("its arguments", err)
		} else {
			p.Args = parseArgs(b)
		}
	}
	p.WhyNull = text.Bound(strings.Join(missing, "; "), maxString)
	return p
}

// parseArgs splits /proc/PID/cmdline; all arguments together are bounded as one string is.
func parseArgs(b []byte) []string {
	b = bytes.TrimSuffix(b, []byte{0})
	if len(b) == 0 {
		return nil
	}
	left := maxString
	var args []string
	for a := range bytes.SplitSeq(b, []byte{0}) {
		if len(a) > left && left > len("...") && len(args) < maxArgs {
			args = append(args, text.Bound(string(a), left))
			left = 0
		}
		if len(a) > left || len(args) == maxArgs {
			return append(args, "...")
		}
		args = append(args, string(a))
		left -= len(a)
	}
	return args
}
