package doctest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link   = regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)]*)?\)|(?:src|srcset)="([^"]+)"`)
	target = regexp.MustCompile("(?m)(?:^|`|\\$ )make ([a-z][a-z-]*)")
	rule   = regexp.MustCompile(`(?m)^([a-z][a-z-]*):`)
)

// Links to files of the repository lead somewhere.
func TestLinks(t *testing.T) {
	seen := 0
	for _, path := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, path), -1) {
			to := m[1] + m[2]
			if strings.Contains(to, "://") {
				continue
			}
			seen++
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), to)); err != nil {
				t.Errorf("%s: a link leads nowhere: %v", path, err)
			}
		}
	}
	if seen == 0 {
		t.Fatal("no document has a link")
	}
}

// Targets of make that documents name are in the Makefile.
func TestMakeTargets(t *testing.T) {
	rules := map[string]bool{}
	for _, m := range rule.FindAllStringSubmatch(read(t, filepath.Join(root, "Makefile")), -1) {
		rules[m[1]] = true
	}
	seen := 0
	for _, path := range documents(t) {
		for _, m := range target.FindAllStringSubmatch(read(t, path), -1) {
			seen++
			if !rules[m[1]] {
				t.Errorf("%s: `make %s`: the Makefile has no such target", path, m[1])
			}
		}
	}
	if seen == 0 {
		t.Fatal("no document names a target of make")
	}
}
