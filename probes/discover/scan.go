//go:build linux

package discover

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"tsgtop/internal/rm"
	"tsgtop/internal/rmdev"
	"tsgtop/internal/sched"
)

// scan is one look at clients, files and objects.
type scan struct {
	d     *Discoverer
	inv   sched.Inventory
	spent time.Duration // on processes
	procs int
	mps   map[int]bool         // by pid: an MPS server
	index map[uint32]int       // of clients in inv.Clients, until it is ordered
	lived map[uint32]time.Time // when a client was last known to live
}

// stillLives bounds the time from asking whether a client lives to asking it
// something: a question to one that has ended is a line in the kernel log.
const stillLives = 100 * time.Microsecond

// lives tells whether a client may be asked something.
func (s *scan) lives(client uint32) bool {
	if time.Since(s.lived[client]) < stillLives {
		return true
	}
	if live, _ := alive(s.d.dev, client); !live {
		return false
	}
	s.lived[client] = time.Now()
	return true
}

func (d *Discoverer) newScan() *scan {
	return &scan{d: d, inv: sched.Inventory{Start: d.opts.Now()}, mps: map[int]bool{}, index: map[uint32]int{}, lived: map[uint32]time.Time{}}
}

// full looks at everything. deep walks the rest of the ring at once where a
// process has no client. d.mu is held.
func (d *Discoverer) full(ctx context.Context, deep bool) (sched.Inventory, error) {
	s := d.newScan()
	if err := d.open(); err != nil {
		return s.inv, fmt.Errorf("look for TSGs that exist already: %w", err)
	}
	d.refused = ""
	before := d.ring.known
	if err := d.look(ctx); err != nil {
		return s.inv, fmt.Errorf("look for the machine's RM clients: %w", err)
	}
	if why := d.foreignNamespace(); why != "" {
		s.inv.Why, s.inv.UnattributedClients = why, len(d.ring.known)
		return s.end(), nil
	}
	procs, err := d.processes(nil)
	if err != nil {
		return s.inv, err
	}
	files, compared := d.files(procs)
	s.procs, s.mps = len(procs), mpsServers(procs)
	hints := d.news.allHints()
	try := func(clients []uint32) (left []uint32) {
		return s.attribute(ctx, files, compared, clients, func(f *openFile, c uint32) bool {
			// One that all files of the last look have refused is tried on new files only.
			return !d.tried[c] || !d.seen[f.key()]
		}, hints)
	}
	left := try(slices.Clone(d.ring.known))
	d.clientless = 0
	if !d.ring.whole {
		d.clientless = s.clientless(procs)
	}
	if d.clientless > 0 && deep {
		had := slices.Clone(d.ring.known)
		if err := d.lookBehind(ctx, ringSize); err != nil {
			return s.inv, fmt.Errorf("look for RM clients behind a wrap of their index: %w", err)
		}
		behind := slices.DeleteFunc(slices.Clone(d.ring.known), func(c uint32) bool { return slices.Contains(had, c) })
		left = append(left, try(behind)...)
	}
	if err := ctx.Err(); err != nil {
		return s.inv, err
	}
	s.gone(before)
	d.remember(files, left)
	s.inv.UnattributedClients = len(left)
	s.inv.UnattributedChannels = s.unattributedChannels()
	s.inv.Complete = d.ring.whole && !s.inv.Partial && d.refused == ""
	switch {
	case d.refused != "":
		s.inv.Why = d.refused
	case d.clientless > 0 && !d.ring.whole:
		s.inv.Why = fmt.Sprintf("%d processes hold the driver open and have no client among the newer ones: the older ones are still being looked at", d.clientless)
	case s.inv.UnattributedClients+s.inv.UnattributedChannels > 0:
		s.inv.Why = "no process's file has them: the kernel's own (nvidia-uvm, nvidia-modeset)"
	}
	return s.end(), nil
}

