// SPDX-License-Identifier: GPL-2.0
/*
 * The controls that tsgtop and its targets use, with the sizes, the checks and
 * the statuses that the driver gives.
 */
#include <linux/capability.h>
#include <linux/ktime.h>
#include <linux/string.h>

#include "model.h"

enum {
	F_READ		= 1,	/* takes the API lock for reading only */
	F_ADMIN		= 2,	/* needs CAP_SYS_ADMIN, or the kernel */
	F_COPYOUT	= 4,
};

struct call {
	struct model_caller *who;
	struct model_client *client;
	struct model_object *obj;	/* NULL: the client itself */
	u32 cmd, size;
	u8 *p;
};

typedef u32 (*handler_fn)(struct call *c);

static u32 handle_info(struct call *c)
{
	u32 parent, class = rm_class_of(c->client, get32(c->p, 0), &parent);

	if (!class)
		return RM_NOT_FOUND;
	switch (get32(c->p, 4)) {
	case 1:
		put64(c->p, 8, parent);
		return RM_OK;
	case 2:
		put64(c->p, 8, class);
		return RM_OK;
	}
	return RM_INVALID_ARGUMENT;
}

/* Tells whether an object of any client lives, without a line in the log. */
static u32 access_rights(struct call *c)
{
	struct model_client *target = xa_load(&model_clients, get32(c->p, 4));
	u32 parent;

	if (!target)
		return RM_INVALID_CLIENT;
	if (!rm_class_of(target, get32(c->p, 0), &parent))
		return RM_NOT_FOUND;
	put32(c->p, 8, 0);
	return RM_OK;
}

/* RM's own ids of classes, by which this one control looks: hashes of their names. */
static bool is_internal_class(u32 internal, u32 class)
{
	switch (internal) {
	case 0xe0ac20:
		return class == 0x80;
	case 0x4b01b3:
		return class == 0x2080;
	case 0x2b5b80:
		return class == 0xa06c;
	case 0x5d8d70:
		return rm_is_channel(class);
	}
	return false;
}

static u32 child_handle(struct call *c)
{
	u32 parent = get32(c->p, 0), class = get32(c->p, 4);
	struct model_object *o;
	unsigned long i;

	xa_for_each(&c->client->objects, i, o) {
		if (o->parent == parent && is_internal_class(class, o->class)) {
			put32(c->p, 8, o->handle);
			return RM_OK;
		}
	}
	return RM_NOT_FOUND;
}

static u32 database_info(struct call *c)
{
	struct model_client *client;
	struct model_object *o;
	unsigned long i, j;
	u64 resources = 0;
	u32 n = 0;

	xa_for_each(&model_clients, i, client) {
		n++;
		resources++;
		xa_for_each(&client->objects, j, o)
			resources++;
	}
	put32(c->p, 0, n);
	put64(c->p, 8, resources);
	return RM_OK;
}

static u32 gpu_ids(struct call *c)
{
	u32 i;

	for (i = 0; i < 32; i++)
		put32(c->p, i * 4, i < model_ngpus ? model_gpus[i].gpu_id : 0xffffffff);
	if (c->size >= 0x100)
		for (i = 0; i < 32; i++)
			put32(c->p, 0x80 + i * 4, 0xffffffff);
	return RM_OK;
}

static u32 gpu_attach(struct call *c)
{
	return RM_OK;
}

static u32 gpu_id_info(struct call *c)
{
	u32 i;

	for (i = 0; i < model_ngpus; i++) {
		if (model_gpus[i].gpu_id != get32(c->p, 0))
			continue;
		put32(c->p, 4, 0);
		put32(c->p, 8, i);
		put32(c->p, 0xc, 0);
		put32(c->p, 0x18, i);
		return RM_OK;
	}
	return RM_INVALID_ARGUMENT;
}

static u32 gpu_id(struct call *c)
{
	put32(c->p, 0, c->obj->gpu->gpu_id);
	return RM_OK;
}

static u32 rpc_meter(struct call *c)
{
	return meter_set(get32(c->p, 0));
}

static u32 rpc_meter_dump(struct call *c)
{
	return meter_dump(c->p, c->size);
}

static bool has_engine(u32 engine)
{
	return engine == 1 || (engine >= 9 && engine < 9 + 10);	/* gr0, copy 0 to 9 */
}

