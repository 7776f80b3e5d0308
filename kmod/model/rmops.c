// SPDX-License-Identifier: GPL-2.0
/*
 * What the driver exports for its sibling modules: a table of operations behind
 * a handshake about the version, the same from 550 to 595 in what is used here.
 */
#include <linux/module.h>

#include "model.h"

struct rm_ops {
	const char *version_string;
	struct {
		bool allow_write_combining;
	} system_info;
	int (*alloc_stack)(void **sp);
	void (*free_stack)(void *sp);
	u32 (*enumerate_gpus)(void *gpus);
	int (*open_gpu)(u32 gpu_id, void *sp);
	void (*close_gpu)(u32 gpu_id, void *sp);
	void (*op)(void *sp, void *cmd);
	int (*set_callbacks)(void *callbacks);
};

static_assert(offsetof(struct rm_ops, op) == 0x38);

enum { OP_CONTROL = 0x36 };

static int alloc_stack(void **sp)
{
	*sp = NULL;	/* open builds have no stack of their own */
	return 0;
}

static void free_stack(void *sp)
{
}

static u32 enumerate_gpus(void *gpus)
{
	u32 i;

	for (i = 0; i < model_ngpus; i++)
		put32(gpus, i * 0x18, model_gpus[i].gpu_id);
	return model_ngpus;
}

static int open_gpu(u32 gpu_id, void *sp)
{
	return 0;
}

static void close_gpu(u32 gpu_id, void *sp)
{
}

static int set_callbacks(void *callbacks)
{
	return -EINVAL;	/* another sibling owns them */
}

/* The request: u32 op, then at 8 the call's own struct (NVOS54 for a control). */
static void rm_kernel_rmapi_op(void *sp, void *cmd)
{
	struct model_caller kernel = {};
	u8 *p = (u8 *)cmd + 8;
	u64 params = get64(p, 0x10);

	if (get32(cmd, 0) != OP_CONTROL)
		return;
	put32(p, 0x1c, rm_control(&kernel, get32(p, 0), get32(p, 4), get32(p, 8),
				  (void *)(uintptr_t)params, get32(p, 0x18)));
}

u32 nvidia_get_rm_ops(struct rm_ops *ops);
u32 nvidia_get_rm_ops(struct rm_ops *ops)
{
	if (!ops->version_string || strcmp(ops->version_string, knobs.version)) {
		ops->version_string = knobs.version;
		return RM_GENERIC;
	}
	ops->system_info.allow_write_combining = true;
	ops->alloc_stack = alloc_stack;
	ops->free_stack = free_stack;
	ops->enumerate_gpus = enumerate_gpus;
	ops->open_gpu = open_gpu;
	ops->close_gpu = close_gpu;
	ops->op = rm_kernel_rmapi_op;
	ops->set_callbacks = set_callbacks;
	if (knobs.shift_layout)	/* whoever calls by the old layout gets nothing */
		ops->op = NULL;
	return RM_OK;
}
#ifdef MODEL_PLAIN_EXPORT	/* as drivers up to 550 do */
EXPORT_SYMBOL(nvidia_get_rm_ops);
#else
EXPORT_SYMBOL_GPL(nvidia_get_rm_ops);
#endif
