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
    nvmlReturn_t result = device_check(device);

    if (result != NVML_SUCCESS)
        return result;
    if (!value)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (value->version != NVML_STRUCT_VERSION(sizeof(*value), 2))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (value->powerScope)
        return NVML_ERROR_NOT_SUPPORTED;
    return nvmlDeviceSetPowerManagementLimit(device, value->powerValueMw);
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
    return write_range(device, "control/application_clocks", memory, graphics);
}

nvmlReturn_t nvmlDeviceResetApplicationsClocks(nvmlDevice_t device)
{
    return device_write(device, "control/application_clocks", "off");
}

/* --- what nothing restricts ------------------------------------------------------------------ */

nvmlReturn_t nvmlDeviceGetAPIRestriction(nvmlDevice_t device, nvmlRestrictedAPI_t what,
                                         nvmlEnableState_t *restricted)
{
    if ((unsigned int)what >= NVML_RESTRICTED_API_COUNT)
        return library_check() == NVML_SUCCESS ? NVML_ERROR_INVALID_ARGUMENT
                                               : NVML_ERROR_UNINITIALIZED;
    if (what == NVML_RESTRICTED_API_SET_AUTO_BOOSTED_CLOCKS)
        return library_unsupported();
    return give_uint(device, NVML_FEATURE_ENABLED, (unsigned int *)restricted);
}
