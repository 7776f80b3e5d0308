/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Writing into the ring of calls.
 */
#ifndef TSGTOP_RM_RECORD_H
#define TSGTOP_RM_RECORD_H

#include "rm_file.h"

/*
 * Waking the reader costs ten times what a record does, so it polls. Once in
 * 64 records the fill of the ring is looked at, and it is woken if need be.
 */
static __always_inline __u64 wakeup(void)
{
	struct rm_losses *l = lost();

	if (!l || (++l->records & 63))
		return BPF_RB_NO_WAKEUP;
	if (bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) < wake_bytes)
		return BPF_RB_NO_WAKEUP;
	return BPF_RB_FORCE_WAKEUP;
}

static __always_inline void copy_comm(__u8 *comm, struct task_struct *task)
{
	((__u64 *)comm)[0] = *(__u64 *)&task->comm[0];
	((__u64 *)comm)[1] = *(__u64 *)&task->comm[8];
}

/* A file was closed for the last time. */
static __always_inline void closed(__u32 file)
{
	__u64 ids = bpf_get_current_pid_tgid();
	struct rm_call *r = bpf_ringbuf_reserve(&events, sizeof(*r), 0);

	if (!r) {
		LOSE(ring);
		return;
	}
	__builtin_memset(r, 0, sizeof(*r));
	r->record = RM_RECORD_CALL;
	r->kind = RM_KIND_CLOSE;
	r->start = bpf_ktime_get_ns();
	r->pid = ids >> 32;
	r->tid = ids;
	r->file = file;
	bpf_get_current_comm(r->comm, sizeof(r->comm));
	bpf_ringbuf_submit(r, wakeup());
}

/* The driver releases a file: one of those that calls came by, or another. */
static __always_inline void last_close(struct file *file)
{
	__u64 key = (__u64)file;
	__u32 *number = bpf_map_lookup_elem(&files, &key);

	if (number) {
		closed(*number);
		forget_number(file);
	}
}

#endif