static u32 engines(struct call *c)
{
	u32 i, n = 0;

	for (i = 0; i < 84; i++)
		if (has_engine(i))
			put32(c->p, 4 + 4 * n++, i);
	put32(c->p, 0, n);
	return RM_OK;
}

/* The caller lists engines; each gets its runlist. */
static u32 engine_runlists(struct call *c)
{
	u32 i, engine;

	if (knobs.mig)
		return RM_NOT_SUPPORTED;
	for (i = 0; i < 84; i++) {
		engine = get32(c->p, i * 4);
		put32(c->p, 0x150 + i * 4, 0);
		if (!engine)
			put32(c->p, 0x2a0 + i * 4, 0xffffffff);
		else if (!has_engine(engine))
			put32(c->p, 0x2a0 + i * 4, 0xfffffffb);
		else
			put32(c->p, 0x2a0 + i * 4, engine == 1 ? 0 : engine - 8);
	}
	return RM_OK;
}

/* Facts by index; the one that is asked here is whether MIG is on. */
static u32 gpu_info(struct call *c)
{
	u32 i, n = get32(c->p, 0);

	if (n > (c->size - 4) / 8)
		return RM_INVALID_ARGUMENT;
	for (i = 0; i < n; i++) {
		if (get32(c->p, 4 + i * 8) != 0x2a)
			return RM_INVALID_ARGUMENT;
		put32(c->p, 8 + i * 8, knobs.mig ? 1 : 2);
	}
	return RM_OK;
}

static u32 allocated_channels(struct call *c)
{
	u32 runlist = get32(c->p, 0);

	if (runlist != 0)
		return RM_OUT_OF_RANGE;	/* as measured: it answers for runlist 0 only */
	memset(c->p + 4, 0, 0x200);
	memcpy(c->p + 4, c->obj->gpu->chids[0],
	       min_t(size_t, 0x200, sizeof(c->obj->gpu->chids[0])));
	return RM_OK;
}

static u32 unique_ids(struct call *c)
{
	struct model_client *target = xa_load(&model_clients, get32(c->p, 0));
	struct model_object *tsg, *o;
	unsigned long i;
	u32 n = 0;

	if (!target)
		return RM_INVALID_HANDLE;
	tsg = rm_object(target, get32(c->p, 4));
	if (!tsg || tsg->class != 0xa06c)
		return RM_NOT_FOUND;
	memset(c->p + 8, 0, c->size - 8);
	xa_for_each(&target->objects, i, o) {
		if (o->parent != tsg->handle || !rm_is_channel(o->class) || n == 128)
			continue;
		put32(c->p, 0x10 + n * 4, o->channel.cid);
		n++;
	}
	put32(c->p, 8, tsg->tsg.unique);
	put32(c->p, 0xc, n);
	return RM_OK;
}

static u32 bind(struct call *c)
{
	struct model_object *evbuf = rm_object(c->client, get32(c->p, 0));

	if (knobs.bind_status)
		return knobs.bind_status;
	if (knobs.mig) {
		if (c->size == 0x18)
			put32(c->p, 0x14, 1);
		return RM_NOT_SUPPORTED;
	}
	if (!evbuf || evbuf->class != 0x90cd)
		return RM_INVALID_HANDLE;
	return fecs_bind(c->obj->gpu, evbuf);
}

static u32 evbuf_enable(struct call *c)
{
	u32 flags = get32(c->p, 4);

	if (flags != 1 && flags != 2)
		return RM_INVALID_ARGUMENT;
	mutex_lock(&c->obj->gpu->lock);
	c->obj->evbuf.enabled = c->p[0];
	c->obj->evbuf.keep_newest = flags == 2;
	mutex_unlock(&c->obj->gpu->lock);
	return RM_OK;
}

static u32 evbuf_update_get(struct call *c)
{
	u32 *header = c->obj->evbuf.header->va;

	if (get32(c->p, 0) >= c->obj->evbuf.count || get32(c->p, 4))
		return RM_INVALID_ARGUMENT;
	WRITE_ONCE(header[0], get32(c->p, 0));
	return RM_OK;
}

static u32 evbuf_flush(struct call *c)
{
	u32 i;

	for (i = 0; i < model_ngpus; i++)
		fecs_drain(&model_gpus[i]);
	return RM_OK;
}

