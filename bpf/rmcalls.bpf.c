// SPDX-License-Identifier: GPL-2.0

//go:build ignore

/*
 * Watches the calls that processes make into NVIDIA's Resource Manager (RM).
 *
 * A call is one ioctl on a character device of the driver. Its end is where it
 * is decoded: RM writes the handle that it chose and the status into the
 * caller's own structure. Calls that shape scheduling make a record each, the
 * others are counted, or make one too while "look" is set.
 *
 * Three pairs of hooks do the same; user space loads one pair (see the comment
 * at each) and removes the rest before it loads the object.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "syscall.h"
#include "rm_event.h"
#include "rm_shape.h"

char LICENSE[] SEC("license") = "GPL";

/* Major number of the driver's devices. 195 is registered for it. */
volatile const __u32 major = TSGTOP_MAJOR;
/* Wake the reader when this many bytes wait in "events". */
volatile const __u64 wake_bytes = 1 << 20;

__u32 look;	     /* somebody looks at all calls */
__u32 expecting;     /* "expected" is not empty */
__u32 last_file;     /* the number given to the file met last */
__u32 files_changed; /* how often an entry of "files" was made or removed */

/*
 * Gives a pointer a type of the kernel's, so that it is followed by a plain
 * load, in a tenth of the time of a helper call. Since 6.2.
 */
extern void *bpf_rdonly_cast(const void *pointer, __u32 type) __ksym __weak;
#define AS(type, pointer) ((type *)bpf_rdonly_cast(pointer, bpf_core_type_id_kernel(type)))

/* ---- maps ---------------------------------------------------------------- */

/* The call that a thread is in. word 0: none. */
struct in_flight {
	__u64 start;
	__u64 arg;
	__u64 command;
	__u32 word;
	__u32 file;    /* number of "of" ... */
	__u64 of;      /* ... the file of the thread's last call */
	__u32 changed; /* files_changed at that time: the number still holds */
	__u32 pad;
};

/*
 * In the task itself rather than in a hash table: found in a few ns, never
 * full, and gone with the task.
 */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct in_flight);
} in_flight SEC(".maps");

/*
 * Open files by number. The kernel's address of a file is the key and never
 * leaves this map.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, __u32);
} files SEC(".maps");

/* Processes that made RM calls, or that user space asked about. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, __u8);
} pids SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct rm_sort);
	__type(value, struct rm_count);
} counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, __u32); /* thread */
	__type(value, struct rm_expected);
} expected SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rm_losses);
} losses SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} events SEC(".maps");

/* Of its own, so that no other traffic can fill it. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 << 10);
} own_calls SEC(".maps");

/* So that bpf2go makes Go types of these, which no map holds. */
const struct rm_call *unused_rm_call __attribute__((unused));
const struct rm_exit *unused_rm_exit __attribute__((unused));
const struct rm_own *unused_rm_own __attribute__((unused));
const enum rm_record *unused_rm_record __attribute__((unused));
const enum rm_kind *unused_rm_kind __attribute__((unused));
const enum rm_flag *unused_rm_flag __attribute__((unused));
const enum rm_phase *unused_rm_phase __attribute__((unused));

static __always_inline struct rm_losses *lost(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&losses, &zero);
}

#define LOSE(what)                                                                                 \
	do {                                                                                       \
		struct rm_losses *l_ = lost();                                                     \
		if (l_)                                                                            \
			l_->what++;                                                                \
	} while (0)

/* ---- files --------------------------------------------------------------- */

/* The file behind a descriptor of this task, or NULL. */
static __always_inline struct file *file_of(struct task_struct *task, __u32 fd)
{
	struct fdtable *fdt = task->files->fdt;
	struct file **entry, *file = NULL;

	if (fd >= fdt->max_fds)
		return NULL;
	entry = fdt->fd + fd;
	if (bpf_rdonly_cast)
		return (struct file *)AS(struct list_head, entry)->next;
	if (bpf_probe_read_kernel(&file, sizeof(file), entry))
		return NULL;
	return file;
}

