//go:build vmtest

package inside

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An RM client at the level of bytes: an independent witness beside the product's
// own code, which these tests are about.

var le = binary.LittleEndian

const (
	escFree, escControl, escAlloc, escMap = 0x29, 0x2a, 0x2b, 0x4e
	escRegisterFD, escXfer                = 201, 211

	statusInvalidClient = 0x23
)

// ctlFile is an open /dev/nvidiactl.
type ctlFile struct{ f *os.File }

func openCtl() (ctlFile, error) {
	f, err := os.OpenFile("/dev/nvidiactl", os.O_RDWR, 0)
	return ctlFile{f}, err
}

func ioctl(fd uintptr, nr, size uintptr, arg []byte) error {
	word := 3<<30 | size<<16 | 'F'<<8 | nr
	var p unsafe.Pointer
	if len(arg) > 0 {
		p = unsafe.Pointer(&arg[0])
	}
	_, _, e := unix.Syscall(unix.SYS_IOCTL, fd, word, uintptr(p))
	runtime.KeepAlive(arg)
	if e != 0 {
		return e
	}
	return nil
}

// pin keeps a Go buffer's address valid while it stands as a number in another
// buffer: heap memory does not move, the collector only must not free it.
func address(b []byte) uint64 {
	if len(b) == 0 {
		return 0
	}
	return uint64(uintptr(unsafe.Pointer(&b[0])))
}

func heap(n int) []byte {
	b := make([]byte, n, n+64<<10) // too large for the stack
	return b
}

// control sends one RM control and gives the status.
func (c ctlFile) control(client, object, cmd uint32, params []byte) (uint32, error) {
	p := heap(len(params))
	copy(p, params)
	arg := heap(32)
	le.PutUint32(arg[0:], client)
	le.PutUint32(arg[4:], object)
	le.PutUint32(arg[8:], cmd)
	le.PutUint64(arg[0x10:], address(p))
	le.PutUint32(arg[0x18:], uint32(len(p)))
	err := ioctl(c.f.Fd(), escControl, 32, arg)
	copy(params, p)
	return le.Uint32(arg[0x1c:]), err
}

// alloc allocates an object; handle 0 lets RM choose. long: the 48-byte form.
func (c ctlFile) alloc(client, parent, handle, class uint32, params []byte, long bool) (uint32, uint32, error) {
	p := heap(len(params))
	copy(p, params)
	arg, sizeAt, statusAt := heap(32), 0x18, 0x1c
	if long {
		arg, sizeAt, statusAt = heap(48), 0x20, 0x28
	}
	le.PutUint32(arg[0:], client)
	le.PutUint32(arg[4:], parent)
	le.PutUint32(arg[8:], handle)
	le.PutUint32(arg[0xc:], class)
	le.PutUint64(arg[0x10:], address(p))
	le.PutUint32(arg[sizeAt:], uint32(len(p)))
	err := ioctl(c.f.Fd(), escAlloc, uintptr(len(arg)), arg)
	copy(params, p)
	return le.Uint32(arg[8:]), le.Uint32(arg[statusAt:]), err
}

func (c ctlFile) free(client, object uint32) (uint32, error) {
	arg := heap(16)
	le.PutUint32(arg[0:], client)
	le.PutUint32(arg[8:], object)
	err := ioctl(c.f.Fd(), escFree, 16, arg)
	return le.Uint32(arg[0xc:]), err
}

// cudaProcess is what a CUDA process holds: a client with a device, a subdevice,
// a compute TSG with 8 channels and three copy TSGs with four each.
type cudaProcess struct {
	ctl                       ctlFile
	gpu                       *os.File
	client, device, subdevice uint32
	tsg                       uint32   // the compute TSG
	copyTSGs                  []uint32 // on runlists of their own
	channels                  []uint32 // of the compute TSG
	contexts                  []uint32 // their context ids
}

func u32s(v ...uint32) []byte {
	var b []byte
	for _, x := range v {
		b = le.AppendUint32(b, x)
	}
	return b
}

