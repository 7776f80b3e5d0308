/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The few types of the kernel that the programs read, with the few members
 * that they read. All offsets are relocated against the running kernel's BTF
 * at load (CO-RE), so only names and types matter here, not layout. Stands in
 * for a vmlinux.h of three megabytes made from one kernel.
 */
#ifndef TSGTOP_KERNEL_H
#define TSGTOP_KERNEL_H

/* Keeps bpf_tracing.h from wanting user space's register names. */
#ifndef __VMLINUX_H__
#define __VMLINUX_H__
#endif

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)

/* Values of the kernel's user ABI (linux/bpf.h); they never change. */
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_HASH = 5,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_F_NO_PREALLOC = 1,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
	BPF_RB_AVAIL_DATA = 0,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

typedef struct {
	long counter;
} atomic_long_t;

struct inode {
	__u32 i_rdev;
};

struct file {
	struct inode *f_inode;
};

/* Any type that begins with a pointer: see file_of. */
struct list_head {
	struct list_head *next;
};

/* Up to 6.12 a file counts its references in f_count ... */
struct file___count {
	atomic_long_t f_count;
};

/* ... from 6.13 on in f_ref, which holds one less than their number. */
struct file___ref {
	struct {
		atomic_long_t refcnt;
	} f_ref;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct signal_struct {
	atomic_t live;
};

struct thread_info {
	unsigned long flags; /* arm64: TIF_32BIT */
	__u32 status;	     /* x86: TS_COMPAT */
};

struct task_struct {
	struct thread_info thread_info;
	int tgid;
	char comm[16];
	struct files_struct *files;
	struct signal_struct *signal;
};

struct kobject {
	const char *name;
};

struct device {
	struct kobject kobj;
};

struct pci_dev {
	struct device dev;
};

/* Registers at a system call's entry and exit. */
#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long di;
	unsigned long si;
	unsigned long dx;
	unsigned long bx;
	unsigned long cx;
	unsigned long orig_ax;
};
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
	__u64 regs[31];
	__u64 orig_x0;
	__s32 syscallno;
};
#else
#error "amd64 and arm64 only"
#endif

#pragma clang attribute pop

#endif
