// Command tsgtop shows who holds an NVIDIA GPU's engines and for how long,
// streams the Resource Manager calls that shape the schedule, and lets an
// operator preempt or re-timeslice one TSG, with an honest answer to whether
// the hardware changed.
package main

import (
	"os"

	"tsgtop/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:]))
}
