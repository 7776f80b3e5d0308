//go:build linux

// Package rmfake is an NVIDIA driver in memory, with the processes that use it
// and the /proc that shows them: an rmdev.System for tests. It answers ioctls
// at the level of bytes as the driver 580.159.04 did on an H200, and misbehaves
// where a test asks for it.
package rmfake

import (
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"tsgtop/internal/rm"
)

// Status codes that the fake answers with.
const (
	statusOK                     = 0x0
	statusInsufficient           = 0x1a // resources
	statusInvalidArgument        = 0x1f
	statusInvalidClient          = 0x23
	statusInvalidObject          = 0x31
	statusInvalidHandle          = 0x33
	statusInvalidParam           = 0x3a
	statusNoMemory               = 0x51
	statusNotSupported           = 0x56
	statusObjectNotFound         = 0x57
	clientBase                   = 0xc1d00000
	clientIndexMask              = 0xfffff
	pidNamespaceInit             = "pid:[4026531836]"
	timesliceDefault      uint64 = 1024
)

// Driver is the fake. Its exported fields are set before it is used, or under
// Lock; the methods lock for themselves.
type Driver struct {
	mu sync.Mutex

	Version         string // /proc/driver/nvidia/version
	OpenModule      bool
	Missing         bool   // no driver is loaded
	Yama            string // /proc/sys/kernel/yama/ptrace_scope
	PIDNamespace    string // link of /proc/self/ns/pid
	RefuseBorrow    bool   // pidfd_getfd: EPERM
	NoCompare       bool   // kcmp: ENOSYS
	InternalClients uint32 // RM's own, which no handle of ours finds
	NextIndex       uint32 // index of the next client
	MaxContiguous   uint64 // bytes that a memory object can have; 0: any
	// Hook, where set, sees each control before it is answered, without the lock:
	// a test can kill a process in it.
	Hook func(client, object, cmd uint32)
	// OnReadDir, where set, is called before a folder is listed, likewise.
	OnReadDir func(path string)

	gpus    []*GPU
	procs   map[int]*Process
	clients map[uint32]*Client
	fds     map[int]*handle // our own descriptors
	nextFD  int
	nextCtx uint32
	nextUID uint32
	log     []string
	calls   map[uint32]int // controls by command
	files   int
	closing map[*file]chan struct{} // closes that hang until the channel is closed
}

// New makes a driver without GPUs or processes.
func New() *Driver {
	return &Driver{
		Version: "580.159.04", OpenModule: true, Yama: "1", PIDNamespace: pidNamespaceInit,
		InternalClients: 7, NextIndex: 0x10,
		procs: map[int]*Process{}, clients: map[uint32]*Client{}, fds: map[int]*handle{},
		nextFD: 1000, nextCtx: 0x30, nextUID: 0x100, calls: map[uint32]int{}, closing: map[*file]chan struct{}{},
	}
}

// Lock holds the driver still while a test changes its fields.
func (d *Driver) Lock() { d.mu.Lock() }

// Unlock lets it go on.
func (d *Driver) Unlock() { d.mu.Unlock() }

// GPU is one GPU of the fake.
type GPU struct {
	d              *Driver
	ID             uint32
	Minor          uint32
	DeviceInstance uint32
	Bus            uint8
	Attached       bool
	MIG            bool
	BindStatus     uint32 // of binding the trace; 0 works
	BindReason     uint32
	Engines        []uint32
	Runlists       []uint32         // of Engines, one each
	Clock          func() time.Time // PTIMER

	nextTSG  map[uint32]uint32
	nextChID map[uint32]uint32
	pending  []Record // in the hardware's buffer
	bound    []*object
	binds    int
}

// AddGPU adds a GPU with the engines and runlists of an H200: graphics on
// runlist 0, copy engines on 1, 3 and 10. Its bus is higher than the others'.
func (d *Driver) AddGPU() *GPU {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := uint32(len(d.gpus))
	g := &GPU{
		d: d, ID: 0x100 * (n + 1), Minor: n, DeviceInstance: n, Bus: uint8(0x10 * (n + 1)), Attached: true,
		Engines:  []uint32{1, 9, 11, 13, 18, 0x13},
		Runlists: []uint32{0, 0, 1, 3, 10, 12},
		Clock:    time.Now,
		nextTSG:  map[uint32]uint32{}, nextChID: map[uint32]uint32{},
	}
	d.gpus = append(d.gpus, g)
	return g
}

// Binds is how often the trace of the GPU was asked to be bound.
func (g *GPU) Binds() int {
	g.d.mu.Lock()
	defer g.d.mu.Unlock()
	return g.binds
}

func (d *Driver) gpu(id uint32) *GPU {
	for _, g := range d.gpus {
		if g.ID == id {
			return g
		}
	}
	return nil
}

// file is an open file: what processes that forked share.
type file struct {
	path    string
	number  int
	minor   uint32
	refs    int
	clients []uint32
	mapping *object // memory that the next mmap maps
}

// handle is one of our own descriptors.
type handle struct {
	file *file
	proc *Process // a pidfd
}

// Process is a process that uses the driver.
type Process struct {
	d    *Driver
	PID  int
	Comm string
	fds  map[int]*file
	dead bool
}