/* Is it a device of the driver? */
static __always_inline bool is_rm_file(struct file *file)
{
	struct inode *inode;
	__u32 rdev;

	if (!file)
		return false;
	if (bpf_rdonly_cast) {
		rdev = AS(struct file, file)->f_inode->i_rdev;
	} else {
		inode = BPF_CORE_READ(file, f_inode);
		if (!inode)
			return false;
		rdev = BPF_CORE_READ(inode, i_rdev);
	}
	return rdev >> 20 == major;
}

/* Gives a file a number that none had before. */
static __always_inline __u32 new_number(struct file *file)
{
	__u64 key = (__u64)file;
	__u32 number = __sync_fetch_and_add(&last_file, 1) + 1;

	bpf_map_update_elem(&files, &key, &number, BPF_ANY);
	__sync_fetch_and_add(&files_changed, 1);
	return number;
}

/* The file is gone: its address may become another's. */
static __always_inline void forget_number(struct file *file)
{
	__u64 key = (__u64)file;

	bpf_map_delete_elem(&files, &key);
	__sync_fetch_and_add(&files_changed, 1);
}

static __always_inline __u32 number_of(struct file *file)
{
	__u64 key = (__u64)file;
	__u32 *number = bpf_map_lookup_elem(&files, &key);

	return number ? *number : new_number(file);
}

/* How many references the file has; its table entries and calls under way. */
static __always_inline long references(struct file *file)
{
	if (bpf_core_field_exists(((struct file___ref *)0)->f_ref))
		return BPF_CORE_READ((struct file___ref *)file, f_ref.refcnt.counter) + 1;
	if (bpf_core_field_exists(((struct file___count *)0)->f_count))
		return BPF_CORE_READ((struct file___count *)file, f_count.counter);
	return 0;
}

/* ---- records ------------------------------------------------------------- */

/*
 * Waking the reader costs ten times what a record does, so it polls. Once in
 * 64 records the fill of the ring is looked at, and it is woken if need be.
 */
static __always_inline __u64 wakeup(void)
{
	struct rm_losses *l = lost();

	if (!l || (++l->records & 63))
		return BPF_RB_NO_WAKEUP;
	if (bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) < wake_bytes)
		return BPF_RB_NO_WAKEUP;
	return BPF_RB_FORCE_WAKEUP;
}

static __always_inline void copy_comm(__u8 *comm, struct task_struct *task)
{
	((__u64 *)comm)[0] = *(__u64 *)&task->comm[0];
	((__u64 *)comm)[1] = *(__u64 *)&task->comm[8];
}

/* A file was closed for the last time. */
static __always_inline void closed(__u32 file)
{
	__u64 ids = bpf_get_current_pid_tgid();
	struct rm_call *r = bpf_ringbuf_reserve(&events, sizeof(*r), 0);

	if (!r) {
		LOSE(ring);
		return;
	}
	__builtin_memset(r, 0, sizeof(*r));
	r->record = RM_RECORD_CALL;
	r->kind = RM_KIND_CLOSE;
	r->start = bpf_ktime_get_ns();
	r->pid = ids >> 32;
	r->tid = ids;
	r->file = file;
	bpf_get_current_comm(r->comm, sizeof(r->comm));
	bpf_ringbuf_submit(r, wakeup());
}

/* The driver releases a file: one of those that calls came by, or another. */
static __always_inline void last_close(struct file *file)
{
	__u64 key = (__u64)file;
	__u32 *number = bpf_map_lookup_elem(&files, &key);

	if (number) {
		closed(*number);
		forget_number(file);
	}
}

/* ---- our own calls ------------------------------------------------------- */

/*
 * The id of the command that announced exactly this call: same thread, same
 * descriptor or file, same argument, same parameters. Used up by it.
 */
