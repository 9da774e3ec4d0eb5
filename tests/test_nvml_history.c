/*
 * What NVML tells of the past and of processes: samples, utilization, accounts, MIG, each compared with the
 * files of the mount and across processes and workers.
 *
 * The node's clock stands still but for the steps that it is told to make, so every number is known.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <limits.h>

#include "sim/metric.h"
#include "tests/mounted.h"
#include "tests/nvml_loaded.h"

static nvmlDevice_t device(unsigned int index)
{
    nvmlDevice_t found = NULL;

    if (CALL(nvmlDeviceGetHandleByIndex_v2)(index, &found) != NVML_SUCCESS)
        bail("there is no GPU %u", index);
    return found;
}

static void load_library(void)
{
    const char *build = getenv("BUILD");
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/libnvidia-ml.so.1", build ? build : "build");
    nvml_load(path);
    setenv("FAKEGPUFS_ROOT", mounted.root, 1);
    if (CALL(nvmlInit_v2)() != NVML_SUCCESS)
        bail("cannot init");
}

static void step(const char *time)
{
    char text[32];

    snprintf(text, sizeof(text), "step %s", time);
    if (file_put("control/clock", text) < 0)
        bail("the clock does not step");
}

/* A workload with these files, as "name", "text" pairs up to NULL. */
static void start(const char *name, const char *const *files)
{
    if (mkdir(file_path("workloads/%s", name), 0755) < 0)
        bail("mkdir %s: %s", name, strerror(errno));
    for (; *files; files += 2) {
        char path[128];

        snprintf(path, sizeof(path), "workloads/%s/%s", name, files[0]);
        is_int(file_put(path, files[1]), 0, "%s of %s is %s", files[0], name, files[1]);
    }
}
#define START(name, ...) start(name, (const char *const[]){ __VA_ARGS__, NULL })

/* --- samples --------------------------------------------------------------------------------- */

struct samples {
    nvmlReturn_t result;
    nvmlValueType_t type;
    unsigned int count;
    nvmlSample_t items[HISTORY_MOMENTS];
};

static struct samples samples_since(unsigned int gpu, nvmlSamplingType_t type,
                                    unsigned long long after_us)
{
    struct samples s;

    memset(&s, 0, sizeof(s));
    s.count = HISTORY_MOMENTS;
    s.result = CALL(nvmlDeviceGetSamples)(device(gpu), type, after_us, &s.type, &s.count, s.items);
    return s;
}

/* How many samples are not those of column `type` in gpus/<gpu>/samples. */
static int differs_from_file(const struct samples *s, unsigned int gpu, int type)
{
    char path[64], *text, *line, *rest = NULL;
    unsigned int n = 0;
    int wrong = 0;

    snprintf(path, sizeof(path), "gpus/%u/samples", gpu);
    text = strdup(file_text(path));
    for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        unsigned long long time_us, value;
        char *at;

        if (*line == '#')
            continue;
        time_us = strtoull(line, &at, 10);
        for (int column = 0; column < type; column++)
            at += 1 + strcspn(at + 1, " ");
        value = strtoull(at, NULL, 10);
        wrong += n >= s->count || s->items[n].timeStamp != time_us ||
                 s->items[n].sampleValue.uiVal != value;
        n++;
    }
    free(text);
    return wrong + (int)(s->count - n);
}

