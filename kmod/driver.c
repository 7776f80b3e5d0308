// SPDX-License-Identifier: GPL-2.0
/*
 * The interface that the open nvidia.ko exports for its sibling modules, used as
 * it stands: nvidia_get_rm_ops() fills a table of operations after a handshake
 * about the version, and the table's op() takes RM calls with kernel privilege.
 *
 * Kept from 550 to 595: the offsets of the table and of the request, the numbers
 * and sizes of the controls in command.c. Not kept: the arity of open_gpu and
 * close_gpu, which are not called here. A version outside the table is refused.
 *
 * nvidia.ko is held only from rm_driver_get() to rm_driver_put(), so this module
 * neither keeps it from being unloaded nor needs it to be there first.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kobject.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/suspend.h>

#include "tsgtop.h"

#define OP_NV04_CONTROL 0x36

/* The table, of which only the marked members are used. */
struct rm_ops {
	const char *version_string;			/* in and out */
	u8 system_info[8];
	int (*alloc_stack)(void **sp);			/* used */
	void (*free_stack)(void *sp);			/* used */
	void *enumerate_gpus;
	void *open_gpu;
	void *close_gpu;
	void (*op)(void *sp, void *request);		/* used */
	void *set_callbacks;
};

static_assert(offsetof(struct rm_ops, alloc_stack) == 0x10);
static_assert(offsetof(struct rm_ops, op) == 0x38);
static_assert(sizeof(struct rm_ops) == 0x48);

/* A control, as op() takes it. */
struct rm_request {
	u32 op;
	u32 pad;
	u32 client;
	u32 object;
	u32 cmd;
	u32 flags;
	u64 params;	/* a kernel address */
	u32 params_size;
	u32 status;
	u8 rest[64];	/* other calls' parameters are longer */
};

static_assert(offsetof(struct rm_request, params) == 0x18);
static_assert(offsetof(struct rm_request, status) == 0x24);

struct rm_driver {
	struct rm_ops ops;
	void *stack;
	bool unique_ids;
};

/* Branches of the driver whose layout was compared in its source. */
static const struct {
	const char *prefix;
	bool unique_ids;	/* has control 0x20801123 */
} versions[] = {
	{ "550.", false },
	{ "570.", true },
	{ "575.", true },
	{ "580.", true },
	{ "590.", true },
	{ "595.", true },
};

/* Held for reading while a call is in the driver, for writing while the system
 * goes to sleep: the driver's own entry for sibling modules has no such guard.
 */
static DECLARE_RWSEM(suspend_lock);
static bool suspended;

static DEFINE_MUTEX(said_lock);
static enum tsgtop_why said;	/* the last refusal in the log, so that each stands there once */
static char last_version[32];

static const char * const sentences[] = {
	[TSGTOP_WHY_NO_DRIVER] = "nvidia.ko is not loaded",
	[TSGTOP_WHY_PROPRIETARY] =
		"the proprietary nvidia.ko is loaded; only the open kernel modules give GPL modules their interface",
	[TSGTOP_WHY_NO_SYMBOL] =
		"nvidia.ko does not export nvidia_get_rm_ops to GPL modules; drivers from 570 do",
	[TSGTOP_WHY_VERSION] =
		"this driver version's layout is not known here; tsgtop's module must be updated",
	[TSGTOP_WHY_HANDSHAKE] = "nvidia.ko refused the handshake with its own version",
	[TSGTOP_WHY_SUSPEND] = "the system suspends or resumes",
};

const char *rm_why(enum tsgtop_why why)
{
	if (why < ARRAY_SIZE(sentences) && sentences[why])
		return sentences[why];
	return "";
}

/* Says a refusal in the kernel log once, until another one or a success. */
static void say(enum tsgtop_why why)
{
	mutex_lock(&said_lock);
	if (said != why && *rm_why(why))
		pr_warn("%s%s%s\n", rm_why(why), why == TSGTOP_WHY_VERSION ? ": " : "",
			why == TSGTOP_WHY_VERSION ? last_version : "");
	said = why;
	mutex_unlock(&said_lock);
}

/* Looks nvidia.ko up among the modules, beside which this one stands. */
static bool find_nvidia(bool *proprietary)
{
	struct kobject *k = kset_find_obj(THIS_MODULE->mkobj.kobj.kset, "nvidia");
	struct module *mod;

	*proprietary = false;
	if (!k)
		return false;
	mod = container_of(k, struct module_kobject, kobj)->mod;
	if (mod)
		*proprietary = test_bit(TAINT_PROPRIETARY_MODULE, &mod->taints);
	kobject_put(k);
	return mod;
}

/* The driver's functions are compiled elsewhere and with other flags: a kernel
 * that checks the types of indirect calls would take them for an attack.
 */
