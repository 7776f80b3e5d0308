//go:build linux

// Package rmdev talks to the NVIDIA driver: it opens its device files, issues
// Resource Manager calls, maps its memory, and borrows other processes' open
// files for the milliseconds that a call on their objects takes.
//
// Everything that it needs of the kernel goes through System, so that tests
// run against a driver in memory (package rmfake).
package rmdev

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"tsgtop/internal/rm"
)

// RM opens the driver. It holds nothing open itself.
type RM struct {
	sys   System
	calls sync.Pool // of *Caller, for calls through borrowed files
	close closer
	own   sync.Map // handles of our own clients
}

// New gives access to the driver through sys; nil is the machine itself.
func New(sys System) *RM {
	if sys == nil {
		sys = Machine
	}
	return &RM{sys: sys}
}

// System is what the RM was made with.
func (r *RM) System() System { return r.sys }

// Device is an open /dev/nvidiactl with an RM client of our own, and what was
// opened through it. An open Device keeps the driver from being unloaded.
type Device struct {
	*Caller
	rm     *RM
	fd     int
	client uint32

	mu     sync.Mutex
	next   uint32 // next handle that we choose
	fds    []int  // GPU files, and files that carry a mapping
	maps   [][]byte
	closed bool
}

// firstHandle is where the handles begin that we choose for our own objects.
const firstHandle = 0xcaf00001

// Open opens /dev/nvidiactl and allocates a client. Errors: ErrNoDriver,
// ErrNotRoot, *StatusError.
func (r *RM) Open() (*Device, error) {
	fd, err := r.sys.Open(rm.ControlPath)
	if err != nil {
		return nil, openError(rm.ControlPath, err)
	}
	caller, err := newCaller(r.sys)
	if err != nil {
		r.sys.Close(fd)
		return nil, err
	}
	d := &Device{Caller: caller, rm: r, fd: fd, next: firstHandle}
	client, status, err := caller.Alloc(fd, 0, 0, 0, rm.ClassClient, nil)
	if err := check("allocate an RM client of our own", status, err); err != nil {
		d.Close()
		return nil, err
	}
	d.client = client
	r.own.Store(client, true)
	return d, nil
}

// Own tells whether a client is one of this RM's open Devices: a scan of the
// machine's clients leaves those out.
func (r *RM) Own(client uint32) bool {
	_, own := r.own.Load(client)
	return own
}

// RM is what the Device was opened with.
func (d *Device) RM() *RM { return d.rm }

// FD is the descriptor of /dev/nvidiactl.
func (d *Device) FD() int { return d.fd }

// Client is the handle of our own client. Clients' handles are given out in
// order from an index of 20 bits that wraps, so it is the newest there is.
func (d *Device) Client() uint32 { return d.client }

// Control issues a control on an object of our own client. An answer other
// than NV_OK is a *StatusError.
func (d *Device) Control(object, cmd uint32, params []byte) error {
	status, err := d.Caller.Control(d.fd, d.client, object, cmd, params)
	return check(fmt.Sprintf("%s on %08x/%08x", rm.ControlName(cmd), d.client, object), status, err)
}

// ControlOn is Control on any client, with the status bare: for questions whose
// answer is the status.
func (d *Device) ControlOn(client, object, cmd uint32, params []byte) (status uint32, err error) {
	return d.Caller.Control(d.fd, client, object, cmd, params)
}

// Alloc allocates an object of our own under parent, with a handle that it
// chooses and returns.
func (d *Device) Alloc(parent, class uint32, params []byte) (uint32, error) {
	d.mu.Lock()
	handle := d.next
	d.next++
	d.mu.Unlock()
	got, status, err := d.Caller.Alloc(d.fd, d.client, parent, handle, class, params)
	if err := check(fmt.Sprintf("allocate class %s under %08x/%08x", rm.ClassName(class), d.client, parent), status, err); err != nil {
		return 0, err
	}
	return got, nil
}

// Free frees one of our own objects and all that is under it.
func (d *Device) Free(parent, object uint32) error {
	status, err := d.Caller.Free(d.fd, d.client, parent, object)
	return check(fmt.Sprintf("free %08x/%08x", d.client, object), status, err)
}

