// SPDX-License-Identifier: GPL-2.0
/*
 * The kfuncs: what an eBPF program of type BPF_PROG_TYPE_SYSCALL, run with
 * BPF_PROG_RUN, may ask for. Each checks by itself that its caller, the thread
 * that runs the program, has CAP_SYS_ADMIN: a program can be loaded by one and
 * run by another.
 *
 * Each returns 0 where RM answered, whatever it answered, and -EINPROGRESS where
 * it has not yet; result tells the rest. NV_STATUS and errno are never folded.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bpf.h>
#include <linux/btf.h>
#include <linux/btf_ids.h>
#include <linux/capability.h>
#include <linux/module.h>

#include "tsgtop.h"

#ifndef __bpf_kfunc
#define __bpf_kfunc __used noinline
#endif
#ifndef BTF_KFUNCS_START
#define BTF_KFUNCS_START(name) BTF_SET8_START(name)
#define BTF_KFUNCS_END(name) BTF_SET8_END(name)
#endif

static int refuse(struct tsgtop_result *result, enum tsgtop_why why, int err)
{
	*result = (struct tsgtop_result) { .why = why };
	return err;
}

static int request(enum tsgtop_op op, const struct tsgtop_target *target, u64 value,
		   u32 limit_ms, struct tsgtop_result *result, struct tsgtop_call **out)
{
	struct tsgtop_call *call;
	int err;

	if (!capable(CAP_SYS_ADMIN))
		return refuse(result, TSGTOP_WHY_CAPABILITY, -EPERM);
	*result = (struct tsgtop_result) {};
	call = worker_submit(op, target, value, result, &err);
	if (!call)
		return err;
	err = worker_wait(call, limit_ms, result);
	if (out && !err)
		*out = call;	/* with our reference */
	else
		worker_put(call);
	return err;
}

/**
 * tsgtop_preempt - preempt a TSG once
 * @target: which one
 * @wait: 1: the GSP answers when the preempt is done; 0: at once
 * @limit_ms: how long to wait for the answer, at most TSGTOP_MAX_WAIT_MS
 * @result: filled in
 */
__bpf_kfunc int tsgtop_preempt(struct tsgtop_target *target, u32 wait, u32 limit_ms,
			       struct tsgtop_result *result)
{
	if (wait > 1)
		return refuse(result, TSGTOP_WHY_BOUNDS, -EINVAL);
	return request(OP_PREEMPT, target, wait, limit_ms, result, NULL);
}

/**
 * tsgtop_set_timeslice - give a TSG another timeslice
 * @target: which one
 * @us: microseconds; RM itself has no bounds, this has
 * @limit_ms: how long to wait for the answer
 * @result: filled in
 */
__bpf_kfunc int tsgtop_set_timeslice(struct tsgtop_target *target, u64 us, u32 limit_ms,
				     struct tsgtop_result *result)
{
	if (us < TSGTOP_MIN_TIMESLICE_US || us > TSGTOP_MAX_TIMESLICE_US)
		return refuse(result, TSGTOP_WHY_BOUNDS, -EINVAL);
	return request(OP_TIMESLICE, target, us, limit_ms, result, NULL);
}

/**
 * tsgtop_set_interleave - give a TSG another interleave level
 * @target: which one
 * @level: 0 low, 1 medium, 2 high
 * @limit_ms: how long to wait for the answer
 * @result: filled in
 */
__bpf_kfunc int tsgtop_set_interleave(struct tsgtop_target *target, u32 level, u32 limit_ms,
				      struct tsgtop_result *result)
{
	if (level > 2)
		return refuse(result, TSGTOP_WHY_BOUNDS, -EINVAL);
	return request(OP_INTERLEAVE, target, level, limit_ms, result, NULL);
}

/**
 * tsgtop_get_identity - who a TSG is, to tell it from one that took its handle
 * @target: client and tsg; number and unique are not looked at
 * @identity: filled in on success
 * @limit_ms: how long to wait for the answer
 * @result: filled in
 */
