// Package withstand tests the whole program on machines that lack something:
// its test binary runs as the program, in namespaces of its own.
package withstand
