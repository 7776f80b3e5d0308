// SPDX-License-Identifier: GPL-2.0
/*
 * Clients and their objects: allocation, ownership, freeing.
 *
 * As in the driver, a client belongs to the open file that it was allocated on,
 * and nothing but that file (or the kernel) reaches it: no exemption for root.
 */
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "model.h"

#define CLIENT_BASE	0xc1d00000u
#define KERNEL_CLIENT	0xc1e00001u
#define HANDLE_BASE	0xcaf00000u
#define TSG_DEFAULT_US	1024

DECLARE_RWSEM(api_lock);
DEFINE_XARRAY(model_clients);
static atomic_t next_cid = ATOMIC_INIT(0x10);
static atomic_t next_unique = ATOMIC_INIT(0x100);

bool rm_is_channel(u32 class)
{
	switch (class) {
	case 0xc36f:
	case 0xc46f:
	case 0xc56f:
	case 0xc86f:
	case 0xc96f:
	case 0xca6f:
		return true;
	}
	return false;
}

struct model_client *rm_client(struct model_caller *who, u32 handle, u32 *status)
{
	struct model_client *c = xa_load(&model_clients, handle);

	*status = RM_INVALID_CLIENT;
	if (!c) {
		/* the driver writes a line here: nobody may guess clients */
		pr_err("NVRM: model: call on client %08x, which does not exist\n", handle);
		return NULL;
	}
	if (who->file && c->owner != (who->file->ctl ?: who->file))
		return NULL;
	*status = RM_OK;
	return c;
}

struct model_object *rm_object(struct model_client *client, u32 handle)
{
	return xa_load(&client->objects, handle);
}

/* rm_class_of knows the client itself too, which is no entry of its own table. */
u32 rm_class_of(struct model_client *client, u32 handle, u32 *parent)
{
	struct model_object *o;

	*parent = 0;
	if (handle == client->handle)
		return 0x41;
	o = rm_object(client, handle);
	if (!o)
		return 0;
	*parent = o->parent;
	return o->class;
}

struct model_gpu *rm_gpu_of(struct model_client *client, u32 handle)
{
	struct model_object *o = rm_object(client, handle);

	return o ? o->gpu : NULL;
}

static void memory_free(struct kref *ref)
{
	struct model_memory *m = container_of(ref, struct model_memory, ref);

	vfree(m->va);
	kfree(m);
}

void memory_put(struct model_memory *memory)
{
	if (memory)
		kref_put(&memory->ref, memory_free);
}

static u32 memory_init(struct model_object *o, const u8 *params, u32 size)
{
	struct model_memory *m;
	u64 bytes;

	if (size < 0x48)
		return RM_INVALID_PARAMS;
	bytes = get64(params, 0x40);
	if (!bytes || bytes > SZ_64M || (knobs.memory_limit && bytes > knobs.memory_limit))
		return RM_NO_MEMORY;
	m = kzalloc(sizeof(*m), GFP_KERNEL);
	if (!m)
		return RM_NO_MEMORY;
	kref_init(&m->ref);
	m->size = PAGE_ALIGN(bytes);
	m->user_readonly = get32(params, 0x1c) & BIT(22);
	m->va = vmalloc_user(m->size);
	if (!m->va) {
		kfree(m);
		return RM_NO_MEMORY;
	}
	o->memory = m;
	return RM_OK;
}

static u32 runlist_of_engine(u32 engine)
{
	if (engine >= 9 && engine < 9 + MODEL_RUNLISTS - 1)
		return 1 + engine - 9;	/* each copy engine has a runlist of its own */
	return 0;
}

static int take_bit(unsigned long *map)
{
	unsigned long n = find_first_zero_bit(map, MODEL_CHANNELS);

	if (n >= MODEL_CHANNELS)
		return -1;
	set_bit(n, map);
	return n;
}

static u32 tsg_init(struct model_object *o, const u8 *params, u32 size)
{
	int n;

	if (size != 0x14)
		return RM_INVALID_PARAMS;
	o->tsg.engine = get32(params, 0xc);
	o->runlist = runlist_of_engine(o->tsg.engine);
	n = take_bit(o->gpu->tsgs[o->runlist]);
	if (n < 0)
		return RM_NO_RESOURCES;
	o->tsg.number = n;
	o->tsg.unique = atomic_inc_return(&next_unique);
	o->tsg.timeslice_us = TSG_DEFAULT_US;
	o->tsg.effective_us = TSG_DEFAULT_US;
	return RM_OK;
}

