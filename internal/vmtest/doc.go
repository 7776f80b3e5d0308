// Package vmtest boots a Debian kernel under qemu and runs Go tests inside it as
// root, so that kernel modules and eBPF programs are tested for real on any
// machine that has qemu, KVM or not.
//
// One run is: fetch and unpack a kernel (cached), build the modules against its
// headers, compile the guest's test binary and its init, pack them into an
// initramfs, boot, read the results from the second serial port. There is no
// root file system and no network inside.
//
// What proved reliable under software emulation, and what did not (measured
// with qemu 7.2 on two cores): q35 with one virtual CPU booted 15 times of 15;
// microvm hung in 4 to 6 of 15 boots; two CPUs with multi-threaded emulation
// corrupt a kernel that patches its own text (jump labels, fentry) within
// seconds. So: q35, one CPU, single-threaded.
package vmtest
