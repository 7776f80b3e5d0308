package vmtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Options of a run.
type Options struct {
	Kernel   string        // "6.12", "6.1", "6.12-arm64"
	Packages []string      // test packages for the guest; default: GuestPackages
	Run      string        // -test.run; default: all, and for kernels without kfuncs those that are for them
	Args     []string      // more arguments for the test binaries
	Timeout  time.Duration // of the machine; default 10 minutes
	MemoryMB int           // default 512
	Cover    string        // folder for coverage profiles; empty: none
	LogDir   string        // keeps console, result and initramfs; default a temporary folder that a success removes
	Log      func(format string, args ...any)
}

// GuestPackages are the packages whose tests run inside, with -tags vmtest.
var GuestPackages = []string{"./internal/vmtest/inside"}

// GuestModules are the modules that the guest's tests load, under /modules.
var GuestModules = []Module{
	{File: "nvidia", Source: "kmod/model", Object: "nvidia", BTFTool: "kmod/scripts/btf.sh"},
	{File: "nvidia-nobtf", Source: "kmod/model", Object: "nvidia", NoBTF: true},
	{File: "nvidia-plain", Source: "kmod/model", Object: "nvidia", CFlags: []string{"-DMODEL_PLAIN_EXPORT"}, BTFTool: "kmod/scripts/btf.sh"},
	{File: "nvidia-proprietary", Source: "kmod/model/proprietary", Object: "nvidia", NoBTF: true},
	{File: "tsgtop", Source: "kmod", Object: "tsgtop", BTFTool: "kmod/scripts/btf.sh"},
	{File: "tsgtop-nobtf", Source: "kmod", Object: "tsgtop", NoBTF: true},
}

// Run boots one kernel, runs the tests inside and gives what came out.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Minute
	}
	if o.MemoryMB == 0 {
		o.MemoryMB = 512
	}
	if len(o.Packages) == 0 {
		o.Packages = GuestPackages
	}
	repo, err := RepoRoot()
	if err != nil {
		return nil, err
	}
	building.Lock()
	k, err := EnsureKernel(o.Kernel, o.Log)
	building.Unlock()
	if err != nil {
		return nil, err
	}
	if k.Old() && o.Run == "" {
		o.Run = "^(TestBoot|TestOld)"
	}
	dir := o.LogDir
	if dir == "" {
		if dir, err = os.MkdirTemp("", "vmtest-"); err != nil {
			return nil, err
		}
	} else if err = os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	building.Lock()
	start := time.Now()
	irfs, err := pack(k, repo, dir, o)
	building.Unlock()
	if err != nil {
		return nil, err
	}
	o.Log("%s: built in %.1fs", k.Release, time.Since(start).Seconds())
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	start = time.Now()
	bootErr := k.Boot(ctx, dir, irfs, o.MemoryMB)
	result, _ := os.ReadFile(filepath.Join(dir, "result.log"))
	console, _ := os.ReadFile(filepath.Join(dir, "console.log"))
	r := Parse(result, console)
	if bootErr != nil {
		r.Problems = append(r.Problems, bootErr.Error())
	}
	o.Log("%s: ran in %.1fs", k.Release, time.Since(start).Seconds())
	if err := r.writeFiles(dir, o.Cover, k); err != nil {
		return r, err
	}
	if !r.OK() {
		o.Log("logs: %s", dir)
	} else if o.LogDir == "" {
		os.RemoveAll(dir) // left behind where it cannot be removed
	}
	return r, nil
}

// building: builds use all processors by themselves, and the same caches.
var building sync.Mutex

// pack builds everything that goes into the guest.
func pack(k *Kernel, repo, dir string, o Options) ([]byte, error) {
	irfs := NewInitramfs()
	if err := goBuild(repo, k.Arch, filepath.Join(dir, "init"), "build", "./internal/vmtest/vminit"); err != nil {
		return nil, err
	}
	if err := irfs.AddFile("init", filepath.Join(dir, "init"), 0o755); err != nil {
		return nil, err
	}
	if err := goBuild(repo, k.Arch, filepath.Join(dir, "tsgtop"), "build", "."); err != nil {
		return nil, err
	}
	if err := irfs.AddFile("tsgtop", filepath.Join(dir, "tsgtop"), 0o755); err != nil {
		return nil, err
	}
	var plan strings.Builder
	for i, pkg := range o.Packages {
		bin := fmt.Sprintf("t%d.test", i)
		args := []string{"test", "-c"}
		if o.Cover != "" {
			args = append(args, "-covermode=atomic", "-coverpkg=tsgtop/probes/...,tsgtop/actions/...,tsgtop/internal/rmdev/...")
		}
		if err := goBuild(repo, k.Arch, filepath.Join(dir, bin), append(args, pkg)...); err != nil {
			return nil, err
		}
		if err := irfs.AddFile("tests/"+bin, filepath.Join(dir, bin), 0o755); err != nil {
			return nil, err
		}
		fmt.Fprintf(&plan, "/tests/%s\t-test.v\t-test.timeout=%s", bin, o.Timeout)
		if o.Run != "" {
			fmt.Fprintf(&plan, "\t-test.run=%s", o.Run)
		}
		if o.Cover != "" {
			fmt.Fprintf(&plan, "\t-test.coverprofile=/out/%s.cover", bin)
		}
		for _, a := range o.Args {
			plan.WriteString("\t" + a)
		}
		plan.WriteByte('\n')
	}
	irfs.Add("plan", []byte(plan.String()), 0o644)
	for _, m := range GuestModules {
		ko, err := m.Build(k, repo)
		if err != nil {
			return nil, err
		}
		if err := irfs.AddFile("modules/"+m.File+".ko", ko, 0o644); err != nil {
			return nil, err
		}
	}
	return irfs.Bytes(), nil
}

// goBuild makes a static binary for the guest. The symbol table stays in:
// uprobes on the own binary need it.
func goBuild(repo, arch, out string, args ...string) error {
	verb := args[0]
	rest := args[1:]
	full := append([]string{verb, "-tags", "nonvml,vmtest", "-ldflags=-w", "-o", out}, rest...)
	cmd := exec.Command("go", full...)
	cmd.Dir = repo
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	if b, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(full, " "), err, b)
	}
	return nil
}

func (r *Report) writeFiles(dir, cover string, k *Kernel) error {
	for name, b := range r.Files {
		to := filepath.Join(dir, filepath.Base(name))
		if strings.HasSuffix(name, ".cover") && cover != "" {
			if err := os.MkdirAll(cover, 0o755); err != nil {
				return err
			}
			to = filepath.Join(cover, k.Name()+"-"+filepath.Base(name))
		}
		if err := os.WriteFile(to, b, 0o644); err != nil {
			return err
		}
	}
	return nil
}
