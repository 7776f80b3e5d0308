/* SPDX-License-Identifier: GPL-2.0 */
/* What the parts of tsgtop.ko share. */
#ifndef TSGTOP_H
#define TSGTOP_H

#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "tsgtop_abi.h"

enum tsgtop_op {
	OP_PREEMPT,
	OP_TIMESLICE,
	OP_INTERLEAVE,
	OP_IDENTITY,
	OP_SWITCHES,
};

/* One command on its way. The worker fills result and data; whoever asked holds
 * a reference, the worker another, the list of recent calls a third.
 */
struct tsgtop_call {
	struct kref ref;
	struct list_head recent;
	struct work_struct work;
	struct completion done;
	enum tsgtop_op op;
	struct tsgtop_target target;
	u64 value;
	int err;
	struct tsgtop_result result;
	union {
		struct tsgtop_identity identity;
		struct tsgtop_switches switches;
	} data;
};

/* driver.c: the interface of nvidia.ko */
struct rm_driver;
struct rm_ops;

u32 nvidia_get_rm_ops(struct rm_ops *ops);	/* exported by nvidia.ko, never linked */

int rm_driver_init(void);
void rm_driver_exit(void);
struct rm_driver *rm_driver_get(enum tsgtop_why *why, int *err);
void rm_driver_put(struct rm_driver *rm);
u32 rm_control(struct rm_driver *rm, u32 client, u32 object, u32 cmd, void *params, u32 size);
bool rm_has_unique_ids(const struct rm_driver *rm);
size_t rm_driver_describe(char *buf, size_t size);
const char *rm_why(enum tsgtop_why why);

/* command.c: what each operation asks of RM */
void tsgtop_perform(struct tsgtop_call *call);

/* worker.c: calls in flight */
int worker_init(void);
void worker_exit(void);
struct tsgtop_call *worker_submit(enum tsgtop_op op, const struct tsgtop_target *target,
				  u64 value, struct tsgtop_result *result, int *err);
struct tsgtop_call *worker_find(u64 cookie);
int worker_wait(struct tsgtop_call *call, u32 limit_ms, struct tsgtop_result *result);
void worker_put(struct tsgtop_call *call);
unsigned int worker_in_flight(void);

/* kfuncs.c */
int kfuncs_init(void);
int tsgtop_preempt(struct tsgtop_target *target, u32 wait, u32 limit_ms,
		   struct tsgtop_result *result);
int tsgtop_set_timeslice(struct tsgtop_target *target, u64 us, u32 limit_ms,
			 struct tsgtop_result *result);
int tsgtop_set_interleave(struct tsgtop_target *target, u32 level, u32 limit_ms,
			  struct tsgtop_result *result);
int tsgtop_get_identity(struct tsgtop_target *target, struct tsgtop_identity *identity,
			u32 limit_ms, struct tsgtop_result *result);
int tsgtop_get_switches(struct tsgtop_target *target, struct tsgtop_switches *switches,
			u32 limit_ms, struct tsgtop_result *result);
int tsgtop_wait(u64 cookie, u32 limit_ms, struct tsgtop_result *result);

/* rpcprobe.c: the experiment */
void rpcprobe_init(void);
void rpcprobe_exit(void);
size_t rpcprobe_describe(char *buf, size_t size);

#endif
