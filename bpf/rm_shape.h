/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which RM calls shape scheduling, and which slice of their parameters tells
 * how. The table is that of package rm, through rm_abi.h.
 */
#ifndef TSGTOP_RM_SHAPE_H
#define TSGTOP_RM_SHAPE_H

#include "rm_abi.h"

/* offset << 8 | length of the slice. SHAPE_NONE: does not shape scheduling. */
#define SHAPE(offset, length) ((offset) << 8 | (length))
#define SHAPE_OFFSET(shape)   ((shape) >> 8)
#define SHAPE_LENGTH(shape)   ((shape)&0xff)
#define SHAPE_NONE	      0xffffffff

#define SHAPE_CASE(number, offset, length)                                                         \
	case number:                                                                               \
		return SHAPE(offset, length);

static __always_inline __u32 shape_control(__u32 command)
{
	switch (command) {
		TSGTOP_SHAPING_CONTROLS(SHAPE_CASE)
	}
	return SHAPE_NONE;
}

static __always_inline __u32 shape_class(__u32 class)
{
	switch (class) {
		TSGTOP_SHAPING_CLASSES(SHAPE_CASE)
	}
	return SHAPE_NONE;
}

#endif
