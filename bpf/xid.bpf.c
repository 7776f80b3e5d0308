// SPDX-License-Identifier: GPL-2.0

//go:build ignore

/*
 * Watches the driver's Xid errors.
 *
 * nvidia:nvidia_dev_xid(pdev, error code, message) is a tracepoint of the
 * driver's kernel interface layer since 575. All Xids come by it: RM's
 * reporting of them ends in nv_log_error -> nv_report_error, which makes the
 * message and calls the tracepoint, in the process or interrupt thread that
 * met the error. A raw tracepoint is attached by its name alone; neither the
 * module's BTF nor its trace event's format are needed.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

char LICENSE[] SEC("license") = "GPL";

struct xid_event {
	__u64 when; /* CLOCK_MONOTONIC, ns */
	__u32 code;
	__u32 text_len; /* bytes of text, its end not counted */
	__u8 pci[16];	/* "0000:01:00.0"; empty: not known */
	__u8 text[480]; /* cut where it is longer */
};

const struct xid_event *unused_xid_event __attribute__((unused));

__u64 lost; /* "xids" was full */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 << 10);
} xids SEC(".maps");

/* Arguments of a raw tracepoint. */
struct xid_args {
	__u64 pdev;
	__u64 code;
	__u64 message;
};

SEC("raw_tp/nvidia_dev_xid")
int xid(struct xid_args *args)
{
	struct pci_dev *pdev = (struct pci_dev *)args->pdev;
	struct xid_event *e = bpf_ringbuf_reserve(&xids, sizeof(*e), 0);
	const char *name;
	long n;

	if (!e) {
		__sync_fetch_and_add(&lost, 1);
		return 0;
	}
	e->when = bpf_ktime_get_ns();
	e->code = args->code;
	__builtin_memset(e->pci, 0, sizeof(e->pci));
	/* A device's name on the PCI bus is its address. */
	if (pdev && bpf_core_type_exists(struct pci_dev)) {
		name = BPF_CORE_READ(pdev, dev.kobj.name);
		bpf_probe_read_kernel_str(e->pci, sizeof(e->pci), name);
	}
	n = bpf_probe_read_kernel_str(e->text, sizeof(e->text), (void *)args->message);
	e->text_len = n > 0 ? n - 1 : 0;
	bpf_ringbuf_submit(e, 0);
	return 0;
}
