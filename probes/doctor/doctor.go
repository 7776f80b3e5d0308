// Package doctor says what of tsgtop works on this machine and what does not,
// why, and what would help. Each check looks at one thing; none changes
// anything.
package doctor

import (
	"os"
	"strings"
)

// State is how well a checked thing works.
type State string

// The states of a check.
const (
	OK      State = "ok"
	Limited State = "limited"
	Missing State = "missing"
)

// Check is one line of the doctor's answer.
type Check struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	What  string `json:"what"`           // what was found
	Why   string `json:"why,omitempty"`  // what does not work because of it
	Help  string `json:"help,omitempty"` // what would help
}

// System is where the checks look: the root of /proc, /sys and /dev, so that
// tests can show them another machine, and the calls that are not files.
type System struct {
	Root string      // "" for the real machine
	UID  func() int  // effective user id
	Caps func() Caps // effective capabilities
}

// Real is the machine that this runs on.
func Real() System {
	return System{UID: os.Geteuid, Caps: effectiveCaps}
}

func (s System) read(path string) (string, error) {
	b, err := os.ReadFile(s.Root + path)
	return strings.TrimSpace(string(b)), err
}

func (s System) exists(path string) bool {
	_, err := os.Stat(s.Root + path)
	return err == nil
}

// Machine runs the checks that need nothing but files: privilege, kernel,
// probes' ground, driver. The order is the order of reading.
func Machine(s System) []Check {
	return []Check{
		s.privilege(), s.kernel(), s.vmlinuxBTF(), s.lockdown(), s.kprobes(),
		s.driver(), s.gsp(), s.moduleBTF(), s.devices(),
		s.yama(), s.pidNamespace(), s.secureBoot(),
	}
}
