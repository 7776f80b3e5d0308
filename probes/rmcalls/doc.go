// Package rmcalls observes the calls that processes make into NVIDIA's
// Resource Manager (RM), by eBPF programs on the driver's ioctl entry or, where
// the kernel does not allow that, on the system calls' own tracepoints. It
// turns them into events of package sched, and witnesses our own calls for the
// lamp RAN.
package rmcalls
