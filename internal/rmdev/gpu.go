//go:build linux

package rmdev

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"tsgtop/internal/rm"
)

// GPU is one GPU as the driver lists it.
type GPU struct {
	Index             int    // as nvidia-smi counts: in the order of PCI addresses
	ID                uint32 // RM's gpu id
	Minor             int    // of /dev/nvidiaN
	DeviceInstance    int    // RM's deviceId: the order of attachment; -1 while the GPU is not initialised
	SubdeviceInstance int    // -1 likewise
	PCI               string // domain:bus:slot.function
	VendorID          uint16
	DeviceID          uint16
	Information       Information
}

// GPUs lists the GPUs that the driver has, in the order of nvidia-smi. It
// initialises none.
func (d *Device) GPUs() ([]GPU, error) {
	var cards [rm.MaxCards]rm.CardInfo
	if err := d.Escape(d.fd, rm.EscCardInfo, Bytes(&cards)); err != nil {
		return nil, fmt.Errorf("ask the driver for its GPUs (NV_ESC_CARD_INFO): %w", err)
	}
	gpus := inOrder(cards[:])
	var attached rm.AttachedIDsParams
	if err := d.Control(d.client, rm.CtrlAttachedIDs, Bytes(&attached)); err != nil {
		return nil, err
	}
	for i := range gpus {
		g := &gpus[i]
		g.Information, _ = d.rm.information(g.PCI) // without it the name is missing, no more
		// RM is asked only about GPUs that it has attached.
		if slices.Contains(attached.IDs[:], g.ID) {
			if err := d.instance(g); err != nil {
				return nil, err
			}
		}
	}
	return gpus, nil
}

// inOrder makes GPUs of the driver's table, in the order of PCI addresses.
func inOrder(cards []rm.CardInfo) []GPU {
	cards = slices.DeleteFunc(slices.Clone(cards), func(c rm.CardInfo) bool { return c.Valid == 0 })
	slices.SortStableFunc(cards, func(a, b rm.CardInfo) int {
		return cmp.Or(cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Bus, b.Bus),
			cmp.Compare(a.Slot, b.Slot), cmp.Compare(a.Function, b.Function))
	})
	gpus := make([]GPU, len(cards))
	for i, c := range cards {
		gpus[i] = GPU{
			Index: i, ID: c.GPUID, Minor: int(int32(c.Minor)),
			DeviceInstance: -1, SubdeviceInstance: -1,
			PCI:      fmt.Sprintf("%04x:%02x:%02x.%x", c.Domain, c.Bus, c.Slot, c.Function),
			VendorID: c.VendorID, DeviceID: c.DeviceID,
			Information: Information{Minor: -1},
		}
	}
	return gpus
}

// instance asks for the instances of an initialised GPU: they are not its minor.
func (d *Device) instance(g *GPU) error {
	p := rm.GPUIDInfoParams{GPUID: g.ID}
	if err := d.Control(d.client, rm.CtrlGPUIDInfo, Bytes(&p)); err != nil {
		return fmt.Errorf("GPU%d (%s): %w", g.Index, g.PCI, err)
	}
	g.DeviceInstance, g.SubdeviceInstance = int(p.DeviceInstance), int(p.SubdeviceInstance)
	return nil
}

// AttachedGPU is a GPU that a Device holds open, with a device and a subdevice
// object of our own client on it.
type AttachedGPU struct {
	GPU
	Device    uint32 // handle
	Subdevice uint32 // handle
}

// Attach opens /dev/nvidiaN, which initialises the GPU where nobody did yet and
// keeps it so, and allocates a device and a subdevice on it. It lasts until the
// Device is closed. Where it fails, nothing of it is left open.
func (d *Device) Attach(g GPU) (a *AttachedGPU, err error) {
	what := func(err error) error { return fmt.Errorf("attach GPU%d (%s): %w", g.Index, g.PCI, err) }
	if g.Minor < 0 {
		return nil, what(errors.New("the driver gives no minor number for it"))
	}
	path := fmt.Sprintf("%s%d", rm.DevicePath, g.Minor)
	fd, err := d.rm.sys.Open(path)
	if err != nil {
		return nil, what(openError(path, err))
	}
	a = &AttachedGPU{GPU: g}
	defer func() {
		if err == nil {
			return
		}
		if a != nil && a.Device != 0 {
			_ = d.Free(d.client, a.Device) // closing the Device does it anyway
		}
		a = nil
		d.rm.sys.Close(fd)
	}()
	if err := d.Escape(fd, rm.EscRegisterFD, Bytes(&rm.RegisterFDParams{ControlFD: int32(d.fd)})); err != nil {
		return a, what(fmt.Errorf("tie %s to the control file (NV_ESC_REGISTER_FD): %w", path, err))
	}
	if err := d.instance(&a.GPU); err != nil {
		return a, what(err)
	}
	dev := rm.DeviceAlloc{DeviceID: uint32(a.DeviceInstance)}
	if a.Device, err = d.Alloc(d.client, rm.ClassDevice, Bytes(&dev)); err != nil {
		return a, what(err)
	}
	sub := rm.SubdeviceAlloc{SubdeviceID: uint32(a.SubdeviceInstance)}
	if a.Subdevice, err = d.Alloc(a.Device, rm.ClassSubdevice, Bytes(&sub)); err != nil {
		return a, what(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return a, what(errors.New("the devices were let go of meanwhile"))
	}
	d.fds = append(d.fds, fd)
	return a, nil
}
