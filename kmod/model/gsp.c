// SPDX-License-Identifier: GPL-2.0
/*
 * What lies behind the RPC: the functions that the driver's path to the GSP goes
 * through, by their names, and the log that RM keeps of them.
 *
 * The driver compiles these without ftrace locations, so that eBPF cannot attach
 * to them and a native kprobe can: notrace gives the same here.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/sched/clock.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "model.h"

#define RPC_FREE	10
#define RPC_CONTROL	76
#define RPC_ALLOC	103
#define METER_ENTRIES	100

struct meter_entry {
	u64 start, end, function, extra;
};

static DEFINE_MUTEX(meter_lock);
static struct meter_entry *meter_log;
static u32 meter_n;
static bool meter_on;
static u64 meter_since;

/* RM_API of the driver: only its last member is ever looked at by a probe. */
struct rm_api {
	u8 pad[0xe0];
	void *private_context;
};

static struct rm_api physical_api;

int os_get_system_time(u32 *seconds, u32 *useconds);
u32 _kgspRpcSendMessage(void *gpu, void *rpc, u32 *sequence);
u32 _kgspRpcRecvPoll(void *gpu, void *rpc, u32 function, u32 sequence);
u32 rpcRmApiControl_GSP(struct rm_api *api, u32 client, u32 object, u32 cmd, void *params,
			u32 size);
u32 rpcRmApiAlloc_GSP(struct rm_api *api, u32 client, u32 parent, u32 object, u32 class,
		      void *params, u32 size);
u32 rpcRmApiFree_GSP(struct rm_api *api, u32 client, u32 object);

noinline int os_get_system_time(u32 *seconds, u32 *useconds)
{
	struct timespec64 now;

	ktime_get_real_ts64(&now);
	*seconds = now.tv_sec;
	*useconds = now.tv_nsec / 1000;
	return 0;
}

static void meter_add(u64 start, u32 function)
{
	mutex_lock(&meter_lock);
	if (meter_on && meter_log && meter_n < METER_ENTRIES) {
		struct meter_entry *e = &meter_log[meter_n++];

		e->start = start;
		e->end = ktime_get_raw_ns();
		e->function = function;
		e->extra = 0;
	}
	mutex_unlock(&meter_lock);
}

noinline notrace u32 _kgspRpcSendMessage(void *gpu, void *rpc, u32 *sequence)
{
	u32 s, us;

	os_get_system_time(&s, &us);
	*sequence += 1;
	return RM_OK;
}

noinline notrace u32 _kgspRpcRecvPoll(void *gpu, void *rpc, u32 function, u32 sequence)
{
	u32 s, us, cmd = rpc ? *(u32 *)rpc : 0;

	if (knobs.hang_ms && (!knobs.hang_cmd || knobs.hang_cmd == cmd))
		msleep(knobs.hang_ms);
	else if (knobs.rpc_us)
		usleep_range(knobs.rpc_us, knobs.rpc_us + 20);
	os_get_system_time(&s, &us);
	return RM_OK;
}

static u32 rpc(struct model_gpu *gpu, u32 function, u32 cmd)
{
	u64 start = ktime_get_raw_ns();
	u32 sequence = 0, status;

	status = _kgspRpcSendMessage(gpu, &cmd, &sequence);
	if (!status)
		status = _kgspRpcRecvPoll(gpu, &cmd, function, sequence);
	meter_add(start, function);
	return status;
}

noinline notrace u32 rpcRmApiControl_GSP(struct rm_api *api, u32 client, u32 object,
					 u32 cmd, void *params, u32 size)
{
	return rpc(api->private_context, RPC_CONTROL, cmd);
}

noinline notrace u32 rpcRmApiAlloc_GSP(struct rm_api *api, u32 client, u32 parent, u32 object,
				       u32 class, void *params, u32 size)
{
	return rpc(api->private_context, RPC_ALLOC, 0);
}

noinline notrace u32 rpcRmApiFree_GSP(struct rm_api *api, u32 client, u32 object)
{
	return rpc(api->private_context, RPC_FREE, 0);
}

u32 gsp_control(struct model_object *obj, u32 client, u32 cmd, void *params,
		u32 size, u32 mode)
{
	u32 status;

	if (mode == MODE_STUB)
		return RM_OK;
	if (mode == MODE_REFUSE_DRIVER)
		return knobs.status;
	status = rpcRmApiControl_GSP(&physical_api, client, obj->handle, cmd, params, size);
	if (!status && mode == MODE_REFUSE_GSP)
		return knobs.status;
	return status;
}

void gsp_alloc(u32 client, u32 parent, u32 handle, u32 class)
{
	rpcRmApiAlloc_GSP(&physical_api, client, parent, handle, class, NULL, 0);
}

void gsp_free(u32 client, u32 handle)
{
	rpcRmApiFree_GSP(&physical_api, client, handle);
}

/* 0: off, 1: on, 2: reset. The log is only allocated while somebody wants it. */
u32 meter_set(u32 what)
{
	u32 status = RM_OK;

	mutex_lock(&meter_lock);
	switch (what) {
	case 0:
		meter_on = false;
		break;
	case 1:
		if (!meter_log)
			meter_log = kcalloc(METER_ENTRIES, sizeof(*meter_log), GFP_KERNEL);
		meter_on = meter_log;
		meter_since = ktime_get_raw_ns();
		if (!meter_log)
			status = RM_NO_MEMORY;
		break;
	case 2:
		kfree(meter_log);
		meter_log = NULL;
		meter_n = 0;
		break;
	default:
		status = RM_INVALID_ARGUMENT;
	}
	mutex_unlock(&meter_lock);
	return status;
}

u32 meter_dump(u8 *params, u32 size)
{
	u32 first = get32(params, 0), i, n = 0;

	mutex_lock(&meter_lock);
	if (meter_on) {	/* an assertion in the driver: a log line and an error */
		mutex_unlock(&meter_lock);
		pr_err("NVRM: model: the RPC log was read while it is on\n");
		return RM_INVALID_STATE;
	}
	for (i = first; i < meter_n && n < METER_ENTRIES; i++, n++)
		memcpy(params + 24 + n * sizeof(struct meter_entry), &meter_log[i],
		       sizeof(struct meter_entry));
	put32(params, 4, n);
	put32(params, 8, meter_n > first + n ? meter_n - first - n : 0);
	put64(params, 16, meter_since ? ktime_get_raw_ns() - meter_since : 0);
	mutex_unlock(&meter_lock);
	return RM_OK;
}

void meter_exit(void)
{
	kfree(meter_log);
}