// some looks at some clients. pids, where known, are processes in which their
// files are looked for first. d.mu is held.
func (d *Discoverer) some(ctx context.Context, hints map[sched.Handle][]sched.Handle, pids []int) (sched.Inventory, error) {
	s := d.newScan()
	if err := d.open(); err != nil {
		return s.inv, fmt.Errorf("look at clients again: %w", err)
	}
	var want []uint32
	for c := range hints {
		if d.rm.Own(uint32(c)) {
			continue
		}
		live, err := alive(d.dev, uint32(c))
		switch {
		case err != nil:
			return s.inv, fmt.Errorf("ask whether client %v lives: %w", c, err)
		case live:
			want = append(want, uint32(c))
		default:
			s.inv.Gone = append(s.inv.Gone, c)
			d.forget(uint32(c))
		}
	}
	d.ring.add(want...)
	slices.Sort(want)
	slices.Sort(s.inv.Gone)
	if why := d.foreignNamespace(); why != "" {
		s.inv.Why, s.inv.UnattributedClients = why, len(want)
		return s.end(), nil
	}
	for _, c := range want {
		if o, ok := d.owners[c]; ok {
			pids = append(pids, o.pid)
		}
	}
	where := [][]int{nil} // all processes
	if len(pids) > 0 {
		where = [][]int{pids, nil}
	}
	left := want
	for _, pids := range where {
		if len(left) == 0 {
			break
		}
		procs, err := d.processes(pids)
		if err != nil {
			return s.inv, err
		}
		s.procs += len(procs)
		maps.Copy(s.mps, mpsServers(procs))
		files, compared := d.files(procs)
		left = s.attribute(ctx, files, compared, left, func(*openFile, uint32) bool { return true }, hints)
	}
	s.inv.UnattributedClients = len(left)
	return s.end(), ctx.Err()
}

// end stamps and orders the inventory.
func (s *scan) end() sched.Inventory {
	inv := &s.inv
	inv.End = s.d.opts.Now()
	if s.procs > 0 {
		inv.PerProcessNS = int64(s.spent) / int64(s.procs)
	}
	slices.Sort(inv.Gone)
	inv.Gone = slices.Compact(inv.Gone)
	slices.SortFunc(inv.Clients, func(a, b sched.FoundClient) int { return int(int64(a.Client) - int64(b.Client)) })
	return *inv
}

// gone says which of the clients known before are no more.
func (s *scan) gone(before []uint32) {
	for _, c := range before {
		if _, still := slices.BinarySearch(s.d.ring.known, c); !still {
			s.inv.Gone = append(s.inv.Gone, sched.Handle(c))
			s.d.news.forget(c)
			delete(s.d.owners, c)
		}
	}
}

func (d *Discoverer) forget(client uint32) {
	d.news.forget(client)
	delete(d.owners, client)
	d.ring.known = slices.DeleteFunc(d.ring.known, func(c uint32) bool { return c == client })
}

// remember notes which clients are of none of the files.
func (d *Discoverer) remember(files []*openFile, left []uint32) {
	clear(d.seen)
	for _, f := range files {
		d.seen[f.key()] = true
	}
	clear(d.tried)
	for _, c := range left {
		d.tried[c] = true
	}
}

func mpsServers(procs []process) map[int]bool {
	mps := map[int]bool{}
	for _, p := range procs {
		if p.mps {
			mps[p.pid] = true
		}
	}
	return mps
}

// clientless counts the processes that hold the driver open and have no client,
// as one has whose clients are older than the last wrap.
func (s *scan) clientless(procs []process) int {
	has := map[int]bool{}
	for _, c := range s.inv.Clients {
		for _, pid := range c.PIDs {
			has[pid] = true
		}
	}
	n := 0
	for _, p := range procs {
		if !has[p.pid] {
			n++
		}
	}
	return n
}

// attribute finds out which of the clients are of which file, and what they
// have. It returns those that are of none. worth says whether it is worth
// trying a client on a file.
func (s *scan) attribute(ctx context.Context, files []*openFile, compared bool, clients []uint32,
	worth func(*openFile, uint32) bool, hints map[sched.Handle][]sched.Handle) (left []uint32) {
	d := s.d
	began := time.Now()
	defer func() { s.spent += time.Since(began) }()
	// Clients that a file had at the last look are tried on it first.
	expected := map[holder][]uint32{}
	for _, c := range clients {
		if o, ok := d.owners[c]; ok {
			expected[o] = append(expected[o], c)
		}
	}
	for _, f := range files {
		if list := expected[f.holder]; len(list) > 0 && ctx.Err() == nil {
			s.look(f, list, hints)
		}
	}
	for _, f := range files {
		var candidates []uint32
		for _, c := range clients {
			_, found := s.index[c]
			switch {
			case found && (compared || d.owners[c] == f.holder):
			case found: // the same file may be here again, unrecognised
				candidates = append(candidates, c)
			case worth(f, c):
				candidates = append(candidates, c)
			}
		}
		if len(candidates) > 0 && ctx.Err() == nil {
			s.look(f, candidates, hints)
		}
	}
	var ended []uint32
	for _, c := range clients {
		if _, found := s.index[c]; found {
			continue
		}
		delete(d.owners, c)
		if s.lives(c) {
			left = append(left, c)
		} else {
			ended = append(ended, c)
		}
	}
	for _, c := range ended {
		s.inv.Gone = append(s.inv.Gone, sched.Handle(c))
		d.forget(c)
	}
	return left
}

