/*
 * Every function of the mock NVML, used wrongly: before init, with nothing where an answer should go, with handles that
 * are none, with structures of another version.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tests/nvml_calls.h"
#include "tests/nvml_library.h"

static bool is_one_of(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (!strcmp(*names, name))
            return true;
    return false;
}

/* --- before init ----------------------------------------------------------------------------- */

static void uninitialized(void)
{
    static const char *const names[] = {
#define FUNCTION(name, status, files) #name,
#include "mocknvml/functions.def"
    };
    static const char *const others[] = { "nvmlErrorString", "nvmlInit", "nvmlInit_v2",
                                          "nvmlInitWithFlags", NULL };
    uintptr_t nothing[ARGUMENTS] = { 0 };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!is_one_of(names[i], others))
            is_int(invoke(nvml_symbol(names[i]), nothing), NVML_ERROR_UNINITIALIZED,
                   "%s before init says that", names[i]);
}

/* --- wrong arguments ------------------------------------------------------------------------- */

/* Where nothing may be given: lists whose count says that there is no room, and results that are not wanted. */
static const struct {
    const char *name;
    int argument;
} optional[] = {
    { "nvmlSystemGetHicVersion", 1 },
    { "nvmlDeviceGetEncoderSessions", 2 },
    { "nvmlDeviceGetFBCSessions", 2 },
    { "nvmlDeviceGetSupportedMemoryClocks", 2 },
    { "nvmlDeviceGetSupportedGraphicsClocks", 3 },
    { "nvmlDeviceGetRetiredPages", 3 },
    { "nvmlDeviceGetRetiredPages_v2", 3 },
    { "nvmlDeviceGetRetiredPages_v2", 4 },
    { "nvmlDeviceGetTopologyNearestGpus", 3 },
    { "nvmlSystemGetTopologyGpuSet", 2 },
    { "nvmlDeviceGetComputeRunningProcesses", 2 },
    { "nvmlDeviceGetComputeRunningProcesses_v2", 2 },
    { "nvmlDeviceGetComputeRunningProcesses_v3", 2 },
    { "nvmlDeviceGetGraphicsRunningProcesses", 2 },
    { "nvmlDeviceGetGraphicsRunningProcesses_v2", 2 },
    { "nvmlDeviceGetGraphicsRunningProcesses_v3", 2 },
    { "nvmlDeviceGetMPSComputeRunningProcesses", 2 },
    { "nvmlDeviceGetMPSComputeRunningProcesses_v2", 2 },
    { "nvmlDeviceGetMPSComputeRunningProcesses_v3", 2 },
    { "nvmlDeviceGetProcessUtilization", 1 },
    { "nvmlDeviceGetAccountingPids", 2 },
    { "nvmlDeviceGetSamples", 5 },
    { "nvmlDeviceGetGpuInstancePossiblePlacements", 2 },
    { "nvmlDeviceGetGpuInstancePossiblePlacements_v2", 2 },
    { "nvmlGpuInstanceGetComputeInstancePossiblePlacements", 2 },
};

static bool is_optional(const struct call *call, int argument)
{
    for (size_t i = 0; i < sizeof(optional) / sizeof(optional[0]); i++)
        if (!strcmp(optional[i].name, call->name) && optional[i].argument == argument)
            return true;
    return false;
}

/* What the call says with its argument i replaced. */
static nvmlReturn_t with(const struct call *call, const struct handles *h, int i, const void *other)
{
    uintptr_t a[ARGUMENTS];

    make_arguments(call, h, a);
    a[i] = (uintptr_t)other;
    return invoke(nvml_symbol(call->name), a);
}

static void wrong_version(const struct call *call, const struct handles *h, int i)
{
    static const unsigned int versions[] = { 0, 0x7f000004, 0xffffffff };
    uintptr_t a[ARGUMENTS];

    for (size_t v = 0; v < sizeof(versions) / sizeof(versions[0]); v++) {
        make_arguments(call, h, a);
        memcpy(rooms[i], &versions[v], sizeof(versions[v]));
        is_int(invoke(nvml_symbol(call->name), a), NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
               "%s: %#x is no version", call->name, versions[v]);
    }
}

