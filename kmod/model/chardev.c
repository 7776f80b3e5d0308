// SPDX-License-Identifier: GPL-2.0
/*
 * The character devices and the ioctl surface: /dev/nvidiactl, /dev/nvidia0...
 *
 * As in the driver, an RM call's answer is the status inside the struct; the
 * ioctl itself fails only for what is not an RM call at all.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/device.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/utsname.h>
#include <linux/vmalloc.h>

#include "model.h"

#define MAX_PARAMS	SZ_64K

enum {
	ESC_FREE = 0x29, ESC_CONTROL = 0x2a, ESC_ALLOC = 0x2b, ESC_DUP = 0x34,
	ESC_MAP = 0x4e, ESC_UNMAP = 0x4f, ESC_CARD_INFO = 200, ESC_REGISTER_FD = 201,
	ESC_ALLOC_OS_EVENT = 206, ESC_FREE_OS_EVENT = 207, ESC_CHECK_VERSION = 210,
	ESC_XFER = 211, ESC_SYS_PARAMS = 214,
};

static const struct file_operations nvidia_fops;

struct model_gpu model_gpus[MODEL_GPUS];
unsigned int model_ngpus = 1;
module_param_named(gpus, model_ngpus, uint, 0444);
MODULE_PARM_DESC(gpus, "number of GPUs, 1 to 8");

static char *version = "580.159.04";
module_param(version, charp, 0444);
MODULE_PARM_DESC(version, "driver version that it says it has");

static struct class *nvidia_class;

/* Copies parameters in, runs the call, copies them out. */
static u32 with_params(u64 user, u32 size, u32 (*call)(void *ctx, void *params), void *ctx,
		       int *err)
{
	void *buf = NULL;
	u32 status;

	*err = 0;
	if (size > MAX_PARAMS)
		return RM_INVALID_PARAMS;
	if (user && size) {
		buf = memdup_user(u64_to_user_ptr(user), size);
		if (IS_ERR(buf)) {
			*err = PTR_ERR(buf);
			return RM_GENERIC;
		}
	}
	status = call(ctx, buf);
	if (buf && copy_to_user(u64_to_user_ptr(user), buf, size))
		*err = -EFAULT;
	kfree(buf);
	return status;
}

struct control_ctx {
	struct model_caller *who;
	u32 client, object, cmd, size;
};

static u32 call_control(void *ctx, void *params)
{
	struct control_ctx *c = ctx;

	if (c->size && !params)
		return RM_INVALID_ARGUMENT;
	return rm_control(c->who, c->client, c->object, c->cmd, params, c->size);
}

static int esc_control(struct model_caller *who, u8 *arg, u32 size)
{
	struct control_ctx ctx = {
		who, get32(arg, 0), get32(arg, 4), get32(arg, 8), get32(arg, 0x18),
	};
	int err;

	if (size != 0x20)
		return -EINVAL;
	put32(arg, 0x1c, with_params(get64(arg, 0x10), ctx.size, call_control, &ctx, &err));
	return err;
}

struct alloc_ctx {
	struct model_caller *who;
	u32 client, parent, handle, class, size;
};

static u32 call_alloc(void *ctx, void *params)
{
	struct alloc_ctx *a = ctx;
	u8 none[4] = {};

	return rm_alloc(a->who, a->client, a->parent, &a->handle, a->class,
			params ?: none, params ? a->size : 0);
}

/* Classes whose parameters' size user space may leave at 0. */
static u32 known_size(u32 class)
{
	switch (class) {
	case 0x80:
		return 0x38;
	case 0x2080:
		return 4;
	case 0xa06c:
		return 0x14;
	case 0x90cd:
		return 0x48;
	case 0x90ce:
		return 0x80;
	}
	return rm_is_channel(class) ? 0x170 : 0;
}