// newCUDA does what libcuda does, in the order and with the handles seen on an H200.
func newCUDA(gpu int) (*cudaProcess, error) {
	ctl, err := openCtl()
	if err != nil {
		return nil, err
	}
	c := &cudaProcess{ctl: ctl}
	if c.gpu, err = os.OpenFile(fmt.Sprintf("/dev/nvidia%d", gpu), os.O_RDWR, 0); err != nil {
		return nil, err
	}
	if err := ioctl(c.gpu.Fd(), escRegisterFD, 4, u32s(uint32(ctl.f.Fd()))); err != nil {
		return nil, fmt.Errorf("REGISTER_FD: %w", err)
	}
	alloc := func(parent, handle, class uint32, params []byte, long bool) uint32 {
		if err != nil {
			return 0
		}
		h, st, e := ctl.alloc(c.client, parent, handle, class, params, long)
		if e != nil || st != 0 {
			err = fmt.Errorf("alloc class %x: status %x, %v", class, st, e)
		}
		return h
	}
	c.client = alloc(0, 0, 0x41, nil, false)
	dev := make([]byte, 0x38)
	le.PutUint32(dev, uint32(gpu))
	c.device = alloc(c.client, 0x5c000001, 0x80, dev, true)
	c.subdevice = alloc(c.device, 0x5c000002, 0x2080, make([]byte, 4), true)
	next := uint32(0x5c000015)
	for i, engine := range []uint32{1, 9, 11, 18} {
		p := make([]byte, 0x14)
		le.PutUint32(p[0xc:], engine)
		tsg := alloc(c.device, next, 0xa06c, p, true)
		next += 7
		n := 4
		if i == 0 {
			n, c.tsg = 8, tsg
		} else {
			c.copyTSGs = append(c.copyTSGs, tsg)
		}
		for range n {
			p := make([]byte, 0x170)
			le.PutUint32(p[0x80:], engine)
			ch := alloc(tsg, next, 0xc86f, p, true)
			next++
			if i == 0 {
				c.channels = append(c.channels, ch)
				c.contexts = append(c.contexts, le.Uint32(p[0x84:]))
			}
		}
	}
	if err != nil {
		return nil, err
	}
	us := le.AppendUint64(nil, 2048)
	if st, e := ctl.control(c.client, c.tsg, 0xa06c0103, us); e != nil || st != 0 {
		return nil, fmt.Errorf("set the timeslice: status %x, %v", st, e)
	}
	return c, nil
}

func (c *cudaProcess) close() {
	c.ctl.f.Close()
	c.gpu.Close()
}

func startCUDA(t *testing.T, gpu int) *cudaProcess {
	t.Helper()
	c, err := newCUDA(gpu)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c
}

