// SPDX-License-Identifier: GPL-2.0
/*
 * The knobs, in debugfs under nvidia-model: how the stand-in misbehaves, and what
 * it did.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "model.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

struct model_knobs knobs = {
	.interleave_mode = MODE_IGNORE,	/* what an H200 did */
	.status = RM_NOT_SUPPORTED,
	.rpc_us = 200,
	.next_client = 0x100,
};

static struct dentry *dir;

static ssize_t fecs_write(struct file *file, const char __user *buf, size_t n, loff_t *pos)
{
	struct model_gpu *gpu = file_inode(file)->i_private;
	u8 *records;
	int err;

	if (!n || n % 32 || n > SZ_1M)
		return -EINVAL;
	records = vmemdup_user(buf, n);
	if (IS_ERR(records))
		return PTR_ERR(records);
	err = fecs_feed(gpu, records, n / 32);
	kvfree(records);
	return err ?: n;
}

static const struct file_operations fecs_fops = { .owner = THIS_MODULE, .write = fecs_write };

/* "GPU CODE TEXT": the tracepoint and the log line, as the driver gives both. */
static ssize_t xid_write(struct file *file, const char __user *buf, size_t n, loff_t *pos)
{
	struct model_gpu *g;
	u32 gpu, code;
	char *line;
	int at = 0;

	if (n > 512)
		return -EINVAL;
	line = memdup_user_nul(buf, n);
	if (IS_ERR(line))
		return PTR_ERR(line);
	if (sscanf(line, "%u %u %n", &gpu, &code, &at) < 2 || gpu >= model_ngpus) {
		kfree(line);
		return -EINVAL;
	}
	g = &model_gpus[gpu];
	strim(line);
	trace_nvidia_dev_xid(g->pdev, code, line + at);
	pr_err("NVRM: Xid (PCI:0000:%02x:00): %u, %s\n", g->gpu_id >> 8, code, line + at);
	kfree(line);
	return n;
}

static const struct file_operations xid_fops = { .owner = THIS_MODULE, .write = xid_write };

static ssize_t version_write(struct file *file, const char __user *buf, size_t n, loff_t *pos)
{
	char *line;

	if (!n || n >= sizeof(knobs.version))
		return -EINVAL;
	line = memdup_user_nul(buf, n);
	if (IS_ERR(line))
		return PTR_ERR(line);
	strscpy(knobs.version, strim(line), sizeof(knobs.version));
	kfree(line);
	return n;
}

static const struct file_operations version_fops = { .owner = THIS_MODULE, .write = version_write };

/* One line a TSG: what RM remembers of it and what the hardware does. */
static int tsgs_show(struct seq_file *s, void *unused)
{
	struct model_client *c;
	struct model_object *o;
	unsigned long i, j;

	down_read(&api_lock);
	xa_for_each(&model_clients, i, c) {
		xa_for_each(&c->objects, j, o) {
			if (o->class != 0xa06c)
				continue;
			seq_printf(s, "client=%08x tsg=%08x pid=%d gpu=%d runlist=%u number=%u unique=%u engine=%u timeslice=%llu effective=%llu level=%u effective_level=%u preempts=%u saves=%u\n",
				   c->handle, o->handle, c->pid, o->gpu->index, o->runlist,
				   o->tsg.number, o->tsg.unique, o->tsg.engine,
				   o->tsg.timeslice_us, o->tsg.effective_us, o->tsg.level,
				   o->tsg.effective_level, o->tsg.preempts, o->tsg.save);
		}
	}
	up_read(&api_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(tsgs);

static int clients_show(struct seq_file *s, void *unused)
{
	struct model_client *c;
	unsigned long i;

	down_read(&api_lock);
	xa_for_each(&model_clients, i, c)
		seq_printf(s, "%08x pid=%d\n", c->handle, c->pid);
	up_read(&api_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(clients);

int knobs_init(void)
{
	char name[16];
	u32 i;

	dir = debugfs_create_dir("nvidia-model", NULL);
	if (IS_ERR(dir))
		return PTR_ERR(dir);
	debugfs_create_u32("preempt_mode", 0600, dir, &knobs.preempt_mode);
	debugfs_create_u32("timeslice_mode", 0600, dir, &knobs.timeslice_mode);
	debugfs_create_u32("interleave_mode", 0600, dir, &knobs.interleave_mode);
	debugfs_create_x32("status", 0600, dir, &knobs.status);
	debugfs_create_u32("hang_ms", 0600, dir, &knobs.hang_ms);
	debugfs_create_x32("hang_cmd", 0600, dir, &knobs.hang_cmd);
	debugfs_create_u32("rpc_us", 0600, dir, &knobs.rpc_us);
	debugfs_create_u32("gpu_lost", 0600, dir, &knobs.gpu_lost);
	debugfs_create_u32("mig", 0600, dir, &knobs.mig);
	debugfs_create_u32("lose_every", 0600, dir, &knobs.lose_every);
	debugfs_create_x32("bind_status", 0600, dir, &knobs.bind_status);
	debugfs_create_u32("memory_limit", 0600, dir, &knobs.memory_limit);
	debugfs_create_x32("next_client", 0600, dir, &knobs.next_client);
	debugfs_create_u32("shift_layout", 0600, dir, &knobs.shift_layout);
	debugfs_create_file("version", 0200, dir, NULL, &version_fops);
	debugfs_create_file("xid", 0200, dir, NULL, &xid_fops);
	debugfs_create_file("tsgs", 0400, dir, NULL, &tsgs_fops);
	debugfs_create_file("clients", 0400, dir, NULL, &clients_fops);
	for (i = 0; i < model_ngpus; i++) {
		snprintf(name, sizeof(name), "fecs%u", i);
		debugfs_create_file(name, 0200, dir, &model_gpus[i], &fecs_fops);
	}
	return 0;
}

void knobs_exit(void)
{
	debugfs_remove(dir);
}