static __nocfi enum tsgtop_why handshake(u32 (*get)(struct rm_ops *), struct rm_driver *rm)
{
	size_t i;

	rm->ops.version_string = "";	/* refused, and the true version comes back */
	get(&rm->ops);
	if (!rm->ops.version_string || !*rm->ops.version_string)
		return TSGTOP_WHY_HANDSHAKE;
	mutex_lock(&said_lock);
	strscpy(last_version, rm->ops.version_string, sizeof(last_version));
	mutex_unlock(&said_lock);
	for (i = 0; i < ARRAY_SIZE(versions); i++)
		if (strstarts(rm->ops.version_string, versions[i].prefix))
			break;
	if (i == ARRAY_SIZE(versions))
		return TSGTOP_WHY_VERSION;
	rm->unique_ids = versions[i].unique_ids;
	if (get(&rm->ops) || !rm->ops.op || !rm->ops.alloc_stack || !rm->ops.free_stack)
		return TSGTOP_WHY_HANDSHAKE;
	return rm->ops.alloc_stack(&rm->stack) ? TSGTOP_WHY_MEMORY : TSGTOP_WHY_NONE;
}

/* Takes nvidia.ko, or says why not. Call rm_driver_put() after. */
struct rm_driver *rm_driver_get(enum tsgtop_why *why, int *err)
{
	u32 (*get)(struct rm_ops *ops);
	struct rm_driver *rm;
	bool proprietary;

	down_read(&suspend_lock);
	*why = TSGTOP_WHY_SUSPEND;
	*err = -EBUSY;
	if (suspended)
		goto refuse;
	*why = TSGTOP_WHY_NO_DRIVER;
	*err = -ENODEV;
	if (!find_nvidia(&proprietary))
		goto refuse;
	*why = TSGTOP_WHY_PROPRIETARY;
	*err = -EOPNOTSUPP;
	if (proprietary)
		goto refuse;
	*why = TSGTOP_WHY_NO_SYMBOL;
	get = symbol_get(nvidia_get_rm_ops);
	if (!get)
		goto refuse;
	*why = TSGTOP_WHY_MEMORY;
	*err = -ENOMEM;
	rm = kzalloc(sizeof(*rm), GFP_KERNEL);
	if (!rm)
		goto put;
	*why = handshake(get, rm);
	if (!*why) {
		*err = 0;
		say(TSGTOP_WHY_NONE);
		return rm;
	}
	*err = *why == TSGTOP_WHY_MEMORY ? -ENOMEM : -EOPNOTSUPP;
	kfree(rm);
put:
	symbol_put(nvidia_get_rm_ops);
refuse:
	up_read(&suspend_lock);
	say(*why);
	return NULL;
}

__nocfi void rm_driver_put(struct rm_driver *rm)
{
	rm->ops.free_stack(rm->stack);
	kfree(rm);
	symbol_put(nvidia_get_rm_ops);
	up_read(&suspend_lock);
}

bool rm_has_unique_ids(const struct rm_driver *rm)
{
	return rm->unique_ids;
}

/* One RM control with kernel privilege: sleeps, and for as long as an RPC to the
 * GSP may take (up to 45 s). Gives the NV_STATUS.
 */
__nocfi u32 rm_control(struct rm_driver *rm, u32 client, u32 object, u32 cmd, void *params,
		       u32 size)
{
	struct rm_request request = {
		.op = OP_NV04_CONTROL,
		.client = client,
		.object = object,
		.cmd = cmd,
		.params = (uintptr_t)params,
		.params_size = size,
		.status = 0xffff,	/* NV_ERR_GENERIC, should nothing be written */
	};

	rm->ops.op(rm->stack, &request);
	return request.status;
}

static int on_power(struct notifier_block *nb, unsigned long event, void *unused)
{
	switch (event) {
	case PM_SUSPEND_PREPARE:
	case PM_HIBERNATION_PREPARE:
	case PM_RESTORE_PREPARE:
		down_write(&suspend_lock);	/* waits for the call in the driver */
		suspended = true;
		up_write(&suspend_lock);
		break;
	case PM_POST_SUSPEND:
	case PM_POST_HIBERNATION:
	case PM_POST_RESTORE:
		down_write(&suspend_lock);
		suspended = false;
		up_write(&suspend_lock);
		break;
	}
	return NOTIFY_DONE;
}

static struct notifier_block power_nb = { .notifier_call = on_power };

size_t rm_driver_describe(char *buf, size_t size)
{
	struct rm_driver *rm;
	enum tsgtop_why why;
	int err;

	rm = rm_driver_get(&why, &err);
	if (!rm)
		return scnprintf(buf, size, "driver: not usable (%s)\n", rm_why(why));
	rm_driver_put(rm);
	mutex_lock(&said_lock);
	size = scnprintf(buf, size, "driver: %s\n", last_version);
	mutex_unlock(&said_lock);
	return size;
}

/* Refuses to load beside a driver that it could never use; without a driver it
 * loads and looks again at each call.
 */
int rm_driver_init(void)
{
	struct rm_driver *rm;
	enum tsgtop_why why;
	int err;

	err = register_pm_notifier(&power_nb);
	if (err)
		return err;
	rm = rm_driver_get(&why, &err);
	if (rm) {
		rm_driver_put(rm);
		return 0;
	}
	if (why == TSGTOP_WHY_NO_DRIVER)
		return 0;
	unregister_pm_notifier(&power_nb);
	return err;
}

void rm_driver_exit(void)
{
	unregister_pm_notifier(&power_nb);
}
