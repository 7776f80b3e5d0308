package archtest

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestFilesSpeakOfTheProject: no file says where it was made, or points at what
// a reader of the source does not have; and nothing is left to be done later.
func TestFilesSpeakOfTheProject(t *testing.T) {
	checks := map[string]*regexp.Regexp{
		"a document that is not here":  regexp.MustCompile(`(?i)\bdesign/[a-z]+\.md|\bfacts/[a-z]+\.md|\bdesign document\b`),
		"a number of some tracker":     regexp.MustCompile(`(?i)\b(see|in|of|for) (issue|ticket) #?[0-9]+\b|\b(issue|ticket) #[0-9]+\b`),
		"how it was written":           regexp.MustCompile(`(?i)\bco-authored-by\b|\bin this (chat|conversation)\b|\bas requested\b`),
		"something to be done later":   regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b`),
		"a scar of a merge":            regexp.MustCompile(`(?m)^(<<<<<<<|>>>>>>>) `),
		"the folder of this very copy": regexp.MustCompile(`(^|[^\w.])` + regexp.QuoteMeta(here(t)) + `(/|\b)`),
	}
	if around := filepath.Dir(here(t)); !common[around] {
		checks["the folder around this copy"] = regexp.MustCompile("(^|[\\s\"'`(=:])" + regexp.QuoteMeta(around) + "/")
	}
	files := 0
	sources(t, func(file string) {
		if file == "internal/archtest/words_test.go" || file == "tsgtop" || strings.HasSuffix(file, ".zst") || strings.HasSuffix(file, ".o") || strings.HasSuffix(file, ".svg") {
			return
		}
		b, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0 {
			return
		}
		files++
		for what, re := range checks {
			for _, at := range re.FindAllIndex(b, 3) {
				line := 1 + bytes.Count(b[:at[0]], []byte("\n"))
				t.Errorf("%s:%d: %s: %q", file, line, what, b[at[0]:at[1]])
			}
		}
	})
	if files < 200 {
		t.Errorf("only %d files were looked at", files)
	}
}

// common are folders that a source can lie in anywhere, and that may be named.
var common = map[string]bool{"/": true, "/root": true, "/home": true, "/tmp": true, "/opt": true, "/usr": true, "/usr/src": true, "/usr/local": true, "/src": true, "/go": true, "/build": true, "/var/tmp": true}

// here is the absolute path of this copy of the source.
func here(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
