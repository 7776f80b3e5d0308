/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the module's kfuncs and the eBPF program that calls them share.
 * Fixed-width types only: the same header serves the kernel, eBPF and, through
 * bpf2go, Go. All times are CLOCK_MONOTONIC nanoseconds.
 */
#ifndef TSGTOP_ABI_H
#define TSGTOP_ABI_H

/* Changes whenever a layout or a meaning below does. */
#define TSGTOP_ABI 1

/* The longest that a kfunc waits; for more, ask again with the cookie. */
#define TSGTOP_MAX_WAIT_MS 1000

/* RM itself takes any timeslice. These are what tsgtop sends at the utmost. */
#define TSGTOP_MIN_TIMESLICE_US 1
#define TSGTOP_MAX_TIMESLICE_US 100000000
#define TSGTOP_MAX_CONTEXTS 128

/* The TSG that is meant. RM's handles and TSG numbers are reused, unique is not:
 * where it is not 0, nothing is sent unless the TSG still has it.
 */
struct tsgtop_target {
	__u32 client;
	__u32 tsg;
	__u32 number;	/* TSG number in its runlist; checked always */
	__u32 unique;	/* RM's never-reused id (drivers from 570) */
};

/* Why a call has no NV_STATUS. */
enum tsgtop_why {
	TSGTOP_WHY_NONE,
	TSGTOP_WHY_CAPABILITY,	/* the caller has no CAP_SYS_ADMIN */
	TSGTOP_WHY_BOUNDS,	/* a value out of bounds */
	TSGTOP_WHY_RATE,	/* too many calls a second, or in flight */
	TSGTOP_WHY_NO_DRIVER,	/* nvidia.ko is not loaded */
	TSGTOP_WHY_PROPRIETARY,	/* the proprietary flavour */
	TSGTOP_WHY_NO_SYMBOL,	/* loaded, but it does not give its interface to GPL modules */
	TSGTOP_WHY_VERSION,	/* a driver version whose layout is not known */
	TSGTOP_WHY_HANDSHAKE,	/* it refused its own version */
	TSGTOP_WHY_SUSPEND,	/* the system suspends or resumes */
	TSGTOP_WHY_GONE,	/* no TSG of that handle any more; status tells */
	TSGTOP_WHY_OTHER,	/* it is another TSG than the one that was meant */
	TSGTOP_WHY_IDENTITY,	/* who it is could not be found out; status tells */
	TSGTOP_WHY_NO_COOKIE,	/* no such call: finished long ago, or never made */
	TSGTOP_WHY_MEMORY,
	TSGTOP_WHY_UNLOADING,
};

enum tsgtop_flag {
	TSGTOP_SENT	= 1,	/* the call itself was handed to RM */
	TSGTOP_ANSWERED	= 2,	/* and came back: status is its NV_STATUS */
	TSGTOP_CHECKED	= 4,	/* the unique id was right just before */
	TSGTOP_SAME	= 8,	/* and still was just after */
};

struct tsgtop_result {
	__u64 cookie;
	__u64 sent_ns;
	__u64 answered_ns;
	__u32 status;	/* NV_STATUS, unchanged; of the check where nothing was sent */
	enum tsgtop_why why;
	enum tsgtop_flag flags;
	__u32 pad;
};

enum tsgtop_known {
	TSGTOP_KNOWN_UNIQUE	= 1,	/* unique and contexts are valid */
	TSGTOP_KNOWN_TIMESLICE	= 2,
};

struct tsgtop_identity {
	__u64 timeslice_us;	/* RM's own copy, whatever the hardware does */
	enum tsgtop_known known;
	__u32 class;
	__u32 device;		/* the TSG's parent */
	__u32 subdevice;	/* of that device; 0 where the client has none */
	__u32 number;
	__u32 unique;		/* 0 where it cannot be known */
	__u32 n_contexts;
	__u32 pad;
	__u32 contexts[TSGTOP_MAX_CONTEXTS];	/* as the context-switch trace names them */
};

/* The GSP's context-switch counters of one TSG (NV2080 0x20801215). */
struct tsgtop_switches {
	__u32 save;
	__u32 restore;
	__u32 wfi;	/* saves after the kernel had ended */
	__u32 cta;
	__u32 cilp;	/* saves in the middle of a kernel */
	__u32 gfxp;
};

#endif
