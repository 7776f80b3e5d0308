// SPDX-License-Identifier: GPL-2.0
/*
 * Event buffers and the context-switch trace. A test feeds records; like the
 * hardware's own buffer they wait until the driver copies them: at a FLUSH, or
 * 33 ms later.
 */
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "model.h"

#define RECORD		32
#define TAG_END		7
#define DRAIN_EVERY	msecs_to_jiffies(33)

/* The header that user space maps. */
struct evbuf_header {
	u32 get, put;
	u64 count, dropped, vardata_dropped;
};

static void deliver(struct model_object *b, const u8 *record)
{
	struct evbuf_header *h = b->evbuf.header->va;
	u32 put = h->put, next = (put + 1) % b->evbuf.count;

	if (put >= b->evbuf.count)
		return;
	if (!b->evbuf.keep_newest && next == READ_ONCE(h->get)) {
		h->dropped++;
		return;
	}
	memcpy((u8 *)b->evbuf.records->va + put * RECORD, record, RECORD);
	smp_store_release(&h->put, next);	/* the record before the index */
}

static void drain_locked(struct model_gpu *gpu)
{
	struct model_object *b;
	u32 i;

	for (i = 0; i < gpu->staged_n; i++) {
		list_for_each_entry(b, &gpu->bound, evbuf.bound) {
			if (b->evbuf.enabled)
				deliver(b, gpu->staged + i * RECORD);
		}
	}
	gpu->staged_n = 0;
}

void fecs_drain(struct model_gpu *gpu)
{
	mutex_lock(&gpu->lock);
	drain_locked(gpu);
	mutex_unlock(&gpu->lock);
}

static void drain_work(struct work_struct *work)
{
	struct model_gpu *gpu = container_of(to_delayed_work(work), struct model_gpu, drain);

	fecs_drain(gpu);
}

/* The GSP's switch counters follow the trace: a turn's end is a save. */
static void count_switch(struct model_gpu *gpu, const u8 *record)
{
	u32 cid = get32(record, 8 + 4);
	struct model_client *c;
	struct model_object *o;
	unsigned long i, j;

	xa_for_each(&model_clients, i, c) {
		xa_for_each(&c->objects, j, o) {
			struct model_object *tsg;

			if (!rm_is_channel(o->class) || o->gpu != gpu || o->channel.cid != cid)
				continue;
			tsg = rm_object(c, o->parent);
			if (!tsg || tsg->class != 0xa06c)
				return;
			if (record[8] == TAG_END) {
				tsg->tsg.save++;
				tsg->tsg.cilp++;
			} else {
				tsg->tsg.restore++;
			}
			return;
		}
	}
}

int fecs_feed(struct model_gpu *gpu, const u8 *records, size_t n)
{
	size_t i;

	down_read(&api_lock);
	mutex_lock(&gpu->lock);
	for (i = 0; i < n; i++) {
		const u8 *r = records + i * RECORD;

		count_switch(gpu, r);
		gpu->fed++;
		if (knobs.lose_every && gpu->fed % knobs.lose_every == 0)
			continue;
		if (gpu->staged_n == MODEL_STAGED)
			drain_locked(gpu);
		memcpy(gpu->staged + gpu->staged_n++ * RECORD, r, RECORD);
	}
	mutex_unlock(&gpu->lock);
	up_read(&api_lock);
	schedule_delayed_work(&gpu->drain, DRAIN_EVERY);
	return 0;
}

u32 fecs_evbuf_init(struct model_client *client, struct model_object *obj,
		    const u8 *params, u32 size)
{
	struct model_object *header, *records;
	u32 n;

	if (size != 0x48)
		return RM_INVALID_PARAMS;
	header = rm_object(client, get32(params, 0x3c));
	records = rm_object(client, get32(params, 0x40));
	if (!header || !records || header->class != 0x90ce || records->class != 0x90ce)
		return RM_INVALID_HANDLE;
	if (!header->memory->user_readonly || !records->memory->user_readonly)
		return RM_INVALID_ARGUMENT;
	if (get64(params, 0x28)) {
		pr_err("NVRM: model: a notification handle: the driver would follow it as a pointer\n");
		return RM_INVALID_ARGUMENT;
	}
	if (!get32(params, 0x34) || !rm_gpu_of(client, get32(params, 0x34))) {
		pr_err("NVRM: model: an event buffer without a subdevice: the driver would oops\n");
		return RM_INVALID_ARGUMENT;
	}
	n = get32(params, 0x14);
	if (get32(params, 0x10) != RECORD || !n || (u64)n * RECORD > records->memory->size)
		return RM_INVALID_ARGUMENT;
	obj->gpu = rm_gpu_of(client, get32(params, 0x34));
	obj->evbuf.count = n;
	obj->evbuf.header = header->memory;
	obj->evbuf.records = records->memory;
	kref_get(&header->memory->ref);
	kref_get(&records->memory->ref);
	((struct evbuf_header *)header->memory->va)->count = n;
	return RM_OK;
}

u32 fecs_bind(struct model_gpu *gpu, struct model_object *evbuf)
{
	mutex_lock(&gpu->lock);
	if (!evbuf->evbuf.is_bound) {
		list_add_tail(&evbuf->evbuf.bound, &gpu->bound);
		evbuf->evbuf.is_bound = true;
		evbuf->gpu = gpu;
	}
	mutex_unlock(&gpu->lock);
	return RM_OK;
}

void fecs_unbind(struct model_object *evbuf)
{
	if (evbuf->evbuf.is_bound) {
		mutex_lock(&evbuf->gpu->lock);
		list_del(&evbuf->evbuf.bound);
		mutex_unlock(&evbuf->gpu->lock);
	}
	memory_put(evbuf->evbuf.header);
	memory_put(evbuf->evbuf.records);
}

int fecs_init(struct model_gpu *gpu)
{
	mutex_init(&gpu->lock);
	INIT_LIST_HEAD(&gpu->bound);
	INIT_DELAYED_WORK(&gpu->drain, drain_work);
	gpu->staged = vmalloc(MODEL_STAGED * RECORD);
	return gpu->staged ? 0 : -ENOMEM;
}

void fecs_exit(struct model_gpu *gpu)
{
	cancel_delayed_work_sync(&gpu->drain);
	vfree(gpu->staged);
}
