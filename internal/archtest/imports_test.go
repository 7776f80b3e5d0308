package archtest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// root is the top of the source.
const root = "../.."

const module = "tsgtop"

// sources walks over the files of the source, by their paths from the top.
func sources(t *testing.T, visit func(file string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if rel != "." && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".ci" || d.Name() == "testdata" || rel == "dist") {
				return filepath.SkipDir
			}
			return nil
		}
		if d.Type().IsRegular() {
			visit(filepath.ToSlash(rel))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// imports gives what each package imports; those of tests are left out.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	sources(t, func(file string) {
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		pkg := path.Join(module, path.Dir(file))
		out[pkg] = append(out[pkg], []string{}...)
		for _, i := range f.Imports {
			name, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(out[pkg], name) {
				out[pkg] = append(out[pkg], name)
			}
		}
	})
	return out
}

// reach gives all that a package imports through other packages of ours, each
// with the way to it.
func reach(all map[string][]string, pkg string) map[string]string {
	out := map[string]string{}
	var walk func(pkg, way string)
	walk = func(pkg, way string) {
		for _, i := range all[pkg] {
			if _, met := out[i]; met {
				continue
			}
			out[i] = way + " -> " + i
			walk(i, out[i])
		}
	}
	walk(pkg, pkg)
	return out
}

// below tells whether a package is one of the folders, or in one.
func below(pkg string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(f string) bool {
		return f == pkg || strings.HasPrefix(pkg, f+"/")
	})
}

func ours(folders ...string) []string {
	for i := range folders {
		folders[i] = path.Join(module, folders[i])
	}
	return folders
}

// Packages that touch the system, by which pure code would no longer be pure.
var system = []string{"os", "os/exec", "os/signal", "os/user", "net", "syscall", "unsafe", "plugin", "golang.org/x/sys",
	"github.com/cilium/ebpf", "github.com/NVIDIA/go-nvml", "github.com/creack/pty"}

// TestDependenciesPointOneWay: main -> ui, actions, probes -> sched -> rm.
func TestDependenciesPointOneWay(t *testing.T) {
	all := imports(t)
	observe, act := ours("probes", "bpf", "internal/rmdev"), ours("actions")
	kernel := []string{"github.com/cilium/ebpf", "github.com/NVIDIA/go-nvml"}
	top := ours("internal/cli", "ui", "internal/export", "internal/metrics")
	for _, rule := range []struct {
		of  string
		not []string // also through other packages
	}{
		{"ui", slices.Concat(observe, act, kernel, ours("internal/cli", "internal/recording", "internal/sim"))},
		{"themes", ours("ui", "internal", "probes", "actions", "bpf")},
		{"probes", slices.Concat(act, top, ours("internal/recording", "internal/sim"))},
		{"actions", slices.Concat(top, ours("probes", "internal/recording"))},
		{"actions/verdict", slices.Concat(observe, kernel, system)},
		{"internal/sched", slices.Concat(observe, act, top, system)},
		{"internal/rm", slices.Concat(ours("internal/sched"), observe, act, top, system)},
		{"internal/text", slices.Concat(ours("internal/sched", "internal/rm"), observe, act, top, system)},
		{"internal/recording", slices.Concat(observe, act, top, kernel)},
		{"internal/sim", slices.Concat(observe, act, top, kernel)},
		{"internal/export", slices.Concat(observe, act, kernel, ours("internal/cli"))},
		{"internal/metrics", slices.Concat(observe, act, kernel, ours("internal/cli"))},
		{"internal/rmdev", slices.Concat(act, top, ours("internal/sched", "probes", "bpf"))},
		{"internal/config", ours("actions", "probes", "bpf", "ui")},
		{"internal/privdrop", ours("internal/sched", "actions", "probes", "bpf", "ui")},
		{"internal/crash", ours("internal/sched", "actions", "probes", "bpf", "ui")},
		{"bpf", ours("internal", "probes", "actions", "ui")},
	} {
		pkg := path.Join(module, rule.of)
		if all[pkg] == nil {
			t.Errorf("there is no package %s any more: change the rule", rule.of)
		}
		for name := range all {
			if name != pkg && !below(name, pkg) || rule.of == "actions" && below(name, ours("actions/verdict")...) {
				continue
			}
			if isProgram(name) {
				continue
			}
			for dep, way := range reach(all, name) {
				if below(dep, rule.not...) {
					t.Errorf("%s must not know %s: %s", name, dep, way)
				}
			}
		}
	}
}

// isProgram tells of commands that build or test, which stand outside the rules.
func isProgram(pkg string) bool {
	return strings.Contains(pkg, "/cmd/") || below(pkg, ours("internal/rm/genheader", "internal/rm/gennames")...)
}

// TestOnlyTheseMay: what few packages may name.
func TestOnlyTheseMay(t *testing.T) {
	all := imports(t)
	for _, rule := range []struct {
		what []string
		may  []string
	}{
		{ours("internal/cli"), ours("")},
		{ours(""), nil},
		{[]string{"github.com/NVIDIA/go-nvml"}, ours("probes/nvml")},
		{[]string{"github.com/cilium/ebpf"}, ours("bpf", "probes/rmcalls", "probes/xid", "actions/kfunc", "internal/vmtest")},
		{[]string{"github.com/spf13/cobra"}, ours("internal/cli")},
	} {
		for pkg, names := range all {
			if slices.Contains(rule.may, pkg) || len(rule.may) > 0 && rule.may[0] != module && below(pkg, rule.may...) {
				continue
			}
			for _, n := range names {
				if slices.Contains(rule.what, n) || rule.what[0] != module && below(n, rule.what...) {
					t.Errorf("%s imports %s; only %v may", pkg, n, rule.may)
				}
			}
		}
	}
}

// TestRulesSeeTheSource: the tests above look at what is there.
func TestRulesSeeTheSource(t *testing.T) {
	all := imports(t)
	if len(all) < 20 || !slices.Contains(all[module], "tsgtop/internal/cli") {
		t.Errorf("packages %v", slices.Sorted(maps.Keys(all)))
	}
	if way := reach(all, module)["tsgtop/internal/rm"]; !strings.HasPrefix(way, "tsgtop -> tsgtop/internal/cli -> ") {
		t.Errorf("main reaches rm by %q", way)
	}
	if !below("tsgtop/ui/x", "tsgtop/ui") || below("tsgtop/uix", "tsgtop/ui") {
		t.Error("below")
	}
}
