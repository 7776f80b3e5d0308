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
 * Four sets of hooks do the same; user space loads one set (see the comment
 * at each) and removes the rest before it loads the object.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "syscall.h"
#include "rm_call.h"

char LICENSE[] SEC("license") = "GPL";

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

/*
 * The last reference of a file may go with this descriptor. (The number of
 * close or open in the 32-bit table is another call's.)
 */
static __always_inline void descriptor_closes(__u32 fd)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct file *file = file_of(task, fd);

	/*
	 * A mapping or another process that holds the file has references too,
	 * and what exit closes does not pass here.
	 */
	if (is_rm_file(file) && !IS_COMPAT(task) && references(file) == 1) {
		closed(number_of(file));
		forget_number(file);
	}
}

/* The kernel uses the address of a file again: a new number. */
static __always_inline void descriptor_opened(__u32 fd)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct file *file = file_of(task, fd);

	if (is_rm_file(file) && !IS_COMPAT(task))
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