static int esc_alloc(struct model_caller *who, u8 *arg, u32 size)
{
	struct alloc_ctx ctx = {
		who, get32(arg, 0), get32(arg, 4), get32(arg, 8), get32(arg, 0xc),
	};
	size_t status_at, size_at;
	int err;

	if (size == 0x20) {
		size_at = 0x18;
		status_at = 0x1c;
	} else if (size == 0x30) {
		size_at = 0x20;
		status_at = 0x28;
	} else {
		return -EINVAL;
	}
	ctx.size = get32(arg, size_at) ?: known_size(ctx.class);
	put32(arg, status_at, with_params(get64(arg, 0x10), ctx.size, call_alloc, &ctx, &err));
	put32(arg, 8, ctx.handle);
	return err;
}

static int esc_map(struct model_caller *who, u8 *arg, u32 size)
{
	struct model_client *c;
	struct model_object *o;
	struct model_file *to;
	struct fd f;
	struct file *file;
	u32 status;

	if (size != 0x38)
		return -EINVAL;
	f = fdget((int)get32(arg, 0x30));
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
	file = fd_file(f);
#else
	file = f.file;
#endif
	if (!file)
		return -EBADF;
	down_write(&api_lock);
	status = RM_INVALID_ARGUMENT;
	if (file->f_op != &nvidia_fops)
		goto unlock;
	to = file->private_data;
	c = rm_client(who, get32(arg, 0), &status);
	if (!c)
		goto unlock;
	status = RM_INVALID_CLIENT;
	if (c->pid != task_tgid_nr(current))	/* no mapping through a borrowed file */
		goto unlock;
	o = rm_object(c, get32(arg, 8));
	status = RM_INVALID_HANDLE;
	if (!o || o->class != 0x90ce)
		goto unlock;
	status = RM_STATE_IN_USE;
	if (to->map)
		goto unlock;
	status = RM_INVALID_ARGUMENT;
	if (get64(arg, 0x10) || get64(arg, 0x18) > o->memory->size)
		goto unlock;
	kref_get(&o->memory->ref);
	to->map = o->memory;
	to->map_readonly = o->memory->user_readonly;
	status = RM_OK;
unlock:
	up_write(&api_lock);
	fdput(f);
	put32(arg, 0x28, status);
	return 0;
}

static int esc_card_info(u8 *arg, u32 size)
{
	u32 i;

	memset(arg, 0, size);
	for (i = 0; i < model_ngpus && (i + 1) * 0x48 <= size; i++) {
		u8 *card = arg + i * 0x48;
		struct model_gpu *g = &model_gpus[i];

		card[0] = 1;
		put32(card, 4, 0);
		card[8] = g->gpu_id >> 8;	/* bus */
		card[0xc] = 0xde;		/* vendor 10de */
		card[0xd] = 0x10;
		card[0xe] = 0x35;		/* device 2335: H200 */
		card[0xf] = 0x23;
		put32(card, 0x10, g->gpu_id);
		put32(card, 0x38, i);
	}
	return 0;
}

static int esc_register_fd(struct model_file *mf, u8 *arg, u32 size)
{
	struct file *file;
	struct fd f;
	int err = -EINVAL;

	if (size != 4 || mf->ctl)
		return -EINVAL;
	f = fdget((int)get32(arg, 0));
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
	file = fd_file(f);
#else
	file = f.file;
#endif
	if (!file)
		return -EBADF;
	if (file->f_op == &nvidia_fops) {
		struct model_file *ctl = file->private_data;

		if (ctl->minor == MODEL_CTL) {
			mf->ctl = ctl;
			err = 0;
		}
	}
	fdput(f);
	return err;
}

static int esc_check_version(u8 *arg, u32 size)
{
	if (size != 72)
		return -EINVAL;
	put32(arg, 4, !strncmp(arg + 8, knobs.version, 64));
	memset(arg + 8, 0, 64);
	strscpy(arg + 8, knobs.version, 64);
	return 0;
}