// AddProcess starts a process.
func (d *Driver) AddProcess(pid int, comm string) *Process {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := &Process{d: d, PID: pid, Comm: comm, fds: map[int]*file{}}
	d.procs[pid] = p
	return p
}

// Open opens /dev/nvidiactl in the process as descriptor fd.
func (p *Process) Open(fd int) {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	p.fds[fd] = p.d.newFile(rm.ControlPath, rm.ControlMinor)
	p.fds[fd].refs = 1
}

// OpenOther opens something else.
func (p *Process) OpenOther(fd int, path string) {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	p.fds[fd] = p.d.newFile(path, 0)
	p.fds[fd].refs = 1
}

func (d *Driver) newFile(path string, minor uint32) *file {
	d.files++
	return &file{path: path, number: d.files, minor: minor}
}

// Fork starts a process that shares all open files of p.
func (p *Process) Fork(pid int) *Process {
	child := p.d.AddProcess(pid, p.Comm)
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	for n, f := range p.fds {
		f.refs++
		child.fds[n] = f
	}
	return child
}

// Close closes a descriptor of the process.
func (p *Process) Close(fd int) {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	p.d.unref(p.fds[fd])
	delete(p.fds, fd)
}

// Exit ends the process and closes its descriptors.
func (p *Process) Exit() {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	p.dead = true
	delete(p.d.procs, p.PID)
	for _, f := range p.fds {
		p.d.unref(f)
	}
	p.fds = map[int]*file{}
}

// Kill ends a process by its pid.
func (d *Driver) Kill(pid int) {
	d.mu.Lock()
	p := d.procs[pid]
	d.mu.Unlock()
	if p != nil {
		p.Exit()
	}
}

// unref drops a reference to an open file; with the last one its clients end.
func (d *Driver) unref(f *file) {
	if f == nil {
		return
	}
	f.refs--
	if f.refs > 0 {
		return
	}
	for _, c := range f.clients {
		d.freeClient(c)
	}
	f.clients = nil
}

func (d *Driver) freeClient(h uint32) {
	if c := d.clients[h]; c != nil {
		for _, o := range c.objects {
			d.unbind(o)
		}
	}
	delete(d.clients, h)
}

// HangClose makes the last close of descriptor fd of the process hang, as a
// teardown of a big process does, until release is called.
func (p *Process) HangClose(fd int) (release func()) {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	c := make(chan struct{})
	p.d.closing[p.fds[fd]] = c
	return sync.OnceFunc(func() { close(c) })
}

// Log is what the driver wrote to the kernel log.
func (d *Driver) Log() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.log)
}

// Calls is how often a control was issued.
func (d *Driver) Calls(cmd uint32) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls[cmd]
}

// OpenFiles is how many descriptors of ours are open.
func (d *Driver) OpenFiles() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.fds)
}

func (d *Driver) logf(format string, args ...any) {
	d.log = append(d.log, fmt.Sprintf(format, args...))
}

// Client is an RM client of a process.
type Client struct {
	d       *Driver
	Handle  uint32
	file    *file
	objects map[uint32]*object
	next    uint32
}

// object is an RM object of any class.
type object struct {
	client *Client
	handle uint32
	parent uint32
	class  uint32

	gpu       *GPU // device and below
	runlist   uint32
	number    uint32 // TSG
	unique    uint32 // TSG
	timeslice uint64
	switches  Switches // TSG of the graphics engine
	context   uint32   // channel
	chid      uint32
	mem       []byte
	buf       *eventBuffer
}

// NewClient makes a client on an open descriptor of the process, 0 for a file
// that no process has (the kernel's).
func (p *Process) NewClient(fd int) *Client {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	return p.d.newClient(p.fds[fd])
}

// KernelClient makes a client that no file owns, as other kernel modules have.
func (d *Driver) KernelClient() *Client {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.newClient(nil)
}

func (d *Driver) newClient(f *file) *Client {
	for d.clients[clientBase|d.NextIndex] != nil {
		d.NextIndex = (d.NextIndex + 1) & clientIndexMask
	}
	c := &Client{d: d, Handle: clientBase | d.NextIndex, file: f, objects: map[uint32]*object{}, next: 0xcaf10000}
	d.NextIndex = (d.NextIndex + 1) & clientIndexMask
	c.objects[c.Handle] = &object{client: c, handle: c.Handle, class: rm.ClassClient}
	d.clients[c.Handle] = c
	if f != nil {
		f.clients = append(f.clients, c.Handle)
	}
	return c
}

func (c *Client) add(handle, parent, class uint32, gpu *GPU) *object {
	o := &object{client: c, handle: handle, parent: parent, class: class, gpu: gpu, timeslice: timesliceDefault}
	c.objects[handle] = o
	return o
}

// Alive tells whether a client exists.
func (d *Driver) Alive(client uint32) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.clients[client] != nil
}

var errno = struct{ badf, srch, perm, nosys, noent, inval, nxio syscall.Errno }{
	syscall.EBADF, syscall.ESRCH, syscall.EPERM, syscall.ENOSYS, syscall.ENOENT, syscall.EINVAL, syscall.ENXIO,
}
