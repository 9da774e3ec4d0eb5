/*
 * What the mock NVML answers and sets, compared with the files of the mount.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tests/nvml_library.h"

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

    nvml_put("control/clock", "pause");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        nvmlReturn_t (*get)(nvmlDevice_t, unsigned int *) =
            (nvmlReturn_t(*)(nvmlDevice_t, unsigned int *))nvml_symbol(rows[i].function);
        char file[128];

        snprintf(file, sizeof(file), "gpus/1/metrics/%s", rows[i].file);
        number = 0;
        is_int(get(nvml_gpu(1), &number), NVML_SUCCESS, "%s", rows[i].function);
        is_int(number, file_number(file), "%s is %s", rows[i].function, rows[i].file);
        is_int(get(nvml_gpu(1), NULL), NVML_ERROR_INVALID_ARGUMENT, "%s wants somewhere to put it",
               rows[i].function);
    }
    is_int(CALL(nvmlDeviceGetTotalEnergyConsumption)(nvml_gpu(1), &value), NVML_SUCCESS, "energy");
    is_int((int64_t)value, file_number("gpus/1/metrics/energy_total_mj"), "is that of its file");
    is_int(CALL(nvmlDeviceGetTemperature)(nvml_gpu(1), NVML_TEMPERATURE_GPU, &number), NVML_SUCCESS,
           "temperature");
    is_int(number, file_number("gpus/1/metrics/temperature_gpu_c"), "is that of its file");
    is_int(CALL(nvmlDeviceGetClockInfo)(nvml_gpu(1), NVML_CLOCK_SM, &number), NVML_SUCCESS,
           "clock");
    is_int(number, file_number("gpus/1/metrics/clock_sm_mhz"), "is that of its file");
    CALL(nvmlDeviceGetUtilizationRates)(nvml_gpu(1), &rates);
    is_int(rates.gpu, file_number("gpus/1/metrics/utilization_gpu_percent"), "utilization");
    is_int(CALL(nvmlDeviceGetMemoryInfo_v2)(nvml_gpu(1), &memory), NVML_SUCCESS,
           "a bare 2 is a version");
    is_int((int64_t)memory.used, file_number("gpus/1/metrics/memory_used_bytes"), "memory used");
    is_int((int64_t)memory.reserved, file_number("gpus/1/metrics/memory_reserved_bytes"),
           "memory reserved");
    CALL(nvmlDeviceGetMemoryInfo)(nvml_gpu(1), &old);
    is_int((int64_t)(old.used + old.free), (int64_t)old.total,
           "in the old structure reserved memory is used");
    memory.version = 7;
    is_int(CALL(nvmlDeviceGetMemoryInfo_v2)(nvml_gpu(1), &memory),
           NVML_ERROR_ARGUMENT_VERSION_MISMATCH, "7 is none");
    is_int(CALL(nvmlDeviceGetFanSpeed)(nvml_gpu(1), &number), NVML_ERROR_NOT_SUPPORTED,
           "an A100 has no fan");
    nvml_put("control/clock", "resume");
}

static void identity(void)
{
    char text[96], small[4];
    nvmlPciInfo_t pci;
    nvmlDevice_t found;
    unsigned int index;

    CALL(nvmlDeviceGetUUID)(nvml_gpu(2), text, sizeof(text));
    is_str(text, file_text("gpus/2/identity/uuid"), "UUID");
    is_int(CALL(nvmlDeviceGetHandleByUUID)(text, &found), NVML_SUCCESS, "can be looked up");
    ok(found == nvml_gpu(2), "and is that GPU");
    CALL(nvmlDeviceGetName)(nvml_gpu(2), text, sizeof(text));
    is_str(text, file_text("gpus/2/identity/name"), "name");
    is_int(CALL(nvmlDeviceGetName)(nvml_gpu(2), small, sizeof(small)), NVML_ERROR_INSUFFICIENT_SIZE,
           "that does not fit");
    CALL(nvmlDeviceGetSerial)(nvml_gpu(2), text, sizeof(text));
    is_int(CALL(nvmlDeviceGetHandleBySerial)(text, &found), NVML_SUCCESS, "by serial number");
    CALL(nvmlDeviceGetPciInfo_v3)(nvml_gpu(2), &pci);
    is_str(pci.busId, file_text("gpus/2/identity/bus_id"), "bus id");
    is_int(CALL(nvmlDeviceGetHandleByPciBusId_v2)(pci.busId, &found), NVML_SUCCESS,
           "looked up by eight digits");
    is_int(CALL(nvmlDeviceGetHandleByPciBusId_v2)(pci.busIdLegacy, &found), NVML_SUCCESS,
           "and by four");
    ok(found == nvml_gpu(2), "is that GPU");
    CALL(nvmlDeviceGetIndex)(found, &index);
    is_int(index, 2, "with its index");
    is_int(CALL(nvmlDeviceGetHandleByUUID)("GPU-0", &found), NVML_ERROR_NOT_FOUND, "no such UUID");
    is_int(CALL(nvmlDeviceGetHandleByIndex_v2)(4, &found), NVML_ERROR_INVALID_ARGUMENT,
           "no such index");
    is_int(CALL(nvmlDeviceGetName)((nvmlDevice_t)&found, text, sizeof(text)),
           NVML_ERROR_INVALID_ARGUMENT, "a foreign handle");
    CALL(nvmlSystemGetDriverVersion)(text, sizeof(text));
    is_str(text, file_text("gpus/0/identity/driver_version"), "driver version");
}

static void lists(void)
{
    unsigned int count = 0, clocks[256];

    is_int(CALL(nvmlDeviceGetSupportedMemoryClocks)(nvml_gpu(0), &count, NULL),
           NVML_ERROR_INSUFFICIENT_SIZE, "no room for clocks");
    is_int(CALL(nvmlDeviceGetSupportedMemoryClocks)(nvml_gpu(0), &count, clocks), NVML_SUCCESS,
           "room enough");
    is_int(clocks[0], file_number("gpus/0/metrics/clock_memory_max_mhz"),
           "the highest comes first");
    count = 256;
    is_int(CALL(nvmlDeviceGetSupportedGraphicsClocks)(nvml_gpu(0), clocks[0], &count, clocks),
           NVML_SUCCESS, "graphics clocks");
    is_int(clocks[0], file_number("gpus/0/metrics/clock_sm_max_mhz"), "from the highest");
    ok(count > 10 && clocks[1] < clocks[0], "down");
}

static void fields(void)
{
    nvmlFieldValue_t values[] = { { .fieldId = 83 },
                                  { .fieldId = 186 },
                                  { .fieldId = 91 },
                                  { .fieldId = 165, .scopeId = 0 },
                                  { .fieldId = 9999 } };

    nvml_put("control/clock", "pause");
    is_int(CALL(nvmlDeviceGetFieldValues)(nvml_gpu(0), 5, values), NVML_SUCCESS, "fields");
    is_int((int64_t)values[0].value.ullVal, file_number("gpus/0/metrics/energy_total_mj"),
           "energy");
    is_int(values[1].value.uiVal, file_number("gpus/0/metrics/power_usage_instant_mw"),
           "instant power");
    is_int(values[2].value.uiVal, 12, "links");
    is_int((int64_t)values[3].value.ullVal, 1, "the first of which is up");
    is_int(values[4].nvmlReturn, NVML_ERROR_NOT_SUPPORTED, "what is no field says so, alone");
    nvml_put("control/clock", "resume");
}

/* --- setters --------------------------------------------------------------------------------- */

