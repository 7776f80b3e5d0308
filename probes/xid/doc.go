// Package xid observes the NVIDIA driver's Xid errors: by the driver's own
// tracepoint (driver 575 and newer) and by the kernel log, which every driver
// writes. The tracepoint is exact and cannot be flooded out; the log adds the
// process. Where both work, one Xid is told once, with what each knows of it.
package xid