static void samples(void)
{
    static const nvmlSamplingType_t types[] = {
        NVML_TOTAL_POWER_SAMPLES,     NVML_GPU_UTILIZATION_SAMPLES, NVML_MEMORY_UTILIZATION_SAMPLES,
        NVML_ENC_UTILIZATION_SAMPLES, NVML_DEC_UTILIZATION_SAMPLES, NVML_PROCESSOR_CLK_SAMPLES,
        NVML_MEMORY_CLK_SAMPLES,      NVML_JPG_UTILIZATION_SAMPLES, NVML_OFA_UTILIZATION_SAMPLES,
    };
    struct samples s, later;
    nvmlValueType_t type;
    unsigned int count = 7;
    int64_t before, energy = 0;

    is_int(CALL(nvmlDeviceGetSamples)(device(0), NVML_TOTAL_POWER_SAMPLES, 0, &type, &count, NULL),
           NVML_SUCCESS, "how much room to have");
    is_int(count, HISTORY_MOMENTS, "for all that are kept");
    START("load", "devices", "0", "activity",
          "[{time: 3s, utilization: 90}, {time: 3s, utilization: 20}]", "repeat", "0");
    step("30s");
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        s = samples_since(0, types[i], 0);
        is_int(s.result, NVML_SUCCESS, "samples of type %d", (int)types[i]);
        is_int(s.type, NVML_VALUE_TYPE_UNSIGNED_INT, "are unsigned");
        is_int(differs_from_file(&s, 0, (int)types[i]), 0, "and those of the file");
    }
    is_int(samples_since(0, NVML_MODULE_POWER_SAMPLES, 0).result, NVML_ERROR_NOT_SUPPORTED,
           "an A100 has no module power");
    is_int(samples_since(0, (nvmlSamplingType_t)99, 0).result, NVML_ERROR_INVALID_ARGUMENT,
           "there is no type 99");
    s = samples_since(0, NVML_TOTAL_POWER_SAMPLES, 0);
    is_int((int64_t)(s.items[119].timeStamp - s.items[0].timeStamp), 119 * 100000,
           "100 ms from each to the next, in us");
    later = samples_since(0, NVML_TOTAL_POWER_SAMPLES, s.items[99].timeStamp);
    is_int(later.count, 20, "only what is newer than what was seen");
    is_int((int64_t)later.items[0].timeStamp, (int64_t)s.items[100].timeStamp,
           "from the next one on");
    is_int(samples_since(0, NVML_TOTAL_POWER_SAMPLES, s.items[119].timeStamp).result,
           NVML_ERROR_NOT_FOUND, "nothing newer: not found");
    before = file_number("gpus/0/metrics/energy_total_mj");
    step("1s");
    later = samples_since(0, NVML_TOTAL_POWER_SAMPLES, s.items[119].timeStamp);
    is_int(later.count, 10, "a second later there are ten more");
    for (unsigned int i = 0; i < later.count; i++)
        energy += later.items[i].sampleValue.uiVal;
    is_real((double)(file_number("gpus/0/metrics/energy_total_mj") - before), (double)energy / 10,
            2, "whose power is the energy used meanwhile");
    count = 3;
    is_int(CALL(nvmlDeviceGetSamples)(device(0), NVML_TOTAL_POWER_SAMPLES, 0, &type, &count,
                                      s.items),
           NVML_SUCCESS, "less room than there are");
    is_int(count, 3, "gets as many as fit");
    is_int(CALL(nvmlDeviceGetSamples)(device(0), NVML_TOTAL_POWER_SAMPLES, 0, &type, NULL, s.items),
           NVML_ERROR_INVALID_ARGUMENT, "without a count nothing");
}

/* What another process, which has loaded the library itself, sees. */
static struct samples others_samples(void)
{
    struct samples s = { 0 };
    int pipes[2];
    pid_t child;

    if (pipe(pipes) < 0 || (child = child_start()) < 0)
        bail("no other process");
    if (child == 0) {
        CALL(nvmlShutdown)();
        if (CALL(nvmlInit_v2)() != NVML_SUCCESS)
            _exit(1);
        s = samples_since(0, NVML_TOTAL_POWER_SAMPLES, 0);
        _exit(write(pipes[1], &s, sizeof(s)) != (ssize_t)sizeof(s));
    }
    close(pipes[1]);
    for (size_t used = 0; used < sizeof(s);) {
        ssize_t n = read(pipes[0], (char *)&s + used, sizeof(s) - used);

        if (n <= 0)
            break;
        used += (size_t)n;
    }
    close(pipes[0]);
    is_int(child_end(child), 0, "another process");
    return s;
}

