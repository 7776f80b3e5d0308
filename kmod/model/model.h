/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The stand-in for nvidia.ko: what its parts share.
 *
 * Locking follows the driver's shape: api_lock is taken for reading by controls
 * that the driver routes straight to the GSP, and for writing by everything
 * that changes the object table or goes through a CPU-side handler. What
 * readers change is under the GPU's mutex.
 */
#ifndef TSGTOP_MODEL_H
#define TSGTOP_MODEL_H

#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/rwsem.h>
#include <linux/types.h>
#include <linux/version.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#define MODEL_MAJOR	195
#define MODEL_CTL	255
#define MODEL_GPUS	8
#define MODEL_RUNLISTS	16
#define MODEL_CHANNELS	2048
#define MODEL_STAGED	65536

/* NV_STATUS values that the model gives. */
enum {
	RM_OK			= 0x0,
	RM_BUSY_RETRY		= 0x3,
	RM_GPU_IS_LOST		= 0xf,
	RM_DUPLICATE_NAME	= 0x19,
	RM_NO_RESOURCES		= 0x1a,
	RM_NO_PERMISSION	= 0x1b,
	RM_INVALID_ARGUMENT	= 0x1f,
	RM_INVALID_CLASS	= 0x22,
	RM_INVALID_CLIENT	= 0x23,
	RM_INVALID_DEVICE	= 0x26,
	RM_INVALID_OBJECT	= 0x31,
	RM_INVALID_HANDLE	= 0x33,
	RM_INVALID_PARENT	= 0x36,
	RM_INVALID_PARAMS	= 0x3a,
	RM_INVALID_STATE	= 0x40,
	RM_NO_MEMORY		= 0x51,
	RM_NOT_SUPPORTED	= 0x56,
	RM_NOT_FOUND		= 0x57,
	RM_OUT_OF_RANGE		= 0x5b,
	RM_STATE_IN_USE		= 0x63,
	RM_TIMEOUT		= 0x65,
	RM_GENERIC		= 0xffff,
};

/* How the GSP takes a command: knobs of preempt, timeslice and interleave. */
enum model_mode {
	MODE_OBEY,		/* one RPC, and the hardware changes */
	MODE_IGNORE,		/* one RPC, and it does not */
	MODE_STUB,		/* success, and no RPC */
	MODE_REFUSE_GSP,	/* one RPC, refused with the knob "status" */
	MODE_REFUSE_DRIVER,	/* refused with "status" before any RPC */
};

struct model_knobs {
	u32 preempt_mode;
	u32 timeslice_mode;
	u32 interleave_mode;
	u32 status;
	u32 hang_ms;
	u32 hang_cmd;		/* 0: every RPC hangs, else this control's only */
	u32 rpc_us;
	u32 gpu_lost;
	u32 mig;
	u32 lose_every;		/* each Nth trace record is lost; 0: none */
	u32 bind_status;
	u32 memory_limit;	/* bytes; larger memory objects are refused; 0: none */
	u32 next_client;
	u32 shift_layout;	/* the ops table's op stands elsewhere */
	char version[64];
};

extern struct model_knobs knobs;

/* The private data of an open /dev/nvidia* file. */
struct model_file {
	int minor;		/* MODEL_CTL or that of a GPU */
	struct model_file *ctl;	/* set by REGISTER_FD */
	struct model_memory *map;	/* set by MAP_MEMORY on this file */
	bool map_readonly;
};

struct model_memory {
	struct kref ref;
	void *va;
	size_t size;
	bool user_readonly;
};

struct model_gpu {
	int index;
	u32 gpu_id;
	struct pci_dev *pdev;
	struct mutex lock;	/* the fields below, and what readers of api_lock change */
	struct list_head bound;	/* event buffers, by object.evbuf.bound */
	u8 *staged;		/* trace records that the "hardware" holds, 32 bytes each */
	u32 staged_n;
	u32 fed;
	struct delayed_work drain;
	unsigned long tsgs[MODEL_RUNLISTS][BITS_TO_LONGS(MODEL_CHANNELS)];
	unsigned long chids[MODEL_RUNLISTS][BITS_TO_LONGS(MODEL_CHANNELS)];
};

