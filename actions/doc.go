// Package actions is everything that acts: it sends commands to TSGs, answers
// for each what its three witnesses say, and puts back what was changed.
//
// A command's life is a pure state machine (life.go); a runner (runner.go) does
// what it asks for: write the audit line, write the journal, wait for a
// baseline, send the call through an Actuator (fd.go, simulated.go), ask the
// witnesses, judge, undo. Each step is published as a sched.Command, so that
// the screen and recordings have it. A value is never changed before the
// journal has the old one; see journal and restore.go for what happens then if
// the process dies.
package actions