static void seen_alike(void)
{
    struct samples mine = samples_since(0, NVML_TOTAL_POWER_SAMPLES, 0), its = others_samples();

    is_int(its.count, mine.count, "sees as many samples");
    is_mem(&its, &mine, sizeof(mine), "and the same");
    ok(kill_worker(), "the worker is killed");
    its = samples_since(0, NVML_TOTAL_POWER_SAMPLES, 0);
    is_mem(&its, &mine, sizeof(mine), "the history is not lost with it");
    its = others_samples();
    is_mem(&its, &mine, sizeof(mine), "for nobody");
    step("500ms");
    mine = samples_since(0, NVML_TOTAL_POWER_SAMPLES, mine.items[119].timeStamp);
    is_int(mine.count, 5, "and goes on");
}

/* --- processes ------------------------------------------------------------------------------- */

static void busy_processes(void)
{
    nvmlProcessUtilizationSample_t items[4];
    nvmlProcessUtilizationInfo_v1_t infos[4];
    nvmlProcessesUtilizationInfo_v1_t info = { .version = NVML_STRUCT_VERSION(sizeof(info), 1) };
    unsigned int count = 4;
    unsigned long long seen;
    char name[64];

    is_int(CALL(nvmlDeviceGetProcessUtilization)(device(1), items, &count, 0), NVML_ERROR_NOT_FOUND,
           "nothing runs: not found");
    START("half", "devices", "1", "pid", "3000001", "activity", "[{utilization: 60, encoder: 30}]");
    START("more", "devices", "1", "pid", "3000002", "activity",
          "[{utilization: 90, memory_utilization: 10, decoder: 7}]");
    START("idle", "devices", "1", "pid", "3000003", "memory", "1GiB");
    step("1s");
    count = 0;
    is_int(CALL(nvmlDeviceGetProcessUtilization)(device(1), NULL, &count, 0),
           NVML_ERROR_INSUFFICIENT_SIZE, "asks for room");
    is_int(count, 2, "for those that are busy");
    is_int(CALL(nvmlDeviceGetProcessUtilization)(device(1), items, &count, 0), NVML_SUCCESS,
           "and takes it");
    is_int(items[0].pid, 3000001, "the first");
    is_int(items[0].smUtil, 40, "gets its part of a GPU that is asked for 150 %%");
    is_int(items[0].encUtil, 30, "and of the encoder, which is its alone");
    is_int(items[1].smUtil, 60, "the second gets the rest");
    is_int(items[1].memUtil, 10, "its own memory");
    is_int(items[1].decUtil, 7, "and decoder");
    seen = items[0].timeStamp;
    is_int((int64_t)seen,
           (int64_t)samples_since(1, NVML_TOTAL_POWER_SAMPLES, 0).items[119].timeStamp,
           "at the time of the newest sample");
    count = 4;
    is_int(CALL(nvmlDeviceGetProcessUtilization)(device(1), items, &count, seen),
           NVML_ERROR_NOT_FOUND, "what was seen is not told again");
    step("100ms");
    count = 4;
    is_int(CALL(nvmlDeviceGetProcessUtilization)(device(1), items, &count, seen), NVML_SUCCESS,
           "what is newer is");
    is_int((int64_t)items[0].timeStamp, (int64_t)seen + 100000, "with its time");
    is_int(CALL(nvmlDeviceGetProcessesUtilizationInfo)(device(1), &info),
           NVML_ERROR_INSUFFICIENT_SIZE, "the other list asks for room, too");
    info.procUtilArray = infos;
    is_int(CALL(nvmlDeviceGetProcessesUtilizationInfo)(device(1), &info), NVML_SUCCESS,
           "and takes it");
    is_int(info.processSamplesCount, 2, "has the same");
    is_int(infos[1].decUtil, 7, "values");
    info.lastSeenTimeStamp = infos[0].timeStamp;
    is_int(CALL(nvmlDeviceGetProcessesUtilizationInfo)(device(1), &info), NVML_ERROR_NOT_FOUND,
           "only once");
    info.version++;
    is_int(CALL(nvmlDeviceGetProcessesUtilizationInfo)(device(1), &info),
           NVML_ERROR_ARGUMENT_VERSION_MISMATCH, "a wrong version is refused");
    is_int(CALL(nvmlSystemGetProcessName)(3000001, name, sizeof(name)), NVML_SUCCESS, "a name");
    is_str(name, "half", "is that of the workload");
}