__bpf_kfunc int tsgtop_get_identity(struct tsgtop_target *target, struct tsgtop_identity *identity,
				    u32 limit_ms, struct tsgtop_result *result)
{
	struct tsgtop_call *call = NULL;
	int err = request(OP_IDENTITY, target, 0, limit_ms, result, &call);

	if (call) {
		*identity = call->data.identity;
		worker_put(call);
	}
	return err;
}

/**
 * tsgtop_get_switches - the GSP's context-switch counters of a TSG
 * @target: which one
 * @switches: filled in on success; valid where result->status is 0
 * @limit_ms: how long to wait for the answer
 * @result: filled in
 */
__bpf_kfunc int tsgtop_get_switches(struct tsgtop_target *target, struct tsgtop_switches *switches,
				    u32 limit_ms, struct tsgtop_result *result)
{
	struct tsgtop_call *call = NULL;
	int err = request(OP_SWITCHES, target, 0, limit_ms, result, &call);

	if (call) {
		*switches = call->data.switches;
		worker_put(call);
	}
	return err;
}

/**
 * tsgtop_wait - ask again about a call that had not answered
 * @cookie: what that call's result gave
 * @limit_ms: how long to wait for the answer
 * @result: filled in
 */
__bpf_kfunc int tsgtop_wait(u64 cookie, u32 limit_ms, struct tsgtop_result *result)
{
	struct tsgtop_call *call;
	int err;

	if (!capable(CAP_SYS_ADMIN))
		return refuse(result, TSGTOP_WHY_CAPABILITY, -EPERM);
	call = worker_find(cookie);
	if (!call)
		return refuse(result, TSGTOP_WHY_NO_COOKIE, -ENOENT);
	err = worker_wait(call, limit_ms, result);
	worker_put(call);
	return err;
}

BTF_KFUNCS_START(tsgtop_kfunc_ids)
BTF_ID_FLAGS(func, tsgtop_preempt, KF_SLEEPABLE)
BTF_ID_FLAGS(func, tsgtop_set_timeslice, KF_SLEEPABLE)
BTF_ID_FLAGS(func, tsgtop_set_interleave, KF_SLEEPABLE)
BTF_ID_FLAGS(func, tsgtop_get_identity, KF_SLEEPABLE)
BTF_ID_FLAGS(func, tsgtop_get_switches, KF_SLEEPABLE)
BTF_ID_FLAGS(func, tsgtop_wait, KF_SLEEPABLE)
BTF_KFUNCS_END(tsgtop_kfunc_ids)

static const struct btf_kfunc_id_set kfunc_set = {
	.owner = THIS_MODULE,
	.set = &tsgtop_kfunc_ids,
};

/* The kernel lets a module without BTF in and drops its kfuncs with a line at
 * most: check, rather than be there for nothing.
 */
int kfuncs_init(void)
{
	const struct btf_id_set8 *set = &tsgtop_kfunc_ids;
	u32 i;

	/* The section has no alignment, so on arm64 a load that the compiler folds
	 * the symbol into reads beside it.
	 */
	OPTIMIZER_HIDE_VAR(set);

#ifdef CONFIG_DEBUG_INFO_BTF_MODULES
	if (!THIS_MODULE->btf_data_size) {
		pr_err("built without BTF, so eBPF cannot call it: install pahole (package dwarves) and build again\n");
		return -ENOEXEC;
	}
#else
	pr_err("this kernel has no BTF for modules (CONFIG_DEBUG_INFO_BTF_MODULES), so eBPF cannot call modules\n");
	return -EOPNOTSUPP;
#endif
	for (i = 0; i < set->cnt && set->pairs[i].id; i++)
		;
	if (!set->cnt || i < set->cnt) {
		pr_err("built without resolved BTF ids: build it with its own Makefile, which resolves them\n");
		return -ENOEXEC;
	}
	return register_btf_kfunc_id_set(BPF_PROG_TYPE_SYSCALL, &kfunc_set);
}
