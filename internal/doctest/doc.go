// Package doctest holds the tests that keep README.md and docs/ true.
//
// A fenced block marked console is a session: each `$ tsgtop ...` line is run,
// and what it prints must be what the block shows.
//
//   - `…` stands for anything within a line; alone on a line, for any lines.
//   - Runs of blanks count as one.
//   - A command must end with 0, unless `$ echo $?` and its code follow.
//   - Only sources that touch no machine are run: sim, demo, a recording.
//   - Commands of one document run in one folder, in their order, so that a
//     recording that one writes is there for the next.
//   - `<!-- doctest: numbers within 20% -->` on the line before the block lets numbers
//     differ by so much; whole numbers under 10 stay exact.
//   - `<!-- doctest: needs the built-in recording -->` leaves the block out of a
//     program without one.
//
// A fenced block marked says quotes the program, for what only another machine
// would show: each line must be a sentence in its source, with `…` where the
// program puts something in.
//
// A fenced block marked recorded quotes the built-in recording: each line must
// be what a lamp of one of its commands said in the end, or its evidence.
//
// Links to files, and targets of make that a document names, must exist.
package doctest