/* More lines than fit into any buffer of fixed size. */
static void many_processes(void)
{
    enum { MANY = 300 };
    nvmlProcessInfo_t infos[MANY + 4];
    char name[64];
    unsigned int count = 0;
    int made = 0;

    for (int i = 0; i < MANY; i++) {
        char path[64];

        made += mkdir(file_path("workloads/a-rather-long-name-for-a-workload-%d", i), 0755) == 0;
        snprintf(path, sizeof(path), "workloads/a-rather-long-name-for-a-workload-%d/devices", i);
        made += file_put(path, "2") == 0;
    }
    is_int(made, 2 * MANY, "300 workloads");
    is_int(CALL(nvmlDeviceGetComputeRunningProcesses_v3)(device(2), &count, NULL),
           NVML_ERROR_INSUFFICIENT_SIZE, "need room");
    is_int(count, MANY, "for 300");
    is_int(CALL(nvmlDeviceGetComputeRunningProcesses_v3)(device(2), &count, infos), NVML_SUCCESS,
           "and get it");
    is_int(CALL(nvmlSystemGetProcessName)(infos[MANY - 1].pid, name, sizeof(name)), NVML_SUCCESS,
           "the last one");
    is_str(name, "a-rather-long-name-for-a-workload-299", "has its name");
    is_int(infos[MANY - 1].gpuInstanceId, 0xFFFFFFFF, "none of them on a MIG instance");
    for (int i = 0; i < MANY; i++)
        rmdir(file_path("workloads/a-rather-long-name-for-a-workload-%d", i));
}

/* --- accounting ------------------------------------------------------------------------------ */

static int set_accounting(const char *unused)
{
    (void)unused;
    return (int)CALL(nvmlDeviceSetAccountingMode)(device(1), NVML_FEATURE_DISABLED) * -1;
}

