//go:build linux

package rmfake

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"tsgtop/internal/rm"
	"tsgtop/internal/rmdev"
)

var _ rmdev.System = (*Driver)(nil)

// Open implements rmdev.System.
func (d *Driver) Open(path string) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Missing {
		return -1, errno.noent
	}
	minor := uint32(rm.ControlMinor)
	if path != rm.ControlPath {
		n, err := strconv.Atoi(strings.TrimPrefix(path, rm.DevicePath))
		if err != nil {
			return -1, errno.noent
		}
		i := -1
		for j, g := range d.gpus {
			if int(g.Minor) == n {
				i = j
			}
		}
		if i < 0 {
			return -1, errno.nxio
		}
		d.gpus[i].Attached = true
		minor = d.gpus[i].Minor
	}
	f := d.newFile(path, minor)
	f.refs = 1
	return d.newFD(&handle{file: f}), nil
}

func (d *Driver) newFD(h *handle) int {
	d.nextFD++
	d.fds[d.nextFD] = h
	return d.nextFD
}

// Close implements rmdev.System.
func (d *Driver) Close(fd int) error {
	d.mu.Lock()
	h := d.fds[fd]
	if h == nil {
		d.mu.Unlock()
		return errno.badf
	}
	delete(d.fds, fd)
	var hang chan struct{}
	if h.file != nil && h.file.refs == 1 {
		hang = d.closing[h.file]
	}
	d.mu.Unlock()
	if hang != nil {
		<-hang
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if h.file != nil {
		d.unref(h.file)
	}
	return nil
}

// at gives the memory at an address of this process that is not Go's own.
func at(addr uint64, n int) []byte {
	if addr == 0 || n == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&addr))), n)
}

// Ioctl implements rmdev.System.
func (d *Driver) Ioctl(fd int, request uint32, arg unsafe.Pointer) syscall.Errno {
	nr, size, ok := rm.IoctlParts(request)
	if !ok {
		return syscall.ENOTTY
	}
	if nr == rm.EscControl && d.Hook != nil {
		a := (*rm.ControlParams)(arg)
		d.Hook(a.Client, a.Object, a.Cmd)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.fds[fd]
	if h == nil || h.file == nil {
		return errno.badf
	}
	f := h.file
	switch {
	case nr == rm.EscControl && uintptr(size) == unsafe.Sizeof(rm.ControlParams{}):
		a := (*rm.ControlParams)(arg)
		if f.minor != rm.ControlMinor {
			return errno.inval
		}
		a.Status = d.control(f, a.Client, a.Object, a.Cmd, at(a.Params, int(a.ParamsSize)))
	case nr == rm.EscAlloc && uintptr(size) == unsafe.Sizeof(rm.Alloc64Params{}):
		a := (*rm.Alloc64Params)(arg)
		a.Status = d.alloc(f, a, at(a.Params, int(a.ParamsSize)))
	case nr == rm.EscFree && uintptr(size) == unsafe.Sizeof(rm.FreeParams{}):
		a := (*rm.FreeParams)(arg)
		c := d.clients[a.Client]
		switch {
		case c == nil || c.file != f:
			a.Status = statusInvalidClient
		case a.Object == a.Client:
			d.freeClient(a.Client)
		default:
			c.free(a.Object)
		}
	case nr == rm.EscMapMemory && uintptr(size) == unsafe.Sizeof(rm.MapMemoryParams{}):
		a := (*rm.MapMemoryParams)(arg)
		c, target := d.clients[a.Client], d.fds[int(a.FD)]
		switch {
		case c == nil || c.file != f:
			a.Status = statusInvalidClient
		case target == nil || target.file == nil || target.file.minor != rm.ControlMinor:
			return errno.inval
		case c.objects[a.Memory] == nil || a.Device != a.Client || a.Flags != rm.MapReadOnly:
			a.Status = statusInvalidArgument
		default:
			target.file.mapping = c.objects[a.Memory]
		}
	case nr == rm.EscCardInfo:
		cards := unsafe.Slice((*rm.CardInfo)(arg), int(size)/int(unsafe.Sizeof(rm.CardInfo{})))
		clear(cards)
		// The driver's list is in the order of probing, not of PCI addresses.
		for i := range d.gpus {
			g := d.gpus[len(d.gpus)-1-i]
			cards[i] = rm.CardInfo{Valid: 1, Bus: g.Bus, VendorID: 0x10de, DeviceID: 0x2335, GPUID: g.ID, Minor: g.Minor}
		}
	case nr == rm.EscRegisterFD && size == 4:
		if target := d.fds[int((*rm.RegisterFDParams)(arg).ControlFD)]; target == nil || f.minor == rm.ControlMinor {
			return errno.inval
		}
	default:
		return errno.inval
	}
	return 0
}

// Device implements rmdev.System.
func (d *Driver) Device(fd int) (uint32, uint32, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.fds[fd]
	if h == nil || h.file == nil {
		return 0, 0, false, errno.badf
	}
	if !strings.HasPrefix(h.file.path, rm.DevicePath) {
		return 0, 0, false, nil
	}
	return rm.Major, h.file.minor, true, nil
}

// DeviceAt implements rmdev.System.
func (d *Driver) DeviceAt(path string) (uint32, uint32, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var pid, fd int
	if n, _ := fmt.Sscanf(path, "/proc/%d/fd/%d", &pid, &fd); n != 2 {
		return 0, 0, false, errno.noent
	}
	p := d.procs[pid]
	if p == nil || p.fds[fd] == nil {
		return 0, 0, false, errno.noent
	}
	if !strings.HasPrefix(p.fds[fd].path, rm.DevicePath) {
		return 0, 0, false, nil
	}
	return rm.Major, p.fds[fd].minor, true, nil
}

// Map implements rmdev.System.
func (d *Driver) Map(fd, length int) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.fds[fd]
	if h == nil || h.file == nil || h.file.mapping == nil || len(h.file.mapping.mem) < length {
		return nil, errno.inval
	}
	return h.file.mapping.mem[:length], nil
}