// MapMemory maps a memory object that is a direct child of our client, for
// reading. It stays mapped until the Device is closed.
func (d *Device) MapMemory(memory uint32, length int) ([]byte, error) {
	what := fmt.Sprintf("map %d bytes of memory %08x/%08x", length, d.client, memory)
	// The driver keeps one mapping to come for each open file.
	fd, err := d.rm.sys.Open(rm.ControlPath)
	if err != nil {
		return nil, openError(rm.ControlPath, err)
	}
	status, err := d.mapMemory(d.fd, d.client, d.client, memory, uint64(length), fd)
	if err := check(what, status, err); err != nil {
		d.rm.sys.Close(fd)
		return nil, err
	}
	mem, err := d.rm.sys.Map(fd, length)
	if err != nil {
		d.rm.sys.Close(fd)
		return nil, fmt.Errorf("%s: mmap: %w", what, err)
	}
	d.mu.Lock()
	d.fds, d.maps = append(d.fds, fd), append(d.maps, mem)
	d.mu.Unlock()
	return mem, nil
}

// Close closes every descriptor and mapping; the driver then frees our client
// and its objects. Mapped memory must not be read any more. It can be called twice.
func (d *Device) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	maps, fds := d.maps, append(d.fds, d.fd)
	d.mu.Unlock()
	d.rm.own.Delete(d.client)
	var errs []error
	for _, m := range maps {
		errs = append(errs, d.rm.sys.Unmap(m))
	}
	for _, fd := range fds {
		errs = append(errs, d.rm.sys.Close(fd))
	}
	errs = append(errs, d.Caller.Close())
	return errors.Join(errs...)
}

// Driver says which driver is loaded.
type Driver struct {
	Version string // e.g. "580.159.04"
	Open    bool   // the open kernel modules
	Text    string // the line that says it
}

// versionPath names the loaded driver, where one is.
const versionPath = "/proc/driver/nvidia/version"

// Driver reads which driver is loaded. ErrNoDriver where none is.
func (r *RM) Driver() (Driver, error) {
	b, err := r.sys.ReadFile(versionPath)
	if isNotExist(err) {
		return Driver{}, fmt.Errorf("%w: there is no %s; load the driver (modprobe nvidia)", ErrNoDriver, versionPath)
	}
	if err != nil {
		return Driver{}, fmt.Errorf("read %s: %w", versionPath, err)
	}
	return parseVersion(string(b))
}

// isNotExist: ENOENT, wrapped by package os or bare.
func isNotExist(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOENT)
}

// parseVersion reads /proc/driver/nvidia/version: its first line has the
// flavour and, among other words, the version.
func parseVersion(text string) (Driver, error) {
	line, _, _ := strings.Cut(text, "\n")
	line = strings.TrimSpace(strings.TrimPrefix(line, "NVRM version:"))
	d := Driver{Text: line, Open: strings.Contains(line, "Open Kernel Module")}
	for word := range strings.FieldsSeq(line) {
		if isVersion(word) {
			d.Version = word
			return d, nil
		}
	}
	return d, fmt.Errorf("read %s: no version in %q", versionPath, line)
}

func isVersion(s string) bool {
	parts := strings.Split(s, ".")
	if len(parts) < 2 || len(parts) > 4 {
		return false
	}
	for _, p := range parts {
		if p == "" || strings.Trim(p, "0123456789") != "" {
			return false
		}
	}
	return true
}

// Information is what /proc/driver/nvidia/gpus/BUSID/information says.
type Information struct {
	Model, UUID, Firmware string
	Minor                 int // -1: not said
}

// GSP tells whether RM of this GPU runs on its GSP: it then has firmware.
func (i Information) GSP() bool { return i.Firmware != "" && i.Firmware != "N/A" }

func (r *RM) information(pci string) (Information, error) {
	path := filepath.Join("/proc/driver/nvidia/gpus", pci, "information")
	b, err := r.sys.ReadFile(path)
	if err != nil {
		return Information{Minor: -1}, fmt.Errorf("read %s: %w", path, err)
	}
	return parseInformation(string(b)), nil
}

func parseInformation(text string) Information {
	info := Information{Minor: -1}
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "Model":
			info.Model = value
		case "GPU UUID":
			info.UUID = value
		case "GPU Firmware":
			info.Firmware = value
		case "Device Minor":
			var n int
			if _, err := fmt.Sscanf(value, "%d", &n); err == nil && n >= 0 {
				info.Minor = n
			}
		}
	}
	return info
}
