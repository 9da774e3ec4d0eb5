/*
 * Control: the setters. Each writes one control file; who may is for the mount to say.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <stdio.h>

#include "mocknvml/library.h"

/* --- modes ----------------------------------------------------------------------------------- */

static nvmlReturn_t write_number(nvmlDevice_t device, const char *file, unsigned int value)
{
    char text[16];

    snprintf(text, sizeof(text), "%u", value);
    return device_write(device, file, text);
}

nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t *mode)
{
    return get_state(device, METRIC_PERSISTENCE_MODE, mode);
}

nvmlReturn_t nvmlDeviceSetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t mode)
{
    return write_number(device, "control/persistence_mode", mode);
}

nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, nvmlComputeMode_t *mode)
{
    unsigned int number;
    nvmlReturn_t result = get_uint(device, METRIC_COMPUTE_MODE, mode ? &number : NULL);

    if (result == NVML_SUCCESS)
        *mode = (nvmlComputeMode_t)number;
    return result;
}

nvmlReturn_t nvmlDeviceSetComputeMode(nvmlDevice_t device, nvmlComputeMode_t mode)
{
    return write_number(device, "control/compute_mode", mode);
}

nvmlReturn_t nvmlDeviceSetEccMode(nvmlDevice_t device, nvmlEnableState_t mode)
{
    return write_number(device, "control/ecc_mode", mode);
}

/* --- power ----------------------------------------------------------------------------------- */

nvmlReturn_t nvmlDeviceSetPowerManagementLimit(nvmlDevice_t device, unsigned int mw)
{
    return write_number(device, "control/power_limit_mw", mw);
}

/* Scope 0 is the GPU; the module around it has no limit of its own here. */
nvmlReturn_t nvmlDeviceSetPowerManagementLimit_v2(nvmlDevice_t device, nvmlPowerValue_v2_t *value)
{
    nvmlReturn_t result = STRUCT_CHECK(value, 2);

    if (result != NVML_SUCCESS)
        return result;
    return value->powerScope ? device_unsupported(device)
                             : nvmlDeviceSetPowerManagementLimit(device, value->powerValueMw);
}

/* --- clocks ---------------------------------------------------------------------------------- */

static nvmlReturn_t write_range(nvmlDevice_t device, const char *file, unsigned int low,
                                unsigned int high)
{
    char text[32];

    snprintf(text, sizeof(text), "%u %u", low, high);
    return device_write(device, file, text);
}

/* The special values that mean the thermal design power and no limit stand for the ends of the range. */
#define CLOCK_LIMIT_FIRST 0xffffff00u

