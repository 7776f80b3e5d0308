package sched

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"tsgtop/internal/rm"
)

// world is a machine whose truth is known: what its processes did, when, and
// what a scan would find at any instant.
type world struct {
	r     *rand.Rand
	now   Time
	calls []Call
	live  map[Object]*thing
	past  []*thing
	next  uint32 // context ids, TSG numbers: never reused
	took  Time   // when the last call took effect: between its start and its end
}

type thing struct {
	key        Object
	class      uint32
	parent     Handle
	pid        int
	born, gone Time // gone 0: it lives
	context    uint32
	sets       []timesliceAt // value until then
	slice      uint64
}

func (w *world) do(c Call) {
	c.Start = w.now
	w.now += Time(1 + w.r.Int64N(int64(ms)))
	c.End = w.now
	w.took = c.Start + Time(w.r.Int64N(int64(c.End-c.Start)))
	w.now += Time(1 + w.r.Int64N(int64(ms)))
	w.calls = append(w.calls, c)
}

func (w *world) alloc(pid int, client, parent, object Handle, class uint32) {
	key := Object{client, object}
	p := &Params{}
	x := &thing{key: key, class: class, parent: parent, pid: pid, slice: defaultTimeslice}
	w.next++
	x.context = w.next
	switch {
	case class == rm.ClassDevice:
		p.DeviceInstance = Ptr(uint32(0))
	case class == rm.ClassTSG:
		p.Engine = Ptr(uint32(1))
	case rm.IsChannelClass(class):
		p.Context, p.Engine = Ptr(x.context), Ptr(uint32(1))
	}
	w.do(Call{PID: pid, Kind: CallAlloc, Number: class, Client: client, Parent: parent, Object: object, Params: p})
	x.born = w.took
	w.live[key] = x
}

func (w *world) free(key Object, pid int) {
	w.do(Call{PID: pid, Kind: CallFree, Client: key.Client, Object: key.Handle})
	var drop func(key Object)
	drop = func(key Object) {
		x := w.live[key]
		x.gone = w.took
		w.past = append(w.past, x)
		delete(w.live, key)
		for k, y := range w.live {
			if k.Client == key.Client && (y.parent == key.Handle && k != key) && w.live[k] != nil {
				drop(k)
			}
		}
	}
	drop(key)
}

func (w *world) pick(class func(uint32) bool) *thing {
	var l []*thing
	for _, x := range w.live {
		if class(x.class) {
			l = append(l, x)
		}
	}
	if len(l) == 0 {
		return nil
	}
	sort.Slice(l, func(i, j int) bool { return compareObjects(l[i].key, l[j].key) < 0 })
	return l[w.r.IntN(len(l))]
}

func is(class uint32) func(uint32) bool { return func(c uint32) bool { return c == class } }

func (w *world) step() {
	clients := []Handle{0xc1d00001, 0xc1d00002, 0xc1d00003}
	handles := []Handle{0x5c000010, 0x5c000011, 0x5c000012} // few, so that they are reused
	switch w.r.IntN(10) {
	case 0:
		c := clients[w.r.IntN(len(clients))]
		if key := (Object{c, c}); w.live[key] == nil {
			w.alloc(400+w.r.IntN(5), c, 0, c, rm.ClassClient)
			w.alloc(w.live[key].pid, c, c, hDevice, rm.ClassDevice)
		}
	case 1, 2, 3:
		if d := w.pick(is(rm.ClassDevice)); d != nil {
			h := handles[w.r.IntN(len(handles))]
			if w.live[Object{d.key.Client, h}] == nil {
				w.alloc(d.pid, d.key.Client, d.key.Handle, h, rm.ClassTSG)
			}
		}
	case 4, 5:
		if g := w.pick(is(rm.ClassTSG)); g != nil {
			h := handles[w.r.IntN(len(handles))] + 0x100
			if w.live[Object{g.key.Client, h}] == nil {
				w.alloc(g.pid, g.key.Client, g.key.Handle, h, rm.ClassChannelHopper)
			}
		}
	case 6:
		if x := w.pick(func(c uint32) bool { return c == rm.ClassTSG || rm.IsChannelClass(c) }); x != nil {
			w.free(x.key, x.pid)
		}
	case 7:
		if x := w.pick(is(rm.ClassClient)); x != nil && w.r.IntN(3) == 0 {
			w.free(x.key, x.pid)
		}
	default:
		if g := w.pick(is(rm.ClassTSG)); g != nil {
			v := uint64(100 * (1 + w.r.IntN(50)))
			w.do(Call{PID: g.pid, Kind: CallControl, Number: rm.CtrlTSGSetTimeslice, Client: g.key.Client, Object: g.key.Handle, Params: &Params{Timeslice: &v}})
			g.sets = append(g.sets, timesliceAt{g.slice, w.took})
			g.slice = v
		}
	}
}