/* --- setters --------------------------------------------------------------------------------- */

static nvmlReturn_t as_nobody(nvmlReturn_t (*call)(nvmlDevice_t, unsigned int), unsigned int value)
{
    pid_t child = fork();
    int status = 0;

    if (child == 0)
        _exit(setuid(65534) == 0 ? (int)call(nvml_gpu(0), value) : 99);
    waitpid(child, &status, 0);
    return (nvmlReturn_t)WEXITSTATUS(status);
}

static void setters(void)
{
    is_int(CALL(nvmlDeviceSetPowerManagementLimit)(nvml_gpu(0), 250000), NVML_SUCCESS,
           "power limit");
    is_str(file_text("gpus/0/control/power_limit_mw"), "250000", "is in the file");
    is_int(CALL(nvmlDeviceSetPowerManagementLimit)(nvml_gpu(0), 1), NVML_ERROR_INVALID_ARGUMENT,
           "1 mW is refused");
    is_int(CALL(nvmlDeviceSetGpuLockedClocks)(nvml_gpu(0), 900, 900), NVML_SUCCESS, "clock lock");
    is_str(file_text("gpus/0/control/clock_lock"), "900 900", "is in the file");
    is_int(CALL(nvmlDeviceResetGpuLockedClocks)(nvml_gpu(0)), NVML_SUCCESS, "and gone");
    is_str(file_text("gpus/0/control/clock_lock"), "off", "from it");
    is_int(CALL(nvmlDeviceSetPersistenceMode)(nvml_gpu(0), NVML_FEATURE_DISABLED), NVML_SUCCESS,
           "persistence");
    is_str(file_text("gpus/0/metrics/persistence_mode"), "0", "is off");
    is_int(CALL(nvmlDeviceSetComputeMode)(nvml_gpu(0), NVML_COMPUTEMODE_EXCLUSIVE_PROCESS),
           NVML_SUCCESS, "compute mode");
    is_str(file_text("gpus/0/control/compute_mode"), "exclusive_process", "is in the file");
    CALL(nvmlDeviceSetComputeMode)(nvml_gpu(0), NVML_COMPUTEMODE_DEFAULT);
    is_int(as_nobody(CALL(nvmlDeviceSetPowerManagementLimit), 300000), NVML_ERROR_NO_PERMISSION,
           "somebody else may not");
    is_str(file_text("gpus/0/control/power_limit_mw"), "250000", "and did not");
}

