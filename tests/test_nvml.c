/*
 * The mock NVML against a mount of its own: loaded as programs load it, compared with the files.
 *
 * Left out where nothing can be mounted.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mocknvml/nvml.h"
#include "sim/metric.h"
#include "tests/nvml_loaded.h"
#include "tests/tap.h"

static char program[PATH_MAX], library[PATH_MAX], mountpoint[] = "/tmp/fakegpufs-nvml-XXXXXX";

/* --- the mount ------------------------------------------------------------------------------- */

/* Runs the program with arguments up to NULL. */
static int run(const char *const *arguments)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

        dup2(null, STDERR_FILENO);
        dup2(null, STDOUT_FILENO);
        execv(program, (char *const *)arguments);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0)
        bail("fork: %s", strerror(errno));
    return status;
}

static int mount_up(void)
{
    return run((const char *const[]){ program, "mount", "--gpus", "4", "--dev", "null", mountpoint,
                                      NULL });
}

static void mount_down(void)
{
    run((const char *const[]){ program, "umount", mountpoint, NULL });
}

static void clean(void)
{
    mount_down();
    for (int i = 0; i < 500 && rmdir(mountpoint) < 0; i++)
        usleep(10000);
}

/* The text of a file of the mount, without its newline; "" when it cannot be read. */
static const char *text_of(const char *format, ...)
{
    static char text[4096];
    char path[PATH_MAX], name[256];
    va_list args;
    ssize_t n;
    int fd;

    va_start(args, format);
    vsnprintf(name, sizeof(name), format, args);
    va_end(args);
    snprintf(path, sizeof(path), "%s/%s", mountpoint, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return text;
}

static void put(const char *name, const char *text)
{
    char path[PATH_MAX];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", mountpoint, name);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        bail("cannot write %s: %s", name, strerror(errno));
    close(fd);
}

static nvmlDevice_t device(unsigned int index)
{
    nvmlDevice_t found = NULL;

    if (CALL(nvmlDeviceGetHandleByIndex_v2)(index, &found) != NVML_SUCCESS)
        return NULL;
    return found;
}

/* --- life ------------------------------------------------------------------------------------ */

static void life(void)
{
    unsigned int count = 0;

    is_int(CALL(nvmlDeviceGetCount_v2)(&count), NVML_ERROR_UNINITIALIZED,
           "nothing works before init");
    is_int(CALL(nvmlDeviceGetPowerUsage)(NULL, NULL), NVML_ERROR_UNINITIALIZED,
           "and that is said first");
    is_int(((nvmlReturn_t(*)(void))nvml_symbol("nvmlVgpuTypeGetLicense"))(),
           NVML_ERROR_UNINITIALIZED, "by what is not supported, too");
    is_int(CALL(nvmlShutdown)(), NVML_ERROR_UNINITIALIZED, "nor can it be shut down");
    is_int(CALL(nvmlInit_v2)(), NVML_SUCCESS, "init");
    is_int(CALL(nvmlInitWithFlags)(NVML_INIT_FLAG_NO_GPUS), NVML_SUCCESS, "init again");
    is_int(CALL(nvmlShutdown)(), NVML_SUCCESS, "one shutdown");
    is_int(CALL(nvmlDeviceGetCount_v2)(&count), NVML_SUCCESS, "leaves it initialized");
    is_int(count, 4, "with its GPUs");
    is_int(CALL(nvmlShutdown)(), NVML_SUCCESS, "the other shutdown");
    is_int(CALL(nvmlDeviceGetCount_v2)(&count), NVML_ERROR_UNINITIALIZED, "ends it");
    is_int(CALL(nvmlInit)(), NVML_SUCCESS, "and it can begin again, by its oldest name");
    is_str(CALL(nvmlErrorString)(NVML_ERROR_GPU_IS_LOST), "GPU is lost", "errors have sentences");
    is_str(CALL(nvmlErrorString)((nvmlReturn_t)12345), "Unknown Error", "all of them");
    is_int(((nvmlReturn_t(*)(void))nvml_symbol("nvmlVgpuTypeGetLicense"))(),
           NVML_ERROR_NOT_SUPPORTED, "what no host has is not supported");
}

/* The library as it is in the mount, without a word of the environment. */
static void own_mount(void)
{
    char path[PATH_MAX];
    unsigned int count = 0;
    void *other;
    nvmlReturn_t (*init)(void), (*get_count)(unsigned int *);

    unsetenv("FAKEGPUFS_ROOT");
    snprintf(path, sizeof(path), "%s/usr/lib64/libnvidia-ml.so.1", mountpoint);
    other = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!ok(other != NULL, "the mount's own library can be loaded"))
        return;
    init = (nvmlReturn_t(*)(void))dlsym(other, "nvmlInit_v2");
    get_count = (nvmlReturn_t(*)(unsigned int *))dlsym(other, "nvmlDeviceGetCount_v2");
    is_int(init(), NVML_SUCCESS, "it finds its mount");
    get_count(&count);
    is_int(count, 4, "and the GPUs in it");
    ((nvmlReturn_t(*)(void))dlsym(other, "nvmlShutdown"))();
    dlclose(other);
    setenv("FAKEGPUFS_ROOT", mountpoint, 1);
}

