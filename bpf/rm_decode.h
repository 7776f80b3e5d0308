/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ioctl's structures in the caller's memory.
 */
#ifndef TSGTOP_RM_DECODE_H
#define TSGTOP_RM_DECODE_H

#include "rm_shape.h"
#include "rm_event.h"

/* The ioctl's structures, of which rm_abi.h has sizes and offsets. */
union rm_arg {
	struct {
		__u32 client, object, command, flags;
		__u64 params;
		__u32 params_size, status;
	} control;
	struct {
		__u32 client, parent, object, class;
		__u64 params;
		__u32 params_size, status;
	} alloc; /* NVOS21 */
	struct {
		__u32 client, parent, object, class;
		__u64 params, rights;
		__u32 params_size, flags, status, pad;
	} alloc64; /* NVOS64 */
	struct {
		__u32 client, parent, object, status;
	} free;
	struct {
		__u32 client, parent, object, src_client, src_object, flags, status;
	} dup;
	struct {
		__u32 nr, size;
		__u64 arg;
	} xfer;
};

#define ARG_HAS(form, member, offset)                                                              \
	_Static_assert(__builtin_offsetof(union rm_arg, form.member) == (offset),                  \
		       "rm_abi.h disagrees about " #form "." #member)
#define ARG_IS(form, size)                                                                         \
	_Static_assert(sizeof(((union rm_arg *)0)->form) == (size),                                \
		       "rm_abi.h disagrees about the size of " #form)

ARG_IS(control, TSGTOP_SIZE_CONTROL);
ARG_HAS(control, command, TSGTOP_OFF_CONTROL_CMD);
ARG_HAS(control, params, TSGTOP_OFF_CONTROL_PARAMS);
ARG_HAS(control, params_size, TSGTOP_OFF_CONTROL_PARAMS_SIZE);
ARG_HAS(control, status, TSGTOP_OFF_CONTROL_STATUS);
ARG_IS(alloc, TSGTOP_SIZE_ALLOC);
ARG_HAS(alloc, class, TSGTOP_OFF_ALLOC_CLASS);
ARG_HAS(alloc, params, TSGTOP_OFF_ALLOC_PARAMS);
ARG_HAS(alloc, params_size, TSGTOP_OFF_ALLOC_PARAMS_SIZE);
ARG_HAS(alloc, status, TSGTOP_OFF_ALLOC_STATUS);
ARG_IS(alloc64, TSGTOP_SIZE_ALLOC64);
ARG_HAS(alloc64, params, TSGTOP_OFF_ALLOC_PARAMS);
ARG_HAS(alloc64, params_size, TSGTOP_OFF_ALLOC64_PARAMS_SIZE);
ARG_HAS(alloc64, status, TSGTOP_OFF_ALLOC64_STATUS);
ARG_IS(free, TSGTOP_SIZE_FREE);
ARG_HAS(free, status, TSGTOP_OFF_FREE_STATUS);
ARG_IS(dup, TSGTOP_SIZE_DUP);
ARG_HAS(dup, src_client, TSGTOP_OFF_DUP_SRC_CLIENT);
ARG_HAS(dup, status, TSGTOP_OFF_DUP_STATUS);
ARG_IS(xfer, TSGTOP_SIZE_XFER);
ARG_HAS(xfer, arg, TSGTOP_OFF_XFER_PTR);
_Static_assert(TSGTOP_SHAPE_MAX == RM_PARAMS_MAX, "a slice of parameters fits a record");

/* What a call was, without its parameters. */
struct decoded {
	__u64 params;
	__u32 params_size;
	__u32 kind;
	__u32 number;
	__u32 client, parent, object, status;
	__u32 src_client, src_object;
	__u32 shape;
};

static __always_inline int decode(struct decoded *d, __u32 word, __u64 arg)
{
	union rm_arg a;
	__u32 nr = word & 0xff, size = word >> 16 & 0x3fff;

	if (nr == TSGTOP_ESC_XFER) {
		if (bpf_probe_read_user(&a, sizeof(a.xfer), (void *)arg))
			return -1;
		nr = a.xfer.nr;
		size = a.xfer.size;
		arg = a.xfer.arg;
	}
	switch (nr) {
	case TSGTOP_ESC_CONTROL:
		if (bpf_probe_read_user(&a, sizeof(a.control), (void *)arg))
			return -1;
		d->kind = RM_KIND_CONTROL;
		d->client = a.control.client;
		d->object = a.control.object;
		d->number = a.control.command;
		d->params = a.control.params;
		d->params_size = a.control.params_size;
		d->status = a.control.status;
		d->shape = shape_control(d->number);
		return 0;
	case TSGTOP_ESC_ALLOC:
		if (size == sizeof(a.alloc64)) {
			if (bpf_probe_read_user(&a, sizeof(a.alloc64), (void *)arg))
				return -1;
			d->params_size = a.alloc64.params_size;
			d->status = a.alloc64.status;
		} else {
			if (bpf_probe_read_user(&a, sizeof(a.alloc), (void *)arg))
				return -1;
			d->params_size = a.alloc.params_size;
			d->status = a.alloc.status;
		}
		d->kind = RM_KIND_ALLOC;
		d->client = a.alloc.client;
		d->parent = a.alloc.parent;
		d->object = a.alloc.object;
		d->number = a.alloc.class;
		d->params = a.alloc.params;
		d->shape = shape_class(d->number);
		return 0;
	case TSGTOP_ESC_FREE:
		if (bpf_probe_read_user(&a, sizeof(a.free), (void *)arg))
			return -1;
		d->kind = RM_KIND_FREE;
		d->client = a.free.client;
		d->parent = a.free.parent;
		d->object = a.free.object;
		d->status = a.free.status;
		d->shape = SHAPE(0, 0);
		return 0;
	case TSGTOP_ESC_DUP:
		if (bpf_probe_read_user(&a, sizeof(a.dup), (void *)arg))
			return -1;
		d->kind = RM_KIND_DUP;
		d->client = a.dup.client;
		d->parent = a.dup.parent;
		d->object = a.dup.object;
		d->src_client = a.dup.src_client;
		d->src_object = a.dup.src_object;
		d->status = a.dup.status;
		d->shape = SHAPE(0, 0);
		return 0;
	}
	return 1; /* another escape through XFER */
}

#endif
