package nvml

import (
	"encoding/json"
	"io"
	"os"
)

// childArg is the argument that makes the program NVML's child: a subcommand
// that no help lists.
const childArg = "__nvml"

// IsChild tells whether this process was started as NVML's child.
func IsChild() bool { return len(os.Args) == 2 && os.Args[1] == childArg }

// ChildMain is the whole life of the child: it asks NVML and writes what it
// says to standard output, until standard input ends, as it does when the
// parent has died, however it died. The exit code is 0, or 3 where NVML
// cannot be used.
func ChildMain() int {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0) // also from inside a call that hangs
	}()
	out := json.NewEncoder(os.Stdout)
	send := func(l line) bool { return out.Encode(l) == nil }
	if !send(line{Kind: lineStarting}) {
		return 0
	}
	if f := ask(send); f != nil {
		send(line{Kind: lineFailed, Failed: f})
		return 3
	}
	return 0
}