/* --- values ---------------------------------------------------------------------------------- */

/* Values of one instant: the clock stands still while they are compared. */
static void values(void)
{
    static const struct {
        const char *function, *file;
    } rows[] = {
        { "nvmlDeviceGetPowerUsage", "power_usage_mw" },
        { "nvmlDeviceGetPowerManagementLimit", "power_limit_mw" },
        { "nvmlDeviceGetPowerManagementDefaultLimit", "power_limit_default_mw" },
        { "nvmlDeviceGetEnforcedPowerLimit", "power_limit_enforced_mw" },
        { "nvmlDeviceGetCurrPcieLinkGeneration", "pcie_link_generation" },
        { "nvmlDeviceGetMaxPcieLinkGeneration", "pcie_link_generation_max" },
        { "nvmlDeviceGetCurrPcieLinkWidth", "pcie_link_width" },
        { "nvmlDeviceGetMaxPcieLinkWidth", "pcie_link_width_max" },
        { "nvmlDeviceGetPcieReplayCounter", "pcie_replay_total" },
        { "nvmlDeviceGetPerformanceState", "pstate" },
        { "nvmlDeviceGetPersistenceMode", "persistence_mode" },
        { "nvmlDeviceGetComputeMode", "compute_mode" },
    };
    nvmlUtilization_t rates;
    nvmlMemory_v2_t memory = { .version = 2 };
    nvmlMemory_t old;
    unsigned long long value;
    unsigned int number;

    put("control/clock", "pause");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        nvmlReturn_t (*get)(nvmlDevice_t, unsigned int *) =
            (nvmlReturn_t(*)(nvmlDevice_t, unsigned int *))nvml_symbol(rows[i].function);

        number = 0;
        is_int(get(device(1), &number), NVML_SUCCESS, "%s", rows[i].function);
        is_int(number, atoll(text_of("gpus/1/metrics/%s", rows[i].file)), "%s is %s",
               rows[i].function, rows[i].file);
        is_int(get(device(1), NULL), NVML_ERROR_INVALID_ARGUMENT, "%s wants somewhere to put it",
               rows[i].function);
    }
    is_int(CALL(nvmlDeviceGetTotalEnergyConsumption)(device(1), &value), NVML_SUCCESS, "energy");
    is_int((int64_t)value, atoll(text_of("gpus/1/metrics/energy_total_mj")), "is that of its file");
    is_int(CALL(nvmlDeviceGetTemperature)(device(1), NVML_TEMPERATURE_GPU, &number), NVML_SUCCESS,
           "temperature");
    is_int(number, atoll(text_of("gpus/1/metrics/temperature_gpu_c")), "is that of its file");
    is_int(CALL(nvmlDeviceGetClockInfo)(device(1), NVML_CLOCK_SM, &number), NVML_SUCCESS, "clock");
    is_int(number, atoll(text_of("gpus/1/metrics/clock_sm_mhz")), "is that of its file");
    CALL(nvmlDeviceGetUtilizationRates)(device(1), &rates);
    is_int(rates.gpu, atoll(text_of("gpus/1/metrics/utilization_gpu_percent")), "utilization");
    is_int(CALL(nvmlDeviceGetMemoryInfo_v2)(device(1), &memory), NVML_SUCCESS,
           "a bare 2 is a version");
    is_int((int64_t)memory.used, atoll(text_of("gpus/1/metrics/memory_used_bytes")), "memory used");
    is_int((int64_t)memory.reserved, atoll(text_of("gpus/1/metrics/memory_reserved_bytes")),
           "memory reserved");
    CALL(nvmlDeviceGetMemoryInfo)(device(1), &old);
    is_int((int64_t)(old.used + old.free), (int64_t)old.total,
           "in the old structure reserved memory is used");
    memory.version = 7;
    is_int(CALL(nvmlDeviceGetMemoryInfo_v2)(device(1), &memory),
           NVML_ERROR_ARGUMENT_VERSION_MISMATCH, "7 is none");
    is_int(CALL(nvmlDeviceGetFanSpeed)(device(1), &number), NVML_ERROR_NOT_SUPPORTED,
           "an A100 has no fan");
    put("control/clock", "resume");
}