/* --- MIG ------------------------------------------------------------------------------------- */

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

    is_int(CALL(nvmlDeviceSetMigMode)(nvml_gpu(2), 1, &activation), NVML_SUCCESS, "MIG on");
    CALL(nvmlDeviceGetMigMode)(nvml_gpu(2), &current, &pending);
    is_int(current, 1, "is on");
    is_int(CALL(nvmlDeviceGetGpuInstanceProfileInfo)(nvml_gpu(2), 2, &profile), NVML_SUCCESS,
           "three slices");
    is_int(CALL(nvmlDeviceCreateGpuInstance)(nvml_gpu(2), profile.id, &instance), NVML_SUCCESS,
           "an instance");
    is_int(CALL(nvmlGpuInstanceCreateComputeInstance)(instance, 2, &compute), NVML_SUCCESS,
           "with a compute instance");
    CALL(nvmlDeviceGetMaxMigDeviceCount)(nvml_gpu(2), &count);
    is_int(count, 7, "there could be seven");
    is_int(CALL(nvmlDeviceGetMigDeviceHandleByIndex)(nvml_gpu(2), 0, &found), NVML_SUCCESS,
           "there is one");
    is_int(CALL(nvmlDeviceGetMigDeviceHandleByIndex)(nvml_gpu(2), 1, &found), NVML_ERROR_NOT_FOUND,
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
    CALL(nvmlDeviceSetMigMode)(nvml_gpu(2), 0, &activation);
}

/* --- processes ------------------------------------------------------------------------------- */

/* --- processes ------------------------------------------------------------------------------- */

static void processes(void)
{
    char path[128];
    unsigned int count = 0;
    nvmlProcessInfo_t infos[8];
    nvmlProcessInfo_v1_t old[8];
    nvmlProcessUtilizationSample_t busy[8];

    is_int(CALL(nvmlDeviceGetComputeRunningProcesses_v3)(nvml_gpu(3), &count, NULL), NVML_SUCCESS,
           "nothing runs: a success");
    for (int i = 0; i < 2; i++) {
        if (mkdir(file_path("workloads/w%d", i), 0755) < 0)
            bail("workloads/w%d: %s", i, strerror(errno));
        snprintf(path, sizeof(path), "workloads/w%d/devices", i);
        nvml_put(path, "3");
        snprintf(path, sizeof(path), "workloads/w%d/memory", i);
        nvml_put(path, i ? "2GiB" : "1GiB");
        snprintf(path, sizeof(path), "workloads/w%d/activity", i);
        nvml_put(path, "[{utilization: 30}]");
    }
    WAIT_UNTIL((count = 0, CALL(nvmlDeviceGetComputeRunningProcesses_v3)(nvml_gpu(3), &count, NULL),
                count == 2));
    count = 0;
    is_int(CALL(nvmlDeviceGetComputeRunningProcesses_v3)(nvml_gpu(3), &count, NULL),
           NVML_ERROR_INSUFFICIENT_SIZE, "no room: asks for more");
    is_int(count, 2, "for two");
    count = 1;
    is_int(CALL(nvmlDeviceGetComputeRunningProcesses_v3)(nvml_gpu(3), &count, infos),
           NVML_ERROR_INSUFFICIENT_SIZE, "room for one is too little");
    is_int(count, 2, "and says so");
    count = 8;
    is_int(CALL(nvmlDeviceGetComputeRunningProcesses_v3)(nvml_gpu(3), &count, infos), NVML_SUCCESS,
           "room for eight");
    is_int(count, 2, "two are there");
    is_int((int64_t)(infos[0].usedGpuMemory + infos[1].usedGpuMemory), INT64_C(3) << 30,
           "with their memory");
    count = 8;
    is_int(CALL(nvmlDeviceGetComputeRunningProcesses)(nvml_gpu(3), &count, old), NVML_SUCCESS,
           "the old list");
    is_int(old[1].pid, infos[1].pid, "has the old structure");
    count = 0;
    is_int(CALL(nvmlDeviceGetProcessUtilization)(nvml_gpu(3), NULL, &count, 0),
           NVML_ERROR_INSUFFICIENT_SIZE, "utilization asks for room");
    is_int(CALL(nvmlDeviceGetProcessUtilization)(nvml_gpu(3), busy, &count, 0), NVML_SUCCESS,
           "and takes it");
    is_int(busy[0].pid, infos[0].pid, "for the same processes");
}

int main(void)
{
    nvml_mount_with("--gpus", "4");
    is_int(CALL(nvmlInit_v2)(), NVML_SUCCESS, "init");
    values();
    identity();
    lists();
    fields();
    setters();
    mig();
    processes();
    is_int(CALL(nvmlShutdown)(), NVML_SUCCESS, "the end");
    ok(mounted_down(), "and down again");
    return tap_done();
}