static u32 channel_init(struct model_client *c, struct model_object *o, u8 *params, u32 size)
{
	struct model_object *parent = rm_object(c, o->parent);
	int n;

	if (size != 0x168 && size != 0x170)
		return RM_INVALID_PARAMS;
	o->channel.engine = get32(params, 0x80);
	if (parent->class == 0xa06c) {
		o->runlist = parent->runlist;
		o->channel.engine = parent->tsg.engine;
	} else {
		o->runlist = runlist_of_engine(o->channel.engine);
		o->channel.own_tsg = true;
	}
	n = take_bit(o->gpu->chids[o->runlist]);
	if (n < 0)
		return RM_NO_RESOURCES;
	o->channel.chid = n;
	o->channel.cid = atomic_inc_return(&next_cid);
	put32(params, 0x84, o->channel.cid);
	return RM_OK;
}

static u32 device_init(struct model_object *o, const u8 *params, u32 size)
{
	u32 id = size >= 4 ? get32(params, 0) : 0;

	if (id >= model_ngpus)
		return RM_INVALID_DEVICE;
	o->gpu = &model_gpus[id];
	return RM_OK;
}

static u32 object_init(struct model_client *c, struct model_object *o, void *params, u32 size)
{
	struct model_object *parent = rm_object(c, o->parent);

	if (o->parent != c->handle) {
		if (!parent)
			return RM_INVALID_PARENT;
		o->gpu = parent->gpu;
	}
	switch (o->class) {
	case 0x80:
		return parent ? RM_INVALID_PARENT : device_init(o, params, size);
	case 0x2080:
		return parent && parent->class == 0x80 ? RM_OK : RM_INVALID_PARENT;
	case 0xa06c:
		if (!parent || parent->class != 0x80)
			return RM_INVALID_PARENT;
		return tsg_init(o, params, size);
	case 0x90ce:
		return memory_init(o, params, size);
	case 0x90cd:
		return fecs_evbuf_init(c, o, params, size);
	case 0x79:	/* OS event */
	case 0x90f1:	/* address space */
	case 0x9067:	/* context share */
	case 0x900e:	/* MPS */
	case 0xcbc0:	/* Hopper compute */
	case 0xc8b5:	/* Hopper copy */
		return RM_OK;
	}
	if (rm_is_channel(o->class)) {
		if (!parent || (parent->class != 0xa06c && parent->class != 0x80))
			return RM_INVALID_PARENT;
		return channel_init(c, o, params, size);
	}
	return RM_INVALID_CLASS;
}

static u32 client_alloc(struct model_caller *who, u32 *handle)
{
	struct model_client *c = kzalloc(sizeof(*c), GFP_KERNEL);
	int tries;

	if (!c)
		return RM_NO_MEMORY;
	c->owner = who->file ? (who->file->ctl ?: who->file) : NULL;
	c->pid = task_tgid_nr(current);
	c->next_handle = HANDLE_BASE;
	xa_init(&c->objects);
	/* an index of 20 bits that wraps */
	for (tries = 0; tries < 1 << 20; tries++) {
		c->handle = CLIENT_BASE | (knobs.next_client++ & 0xfffff);
		if (!xa_load(&model_clients, c->handle))
			break;
	}
	if (xa_is_err(xa_store(&model_clients, c->handle, c, GFP_KERNEL))) {
		kfree(c);
		return RM_NO_MEMORY;
	}
	*handle = c->handle;
	return RM_OK;
}

u32 rm_alloc(struct model_caller *who, u32 client, u32 parent, u32 *handle,
	     u32 class, void *params, u32 size)
{
	struct model_client *c;
	struct model_object *o;
	u32 status;

	down_write(&api_lock);
	if (class == 0x41 || class == 0 || class == 1) {
		status = client_alloc(who, handle);
		goto unlock;
	}
	c = rm_client(who, client, &status);
	if (!c)
		goto unlock;
	if (*handle && (*handle == c->handle || rm_object(c, *handle))) {
		status = RM_DUPLICATE_NAME;
		goto unlock;
	}
	o = kzalloc(sizeof(*o), GFP_KERNEL);
	if (!o) {
		status = RM_NO_MEMORY;
		goto unlock;
	}
	o->client = c;
	o->handle = *handle ?: ++c->next_handle;
	o->class = class;
	o->parent = parent;
	status = object_init(c, o, params, size);
	if (!status && xa_is_err(xa_store(&c->objects, o->handle, o, GFP_KERNEL)))
		status = RM_NO_MEMORY;
	if (status) {
		kfree(o);
		goto unlock;
	}
	*handle = o->handle;
	if (class == 0xa06c || rm_is_channel(class))
		gsp_alloc(client, parent, o->handle, class);
unlock:
	up_write(&api_lock);
	return status;
}

static void object_free(struct model_object *o)
{
	if (o->class == 0xa06c)
		clear_bit(o->tsg.number, o->gpu->tsgs[o->runlist]);
	else if (rm_is_channel(o->class))
		clear_bit(o->channel.chid, o->gpu->chids[o->runlist]);
	else if (o->class == 0x90ce)
		memory_put(o->memory);
	else if (o->class == 0x90cd)
		fecs_unbind(o);
	kfree(o);
}