static u32 gpu_time(struct call *c)
{
	put64(c->p, 0, ktime_get_real_ns());
	return RM_OK;
}

static u32 gpu_time_correlation(struct call *c)
{
	u32 i, n = min_t(u32, c->p[1], 16);

	for (i = 0; i < n; i++) {
		put64(c->p, 8 + i * 16, ktime_get_real_ns());
		put64(c->p, 16 + i * 16, ktime_get_real_ns());
	}
	return RM_OK;
}

static u32 switch_counters(struct call *c)
{
	struct model_object *tsg = rm_object(c->client, get32(c->p, 0));
	u32 status;

	if (!tsg || tsg->class != 0xa06c)
		return RM_NOT_FOUND;
	status = gsp_control(tsg, c->client->handle, c->cmd, c->p, c->size, MODE_OBEY);
	if (status)
		return status;
	if (tsg->runlist)
		return RM_NO_RESOURCES;	/* as measured for copy engines */
	mutex_lock(&tsg->gpu->lock);
	put32(c->p, 8, tsg->tsg.save);
	put32(c->p, 0xc, tsg->tsg.restore);
	put32(c->p, 0x10, tsg->tsg.wfi);
	put32(c->p, 0x14, 0);
	put32(c->p, 0x18, tsg->tsg.cilp);
	put32(c->p, 0x1c, 0);
	mutex_unlock(&tsg->gpu->lock);
	return RM_OK;
}

static u32 tsg_schedule(struct call *c)
{
	return gsp_control(c->obj, c->client->handle, c->cmd, c->p, c->size, MODE_OBEY);
}

static u32 nothing(struct call *c)
{
	return RM_OK;
}

static u32 tsg_set_timeslice(struct call *c)
{
	u32 status = gsp_control(c->obj, c->client->handle, c->cmd, c->p, c->size,
				 knobs.timeslice_mode);

	if (status)
		return status;
	c->obj->tsg.timeslice_us = get64(c->p, 0);
	if (knobs.timeslice_mode == MODE_OBEY)
		c->obj->tsg.effective_us = c->obj->tsg.timeslice_us;
	return RM_OK;
}

static u32 tsg_get_timeslice(struct call *c)
{
	put64(c->p, 0, c->obj->tsg.timeslice_us);
	return RM_OK;
}

static u32 tsg_preempt(struct call *c)
{
	u32 status = gsp_control(c->obj, c->client->handle, c->cmd, c->p, c->size,
				 knobs.preempt_mode);

	if (!status && knobs.preempt_mode == MODE_OBEY) {
		mutex_lock(&c->obj->gpu->lock);
		c->obj->tsg.preempts++;
		mutex_unlock(&c->obj->gpu->lock);
	}
	return status;
}

static u32 tsg_info(struct call *c)
{
	put32(c->p, 0, c->obj->tsg.number);
	return RM_OK;
}

static u32 tsg_set_interleave(struct call *c)
{
	u32 status = gsp_control(c->obj, c->client->handle, c->cmd, c->p, c->size,
				 knobs.interleave_mode);

	if (!status && get32(c->p, 0) > 2)
		status = RM_NOT_SUPPORTED;	/* the GSP refused it: after the RPC */
	if (status)	/* whatever the GSP says becomes this */
		return knobs.interleave_mode == MODE_REFUSE_DRIVER ? status : RM_NOT_SUPPORTED;
	c->obj->tsg.level = get32(c->p, 0);
	if (knobs.interleave_mode == MODE_OBEY)
		c->obj->tsg.effective_level = c->obj->tsg.level;
	return RM_OK;
}

static u32 channel_context(struct call *c)
{
	put32(c->p, 0, c->obj->channel.cid);
	return RM_OK;
}

static u32 channel_token(struct call *c)
{
	put32(c->p, 0, c->obj->runlist << 16 | c->obj->channel.chid);
	return RM_OK;
}

static u32 channel_hw_state(struct call *c)
{
	u32 status = gsp_control(c->obj, c->client->handle, c->cmd, c->p, c->size, MODE_OBEY);

	if (!status)
		put32(c->p, 0, 0);
	return status;
}

#define ANY_CHANNEL 0x6f