static void accounting(void)
{
    nvmlEnableState_t mode;
    nvmlAccountingStats_t stats;
    nvmlAccountingStats_v2_t newer = { .pid = 3000010 };
    unsigned int count = 8, pids[8];

    is_int(CALL(nvmlDeviceGetAccountingMode)(device(1), &mode), NVML_SUCCESS, "accounting");
    is_int(mode, NVML_FEATURE_DISABLED, "is off at first");
    is_int(CALL(nvmlDeviceGetAccountingPids)(device(1), &count, pids), NVML_ERROR_NOT_SUPPORTED,
           "and has no processes");
    is_int(CALL(nvmlDeviceGetAccountingStats)(device(1), 3000001, &stats), NVML_ERROR_NOT_SUPPORTED,
           "nor accounts");
    is_int(CALL(nvmlDeviceGetAccountingBufferSize)(device(1), &count), NVML_SUCCESS, "its buffer");
    is_int(count, 4000, "holds 4000");
    is_int(CALL(nvmlDeviceSetAccountingMode)(device(1), NVML_FEATURE_ENABLED), NVML_SUCCESS, "on");
    is_str(file_text("gpus/1/control/accounting_mode"), "1", "as the file says");
    is_int(-as_user(65534, set_accounting, ""), NVML_ERROR_NO_PERMISSION,
           "not everybody may switch it");
    rmdir(file_path("workloads/half"));
    rmdir(file_path("workloads/more"));
    START("job", "devices", "1", "pid", "3000010", "memory", "3GiB", "activity",
          "[{time: 3s, utilization: 100}, {time: 1s, utilization: 0}]");
    step("2s");
    count = 8;
    is_int(CALL(nvmlDeviceGetAccountingPids)(device(1), &count, pids), NVML_SUCCESS, "processes");
    is_int(count, 1, "that began since then");
    is_int(pids[0], 3000010, "that one");
    is_int(CALL(nvmlDeviceGetAccountingStats)(device(1), 3000010, &stats), NVML_SUCCESS,
           "its account");
    is_int(stats.isRunning, 1, "is of one that runs");
    is_int((int64_t)stats.time, 0, "whose time is not over");
    is_int(stats.gpuUtilization, 100, "and which uses all of the GPU");
    step("10s");
    ok(kill_worker(), "it has ended, and the worker was killed");
    is_int(CALL(nvmlDeviceGetAccountingStats)(device(1), 3000010, &stats), NVML_SUCCESS,
           "its account is still there");
    is_int(stats.isRunning, 0, "of one that ended");
    is_int((int64_t)stats.time, 4000, "after 4000 ms");
    is_int(stats.gpuUtilization, 75, "of which it used the GPU in three of four");
    is_int((int64_t)stats.maxMemoryUsage, INT64_C(3) << 30, "with so much memory at most");
    is_int(CALL(nvmlDeviceGetAccountingStats_v2)(device(1), &newer), NVML_SUCCESS,
           "the new structure");
    is_int(newer.gpuUtilization, 75, "says the same");
    is_int((int64_t)newer.startTime, (int64_t)stats.startTime, "of the same");
    is_int(newer.sampleCount, 40, "in samples");
    is_int((int64_t)newer.sumGpuUtil, 40 * 7500, "and their sum");
    is_int(CALL(nvmlDeviceGetAccountingStats)(device(1), 1, &stats), NVML_ERROR_NOT_FOUND,
           "others have none");
    is_int(CALL(nvmlDeviceClearAccountingPids)(device(1)), NVML_SUCCESS, "cleared");
    count = 8;
    is_int(CALL(nvmlDeviceGetAccountingPids)(device(1), &count, pids), NVML_SUCCESS, "what ended");
    is_int(count, 0, "is gone");
}

/* --- MIG ------------------------------------------------------------------------------------- */

static nvmlDevice_t mig_device(unsigned int index)
{
    nvmlDevice_t found = NULL;

    if (CALL(nvmlDeviceGetMigDeviceHandleByIndex)(device(3), index, &found) != NVML_SUCCESS)
        bail("there is no MIG device %u", index);
    return found;
}