static nvmlReturn_t plain_limits(nvmlDevice_t device, enum metric max, unsigned int *low,
                                 unsigned int *high)
{
    unsigned int top;
    nvmlReturn_t result = get_uint(device, max, &top);

    if (result != NVML_SUCCESS)
        return result;
    if (*low >= CLOCK_LIMIT_FIRST)
        *low = top;
    if (*high >= CLOCK_LIMIT_FIRST)
        *high = top;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceSetGpuLockedClocks(nvmlDevice_t device, unsigned int low, unsigned int high)
{
    nvmlReturn_t result = plain_limits(device, METRIC_CLOCK_SM_MAX, &low, &high);

    return result == NVML_SUCCESS ? write_range(device, "control/clock_lock", low, high) : result;
}

nvmlReturn_t nvmlDeviceResetGpuLockedClocks(nvmlDevice_t device)
{
    return device_write(device, "control/clock_lock", "off");
}

nvmlReturn_t nvmlDeviceSetMemoryLockedClocks(nvmlDevice_t device, unsigned int low,
                                             unsigned int high)
{
    nvmlReturn_t result = plain_limits(device, METRIC_CLOCK_MEMORY_MAX, &low, &high);

    return result == NVML_SUCCESS ? write_range(device, "control/memory_clock_lock", low, high)
                                  : result;
}

nvmlReturn_t nvmlDeviceResetMemoryLockedClocks(nvmlDevice_t device)
{
    return device_write(device, "control/memory_clock_lock", "off");
}

nvmlReturn_t nvmlDeviceSetApplicationsClocks(nvmlDevice_t device, unsigned int memory,
                                             unsigned int graphics)
{
    nvmlReturn_t result = device_answers_until(device, APPLICATION_CLOCKS_GONE);

    return result == NVML_SUCCESS
               ? write_range(device, "control/application_clocks", memory, graphics)
               : result;
}

nvmlReturn_t nvmlDeviceResetApplicationsClocks(nvmlDevice_t device)
{
    nvmlReturn_t result = device_answers_until(device, APPLICATION_CLOCKS_GONE);

    return result == NVML_SUCCESS ? device_write(device, "control/application_clocks", "off")
                                  : result;
}

/* --- what nothing restricts ------------------------------------------------------------------ */

nvmlReturn_t nvmlDeviceGetAPIRestriction(nvmlDevice_t device, nvmlRestrictedAPI_t what,
                                         nvmlEnableState_t *restricted)
{
    if ((unsigned int)what >= NVML_RESTRICTED_API_COUNT)
        return library_refuse(NVML_ERROR_INVALID_ARGUMENT);
    if (what == NVML_RESTRICTED_API_SET_AUTO_BOOSTED_CLOCKS)
        return device_unsupported(device);
    return give_uint(device, NVML_FEATURE_ENABLED, (unsigned int *)restricted);
}

/* --- ECC ------------------------------------------------------------------------------------- */

nvmlReturn_t nvmlDeviceClearEccErrorCounts(nvmlDevice_t device, nvmlEccCounterType_t counter)
{
    static const char *const commands[NVML_ECC_COUNTER_TYPE_COUNT] = { "clear volatile",
                                                                       "clear aggregate" };

    if ((unsigned int)counter >= NVML_ECC_COUNTER_TYPE_COUNT)
        return library_refuse(NVML_ERROR_INVALID_ARGUMENT);
    return device_write(device, "control/ecc_errors", commands[counter]);
}

/* --- draining -------------------------------------------------------------------------------- */

/* These name a GPU by its address, since it may be about to go. */
static nvmlReturn_t drained_device(const nvmlPciInfo_t *pci, nvmlDevice_t *device)
{
    char bus_id[32];
    nvmlReturn_t result = answer_check(pci);

    if (result != NVML_SUCCESS)
        return result;
    snprintf(bus_id, sizeof(bus_id), "%08x:%02x:%02x.0", pci->domain, pci->bus, pci->device);
    result = nvmlDeviceGetHandleByPciBusId_v2(bus_id, device);
    return result == NVML_ERROR_NOT_FOUND ? NVML_ERROR_INVALID_ARGUMENT : result;
}

nvmlReturn_t nvmlDeviceQueryDrainState(nvmlPciInfo_t *pci, nvmlEnableState_t *state)
{
    nvmlDevice_t device;
    char text[8];
    nvmlReturn_t result = answer_check(state);

    if (result == NVML_SUCCESS)
        result = drained_device(pci, &device);
    if (result == NVML_SUCCESS)
        result = device_text(device, "control/drain", text, sizeof(text));
    if (result == NVML_SUCCESS)
        *state = *text == '1' ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
    return result;
}

nvmlReturn_t nvmlDeviceModifyDrainState(nvmlPciInfo_t *pci, nvmlEnableState_t state)
{
    nvmlDevice_t device;
    nvmlReturn_t result = drained_device(pci, &device);

    if (result != NVML_SUCCESS)
        return result;
    return (unsigned int)state > NVML_FEATURE_ENABLED
               ? NVML_ERROR_INVALID_ARGUMENT
               : write_number(device, "control/drain", state);
}

/* Off its bus as if it had fallen, when nobody uses it. */
nvmlReturn_t nvmlDeviceRemoveGpu(nvmlPciInfo_t *pci)
{
    unsigned int processes = 0;
    nvmlDevice_t device;
    nvmlReturn_t result = drained_device(pci, &device);

    if (result == NVML_SUCCESS)
        result = nvmlDeviceGetComputeRunningProcesses_v3(device, &processes, NULL);
    if (result == NVML_ERROR_INSUFFICIENT_SIZE)
        return NVML_ERROR_IN_USE;
    return result == NVML_SUCCESS ? device_write(device, "control/fault", "fallen_off_bus")
                                  : result;
}

/* What is asked of the GPU and of its link makes no difference here. */
nvmlReturn_t nvmlDeviceRemoveGpu_v2(nvmlPciInfo_t *pci, unsigned int gpu_state,
                                    unsigned int link_state)
{
    (void)gpu_state, (void)link_state;
    return nvmlDeviceRemoveGpu(pci);
}

/* The address of a GPU by its place, also of one that is gone. */
static bool address_of(int gpu, nvmlPciInfo_t *pci)
{
    char path[64], text[32];

    *pci = (nvmlPciInfo_t){ 0 };
    snprintf(path, sizeof(path), "gpus/%d/identity/bus_id", gpu);
    return root_text(path, text, sizeof(text)) == NVML_SUCCESS &&
           sscanf(text, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device) == 3;
}

static bool is_same_address(const nvmlPciInfo_t *one, const nvmlPciInfo_t *other)
{
    return one->domain == other->domain && one->bus == other->bus && one->device == other->device;
}

static nvmlReturn_t bring_back(int gpu)
{
    char path[64];

    snprintf(path, sizeof(path), "gpus/%d/control/fault", gpu);
    return root_write(path, "recover");
}

/*
 * Brings back what is gone from that address, or from everywhere when it is all zeros; nothing new is found
 * where all is there.
 */
nvmlReturn_t nvmlDeviceDiscoverGpus(nvmlPciInfo_t *pci)
{
    static const nvmlPciInfo_t everywhere;
    bool all = pci && is_same_address(pci, &everywhere);
    nvmlReturn_t result, found = NVML_ERROR_INVALID_ARGUMENT;
    struct reader_node node;
    nvmlDevice_t device;

    result = all ? library_check() : drained_device(pci, &device);
    if (result != (all ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT) || !pci)
        return result;
    result = node_read(&node);
    for (int i = 0; result == NVML_SUCCESS && i < node.gpu_count; i++) {
        nvmlPciInfo_t here;

        if (address_of(i, &here) && (all || is_same_address(pci, &here)) &&
            drained_device(&here, &device) != NVML_SUCCESS)
            result = found = bring_back(i);
    }
    return result != NVML_SUCCESS || all ? result : found;
}