static const struct {
	u32 cmd, size, class, flags;
	handler_fn handler;
} controls[] = {
	{ 0x00000d02, 16, 0x41, 0, handle_info },
	{ 0x00000d03, 12, 0x41, 0, access_rights },
	{ 0x00000d05, 12, 0x41, 0, child_handle },
	{ 0x0000013d, 16, 0x41, F_ADMIN, database_info },
	{ 0x00000201, 0x80, 0x41, 0, gpu_ids },
	{ 0x00000205, 0x20, 0x41, 0, gpu_id_info },
	{ 0x00000214, 0x100, 0x41, 0, gpu_ids },
	{ 0x00000215, 0x84, 0x41, 0, gpu_attach },
	{ 0x00000488, 4, 0x41, 0, rpc_meter },
	{ 0x00000489, 3224, 0x41, 0, rpc_meter_dump },
	{ 0x20800102, 4 + 8 * 70, 0x2080, 0, gpu_info },
	{ 0x20800142, 4, 0x2080, 0, gpu_id },
	{ 0x20800170, 340, 0x2080, 0, engines },
	{ 0x20800179, 0x3f0, 0x2080, F_ADMIN, engine_runlists },
	{ 0x20800403, 8, 0x2080, 0, gpu_time },
	{ 0x20800406, 264, 0x2080, 0, gpu_time_correlation },
	{ 0x20801119, 0x204, 0x2080, F_ADMIN, allocated_channels },
	{ 0x20801123, 0x610, 0x2080, 0, unique_ids },
	{ 0x20801215, 0x20, 0x2080, F_READ, switch_counters },
	{ 0x20801231, 0x14, 0x2080, F_COPYOUT, bind },
	{ 0x20801238, 0x18, 0x2080, F_COPYOUT, bind },
	{ 0x90cd0101, 8, 0x90cd, 0, evbuf_enable },
	{ 0x90cd0102, 8, 0x90cd, 0, evbuf_update_get },
	{ 0x90cd0104, 0, 0x90cd, 0, evbuf_flush },
	{ 0xa06c0101, 3, 0xa06c, 0, tsg_schedule },
	{ 0xa06c0102, 4, 0xa06c, 0, nothing },
	{ 0xa06c0103, 8, 0xa06c, 0, tsg_set_timeslice },
	{ 0xa06c0104, 8, 0xa06c, 0, tsg_get_timeslice },
	{ 0xa06c0105, 8, 0xa06c, F_READ, tsg_preempt },
	{ 0xa06c0106, 4, 0xa06c, 0, tsg_info },
	{ 0xa06c0107, 4, 0xa06c, F_ADMIN, tsg_set_interleave },
	{ 0xa06f0113, 4, ANY_CHANNEL, 0, channel_context },
	{ 0xc36f0108, 4, ANY_CHANNEL, 0, channel_token },
	{ 0xb06f010f, 4, ANY_CHANNEL, F_READ, channel_hw_state },
};

static u32 dispatch(struct call *c, u32 object, u32 size)
{
	u32 class, parent, i;

	class = rm_class_of(c->client, object, &parent);
	if (!class)
		return RM_NOT_FOUND;
	c->obj = rm_object(c->client, object);
	for (i = 0; i < ARRAY_SIZE(controls); i++) {
		if (controls[i].cmd != c->cmd)
			continue;
		if (controls[i].class == ANY_CHANNEL ? !rm_is_channel(class) :
		    controls[i].class != class)
			continue;
		if (controls[i].size != size)
			return RM_INVALID_PARAMS;
		if ((controls[i].flags & F_ADMIN) && c->who->file && !c->who->root)
			return RM_NO_PERMISSION;
		if (knobs.gpu_lost && c->obj)
			return RM_GPU_IS_LOST;
		return controls[i].handler(c);
	}
	return RM_NOT_SUPPORTED;
}

u32 rm_control(struct model_caller *who, u32 client, u32 object, u32 cmd,
	       void *params, u32 size)
{
	struct call c = { .who = who, .cmd = cmd, .size = size, .p = params };
	bool read = false;
	u32 status, i;

	for (i = 0; i < ARRAY_SIZE(controls); i++)
		if (controls[i].cmd == cmd)
			read = controls[i].flags & F_READ;
	if (read)
		down_read(&api_lock);
	else
		down_write(&api_lock);
	c.client = rm_client(who, client, &status);
	if (c.client)
		status = dispatch(&c, object, size);
	if (read)
		up_read(&api_lock);
	else
		up_write(&api_lock);
	return status;
}