static void identity(void)
{
    char text[96], small[4];
    nvmlPciInfo_t pci;
    nvmlDevice_t found;
    unsigned int index;

    CALL(nvmlDeviceGetUUID)(device(2), text, sizeof(text));
    is_str(text, text_of("gpus/2/identity/uuid"), "UUID");
    is_int(CALL(nvmlDeviceGetHandleByUUID)(text, &found), NVML_SUCCESS, "can be looked up");
    ok(found == device(2), "and is that GPU");
    CALL(nvmlDeviceGetName)(device(2), text, sizeof(text));
    is_str(text, text_of("gpus/2/identity/name"), "name");
    is_int(CALL(nvmlDeviceGetName)(device(2), small, sizeof(small)), NVML_ERROR_INSUFFICIENT_SIZE,
           "that does not fit");
    CALL(nvmlDeviceGetSerial)(device(2), text, sizeof(text));
    is_int(CALL(nvmlDeviceGetHandleBySerial)(text, &found), NVML_SUCCESS, "by serial number");
    CALL(nvmlDeviceGetPciInfo_v3)(device(2), &pci);
    is_str(pci.busId, text_of("gpus/2/identity/bus_id"), "bus id");
    is_int(CALL(nvmlDeviceGetHandleByPciBusId_v2)(pci.busId, &found), NVML_SUCCESS,
           "looked up by eight digits");
    is_int(CALL(nvmlDeviceGetHandleByPciBusId_v2)(pci.busIdLegacy, &found), NVML_SUCCESS,
           "and by four");
    ok(found == device(2), "is that GPU");
    CALL(nvmlDeviceGetIndex)(found, &index);
    is_int(index, 2, "with its index");
    is_int(CALL(nvmlDeviceGetHandleByUUID)("GPU-0", &found), NVML_ERROR_NOT_FOUND, "no such UUID");
    is_int(CALL(nvmlDeviceGetHandleByIndex_v2)(4, &found), NVML_ERROR_INVALID_ARGUMENT,
           "no such index");
    is_int(CALL(nvmlDeviceGetName)((nvmlDevice_t)&found, text, sizeof(text)),
           NVML_ERROR_INVALID_ARGUMENT, "a foreign handle");
    CALL(nvmlSystemGetDriverVersion)(text, sizeof(text));
    is_str(text, text_of("gpus/0/identity/driver_version"), "driver version");
}

