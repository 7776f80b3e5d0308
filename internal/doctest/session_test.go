//go:build linux

package doctest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "tsgtop/internal/cli" // so that go test runs this again when the program changes
	"tsgtop/internal/recording/demo"
)

// limit is the longest that one command may take: a program that hangs is
// found, a machine that is busy is not.
const limit = time.Minute

// build makes the program, without cgo's part, which no session needs.
func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tsgtop")
	c := exec.Command("go", "build", "-tags", "nonvml", "-o", path, ".")
	c.Dir = root
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// run gives all that a command prints, to either stream, and its exit code.
func run(t *testing.T, program, dir string, args []string) (lines []string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	c := exec.CommandContext(ctx, program, args...)
	c.Dir = dir
	c.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "TZ=UTC", "TERM=dumb"}
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	if e := (*exec.ExitError)(nil); errors.As(err, &e) {
		code = e.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	if s := strings.TrimRight(out.String(), "\n"); s != "" {
		lines = strings.Split(s, "\n")
	}
	return lines, code
}

var withinNote = regexp.MustCompile(`^numbers within (\d+)%$`)

const demoNote = "needs the built-in recording"

// Each command that a document shows prints what the document shows.
func TestSessions(t *testing.T) {
	program := build(t)
	ran := 0
	for _, path := range documents(t) {
		name, _ := filepath.Rel(root, path)
		bs, err := blocks(read(t, path))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		dir := t.TempDir()
		for _, b := range bs {
			if b.kind != "console" {
				if b.note != "" {
					t.Errorf("%s:%d: a doctest comment before a block that is not run", name, b.line)
				}
				continue
			}
			ran++
			t.Run(name+":"+strconv.Itoa(b.line), func(t *testing.T) { session(t, program, dir, name, b) })
		}
	}
	if ran == 0 {
		t.Fatal("no document has a session")
	}
}

func session(t *testing.T, program, dir, name string, b block) {
	tolerance := 0.0
	switch m := withinNote.FindStringSubmatch(b.note); {
	case m != nil:
		percent, _ := strconv.Atoi(m[1])
		tolerance = float64(percent) / 100
	case b.note == demoNote:
		if _, err := demo.Open(); errors.Is(err, demo.ErrNone) {
			t.Skip(demoNote + ": " + err.Error())
		}
	case b.note != "":
		t.Fatalf("%s:%d: %q is no doctest comment", name, b.line, b.note)
	}
	cs, err := b.commands()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for _, c := range cs {
		if err := harmless(c.args); err != nil {
			t.Errorf("%s:%d: tsgtop %s is not run: %v", name, c.line, strings.Join(c.args, " "), err)
			continue
		}
		got, code := run(t, program, dir, c.args)
		if err := difference(c.want, got, tolerance); err != nil {
			t.Errorf("%s:%d: tsgtop %s\n  %v\n  it printed:\n%s", name, c.line, strings.Join(c.args, " "), err, strings.Join(got, "\n"))
		}
		if code != c.code {
			t.Errorf("%s:%d: tsgtop %s ended with %d, not %d", name, c.line, strings.Join(c.args, " "), code, c.code)
		}
	}
}