static int escape(struct model_file *mf, u32 nr, u8 *arg, u32 size)
{
	struct model_caller who = { .file = mf, .root = capable(CAP_SYS_ADMIN) };
	u32 handle;

	switch (nr) {
	case ESC_FREE:
		if (size != 0x10)
			return -EINVAL;
		put32(arg, 0xc, rm_free(&who, get32(arg, 0), get32(arg, 8)));
		return 0;
	case ESC_CONTROL:
		return mf->minor == MODEL_CTL ? esc_control(&who, arg, size) : -EINVAL;
	case ESC_ALLOC:
		return esc_alloc(&who, arg, size);
	case ESC_DUP:
		if (size != 0x1c)
			return -EINVAL;
		handle = get32(arg, 8);
		put32(arg, 0x18, rm_dup(&who, get32(arg, 0), get32(arg, 4), &handle,
					get32(arg, 0xc), get32(arg, 0x10)));
		put32(arg, 8, handle);
		return 0;
	case ESC_MAP:
		return esc_map(&who, arg, size);
	case ESC_UNMAP:
		return 0;
	case ESC_CARD_INFO:
		return esc_card_info(arg, size);
	case ESC_REGISTER_FD:
		return esc_register_fd(mf, arg, size);
	case ESC_ALLOC_OS_EVENT:
	case ESC_FREE_OS_EVENT:
		return 0;
	case ESC_CHECK_VERSION:
		return esc_check_version(arg, size);
	case ESC_SYS_PARAMS:
		return 0;
	}
	return -EINVAL;
}

/* By this name, because probes attach to it: it stands in the driver's
 * file_operations from 550 to 595.
 */
long nvidia_unlocked_ioctl(struct file *file, unsigned int cmd, unsigned long arg);
noinline long nvidia_unlocked_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	u32 nr = _IOC_NR(cmd), size = _IOC_SIZE(cmd);
	void __user *user = (void __user *)arg;
	u8 *buf;
	int err;

	if (_IOC_TYPE(cmd) != 'F')
		return -ENOTTY;
	if (nr == ESC_XFER) {
		u8 x[16];

		if (size != sizeof(x) || copy_from_user(x, user, sizeof(x)))
			return -EFAULT;
		nr = get32(x, 0);
		size = get32(x, 4);
		user = u64_to_user_ptr(get64(x, 8));
		if (!size || size > MAX_PARAMS)
			return -EINVAL;
	}
	buf = memdup_user(user, size);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	err = escape(file->private_data, nr, buf, size);
	if (!err && copy_to_user(user, buf, size))
		err = -EFAULT;
	kfree(buf);
	return err;
}

static int nvidia_open(struct inode *inode, struct file *file)
{
	int minor = iminor(inode);
	struct model_file *mf;

	if (minor != MODEL_CTL && minor >= model_ngpus)
		return -ENODEV;
	if (minor != MODEL_CTL && knobs.gpu_lost)
		return -EIO;
	mf = kzalloc(sizeof(*mf), GFP_KERNEL);
	if (!mf)
		return -ENOMEM;
	mf->minor = minor;
	file->private_data = mf;
	return 0;
}

static int nvidia_close(struct inode *inode, struct file *file)
{
	struct model_file *mf = file->private_data;

	rm_file_closed(mf);
	memory_put(mf->map);
	kfree(mf);
	return 0;
}

static void vma_open(struct vm_area_struct *vma)
{
	struct model_memory *m = vma->vm_private_data;

	kref_get(&m->ref);
}

static void vma_close(struct vm_area_struct *vma)
{
	memory_put(vma->vm_private_data);
}

static const struct vm_operations_struct vm_ops = { .open = vma_open, .close = vma_close };

static int nvidia_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct model_file *mf = file->private_data;
	int err;

	if (!mf->map || vma->vm_pgoff)
		return -EINVAL;
	if (mf->map_readonly && (vma->vm_flags & VM_WRITE))
		return -EACCES;
	err = remap_vmalloc_range(vma, mf->map->va, 0);
	if (err)
		return err;
	kref_get(&mf->map->ref);
	vma->vm_private_data = mf->map;
	vma->vm_ops = &vm_ops;
	return 0;
}

