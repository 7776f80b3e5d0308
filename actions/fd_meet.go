//go:build linux

package actions

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"tsgtop/actions/journal"
	"tsgtop/internal/rm"
	"tsgtop/internal/rmdev"
	"tsgtop/internal/sched"
)

// meeting is a target that has just been found to be the one that is meant, and
// the descriptor by which it is reached. It lives for milliseconds.
type meeting struct {
	session   *session
	gpu       *rmdev.AttachedGPU
	done      func()
	process   *rmdev.Process
	borrowed  *rmdev.Borrowed
	target    sched.Target // with what RM says of it
	device    uint32       // its device
	subdevice uint32       // on its own client; 0: not asked for yet
	warnings  []string
}

// closeGrace is how long a call's end waits until the borrowed descriptor is
// closed: held any longer, it would make a process that ends live on. Longer
// takes only the teardown of one that has ended.
const closeGrace = 50 * time.Millisecond

// close ends it; it can be called twice.
func (m *meeting) close() {
	if m.borrowed != nil {
		m.borrowed.CloseWithin(closeGrace)
	}
	if m.process != nil {
		m.process.Close()
	}
	m.borrowed, m.process = nil, nil
	m.done()
}

// meet finds the target and makes sure of it: its process is pinned by a pidfd
// and started when it should have, its client lives, the object is a TSG of the
// right number, and the ids that are never reused are the same. Handles and TSG
// numbers alone prove nothing: a restarted copy of the same job has the same.
func (f *FD) meet(t sched.Target) (*meeting, error) {
	if t.PID <= 0 || t.Object.Client == 0 || t.Object.Handle == 0 {
		return nil, fmt.Errorf("TSG %s: %w: it belongs to no process that is known; only TSGs of a process's own RM client can be acted on", t.TSGID, ErrUnfit)
	}
	s, gpu, done, err := f.use(t.GPU)
	if err != nil {
		return nil, err
	}
	m := &meeting{session: s, gpu: gpu, done: done, target: t}
	fail := func(err error) (*meeting, error) {
		m.close()
		return nil, fmt.Errorf("TSG %s of pid %d: %w", t.TSGID, t.PID, err)
	}
	// Whether the client lives is asked of our own: asking a client that does not
	// exist by any other call writes to the kernel log.
	rights := rm.AccessRightsParams{Object: uint32(t.Object.Client), Client: uint32(t.Object.Client)}
	if st, err := s.dev.ControlOn(s.dev.Client(), s.dev.Client(), rm.CtrlAccessRights, rmdev.Bytes(&rights)); err != nil {
		return fail(err)
	} else if st != 0 {
		return fail(fmt.Errorf("%w: its RM client %s has ended", ErrGone, t.Object.Client))
	}
	err = f.reach(m, t.PID)
	if (errors.Is(err, ErrGone) || errors.Is(err, errOther)) && t.UniqueID != nil && s.layout.UniqueIDs {
		// The client lives: a forked child can hold the file. That it is the same TSG
		// is then shown by its unique id.
		if f.reachAny(m) == nil {
			err = nil
		}
	}
	if err != nil {
		return fail(err)
	}
	if err := m.identify(s); err != nil {
		return fail(err)
	}
	return m, nil
}

// errOther: the pid is another process's.
var errOther = fmt.Errorf("%w: the pid is another process's by now", ErrReplaced)

// reach pins a process and borrows its descriptor that owns the client.
func (f *FD) reach(m *meeting, pid int) error {
	p, err := f.rm.OpenProcess(pid)
	if err != nil {
		return goneIf(err, rmdev.ErrGone)
	}
	m.process = p
	undo := func(err error) error {
		p.Close()
		m.process = nil
		return err
	}
	start, err := f.processStart(pid)
	if err != nil {
		return undo(fmt.Errorf("%w: when it started cannot be read: %w", ErrGone, err))
	}
	if pid == m.target.PID {
		if m.target.Start != 0 && start != m.target.Start {
			return undo(errOther)
		}
		m.target.Start = start
	}
	if err := f.find(m, pid); err != nil {
		return undo(err)
	}
	return nil
}

// reachAny looks for the client in all processes that have the driver open.
func (f *FD) reachAny(m *meeting) error {
	names, err := f.rm.System().ReadDir("/proc")
	if err != nil {
		return err
	}
	last := errNoFile
	for _, n := range names {
		pid, err := strconv.Atoi(n)
		if err != nil || pid == m.target.PID || pid == os.Getpid() {
			continue
		}
		if last = f.reach(m, pid); last == nil {
			return nil
		}
	}
	return last
}

