// Command glibcfloor prints the version of glibc that a program needs: the
// newest one whose symbols it imports. Nothing is printed of a program that
// needs no glibc.
package main

import (
	"fmt"
	"os"

	"tsgtop/internal/packaging/internal/glibc"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: glibcfloor PROGRAM")
		os.Exit(1)
	}
	floor, err := glibc.Floor(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "glibcfloor:", err)
		os.Exit(1)
	}
	if floor != "" {
		fmt.Println(floor)
	}
}