static void lists(void)
{
    unsigned int count = 0, clocks[256];

    is_int(CALL(nvmlDeviceGetSupportedMemoryClocks)(device(0), &count, NULL),
           NVML_ERROR_INSUFFICIENT_SIZE, "no room for clocks");
    is_int(CALL(nvmlDeviceGetSupportedMemoryClocks)(device(0), &count, clocks), NVML_SUCCESS,
           "room enough");
    is_int(clocks[0], atoll(text_of("gpus/0/metrics/clock_memory_max_mhz")),
           "the highest comes first");
    count = 256;
    is_int(CALL(nvmlDeviceGetSupportedGraphicsClocks)(device(0), clocks[0], &count, clocks),
           NVML_SUCCESS, "graphics clocks");
    is_int(clocks[0], atoll(text_of("gpus/0/metrics/clock_sm_max_mhz")), "from the highest");
    ok(count > 10 && clocks[1] < clocks[0], "down");
}

/* --- setters --------------------------------------------------------------------------------- */

static nvmlReturn_t as_nobody(nvmlReturn_t (*call)(nvmlDevice_t, unsigned int), unsigned int value)
{
    pid_t child = fork();
    int status = 0;

    if (child == 0)
        _exit(setuid(65534) == 0 ? (int)call(device(0), value) : 99);
    waitpid(child, &status, 0);
    return (nvmlReturn_t)WEXITSTATUS(status);
}

static void setters(void)
{
    is_int(CALL(nvmlDeviceSetPowerManagementLimit)(device(0), 250000), NVML_SUCCESS, "power limit");
    is_str(text_of("gpus/0/control/power_limit_mw"), "250000", "is in the file");
    is_int(CALL(nvmlDeviceSetPowerManagementLimit)(device(0), 1), NVML_ERROR_INVALID_ARGUMENT,
           "1 mW is refused");
    is_int(CALL(nvmlDeviceSetGpuLockedClocks)(device(0), 900, 900), NVML_SUCCESS, "clock lock");
    is_str(text_of("gpus/0/control/clock_lock"), "900 900", "is in the file");
    is_int(CALL(nvmlDeviceResetGpuLockedClocks)(device(0)), NVML_SUCCESS, "and gone");
    is_str(text_of("gpus/0/control/clock_lock"), "off", "from it");
    is_int(CALL(nvmlDeviceSetPersistenceMode)(device(0), NVML_FEATURE_DISABLED), NVML_SUCCESS,
           "persistence");
    is_str(text_of("gpus/0/metrics/persistence_mode"), "0", "is off");
    is_int(CALL(nvmlDeviceSetComputeMode)(device(0), NVML_COMPUTEMODE_EXCLUSIVE_PROCESS),
           NVML_SUCCESS, "compute mode");
    is_str(text_of("gpus/0/control/compute_mode"), "exclusive_process", "is in the file");
    CALL(nvmlDeviceSetComputeMode)(device(0), NVML_COMPUTEMODE_DEFAULT);
    is_int(as_nobody(CALL(nvmlDeviceSetPowerManagementLimit), 300000), NVML_ERROR_NO_PERMISSION,
           "somebody else may not");
    is_str(text_of("gpus/0/control/power_limit_mw"), "250000", "and did not");
}

/* --- processes ------------------------------------------------------------------------------- */

