// SPDX-License-Identifier: GPL-2.0
/*
 * What each operation asks of RM: the whole list of controls that this module
 * ever sends, with their sizes. There is no way to send another one.
 */
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "tsgtop.h"
#include "trace.h"

#define NV_OK			0x0
#define NV_ERR_NO_MEMORY	0x51
#define NV_ERR_NOT_SUPPORTED	0x56

#define CLASS_CHANNEL_GROUP	0xa06c
/* How CMD_CHILD_HANDLE names the class of subdevices: RM's own id, a hash of the
 * class's name in its source, the same from 550 to 595.
 */
#define INTERNAL_SUBDEVICE	0x4b01b3

/* Controls and the sizes of their parameters, the same from 550 to 595. */
#define CMD_HANDLE_INFO		0x00000d02
#define CMD_CHILD_HANDLE	0x00000d05
#define CMD_SET_TIMESLICE	0xa06c0103
#define CMD_GET_TIMESLICE	0xa06c0104
#define CMD_PREEMPT		0xa06c0105
#define CMD_TSG_INFO		0xa06c0106
#define CMD_SET_INTERLEAVE	0xa06c0107
#define CMD_UNIQUE_IDS		0x20801123	/* from 570 */
#define CMD_SWITCH_COUNTERS	0x20801215

struct handle_info { u32 object, index; u64 result; };
struct child_handle { u32 parent, class, object; };
struct timeslice { u64 us; };
struct preempt { u8 wait, manual_timeout, pad[2]; u32 timeout_us; };
struct tsg_info { u32 number; };
struct set_interleave { u32 level; };
struct switch_counters { u32 tsg, flags, save, restore, wfi, cta, cilp, gfxp; };
struct unique_ids {
	u32 client, tsg, unique, n;
	u32 channels[128], vas[128], veids[128];
};

static_assert(sizeof(struct handle_info) == 16);
static_assert(sizeof(struct child_handle) == 12);
static_assert(sizeof(struct preempt) == 8);
static_assert(sizeof(struct switch_counters) == 32);
static_assert(sizeof(struct unique_ids) == 0x610);

enum { INFO_PARENT = 1, INFO_CLASS = 2 };

static u32 handle_info(struct rm_driver *rm, const struct tsgtop_target *t, u32 index, u32 *out)
{
	struct handle_info p = { .object = t->tsg, .index = index };
	u32 status = rm_control(rm, t->client, t->client, CMD_HANDLE_INFO, &p, sizeof(p));

	*out = p.result;
	return status;
}

/* Fills in who the TSG is. Its never-reused id and context ids are asked on a
 * subdevice of its own client; where there is none they stay unknown, which is
 * no failure, and *unique_status tells why.
 */
static u32 identify(struct rm_driver *rm, const struct tsgtop_target *t,
		    struct tsgtop_identity *id, u32 *unique_status)
{
	struct child_handle child = { .class = INTERNAL_SUBDEVICE };
	struct timeslice slice = {};
	struct tsg_info info = {};
	struct unique_ids *u;
	u32 status;

	*unique_status = NV_ERR_NOT_SUPPORTED;
	status = handle_info(rm, t, INFO_CLASS, &id->class);
	if (status || id->class != CLASS_CHANNEL_GROUP)
		return status;
	status = handle_info(rm, t, INFO_PARENT, &id->device);
	if (status)
		return status;
	status = rm_control(rm, t->client, t->tsg, CMD_TSG_INFO, &info, sizeof(info));
	if (status)
		return status;
	id->number = info.number;
	if (!rm_control(rm, t->client, t->tsg, CMD_GET_TIMESLICE, &slice, sizeof(slice))) {
		id->timeslice_us = slice.us;
		id->known |= TSGTOP_KNOWN_TIMESLICE;
	}
	if (!rm_has_unique_ids(rm))
		return NV_OK;
	child.parent = id->device;
	*unique_status = rm_control(rm, t->client, t->client, CMD_CHILD_HANDLE,
				    &child, sizeof(child));
	if (*unique_status)
		return NV_OK;
	id->subdevice = child.object;
	u = kzalloc(sizeof(*u), GFP_KERNEL);
	if (!u) {
		*unique_status = NV_ERR_NO_MEMORY;
		return NV_OK;
	}
	u->client = t->client;
	u->tsg = t->tsg;
	*unique_status = rm_control(rm, t->client, id->subdevice, CMD_UNIQUE_IDS, u, sizeof(*u));
	if (!*unique_status) {
		id->unique = u->unique;
		id->known |= TSGTOP_KNOWN_UNIQUE;
		id->n_contexts = min_t(u32, u->n, TSGTOP_MAX_CONTEXTS);
		memcpy(id->contexts, u->channels, id->n_contexts * sizeof(u32));
	}
	kfree(u);
	return NV_OK;
}

