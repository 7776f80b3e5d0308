/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the programs that watch RM calls keep, and what user space sets and
 * reads of it.
 */
#ifndef TSGTOP_RM_MAPS_H
#define TSGTOP_RM_MAPS_H

#include "rm_event.h"
#include "rm_abi.h"

/*
 * The process that watches; 0: none. What it asks by itself (scans, flushes of
 * the trace) is left out; its commands, which it announces, are not.
 */
volatile const __u32 self;

/* Major number of the driver's devices. 195 is registered for it. */
volatile const __u32 major = TSGTOP_MAJOR;
/* Wake the reader when this many bytes wait in "events". */
volatile const __u64 wake_bytes = 1 << 20;

__u32 look;	     /* somebody looks at all calls */
__u32 expecting;     /* "expected" is not empty */
__u32 last_file;     /* the number given to the file met last */
__u32 files_changed; /* how often an entry of "files" was made or removed */

/*
 * Gives a pointer a type of the kernel's, so that it is followed by a plain
 * load, in a tenth of the time of a helper call. Since 6.2.
 */
extern void *bpf_rdonly_cast(const void *pointer, __u32 type) __ksym __weak;
#define AS(type, pointer) ((type *)bpf_rdonly_cast(pointer, bpf_core_type_id_kernel(type)))

/* The call that a thread is in. word 0: none. */
struct in_flight {
	__u64 start;
	__u64 arg;
	__u64 command;
	__u32 word;
	__u32 file;    /* number of "of" ... */
	__u64 of;      /* ... the file of the thread's last call */
	__u32 changed; /* files_changed at that time: the number still holds */
	__u32 skip;    /* a call of "self" */
};

/*
 * In the task itself rather than in a hash table: found in a few ns, never
 * full, and gone with the task.
 */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct in_flight);
} in_flight SEC(".maps");

/*
 * Open files by number. The kernel's address of a file is the key and never
 * leaves this map.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, __u32);
} files SEC(".maps");

/* Processes that made RM calls, or that user space asked about. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, __u8);
} pids SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct rm_sort);
	__type(value, struct rm_count);
} counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, __u32); /* thread */
	__type(value, struct rm_expected);
} expected SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rm_losses);
} losses SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} events SEC(".maps");

/* Of its own, so that no other traffic can fill it. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 << 10);
} own_calls SEC(".maps");

/* So that bpf2go makes Go types of these, which no map holds. */
const struct rm_call *unused_rm_call __attribute__((unused));
const struct rm_exit *unused_rm_exit __attribute__((unused));
const struct rm_own *unused_rm_own __attribute__((unused));
const enum rm_record *unused_rm_record __attribute__((unused));
const enum rm_kind *unused_rm_kind __attribute__((unused));
const enum rm_flag *unused_rm_flag __attribute__((unused));
const enum rm_phase *unused_rm_phase __attribute__((unused));

static __always_inline struct rm_losses *lost(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&losses, &zero);
}

#define LOSE(what)                                                                                 \
	do {                                                                                       \
		struct rm_losses *l_ = lost();                                                     \
		if (l_)                                                                            \
			l_->what++;                                                                \
	} while (0)

#endif
