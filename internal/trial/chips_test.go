package trial

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// The page of chips is as its files make it.
func TestChipsPageIsUpToDate(t *testing.T) {
	files, err := filepath.Glob("../../docs/chips/*.json")
	if err != nil {
		t.Fatal(err)
	}
	var shares []*Share
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := ReadShare(bytes.NewReader(b))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		shares = append(shares, s)
	}
	var want bytes.Buffer
	if err := Chips(&want, shares); err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile("../../docs/chips.md")
	if err != nil || !bytes.Equal(have, want.Bytes()) {
		t.Errorf("docs/chips.md is not what docs/chips makes: run go generate ./internal/trial (%v)", err)
	}
}
