/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the programs tell user space. bpf2go makes the Go types from these
 * structs; nothing here is written a second time in Go.
 */
#ifndef TSGTOP_RM_EVENT_H
#define TSGTOP_RM_EVENT_H

/* First word of each record of the ring "events". */
enum rm_record {
	RM_RECORD_CALL = 1,
	RM_RECORD_EXIT = 2,
};

/* Kinds of calls; the values are those of sched.CallKind. */
enum rm_kind {
	RM_KIND_CONTROL = 1,
	RM_KIND_ALLOC = 2,
	RM_KIND_FREE = 3,
	RM_KIND_DUP = 4,
	RM_KIND_CLOSE = 5,
};

enum rm_flag {
	RM_FLAG_PARAMS_FAULTED = 1, /* the parameters could not be read */
};

/* The longest parameter that a call that shapes scheduling has for us. */
#define RM_PARAMS_MAX 8

/* One RM call, seen going in and coming back. */
struct rm_call {
	__u32 record; /* RM_RECORD_CALL */
	__u8 kind;
	__u8 flags;
	__u8 params_len; /* bytes of params that were read */
	__u8 pad;
	__u64 start;	/* CLOCK_MONOTONIC, ns */
	__u64 duration; /* ns */
	__u64 command;	/* id of our own command; 0: another's */
	__u32 pid;
	__u32 tid;
	__u32 file;   /* number of the open file; 0: not known */
	__s32 error;  /* return value of the ioctl: 0 or -errno */
	__u32 number; /* control: command; alloc: class */
	__u32 client;
	__u32 parent;
	__u32 object;
	__u32 status;	  /* NV_STATUS; valid where error is 0 */
	__u32 src_client; /* dup */
	__u32 src_object; /* dup */
	__u32 pad2;
	__u8 comm[16];
	__u8 params[RM_PARAMS_MAX]; /* the slice that rm_shape.h names */
};

/* The last thread of a process that made RM calls ended. */
struct rm_exit {
	__u32 record; /* RM_RECORD_EXIT */
	__u32 pid;
	__u64 when; /* CLOCK_MONOTONIC, ns */
};

/* Calls of one sort that were only counted. */
struct rm_sort {
	__u32 number;
	__u32 kind;
};

struct rm_count {
	__u64 n;
	__u64 failed; /* with a status or an errno */
	__u64 ns;
};

/* A call that our own process is about to make; the key is its thread. */
struct rm_expected {
	__u64 id;     /* of the command; not 0 */
	__u64 arg;    /* third argument of the ioctl */
	__u64 params; /* address of the control's parameters; 0: any */
	__u32 fd;
	__u32 pad;
};

enum rm_phase {
	RM_PHASE_ENTRY = 1,
	RM_PHASE_EXIT = 2,
};

/* One of our own calls going in or coming back: the ring "own_calls". */
struct rm_own {
	__u64 id;
	__u64 when;	/* CLOCK_MONOTONIC, ns */
	__u64 duration; /* ns; exit only */
	__u32 phase;
	__s32 error; /* exit only, as are the next */
	__u32 kind;  /* 0: the ioctl's structure could not be read */
	__u32 number;
	__u32 client;
	__u32 object;
	__u32 status;
	__u32 pad;
};

/* What went missing, per CPU and place. */
struct rm_losses {
	__u64 ring;	     /* "events" was full */
	__u64 own_ring;	     /* "own_calls" was full */
	__u64 arg_faults;    /* reading the ioctl's structure faulted */
	__u64 params_faults; /* reading the parameters faulted */
	__u64 unmatched;     /* an end without a beginning, or the reverse */
	__u64 compat;	     /* calls through the 32-bit entry */
	__u64 uncounted;     /* "counts" was full */
	__u64 unstored;	     /* no memory to remember a beginning */
	__u64 records;	     /* written into "events": not a loss, paces the wakeups */
};

#endif