static void processes(void)
{
    char path[PATH_MAX];
    unsigned int count = 0;
    nvmlProcessInfo_t infos[8];
    nvmlProcessInfo_v1_t old[8];
    nvmlProcessUtilizationSample_t busy[8];

    is_int(CALL(nvmlDeviceGetComputeRunningProcesses_v3)(device(3), &count, NULL), NVML_SUCCESS,
           "nothing runs: a success");
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/workloads/w%d", mountpoint, i);
        if (mkdir(path, 0755) < 0)
            bail("mkdir %s: %s", path, strerror(errno));
        snprintf(path, sizeof(path), "workloads/w%d/devices", i);
        put(path, "3");
        snprintf(path, sizeof(path), "workloads/w%d/memory", i);
        put(path, i ? "2GiB" : "1GiB");
        snprintf(path, sizeof(path), "workloads/w%d/activity", i);
        put(path, "[{utilization: 30}]");
    }
    for (int i = 0; i < 200 && count < 2; i++) {
        usleep(10000);
        count = 0;
        CALL(nvmlDeviceGetComputeRunningProcesses_v3)(device(3), &count, NULL);
    }
    count = 0;
    is_int(CALL(nvmlDeviceGetComputeRunningProcesses_v3)(device(3), &count, NULL),
           NVML_ERROR_INSUFFICIENT_SIZE, "no room: asks for more");
    is_int(count, 2, "for two");
    count = 1;
    is_int(CALL(nvmlDeviceGetComputeRunningProcesses_v3)(device(3), &count, infos),
           NVML_ERROR_INSUFFICIENT_SIZE, "room for one is too little");
    is_int(count, 2, "and says so");
    count = 8;
    is_int(CALL(nvmlDeviceGetComputeRunningProcesses_v3)(device(3), &count, infos), NVML_SUCCESS,
           "room for eight");
    is_int(count, 2, "two are there");
    is_int((int64_t)(infos[0].usedGpuMemory + infos[1].usedGpuMemory), INT64_C(3) << 30,
           "with their memory");
    count = 8;
    is_int(CALL(nvmlDeviceGetComputeRunningProcesses)(device(3), &count, old), NVML_SUCCESS,
           "the old list");
    is_int(old[1].pid, infos[1].pid, "has the old structure");
    count = 0;
    is_int(CALL(nvmlDeviceGetProcessUtilization)(device(3), NULL, &count, 0),
           NVML_ERROR_INSUFFICIENT_SIZE, "utilization asks for room");
    is_int(CALL(nvmlDeviceGetProcessUtilization)(device(3), busy, &count, 0), NVML_SUCCESS,
           "and takes it");
    is_int(busy[0].pid, infos[0].pid, "for the same processes");
}

/* --- events ---------------------------------------------------------------------------------- */

static void *inject(void *file)
{
    usleep(50000); /* so that the other thread is likely to wait already; either order is right */
    put(file, "xid 79");
    return NULL;
}

static void events(void)
{
    char file[] = "gpus/1/control/fault";
    nvmlEventSet_t set = NULL;
    nvmlEventData_t data = { 0 };
    struct timespec before, after;
    pthread_t thread;

    is_int(CALL(nvmlEventSetCreate)(&set), NVML_SUCCESS, "an event set");
    is_int(CALL(nvmlDeviceRegisterEvents)(device(1), nvmlEventTypeXidCriticalError, set),
           NVML_SUCCESS, "for one GPU");
    is_int(CALL(nvmlDeviceRegisterEvents)(device(1), 1ull << 60, set), NVML_ERROR_NOT_SUPPORTED,
           "but not for anything");
    is_int(CALL(nvmlEventSetWait_v2)(set, &data, 0), NVML_ERROR_TIMEOUT, "nothing happened");
    put("gpus/2/control/fault", "xid 43");
    is_int(CALL(nvmlEventSetWait_v2)(set, &data, 100), NVML_ERROR_TIMEOUT,
           "nor does another GPU count");
    clock_gettime(CLOCK_MONOTONIC, &before);
    pthread_create(&thread, NULL, inject, file);
    is_int(CALL(nvmlEventSetWait_v2)(set, &data, 20000), NVML_SUCCESS, "an xid wakes it");
    clock_gettime(CLOCK_MONOTONIC, &after);
    pthread_join(thread, NULL);
    ok(after.tv_sec - before.tv_sec < 10, "at once");
    ok(data.device == device(1), "of that GPU");
    is_int((int64_t)data.eventData, 79, "with its number");
    is_int((int64_t)data.eventType, nvmlEventTypeXidCriticalError, "and type");
    is_int(CALL(nvmlEventSetFree)(set), NVML_SUCCESS, "and freed");
    is_int(CALL(nvmlEventSetFree)(set), NVML_ERROR_INVALID_ARGUMENT, "once");
    put("gpus/1/control/fault", "recover");
    put("gpus/2/control/fault", "recover");
}

