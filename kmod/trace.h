/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Each RM call that the module makes, going in and coming back, and each RPC to
 * the GSP where the experiment sees them. Raw tracepoint programs can attach
 * where fentry is refused.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM tsgtop

#if !defined(TSGTOP_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define TSGTOP_TRACE_H

#include <linux/tracepoint.h>

TRACE_EVENT(tsgtop_call_sent,
	TP_PROTO(u64 cookie, u32 client, u32 object, u32 cmd),
	TP_ARGS(cookie, client, object, cmd),
	TP_STRUCT__entry(
		__field(u64, cookie)
		__field(u32, client)
		__field(u32, object)
		__field(u32, cmd)
	),
	TP_fast_assign(
		__entry->cookie = cookie;
		__entry->client = client;
		__entry->object = object;
		__entry->cmd = cmd;
	),
	TP_printk("cookie=%llu client=%08x object=%08x cmd=%08x",
		  __entry->cookie, __entry->client, __entry->object, __entry->cmd)
);

TRACE_EVENT(tsgtop_call_answered,
	TP_PROTO(u64 cookie, u32 client, u32 object, u32 cmd, u32 status, u64 ns),
	TP_ARGS(cookie, client, object, cmd, status, ns),
	TP_STRUCT__entry(
		__field(u64, cookie)
		__field(u64, ns)
		__field(u32, client)
		__field(u32, object)
		__field(u32, cmd)
		__field(u32, status)
	),
	TP_fast_assign(
		__entry->cookie = cookie;
		__entry->ns = ns;
		__entry->client = client;
		__entry->object = object;
		__entry->cmd = cmd;
		__entry->status = status;
	),
	TP_printk("cookie=%llu client=%08x object=%08x cmd=%08x status=%#x ns=%llu",
		  __entry->cookie, __entry->client, __entry->object, __entry->cmd,
		  __entry->status, __entry->ns)
);

/* number: the control's command, the alloc's class, 0 for a free. */
TRACE_EVENT(tsgtop_rpc,
	TP_PROTO(u32 function, u32 client, u32 object, u32 number, u32 status, u64 ns),
	TP_ARGS(function, client, object, number, status, ns),
	TP_STRUCT__entry(
		__field(u64, ns)
		__field(u32, function)
		__field(u32, client)
		__field(u32, object)
		__field(u32, number)
		__field(u32, status)
	),
	TP_fast_assign(
		__entry->ns = ns;
		__entry->function = function;
		__entry->client = client;
		__entry->object = object;
		__entry->number = number;
		__entry->status = status;
	),
	TP_printk("function=%u client=%08x object=%08x number=%08x status=%#x ns=%llu",
		  __entry->function, __entry->client, __entry->object, __entry->number,
		  __entry->status, __entry->ns)
);

#endif

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