extern struct model_gpu model_gpus[MODEL_GPUS];
extern unsigned int model_ngpus;

struct model_client {
	u32 handle;
	struct model_file *owner;	/* NULL: a client of the kernel's */
	pid_t pid;
	u32 next_handle;
	struct xarray objects;
};

struct model_tsg {
	u32 number;
	u32 unique;
	u32 engine;
	u64 timeslice_us;	/* what RM remembers */
	u64 effective_us;	/* what the hardware does */
	u32 level;
	u32 effective_level;
	u32 preempts;		/* that took effect */
	u32 save, wfi, cilp;
	u32 restore;
};

struct model_object {
	struct model_client *client;
	u32 handle, class, parent;
	struct model_gpu *gpu;
	u32 runlist;
	union {
		struct model_tsg tsg;
		struct {
			u32 cid, chid, engine;
			bool own_tsg;	/* allocated under a device */
		} channel;
		struct model_memory *memory;
		struct {
			struct list_head bound;
			bool is_bound, enabled, keep_newest;
			u32 count;
			struct model_memory *header, *records;
		} evbuf;
	};
};

/* Who calls: a file of user space's, or the kernel. */
struct model_caller {
	struct model_file *file;	/* NULL: the kernel */
	bool root;
};

extern struct rw_semaphore api_lock;
extern struct xarray model_clients;

/* objects.c */
u32 rm_alloc(struct model_caller *who, u32 client, u32 parent, u32 *handle,
	     u32 class, void *params, u32 size);
u32 rm_free(struct model_caller *who, u32 client, u32 handle);
u32 rm_dup(struct model_caller *who, u32 client, u32 parent, u32 *handle,
	   u32 src_client, u32 src_handle);
void rm_file_closed(struct model_file *file);
struct model_client *rm_client(struct model_caller *who, u32 handle, u32 *status);
struct model_object *rm_object(struct model_client *client, u32 handle);
struct model_gpu *rm_gpu_of(struct model_client *client, u32 handle);
bool rm_is_channel(u32 class);
u32 rm_class_of(struct model_client *client, u32 handle, u32 *parent);
void memory_put(struct model_memory *memory);
int rm_objects_init(void);
void rm_objects_exit(void);

/* control.c */
u32 rm_control(struct model_caller *who, u32 client, u32 object, u32 cmd,
	       void *params, u32 size);

/* fecs.c */
int fecs_init(struct model_gpu *gpu);
void fecs_exit(struct model_gpu *gpu);
int fecs_feed(struct model_gpu *gpu, const u8 *records, size_t n);
void fecs_drain(struct model_gpu *gpu);
u32 fecs_bind(struct model_gpu *gpu, struct model_object *evbuf);
void fecs_unbind(struct model_object *evbuf);
u32 fecs_evbuf_init(struct model_client *client, struct model_object *obj,
		    const u8 *params, u32 size);

/* gsp.c */
u32 gsp_control(struct model_object *obj, u32 client, u32 cmd, void *params,
		u32 size, u32 mode);
void gsp_alloc(u32 client, u32 parent, u32 handle, u32 class);
void gsp_free(u32 client, u32 handle);
u32 meter_set(u32 what);
u32 meter_dump(u8 *params, u32 size);
void meter_exit(void);

/* knobs.c */
int knobs_init(void);
void knobs_exit(void);

/* proc.c */
int model_proc_init(void);
void model_proc_exit(void);

static inline u32 get32(const void *p, size_t off)
{
	u32 v;

	memcpy(&v, (const u8 *)p + off, sizeof(v));
	return v;
}

static inline u64 get64(const void *p, size_t off)
{
	u64 v;

	memcpy(&v, (const u8 *)p + off, sizeof(v));
	return v;
}

static inline void put32(void *p, size_t off, u32 v)
{
	memcpy((u8 *)p + off, &v, sizeof(v));
}

static inline void put64(void *p, size_t off, u64 v)
{
	memcpy((u8 *)p + off, &v, sizeof(v));
}

#endif
