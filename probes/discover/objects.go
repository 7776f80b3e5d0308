//go:build linux

package discover

import (
	"slices"
	"time"

	"tsgtop/internal/rm"
	"tsgtop/internal/rmdev"
	"tsgtop/internal/sched"
)

// firstCUDAHandle is where libcuda begins to hand out the handles of its objects.
const firstCUDAHandle = 0x5c000000

// object is an object of a client, of a class that matters.
type object struct {
	handle, class, parent uint32
}

// objects is what a walk through one client found.
type objects struct {
	devices, subdevices, tsgs, channels []object
	engines                             []object // compute, graphics and copy objects; parent not asked
	mps                                 bool
	cut                                 bool // the walk ended before it was through
}

// walk asks about the objects of one client through its borrowed file.
type walk struct {
	b        *rmdev.Borrowed
	client   uint32
	opts     *Options
	deadline time.Time
	asked    map[uint32]bool
	found    objects
	gone     bool // the client ended under our hands
}

// info asks for the class or the parent of an object.
func (w *walk) info(handle, index uint32) (uint32, bool) {
	p := rm.HandleInfoParams{Object: handle, Index: index}
	status, err := w.b.Control(w.client, w.client, rm.CtrlHandleInfo, rmdev.Bytes(&p))
	if err != nil || status == rm.StatusInvalidClient {
		w.gone = true
		return 0, false
	}
	return uint32(p.Result), status == rm.StatusOK
}

// child asks for the first child of an object that has a class of RM's own
// numbering; 0 where there is none. known is false where RM does not tell.
func (w *walk) child(parent, class uint32) (handle uint32, known bool) {
	if w.gone {
		return 0, false
	}
	p := rm.ChildHandleParams{Parent: parent, Class: class}
	status, err := w.b.Control(w.client, w.client, rm.CtrlChildHandle, rmdev.Bytes(&p))
	switch {
	case err != nil || status == rm.StatusInvalidClient:
		w.gone = true
		return 0, false
	case status == rm.StatusOK:
		return p.Object, true
	case status == rm.StatusObjectNotFound:
		return 0, true
	}
	return 0, false
}

// ask looks at one handle and keeps it if its class matters. It tells whether
// there is an object.
func (w *walk) ask(handle uint32) bool {
	if w.asked[handle] || w.gone {
		return false
	}
	w.asked[handle] = true
	class, ok := w.info(handle, rm.HandleInfoClass)
	if !ok {
		return false
	}
	o := object{handle: handle, class: class}
	var list *[]object
	switch {
	case class == rm.ClassDevice:
		list = &w.found.devices
	case class == rm.ClassSubdevice:
		list = &w.found.subdevices
	case class == rm.ClassTSG:
		list = &w.found.tsgs
	case rm.IsChannelClass(class):
		list = &w.found.channels
	case class == rm.ClassMPS:
		w.found.mps = true
		return true
	case isEngineClass(class):
		w.found.engines = append(w.found.engines, o)
		return true
	default:
		return true
	}
	if o.parent, ok = w.info(handle, rm.HandleInfoParent); ok {
		*list = append(*list, o)
	}
	return true
}

// isEngineClass tells whether objects of the class belong to a channel and say
// which kind of engine it feeds.
func isEngineClass(class uint32) bool { return isGraphicsClass(class) || isCopyClass(class) }

func isGraphicsClass(class uint32) bool {
	return class > 0x9000 && class < 0x10000 && (class&0xff == 0xc0 || class&0xff == 0x97)
}

func isCopyClass(class uint32) bool { return class > 0xa000 && class < 0x10000 && class&0xff == 0xb5 }

// from walks handles in one direction until so many in a row are no object.
func (w *walk) from(handle uint32, step int32, run int) {
	misses := 0
	for misses < run && !w.gone {
		if w.asked[handle] {
			// Walked before, from elsewhere.
			misses++
		} else {
			if len(w.asked) >= w.opts.Objects || (len(w.asked)%64 == 0 && time.Now().After(w.deadline)) {
				w.found.cut = true
				return
			}
			if w.ask(handle) {
				misses = 0
			} else {
				misses++
			}
		}
		next := handle + uint32(step)
		if (step > 0) != (next > handle) {
			return
		}
		handle = next
	}
}

// around walks both ways from a handle that is known to be an object.
func (w *walk) around(handle uint32) {
	if w.asked[handle] {
		return
	}
	const run = 64
	w.from(handle, 1, run)
	w.from(handle-1, -1, run)
}

// objects walks through a client. hints are handles that the stream has told.
func (d *Discoverer) objects(b *rmdev.Borrowed, client uint32, hints []sched.Handle) (found objects, gone bool) {
	w := &walk{b: b, client: client, opts: &d.opts, asked: map[uint32]bool{}, deadline: time.Now().Add(d.opts.Budget)}
	device, known := w.child(client, rm.InternalClassDevice)
	if known && device == 0 && len(hints) == 0 {
		return w.found, w.gone // no device, so nothing of what we look for
	}
	w.from(firstCUDAHandle, 1, d.opts.MissRun)
	for _, h := range hints {
		w.around(uint32(h))
	}
	if device != 0 {
		w.around(device)
	}
	// Objects of the devices that lie elsewhere: RM tells the first of a class,
	// and its neighbours are found from there.
	for i := 0; i < len(w.found.devices) && !w.gone; i++ {
		dev := w.found.devices[i].handle
		for _, class := range []uint32{rm.InternalClassSubdevice, rm.InternalClassTSG, rm.InternalClassChannel} {
			if h, _ := w.child(dev, class); h != 0 {
				w.around(h)
			}
		}
	}
	for i := 0; i < len(w.found.tsgs) && !w.gone; i++ {
		if h, _ := w.child(w.found.tsgs[i].handle, rm.InternalClassChannel); h != 0 {
			w.around(h)
		}
	}
	byHandle := func(a, b object) int { return int(int64(a.handle) - int64(b.handle)) }
	for _, list := range []*[]object{&w.found.devices, &w.found.subdevices, &w.found.tsgs, &w.found.channels} {
		slices.SortFunc(*list, byHandle)
	}
	return w.found, w.gone
}
