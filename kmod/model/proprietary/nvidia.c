// SPDX-License-Identifier: GPL-2.0
/*
 * Stands in for the proprietary flavour of nvidia.ko: its licence and its plain
 * export are all that tsgtop.ko looks at before it refuses it, and its version
 * string all that tsgtop does.
 */
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/utsname.h>

u32 nvidia_get_rm_ops(void *ops);
u32 nvidia_get_rm_ops(void *ops)
{
	return 0xffff;
}
EXPORT_SYMBOL(nvidia_get_rm_ops);

static struct proc_dir_entry *root;

static int version_show(struct seq_file *s, void *unused)
{
	seq_printf(s, "NVRM version: NVIDIA UNIX %s Kernel Module  580.159.04  Release Build  (tsgtop@model)\n",
		   utsname()->machine);
	return 0;
}

static int __init proprietary_init(void)
{
	root = proc_mkdir("driver/nvidia", NULL);
	if (!root)
		return -ENOMEM;
	if (!proc_create_single("version", 0444, root, version_show)) {
		proc_remove(root);
		return -ENOMEM;
	}
	return 0;
}

static void __exit proprietary_exit(void)
{
	proc_remove(root);
}

module_init(proprietary_init);
module_exit(proprietary_exit);

MODULE_DESCRIPTION("Stand-in for the proprietary nvidia.ko, for tests of tsgtop");
MODULE_LICENSE("NVIDIA");