/* Is it still the TSG that was meant? 0, or an errno with result filled in. */
static int check(struct rm_driver *rm, struct tsgtop_call *c, struct tsgtop_identity *id)
{
	u32 unique_status, status;

	status = identify(rm, &c->target, id, &unique_status);
	if (status) {
		c->result.status = status;
		c->result.why = TSGTOP_WHY_GONE;
		return -ESRCH;
	}
	c->result.why = TSGTOP_WHY_OTHER;
	if (id->class != CLASS_CHANNEL_GROUP || id->number != c->target.number)
		return -ESTALE;
	if (c->target.unique) {
		if (unique_status) {
			c->result.status = unique_status;
			c->result.why = TSGTOP_WHY_IDENTITY;
			return -ENODATA;
		}
		if (id->unique != c->target.unique)
			return -ESTALE;
		c->result.flags |= TSGTOP_CHECKED;
	}
	c->result.why = TSGTOP_WHY_NONE;
	return 0;
}

/* The call itself, stamped and traced. */
static void send(struct rm_driver *rm, struct tsgtop_call *c, u32 object, u32 cmd,
		 void *params, u32 size)
{
	c->result.flags |= TSGTOP_SENT;
	c->result.sent_ns = ktime_get_ns();
	trace_tsgtop_call_sent(c->result.cookie, c->target.client, object, cmd);
	c->result.status = rm_control(rm, c->target.client, object, cmd, params, size);
	c->result.answered_ns = ktime_get_ns();
	c->result.flags |= TSGTOP_ANSWERED;
	trace_tsgtop_call_answered(c->result.cookie, c->target.client, object, cmd,
				   c->result.status,
				   c->result.answered_ns - c->result.sent_ns);
}

static void act(struct rm_driver *rm, struct tsgtop_call *c)
{
	union {
		struct preempt preempt;
		struct timeslice timeslice;
		struct set_interleave interleave;
	} p = {};

	switch (c->op) {
	case OP_PREEMPT:
		p.preempt.wait = c->value;
		send(rm, c, c->target.tsg, CMD_PREEMPT, &p.preempt, sizeof(p.preempt));
		break;
	case OP_TIMESLICE:
		p.timeslice.us = c->value;
		send(rm, c, c->target.tsg, CMD_SET_TIMESLICE, &p.timeslice, sizeof(p.timeslice));
		break;
	case OP_INTERLEAVE:
		p.interleave.level = c->value;
		send(rm, c, c->target.tsg, CMD_SET_INTERLEAVE, &p.interleave, sizeof(p.interleave));
		break;
	default:
		break;
	}
}

static int read_switches(struct rm_driver *rm, struct tsgtop_call *c, u32 subdevice)
{
	struct switch_counters p = { .tsg = c->target.tsg };

	if (!subdevice) {
		c->result.why = TSGTOP_WHY_IDENTITY;
		return -ENODATA;
	}
	send(rm, c, subdevice, CMD_SWITCH_COUNTERS, &p, sizeof(p));
	c->data.switches = (struct tsgtop_switches) {
		.save = p.save, .restore = p.restore, .wfi = p.wfi,
		.cta = p.cta, .cilp = p.cilp, .gfxp = p.gfxp,
	};
	return 0;
}

/* Runs in the worker: everything in here may sleep for as long as RM does. */
void tsgtop_perform(struct tsgtop_call *c)
{
	struct tsgtop_identity *id, *after;
	struct rm_driver *rm;
	u32 unique_status;

	rm = rm_driver_get(&c->result.why, &c->err);
	if (!rm)
		return;
	id = kcalloc(2, sizeof(*id), GFP_KERNEL);
	if (!id) {
		c->result.why = TSGTOP_WHY_MEMORY;
		c->err = -ENOMEM;
		goto put;
	}
	after = id + 1;
	if (c->op == OP_IDENTITY) {
		c->result.flags |= TSGTOP_SENT | TSGTOP_ANSWERED;
		c->result.sent_ns = ktime_get_ns();
		c->result.status = identify(rm, &c->target, id, &unique_status);
		c->result.answered_ns = ktime_get_ns();
		c->data.identity = *id;
		goto free;
	}
	c->err = check(rm, c, id);
	if (c->err)
		goto free;
	if (c->op == OP_SWITCHES)
		c->err = read_switches(rm, c, id->subdevice);
	else
		act(rm, c);
	if (c->target.unique && !c->err && !identify(rm, &c->target, after, &unique_status) &&
	    !unique_status && after->unique == c->target.unique)
		c->result.flags |= TSGTOP_SAME;
free:
	kfree(id);
put:
	rm_driver_put(rm);
}
