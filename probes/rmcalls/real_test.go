package rmcalls

import (
	"errors"
	"testing"

	"tsgtop/internal/rm"
	"tsgtop/internal/rmdev"
)

// BenchmarkDriverControl: what the probes add to a cheap control of the real
// driver (2.8 us, measured on an H200): one that is only counted.
func BenchmarkDriverControl(b *testing.B) {
	d, err := rmdev.New(nil).Open()
	if errors.Is(err, rmdev.ErrNoDriver) {
		b.Skipf("needs an NVIDIA driver: %v", err)
	}
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	p := rm.AccessRightsParams{Object: d.Client(), Client: d.Client()}
	params := rmdev.Bytes(&p)
	paired(b, func() {
		if err := d.Control(d.Client(), rm.CtrlAccessRights, params); err != nil {
			b.Fatal(err)
		}
	})
}
