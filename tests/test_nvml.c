/*
 * The mock NVML as a program meets it: from init to shutdown, which mount and which GPUs it sees, what it waits for, and
 * what becomes of it when a GPU or the mount goes. What is answered: test_nvml_values.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>

#include "tests/nvml_library.h"

#define MOUNT "--gpus", "4"

/* --- life ------------------------------------------------------------------------------------ */

static void without_mount(void)
{
    setenv("FAKEGPUFS_ROOT", "/nonexistent", 1);
    is_int(CALL(nvmlInit_v2)(), NVML_ERROR_DRIVER_NOT_LOADED, "no mount, no driver");
    setenv("FAKEGPUFS_ROOT", mounted.root, 1);
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
    unsigned int count = 0;
    void *other;
    nvmlReturn_t (*init)(void), (*get_count)(unsigned int *);

    unsetenv("FAKEGPUFS_ROOT");
    other = dlopen(file_path("usr/lib64/libnvidia-ml.so.1"), RTLD_NOW | RTLD_LOCAL);
    if (!ok(other != NULL, "the mount's own library can be loaded"))
        return;
    init = (nvmlReturn_t(*)(void))dlsym(other, "nvmlInit_v2");
    get_count = (nvmlReturn_t(*)(unsigned int *))dlsym(other, "nvmlDeviceGetCount_v2");
    is_int(init(), NVML_SUCCESS, "it finds its mount");
    get_count(&count);
    is_int(count, 4, "and the GPUs in it");
    ((nvmlReturn_t(*)(void))dlsym(other, "nvmlShutdown"))();
    dlclose(other);
    setenv("FAKEGPUFS_ROOT", mounted.root, 1);
}

/* --- events ---------------------------------------------------------------------------------- */

/* --- events ---------------------------------------------------------------------------------- */

static void *inject(void *file)
{
    pause_ms(50); /* so that the other thread is likely to wait already; either order is right */
    nvml_put(file, "xid 79");
    return NULL;
}

static void events(void)
{
    char file[] = "gpus/1/control/fault";
    nvmlEventSet_t set = NULL;
    nvmlEventData_t data = { 0 };
    int64_t since;
    pthread_t thread;

    is_int(CALL(nvmlEventSetCreate)(&set), NVML_SUCCESS, "an event set");
    is_int(CALL(nvmlDeviceRegisterEvents)(nvml_gpu(1), nvmlEventTypeXidCriticalError, set),
           NVML_SUCCESS, "for one GPU");
    is_int(CALL(nvmlDeviceRegisterEvents)(nvml_gpu(1), 1ull << 60, set), NVML_ERROR_NOT_SUPPORTED,
           "but not for anything");
    is_int(CALL(nvmlEventSetWait_v2)(set, &data, 0), NVML_ERROR_TIMEOUT, "nothing happened");
    nvml_put("gpus/2/control/fault", "xid 43");
    is_int(CALL(nvmlEventSetWait_v2)(set, &data, 100), NVML_ERROR_TIMEOUT,
           "nor does another GPU count");
    since = now_ms();
    pthread_create(&thread, NULL, inject, file);
    is_int(CALL(nvmlEventSetWait_v2)(set, &data, 20000), NVML_SUCCESS, "an xid wakes it");
    ok(now_ms() - since < 10000, "at once");
    pthread_join(thread, NULL);
    ok(data.device == nvml_gpu(1), "of that GPU");
    is_int((int64_t)data.eventData, 79, "with its number");
    is_int((int64_t)data.eventType, nvmlEventTypeXidCriticalError, "and type");
    is_int(CALL(nvmlEventSetFree)(set), NVML_SUCCESS, "and freed");
    is_int(CALL(nvmlEventSetFree)(set), NVML_ERROR_INVALID_ARGUMENT, "once");
    nvml_put("gpus/1/control/fault", "recover");
    nvml_put("gpus/2/control/fault", "recover");
}

