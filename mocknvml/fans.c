/*
 * Fans: of boards that have their own. All fans of a board turn alike, and are set alike.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mocknvml/library.h"

static const char control_file[] = "control/fan_speed_percent";

nvmlReturn_t nvmlDeviceGetNumFans(nvmlDevice_t device, unsigned int *count)
{
    return give_fact(device, "fans", count);
}

nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned int *percent)
{
    return get_uint(device, METRIC_FAN_SPEED, percent);
}

/* NVML_ERROR_NOT_SUPPORTED on a board without fans. */
static nvmlReturn_t check_fan(nvmlDevice_t device, unsigned int fan, const void *answer)
{
    unsigned int count;
    nvmlReturn_t result = answer_check(answer);

    if (result == NVML_SUCCESS)
        result = nvmlDeviceGetNumFans(device, &count);
    if (result != NVML_SUCCESS)
        return result;
    return !count        ? NVML_ERROR_NOT_SUPPORTED
           : fan < count ? NVML_SUCCESS
                         : NVML_ERROR_INVALID_ARGUMENT;
}

/* What it was set to; 0 while it follows the temperature. */
static nvmlReturn_t read_set_speed(nvmlDevice_t device, unsigned int *percent)
{
    char text[32];
    nvmlReturn_t result = device_text(device, control_file, text, sizeof(text));

    if (result == NVML_SUCCESS)
        *percent = strcmp(text, "auto") ? (unsigned int)(strtod(text, NULL) + 0.5) : 0;
    return result;
}

/* --- reading --------------------------------------------------------------------------------- */

nvmlReturn_t nvmlDeviceGetFanSpeed_v2(nvmlDevice_t device, unsigned int fan, unsigned int *percent)
{
    nvmlReturn_t result = check_fan(device, fan, percent);

    return result == NVML_SUCCESS ? nvmlDeviceGetFanSpeed(device, percent) : result;
}

/* Where it is on its way to: what it was set to, else where the temperature has it. */
nvmlReturn_t nvmlDeviceGetTargetFanSpeed(nvmlDevice_t device, unsigned int fan,
                                         unsigned int *percent)
{
    unsigned int set = 0;
    nvmlReturn_t result = check_fan(device, fan, percent);

    if (result == NVML_SUCCESS)
        result = read_set_speed(device, &set);
    if (result == NVML_SUCCESS)
        result = nvmlDeviceGetFanSpeed(device, percent);
    if (result == NVML_SUCCESS && set)
        *percent = set;
    return result;
}

nvmlReturn_t nvmlDeviceGetFanSpeedRPM(nvmlDevice_t device, nvmlFanSpeedInfo_t *info)
{
    unsigned int percent, most;
    nvmlReturn_t result = STRUCT_CHECK(info, 1);

    if (result == NVML_SUCCESS)
        result = nvmlDeviceGetFanSpeed_v2(device, info->fan, &percent);
    if (result == NVML_SUCCESS)
        result = give_fact(device, "fan_max_rpm", &most);
    if (result == NVML_SUCCESS)
        info->speed = most * percent / 100;
    return result;
}

nvmlReturn_t nvmlDeviceGetMinMaxFanSpeed(nvmlDevice_t device, unsigned int *min, unsigned int *max)
{
    nvmlReturn_t result = check_fan(device, 0, min ? max : NULL);

    if (result == NVML_SUCCESS)
        result = give_fact(device, "fan_min_percent", min);
    if (result == NVML_SUCCESS)
        *max = 100;
    return result;
}

nvmlReturn_t nvmlDeviceGetFanControlPolicy_v2(nvmlDevice_t device, unsigned int fan,
                                              unsigned int *policy)
{
    unsigned int set;
    nvmlReturn_t result = check_fan(device, fan, policy);

    if (result == NVML_SUCCESS)
        result = read_set_speed(device, &set);
    if (result == NVML_SUCCESS)
        *policy = set ? NVML_FAN_POLICY_MANUAL : NVML_FAN_POLICY_TEMPERATURE_CONTINOUS_SW;
    return result;
}

nvmlReturn_t nvmlDeviceGetCoolerInfo(nvmlDevice_t device, nvmlCoolerInfo_t *info)
{
    nvmlReturn_t result = STRUCT_CHECK(info, 1);

    if (result == NVML_SUCCESS)
        result = check_fan(device, info->index, info);
    if (result != NVML_SUCCESS)
        return result;
    info->coolerControlType = NVML_THERMAL_COOLER_SIGNAL_VARIABLE;
    info->coolerTarget = NVML_THERMAL_COOLER_TARGET_GPU;
    return NVML_SUCCESS;
}

/* --- setting --------------------------------------------------------------------------------- */

nvmlReturn_t nvmlDeviceSetFanSpeed_v2(nvmlDevice_t device, unsigned int fan, unsigned int percent)
{
    char text[16];
    nvmlReturn_t result = check_fan(device, fan, &fan);

    snprintf(text, sizeof(text), "%u", percent);
    return result == NVML_SUCCESS ? device_write(device, control_file, text) : result;
}

nvmlReturn_t nvmlDeviceSetDefaultFanSpeed_v2(nvmlDevice_t device, unsigned int fan)
{
    nvmlReturn_t result = check_fan(device, fan, &fan);

    return result == NVML_SUCCESS ? device_write(device, control_file, "auto") : result;
}

/* By hand means: where it is now. */
nvmlReturn_t nvmlDeviceSetFanControlPolicy(nvmlDevice_t device, unsigned int fan,
                                           unsigned int policy)
{
    unsigned int percent, least;
    nvmlReturn_t result = check_fan(device, fan, &fan);

    if (result != NVML_SUCCESS)
        return result;
    if (policy == NVML_FAN_POLICY_TEMPERATURE_CONTINOUS_SW)
        return nvmlDeviceSetDefaultFanSpeed_v2(device, fan);
    if (policy != NVML_FAN_POLICY_MANUAL)
        return NVML_ERROR_INVALID_ARGUMENT;
    result = nvmlDeviceGetTargetFanSpeed(device, fan, &percent);
    if (result == NVML_SUCCESS)
        result = give_fact(device, "fan_min_percent", &least);
    return result == NVML_SUCCESS
               ? nvmlDeviceSetFanSpeed_v2(device, fan, percent < least ? least : percent)
               : result;
}
