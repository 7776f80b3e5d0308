package config

import (
	"os"
	"regexp"
	"testing"
)

// TestDocumentedKeysAreTheKeys holds docs/config.md and the key table together:
// its examples are read as root's file would be.
func TestDocumentedKeysAreTheKeys(t *testing.T) {
	b, err := os.ReadFile("../../docs/config.md")
	if err != nil {
		t.Fatal(err)
	}
	known := Known{Columns: []string{"pid", "process", "user", "unit", "engine", "role", "timeslice", "interleave", "residency", "share", "turns", "wait", "off", "mem", "channels"}}
	c := &Config{}
	for i, m := range regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllSubmatch(b, -1) {
		before := len(c.from)
		if err := c.Parse(m[1], "docs/config.md", i == 1, "", known); err != nil {
			t.Error(err)
		}
		if len(c.from) == before {
			t.Errorf("example %d sets nothing", i)
		}
	}
	for _, k := range Keys() {
		if c.From(k) == "" {
			t.Errorf("%s is not in docs/config.md", k)
		}
	}
}
