package nvml

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"tsgtop/internal/sched"
	"tsgtop/internal/text"
)

// The child writes JSON lines to its standard output; the parent trusts none
// of them. Each has one of these kinds.
const (
	lineStarting = "starting" // the child runs; NVML may take long to start
	lineDevice   = "device"   // what one GPU is; at start and on change
	lineSample   = "sample"   // how one GPU is; each second
	lineFailed   = "failed"   // NVML cannot be used; the last line
)

// maxLine bounds one line, in bytes. A sample with 4096 processes is 170 KB.
const maxLine = 256 << 10

// maxProcesses is how many processes of one GPU are taken.
const maxProcesses = 4096

type line struct {
	Kind   string   `json:"k"`
	Index  int      `json:"index,omitempty"` // NVML's
	Device *device  `json:"device,omitempty"`
	Sample *sample  `json:"sample,omitempty"`
	Failed *failure `json:"failed,omitempty"`
}

// device is what NVML says that a GPU is.
type device struct {
	PCI         string `json:"pci,omitempty"`
	UUID        string `json:"uuid,omitempty"`
	Name        string `json:"name,omitempty"`
	Driver      string `json:"driver,omitempty"`
	MIG         *bool  `json:"mig,omitempty"`
	Persistence *bool  `json:"persistence,omitempty"`
	MemoryBytes uint64 `json:"memory_bytes,omitempty"`
}

// sample has the members of sched.GPUSample that NVML gives.
type sample struct {
	SMPercent    *int                  `json:"sm,omitempty"`
	MemUsed      *uint64               `json:"mem_used,omitempty"`
	MemTotal     *uint64               `json:"mem_total,omitempty"`
	PowerMilliW  *uint64               `json:"power_mw,omitempty"`
	TemperatureC *int                  `json:"temp_c,omitempty"`
	ProcessMem   []sched.ProcessMemory `json:"process_mem,omitempty"`
}

// failure is why NVML cannot be used.
type failure struct {
	Reason  failureReason `json:"reason"`
	Detail  string        `json:"detail,omitempty"`  // NVML's or the loader's own words
	Library string        `json:"library,omitempty"` // path of the library that was loaded
	Kernel  string        `json:"kernel,omitempty"`  // version of the driver that the kernel has loaded
}

type failureReason string

const (
	failNotBuiltIn failureReason = "not-built-in"
	failNoLibrary  failureReason = "no-library"
	failMismatch   failureReason = "mismatch"
	failNoDriver   failureReason = "no-driver"
	failPermission failureReason = "permission"
	failNoGPU      failureReason = "no-gpu"
	failOther      failureReason = "other"
)

// parseLine reads one line of the child and checks every number in it. A
// value that no GPU has is dropped, not passed on.
func parseLine(b []byte) (line, error) {
	var l line
	if err := json.Unmarshal(b, &l); err != nil {
		return line{}, err
	}
	if l.Index < 0 || l.Index > 255 {
		return line{}, fmt.Errorf("GPU %d is out of range", l.Index)
	}
	switch l.Kind {
	case lineStarting:
		return l, nil
	case lineDevice:
		if l.Device == nil {
			return line{}, errors.New("a device line without a device")
		}
		l.Device.check()
		return l, nil
	case lineSample:
		if l.Sample == nil {
			return line{}, errors.New("a sample line without a sample")
		}
		l.Sample.check()
		return l, nil
	case lineFailed:
		if l.Failed == nil {
			return line{}, errors.New("a failure without its reason")
		}
		for _, s := range []*string{&l.Failed.Detail, &l.Failed.Library, &l.Failed.Kernel} {
			*s = text.Bound(text.Clean(*s), 512)
		}
		return l, nil
	}
	return line{}, fmt.Errorf("unknown kind %.20q", l.Kind)
}

const maxMemory = 1 << 50 // bytes: beyond any GPU's

func (d *device) check() {
	for _, s := range []*string{&d.PCI, &d.UUID, &d.Name, &d.Driver} {
		*s = text.Bound(text.Clean(*s), 128)
	}
	d.PCI = normalPCI(d.PCI)
	if d.MemoryBytes > maxMemory {
		d.MemoryBytes = 0
	}
}

func (s *sample) check() {
	s.SMPercent = within(s.SMPercent, 0, 100)
	s.TemperatureC = within(s.TemperatureC, -100, 200)
	s.MemUsed = within(s.MemUsed, 0, maxMemory)
	s.MemTotal = within(s.MemTotal, 0, maxMemory)
	s.PowerMilliW = within(s.PowerMilliW, 0, 100_000_000)
	if len(s.ProcessMem) > maxProcesses {
		s.ProcessMem = s.ProcessMem[:maxProcesses]
	}
	kept := s.ProcessMem[:0]
	for _, p := range s.ProcessMem {
		if p.PID > 0 && p.PID <= 1<<22 && p.Bytes <= maxMemory { // 2^22: the kernel's PID_MAX_LIMIT
			kept = append(kept, p)
		}
	}
	s.ProcessMem = kept
}

func within[T int | uint64](p *T, low, high T) *T {
	if p == nil || *p < low || *p > high {
		return nil
	}
	return p
}

var pciAddress = regexp.MustCompile(`^(?:([0-9a-f]{1,8}):)?([0-9a-f]{2}):([0-9a-f]{2})(?:\.([0-7]))?$`)

// normalPCI writes a PCI address as the kernel does, 0000:1b:00.0; NVML writes
// the domain with eight digits. Empty: it is none.
func normalPCI(s string) string {
	m := pciAddress.FindStringSubmatch(strings.ToLower(strings.TrimSpace(s)))
	if m == nil {
		return ""
	}
	domain := strings.TrimLeft(m[1], "0")
	for len(domain) < 4 {
		domain = "0" + domain
	}
	function := m[4]
	if function == "" {
		function = "0"
	}
	return domain + ":" + m[2] + ":" + m[3] + "." + function
}
