/*
 * A stand-in for NVML's library with one GPU. The environment says how it
 * behaves: NVML_STUB_INIT is what nvmlInit_v2 returns, NVML_STUB_CRASH and
 * NVML_STUB_HANG the call in which it does so. A function that is not here is
 * one that an old library does not have.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OK 0
#define NOT_SUPPORTED 3

static int behave(const char *call)
{
	const char *crash = getenv("NVML_STUB_CRASH"), *hang = getenv("NVML_STUB_HANG");

	if (crash && !strcmp(crash, call))
		*(volatile int *)8 = 1;
	while (hang && !strcmp(hang, call))
		pause();
	return OK;
}

int nvmlInit_v2(void)
{
	const char *ret = getenv("NVML_STUB_INIT");

	behave("init");
	return ret ? atoi(ret) : OK;
}

int nvmlShutdown(void)
{
	return OK;
}

const char *nvmlErrorString(int ret)
{
	return ret == 18 ? "Driver/library version mismatch" : "another error";
}

int nvmlSystemGetDriverVersion(char *to, unsigned int n)
{
	strncpy(to, "580.159.04", n);
	return OK;
}

int nvmlDeviceGetCount_v2(unsigned int *n)
{
	*n = 1;
	return OK;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int i, void **h)
{
	*h = (void *)0x1000;
	return i ? 2 : OK;
}

struct pci {
	char legacy[16];
	unsigned int domain, bus, device, id, subsystem;
	char bus_id[32];
};

int nvmlDeviceGetPciInfo_v3(void *h, struct pci *to)
{
	strcpy(to->bus_id, "00000000:1B:00.0");
	return OK;
}

int nvmlDeviceGetUUID(void *h, char *to, unsigned int n)
{
	strncpy(to, "GPU-1234", n);
	return OK;
}

int nvmlDeviceGetName(void *h, char *to, unsigned int n)
{
	strncpy(to, "NVIDIA H200", n);
	return OK;
}

int nvmlDeviceGetMigMode(void *h, unsigned int *now, unsigned int *later)
{
	return NOT_SUPPORTED;
}

int nvmlDeviceGetPersistenceMode(void *h, unsigned int *mode)
{
	*mode = 1;
	return OK;
}

struct memory {
	unsigned long long total, free, used;
};

int nvmlDeviceGetMemoryInfo(void *h, struct memory *m)
{
	m->total = 1000;
	m->free = 400;
	m->used = 600;
	return OK;
}

struct utilization {
	unsigned int gpu, memory;
};

int nvmlDeviceGetUtilizationRates(void *h, struct utilization *u)
{
	behave("utilization");
	u->gpu = 92;
	u->memory = 10;
	return OK;
}

int nvmlDeviceGetPowerUsage(void *h, unsigned int *mw)
{
	return NOT_SUPPORTED;
}

int nvmlDeviceGetTemperature(void *h, int sensor, unsigned int *c)
{
	*c = 61;
	return OK;
}

struct process {
	unsigned int pid;
	unsigned long long used;
	unsigned int gi, ci;
};

int nvmlDeviceGetComputeRunningProcesses_v3(void *h, unsigned int *n, struct process *to)
{
	static const struct process list[] = {
		{ 479, 100, 1, 0 }, { 479, 50, 2, 0 }, { 480, ~0ull, ~0u, ~0u }, { 481, 7, ~0u, ~0u },
	};

	if (*n < 4) {
		*n = 4;
		return 7; /* insufficient size */
	}
	*n = 4;
	memcpy(to, list, sizeof(list));
	return OK;
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(void *h, unsigned int *n, struct process *to)
{
	if (*n < 1) {
		*n = 1;
		return 7;
	}
	*n = 1;
	to[0] = (struct process){ 481, 9, ~0u, ~0u };
	return OK;
}