/* Frees the object and all below it; children were made after their parents,
 * so a pass for each level is enough and tables are small.
 */
static void subtree_free(struct model_client *c, u32 handle)
{
	struct model_object *o;
	unsigned long i;
	bool again = true;

	while (again) {
		again = false;
		xa_for_each(&c->objects, i, o) {
			if (o->parent == handle) {
				subtree_free(c, o->handle);
				again = true;
				break;
			}
		}
	}
	o = xa_erase(&c->objects, handle);
	if (o) {
		if (o->class == 0xa06c || rm_is_channel(o->class))
			gsp_free(c->handle, o->handle);
		object_free(o);
	}
}

static void client_free(struct model_client *c)
{
	subtree_free(c, c->handle);
	xa_erase(&model_clients, c->handle);
	xa_destroy(&c->objects);
	kfree(c);
}

u32 rm_free(struct model_caller *who, u32 client, u32 handle)
{
	struct model_client *c;
	u32 status;

	down_write(&api_lock);
	c = rm_client(who, client, &status);
	if (c && handle == client)
		client_free(c);
	else if (c && !rm_object(c, handle))
		status = RM_NOT_FOUND;
	else if (c)
		subtree_free(c, handle);
	up_write(&api_lock);
	return status;
}

/* Sharing is per process by default, so only a client of the same process can be
 * dupped from; and only plain objects, which is all that tests need.
 */
u32 rm_dup(struct model_caller *who, u32 client, u32 parent, u32 *handle,
	   u32 src_client, u32 src_handle)
{
	struct model_client *c, *src;
	struct model_object *from, *o;
	u32 status;

	down_write(&api_lock);
	c = rm_client(who, client, &status);
	if (!c)
		goto unlock;
	src = xa_load(&model_clients, src_client);
	status = RM_INVALID_CLIENT;
	if (!src)
		goto unlock;
	status = RM_NO_PERMISSION;
	if (who->file && src->pid != c->pid)
		goto unlock;
	from = rm_object(src, src_handle);
	status = RM_NOT_FOUND;
	if (!from)
		goto unlock;
	status = RM_NOT_SUPPORTED;
	if (from->class != 0x90f1)
		goto unlock;
	status = RM_NO_MEMORY;
	o = kzalloc(sizeof(*o), GFP_KERNEL);
	if (!o)
		goto unlock;
	o->client = c;
	o->class = from->class;
	o->parent = parent;
	o->gpu = from->gpu;
	o->handle = *handle ?: ++c->next_handle;
	status = RM_DUPLICATE_NAME;
	if (rm_object(c, o->handle) || xa_is_err(xa_store(&c->objects, o->handle, o, GFP_KERNEL))) {
		kfree(o);
		goto unlock;
	}
	*handle = o->handle;
	status = RM_OK;
unlock:
	up_write(&api_lock);
	return status;
}

void rm_file_closed(struct model_file *file)
{
	struct model_client *c;
	unsigned long i;

	down_write(&api_lock);
	xa_for_each(&model_clients, i, c) {
		if (c->owner == file)
			client_free(c);
	}
	up_write(&api_lock);
}

/* One client of the kernel's, with a TSG and a channel, as nvidia-uvm has. */
int rm_objects_init(void)
{
	struct model_caller kernel = {};
	u32 dev = 0, tsg = 0, chan = 0, status, handle;
	u8 tp[0x14] = {}, *cp;
	struct model_client *c;

	status = client_alloc(&kernel, &handle);
	if (status)
		return -ENOMEM;
	c = xa_erase(&model_clients, handle);
	c->handle = KERNEL_CLIENT;
	if (xa_is_err(xa_store(&model_clients, c->handle, c, GFP_KERNEL))) {
		kfree(c);
		return -ENOMEM;
	}
	cp = kzalloc(0x170, GFP_KERNEL);
	if (!cp)
		return -ENOMEM;
	put32(tp, 0xc, 9);
	if (rm_alloc(&kernel, c->handle, c->handle, &dev, 0x80, tp, 4) ||
	    rm_alloc(&kernel, c->handle, dev, &tsg, 0xa06c, tp, sizeof(tp)) ||
	    rm_alloc(&kernel, c->handle, tsg, &chan, 0xc86f, cp, 0x170))
		status = RM_GENERIC;
	kfree(cp);
	return status ? -EIO : 0;
}

void rm_objects_exit(void)
{
	struct model_client *c;
	unsigned long i;

	down_write(&api_lock);
	xa_for_each(&model_clients, i, c)
		client_free(c);
	up_write(&api_lock);
}
