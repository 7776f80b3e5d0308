package vmtest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// Module is one way to build a kernel module out of the repository.
type Module struct {
	File    string   // name of the file in the guest, without .ko
	Source  string   // folder, relative to the repository
	Object  string   // name that Kbuild gives the module, without .ko
	CFlags  []string // added to the compiler's, to build variants
	NoBTF   bool     // strip the BTF again: what many distributions ship
	BTFTool string   // script that adds BTF where kbuild did not, relative to the repository
}

// Build builds the module against the kernel, or finds it in the cache under
// the digest of its sources and flags. It gives the path of the .ko file.
func (m Module) Build(k *Kernel, repo string) (string, error) {
	src := filepath.Join(repo, m.Source)
	if k.Old() {
		m.NoBTF = true
	}
	sum, err := m.digest(k, repo)
	if err != nil {
		return "", err
	}
	cache := filepath.Join(k.Dir, "modules")
	done := filepath.Join(cache, m.File+"-"+sum+".ko")
	if _, err := os.Stat(done); err == nil {
		return done, nil
	}
	work := filepath.Join(cache, m.File+".build")
	if err := os.RemoveAll(work); err != nil {
		return "", err
	}
	if err := copyTree(work, src); err != nil {
		return "", err
	}
	args := []string{"-C", k.Headers, "M=" + work, "KCFLAGS=" + strings.Join(m.CFlags, " "), "modules"}
	if k.Arch == "arm64" {
		args = append(args, "ARCH=arm64", "CROSS_COMPILE=aarch64-linux-gnu-")
	}
	if k.Old() { // the compiler that its headers name is that of its release
		args = append(args, "CC=gcc")
	}
	out, err := run(work, "make", args...)
	if err != nil {
		return "", fmt.Errorf("build %s for %s: %w", m.File, k.Release, err)
	}
	if strings.Contains(string(out), "warning:") {
		return "", fmt.Errorf("build %s for %s: the compiler warns:\n%s", m.File, k.Release, out)
	}
	ko := filepath.Join(work, m.Object+".ko")
	if m.BTFTool != "" && !m.NoBTF {
		if _, err := run(work, "sh", filepath.Join(repo, m.BTFTool), ko, k.BTF); err != nil {
			return "", fmt.Errorf("add BTF to %s: %w", ko, err)
		}
	}
	strip, objcopy := "strip", "objcopy"
	if k.Arch == "arm64" {
		strip, objcopy = "aarch64-linux-gnu-strip", "aarch64-linux-gnu-objcopy"
	}
	if _, err := run(work, strip, "--strip-debug", ko); err != nil {
		return "", err
	}
	if m.NoBTF {
		if _, err := run(work, objcopy, "--remove-section=.BTF", "--remove-section=.BTF.base", ko); err != nil {
			return "", err
		}
	}
	if old, _ := filepath.Glob(filepath.Join(cache, m.File+"-????????????.ko")); len(old) > 0 {
		for _, o := range old {
			os.Remove(o) // a failure leaves an old file behind, no more
		}
	}
	return done, os.Rename(ko, done)
}

func (m Module) digest(k *Kernel, repo string) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%+v %s\n", m, k.Release)
	files, err := sources(filepath.Join(repo, m.Source))
	if err != nil {
		return "", err
	}
	if m.BTFTool != "" {
		more, err := sources(filepath.Join(repo, filepath.Dir(m.BTFTool)))
		if err != nil {
			return "", err
		}
		files = append(files, more...)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return "", err
		}
		rel, err := filepath.Rel(repo, f)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n", rel, len(b))
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil))[:12], nil
}

// sources lists what a module is built from: C, headers, Kbuild files, scripts
// of its own folder (not of folders below it).
func sources(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		switch ext := filepath.Ext(e.Name()); {
		case e.IsDir():
		case ext == ".c" && !strings.HasSuffix(e.Name(), ".mod.c"), ext == ".h", ext == ".sh", e.Name() == "Kbuild", e.Name() == "Makefile":
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	sort.Strings(out)
	return out, nil
}

func copyTree(to, from string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	files, err := sources(from)
	if err != nil {
		return err
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(f)), b, fs.FileMode(0o644)); err != nil {
			return err
		}
	}
	return nil
}