static __noinline __u64 own_command(struct task_struct *task, struct file *file, __u32 word,
				    __u64 arg)
{
	__u32 tid = bpf_get_current_pid_tgid();
	struct rm_expected *e = bpf_map_lookup_elem(&expected, &tid);
	__u64 params = 0, id;

	if (!e || e->arg != arg || file_of(task, e->fd) != file)
		return 0;
	if (e->params) {
		if ((word & 0xff) != TSGTOP_ESC_CONTROL)
			return 0;
		bpf_probe_read_user(&params, sizeof(params),
				    (void *)(arg + TSGTOP_OFF_CONTROL_PARAMS));
		if (params != e->params)
			return 0;
	}
	id = e->id;
	bpf_map_delete_elem(&expected, &tid);
	return id;
}

static __always_inline void own_entry(__u64 id, __u64 when)
{
	struct rm_own *r = bpf_ringbuf_reserve(&own_calls, sizeof(*r), 0);

	if (!r) {
		LOSE(own_ring);
		return;
	}
	__builtin_memset(r, 0, sizeof(*r));
	r->id = id;
	r->when = when;
	r->phase = RM_PHASE_ENTRY;
	bpf_ringbuf_submit(r, 0);
}

/* ---- a call's beginning -------------------------------------------------- */

static __always_inline void call_enter(struct task_struct *task, struct file *file, __u32 word,
				       __u64 arg)
{
	struct in_flight *f = bpf_task_storage_get(&in_flight, task, NULL, 0);
	__u32 pid;
	__u8 one = 1;

	if (!f) {
		/* This thread's first call. */
		f = bpf_task_storage_get(&in_flight, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (!f) {
			LOSE(unstored);
			return;
		}
		pid = bpf_get_current_pid_tgid() >> 32;
		bpf_map_update_elem(&pids, &pid, &one, BPF_ANY);
	}
	if (f->word)
		LOSE(unmatched);
	f->arg = arg;
	f->word = word;
	if (f->of != (__u64)file || f->changed != files_changed) {
		f->changed = files_changed;
		f->of = (__u64)file;
		f->file = number_of(file);
	}
	f->command = expecting ? own_command(task, file, word, arg) : 0;
	f->start = bpf_ktime_get_ns();
	if (f->command)
		own_entry(f->command, f->start);
}

/* ---- a call's end -------------------------------------------------------- */

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

static __always_inline void count(struct decoded *d, long ret, __u64 duration)
{
	struct rm_sort key = {.number = d->number, .kind = d->kind};
	struct rm_count *c = bpf_map_lookup_elem(&counts, &key);
	struct rm_count none = {};

	if (!c) {
		bpf_map_update_elem(&counts, &key, &none, BPF_NOEXIST);
		c = bpf_map_lookup_elem(&counts, &key);
		if (!c) {
			LOSE(uncounted);
			return;
		}
	}
	/*
	 * Per CPU, and the kernel does not run a program again on a CPU where
	 * it was preempted: nobody else adds meanwhile.
	 */
	c->n++;
	c->ns += duration;
	if (ret || d->status)
		c->failed++;
}

static __always_inline void read_params(struct rm_call *r, const struct decoded *d)
{
	__u32 offset = SHAPE_OFFSET(d->shape), length = SHAPE_LENGTH(d->shape);

	r->flags = 0;
	r->params_len = 0;
	__builtin_memset(r->params, 0, sizeof(r->params));
	if (!length || !d->params)
		return;
	/*
	 * A control's size must be the right one. The older form of alloc may
	 * give 0 and mean "as the class has it"; for a client the pointer then
	 * is to a bare handle, so there is nothing more to read.
	 */
	if (d->kind == RM_KIND_ALLOC && !d->params_size) {
		if (d->number <= TSGTOP_CLASS_CLIENT)
			return;
	} else if (d->params_size <= offset) {
		return;
	} else if (d->params_size - offset < length) {
		length = d->params_size - offset;
	}
	if (length > RM_PARAMS_MAX)
		length = RM_PARAMS_MAX;
	if (bpf_probe_read_user(r->params, length, (void *)(d->params + offset))) {
		r->flags = RM_FLAG_PARAMS_FAULTED;
		LOSE(params_faults);
		return;
	}
	r->params_len = length;
}

static __noinline int own_exit(struct in_flight *f, struct decoded *d, __u64 duration, int error)
{
	struct rm_own *r;

	if (!f || !d)
		return 0;
	r = bpf_ringbuf_reserve(&own_calls, sizeof(*r), 0);
	if (!r) {
		LOSE(own_ring);
		return 0;
	}
	r->id = f->command;
	r->when = f->start + duration;
	r->duration = duration;
	r->phase = RM_PHASE_EXIT;
	r->error = error;
	r->kind = d->kind;
	r->number = d->number;
	r->client = d->client;
	r->object = d->object;
	r->status = d->status;
	r->pad = 0;
	bpf_ringbuf_submit(r, 0);
	return 0;
}

static __always_inline void call_exit(struct task_struct *task, struct in_flight *f, long ret)
{
	__u64 duration = bpf_ktime_get_ns() - f->start;
	struct decoded d = {};
	struct rm_call *r;
	__u32 word = f->word;
	__u64 ids;
	int rc;

	f->word = 0;
	rc = decode(&d, word, f->arg);
	if (f->command)
		own_exit(f, &d, duration, ret);
	if (rc) {
		if (rc < 0)
			LOSE(arg_faults);
		return;
	}
	if (d.shape == SHAPE_NONE) {
		if (!look && !f->command) {
			count(&d, ret, duration);
			return;
		}
		d.shape = SHAPE(0, 0);
	}
	r = bpf_ringbuf_reserve(&events, sizeof(*r), 0);
	if (!r) {
		LOSE(ring);
		return;
	}
	ids = bpf_get_current_pid_tgid();
	r->record = RM_RECORD_CALL;
	r->kind = d.kind;
	r->pad = 0;
	r->start = f->start;
	r->duration = duration;
	r->command = f->command;
	r->pid = ids >> 32;
	r->tid = ids;
	r->file = f->file;
	r->error = ret;
	r->number = d.number;
	r->client = d.client;
	r->parent = d.parent;
	r->object = d.object;
	r->status = d.status;
	r->src_client = d.src_client;
	r->src_object = d.src_object;
	copy_comm(r->comm, task);
	r->pad2 = 0;
	read_params(r, &d);
	bpf_ringbuf_submit(r, wakeup());
}

/* Do calls with this ioctl word concern us? Direction bits are not looked at. */
static __always_inline bool is_rm_word(__u32 word)
{
	if ((word >> 8 & 0xff) != TSGTOP_IOCTL_MAGIC)
		return false;
	switch (word & 0xff) {
	case TSGTOP_ESC_CONTROL:
	case TSGTOP_ESC_ALLOC:
	case TSGTOP_ESC_FREE:
	case TSGTOP_ESC_DUP:
	case TSGTOP_ESC_XFER:
		return true;
	}
	return false;
}

/* The last reference of a file may go with this descriptor. */
static __always_inline void descriptor_closes(__u32 fd)
{
	struct file *file = file_of(bpf_get_current_task_btf(), fd);

	/*
	 * A mapping or another process that holds the file has references too,
	 * and what exit closes does not pass here.
	 */
	if (is_rm_file(file) && references(file) == 1) {
		closed(number_of(file));
		forget_number(file);
	}
}

/* The kernel uses the address of a file again: a new number. */
static __always_inline void descriptor_opened(__u32 fd)
{
	struct file *file = file_of(bpf_get_current_task_btf(), fd);

	if (is_rm_file(file))
		new_number(file);
}

/*
 * ---- rung 4: every system call's entry and exit -----------------------------
 *
 * sys_enter and sys_exit are tracepoints that every architecture's entry code
 * calls for each system call while one of ours is attached (their arguments,
 * registers and number, are unchanged since 2.6.32; typed access since 5.5).
 * An ioctl reaches the driver from there only: do_syscall -> ksys_ioctl ->
 * vfs_ioctl -> file->f_op->unlocked_ioctl. Nothing of the driver's own names
 * is needed, so neither its BTF nor its version matter. The price is that all
 * other system calls pass here too; each test below is ordered by that.
 */
SEC("tp_btf/sys_enter")
int BPF_PROG(sys_enter, struct pt_regs *regs, long nr)
{
	struct task_struct *task;
	struct file *file;
	__u32 word;

	if (nr == NR_IOCTL) {
		word = ARG2(regs);
		if (!is_rm_word(word))
			return 0;
		task = bpf_get_current_task_btf();
		file = file_of(task, ARG1(regs));
		if (!is_rm_file(file))
			return 0;
		if (IS_COMPAT(task))
			return 0; /* number 16 of the 32-bit table is another call */
		call_enter(task, file, word, ARG3(regs));
	} else if (nr == NR_CLOSE) {
		descriptor_closes(ARG1(regs));
	} else if (IS_FOREIGN_IOCTL(nr)) {
		task = bpf_get_current_task_btf();
		if (IS_COMPAT(task)) {
			if (is_rm_word(ARG2_32(regs)) && is_rm_file(file_of(task, ARG1_32(regs))))
				LOSE(compat);
		}
#if defined(__TARGET_ARCH_x86)
		else if (nr == NR_IOCTL_X32) {
			if (is_rm_word(ARG2(regs)) && is_rm_file(file_of(task, ARG1(regs))))
				LOSE(compat);
		}
#endif
	}
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(sys_exit, struct pt_regs *regs, long ret)
{
	struct task_struct *task;
	struct in_flight *f;
	long nr = SYSCALL_NR(regs);

	if (nr == NR_IOCTL) {
		if (!is_rm_word(ARG2(regs)))
			return 0;
		task = bpf_get_current_task_btf();
		f = bpf_task_storage_get(&in_flight, task, NULL, 0);
		if (f && f->word)
			call_exit(task, f, ret);
		else if (is_rm_file(file_of(task, ARG1(regs))) && !IS_COMPAT(task))
			LOSE(unmatched);
	} else if (IS_OPEN(nr) && ret >= 0) {
		descriptor_opened(ret);
	}
	return 0;
}

/*
 * ---- rung 3: the tracepoints of the system calls themselves -----------------
 *
 * syscalls:sys_enter_ioctl and its like (since 2.6.31; their format is user
 * ABI). The kernel's own filter leaves all other system calls out before a
 * program runs, which costs those half of what rung 4 does, and an ioctl a
 * little more. On x86 and arm64 the 32-bit table is left out too: the calls of
 * 32-bit programs are not seen.
 */
struct syscall_enter {
	__u64 common;
	__s32 nr;
	__s32 pad;
	__u64 args[6];
};

struct syscall_exit {
	__u64 common;
	__s32 nr;
	__s32 pad;
	__s64 ret;
};

SEC("tracepoint/syscalls/sys_enter_ioctl")
int tp_enter_ioctl(struct syscall_enter *ctx)
{
	struct task_struct *task;
	struct file *file;
	__u32 word = ctx->args[1];

	if (!is_rm_word(word))
		return 0;
	task = bpf_get_current_task_btf();
	file = file_of(task, ctx->args[0]);
	if (is_rm_file(file))
		call_enter(task, file, word, ctx->args[2]);
	return 0;
}

SEC("tracepoint/syscalls/sys_exit_ioctl")
int tp_exit_ioctl(struct syscall_exit *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct in_flight *f = bpf_task_storage_get(&in_flight, task, NULL, 0);

	if (f && f->word)
		call_exit(task, f, ctx->ret);
	return 0;
}

SEC("tracepoint/syscalls/sys_enter_close")
int tp_enter_close(struct syscall_enter *ctx)
{
	descriptor_closes(ctx->args[0]);
	return 0;
}

/* Also for open and openat2. */
SEC("tracepoint/syscalls/sys_exit_openat")
int tp_exit_open(struct syscall_exit *ctx)
{
	if (ctx->ret >= 0)
		descriptor_opened(ctx->ret);
	return 0;
}

/*
 * ---- rung 2: kprobe and kretprobe on the driver's ioctl entry ---------------
 *
 * nvidia_unlocked_ioctl(file, cmd, arg) is what the driver's file_operations
 * name for both ioctl and compat ioctl, so its address is taken and it cannot
 * be inlined away; read in 550, 570, 580, 590 and 595. (nvidia_ioctl, which it
 * calls, is static with one caller: it can be.) The 32-bit entry comes here
 * too, and the structures have the same layout, so those calls are decoded.
 */
SEC("kprobe/nvidia_unlocked_ioctl")
int kprobe_ioctl(struct probe_regs *regs)
{
	call_enter(bpf_get_current_task_btf(), (struct file *)FUNC_ARG1(regs), FUNC_ARG2(regs),
		   FUNC_ARG3(regs));
	return 0;
}

SEC("kretprobe/nvidia_unlocked_ioctl")
int kretprobe_ioctl(struct probe_regs *regs)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct in_flight *f = bpf_task_storage_get(&in_flight, task, NULL, 0);

	if (f && f->word)
		call_exit(task, f, (int)FUNC_RET(regs));
	else
		LOSE(unmatched);
	return 0;
}

/*
 * nvidia_close(inode, file) is the release of the same file_operations: the
 * kernel calls it once, when the last reference of a file is gone (__fput),
 * whoever held it. 550 to 595.
 */
SEC("kprobe/nvidia_close")
int kprobe_close(struct probe_regs *regs)
{
	last_close((struct file *)FUNC_ARG2(regs));
	return 0;
}

/*
 * ---- rung 1: the same by fentry and fexit -----------------------------------
 *
 * The same functions, entered through the trampoline: no trap, and arguments
 * that the verifier knows by the driver's own BTF, which is there only where
 * the module was built with it.
 */
SEC("fentry/nvidia_unlocked_ioctl")
int BPF_PROG(fentry_ioctl, struct file *file, unsigned int cmd, unsigned long arg)
{
	call_enter(bpf_get_current_task_btf(), file, cmd, arg);
	return 0;
}

SEC("fexit/nvidia_unlocked_ioctl")
int BPF_PROG(fexit_ioctl, struct file *file, unsigned int cmd, unsigned long arg, long ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct in_flight *f = bpf_task_storage_get(&in_flight, task, NULL, 0);

	if (f && f->word)
		call_exit(task, f, (int)ret);
	else
		LOSE(unmatched);
	return 0;
}

SEC("fentry/nvidia_close")
int BPF_PROG(fentry_close, struct inode *inode, struct file *file)
{
	last_close(file);
	return 0;
}

/*
 * ---- the end of a process ---------------------------------------------------
 *
 * do_exit calls this tracepoint for each thread, since 2.6.25, after it has
 * taken itself off signal->live; a second argument that 6.16 added does not
 * matter here. Its files are closed after that.
 */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(process_exit, struct task_struct *task)
{
	struct rm_exit *r;
	__u32 pid;

	if (task->signal->live.counter)
		return 0;
	pid = task->tgid;
	if (bpf_map_delete_elem(&pids, &pid))
		return 0;
	r = bpf_ringbuf_reserve(&events, sizeof(*r), 0);
	if (!r) {
		LOSE(ring);
		return 0;
	}
	r->record = RM_RECORD_EXIT;
	r->pid = pid;
	r->when = bpf_ktime_get_ns();
	bpf_ringbuf_submit(r, wakeup());
	return 0;
}
