package bpf

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// Every object is made with the one compiler that is pinned.
func TestClangIsPinned(t *testing.T) {
	cc := regexp.MustCompile(`-cc (\S+)`)
	n := 0
	paths, err := filepath.Glob("gen*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range cc.FindAllStringSubmatch(string(b), -1) {
			if n++; m[1] != Clang {
				t.Errorf("%s uses %s, and Clang says %s", p, m[1], Clang)
			}
		}
	}
	if n != len(Objects()) {
		t.Errorf("%d objects are generated, and %d listed", n, len(Objects()))
	}
	for _, o := range Objects() {
		if o.Bytes < 1000 || len(o.SHA256) != 64 {
			t.Errorf("%+v", o)
		}
	}
}
