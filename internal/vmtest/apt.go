package vmtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// apt asks apt for packages of one architecture. For a foreign architecture, and
// for another release of Debian than this machine's, it keeps an index of its
// own, so that the machine's apt and dpkg are left as they are.
type apt struct {
	opts []string
}

// newApt makes one that keeps what it must keep in the folder state. release is
// the Debian release to ask, such as "bullseye"; empty: what this machine asks.
func newApt(arch, release, state string) (*apt, error) {
	if _, err := exec.LookPath("apt-cache"); err != nil {
		return nil, fmt.Errorf("kernels are fetched with apt: %w", err)
	}
	a := &apt{opts: []string{"-o", "APT::Sandbox::User=root"}}
	if arch == runtime.GOARCH && release == "" {
		return a, nil
	}
	for _, d := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(state, d), 0o755); err != nil {
			return nil, err
		}
	}
	if release != "" {
		sources := filepath.Join(state, "sources.list")
		if err := os.WriteFile(sources, []byte(sourcesOf(release)), 0o644); err != nil {
			return nil, err
		}
		// An old release's index is not signed again, so its date says nothing.
		a.opts = append(a.opts, "-o", "Dir::Etc::sourcelist="+sources, "-o", "Dir::Etc::sourceparts=/dev/null", "-o", "Acquire::Check-Valid-Until=false")
	}
	if arch != runtime.GOARCH {
		a.opts = append(a.opts,
			"-o", "APT::Architecture="+arch,
			"-o", "APT::Architectures::="+arch,
			"-o", "APT::Architectures::="+runtime.GOARCH)
	}
	a.opts = append(a.opts,
		"-o", "Dir::State::lists="+filepath.Join(state, "lists"),
		"-o", "Dir::Cache="+filepath.Join(state, "cache"))
	if lists, _ := filepath.Glob(filepath.Join(state, "lists/*_Packages*")); len(lists) == 0 {
		if _, err := run("", "apt-get", append(a.opts, "update")...); err != nil {
			return nil, fmt.Errorf("fetch the package index of %s: %w", arch, err)
		}
	}
	return a, nil
}

func sourcesOf(release string) string {
	const signed = "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/"
	return signed + "debian " + release + " main\n" + signed + "debian-security " + release + "-security main\n"
}

// dependency is the first package with the prefix that pkg depends on.
func (a *apt) dependency(pkg, prefix string) (string, error) {
	out, err := run("", "apt-cache", append(a.opts, "depends", pkg)...)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) == 2 && strings.TrimPrefix(f[0], "|") == "Depends:" && strings.HasPrefix(f[1], prefix) {
			return f[1], nil
		}
	}
	return "", fmt.Errorf("apt: %s depends on no %s…: does `apt-get update` help?", pkg, prefix)
}

func (a *apt) download(dir string, pkgs []string) error {
	args := append(append([]string{}, a.opts...), "download")
	_, err := run(dir, "apt-get", append(args, pkgs...)...)
	return err
}
