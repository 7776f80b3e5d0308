//go:build linux

package rmdev

import (
	"errors"
	"fmt"
	"strings"

	"tsgtop/internal/rm"
)

// MIG tells whether a GPU is in MIG mode. RM is asked where the layout of the
// question is known for the driver; otherwise /proc tells whether the GPU has
// instances, which it cannot have without the mode.
func (d *Device) MIG(g *AttachedGPU) (bool, error) {
	driver, err := d.rm.Driver()
	if err != nil {
		return false, err
	}
	layout, err := rm.Layout(driver.Version)
	if err != nil || !layout.Compared {
		return d.rm.migInstances(g.GPU)
	}
	p := rm.GPUInfoParams{Count: 1}
	p.Entries[0].Index = rm.GPUInfoMIGMode
	if err := d.Control(g.Subdevice, rm.CtrlGPUInfo, Bytes(&p)[:rm.GPUInfoSize(layout.Branch)]); err != nil {
		return false, fmt.Errorf("ask GPU%d whether MIG is on: %w", g.Index, err)
	}
	mode := p.Entries[0].Data
	return mode == rm.MIGEnabled || mode == rm.MIGDisablePending, nil
}

// migInstances tells whether the GPU has MIG instances.
func (r *RM) migInstances(g GPU) (bool, error) {
	path := fmt.Sprintf("/proc/driver/nvidia/capabilities/gpu%d/mig", g.Minor)
	names, err := r.sys.ReadDir(path)
	if isNotExist(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", path, err)
	}
	for _, n := range names {
		if strings.HasPrefix(n, "gi") {
			return true, nil
		}
	}
	return false, nil
}

// Layout is what is known of the loaded driver's ABI.
func (r *RM) Layout() (rm.LayoutInfo, error) {
	driver, err := r.Driver()
	if err != nil {
		return rm.LayoutInfo{}, err
	}
	layout, err := rm.Layout(driver.Version)
	if err != nil {
		return layout, errors.Join(fmt.Errorf("driver %s", driver.Version), err)
	}
	return layout, nil
}
