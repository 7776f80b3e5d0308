/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Our own calls: the witness that the program ran for exactly this one.
 */
#ifndef TSGTOP_RM_OWN_H
#define TSGTOP_RM_OWN_H

#include "rm_file.h"
#include "rm_decode.h"

/*
 * The id of the command that announced exactly this call: same thread, same
 * descriptor or file, same argument, same parameters. Used up by it.
 */
static __noinline __u64 own_command(struct task_struct *task, struct file *file, __u32 word,
				    __u64 arg)
{
	__u32 tid = bpf_get_current_pid_tgid();
	struct rm_expected *e = bpf_map_lookup_elem(&expected, &tid);
	__u64 params = 0, id;

	if (!e || e->arg != arg || file_of(task, e->fd) != file)
		return 0;
	if (e->params) {
		if ((word & 0xff) != TSGTOP_ESC_CONTROL)
			return 0;
		bpf_probe_read_user(&params, sizeof(params),
				    (void *)(arg + TSGTOP_OFF_CONTROL_PARAMS));
		if (params != e->params)
			return 0;
	}
	id = e->id;
	bpf_map_delete_elem(&expected, &tid);
	return id;
}

static __always_inline void own_entry(__u64 id, __u64 when)
{
	struct rm_own *r = bpf_ringbuf_reserve(&own_calls, sizeof(*r), 0);

	if (!r) {
		LOSE(own_ring);
		return;
	}
	__builtin_memset(r, 0, sizeof(*r));
	r->id = id;
	r->when = when;
	r->phase = RM_PHASE_ENTRY;
	bpf_ringbuf_submit(r, 0);
}

static __noinline int own_exit(struct in_flight *f, struct decoded *d, __u64 duration, int error)
{
	struct rm_own *r;

	if (!f || !d)
		return 0;
	r = bpf_ringbuf_reserve(&own_calls, sizeof(*r), 0);
	if (!r) {
		LOSE(own_ring);
		return 0;
	}
	r->id = f->command;
	r->when = f->start + duration;
	r->duration = duration;
	r->phase = RM_PHASE_EXIT;
	r->error = error;
	r->kind = d->kind;
	r->number = d->number;
	r->client = d->client;
	r->object = d->object;
	r->status = d->status;
	r->pad = 0;
	bpf_ringbuf_submit(r, 0);
	return 0;
}

#endif
