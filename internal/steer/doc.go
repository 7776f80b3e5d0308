// Package steer is the pure part of steering a GPU: who is latency-critical (LC)
// and who is best-effort (BE), by mark or by rule; what timeslice each TSG is
// then to have; what the context-switch trace says of it; and the lamps over
// that. It touches nothing: actions/steward does.
package steer