// look borrows a file once, learns which of the candidates are its clients, and
// walks through those.
func (s *scan) look(f *openFile, candidates []uint32, hints map[sched.Handle][]sched.Handle) {
	d := s.d
	b := s.borrow(f)
	if b == nil {
		return
	}
	defer func() { b.Close() }()
	held := time.Now()
	for _, c := range candidates {
		if time.Since(held) > 2*d.opts.Budget {
			// Long enough: what we hold keeps a dead process's memory.
			again := s.borrow(f)
			if again == nil {
				return
			}
			b.Close()
			b, held = again, time.Now()
		}
		if !s.lives(c) {
			continue
		}
		p := rm.HandleInfoParams{Object: c, Index: rm.HandleInfoClass}
		if status, err := b.Control(c, c, rm.CtrlHandleInfo, rmdev.Bytes(&p)); err != nil {
			return
		} else if status != rm.StatusOK {
			continue
		}
		if i, found := s.index[c]; found {
			fc := &s.inv.Clients[i]
			fc.PIDs = append(fc.PIDs, f.pids()...)
			slices.Sort(fc.PIDs)
			fc.PIDs = slices.Compact(fc.PIDs)
			continue
		}
		found, gone := d.objects(b, c, hints[sched.Handle(c)])
		if gone {
			continue // it ended under our hands: the next look will say so
		}
		d.owners[c] = f.holder
		s.add(b, f, c, found)
	}
}

// borrow borrows a file from whoever of its holders still lives; nil where
// nobody does.
func (s *scan) borrow(f *openFile) *rmdev.Borrowed {
	for _, h := range append([]holder{f.holder}, f.others...) {
		b, err := s.d.rm.Borrow(h.pid, h.fd)
		if err == nil {
			return b
		}
		if !errors.Is(err, rmdev.ErrGone) && s.d.refused == "" {
			s.d.refused = err.Error()
		}
	}
	return nil
}

// unattributedChannels counts the channels on runlist 0 of each GPU that no
// client was found to have: the kernel's own, and those of processes that could
// not be looked into. RM tells it for runlist 0 only.
func (s *scan) unattributedChannels() int {
	n := 0
	for _, g := range s.d.gpus {
		if g.attached == nil {
			continue
		}
		var p rm.AllocatedChannelsParams
		if err := s.d.dev.Control(g.attached.Subdevice, rm.CtrlAllocatedChannels, rmdev.Bytes(&p)); err != nil {
			continue
		}
		shared := s.sharedNumbers(g.Index)
		for _, c := range s.inv.Channels {
			if c.ChID == nil || c.Runlist == nil || s.gpuOf(c) != g.Index {
				continue
			}
			if *c.Runlist == 0 || shared {
				p.Mask[*c.ChID/32%uint32(len(p.Mask))] &^= 1 << (*c.ChID % 32)
			}
		}
		for _, word := range p.Mask {
			for ; word != 0; word &= word - 1 {
				n++
			}
		}
	}
	return n
}

// sharedNumbers tells whether the runlists of a GPU share one space of channel
// numbers: no number is met on two of them. Before Ampere they do by design; on
// an H200 they did as well, and the mask of runlist 0 held all of them.
func (s *scan) sharedNumbers(gpu int) bool {
	on := map[uint32]uint32{}
	for _, c := range s.inv.Channels {
		if c.ChID == nil || c.Runlist == nil || s.gpuOf(c) != gpu {
			continue
		}
		if r, met := on[*c.ChID]; met && r != *c.Runlist {
			return false
		}
		on[*c.ChID] = *c.Runlist
	}
	return true
}
