// A latency-critical or a best-effort process, to measure what a schedule does.
//
//   lc calibrate                              prints how many steps take a microsecond
//   lc lc SECONDS KERNEL_US PERIOD_US [LOG]   a kernel about every PERIOD_US; prints
//                                             "launch_to_finish_us N" for each
//   lc be SECONDS KERNEL_US [LOG]             kernels back to back; prints the number
//                                             of kernels each second
//
// LOG gets one line a kernel: when it finished (ns since 1970) and how long it
// took from launch to finish (us). STEPS_PER_US, from a calibration on a GPU that
// nobody else uses, makes kernels as long as asked for: without it each process
// calibrates by itself, and beside others comes out too short. With STEADY=1 the
// pauses between LC's kernels are all alike. Build: nvcc -O2 -o lc lc.cu
//
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <cuda_runtime.h>

static void check(cudaError_t e, const char *what)
{
	if (e != cudaSuccess) {
		fprintf(stderr, "lc: %s: %s\n", what, cudaGetErrorString(e));
		exit(1);
	}
}

static int64_t now_ns(clockid_t clock)
{
	timespec t;
	clock_gettime(clock, &t);
	return int64_t(t.tv_sec) * 1000000000 + t.tv_nsec;
}

// A chain of dependent operations: its length is in work, not in time, so that
// being switched out makes it take longer.
__global__ void chain(int64_t n, float *out)
{
	float x = threadIdx.x;
	for (int64_t i = 0; i < n; i++)
		x = fmaf(x, 0.999f, 1.0f);
	if (x == -1.0f) // never, but the compiler cannot know
		*out = x;
}

static void run(int64_t n, float *out)
{
	chain<<<1, 32>>>(n, out);
	check(cudaGetLastError(), "launch");
	check(cudaDeviceSynchronize(), "wait for a kernel");
}

// How many steps take a microsecond: the fastest of some short runs, so that
// others on the GPU do not count.
static double steps_per_us(float *out)
{
	const int64_t n = 200000;
	double best = 1e18;
	for (int i = 0; i < 60; i++) {
		int64_t t = now_ns(CLOCK_MONOTONIC);
		run(n, out);
		double us = (now_ns(CLOCK_MONOTONIC) - t) / 1e3;
		if (us < best)
			best = us;
	}
	return n / best;
}

static double uniform()
{
	static uint64_t s = 88172645463325252ull;
	s ^= s << 13;
	s ^= s >> 7;
	s ^= s << 17;
	return ((s >> 11) + 1) / double(1ull << 53); // over 0
}

static void sleep_until(int64_t t)
{
	timespec at = {time_t(t / 1000000000), long(t % 1000000000)};
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr);
}

int main(int argc, char **argv)
{
	bool lc = argc > 1 && !strcmp(argv[1], "lc"), be = argc > 1 && !strcmp(argv[1], "be");
	if (argc == 2 && !strcmp(argv[1], "calibrate")) {
		float *out;
		check(cudaMalloc(&out, sizeof *out), "allocate");
		printf("%.3f\n", steps_per_us(out));
		return 0;
	}
	if (!(lc && (argc == 5 || argc == 6)) && !(be && (argc == 4 || argc == 5))) {
		fprintf(stderr, "usage: lc calibrate | lc lc SECONDS KERNEL_US PERIOD_US [LOG] | lc be SECONDS KERNEL_US [LOG]\n");
		return 2;
	}
	double seconds = atof(argv[2]), kernel = atof(argv[3]), period = lc ? atof(argv[4]) : 0;
	const char *path = lc && argc == 6 ? argv[5] : be && argc == 5 ? argv[4] : nullptr;
	FILE *log = path ? fopen(path, "w") : nullptr;
	if (path && !log) {
		perror(path);
		return 1;
	}
	setvbuf(stdout, nullptr, _IOLBF, 0);
	if (log)
		setvbuf(log, nullptr, _IOLBF, 0);
	float *out;
	check(cudaSetDeviceFlags(lc ? cudaDeviceScheduleSpin : cudaDeviceScheduleBlockingSync), "set flags");
	check(cudaMalloc(&out, sizeof *out), "allocate");
	const char *steps = getenv("STEPS_PER_US");
	bool steady = getenv("STEADY") != nullptr;
	int64_t n = int64_t(kernel * (steps ? atof(steps) : steps_per_us(out)));
	int64_t begin = now_ns(CLOCK_MONOTONIC), end = begin + int64_t(seconds * 1e9), next = begin, second = begin + 1000000000;
	long kernels = 0;
	for (int64_t t = begin; t < end; t = now_ns(CLOCK_MONOTONIC)) {
		run(n, out);
		int64_t done = now_ns(CLOCK_MONOTONIC);
		double us = (done - t) / 1e3;
		if (log)
			fprintf(log, "%lld %.1f\n", (long long)now_ns(CLOCK_REALTIME), us);
		kernels++;
		if (lc) {
			printf("launch_to_finish_us %.1f\n", us);
			// Requests do not come like a clock: now and then one right after another.
			next = done + int64_t(period * 1e3 * (steady ? 1 : 0.2 + 1.6 * uniform()));
			sleep_until(next);
		} else if (done >= second) {
			printf("kernels %ld\n", kernels);
			kernels = 0;
			second += 1000000000;
		}
	}
	return 0;
}
