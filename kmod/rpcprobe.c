// SPDX-License-Identifier: GPL-2.0
/*
 * The experiment, off unless the parameter rpc_probes is set: native probes on
 * the functions that RM's calls to the GSP go through, so that every process's
 * calls show their GSP part.
 *
 * The driver's core is compiled without ftrace locations, so eBPF cannot attach
 * to these functions; a kernel module's kretprobe can. What is seen goes out
 * through the tracepoint tsgtop_rpc. The names are those of the driver's source
 * from 550 to 595; a name that is not there is a missing witness, no more.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>

#include "tsgtop.h"
#include "trace.h"

static bool rpc_probes;
module_param(rpc_probes, bool, 0444);
MODULE_PARM_DESC(rpc_probes, "experiment: watch the driver's RPCs to the GSP");

#ifdef CONFIG_KRETPROBES

enum { RPC_FREE = 10, RPC_CONTROL = 76, RPC_ALLOC = 103 };

struct rpc_entry {
	u64 start;
	u32 client, object, number;
};

/* Arguments: RM_API *, client, then object and command; alloc: parent, object, class. */
static int on_entry(struct kretprobe_instance *ri, struct pt_regs *regs, int object_at,
		    int number_at)
{
	struct rpc_entry *e = (void *)ri->data;

	e->client = regs_get_kernel_argument(regs, 1);
	e->object = regs_get_kernel_argument(regs, object_at);
	e->number = number_at ? regs_get_kernel_argument(regs, number_at) : 0;
	e->start = ktime_get_mono_fast_ns();
	return 0;
}

static int on_control(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	return on_entry(ri, regs, 2, 3);
}

static int on_alloc(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	return on_entry(ri, regs, 3, 4);
}

static int on_free(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	return on_entry(ri, regs, 2, 0);
}

static void on_return(struct kretprobe_instance *ri, struct pt_regs *regs, u32 function)
{
	struct rpc_entry *e = (void *)ri->data;

	trace_tsgtop_rpc(function, e->client, e->object, e->number, regs_return_value(regs),
			 ktime_get_mono_fast_ns() - e->start);
}

static int control_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	on_return(ri, regs, RPC_CONTROL);
	return 0;
}

static int alloc_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	on_return(ri, regs, RPC_ALLOC);
	return 0;
}

static int free_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	on_return(ri, regs, RPC_FREE);
	return 0;
}

static struct witness {
	const char *name;
	kretprobe_handler_t entry, ret;
	struct kretprobe probe;
	bool attached;
} witnesses[] = {
	{ "rpcRmApiControl_GSP", on_control, control_return },
	{ "rpcRmApiAlloc_GSP", on_alloc, alloc_return },
	{ "rpcRmApiFree_GSP", on_free, free_return },
};

static DEFINE_MUTEX(lock);

static void attach(void)
{
	size_t i;

	mutex_lock(&lock);
	for (i = 0; i < ARRAY_SIZE(witnesses); i++) {
		struct witness *w = &witnesses[i];
		int err;

		if (w->attached)
			continue;
		w->probe = (struct kretprobe) {
			.kp.symbol_name = w->name,
			.entry_handler = w->entry,
			.handler = w->ret,
			.data_size = sizeof(struct rpc_entry),
			.maxactive = 64,
		};
		err = register_kretprobe(&w->probe);
		w->attached = !err;
		if (err)
			pr_info("no witness %s: %d\n", w->name, err);
	}
	mutex_unlock(&lock);
}

static void detach(void)
{
	size_t i;

	mutex_lock(&lock);
	for (i = 0; i < ARRAY_SIZE(witnesses); i++) {
		if (witnesses[i].attached)
			unregister_kretprobe(&witnesses[i].probe);
		witnesses[i].attached = false;
	}
	mutex_unlock(&lock);
}

/* The driver comes and goes; the probes with it. */
static int on_module(struct notifier_block *nb, unsigned long state, void *data)
{
	struct module *mod = data;

	if (strcmp(mod->name, "nvidia"))
		return NOTIFY_DONE;
	if (state == MODULE_STATE_LIVE)
		attach();
	else if (state == MODULE_STATE_GOING)
		detach();
	return NOTIFY_DONE;
}

static struct notifier_block module_nb = { .notifier_call = on_module };

void rpcprobe_init(void)
{
	if (!rpc_probes)
		return;
	if (register_module_notifier(&module_nb)) {
		rpc_probes = false;
		return;
	}
	attach();
}

void rpcprobe_exit(void)
{
	if (!rpc_probes)
		return;
	unregister_module_notifier(&module_nb);
	detach();
}

size_t rpcprobe_describe(char *buf, size_t size)
{
	size_t i, n = 0;

	if (!rpc_probes)
		return 0;
	mutex_lock(&lock);
	for (i = 0; i < ARRAY_SIZE(witnesses); i++)
		n += scnprintf(buf + n, size - n, "witness %s: %s\n", witnesses[i].name,
			       witnesses[i].attached ? "attached" : "missing");
	mutex_unlock(&lock);
	return n;
}

#else

void rpcprobe_init(void)
{
	if (rpc_probes)
		pr_info("this kernel has no kretprobes: no witness of RPCs\n");
}

void rpcprobe_exit(void)
{
}

size_t rpcprobe_describe(char *buf, size_t size)
{
	return 0;
}

#endif