// scan finds, between two instants, each thing as it was at some instant between them.
// Not complete: it looks for some clients only.
func (w *world) scan(start, end Time, complete bool) Inventory {
	v := Inventory{Start: start, End: end, Complete: complete}
	wanted := map[Handle]bool{}
	for _, c := range []Handle{0xc1d00001, 0xc1d00002, 0xc1d00003} {
		wanted[c] = complete || w.r.IntN(2) == 0
	}
	all := slices.Clone(w.past)
	for _, x := range w.live {
		all = append(all, x)
	}
	sort.Slice(all, func(i, j int) bool {
		return compareObjects(all[i].key, all[j].key) < 0 || all[i].key == all[j].key && all[i].born < all[j].born
	})
	// First the clients, then what is in those that were found.
	sort.SliceStable(all, func(i, j int) bool { return all[i].class == rm.ClassClient && all[j].class != rm.ClassClient })
	seen := map[Object]bool{}
	for _, x := range all {
		if client := (Object{x.key.Client, x.key.Client}); !wanted[x.key.Client] || x.class != rm.ClassClient && !seen[client] {
			continue
		}
		at := start + Time(w.r.Int64N(int64(end-start)))
		if x.born > at || x.gone != 0 && x.gone <= at || seen[x.key] {
			continue
		}
		seen[x.key] = true
		switch {
		case x.class == rm.ClassClient:
			v.Clients = append(v.Clients, FoundClient{Client: x.key.Client, PID: x.pid, PIDs: []int{x.pid}})
		case x.class == rm.ClassTSG:
			slice := x.slice
			for i := len(x.sets) - 1; i >= 0 && x.sets[i].until > at; i-- {
				slice = x.sets[i].us
			}
			v.TSGs = append(v.TSGs, FoundTSG{Object: x.key, Device: x.parent, GPU: 0, Runlist: 0, Number: Ptr(x.context), Timeslice: Ptr(slice), PID: x.pid})
		case rm.IsChannelClass(x.class):
			v.Channels = append(v.Channels, FoundChannel{Object: x.key, TSG: x.parent, Class: x.class, Context: Ptr(x.context)})
		}
	}
	for c, looked := range wanted {
		if looked && !seen[Object{c, c}] {
			v.Gone = append(v.Gone, c)
		}
	}
	slices.Sort(v.Gone)
	return v
}

// truth writes what the tree must say. A TSG's number is only known from scans.
func (w *world) truth() []string {
	var out []string
	for _, x := range w.live {
		if x.class != rm.ClassTSG {
			continue
		}
		var ch []string
		for _, y := range w.live {
			if y.key.Client == x.key.Client && y.parent == x.key.Handle && rm.IsChannelClass(y.class) {
				ch = append(ch, fmt.Sprintf("%s ctx %x", y.key.Handle, y.context))
			}
		}
		slices.Sort(ch)
		out = append(out, fmt.Sprintf("%s pid %d %d %v", x.key, x.pid, x.slice, ch))
	}
	slices.Sort(out)
	return out
}

func told(s *State) []string {
	var out []string
	for _, l := range tree(s) {
		l = l[strings.Index(l, " ")+1:]
		for _, from := range []ValueFrom{FromSeen, FromRead, FromDefault} {
			l = strings.Replace(l, " "+string(from), "", 1)
		}
		out = append(out, l)
	}
	slices.Sort(out)
	return out
}

// However the results of scans and the records of calls overtake each other,
// the tree in the end is the truth.
func TestOrderOfStreamAndScansDoesNotMatter(t *testing.T) {
	for seed := range uint64(400) {
		w := &world{r: rand.New(rand.NewPCG(seed, 9)), now: t0, live: map[Object]*thing{}}
		for range 120 {
			w.step()
		}
		// Scans, each delivered somewhat before or after the calls of its time.
		type delivery struct {
			at Time
			ev Event
		}
		var ds []delivery
		for _, c := range w.calls {
			ds = append(ds, delivery{c.End, c})
		}
		for range 6 {
			start := t0 + Time(w.r.Int64N(int64(w.now-t0)))
			end := start + Time(1+w.r.Int64N(int64(20*ms)))
			ds = append(ds, delivery{end - 15*ms + Time(w.r.Int64N(int64(60*ms))), w.scan(start, end, w.r.IntN(2) == 0)})
		}
		late := w.r.IntN(len(w.calls)) // from here on the stream is there
		for _, all := range []bool{true, false} {
			use := slices.Clone(ds)
			if !all { // the stream began late: then a scan after it must have found the rest
				use = slices.DeleteFunc(use, func(d delivery) bool {
					c, isCall := d.ev.(Call)
					return isCall && c.Start < w.calls[late].Start
				})
				start := w.calls[late].Start + 1
				use = append(use, delivery{w.now, w.scan(start, start+Time(1+w.r.Int64N(int64(20*ms))), true)})
				use = append(use, delivery{w.now + second, w.scan(w.now+1, w.now+20*ms, true)})
			}
			sort.SliceStable(use, func(i, j int) bool { return use[i].at < use[j].at })
			s := NewState(Options{})
			s.Apply(h200())
			for _, d := range use {
				s.Apply(d.ev)
			}
			if got, want := told(s), w.truth(); !slices.Equal(got, want) {
				t.Fatalf("seed %d, whole stream %t:\n%s\nwant:\n%s", seed, all, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			for _, v := range s.Snapshot(SnapshotOptions{}).TSGs {
				if x := w.live[v.Object]; v.ID.TSG != Unknown && v.ID.TSG != int(x.context) {
					t.Fatalf("seed %d, whole stream %t: %s has the number %d, want %d", seed, all, v.Object, v.ID.TSG, x.context)
				}
			}
		}
	}
}
