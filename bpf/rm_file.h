/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Files of the driver: how one is known, and its number.
 */
#ifndef TSGTOP_RM_FILE_H
#define TSGTOP_RM_FILE_H

#include "rm_maps.h"

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

#endif
