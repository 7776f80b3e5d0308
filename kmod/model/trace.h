/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM nvidia

#if !defined(MODEL_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define MODEL_TRACE_H

#include <linux/pci.h>
#include <linux/tracepoint.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#define model_assign_str(dst, src) __assign_str(dst)
#else
#define model_assign_str(dst, src) __assign_str(dst, src)
#endif

TRACE_EVENT(nvidia_dev_xid,
	TP_PROTO(const struct pci_dev *pdev, u32 error_code, const char *msg),
	TP_ARGS(pdev, error_code, msg),
	TP_STRUCT__entry(
		__string(dev, pdev ? pci_name(pdev) : "none")
		__field(u32, error_code)
		__string(msg, msg)
	),
	TP_fast_assign(
		model_assign_str(dev, pdev ? pci_name(pdev) : "none");
		__entry->error_code = error_code;
		model_assign_str(msg, msg);
	),
	TP_printk("dev=%s error_code=%u msg=%s", __get_str(dev), __entry->error_code, __get_str(msg))
);

#endif

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