/* --- trouble --------------------------------------------------------------------------------- */

static void trouble(void)
{
    nvmlDevice_t kept = device(3), found;
    unsigned int number;

    put("gpus/1/control/fault", "sensor temperature_gpu_c");
    is_int(CALL(nvmlDeviceGetTemperature)(device(1), NVML_TEMPERATURE_GPU, &number),
           NVML_ERROR_UNKNOWN, "a sensor that fails is unknown");
    put("gpus/1/control/fault", "recover");
    put("gpus/3/control/fault", "fallen_off_bus");
    is_int(CALL(nvmlDeviceGetPowerUsage)(kept, &number), NVML_ERROR_GPU_IS_LOST,
           "a GPU off the bus is lost");
    is_int(CALL(nvmlDeviceGetHandleByIndex_v2)(3, &found), NVML_ERROR_GPU_IS_LOST,
           "to those who look for it");
    is_int(CALL(nvmlDeviceGetPowerUsage)(device(0), &number), NVML_SUCCESS, "the others are not");
    put("gpus/3/control/fault", "recover");
    is_int(CALL(nvmlDeviceGetPowerUsage)(kept, &number), NVML_SUCCESS, "and it comes back");
}

static void visible_devices(void)
{
    char uuid[96], list[128];
    unsigned int count = 0;

    CALL(nvmlDeviceGetUUID)(device(3), uuid, sizeof(uuid));
    snprintf(list, sizeof(list), "1,%s", uuid);
    CALL(nvmlShutdown)();
    setenv("NVIDIA_VISIBLE_DEVICES", list, 1);
    CALL(nvmlInit_v2)();
    CALL(nvmlDeviceGetCount_v2)(&count);
    is_int(count, 2, "two of the GPUs can be seen");
    CALL(nvmlDeviceGetUUID)(device(1), list, sizeof(list));
    is_str(list, uuid, "under new numbers");
    CALL(nvmlShutdown)();
    setenv("NVIDIA_VISIBLE_DEVICES", "none", 1);
    CALL(nvmlInit_v2)();
    CALL(nvmlDeviceGetCount_v2)(&count);
    is_int(count, 0, "or none");
    CALL(nvmlShutdown)();
    unsetenv("NVIDIA_VISIBLE_DEVICES");
    CALL(nvmlInit_v2)();
}

/* Energy of the generation that both see; a child keeps reading as the parent does. */
static void two_processes(void)
{
    unsigned long long mine, its;
    int pipes[2], status;
    pid_t child;

    put("control/clock", "pause");
    if (pipe(pipes) < 0)
        bail("pipe: %s", strerror(errno));
    child = fork();
    if (child == 0) {
        CALL(nvmlDeviceGetTotalEnergyConsumption)(device(0), &its);
        _exit(write(pipes[1], &its, sizeof(its)) != sizeof(its));
    }
    CALL(nvmlDeviceGetTotalEnergyConsumption)(device(0), &mine);
    waitpid(child, &status, 0);
    ok(read(pipes[0], &its, sizeof(its)) == sizeof(its), "a child reads on");
    is_int((int64_t)mine, (int64_t)its, "and in one generation both see the same");
    close(pipes[0]);
    close(pipes[1]);
    put("control/clock", "resume");
}