// Unmap implements rmdev.System.
func (d *Driver) Unmap([]byte) error { return nil }

// PidfdOpen implements rmdev.System.
func (d *Driver) PidfdOpen(pid int) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.procs[pid]
	if p == nil {
		return -1, errno.srch
	}
	return d.newFD(&handle{proc: p}), nil
}

// PidfdGetFD implements rmdev.System.
func (d *Driver) PidfdGetFD(pidfd, fd int) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.fds[pidfd]
	switch {
	case h == nil || h.proc == nil:
		return -1, errno.badf
	case d.RefuseBorrow:
		return -1, errno.perm
	case h.proc.dead:
		return -1, errno.srch
	case h.proc.fds[fd] == nil:
		return -1, errno.badf
	}
	f := h.proc.fds[fd]
	f.refs++
	return d.newFD(&handle{file: f}), nil
}

// CompareFiles implements rmdev.System.
func (d *Driver) CompareFiles(pidA, fdA, pidB, fdB int) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.NoCompare {
		return 0, errno.nosys
	}
	a, b := d.procs[pidA], d.procs[pidB]
	if a == nil || b == nil {
		return 0, errno.srch
	}
	fa, fb := a.fds[fdA], b.fds[fdB]
	switch {
	case fa == nil || fb == nil:
		return 0, errno.badf
	case fa == fb:
		return 0, nil
	case fa.number < fb.number:
		return 1, nil
	}
	return 2, nil
}

// ReadFile implements rmdev.System.
func (d *Driver) ReadFile(path string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if rest, ok := strings.CutPrefix(path, "/proc/driver/nvidia/gpus/"); ok && !d.Missing {
		for i, g := range d.gpus {
			if rest == fmt.Sprintf("0000:%02x:00.0/information", g.Bus) {
				return fmt.Appendf(nil, "Model: \t\t NVIDIA H200\nIRQ:   \t\t 100\nGPU UUID: \t GPU-%08d\nBus Type: \t PCIe\nGPU Firmware: \t %s\nDevice Minor: \t %d\nGPU Excluded:\t No\n", i, d.Version, g.Minor), nil
			}
		}
		return nil, errno.noent
	}
	var pid int
	var name string
	if n, _ := fmt.Sscanf(strings.ReplaceAll(path, "/", " "), " proc %d %s", &pid, &name); n == 2 {
		p := d.procs[pid]
		switch {
		case p != nil && name == "comm":
			return []byte(p.Comm + "\n"), nil
		case p != nil && name == "stat":
			return fmt.Appendf(nil, "%d (%s) S 1 %d %d 0 -1 4194560 1 0 0 0 1 1 0 0 20 0 1 0 %d 1000 10\n", pid, p.Comm, pid, pid, 1000+pid), nil
		}
		return nil, errno.noent
	}
	switch {
	case path == "/proc/driver/nvidia/version" && !d.Missing:
		flavour := "UNIX x86_64 Kernel Module"
		if d.OpenModule {
			flavour = "UNIX Open Kernel Module for x86_64"
		}
		return fmt.Appendf(nil, "NVRM version: NVIDIA %s  %s  Release Build  (dvs-builder@U22-I3)\nGCC version:  gcc version 12.2.0\n", flavour, d.Version), nil
	case path == "/proc/sys/kernel/yama/ptrace_scope" && d.Yama != "":
		return []byte(d.Yama + "\n"), nil
	}
	return nil, errno.noent
}

// ReadLink implements rmdev.System.
func (d *Driver) ReadLink(path string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if path == "/proc/self/ns/pid" {
		return d.PIDNamespace, nil
	}
	var pid, fd int
	if n, _ := fmt.Sscanf(path, "/proc/%d/fd/%d", &pid, &fd); n != 2 {
		return "", errno.noent
	}
	p := d.procs[pid]
	if p == nil || p.fds[fd] == nil {
		return "", errno.noent
	}
	return p.fds[fd].path, nil
}

// ReadDir implements rmdev.System.
func (d *Driver) ReadDir(path string) ([]string, error) {
	if d.OnReadDir != nil {
		d.OnReadDir(path)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if path == "/proc" {
		names := []string{"self", "sys", "driver", "1"}
		for pid := range d.procs {
			names = append(names, strconv.Itoa(pid))
		}
		return names, nil
	}
	var pid int
	if n, _ := fmt.Sscanf(path, "/proc/%d/fd", &pid); n == 1 {
		p := d.procs[pid]
		if p == nil {
			return nil, errno.noent
		}
		var names []string
		for fd := range p.fds {
			names = append(names, strconv.Itoa(fd))
		}
		return names, nil
	}
	if rest, ok := strings.CutPrefix(path, "/proc/driver/nvidia/capabilities/gpu"); ok {
		for _, g := range d.gpus {
			if rest == fmt.Sprintf("%d/mig", g.Minor) && g.MIG {
				return []string{"gi1", "gi2"}, nil
			}
		}
	}
	return nil, errno.noent
}
