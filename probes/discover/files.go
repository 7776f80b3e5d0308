//go:build linux

package discover

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"tsgtop/internal/rmdev"
)

// openFile is one open /dev/nvidiactl, which processes that forked can share.
type openFile struct {
	holder          // the one with the lowest pid
	start  string   // of that process, in ticks since boot
	others []holder // who else holds it
}

// holder is a process and its descriptor onto an open file.
type holder struct {
	pid, fd int
}

// pids are the processes that hold the file, ascending.
func (f *openFile) pids() []int {
	pids := []int{f.pid}
	for _, h := range f.others {
		pids = append(pids, h.pid)
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}

// fileKey names an open file as long as its process keeps it open.
type fileKey struct {
	holder
	start string
}

func (f *openFile) key() fileKey { return fileKey{f.holder, f.start} }

// process is a process that holds the driver open.
type process struct {
	pid   int
	start string
	mps   bool
	fds   []int // descriptors onto /dev/nvidiactl, ascending
}

// processes lists those that hold /dev/nvidiactl open, by pid; only those of
// pids where it is not nil. What ends meanwhile is left out.
func (d *Discoverer) processes(pids []int) ([]process, error) {
	sys := d.rm.System()
	if pids == nil {
		names, err := sys.ReadDir("/proc")
		if err != nil {
			return nil, fmt.Errorf("list the machine's processes: %w", err)
		}
		for _, n := range names {
			if pid, err := strconv.Atoi(n); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
	}
	pids = slices.Clone(pids)
	slices.Sort(pids)
	self := os.Getpid()
	var out []process
	for _, pid := range slices.Compact(pids) {
		if pid == self {
			continue
		}
		dir := fmt.Sprintf("/proc/%d", pid)
		names, err := sys.ReadDir(dir + "/fd")
		if err != nil {
			if denied(err) {
				d.refused = "descriptors of other users' processes cannot be listed without root"
			}
			continue
		}
		p := process{pid: pid}
		for _, n := range names {
			fd, err := strconv.Atoi(n)
			if err != nil {
				continue
			}
			// Another mount namespace can give the file another folder; what it is
			// gets checked when it is borrowed.
			if link, err := sys.ReadLink(dir + "/fd/" + n); err == nil && path.Base(strings.TrimSuffix(link, " (deleted)")) == "nvidiactl" {
				p.fds = append(p.fds, fd)
			}
		}
		if len(p.fds) == 0 {
			continue
		}
		slices.Sort(p.fds)
		p.start = startTime(sys, dir)
		if comm, err := sys.ReadFile(dir + "/comm"); err == nil {
			// The kernel keeps 15 characters of a name.
			p.mps = strings.HasPrefix(string(comm), "nvidia-cuda-mps")
		}
		out = append(out, p)
	}
	return out, nil
}

func denied(err error) bool {
	return errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM)
}

// startTime is field 22 of /proc/PID/stat, "" where it cannot be read: with the
// pid it names the process.
func startTime(sys rmdev.System, dir string) string {
	b, err := sys.ReadFile(dir + "/stat")
	if err != nil {
		return ""
	}
	// The name, in brackets, can hold anything, brackets and blanks too.
	s := string(b)
	fields := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	if len(fields) < 20 {
		return ""
	}
	return fields[19]
}

// files makes the open files of processes, each once, in the order of pid and
// descriptor. compared is false where the kernel does not tell which are the same.
func (d *Discoverer) files(procs []process) (all []*openFile, compared bool) {
	var sorted []*openFile // in the kernel's order, for looking one up
	compare := true
	sys := d.rm.System()
	for _, p := range procs {
		for _, fd := range p.fds {
			f := &openFile{holder: holder{p.pid, fd}, start: p.start}
			if compare {
				at, same, err := lookUp(sys, sorted, f)
				switch {
				case err == nil && same:
					sorted[at].others = append(sorted[at].others, f.holder)
					continue
				case err == nil:
					sorted = slices.Insert(sorted, at, f)
				case errors.Is(err, syscall.ESRCH), errors.Is(err, syscall.EBADF):
					// One of the two is gone; if both files are one, the clients will show it.
				default:
					compare = false // no kcmp here
				}
			}
			all = append(all, f)
		}
	}
	return all, compare
}

// lookUp finds where f is or belongs among files in the kernel's order.
func lookUp(sys rmdev.System, sorted []*openFile, f *openFile) (at int, same bool, err error) {
	lo, hi := 0, len(sorted)
	for lo < hi {
		mid := (lo + hi) / 2
		c, err := sys.CompareFiles(sorted[mid].pid, sorted[mid].fd, f.pid, f.fd)
		switch {
		case err != nil:
			return 0, false, err
		case c == 0:
			return mid, true, nil
		case c == 1: // the one at mid is less
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return lo, false, nil
}
