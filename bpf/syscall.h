/* SPDX-License-Identifier: GPL-2.0 */
/*
 * System call numbers and arguments of the two architectures, for programs at
 * sys_enter and sys_exit.
 */
#ifndef TSGTOP_SYSCALL_H
#define TSGTOP_SYSCALL_H

#if defined(__TARGET_ARCH_x86)

enum {
	NR_OPEN = 2,
	NR_CLOSE = 3,
	NR_IOCTL = 16,
	NR_OPENAT = 257,
	NR_OPENAT2 = 437,
	NR_IOCTL_32 = 54, /* of the 32-bit table, through int 0x80 or sysenter */
	NR_IOCTL_X32 = 0x40000000 | 514,
	TS_COMPAT = 2, /* thread_info.status: in a system call of the 32-bit table */
};

#define SYSCALL_NR(regs)     ((long)(regs)->orig_ax)
#define ARG1(regs)	     ((regs)->di)
#define ARG2(regs)	     ((regs)->si)
#define ARG3(regs)	     ((regs)->dx)
#define ARG1_32(regs)	     ((__u32)(regs)->bx)
#define ARG2_32(regs)	     ((__u32)(regs)->cx)
#define IS_COMPAT(task)	     ((task)->thread_info.status & TS_COMPAT)
#define IS_OPEN(nr)	     ((nr) == NR_OPENAT || (nr) == NR_OPEN || (nr) == NR_OPENAT2)
#define IS_FOREIGN_IOCTL(nr) ((nr) == NR_IOCTL_32 || (nr) == NR_IOCTL_X32)

#elif defined(__TARGET_ARCH_arm64)

enum {
	NR_IOCTL = 29,
	NR_OPENAT = 56,
	NR_CLOSE = 57,
	NR_OPENAT2 = 437,
	NR_IOCTL_32 = 54, /* of the 32-bit table */
	TIF_32BIT = 22,	  /* bit of thread_info.flags */
};

/*
 * x0 is overwritten by the return value; orig_x0 keeps the first argument.
 */
#define SYSCALL_NR(regs)     ((long)(regs)->syscallno)
#define ARG1(regs)	     ((regs)->orig_x0)
#define ARG2(regs)	     ((regs)->regs[1])
#define ARG3(regs)	     ((regs)->regs[2])
#define ARG1_32(regs)	     ((__u32)(regs)->orig_x0)
#define ARG2_32(regs)	     ((__u32)(regs)->regs[1])
#define IS_COMPAT(task)	     ((task)->thread_info.flags & (1ul << TIF_32BIT))
#define IS_OPEN(nr)	     ((nr) == NR_OPENAT || (nr) == NR_OPENAT2)
#define IS_FOREIGN_IOCTL(nr) ((nr) == NR_IOCTL_32)

#endif

/*
 * Arguments of a kernel function as a kprobe gets them: the kernel's user ABI
 * fixes this layout (asm/ptrace.h), so it is not relocated.
 */
#if defined(__TARGET_ARCH_x86)
struct probe_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8;
	unsigned long ax, cx, dx, si, di;
};
#define FUNC_ARG1(regs) ((regs)->di)
#define FUNC_ARG2(regs) ((regs)->si)
#define FUNC_ARG3(regs) ((regs)->dx)
#define FUNC_RET(regs)	((regs)->ax)
#elif defined(__TARGET_ARCH_arm64)
struct probe_regs {
	unsigned long regs[31];
};
#define FUNC_ARG1(regs) ((regs)->regs[0])
#define FUNC_ARG2(regs) ((regs)->regs[1])
#define FUNC_ARG3(regs) ((regs)->regs[2])
#define FUNC_RET(regs)	((regs)->regs[0])
#endif

#endif
