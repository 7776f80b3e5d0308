package vmtest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"sort"
	"strings"
)

// Kernel is a Debian kernel, unpacked into the cache and ready to boot and to
// build modules against. Nothing of it is installed on the machine.
type Kernel struct {
	Series  string // "6.12", "6.1": what was asked for
	Arch    string // Debian's and Go's name: amd64, arm64
	Release string // uname -r
	Dir     string // its folder in the cache
	Image   string // what qemu boots: an uncompressed vmlinux (PVH), or arm64's Image
	BTF     string // raw BTF of the kernel, the base of modules' BTF
	Headers string // folder for make -C
}

// Name is the series, with the architecture where it is not this machine's.
func (k *Kernel) Name() string {
	if k.Arch == runtime.GOARCH {
		return k.Series
	}
	return k.Series + "-" + k.Arch
}

// metaPackage is the Debian package that depends on the newest cloud kernel of
// a series. 6.12 is in bookworm-security beside bookworm's own 6.1.
func metaPackage(series, arch string) string {
	if series == "6.1" || series == "5.10" { // their releases' own
		return "linux-image-cloud-" + arch
	}
	return "linux-image-" + series + "-cloud-" + arch
}

// release is the Debian release that has a series, where it is not the one that
// this machine's apt asks.
func release(series string) string {
	if series == "5.10" {
		return "bullseye"
	}
	return ""
}

// Old says that the kernel has no sleepable kfuncs (they came with 6.1), and no
// BTF of modules to count on.
func (k *Kernel) Old() bool {
	var major, minor int
	if _, err := fmt.Sscanf(k.Series, "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major < 6 || major == 6 && minor < 1
}

// ParseKernel splits "6.12", "6.12-arm64" into series and architecture.
func ParseKernel(name string) (series, arch string, err error) {
	m := regexp.MustCompile(`^(\d+\.\d+)(?:-(amd64|arm64))?$`).FindStringSubmatch(name)
	if m == nil {
		return "", "", fmt.Errorf("kernel %q: want a series such as 6.12, or 6.12-arm64", name)
	}
	if m[2] == "" {
		m[2] = "amd64"
	}
	return m[1], m[2], nil
}

// EnsureKernel gives the newest kernel of a series that Debian has, from the
// cache or fetched with apt. Where apt cannot answer, the newest in the cache.
func EnsureKernel(name string, log func(string, ...any)) (*Kernel, error) {
	series, arch, err := ParseKernel(name)
	if err != nil {
		return nil, err
	}
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	root := filepath.Join(cache, "kernels", series+"-"+arch)
	apt, err := newApt(arch, release(series), filepath.Join(cache, strings.TrimSuffix("apt-"+arch+"-"+release(series), "-")))
	if err != nil {
		return nil, err
	}
	image, aptErr := apt.dependency(metaPackage(series, arch), "linux-image-")
	if aptErr != nil {
		if old, err := newestCached(root, series, arch); err == nil {
			log("apt does not know %s (%v): the cached kernel %s is used", metaPackage(series, arch), aptErr, old.Release)
			return old, nil
		}
		return nil, fmt.Errorf("resolve kernel %s: %w", name, aptErr)
	}
	image = strings.TrimSuffix(image, "-unsigned")
	release := strings.TrimPrefix(image, "linux-image-")
	k := &Kernel{Series: series, Arch: arch, Release: release, Dir: filepath.Join(root, release)}
	if k.fill() == nil {
		return k, nil
	}
	log("fetching kernel %s", release)
	if err := k.fetch(apt, image); err != nil {
		return nil, fmt.Errorf("kernel %s: %w", release, err)
	}
	return k, k.fill()
}

func newestCached(root, series, arch string) (*Kernel, error) {
	dirs, err := filepath.Glob(filepath.Join(root, "*", "complete"))
	if err != nil || len(dirs) == 0 {
		return nil, errors.New("no kernel in the cache")
	}
	sort.Slice(dirs, func(i, j int) bool {
		a, _ := os.Stat(dirs[i])
		b, _ := os.Stat(dirs[j])
		return a != nil && b != nil && a.ModTime().After(b.ModTime())
	})
	dir := filepath.Dir(dirs[0])
	k := &Kernel{Series: series, Arch: arch, Release: filepath.Base(dir), Dir: dir}
	return k, k.fill()
}

// fill sets the paths of a kernel that is complete in the cache.
func (k *Kernel) fill() error {
	if _, err := os.Stat(filepath.Join(k.Dir, "complete")); err != nil {
		return err
	}
	k.Image = filepath.Join(k.Dir, "vmlinux")
	if k.Arch == "arm64" {
		k.Image = filepath.Join(k.Dir, "Image")
	}
	k.BTF = filepath.Join(k.Dir, "vmlinux.btf")
	k.Headers = filepath.Join(k.Dir, "h/usr/src/linux-headers-"+k.Release)
	for _, p := range []string{k.Image, k.Headers} {
		if _, err := os.Stat(p); err != nil {
			return err
		}
	}
	return nil
}

func (k *Kernel) fetch(apt *apt, image string) error {
	tmp := k.Dir + ".new"
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(tmp, "h"), 0o755); err != nil {
		return err
	}
	headers := "linux-headers-" + k.Release
	pkgs := []string{image, headers}
	for _, prefix := range []string{"linux-headers-", "linux-kbuild-"} {
		p, err := apt.dependency(headers, prefix)
		if err != nil {
			return err
		}
		if prefix == "linux-kbuild-" {
			p += ":" + runtime.GOARCH // tools that run here, not in the guest
		}
		pkgs = append(pkgs, p)
	}
	if err := apt.download(tmp, pkgs); err != nil {
		return err
	}
	debs, err := filepath.Glob(filepath.Join(tmp, "*.deb"))
	if err != nil {
		return err
	}
	for _, deb := range debs {
		if strings.HasPrefix(filepath.Base(deb), "linux-image") {
			err = unpackBoot(deb, tmp)
		} else {
			_, err = run("", "dpkg", "-x", deb, filepath.Join(tmp, "h"))
		}
		if err != nil {
			return err
		}
		if err := os.Remove(deb); err != nil {
			return err
		}
	}
	if err := relocateHeaders(filepath.Join(tmp, "h/usr/src", headers)); err != nil {
		return err
	}
	if err := extractImage(tmp, k.Arch); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(tmp, "complete"), []byte(k.Release+"\n"), 0o644); err != nil {
		return err
	}
	if err := os.RemoveAll(k.Dir); err != nil {
		return err
	}
	return os.Rename(tmp, k.Dir)
}

// relocateHeaders makes a Debian headers folder work where it was unpacked: its
// Makefile includes the common headers by an absolute path.
func relocateHeaders(dir string) error {
	path := filepath.Join(dir, "Makefile")
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	b = bytes.ReplaceAll(b, []byte("include /usr/src/"), []byte("include $(dir $(lastword $(MAKEFILE_LIST)))../"))
	return os.WriteFile(path, b, 0o644)
}

func unpackBoot(deb, dir string) error {
	_, err := run("", "sh", "-c", `dpkg --fsys-tarfile "$1" | tar -C "$2" -x --wildcards './boot/vmlinuz*'`, "sh", deb, dir)
	return err
}

// run runs a command and gives its output; an error quotes the end of it.
func run(dir, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		tail := out
		if len(tail) > 2000 {
			tail = tail[len(tail)-2000:]
		}
		return out, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, tail)
	}
	return out, nil
}
