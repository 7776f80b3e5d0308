// SPDX-License-Identifier: GPL-2.0
/* /proc/driver/nvidia: the version and each GPU's information, as tools read them. */
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/utsname.h>

#include "model.h"

static struct proc_dir_entry *root;

static int version_show(struct seq_file *s, void *unused)
{
	seq_printf(s, "NVRM version: NVIDIA UNIX Open Kernel Module for %s  %s  Release Build  (tsgtop@model)\n",
		   utsname()->machine, knobs.version);
	seq_puts(s, "GCC version:  model\n");
	return 0;
}

static int information_show(struct seq_file *s, void *unused)
{
	struct model_gpu *g = s->private;

	seq_puts(s, "Model: \t\t NVIDIA H200 (model)\n");
	seq_puts(s, "IRQ:   \t\t 0\n");
	seq_printf(s, "GPU UUID: \t GPU-00000000-0000-0000-0000-%012x\n", g->index + 1);
	seq_puts(s, "Video BIOS: \t 00.00.00.00.00\n");
	seq_puts(s, "Bus Type: \t PCIe\n");
	seq_printf(s, "Bus Location: \t 0000:%02x:00.0\n", g->gpu_id >> 8);
	seq_printf(s, "Device Minor: \t %d\n", g->index);
	seq_puts(s, "GPU Firmware: \t model\n");
	seq_puts(s, "GPU Excluded:\t No\n");
	return 0;
}

int model_proc_init(void)
{
	struct proc_dir_entry *gpus, *gpu;
	char name[24];
	u32 i;

	root = proc_mkdir("driver/nvidia", NULL);
	if (!root)
		return -ENOMEM;
	if (!proc_create_single("version", 0444, root, version_show))
		goto fail;
	gpus = proc_mkdir("gpus", root);
	if (!gpus)
		goto fail;
	for (i = 0; i < model_ngpus; i++) {
		snprintf(name, sizeof(name), "0000:%02x:00.0", model_gpus[i].gpu_id >> 8);
		gpu = proc_mkdir(name, gpus);
		if (!gpu || !proc_create_single_data("information", 0444, gpu, information_show,
						     &model_gpus[i]))
			goto fail;
	}
	return 0;
fail:
	proc_remove(root);
	return -ENOMEM;
}

void model_proc_exit(void)
{
	proc_remove(root);
}
