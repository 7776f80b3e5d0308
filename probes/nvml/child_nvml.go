//go:build cgo && !nonvml

package nvml

import (
	"os"
	"slices"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"tsgtop/internal/sched"
)

// builtIn: NVML is in this build.
const builtIn = true

const libraryName = "libnvidia-ml.so.1"

// interval is the time from sample to sample.
const interval = time.Second

// deviceEvery is how many samples pass from one look at what may change of a
// GPU (MIG, persistence) to the next.
const deviceEvery = 10

// ask asks NVML until send does not want more (nil) or NVML does not work.
func ask(send func(line) bool) *failure {
	// Opened once more by ourselves: it then stays mapped when NVML's own
	// start fails, and its file's name tells the version.
	lib := dl.New(libraryName, dl.RTLD_LAZY|dl.RTLD_GLOBAL)
	if err := lib.Open(); err != nil {
		return &failure{Reason: failNoLibrary, Detail: err.Error()}
	}
	if ret := nvml.Init(); ret != nvml.SUCCESS {
		return failed(ret)
	}
	defer nvml.Shutdown()
	driver, ret := nvml.SystemGetDriverVersion()
	if ret != nvml.SUCCESS {
		driver = ""
	}
	count, ret := nvml.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return failed(ret)
	}
	if count == 0 {
		return &failure{Reason: failNoGPU}
	}
	handles := make(map[int]nvml.Device)
	for i := range count {
		h, r := nvml.DeviceGetHandleByIndex(i)
		if r != nvml.SUCCESS { // one that fell off the bus must not hide the others
			ret = r
			continue
		}
		handles[i] = h
	}
	if len(handles) == 0 {
		return failed(ret)
	}
	said := make([]device, count)
	for round := 0; ; round++ {
		next := time.Now().Add(interval)
		for i := range count {
			h, ok := handles[i]
			if !ok {
				continue
			}
			if round%deviceEvery == 0 {
				d := describe(h)
				d.Driver = driver
				if !d.equal(said[i]) {
					said[i] = d
					if !send(line{Kind: lineDevice, Index: i, Device: &d}) {
						return nil
					}
				}
			}
			if !send(line{Kind: lineSample, Index: i, Sample: measure(h)}) {
				return nil
			}
		}
		time.Sleep(time.Until(next))
	}
}

// failed is what an error of NVML's means.
func failed(ret nvml.Return) *failure {
	f := &failure{Reason: failOther, Detail: nvml.ErrorString(ret)}
	switch ret {
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		f.Reason = failNoLibrary
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		f.Reason = failMismatch
	case nvml.ERROR_DRIVER_NOT_LOADED:
		f.Reason = failNoDriver
	case nvml.ERROR_NO_PERMISSION:
		f.Reason = failPermission
	}
	if maps, err := os.ReadFile("/proc/self/maps"); err == nil {
		f.Library = loadedLibrary(string(maps))
	}
	if v, err := os.ReadFile("/proc/driver/nvidia/version"); err == nil {
		f.Kernel = parseKernelVersion(string(v))
	}
	return f
}

func describe(h nvml.Device) device {
	var d device
	if pci, ret := h.GetPciInfo(); ret == nvml.SUCCESS {
		d.PCI = cString(pci.BusId[:])
	}
	if s, ret := h.GetUUID(); ret == nvml.SUCCESS {
		d.UUID = s
	}
	if s, ret := h.GetName(); ret == nvml.SUCCESS {
		d.Name = s
	}
	// A GPU without MIG says so by an error, which is then "no".
	switch mode, _, ret := h.GetMigMode(); ret {
	case nvml.SUCCESS:
		d.MIG = sched.Ptr(mode == nvml.DEVICE_MIG_ENABLE)
	case nvml.ERROR_NOT_SUPPORTED:
		d.MIG = sched.Ptr(false)
	}
	if mode, ret := h.GetPersistenceMode(); ret == nvml.SUCCESS {
		d.Persistence = sched.Ptr(mode == nvml.FEATURE_ENABLED)
	}
	if m, ret := h.GetMemoryInfo(); ret == nvml.SUCCESS {
		d.MemoryBytes = m.Total
	}
	return d
}

func (d device) equal(o device) bool {
	same := func(a, b *bool) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }
	return same(d.MIG, o.MIG) && same(d.Persistence, o.Persistence) && d.PCI == o.PCI && d.UUID == o.UUID &&
		d.Name == o.Name && d.Driver == o.Driver && d.MemoryBytes == o.MemoryBytes
}

func measure(h nvml.Device) *sample {
	s := &sample{}
	if u, ret := h.GetUtilizationRates(); ret == nvml.SUCCESS {
		s.SMPercent = sched.Ptr(int(u.Gpu))
	}
	if m, ret := h.GetMemoryInfo(); ret == nvml.SUCCESS {
		s.MemUsed, s.MemTotal = &m.Used, &m.Total
	}
	if mw, ret := h.GetPowerUsage(); ret == nvml.SUCCESS {
		s.PowerMilliW = sched.Ptr(uint64(mw))
	}
	if c, ret := h.GetTemperature(nvml.TEMPERATURE_GPU); ret == nvml.SUCCESS {
		s.TemperatureC = sched.Ptr(int(int32(c)))
	}
	s.ProcessMem = processMemory(h)
	return s
}

// processMemory is the memory of each process, which NVML lists once for
// compute and once for graphics: a process in both has the same memory in each.
// With MIG a process comes once for each instance that it uses, and these add up.
func processMemory(h nvml.Device) []sched.ProcessMemory {
	const notAvailable = ^uint64(0) // NVML_VALUE_NOT_AVAILABLE in nvml.h, as 64 bits
	lists := [2]map[int]uint64{{}, {}}
	for i, get := range []func() ([]nvml.ProcessInfo, nvml.Return){h.GetComputeRunningProcesses, h.GetGraphicsRunningProcesses} {
		infos, ret := get()
		if ret != nvml.SUCCESS {
			continue
		}
		for _, p := range infos {
			if p.UsedGpuMemory != notAvailable {
				lists[i][int(p.Pid)] += p.UsedGpuMemory
			}
		}
	}
	for pid, n := range lists[1] {
		lists[0][pid] = max(lists[0][pid], n)
	}
	var out []sched.ProcessMemory
	for pid, n := range lists[0] {
		out = append(out, sched.ProcessMemory{PID: pid, Bytes: n})
	}
	slices.SortFunc(out, func(a, b sched.ProcessMemory) int { return a.PID - b.PID })
	if len(out) > maxProcesses {
		out = out[:maxProcesses]
	}
	return out
}

func cString(b []int8) string {
	var s []byte
	for _, c := range b {
		if c == 0 {
			break
		}
		s = append(s, byte(c))
	}
	return string(s)
}
