// SPDX-License-Identifier: GPL-2.0
/*
 * Stands in for the proprietary flavour of nvidia.ko: its licence and its plain
 * export are all that tsgtop.ko looks at before it refuses it.
 */
#include <linux/module.h>

u32 nvidia_get_rm_ops(void *ops);
u32 nvidia_get_rm_ops(void *ops)
{
	return 0xffff;
}
EXPORT_SYMBOL(nvidia_get_rm_ops);

MODULE_DESCRIPTION("Stand-in for the proprietary nvidia.ko, for tests of tsgtop");
MODULE_LICENSE("NVIDIA");
