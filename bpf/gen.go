// Package bpf holds the eBPF programs, compiled, and the Go side of the
// structures that they share with user space. The objects are committed, so
// that nobody needs clang to build; `make generate` makes them again with the
// one clang that is pinned here.
package bpf

//go:generate go tool bpf2go -cc clang-14 -cflags "-O2 -g -Wall -Werror -mcpu=v3" -target amd64,arm64 -type rm_call -type rm_exit -type rm_own -type rm_losses -type rm_record -type rm_kind -type rm_phase -type rm_flag RMCalls rmcalls.bpf.c
//go:generate go tool bpf2go -cc clang-14 -cflags "-O2 -g -Wall -Werror -mcpu=v3" -target amd64,arm64 -type xid_event Xid xid.bpf.c
