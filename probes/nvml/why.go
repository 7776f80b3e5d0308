package nvml

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// What would be missing without NVML, in words.
const gives = "names, utilisation, memory, power and temperature of the GPUs, and memory by process"

// sentence says a failure, and what would help, for people.
func (f failure) sentence() (why, help string) {
	detail := ""
	if f.Detail != "" {
		detail = " (" + f.Detail + ")"
	}
	switch f.Reason {
	case failNotBuiltIn:
		return "this tsgtop was built without NVML", "build it with cgo and without the tag nonvml"
	case failNoLibrary:
		return "NVML's library libnvidia-ml.so.1 is not to be found" + detail,
			"install the driver's own libraries (Debian, Ubuntu: libnvidia-compute-…; in a container: run it with the NVIDIA container toolkit and the utility capability)"
	case failMismatch:
		lib := libraryVersion(f.Library)
		switch {
		case lib == "":
			lib = "another version"
		default:
			lib = "version " + lib
		}
		kernel := f.Kernel
		if kernel == "" {
			kernel = "of a version that cannot be told"
		}
		return fmt.Sprintf("driver and library do not fit: the kernel has driver %s loaded, NVML's library is %s", kernel, lib),
			"load the driver again (as a restart does), or install the libraries of the version that is loaded"
	case failNoDriver:
		return "NVML finds no NVIDIA driver loaded" + detail, "modprobe nvidia"
	case failPermission:
		return "NVML may not open the driver's devices" + detail, "run it as root, or in a container with access to /dev/nvidia*"
	case failNoGPU:
		return "NVML finds no GPU" + detail, ""
	}
	return "NVML does not work" + detail, ""
}

var versionInName = regexp.MustCompile(`\.so\.([0-9]+\.[0-9.]*[0-9])$`)

// libraryVersion is the driver version in the name of NVML's library file, or empty.
func libraryVersion(file string) string {
	if m := versionInName.FindStringSubmatch(path.Base(file)); m != nil {
		return m[1]
	}
	return ""
}

var kernelVersion = regexp.MustCompile(`(?m)^NVRM version:.*?\s([0-9]+\.[0-9]+(?:\.[0-9]+)*)\s`)

// parseKernelVersion is the driver version in /proc/driver/nvidia/version, or empty.
func parseKernelVersion(s string) string {
	if m := kernelVersion.FindStringSubmatch(s); m != nil {
		return m[1]
	}
	return ""
}

// loadedLibrary is the path of NVML's library in the text of /proc/self/maps, or empty.
func loadedLibrary(maps string) string {
	for l := range strings.Lines(maps) {
		if i := strings.IndexByte(l, '/'); i >= 0 {
			file := strings.TrimSuffix(l[i:], "\n")
			if strings.HasPrefix(path.Base(file), "libnvidia-ml.so") {
				return file
			}
		}
	}
	return ""
}