/* In a GPU instance of three slices with nothing in it. */
static void compute_places(nvmlGpuInstance_t instance)
{
    nvmlComputeInstancePlacement_t places[8];
    nvmlComputeInstanceInfo_t info = { 0 };
    nvmlComputeInstance_t compute, other;
    unsigned int count = 0;

    is_int(CALL(nvmlGpuInstanceGetComputeInstancePossiblePlacements)(instance, 1, NULL, &count),
           NVML_SUCCESS, "how many places two slices have");
    is_int(count, 2, "two");
    CALL(nvmlGpuInstanceGetComputeInstancePossiblePlacements)(instance, 1, places, &count);
    is_int(places[1].start * 10 + places[1].size, 12, "the other begins at the second slice");
    is_int(CALL(nvmlGpuInstanceGetComputeInstancePossiblePlacements)(instance, 3, NULL, &count),
           NVML_ERROR_NOT_SUPPORTED, "four do not fit");
    is_int(CALL(nvmlGpuInstanceCreateComputeInstanceWithPlacement)(instance, 1, &places[1],
                                                                   &compute),
           NVML_SUCCESS, "one is made there");
    CALL(nvmlComputeInstanceGetInfo_v2)(compute, &info);
    is_int(info.placement.start, 1, "and is there");
    is_int(CALL(nvmlGpuInstanceCreateComputeInstanceWithPlacement)(instance, 1, &places[0], &other),
           NVML_ERROR_INSUFFICIENT_RESOURCES, "so that none fits beside it");
    CALL(nvmlGpuInstanceGetComputeInstanceRemainingCapacity)(instance, 1, &count);
    is_int(count, 0, "which the capacity says");
    CALL(nvmlComputeInstanceDestroy)(compute);
}

static void mig(void)
{
    unsigned int count = 0, is_mig = 0, current, pending;
    nvmlDevice_t found = NULL;
    nvmlGpuInstanceProfileInfo_t profile;
    nvmlGpuInstance_t instance;
    nvmlComputeInstance_t compute;
    nvmlDeviceAttributes_t attributes;
    nvmlReturn_t activation;
    char name[96];

    is_int(CALL(nvmlDeviceSetMigMode)(device(2), 1, &activation), NVML_SUCCESS, "MIG on");
    CALL(nvmlDeviceGetMigMode)(device(2), &current, &pending);
    is_int(current, 1, "is on");
    is_int(CALL(nvmlDeviceGetGpuInstanceProfileInfo)(device(2), 2, &profile), NVML_SUCCESS,
           "three slices");
    is_int(CALL(nvmlDeviceCreateGpuInstance)(device(2), profile.id, &instance), NVML_SUCCESS,
           "an instance");
    is_int(CALL(nvmlGpuInstanceCreateComputeInstance)(instance, 2, &compute), NVML_SUCCESS,
           "with a compute instance");
    CALL(nvmlDeviceGetMaxMigDeviceCount)(device(2), &count);
    is_int(count, 7, "there could be seven");
    is_int(CALL(nvmlDeviceGetMigDeviceHandleByIndex)(device(2), 0, &found), NVML_SUCCESS,
           "there is one");
    is_int(CALL(nvmlDeviceGetMigDeviceHandleByIndex)(device(2), 1, &found), NVML_ERROR_NOT_FOUND,
           "not two");
    CALL(nvmlDeviceIsMigDeviceHandle)(found, &is_mig);
    is_int(is_mig, 1, "it is one");
    CALL(nvmlDeviceGetName)(found, name, sizeof(name));
    contains(name, "MIG 3g.20gb", "and says so");
    CALL(nvmlDeviceGetAttributes_v2)(found, &attributes);
    is_int(attributes.gpuInstanceSliceCount, 3, "with its slices");
    is_int(CALL(nvmlGpuInstanceDestroy)(instance), NVML_ERROR_IN_USE, "what is used stays");
    is_int(CALL(nvmlComputeInstanceDestroy)(compute), NVML_SUCCESS, "until it is not");
    compute_places(instance);
    is_int(CALL(nvmlGpuInstanceDestroy)(instance), NVML_SUCCESS, "then it goes");
    CALL(nvmlDeviceSetMigMode)(device(2), 0, &activation);
}

