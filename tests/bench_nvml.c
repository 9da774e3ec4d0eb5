/*
 * How fast the mock NVML is, against a pread of the kernel's own sysfs in the same run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <dlfcn.h>
#include <pthread.h>

#include "mocknvml/nvml.h"
#include "tests/bench_mounted.h"

static const char sysfs_file[] = "/sys/kernel/mm/transparent_hugepage/enabled";

static __typeof__(&nvmlInit_v2) init;
static __typeof__(&nvmlShutdown) finish;
static __typeof__(&nvmlDeviceGetHandleByIndex_v2) by_index;
static __typeof__(&nvmlDeviceGetPowerUsage) power_usage;
static __typeof__(&nvmlDeviceGetName) get_name;
static __typeof__(&nvmlDeviceGetSamples) get_samples;
static nvmlDevice_t device;

/* One round, in us a call. */
static double round_us(void (*call)(int), int argument, int times)
{
    int64_t start = bench_now_ns();

    for (int i = 0; i < times; i++)
        call(argument);
    return (double)(bench_now_ns() - start) / times / 1000;
}

/* The least of several rounds: what the machine does besides is not the library's. The native ones lie between. */
static double time_us(void (*call)(int), int times, void (*native)(int), int argument,
                      double *native_us)
{
    double best = 1e9;

    *native_us = 1e9;
    for (int r = 0; r < 15; r++) {
        double it = round_us(native, argument, times), us = round_us(call, 0, times);

        *native_us = it < *native_us ? it : *native_us;
        best = us < best ? us : best;
    }
    return best;
}

static void read_sysfs(int fd)
{
    char text[256];

    if (pread(fd, text, sizeof(text), 0) <= 0)
        bench_die(sysfs_file);
}

static void read_power(int unused)
{
    unsigned int mw;

    (void)unused;
    power_usage(device, &mw);
}

static void read_name(int unused)
{
    char name[96];

    (void)unused;
    get_name(device, name, sizeof(name));
}

static void read_samples(int unused)
{
    nvmlSample_t samples[128];
    unsigned int count = 128;
    nvmlValueType_t type;

    (void)unused;
    get_samples(device, NVML_TOTAL_POWER_SAMPLES, 0, &type, &count, samples);
}

static void init_shutdown(int unused)
{
    (void)unused;
    init();
    finish();
}

/* --- threads --------------------------------------------------------------------------------- */

enum { THREADS = 8, CALLS = 1000, ROUNDS = 200 };

static nvmlDevice_t devices[THREADS];
static pthread_barrier_t together;

static void *many_calls(void *number)
{
    unsigned int mw;

    pthread_barrier_wait(&together);
    for (int i = 0; i < CALLS; i++)
        power_usage(devices[(uintptr_t)number], &mw);
    return NULL;
}

static void *many_reads(void *number)
{
    int fd = open(sysfs_file, O_RDONLY | O_CLOEXEC);

    (void)number;
    pthread_barrier_wait(&together);
    for (int i = 0; i < CALLS; i++)
        read_sysfs(fd);
    close(fd);
    return NULL;
}

/* Calls per microsecond of so many threads together. */
static double throughput(void *(*work)(void *), int threads)
{
    pthread_t ids[THREADS];
    int64_t start;

    pthread_barrier_init(&together, NULL, (unsigned)threads + 1);
    for (int i = 0; i < threads; i++)
        pthread_create(&ids[i], NULL, work, (void *)(uintptr_t)i);
    start = bench_now_ns();
    pthread_barrier_wait(&together);
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    pthread_barrier_destroy(&together);
    return (double)threads * CALLS * 1000 / (double)(bench_now_ns() - start);
}

/* How many times the work of one thread eight get done: the best rounds of each, which the machine did not disturb. */
static double scaling(void *(*work)(void *))
{
    double one = 0, all = 0;

    for (int r = 0; r < ROUNDS; r++) {
        double got = throughput(work, 1);

        one = got > one ? got : one;
        got = throughput(work, THREADS);
        all = got > all ? got : all;
    }
    return all / one;
}

static void *symbol(void *handle, const char *name)
{
    void *found = dlsym(handle, name);

    if (!found)
        bench_die(name);
    return found;
}

int main(int argc, char **argv)
{
    char library[PATH_MAX + 32];
    double native, value;
    struct stat st;
    void *handle;
    int sysfs;

    (void)argc;
    bench_prepare(argv[0]);
    snprintf(library, sizeof(library), "%s/libnvidia-ml.so.1", bench_build);
    bench_mount("--gpus", "8");
    atexit(bench_unmount);
    setenv("FAKEGPUFS_ROOT", bench_place, 1);
    handle = dlopen(library, RTLD_NOW);
    if (!handle || stat(library, &st) < 0)
        bench_die(library);
    init = (__typeof__(init))symbol(handle, "nvmlInit_v2");
    finish = (__typeof__(finish))symbol(handle, "nvmlShutdown");
    by_index = (__typeof__(by_index))symbol(handle, "nvmlDeviceGetHandleByIndex_v2");
    power_usage = (__typeof__(power_usage))symbol(handle, "nvmlDeviceGetPowerUsage");
    get_name = (__typeof__(get_name))symbol(handle, "nvmlDeviceGetName");
    get_samples = (__typeof__(get_samples))symbol(handle, "nvmlDeviceGetSamples");
    sysfs = open(sysfs_file, O_RDONLY | O_CLOEXEC);
    if (sysfs < 0 || init() != NVML_SUCCESS || by_index(0, &device) != NVML_SUCCESS)
        bench_die("init");

    bench_heading("mock NVML, 8 GPUs");
    value = time_us(read_power, 10000, read_sysfs, sysfs, &native);
    bench_row("a scalar: nvmlDeviceGetPowerUsage", value, "us", native * 1.5, native,
              "a pread of a sysfs file");
    value = time_us(read_name, 10000, read_sysfs, sysfs, &native);
    bench_row("a text: nvmlDeviceGetName", value, "us", 0, native, "a pread of a sysfs file");
    value = time_us(read_samples, 200, read_sysfs, sysfs, &native);
    bench_row("12 s of history: nvmlDeviceGetSamples", value, "us", 0, native,
              "a pread of a sysfs file");
    for (unsigned int i = 0; i < THREADS; i++)
        by_index(i, &devices[i]);
    value = scaling(many_calls);
    bench_row_least("8 threads, each on its GPU, against one", value, "x", 1.7, scaling(many_reads),
                    "that of preads of sysfs");
    finish();
    value = time_us(init_shutdown, 100, read_sysfs, sysfs, &native);
    bench_row("nvmlInit + nvmlShutdown", value, "us", 1000, native, "a pread of a sysfs file");
    bench_row("size of the library", (double)st.st_size / 1000, "kB", 400, 0, "");
    return 0;
}
