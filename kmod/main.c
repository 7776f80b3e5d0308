// SPDX-License-Identifier: GPL-2.0
/*
 * tsgtop.ko: lets an eBPF program of tsgtop ask the NVIDIA driver to preempt a
 * TSG or to change its timeslice, through the interface that the stock open
 * nvidia.ko exports for its sibling modules. nvidia.ko stays as it is.
 *
 * It opens a door on purpose: whoever has CAP_SYS_ADMIN and may run eBPF reaches
 * any process's TSG with these few controls, and with no other.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/version.h>

#include "tsgtop.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)

static int __init tsgtop_init(void)
{
	pr_err("sleepable kfuncs need Linux 6.1; tsgtop acts through borrowed descriptors here\n");
	return -EOPNOTSUPP;
}

static void __exit tsgtop_exit(void)
{
}

#else

/* /sys/module/tsgtop/parameters/status: what it can do now and what uses it. */
static int status_get(char *buf, const struct kernel_param *unused)
{
	size_t n;

	n = scnprintf(buf, PAGE_SIZE, "abi: %d\n", TSGTOP_ABI);
	n += rm_driver_describe(buf + n, PAGE_SIZE - n);
	n += scnprintf(buf + n, PAGE_SIZE - n, "calls in flight: %u\n", worker_in_flight());
	n += scnprintf(buf + n, PAGE_SIZE - n,
		       "references: %d (loaded eBPF programs and calls in flight)\n",
		       module_refcount(THIS_MODULE));
	n += rpcprobe_describe(buf + n, PAGE_SIZE - n);
	return n;
}

static const struct kernel_param_ops status_ops = { .get = status_get };

module_param_cb(status, &status_ops, NULL, 0444);
MODULE_PARM_DESC(status, "read only: what works now and what uses the module");

static int __init tsgtop_init(void)
{
	int err;

	err = worker_init();
	if (err)
		return err;
	err = rm_driver_init();
	if (err)
		goto worker;
	/* last: from here on eBPF programs can call */
	err = kfuncs_init();
	if (err)
		goto driver;
	rpcprobe_init();
	return 0;
driver:
	rm_driver_exit();
worker:
	worker_exit();
	return err;
}

/* No eBPF program calls any more: each that could holds a reference. */
static void __exit tsgtop_exit(void)
{
	rpcprobe_exit();
	worker_exit();
	rm_driver_exit();
}

#endif

module_init(tsgtop_init);
module_exit(tsgtop_exit);
MODULE_DESCRIPTION("tsgtop: kfuncs that act on the NVIDIA driver's TSGs");
MODULE_AUTHOR("the tsgtop authors");
MODULE_LICENSE("GPL");
MODULE_VERSION("1");