static void fields(void)
{
    nvmlFieldValue_t values[] = { { .fieldId = 83 },
                                  { .fieldId = 186 },
                                  { .fieldId = 91 },
                                  { .fieldId = 165, .scopeId = 0 },
                                  { .fieldId = 9999 } };

    put("control/clock", "pause");
    is_int(CALL(nvmlDeviceGetFieldValues)(device(0), 5, values), NVML_SUCCESS, "fields");
    is_int((int64_t)values[0].value.ullVal, atoll(text_of("gpus/0/metrics/energy_total_mj")),
           "energy");
    is_int(values[1].value.uiVal, atoll(text_of("gpus/0/metrics/power_usage_instant_mw")),
           "instant power");
    is_int(values[2].value.uiVal, 12, "links");
    is_int((int64_t)values[3].value.ullVal, 1, "the first of which is up");
    is_int(values[4].nvmlReturn, NVML_ERROR_NOT_SUPPORTED, "what is no field says so, alone");
    put("control/clock", "resume");
}

/* The mount goes and another one comes: what a program holds works again. */
static void comes_back(void)
{
    nvmlDevice_t kept = device(0);
    nvmlReturn_t result = NVML_SUCCESS;
    unsigned int number;

    mount_down();
    for (int i = 0; i < 300 && result != NVML_ERROR_DRIVER_NOT_LOADED; i++) {
        usleep(10000);
        result = CALL(nvmlDeviceGetPowerUsage)(kept, &number);
    }
    is_int(result, NVML_ERROR_DRIVER_NOT_LOADED, "without its mount there is no driver");
    if (mount_up() != 0)
        bail("cannot mount again");
    for (int i = 0; i < 300 && result != NVML_SUCCESS; i++) {
        usleep(10000);
        result = CALL(nvmlDeviceGetPowerUsage)(kept, &number);
    }
    is_int(result, NVML_SUCCESS, "and it is back with the mount");
}

static void without_mount(void)
{
    setenv("FAKEGPUFS_ROOT", "/nonexistent", 1);
    is_int(CALL(nvmlInit_v2)(), NVML_ERROR_DRIVER_NOT_LOADED, "no mount, no driver");
    setenv("FAKEGPUFS_ROOT", mountpoint, 1);
}

int main(void)
{
    const char *build = getenv("BUILD");

    snprintf(program, sizeof(program), "%s/fakegpufs", build ? build : "build");
    snprintf(library, sizeof(library), "%s/libnvidia-ml.so.1", build ? build : "build");
    if (access("/dev/fuse", R_OK | W_OK) < 0 || getuid() != 0)
        skip_all("only root with /dev/fuse can mount here");
    if (!mkdtemp(mountpoint) || chmod(mountpoint, 0755) < 0)
        bail("mkdtemp: %s", strerror(errno));
    if (mount_up() != 0) {
        rmdir(mountpoint);
        skip_all("nothing can be mounted");
    }
    atexit(clean);
    setenv("FAKEGPUFS_ROOT", mountpoint, 1);
    unsetenv("NVIDIA_VISIBLE_DEVICES");
    nvml_load(library);
    without_mount();
    own_mount();
    life();
    values();
    identity();
    lists();
    setters();
    mig();
    processes();
    events();
    fields();
    trouble();
    visible_devices();
    two_processes();
    comes_back();
    is_int(CALL(nvmlShutdown)(), NVML_SUCCESS, "the end");
    return tap_done();
}