/* --- who sees what --------------------------------------------------------------------------- */

static void visible_devices(void)
{
    char uuid[96], list[128];
    unsigned int count = 0;

    CALL(nvmlDeviceGetUUID)(nvml_gpu(3), uuid, sizeof(uuid));
    snprintf(list, sizeof(list), "1,%s", uuid);
    CALL(nvmlShutdown)();
    setenv("NVIDIA_VISIBLE_DEVICES", list, 1);
    CALL(nvmlInit_v2)();
    CALL(nvmlDeviceGetCount_v2)(&count);
    is_int(count, 2, "two of the GPUs can be seen");
    CALL(nvmlDeviceGetUUID)(nvml_gpu(1), list, sizeof(list));
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

    nvml_put("control/clock", "pause");
    if (pipe(pipes) < 0)
        bail("pipe: %s", strerror(errno));
    child = fork();
    if (child == 0) {
        CALL(nvmlDeviceGetTotalEnergyConsumption)(nvml_gpu(0), &its);
        _exit(write(pipes[1], &its, sizeof(its)) != sizeof(its));
    }
    CALL(nvmlDeviceGetTotalEnergyConsumption)(nvml_gpu(0), &mine);
    waitpid(child, &status, 0);
    ok(read(pipes[0], &its, sizeof(its)) == sizeof(its), "a child reads on");
    is_int((int64_t)mine, (int64_t)its, "and in one generation both see the same");
    close(pipes[0]);
    close(pipes[1]);
    nvml_put("control/clock", "resume");
}

/* --- trouble --------------------------------------------------------------------------------- */

/* --- trouble --------------------------------------------------------------------------------- */

static void trouble(void)
{
    nvmlDevice_t kept = nvml_gpu(3), found;
    unsigned int number;

    nvml_put("gpus/1/control/fault", "sensor temperature_gpu_c");
    is_int(CALL(nvmlDeviceGetTemperature)(nvml_gpu(1), NVML_TEMPERATURE_GPU, &number),
           NVML_ERROR_UNKNOWN, "a sensor that fails is unknown");
    nvml_put("gpus/1/control/fault", "recover");
    nvml_put("gpus/3/control/fault", "fallen_off_bus");
    is_int(CALL(nvmlDeviceGetPowerUsage)(kept, &number), NVML_ERROR_GPU_IS_LOST,
           "a GPU off the bus is lost");
    is_int(CALL(nvmlDeviceGetHandleByIndex_v2)(3, &found), NVML_ERROR_GPU_IS_LOST,
           "to those who look for it");
    is_int(CALL(nvmlDeviceGetPowerUsage)(nvml_gpu(0), &number), NVML_SUCCESS, "the others are not");
    nvml_put("gpus/3/control/fault", "recover");
    is_int(CALL(nvmlDeviceGetPowerUsage)(kept, &number), NVML_SUCCESS, "and it comes back");
}

/* The mount goes and another one comes: what a program holds works again. */
static void comes_back(void)
{
    nvmlDevice_t kept = nvml_gpu(0);
    unsigned int number;

    mounted_unmount();
    ok(WAIT_UNTIL(CALL(nvmlDeviceGetPowerUsage)(kept, &number) == NVML_ERROR_DRIVER_NOT_LOADED),
       "without its mount there is no driver");
    mounted_up("--dev", "null", MOUNT);
    ok(WAIT_UNTIL(CALL(nvmlDeviceGetPowerUsage)(kept, &number) == NVML_SUCCESS),
       "and it is back with the mount");
}

int main(void)
{
    nvml_mount_with(MOUNT);
    without_mount();
    own_mount();
    life();
    events();
    trouble();
    visible_devices();
    two_processes();
    comes_back();
    is_int(CALL(nvmlShutdown)(), NVML_SUCCESS, "the end");
    ok(mounted_down(), "and down again");
    return tap_done();
}
