/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One call, from its beginning to its end. The hooks call these two functions:
 * call_enter and call_exit.
 */
#ifndef TSGTOP_RM_CALL_H
#define TSGTOP_RM_CALL_H

#include "rm_record.h"
#include "rm_own.h"

static __always_inline void call_enter(struct task_struct *task, struct file *file, __u32 word,
				       __u64 arg)
{
	struct in_flight *f = bpf_task_storage_get(&in_flight, task, NULL, 0);
	__u32 pid;
	__u8 one = 1;

	if (!f) {
		/* This thread's first call. */
		f = bpf_task_storage_get(&in_flight, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (!f) {
			LOSE(unstored);
			return;
		}
		pid = bpf_get_current_pid_tgid() >> 32;
		bpf_map_update_elem(&pids, &pid, &one, BPF_ANY);
	}
	if (f->word)
		LOSE(unmatched);
	f->arg = arg;
	f->word = word;
	if (f->of != (__u64)file || f->changed != files_changed) {
		f->changed = files_changed;
		f->of = (__u64)file;
		f->file = number_of(file);
	}
	f->command = expecting ? own_command(task, file, word, arg) : 0;
	f->skip = self && !f->command && self == bpf_get_current_pid_tgid() >> 32;
	f->start = bpf_ktime_get_ns();
	if (f->command)
		own_entry(f->command, f->start);
}

static __always_inline void count(struct decoded *d, long ret, __u64 duration)
{
	struct rm_sort key = {.number = d->number, .kind = d->kind};
	struct rm_count *c = bpf_map_lookup_elem(&counts, &key);
	struct rm_count none = {};

	if (!c) {
		bpf_map_update_elem(&counts, &key, &none, BPF_NOEXIST);
		c = bpf_map_lookup_elem(&counts, &key);
		if (!c) {
			LOSE(uncounted);
			return;
		}
	}
	/*
	 * Per CPU, and the kernel does not run a program again on a CPU where
	 * it was preempted: nobody else adds meanwhile.
	 */
	c->n++;
	c->ns += duration;
	if (ret || d->status)
		c->failed++;
}

static __always_inline void read_params(struct rm_call *r, const struct decoded *d)
{
	__u32 offset = SHAPE_OFFSET(d->shape), length = SHAPE_LENGTH(d->shape);

	r->flags = 0;
	r->params_len = 0;
	__builtin_memset(r->params, 0, sizeof(r->params));
	if (!length || !d->params)
		return;
	/*
	 * A control's size must be the right one. The older form of alloc may
	 * give 0 and mean "as the class has it"; for a client the pointer then
	 * is to a bare handle, so there is nothing more to read.
	 */
	if (d->kind == RM_KIND_ALLOC && !d->params_size) {
		if (d->number <= TSGTOP_CLASS_CLIENT)
			return;
	} else if (d->params_size <= offset) {
		return;
	} else if (d->params_size - offset < length) {
		length = d->params_size - offset;
	}
	if (length > RM_PARAMS_MAX)
		length = RM_PARAMS_MAX;
	if (bpf_probe_read_user(r->params, length, (void *)(d->params + offset))) {
		r->flags = RM_FLAG_PARAMS_FAULTED;
		LOSE(params_faults);
		return;
	}
	r->params_len = length;
}

static __always_inline void call_exit(struct task_struct *task, struct in_flight *f, long ret)
{
	__u64 duration = bpf_ktime_get_ns() - f->start;
	struct decoded d = {};
	struct rm_call *r;
	__u32 word = f->word;
	__u64 ids;
	int rc;

	f->word = 0;
	if (f->skip)
		return;
	rc = decode(&d, word, f->arg);
	if (f->command)
		own_exit(f, &d, duration, ret);
	if (rc) {
		if (rc < 0)
			LOSE(arg_faults);
		return;
	}
	if (d.shape == SHAPE_NONE) {
		if (!look && !f->command) {
			count(&d, ret, duration);
			return;
		}
		d.shape = SHAPE(0, 0);
	}
	r = bpf_ringbuf_reserve(&events, sizeof(*r), 0);
	if (!r) {
		LOSE(ring);
		return;
	}
	ids = bpf_get_current_pid_tgid();
	r->record = RM_RECORD_CALL;
	r->kind = d.kind;
	r->pad = 0;
	r->start = f->start;
	r->duration = duration;
	r->command = f->command;
	r->pid = ids >> 32;
	r->tid = ids;
	r->file = f->file;
	r->error = ret;
	r->number = d.number;
	r->client = d.client;
	r->parent = d.parent;
	r->object = d.object;
	r->status = d.status;
	r->src_client = d.src_client;
	r->src_object = d.src_object;
	copy_comm(r->comm, task);
	r->pad2 = 0;
	read_params(r, &d);
	bpf_ringbuf_submit(r, wakeup());
}

#endif
