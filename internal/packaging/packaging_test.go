// Package packaging tests the packages that dist.sh makes.
package packaging

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"tsgtop/internal/packaging/internal/glibc"
)

// statedFloor is what docs/packages.md says of the packages for Debian 12 and newer.
const statedFloor = "2.34"

func TestStatedFloor(t *testing.T) {
	b, err := os.ReadFile("../../docs/packages.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), "glibc "+statedFloor) {
		t.Errorf("docs/packages.md does not state the floor of glibc %s", statedFloor)
	}
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func need(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("skip: needs %s", tool)
		}
	}
}

// The packages of this architecture, made, installed in a root that holds
// nothing but the C library, and run there.
func TestDist(t *testing.T) {
	if os.Getenv("TSGTOP_TEST_DIST") == "" {
		t.Skip("skip: takes minutes: make test-dist runs it")
	}
	need(t, "dpkg", "dpkg-deb", "git", "gzip")
	if os.Geteuid() != 0 {
		t.Skip("skip: needs root: chroot")
	}
	arch := runtime.GOARCH
	cmd := exec.Command("./dist.sh")
	cmd.Env = append(os.Environ(), "ARCHES="+arch, "VERSION=v9.8.7")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("dist.sh: %v\n%s", err, out)
	}
	dist, err := filepath.Abs("../../dist")
	if err != nil {
		t.Fatal(err)
	}
	deb := filepath.Join(dist, "tsgtop_9.8.7_"+arch+".deb")

	// A root with a package database that knows nothing but the C library.
	root := t.TempDir()
	for _, d := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates", "lib64", "lib", "proc", "dev", "tmp"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	status := "Package: libc6\nStatus: install ok installed\nMaintainer: x\nArchitecture: " + arch + "\nVersion: " + statedFloor + "-1\nDescription: x\n"
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), []byte(status), 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, "dpkg", "--root="+root, "--force-script-chrootless", "-i", deb)
	bin := filepath.Join(root, "usr/bin/tsgtop")
	copyLibraries(t, bin, root)

	floor, err := glibc.Floor(bin)
	if err != nil || glibc.Compare(floor, statedFloor) > 0 {
		t.Errorf("the program needs glibc %q (%v), and %s is stated", floor, err, statedFloor)
	}
	if info := run(t, "dpkg-deb", "-f", deb, "Depends"); floor != "" && strings.TrimSpace(info) != "libc6 (>= "+floor+")" {
		t.Errorf("it depends on %q, and needs %s", info, floor)
	}

	inside := func(args ...string) string {
		t.Helper()
		return run(t, "chroot", append([]string{root, "/usr/bin/tsgtop"}, args...)...)
	}
	if out := inside("version"); !strings.HasPrefix(out, "tsgtop v9.8.7\ncommit ") || strings.Contains(out, "commit -") {
		t.Errorf("version: %s", out)
	}
	if out := inside("ls", "--source", "demo"); !strings.Contains(out, "RESIDENCY") {
		t.Errorf("ls: %s", out)
	}
	for to, begins := range map[string]string{"csv": "gpu,", "json": `{"k":"header"`, "cast": `{"env"`, "perfetto": "\n"} {
		out := inside("export", "demo", "--to", to, "-o", "-")
		if len(out) < 10_000 || !strings.HasPrefix(out, begins) {
			t.Errorf("export to %s: %.60q", to, out)
		}
	}
	for _, f := range []string{"usr/share/bash-completion/completions/tsgtop", "usr/share/zsh/vendor-completions/_tsgtop",
		"usr/share/fish/vendor_completions.d/tsgtop.fish", "usr/share/doc/tsgtop/README.md", "usr/share/doc/tsgtop/copyright",
		"usr/share/doc/tsgtop/LICENSE.GPL-2.0", "usr/share/doc/tsgtop/docs/grafana/tsgtop.json", "usr/share/man/man8/tsgtop-export.8.gz"} {
		if st, err := os.Stat(filepath.Join(root, f)); err != nil || st.Size() == 0 || st.Mode().Perm()&0o044 != 0o044 {
			t.Errorf("%s: %v", f, err)
		}
	}
	if _, err := exec.LookPath("man"); err == nil {
		c := exec.Command("man", "-M", filepath.Join(root, "usr/share/man"), "tsgtop")
		c.Env = append(os.Environ(), "MANPAGER=cat", "LC_ALL=C.UTF-8")
		if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "NAME") {
			t.Errorf("man tsgtop: %v\n%s", err, out)
		}
	}
	run(t, "dpkg", "--root="+root, "--force-script-chrootless", "--purge", "tsgtop")
	if _, err := os.Stat(bin); err == nil {
		t.Error("removing the package leaves the program")
	}

	checkDKMS(t, filepath.Join(dist, "tsgtop-dkms_9.8.7_all.deb"))
	run(t, "sh", "-c", "cd "+dist+" && sha256sum --quiet -c SHA256SUMS")
}

// copyLibraries puts what the program is linked with into the root, as the
// package of the C library would.
func copyLibraries(t *testing.T, bin, root string) {
	t.Helper()
	f, err := elf.Open(bin)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	out, err := exec.Command("ldd", bin).CombinedOutput()
	if err != nil {
		return // static
	}
	for _, path := range regexp.MustCompile(`/\S+`).FindAllString(string(out), -1) {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		to := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, b, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// checkDKMS looks at the package of the module's source.
func checkDKMS(t *testing.T, deb string) {
	t.Helper()
	root := t.TempDir()
	run(t, "dpkg-deb", "-R", deb, root)
	src := filepath.Join(root, "usr/src/tsgtop-9.8.7")
	conf, err := os.ReadFile(filepath.Join(src, "dkms.conf"))
	if err != nil || !strings.Contains(string(conf), `PACKAGE_VERSION="9.8.7"`) || !strings.Contains(string(conf), `PACKAGE_NAME="tsgtop"`) {
		t.Errorf("dkms.conf: %v\n%s", err, conf)
	}
	// All that the build file names is there.
	kbuild, err := os.ReadFile(filepath.Join(src, "Kbuild"))
	if err != nil {
		t.Fatal(err)
	}
	objects := regexp.MustCompile(`(\w+)\.o`).FindAllStringSubmatch(string(kbuild), -1)
	if len(objects) < 4 {
		t.Errorf("Kbuild names %d objects", len(objects))
	}
	for _, m := range objects {
		if m[1] == "tsgtop" {
			continue // the module itself
		}
		if _, err := os.Stat(filepath.Join(src, m[1]+".c")); err != nil {
			t.Errorf("the source of %s.o is missing", m[1])
		}
	}
	for _, script := range []string{"postinst", "prerm"} {
		path := filepath.Join(root, "DEBIAN", script)
		b, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(b), `"9.8.7"`) || strings.Contains(string(b), "@VERSION@") {
			t.Errorf("%s: %v", script, err)
		}
		run(t, "sh", "-n", path)
	}
}
