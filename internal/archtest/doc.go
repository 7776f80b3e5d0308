// Package archtest holds the source to docs/architecture.md: which package may
// know which, and what no file may say. It has tests only.
package archtest
