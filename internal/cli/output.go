package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"tsgtop/internal/text"
)

// print gives what f writes to the output, at once. An error is that of the
// output: a disk that is full must not look like a machine without TSGs.
func (o *options) print(f func(io.Writer)) error {
	var b bytes.Buffer
	f(&b)
	if _, err := o.out.Write(b.Bytes()); err != nil {
		return fail(exitUsage, "writing the output: %w", err)
	}
	return nil
}

// say writes one line for a person beside the output, made safe.
func (o *options) say(format string, args ...any) {
	fmt.Fprintln(o.err, "tsgtop: "+oneLine(fmt.Sprintf(format, args...)))
}

func (o *options) sayLine(line string) { o.say("%s", line) }

// oneLine makes a message safe to print, and one line.
func oneLine(s string) string { return text.Clean(strings.ReplaceAll(s, "\n", "; ")) }

// printError prints what the program ends with: one line, but for a suggestion
// of what may have been meant, and the place of an internal error.
func printError(w io.Writer, err error) {
	s := "tsgtop: " + err.Error()
	var own *exitError
	if errors.As(err, &own) && own.code != exitInternal {
		fmt.Fprintln(w, oneLine(s))
		return
	}
	for line := range strings.SplitSeq(strings.TrimRight(s, "\n"), "\n") {
		fmt.Fprintln(w, text.Clean(line))
	}
}

// fold breaks a sentence, made safe, into lines of at most so many cells. A
// word that is longer stays whole: it can be a path or a command to copy.
func fold(s string, cells int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text.Clean(s)) {
		switch {
		case line == "":
			line = word
		case text.Width(line)+1+text.Width(word) <= cells:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	if line != "" || len(lines) == 0 {
		lines = append(lines, line)
	}
	return lines
}
