package vmtest

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
)

// EndMarker is the last line that the guest's init writes.
const EndMarker = "VMTEST END"

// Report is what came out of one boot.
type Report struct {
	Passed, Failed, Skipped []string          // names of tests, subtests too
	Problems                []string          // what failed outside of any test: panics, oopses, no end marker
	Retried                 []string          // names of tests that failed first and passed at the second try
	Files                   map[string][]byte // files that the guest sent back
}

// OK says whether all of it passed.
func (r *Report) OK() bool { return len(r.Failed)+len(r.Problems) == 0 && len(r.Passed) > 0 }

var (
	testLine = regexp.MustCompile(`^\s*--- (PASS|FAIL|SKIP): (\S+) `)
	fileLine = regexp.MustCompile(`^VMTEST FILE (\S+) (\S*)$`)
	// What the kernel writes when it is not well. WARN() counts: nothing that we
	// test may provoke one.
	oops = regexp.MustCompile(`(?m)^.*(BUG: |Oops|Kernel panic|general protection|WARNING: |refcount_t:|soft lockup|self-detected stall|blocked for more than|kernel stack overflow|double fault|Unable to handle kernel|UBSAN|KASAN|list_(?:add|del) corruption|Bad page|Unbalanced|memory leak|Object .* remaining|lock held when returning).*$`)
)

// Parse reads the guest's result and the kernel's console.
func Parse(result, console []byte) *Report {
	r := &Report{Files: map[string][]byte{}}
	var log []byte // kernel log, sent back as a file
	ended := false
	for line := range strings.Lines(string(result)) {
		line = strings.TrimRight(line, "\r\n")
		if m := testLine.FindStringSubmatch(line); m != nil {
			switch m[1] {
			case "PASS":
				r.Passed = append(r.Passed, m[2])
			case "FAIL":
				r.Failed = append(r.Failed, m[2])
			case "SKIP":
				r.Skipped = append(r.Skipped, m[2])
			}
			continue
		}
		if m := fileLine.FindStringSubmatch(line); m != nil {
			b, err := base64.StdEncoding.DecodeString(m[2])
			if err != nil {
				r.Problems = append(r.Problems, fmt.Sprintf("file %s came back damaged: %v", m[1], err))
			}
			r.Files[m[1]] = b
			if m[1] == "dmesg" {
				log = b
			}
			continue
		}
		if strings.HasPrefix(line, EndMarker) {
			ended = true
			if rc := strings.TrimSpace(strings.TrimPrefix(line, EndMarker)); rc != "rc=0" && len(r.Failed) == 0 {
				r.Problems = append(r.Problems, "the test program ended with "+rc)
			}
		}
	}
	if !ended {
		r.Problems = append(r.Problems, "the guest wrote no end marker: it panicked, hung or was cut off")
	}
	seen := map[string]bool{}
	for _, m := range oops.FindAll(bytes.Join([][]byte{console, log}, []byte("\n")), -1) {
		text := strings.TrimSpace(string(m))
		if i := strings.Index(text, "] "); i >= 0 && strings.HasPrefix(text, "[") {
			text = text[i+2:] // without the time stamp, so that console and log agree
		}
		if !seen[text] && !expectedLog(text) {
			seen[text] = true
			r.Problems = append(r.Problems, "kernel: "+text)
		}
	}
	return r
}

// expectedLog is for lines that look bad and are not: taints by our own
// unsigned modules are announced, and a test may say that it provokes a line.
func expectedLog(line string) bool {
	return strings.Contains(line, "module verification failed") || strings.Contains(line, "mitigations")
}
