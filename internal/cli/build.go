package cli

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"tsgtop/bpf"
	"tsgtop/internal/rm"
	"tsgtop/internal/sched"
)

// commit is set by the linker, where the build knew it.
var commit string

// buildInfo is what `version --json` prints.
type buildInfo struct {
	Version   string       `json:"version"`
	Commit    string       `json:"commit"`
	Go        string       `json:"go"`
	Arch      string       `json:"arch"`
	Tags      string       `json:"tags"`
	Cgo       bool         `json:"cgo"`
	Recording int          `json:"recording_schema"`
	Drivers   []int        `json:"driver_branches"`
	Clang     string       `json:"clang"`
	Objects   []bpf.Object `json:"ebpf"`
}

func thisBuild() buildInfo {
	b := buildInfo{Version: version, Commit: commit, Go: runtime.Version(), Arch: runtime.GOARCH, Recording: sched.SchemaVersion,
		Drivers: rm.Branches(), Clang: bpf.Clang, Objects: bpf.Objects()}
	if bi, ok := debug.ReadBuildInfo(); ok {
		for _, s := range bi.Settings {
			switch s.Key {
			case "vcs.revision":
				if b.Commit == "" {
					b.Commit = s.Value
				}
			case "-tags":
				b.Tags = s.Value
			case "CGO_ENABLED":
				b.Cgo = s.Value == "1"
			}
		}
	}
	return b
}

func (b *buildInfo) print(w io.Writer) {
	fmt.Fprintf(w, "tsgtop %s\ncommit %s\n%s %s, tags %q\n", b.Version, or(b.Commit), b.Go, b.Arch, b.Tags)
	nvml := "with NVML"
	if !b.Cgo || strings.Contains(b.Tags, "nonvml") {
		nvml = "without NVML: built without cgo"
	}
	fmt.Fprintln(w, nvml)
	drivers := strings.Trim(fmt.Sprint(b.Drivers), "[]")
	fmt.Fprintf(w, "driver branches whose calls were compared: %s; another is taken to be like its nearest older one\n", strings.ReplaceAll(drivers, " ", ", "))
	fmt.Fprintf(w, "recordings: schema %d\n", b.Recording)
	fmt.Fprintf(w, "eBPF objects, made with %s:", b.Clang)
	for _, o := range b.Objects {
		fmt.Fprintf(w, " %s %.12s", o.Name, o.SHA256)
	}
	fmt.Fprintln(w)
}