static void mig(void)
{
    nvmlProcessInfo_t infos[4];
    nvmlProcessDetail_v1_t details[4];
    nvmlProcessDetailList_v1_t list = { .version = NVML_STRUCT_VERSION(sizeof(list), 1),
                                        .mode = NVML_PROCESS_MODE_COMPUTE,
                                        .numProcArrayEntries = 4,
                                        .procArray = details };
    nvmlProcessUtilizationSample_t busy[4];
    nvmlMemory_t memory;
    nvmlUtilization_t utilization;
    unsigned int count = 4, gi[2];
    char uuid[96], devices[16];

    is_int(file_put("gpus/3/control/mig_mode", "1"), 0, "MIG is switched on");
    is_int(file_put("gpus/3/mig/instances", "create 3g.20gb"), 0, "an instance");
    is_int(file_put("gpus/3/mig/instances", "create 3g.20gb"), 0, "and another");
    for (unsigned int i = 0; i < 2; i++)
        CALL(nvmlDeviceGetGpuInstanceId)(mig_device(i), &gi[i]);
    CALL(nvmlDeviceGetUUID)(mig_device(0), uuid, sizeof(uuid));
    snprintf(devices, sizeof(devices), "3:%u", gi[1]);
    START("first", "devices", uuid, "pid", "3000021", "memory", "5GiB", "activity",
          "[{utilization: 80}]");
    START("second", "devices", devices, "pid", "3000022", "memory", "7GiB", "activity",
          "[{utilization: 50}]");
    step("1s");
    snprintf(devices, sizeof(devices), "3:%u:0", gi[0]);
    is_str(file_text("workloads/first/devices"), devices, "a workload by the UUID of the instance");
    is_int(CALL(nvmlDeviceGetComputeRunningProcesses_v3)(device(3), &count, infos), NVML_SUCCESS,
           "the GPU lists");
    is_int(count, 2, "both");
    is_int(infos[0].gpuInstanceId, gi[0], "with their GPU instance");
    is_int(infos[1].computeInstanceId, 0, "and compute instance");
    count = 4;
    is_int(CALL(nvmlDeviceGetComputeRunningProcesses_v3)(mig_device(1), &count, infos),
           NVML_SUCCESS, "the MIG device lists");
    is_int(count, 1, "one");
    is_int(infos[0].pid, 3000022, "its own");
    is_int((int64_t)infos[0].usedGpuMemory, INT64_C(7) << 30, "with its memory");
    is_int(CALL(nvmlDeviceGetRunningProcessDetailList)(mig_device(0), &list), NVML_SUCCESS,
           "the detailed list");
    is_int(list.numProcArrayEntries, 1, "has one as well");
    is_int(details[0].gpuInstanceId, gi[0], "of that instance");
    is_int(CALL(nvmlDeviceGetMemoryInfo)(mig_device(0), &memory), NVML_SUCCESS,
           "memory of a MIG device");
    is_int((int64_t)memory.used, INT64_C(5) << 30, "is what its workload uses");
    is_int((int64_t)(memory.used + memory.free), (int64_t)memory.total, "of the instance's own");
    is_int(file_number("gpus/3/metrics/memory_used_bytes"), INT64_C(12) << 30,
           "the GPU has all of it");
    is_int(CALL(nvmlDeviceGetUtilizationRates)(mig_device(0), &utilization),
           NVML_ERROR_NOT_SUPPORTED, "a MIG device has no utilization");
    is_int(CALL(nvmlDeviceGetUtilizationRates)(device(3), &utilization), NVML_ERROR_NOT_SUPPORTED,
           "nor has its GPU");
    count = 4;
    is_int(CALL(nvmlDeviceGetProcessUtilization)(device(3), busy, &count, 0),
           NVML_ERROR_NOT_SUPPORTED, "nor have its processes");
    is_int(samples_since(3, NVML_GPU_UTILIZATION_SAMPLES, 0).result, NVML_ERROR_NOT_SUPPORTED,
           "nor is there a history of it");
    is_int(samples_since(3, NVML_TOTAL_POWER_SAMPLES, 0).result, NVML_SUCCESS,
           "as there is of power");
    is_int(CALL(nvmlDeviceSetAccountingMode)(device(3), NVML_FEATURE_ENABLED),
           NVML_ERROR_NOT_SUPPORTED, "accounting is not for MIG");
    is_int(file_put("workloads/second/memory", "30GiB"), -ENOSPC,
           "an instance has no more than its own");
    snprintf(devices, sizeof(devices), "destroy %u", gi[1]);
    is_int(file_put("gpus/3/mig/instances", devices), -EBUSY, "and is not destroyed in use");
}

int main(void)
{
    mounted_up("--gpus", "4", "--model", "A100-SXM4-40GB", "--dev", "null", "--speed", "0");
    load_library();
    samples();
    seen_alike();
    busy_processes();
    many_processes();
    accounting();
    mig();
    CALL(nvmlShutdown)();
    ok(mounted_down(), "unmounted");
    return tap_done();
}
