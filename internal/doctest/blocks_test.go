package doctest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// root is the module's folder, seen from this package.
const root = "../.."

// block is one fenced block of a document.
type block struct {
	kind  string // the word after the fence
	line  int    // of its first line of text, from 1
	lines []string
	note  string // of the doctest comment before it; empty: none
}

// command is one `$ tsgtop ...` line of a session, with what should follow it.
type command struct {
	line int
	args []string
	code int
	want []string
}

// documents are README.md, the other documents beside it, and docs/*.md.
func documents(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	if len(all) < 2 {
		t.Fatalf("found %d documents in %s: this test is not where it should be", len(all), root)
	}
	return all
}

// read gives a document's text.
func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var noteLine = regexp.MustCompile(`^<!-- doctest: (.*) -->$`)

// blocks finds the fenced blocks of a document.
func blocks(text string) ([]block, error) {
	var all []block
	var open *block
	note := ""
	for i, l := range strings.Split(text, "\n") {
		kind, fence := strings.CutPrefix(l, "```")
		switch {
		case open != nil && l == "```":
			all = append(all, *open)
			open = nil
		case open != nil:
			open.lines = append(open.lines, l)
		case fence:
			open, note = &block{kind: kind, line: i + 2, note: note}, ""
		default:
			if note != "" {
				return nil, fmt.Errorf("line %d: the doctest comment before it belongs to no block", i+1)
			}
			if m := noteLine.FindStringSubmatch(l); m != nil {
				note = m[1]
			}
		}
	}
	if open != nil {
		return nil, fmt.Errorf("line %d: the block is not closed", open.line)
	}
	return all, nil
}

// commands takes a session apart.
func (b block) commands() ([]command, error) {
	var all []command
	code := false // the next line is an exit code
	for i, l := range b.lines {
		at := b.line + i
		switch rest, prompt := strings.CutPrefix(l, "$ "); {
		case code:
			n, err := strconv.Atoi(l)
			if err != nil {
				return nil, fmt.Errorf("line %d: want an exit code after `echo $?`", at)
			}
			all[len(all)-1].code, code = n, false
		case rest == "echo $?" && prompt && len(all) > 0:
			code = true
		case prompt:
			args, err := words(rest)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", at, err)
			}
			all = append(all, command{line: at, args: args})
		case len(all) == 0:
			return nil, fmt.Errorf("line %d: there is no command before it", at)
		default:
			c := &all[len(all)-1]
			c.want = append(c.want, l)
		}
	}
	if code {
		return nil, fmt.Errorf("line %d: the exit code is missing", b.line+len(b.lines))
	}
	return all, nil
}

// words splits a command line, and refuses what would need a shell.
func words(s string) ([]string, error) {
	if strings.ContainsAny(s, "|<>;&*'\"`$\\") {
		return nil, fmt.Errorf("%q needs a shell: only `$ tsgtop ARGUMENTS` and `$ echo $?` are run here", s)
	}
	w := strings.Fields(s)
	if len(w) == 0 || w[0] != "tsgtop" {
		return nil, fmt.Errorf("%q is not tsgtop: use a block of another kind", s)
	}
	return w[1:], nil
}

// harmless tells whether a command may be run by a test: it must look at
// nothing of this machine.
func harmless(args []string) error {
	source := ""
	for i, a := range args {
		if v, ok := strings.CutPrefix(a, "--source="); ok {
			source = v
		} else if a == "--source" && i+1 < len(args) {
			source = args[i+1]
		} else if a == "--audit" || a == "--config" || strings.HasPrefix(a, "--audit=") || strings.HasPrefix(a, "--config=") {
			return fmt.Errorf("%s names a file of the machine", a)
		} else if a == "--help" {
			return nil
		}
	}
	if len(args) > 0 {
		switch args[0] {
		case "version", "man", "completion", "help", "export":
			return nil
		}
	}
	kind, _, _ := strings.Cut(source, ":")
	switch {
	case kind == "sim", kind == "demo":
		return nil
	case source != "" && source != "live" && filepath.Base(source) == source && strings.HasSuffix(source, ".zst"):
		return nil
	}
	return fmt.Errorf("it would look at this machine: only --source sim, demo or a recording FILE.zst are run here")
}
