//go:build linux

package rmdev

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
	"unsafe"

	"tsgtop/internal/rm"
)

// Where a Caller keeps the ioctl's argument and the parameters it points to.
const (
	argOffset    = 0
	paramsOffset = 4096
	arenaSize    = 32 << 10
	// MaxParams is the longest parameter block that a Caller can carry, in bytes.
	MaxParams = arenaSize - paramsOffset
)

// Caller issues RM calls with argument and parameters in memory that never
// moves, at addresses that are known before a call is made: a witness in the
// kernel that knows the thread, the descriptor and these two addresses can tell
// exactly this call from all others. Whoever needs that locks the OS thread
// first. One call at a time; the methods wait for each other.
type Caller struct {
	sys System
	mu  sync.Mutex
	mem []byte
}

// NewCaller gives a Caller of its own to who needs known addresses.
func (r *RM) NewCaller() (*Caller, error) { return newCaller(r.sys) }

func newCaller(sys System) (*Caller, error) {
	mem, err := arena(arenaSize)
	if err != nil {
		return nil, err
	}
	return &Caller{sys: sys, mem: mem}, nil
}

// Addresses are those of the ioctl's argument and of the parameters, the same
// for all calls of this Caller.
func (c *Caller) Addresses() (arg, params uintptr) {
	base := uintptr(unsafe.Pointer(unsafe.SliceData(c.mem)))
	return base + argOffset, base + paramsOffset
}

// Close gives the memory back. The Caller makes no more calls.
func (c *Caller) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mem == nil {
		return nil
	}
	mem := c.mem
	c.mem = nil
	return freeArena(mem)
}

// Bytes is the memory of a layout of package rm, to be sent and read back in
// place. The layouts have their padding written out and both supported machines
// are little-endian, so that this is what the driver wants.
func Bytes[T any](layout *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(layout)), unsafe.Sizeof(*layout))
}

// argument zeroes the argument's place and gives it as a layout.
func argument[T any](c *Caller) *T {
	arg := (*T)(unsafe.Pointer(unsafe.SliceData(c.mem[argOffset:])))
	*arg = *new(T)
	return arg
}

// putParams copies the parameters in and gives the address that goes into the
// argument: 0 for none.
func (c *Caller) putParams(params []byte) (addr uint64, err error) {
	if c.mem == nil {
		return 0, errors.New("the caller is closed")
	}
	if len(params) > MaxParams {
		return 0, fmt.Errorf("%d bytes of parameters are more than the %d that fit", len(params), MaxParams)
	}
	if len(params) == 0 {
		return 0, nil
	}
	copy(c.mem[paramsOffset:], params)
	_, p := c.Addresses()
	return uint64(p), nil
}

func (c *Caller) getParams(params []byte) { copy(params, c.mem[paramsOffset:paramsOffset+len(params)]) }

func (c *Caller) ioctl(fd int, esc uint32, size uintptr) syscall.Errno {
	return c.sys.Ioctl(fd, rm.Ioctl(esc, uint32(size)), unsafe.Pointer(unsafe.SliceData(c.mem[argOffset:])))
}

// Control issues an RM control on an object of a client through an open
// /dev/nvidiactl. params go in and come back in place. status is RM's answer;
// err says that the call did not get as far as one.
func (c *Caller) Control(fd int, client, object, cmd uint32, params []byte) (status uint32, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	addr, err := c.putParams(params)
	if err != nil {
		return 0, err
	}
	arg := argument[rm.ControlParams](c)
	arg.Client, arg.Object, arg.Cmd = client, object, cmd
	arg.Params, arg.ParamsSize = addr, uint32(len(params))
	if e := c.ioctl(fd, rm.EscControl, unsafe.Sizeof(*arg)); e != 0 {
		return 0, e
	}
	c.getParams(params)
	return arg.Status, nil
}

// Alloc allocates an object. handle 0 lets RM choose; the handle that it has is
// returned. params, which may be empty, go in and come back in place.
func (c *Caller) Alloc(fd int, client, parent, handle, class uint32, params []byte) (got, status uint32, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	addr, err := c.putParams(params)
	if err != nil {
		return 0, 0, err
	}
	arg := argument[rm.Alloc64Params](c)
	arg.Client, arg.Parent, arg.Object, arg.Class = client, parent, handle, class
	arg.Params, arg.ParamsSize = addr, uint32(len(params))
	if e := c.ioctl(fd, rm.EscAlloc, unsafe.Sizeof(*arg)); e != 0 {
		return 0, 0, e
	}
	c.getParams(params)
	return arg.Object, arg.Status, nil
}

// Free frees an object and everything under it.
func (c *Caller) Free(fd int, client, parent, object uint32) (status uint32, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.putParams(nil); err != nil {
		return 0, err
	}
	arg := argument[rm.FreeParams](c)
	arg.Client, arg.Parent, arg.Object = client, parent, object
	if e := c.ioctl(fd, rm.EscFree, unsafe.Sizeof(*arg)); e != 0 {
		return 0, e
	}
	return arg.Status, nil
}

// mapMemory prepares the descriptor mapFD for one mmap of a memory object.
func (c *Caller) mapMemory(fd int, client, device, memory uint32, length uint64, mapFD int) (status uint32, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.putParams(nil); err != nil {
		return 0, err
	}
	arg := argument[rm.MapMemoryParams](c)
	arg.Client, arg.Device, arg.Memory = client, device, memory
	arg.Length, arg.Flags, arg.FD = length, rm.MapReadOnly, int32(mapFD)
	if e := c.ioctl(fd, rm.EscMapMemory, unsafe.Sizeof(*arg)); e != 0 {
		return 0, e
	}
	return arg.Status, nil
}

// Escape issues any other of the driver's ioctls; arg goes in and comes back.
func (c *Caller) Escape(fd int, esc uint32, arg []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mem == nil {
		return errors.New("the caller is closed")
	}
	if len(arg) > len(c.mem) {
		return fmt.Errorf("%d bytes are more than the %d that fit", len(arg), len(c.mem))
	}
	b := c.mem[:len(arg)]
	copy(b, arg)
	if e := c.ioctl(fd, esc, uintptr(len(b))); e != 0 {
		return e
	}
	copy(arg, b)
	return nil
}