static void wrong_arguments(const struct call *call, const struct handles *h)
{
    static const uint64_t foreign[64];

    for (int i = 0; call->kinds[i]; i++) {
        char kind = call->kinds[i];

        if (kind == 'i')
            continue;
        if (!is_optional(call, i))
            is_int(with(call, h, i, NULL), NVML_ERROR_INVALID_ARGUMENT,
                   "%s: nothing as argument %d", call->name, i + 1);
        if (strchr("dgcem", kind)) {
            is_int(with(call, h, i, foreign), NVML_ERROR_INVALID_ARGUMENT,
                   "%s: argument %d is somebody else's", call->name, i + 1);
            is_int(with(call, h, i, (char *)h->device + 1), NVML_ERROR_INVALID_ARGUMENT,
                   "%s: argument %d points into a handle", call->name, i + 1);
        }
        if (kind == 'v')
            wrong_version(call, h, i);
    }
}

static void all_wrong_arguments(int index)
{
    struct handles h = { 0 };
    static const char *const life[] = { "nvmlShutdown", "nvmlInitWithFlags", NULL };

    is_int(CALL(nvmlDeviceGetHandleByIndex_v2)((unsigned)index, &h.device), NVML_SUCCESS, "GPU %d",
           index);
    for (unsigned int gi = 0; gi < 15 && !h.gpu_instance; gi++)
        CALL(nvmlDeviceGetGpuInstanceById)(h.device, gi, &h.gpu_instance);
    if (h.gpu_instance)
        CALL(nvmlGpuInstanceGetComputeInstanceById)(h.gpu_instance, 0, &h.compute_instance);
    CALL(nvmlEventSetCreate)(&h.events);
    CALL(nvmlGpmSampleAlloc)(&h.sample);
    for (int i = 0; i < CALLS; i++)
        if (!is_one_of(calls[i].name, life))
            wrong_arguments(&calls[i], &h);
    CALL(nvmlGpmSampleFree)(h.sample);
    CALL(nvmlEventSetFree)(h.events);
}

/* What is freed is no handle any more, and neither is one of another kind. */
static void stale_handles(void)
{
    nvmlGpmSample_t sample;
    nvmlEventSet_t set;
    nvmlEventData_t data;
    nvmlSystemEventSetCreateRequest_v1_t made = { .version = NVML_STRUCT_VERSION(sizeof(made), 1) };
    nvmlSystemEventSetFreeRequest_v1_t gone = { .version = NVML_STRUCT_VERSION(sizeof(gone), 1) };
    nvmlDevice_t device;

    CALL(nvmlDeviceGetHandleByIndex_v2)(1, &device);
    CALL(nvmlGpmSampleAlloc)(&sample);
    is_int(CALL(nvmlGpmSampleFree)(sample), NVML_SUCCESS, "a GPM sample is freed");
    is_int(CALL(nvmlGpmSampleFree)(sample), NVML_ERROR_INVALID_ARGUMENT, "once");
    is_int(CALL(nvmlGpmSampleGet)(device, sample), NVML_ERROR_INVALID_ARGUMENT, "and is gone");
    CALL(nvmlEventSetCreate)(&set);
    is_int(CALL(nvmlSystemEventSetCreate)(&made), NVML_SUCCESS, "a set of system events");
    is_int(CALL(nvmlEventSetWait_v2)((nvmlEventSet_t)made.set, &data, 0),
           NVML_ERROR_INVALID_ARGUMENT, "is no event set");
    gone.set = (nvmlSystemEventSet_t)set;
    is_int(CALL(nvmlSystemEventSetFree)(&gone), NVML_ERROR_INVALID_ARGUMENT, "nor the other way");
    gone.set = made.set;
    is_int(CALL(nvmlSystemEventSetFree)(&gone), NVML_SUCCESS, "it is freed");
    is_int(CALL(nvmlSystemEventSetFree)(&gone), NVML_ERROR_INVALID_ARGUMENT, "once");
    is_int(CALL(nvmlEventSetFree)(set), NVML_SUCCESS, "the event set as well");
    is_int(CALL(nvmlEventSetWait_v2)(set, &data, 0), NVML_ERROR_INVALID_ARGUMENT, "and is gone");
}

int main(void)
{
    nvml_mount("tests/nvml_node.yaml");
    uninitialized();
    is_int(CALL(nvmlInit_v2)(), NVML_SUCCESS, "init");
    is_int(file_put("gpus/0/mig/instances", "create 1g.5gb"), 0, "a MIG device");
    all_wrong_arguments(0);
    all_wrong_arguments(3);
    stale_handles();
    is_int(CALL(nvmlShutdown)(), NVML_SUCCESS, "shutdown");
    uninitialized();
    ok(mounted_down(), "and down again");
    return tap_done();
}