// goneIf adds ErrGone where the error is of that sort.
func goneIf(err, sort error) error {
	if errors.Is(err, sort) {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	return err
}

func (f *FD) processStart(pid int) (uint64, error) {
	path := fmt.Sprintf("/proc/%d/stat", pid)
	b, err := f.rm.System().ReadFile(path)
	if err != nil {
		return 0, err
	}
	start, _, err := journal.ParseStart(path, b)
	return start, err
}

// find borrows the process's descriptor that owns the target's client: RM
// answers a question about the client's objects through no other.
func (f *FD) find(m *meeting, pid int) error {
	t := m.target
	f.mu.Lock()
	hint, hinted := f.hints[t.Object.Client]
	f.mu.Unlock()
	hinted = hinted && pid == t.PID
	var fds []int
	if hinted {
		fds = append(fds, hint)
	}
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	names, err := f.rm.System().ReadDir(dir)
	if err != nil && !hinted {
		return fmt.Errorf("%w: its descriptors cannot be listed: %w", ErrGone, err)
	}
	for _, n := range names {
		fd, err := strconv.Atoi(n)
		if err != nil || hinted && fd == hint {
			continue
		}
		if l, err := f.rm.System().ReadLink(dir + "/" + n); err == nil && l == rm.ControlPath {
			fds = append(fds, fd)
		}
	}
	slices.Sort(fds[min(len(fds), b2i(hinted)):])
	var last error
	for _, fd := range fds {
		b, err := m.process.Borrow(fd)
		if err != nil {
			last = goneIf(err, rmdev.ErrGone)
			continue
		}
		class, st, err := handleInfo(b, t.Object.Client, t.Object.Handle, rm.HandleInfoClass)
		switch {
		case err != nil:
			b.Close()
			last = err
			continue
		case st == rm.StatusInvalidClient:
			b.Close()
			continue
		case st != 0:
			b.Close()
			return fmt.Errorf("%w: its client has no object %s any more: %s", ErrGone, t.Object.Handle, rm.StatusName(st))
		case class != rm.ClassTSG:
			b.Close()
			return fmt.Errorf("%w: object %s is of class %s, no TSG", ErrReplaced, t.Object, rm.ClassName(uint32(class)))
		}
		m.borrowed = b
		f.mu.Lock()
		if pid == t.PID {
			f.hints[t.Object.Client] = fd
		}
		f.mu.Unlock()
		return nil
	}
	if last != nil {
		return last
	}
	return fmt.Errorf("%w: %w (a kernel client's, or a process that shares it has it now)", ErrGone, errNoFile)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func handleInfo(b *rmdev.Borrowed, client, object sched.Handle, index uint32) (result uint64, status uint32, err error) {
	p := rm.HandleInfoParams{Object: uint32(object), Index: index}
	status, err = b.Control(uint32(client), uint32(client), rm.CtrlHandleInfo, rmdev.Bytes(&p))
	return p.Result, status, err
}

// identify compares what RM says of the TSG with what was meant.
func (m *meeting) identify(s *session) error {
	t := &m.target
	client, object := uint32(t.Object.Client), uint32(t.Object.Handle)
	device, st, err := handleInfo(m.borrowed, t.Object.Client, t.Object.Handle, rm.HandleInfoParent)
	if err != nil || st != 0 {
		return fmt.Errorf("%w: its device: %s", ErrGone, answer(st, err))
	}
	m.device = uint32(device)
	var info rm.TSGInfoParams
	if st, err = m.borrowed.Control(client, object, rm.CtrlTSGInfo, rmdev.Bytes(&info)); err != nil || st != 0 {
		return fmt.Errorf("%w: its TSG number: %s", ErrGone, answer(st, err))
	}
	if t.TSG >= 0 && info.TSG != uint32(t.TSG) {
		return fmt.Errorf("%w: %s is TSG %d now, not %d", ErrReplaced, t.Object, info.TSG, t.TSG)
	}
	if !s.layout.UniqueIDs {
		m.warnings = append(m.warnings, "driver "+s.layout.Driver+" gives TSGs no ids that are never reused: that this is still the same TSG rests on its process's start time, its handle and its number")
		return nil
	}
	ids := rm.TSGUniqueIDsParams{Client: client, Object: object}
	if st, err = s.dev.ControlOn(s.dev.Client(), m.gpu.Subdevice, rm.CtrlTSGUniqueIDs, rmdev.Bytes(&ids)); err != nil || st != 0 {
		return fmt.Errorf("%w: its unique ids: %s", ErrGone, answer(st, err))
	}
	if t.UniqueID != nil && *t.UniqueID != ids.TSG {
		return fmt.Errorf("%w: it has the same handle and number and another unique id (%d, not %d): a restarted copy", ErrReplaced, ids.TSG, *t.UniqueID)
	}
	now := ids.Contexts[:min(ids.Channels, uint32(len(ids.Contexts)))]
	if err := sameContexts(*t, now); err != nil {
		return err
	}
	t.UniqueID, t.Contexts = sched.Ptr(ids.TSG), slices.Clone(now)
	return nil
}

// sameContexts compares a TSG's contexts with those that it was known by, where
// its unique id, which is not reused, is not known: one that is there still
// shows that it is the same. A process frees channels of a TSG and makes others
// as it likes.
func sameContexts(t sched.Target, now []uint32) error {
	if t.UniqueID != nil || len(t.Contexts) == 0 {
		return nil
	}
	for _, c := range t.Contexts {
		if slices.Contains(now, c) {
			return nil
		}
	}
	return fmt.Errorf("%w: none of the contexts that it was known by is its any more (%x)", ErrReplaced, t.Contexts[0])
}
