// SPDX-License-Identifier: GPL-2.0

//go:build ignore

/*
 * The program that acts: run with BPF_PROG_RUN, it calls one kfunc of
 * tsgtop.ko, and writes a record of its own before and after the call. These
 * records are the witness RAN: nothing but this program can write into its
 * ring, and user space's own view of the call does not enter.
 *
 * Stable: BPF_PROG_TYPE_SYSCALL, BPF_PROG_RUN on it and the ring buffer are user
 * ABI since 5.14; sleepable kfuncs of modules for this type since 6.1. Where
 * the module is absent the externs are weak and have_kfunc is 0, so that the
 * same object loads and says that nothing was called.
 */
#include "kernel.h"

#include <bpf/bpf_helpers.h>

#include "../kmod/tsgtop_abi.h"

char LICENSE[] SEC("license") = "GPL";

extern int tsgtop_preempt(struct tsgtop_target *target, __u32 wait, __u32 limit_ms,
			  struct tsgtop_result *result) __ksym __weak;
extern int tsgtop_set_timeslice(struct tsgtop_target *target, __u64 us, __u32 limit_ms,
				struct tsgtop_result *result) __ksym __weak;
extern int tsgtop_set_interleave(struct tsgtop_target *target, __u32 level, __u32 limit_ms,
				 struct tsgtop_result *result) __ksym __weak;
extern int tsgtop_get_identity(struct tsgtop_target *target, struct tsgtop_identity *identity,
			       __u32 limit_ms, struct tsgtop_result *result) __ksym __weak;
extern int tsgtop_get_switches(struct tsgtop_target *target, struct tsgtop_switches *switches,
			       __u32 limit_ms, struct tsgtop_result *result) __ksym __weak;
extern int tsgtop_wait(__u64 cookie, __u32 limit_ms, struct tsgtop_result *result) __ksym __weak;

/* Set before the load, from whether the module's BTF is there. */
const volatile bool have_kfunc;

#define EINVAL 22
#define ENOSYS 38

enum action_op {
	ACTION_PREEMPT = 1,
	ACTION_TIMESLICE,
	ACTION_INTERLEAVE,
	ACTION_IDENTITY,
	ACTION_SWITCHES,
	ACTION_WAIT,
};

enum action_phase { ACTION_BEFORE = 1, ACTION_AFTER = 2 };

/* The program's context: what is asked, and after the run what came of it. */
struct action_args {
	__u64 id;
	__u64 value;  /* microseconds, level, or whether to wait */
	__u64 cookie; /* ACTION_WAIT */
	enum action_op op;
	__u32 limit_ms;
	struct tsgtop_target target;
	struct tsgtop_result result;
	struct tsgtop_switches switches;
	__s32 err;
	__u32 ran;
};

/* The record that is RAN. */
struct action_record {
	__u64 id;
	__u64 at_ns; /* CLOCK_MONOTONIC */
	__u64 cookie;
	enum action_phase phase;
	enum action_op op;
	__s32 err;
	__u32 status;
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 65536);
} action_ran SEC(".maps");

/* An identity is larger than a program's stack. One run at a time uses it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tsgtop_identity);
} action_identity SEC(".maps");

/* Keeps the record's type in the object, for bpf2go. */
const struct action_record *unused_record __attribute__((unused));

static __always_inline int record(struct action_args *a, enum action_phase phase, __s32 err,
				  const struct tsgtop_result *result)
{
	struct action_record *r = bpf_ringbuf_reserve(&action_ran, sizeof(*r), 0);

	if (!r)
		return -1;
	r->id = a->id;
	r->at_ns = bpf_ktime_get_ns();
	r->cookie = result->cookie;
	r->phase = phase;
	r->op = a->op;
	r->err = err;
	r->status = result->status;
	bpf_ringbuf_submit(r, BPF_RB_FORCE_WAKEUP);
	return 0;
}

SEC("syscall")
int action(struct action_args *a)
{
	struct tsgtop_target target = a->target;
	struct tsgtop_switches switches = {};
	struct tsgtop_result result = {};
	struct tsgtop_identity *identity;
	__u32 limit = a->limit_ms, zero = 0;
	int err = -ENOSYS;

	/* no record, no call: a command that cannot show that it ran must not act */
	if (record(a, ACTION_BEFORE, 0, &result))
		return 1;
	if (!have_kfunc)
		goto out;
	switch (a->op) {
	case ACTION_PREEMPT:
		err = tsgtop_preempt(&target, a->value, limit, &result);
		break;
	case ACTION_TIMESLICE:
		err = tsgtop_set_timeslice(&target, a->value, limit, &result);
		break;
	case ACTION_INTERLEAVE:
		err = tsgtop_set_interleave(&target, a->value, limit, &result);
		break;
	case ACTION_IDENTITY:
		identity = bpf_map_lookup_elem(&action_identity, &zero);
		if (identity)
			err = tsgtop_get_identity(&target, identity, limit, &result);
		break;
	case ACTION_SWITCHES:
		err = tsgtop_get_switches(&target, &switches, limit, &result);
		break;
	case ACTION_WAIT:
		err = tsgtop_wait(a->cookie, limit, &result);
		break;
	default:
		err = -EINVAL;
	}
out:
	a->result = result;
	a->switches = switches;
	a->err = err;
	a->ran = 1;
	record(a, ACTION_AFTER, err, &result);
	return 0;
}