// TestModelStatuses holds the stand-in to what was measured on an H200.
func TestModelStatuses(t *testing.T) {
	loadModel(t, "nvidia", "")
	mark := markLog(t)
	c := startCUDA(t, 0)
	own, err := openCtl()
	if err != nil {
		t.Fatal(err)
	}
	defer own.f.Close()
	me, st, err := own.alloc(0, 0, 0, 0x41, nil, true)
	if st != 0 || err != nil {
		t.Fatal("own client:", st, err)
	}
	if c.tsg != 0x5c000015 || me>>20 != 0xc1d {
		t.Errorf("handles: TSG %x, client %x", c.tsg, me)
	}
	for _, x := range []struct {
		what             string
		f                ctlFile
		client, obj, cmd uint32
		params           []byte
		want             uint32
		check            func(p []byte) bool
	}{
		{"TSG info", c.ctl, c.client, c.tsg, 0xa06c0106, make([]byte, 4), 0, nil},
		{"get timeslice", c.ctl, c.client, c.tsg, 0xa06c0104, make([]byte, 8), 0, func(p []byte) bool { return le.Uint64(p) == 2048 }},
		{"get timeslice of a TSG nobody touched", c.ctl, c.client, c.copyTSGs[0], 0xa06c0104, make([]byte, 8), 0, func(p []byte) bool { return le.Uint64(p) == 1024 }},
		{"timeslice 0", c.ctl, c.client, c.tsg, 0xa06c0103, make([]byte, 8), 0, nil},
		{"interleave high", c.ctl, c.client, c.tsg, 0xa06c0107, u32s(2), 0, nil},
		{"interleave 7", c.ctl, c.client, c.tsg, 0xa06c0107, u32s(7), 0x56, nil},
		{"get interleave", c.ctl, c.client, c.tsg, 0xa06c0108, make([]byte, 4), 0x56, nil},
		{"preempt", c.ctl, c.client, c.tsg, 0xa06c0105, make([]byte, 8), 0, nil},
		{"unknown command", c.ctl, c.client, c.tsg, 0xa06c0177, make([]byte, 4), 0x56, nil},
		{"wrong size", c.ctl, c.client, c.tsg, 0xa06c0105, make([]byte, 4), 0x3a, nil},
		{"another's client", own, c.client, c.tsg, 0xa06c0106, make([]byte, 4), 0x23, nil},
		{"handle info: class", c.ctl, c.client, c.client, 0xd02, u32s(c.channels[0], 2, 0, 0), 0, func(p []byte) bool { return le.Uint32(p[8:]) == 0xc86f }},
		{"handle info: parent", c.ctl, c.client, c.client, 0xd02, u32s(c.channels[0], 1, 0, 0), 0, func(p []byte) bool { return le.Uint32(p[8:]) == c.tsg }},
		{"access rights: alive", own, me, me, 0xd03, u32s(c.client, c.client, 0), 0, nil},
		{"clients", own, me, me, 0x13d, make([]byte, 16), 0, func(p []byte) bool { return le.Uint32(p) == 3 }},
		{"context id", c.ctl, c.client, c.channels[0], 0xa06f0113, make([]byte, 4), 0, func(p []byte) bool { return le.Uint32(p) == c.contexts[0] }},
		{"unique ids", c.ctl, c.client, c.subdevice, 0x20801123, append(u32s(c.client, c.tsg), make([]byte, 0x608)...), 0, func(p []byte) bool {
			return le.Uint32(p[0xc:]) == 8 && le.Uint32(p[8:]) != 0
		}},
		{"unique ids of no TSG", c.ctl, c.client, c.subdevice, 0x20801123, append(u32s(c.client, 0x5c0000ff), make([]byte, 0x608)...), 0x57, nil},
		{"unique ids of no client", c.ctl, c.client, c.subdevice, 0x20801123, append(u32s(0xc1dfffff, c.tsg), make([]byte, 0x608)...), 0x33, nil},
		{"switch counters, compute", c.ctl, c.client, c.subdevice, 0x20801215, append(u32s(c.tsg), make([]byte, 28)...), 0, nil},
		{"switch counters, copy", c.ctl, c.client, c.subdevice, 0x20801215, append(u32s(c.copyTSGs[0]), make([]byte, 28)...), 0x1a, nil},
		{"channels of runlist 1", c.ctl, c.client, c.subdevice, 0x20801119, append(u32s(1), make([]byte, 0x200)...), 0x5b, nil},
	} {
		st, err := x.f.control(x.client, x.obj, x.cmd, x.params)
		if err != nil || st != x.want || x.check != nil && !x.check(x.params) {
			t.Errorf("%s: status %#x, %v, want %#x; params %x", x.what, st, err, x.want, x.params[:min(len(x.params), 32)])
		}
	}
	if st, _ := own.control(me, me, 0xd03, u32s(0xc1d12345, 0xc1d12345, 0)); st == 0 {
		t.Error("a client that does not exist lives, says 0xd03")
	}
	if log := dmesgSince(t, mark); log != "\n" && log != "" && containsModelLine(log) {
		t.Errorf("calls that are quiet on an H200 wrote to the kernel log: %s", log)
	}
	if st, _ := own.control(0xc1d12345, 0xc1d12345, 0xd02, u32s(0, 2, 0, 0)); st != statusInvalidClient {
		t.Errorf("control on no client: status %x", st)
	}
	if !containsModelLine(dmesgSince(t, mark)) {
		t.Error("a control on a client that does not exist must write to the kernel log, as the driver does")
	}
	if st, err := c.ctl.free(c.client, c.device); st != 0 || err != nil {
		t.Errorf("free the device: %x, %v", st, err)
	}
	if st, _ := c.ctl.control(c.client, c.tsg, 0xa06c0106, make([]byte, 4)); st != 0x57 {
		t.Errorf("a TSG outlived its device: status %x", st)
	}
}