static const struct file_operations nvidia_fops = {
	.owner = THIS_MODULE,
	.open = nvidia_open,
	.release = nvidia_close,
	.unlocked_ioctl = nvidia_unlocked_ioctl,
	.compat_ioctl = nvidia_unlocked_ioctl,
	.mmap = nvidia_mmap,
};

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
static char *devnode(const struct device *dev, umode_t *mode)
#else
static char *devnode(struct device *dev, umode_t *mode)
#endif
{
	if (mode)
		*mode = 0666;
	return NULL;
}

static int make_nodes(void)
{
	struct device *d;
	u32 i;

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 4, 0)
	nvidia_class = class_create("nvidia");
#else
	nvidia_class = class_create(THIS_MODULE, "nvidia");
#endif
	if (IS_ERR(nvidia_class))
		return PTR_ERR(nvidia_class);
	nvidia_class->devnode = devnode;
	d = device_create(nvidia_class, NULL, MKDEV(MODEL_MAJOR, MODEL_CTL), NULL, "nvidiactl");
	for (i = 0; !IS_ERR(d) && i < model_ngpus; i++)
		d = device_create(nvidia_class, NULL, MKDEV(MODEL_MAJOR, i), NULL, "nvidia%u", i);
	return PTR_ERR_OR_ZERO(d);
}

static void remove_nodes(void)
{
	u32 i;

	if (IS_ERR_OR_NULL(nvidia_class))
		return;
	for (i = 0; i < model_ngpus; i++)
		device_destroy(nvidia_class, MKDEV(MODEL_MAJOR, i));
	device_destroy(nvidia_class, MKDEV(MODEL_MAJOR, MODEL_CTL));
	class_destroy(nvidia_class);
}

static void gpus_exit(void)
{
	u32 i;

	for (i = 0; i < model_ngpus; i++) {
		fecs_exit(&model_gpus[i]);
		pci_dev_put(model_gpus[i].pdev);
	}
}

static int gpus_init(void)
{
	u32 i;

	for (i = 0; i < model_ngpus; i++) {
		struct model_gpu *g = &model_gpus[i];
		int err = fecs_init(g);

		g->index = i;
		/* as the driver makes it: from the PCI address */
		g->gpu_id = (i + 1) << 8;
		/* where the machine has a device there */
		g->pdev = pci_get_domain_bus_and_slot(0, i + 1, 0);
		if (err) {
			model_ngpus = i + 1;
			return err;
		}
	}
	return 0;
}

static int __init model_init(void)
{
	int err;

	model_ngpus = clamp(model_ngpus, 1u, (unsigned int)MODEL_GPUS);
	strscpy(knobs.version, version, sizeof(knobs.version));
	err = gpus_init();
	if (err)
		goto gpus;
	err = rm_objects_init();
	if (err)
		goto objects;
	err = register_chrdev(MODEL_MAJOR, "nvidia", &nvidia_fops);
	if (err)
		goto objects;
	err = make_nodes();
	if (err)
		goto nodes;
	err = model_proc_init();
	if (err)
		goto nodes;
	err = knobs_init();
	if (err)
		goto proc;
	pr_info("NVRM: model: a stand-in for nvidia.ko %s with %u GPUs, for tests\n",
		knobs.version, model_ngpus);
	return 0;
proc:
	model_proc_exit();
nodes:
	remove_nodes();
	unregister_chrdev(MODEL_MAJOR, "nvidia");
objects:
	rm_objects_exit();
gpus:
	gpus_exit();
	return err;
}

static void __exit model_exit(void)
{
	knobs_exit();
	model_proc_exit();
	remove_nodes();
	unregister_chrdev(MODEL_MAJOR, "nvidia");
	rm_objects_exit();
	meter_exit();
	gpus_exit();
}

module_init(model_init);
module_exit(model_exit);
MODULE_DESCRIPTION("Stand-in for nvidia.ko, for tests of tsgtop");
MODULE_LICENSE("GPL");
