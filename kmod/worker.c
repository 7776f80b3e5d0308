// SPDX-License-Identifier: GPL-2.0
/*
 * Calls in flight. A worker makes the call, because it can take as long as the
 * driver's RPC timeout; who asked waits for it killable and with a limit, and
 * gets a cookie to ask again. So an eBPF program never holds back the kernel's
 * RCU for longer than TSGTOP_MAX_WAIT_MS.
 */
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "tsgtop.h"

#define MAX_IN_FLIGHT	16
#define MAX_RECENT	64

static unsigned int rate = 2000;
module_param(rate, uint, 0644);
MODULE_PARM_DESC(rate, "most calls a second");

static struct workqueue_struct *workers;
static DEFINE_SPINLOCK(lock);		/* everything below */
static LIST_HEAD(recent);		/* newest first */
static unsigned int n_recent, in_flight;
static u64 next_cookie = 1;
static unsigned long window;		/* of the rate limit: jiffies at its start */
static unsigned int window_calls;

static void call_free(struct kref *ref)
{
	kfree(container_of(ref, struct tsgtop_call, ref));
}

void worker_put(struct tsgtop_call *call)
{
	kref_put(&call->ref, call_free);
}

unsigned int worker_in_flight(void)
{
	return READ_ONCE(in_flight);
}

static void work(struct work_struct *w)
{
	struct tsgtop_call *call = container_of(w, struct tsgtop_call, work);

	tsgtop_perform(call);
	spin_lock(&lock);
	in_flight--;
	spin_unlock(&lock);
	complete_all(&call->done);
	worker_put(call);
	/* worker_exit() waits for this function's end, so its text stays */
	module_put(THIS_MODULE);
}

/* Under the lock: room for one more call, or why not. */
static enum tsgtop_why admit(void)
{
	if (time_after(jiffies, window + HZ)) {
		window = jiffies;
		window_calls = 0;
	}
	if (in_flight >= MAX_IN_FLIGHT || window_calls >= READ_ONCE(rate))
		return TSGTOP_WHY_RATE;
	if (!try_module_get(THIS_MODULE))	/* so that a call in flight is seen as a use */
		return TSGTOP_WHY_UNLOADING;
	window_calls++;
	in_flight++;
	return TSGTOP_WHY_NONE;
}

/* Starts a call. The caller gets a reference, or NULL with why and errno. */
struct tsgtop_call *worker_submit(enum tsgtop_op op, const struct tsgtop_target *target,
				  u64 value, struct tsgtop_result *result, int *err)
{
	struct tsgtop_call *call, *oldest = NULL;

	call = kzalloc(sizeof(*call), GFP_KERNEL);
	if (!call) {
		result->why = TSGTOP_WHY_MEMORY;
		*err = -ENOMEM;
		return NULL;
	}
	kref_init(&call->ref);
	INIT_WORK(&call->work, work);
	init_completion(&call->done);
	call->op = op;
	call->target = *target;
	call->value = value;
	spin_lock(&lock);
	result->why = admit();
	if (result->why) {
		spin_unlock(&lock);
		kfree(call);
		*err = result->why == TSGTOP_WHY_RATE ? -EAGAIN : -ESHUTDOWN;
		return NULL;
	}
	call->result.cookie = next_cookie++;
	kref_get(&call->ref);	/* the list's */
	list_add(&call->recent, &recent);
	if (++n_recent > MAX_RECENT) {
		oldest = list_last_entry(&recent, struct tsgtop_call, recent);
		list_del(&oldest->recent);
		n_recent--;
	}
	spin_unlock(&lock);
	if (oldest)
		worker_put(oldest);
	kref_get(&call->ref);	/* the worker's */
	queue_work(workers, &call->work);
	return call;
}

struct tsgtop_call *worker_find(u64 cookie)
{
	struct tsgtop_call *call, *found = NULL;

	spin_lock(&lock);
	list_for_each_entry(call, &recent, recent) {
		if (call->result.cookie == cookie) {
			kref_get(&call->ref);
			found = call;
			break;
		}
	}
	spin_unlock(&lock);
	return found;
}

/* Waits at most limit_ms. 0 or the call's errno; -EINPROGRESS with only the
 * cookie in the result where there is no answer yet.
 */
int worker_wait(struct tsgtop_call *call, u32 limit_ms, struct tsgtop_result *result)
{
	long left;

	*result = (struct tsgtop_result) { .cookie = call->result.cookie };
	limit_ms = min_t(u32, limit_ms, TSGTOP_MAX_WAIT_MS);
	left = wait_for_completion_killable_timeout(&call->done, msecs_to_jiffies(limit_ms));
	if (left <= 0 && !completion_done(&call->done))
		return -EINPROGRESS;
	*result = call->result;
	return call->err;
}

int worker_init(void)
{
	workers = alloc_workqueue("tsgtop", WQ_UNBOUND, MAX_IN_FLIGHT);
	return workers ? 0 : -ENOMEM;
}

void worker_exit(void)
{
	struct tsgtop_call *call, *next;

	destroy_workqueue(workers);
	list_for_each_entry_safe(call, next, &recent, recent)
		worker_put(call);
}
