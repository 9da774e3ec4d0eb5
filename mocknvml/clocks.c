/*
 * Clocks, power, heat and what they do to each other.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "mocknvml/library.h"

/* --- clocks ---------------------------------------------------------------------------------- */

/* Rows of clock types; METRIC_COUNT: there is no such metric. */
static nvmlReturn_t clock_of(nvmlDevice_t device, const enum metric *ids, nvmlClockType_t type,
                             unsigned int *mhz)
{
    if ((unsigned int)type >= NVML_CLOCK_COUNT)
        return library_check() == NVML_SUCCESS ? NVML_ERROR_INVALID_ARGUMENT
                                               : NVML_ERROR_UNINITIALIZED;
    return ids[type] == METRIC_COUNT ? library_unsupported() : get_uint(device, ids[type], mhz);
}

static const enum metric current_clocks[] = { METRIC_CLOCK_GRAPHICS, METRIC_CLOCK_SM,
                                              METRIC_CLOCK_MEMORY, METRIC_CLOCK_VIDEO };
static const enum metric max_clocks[] = { METRIC_CLOCK_GRAPHICS_MAX, METRIC_CLOCK_SM_MAX,
                                          METRIC_CLOCK_MEMORY_MAX, METRIC_CLOCK_VIDEO_MAX };
static const enum metric application_clocks[] = { METRIC_CLOCK_SM_APPLICATION,
                                                  METRIC_CLOCK_SM_APPLICATION,
                                                  METRIC_CLOCK_MEMORY_APPLICATION, METRIC_COUNT };

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *mhz)
{
    return clock_of(device, current_clocks, type, mhz);
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *mhz)
{
    return clock_of(device, max_clocks, type, mhz);
}

nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t device, nvmlClockType_t type,
                                            unsigned int *mhz)
{
    return clock_of(device, application_clocks, type, mhz);
}

nvmlReturn_t nvmlDeviceGetMaxCustomerBoostClock(nvmlDevice_t device, nvmlClockType_t type,
                                                unsigned int *mhz)
{
    return clock_of(device, max_clocks, type, mhz);
}

/* One line of gpus/<i>/supported_clocks. */
struct clock_row {
    unsigned int memory_mhz;
    int64_t min_khz, max_khz, step_khz, base_khz;
};

static bool parse_clocks(const char *line, struct clock_row *row)
{
    return sscanf(line, "%u %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64, &row->memory_mhz,
                  &row->min_khz, &row->max_khz, &row->step_khz, &row->base_khz) == 5 &&
           row->step_khz > 0;
}

/* The row of the highest memory clock. */
static nvmlReturn_t first_clocks(nvmlDevice_t device, struct clock_row *row)
{
    char text[TABLE_BYTES], *rest = text, *line;
    nvmlReturn_t result = device_text(device, "supported_clocks", text, sizeof(text));

    if (result != NVML_SUCCESS)
        return result;
    line = table_line(&rest);
    return line && parse_clocks(line, row) ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetDefaultApplicationsClock(nvmlDevice_t device, nvmlClockType_t type,
                                                   unsigned int *mhz)
{
    struct clock_row row;
    nvmlReturn_t result = first_clocks(device, &row);

    if (result != NVML_SUCCESS)
        return result;
    if (!mhz || (unsigned int)type >= NVML_CLOCK_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (type == NVML_CLOCK_VIDEO)
        return NVML_ERROR_NOT_SUPPORTED;
    *mhz = type == NVML_CLOCK_MEM
               ? row.memory_mhz
               : (unsigned int)((row.base_khz ? row.base_khz : row.max_khz) / 1000);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, nvmlClockType_t type, nvmlClockId_t id,
                                unsigned int *mhz)
{
    switch (id) {
    case NVML_CLOCK_ID_CURRENT:
        return nvmlDeviceGetClockInfo(device, type, mhz);
    case NVML_CLOCK_ID_APP_CLOCK_TARGET:
        return nvmlDeviceGetApplicationsClock(device, type, mhz);
    case NVML_CLOCK_ID_APP_CLOCK_DEFAULT:
        return nvmlDeviceGetDefaultApplicationsClock(device, type, mhz);
    case NVML_CLOCK_ID_CUSTOMER_BOOST_MAX:
        return nvmlDeviceGetMaxCustomerBoostClock(device, type, mhz);
    case NVML_CLOCK_ID_COUNT:
        break;
    }
    return library_check() == NVML_SUCCESS ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_UNINITIALIZED;
}

nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, unsigned int *count,
                                                unsigned int *mhz)
{
    char text[TABLE_BYTES], *rest = text, *line;
    nvmlReturn_t result = device_text(device, "supported_clocks", text, sizeof(text));
    struct list list = { mhz, sizeof(*mhz), count ? *count : 0, 0 };
    struct clock_row row;

    if (result != NVML_SUCCESS)
        return result;
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    while ((line = table_line(&rest)))
        if (parse_clocks(line, &row))
            list_add(&list, &row.memory_mhz);
    return list_end(&list, count);
}

static void add_clocks(struct list *list, const struct clock_row *row)
{
    for (int64_t khz = row->max_khz; khz >= row->min_khz; khz -= row->step_khz) {
        unsigned int mhz = (unsigned int)(khz / 1000);

        list_add(list, &mhz);
    }
}

nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device, unsigned int memory_mhz,
                                                  unsigned int *count, unsigned int *mhz)
{
    char text[TABLE_BYTES], *rest = text, *line;
    nvmlReturn_t result = device_text(device, "supported_clocks", text, sizeof(text));
    struct list list = { mhz, sizeof(*mhz), count ? *count : 0, 0 };
    struct clock_row row;

    if (result != NVML_SUCCESS)
        return result;
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    while ((line = table_line(&rest)))
        if (parse_clocks(line, &row) && row.memory_mhz == memory_mhz)
            add_clocks(&list, &row);
    return list.used ? list_end(&list, count) : NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetMinMaxClockOfPState(nvmlDevice_t device, nvmlClockType_t type,
                                              nvmlPstates_t pstate, unsigned int *min,
                                              unsigned int *max)
{
    struct clock_row row;
    nvmlReturn_t result = first_clocks(device, &row);

    if (result != NVML_SUCCESS)
        return result;
    if (!min || !max || (unsigned int)type >= NVML_CLOCK_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (pstate != NVML_PSTATE_0 || type == NVML_CLOCK_VIDEO)
        return NVML_ERROR_NOT_SUPPORTED;
    *min = type == NVML_CLOCK_MEM ? row.memory_mhz : (unsigned int)(row.min_khz / 1000);
    *max = type == NVML_CLOCK_MEM ? row.memory_mhz : (unsigned int)(row.max_khz / 1000);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device,
                                                    unsigned long long *reasons)
{
    return get_u64(device, METRIC_THROTTLE_REASONS, reasons);
}

nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device,
                                                       unsigned long long *reasons)
{
    return get_u64(device, METRIC_THROTTLE_REASONS, reasons);
}

nvmlReturn_t nvmlDeviceGetSupportedClocksEventReasons(nvmlDevice_t device,
                                                      unsigned long long *reasons)
{
    nvmlReturn_t result = get_u64(device, METRIC_THROTTLE_REASONS, reasons);

    if (result == NVML_SUCCESS)
        *reasons = nvmlClocksEventReasonAll;
    return result;
}

nvmlReturn_t nvmlDeviceGetSupportedClocksThrottleReasons(nvmlDevice_t device,
                                                         unsigned long long *reasons)
{
    return nvmlDeviceGetSupportedClocksEventReasons(device, reasons);
}

nvmlReturn_t nvmlDeviceGetAdaptiveClockInfoStatus(nvmlDevice_t device, unsigned int *status)
{
    return give_uint(device, 0, status);
}

nvmlReturn_t nvmlDeviceGetClkMonStatus(nvmlDevice_t device, nvmlClkMonStatus_t *status)
{
    nvmlReturn_t result = device_check(device);

    if (result != NVML_SUCCESS)
        return result;
    if (!status)
        return NVML_ERROR_INVALID_ARGUMENT;
    status->bGlobalStatus = status->clkMonListSize = 0;
    return NVML_SUCCESS;
}

/* "nvclk=1410; nvclkmin=…", as the interface spells them. */
nvmlReturn_t nvmlDeviceGetCurrentClockFreqs(nvmlDevice_t device,
                                            nvmlDeviceCurrentClockFreqs_v1_t *freqs)
{
    unsigned int sm, memory;
    nvmlReturn_t result = get_uint(device, METRIC_CLOCK_SM, &sm);

    if (result == NVML_SUCCESS)
        result = get_uint(device, METRIC_CLOCK_MEMORY, &memory);
    if (result != NVML_SUCCESS)
        return result;
    if (!freqs)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (freqs->version != NVML_STRUCT_VERSION(sizeof(*freqs), 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    snprintf(freqs->str, sizeof(freqs->str), "nvclk=%u, memclk=%u", sm, memory);
    return NVML_SUCCESS;
}

/* --- P-states -------------------------------------------------------------------------------- */

nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, nvmlPstates_t *state)
{
    unsigned int number;
    nvmlReturn_t result = get_uint(device, METRIC_PSTATE, state ? &number : NULL);

    if (result == NVML_SUCCESS)
        *state = (nvmlPstates_t)number;
    return result;
}

nvmlReturn_t nvmlDeviceGetPowerState(nvmlDevice_t device, nvmlPstates_t *state)
{
    return nvmlDeviceGetPerformanceState(device, state);
}

nvmlReturn_t nvmlDeviceGetSupportedPerformanceStates(nvmlDevice_t device, nvmlPstates_t *states,
                                                     unsigned int bytes)
{
    unsigned int room = bytes / sizeof(*states);
    int64_t idle;
    nvmlReturn_t result = device_fact(device, "idle_pstate", &idle);

    if (result != NVML_SUCCESS)
        return result;
    if (!states)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (room < 1 || (idle && room < 2))
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned int i = 0; i < room; i++)
        states[i] = NVML_PSTATE_UNKNOWN;
    states[0] = NVML_PSTATE_0;
    if (idle)
        states[1] = (nvmlPstates_t)idle;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPerformanceModes(nvmlDevice_t device, nvmlDevicePerfModes_v1_t *modes)
{
    struct clock_row row;
    nvmlReturn_t result = first_clocks(device, &row);

    if (result != NVML_SUCCESS)
        return result;
    if (!modes)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (modes->version != NVML_STRUCT_VERSION(sizeof(*modes), 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    snprintf(modes->str, sizeof(modes->str),
             "perf=0, nvclk=%" PRId64 ", nvclkmin=%" PRId64 ", nvclkmax=%" PRId64 ", memclk=%u",
             row.max_khz / 1000, row.min_khz / 1000, row.max_khz / 1000, row.memory_mhz);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetDynamicPstatesInfo(nvmlDevice_t device, nvmlGpuDynamicPstatesInfo_t *info)
{
    static const enum metric ids[] = { METRIC_UTILIZATION_GPU, METRIC_UTILIZATION_MEMORY,
                                       METRIC_UTILIZATION_DECODER };
    struct reader_gpu gpu;
    nvmlReturn_t result = device_read_gpu(device, &gpu);
    int64_t value;

    if (result != NVML_SUCCESS)
        return result;
    if (!info)
        return NVML_ERROR_INVALID_ARGUMENT;
    memset(info, 0, sizeof(*info));
    info->flags = 1;
    for (int i = 0; i < 3; i++)
        if (sample_value(&gpu.sample, ids[i], &value) == 0) {
            info->utilization[i].bIsPresent = 1;
            info->utilization[i].percentage = (unsigned int)value;
        }
    return NVML_SUCCESS;
}

/* --- power ----------------------------------------------------------------------------------- */

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *mw)
{
    return get_uint(device, METRIC_POWER_USAGE, mw);
}

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *mj)
{
    return get_u64(device, METRIC_ENERGY_TOTAL, mj);
}

nvmlReturn_t nvmlDeviceGetPowerManagementMode(nvmlDevice_t device, nvmlEnableState_t *mode)
{
    unsigned int limit;
    nvmlReturn_t result = get_uint(device, METRIC_POWER_LIMIT, mode ? &limit : NULL);

    if (result == NVML_SUCCESS)
        *mode = NVML_FEATURE_ENABLED;
    return result;
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned int *mw)
{
    return get_uint(device, METRIC_POWER_LIMIT, mw);
}

nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t device, unsigned int *mw)
{
    return get_uint(device, METRIC_POWER_LIMIT_DEFAULT, mw);
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *mw)
{
    return get_uint(device, METRIC_POWER_LIMIT_ENFORCED, mw);
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned int *min_mw,
                                                          unsigned int *max_mw)
{
    nvmlReturn_t result = get_uint(device, METRIC_POWER_LIMIT_MIN, min_mw);

    return result == NVML_SUCCESS ? get_uint(device, METRIC_POWER_LIMIT_MAX, max_mw) : result;
}

/* --- heat ------------------------------------------------------------------------------------ */

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor,
                                      unsigned int *celsius)
{
    if (sensor != NVML_TEMPERATURE_GPU)
        return library_check() == NVML_SUCCESS ? NVML_ERROR_INVALID_ARGUMENT
                                               : NVML_ERROR_UNINITIALIZED;
    return get_uint(device, METRIC_TEMPERATURE_GPU, celsius);
}

nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_v1_t *temperature)
{
    int celsius;
    nvmlReturn_t result = get_int(device, METRIC_TEMPERATURE_GPU, &celsius);

    if (result != NVML_SUCCESS)
        return result;
    if (!temperature)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (temperature->version != NVML_STRUCT_VERSION(sizeof(*temperature), 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (temperature->sensorType != NVML_TEMPERATURE_GPU)
        return NVML_ERROR_INVALID_ARGUMENT;
    temperature->temperature = celsius;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device,
                                               nvmlTemperatureThresholds_t which,
                                               unsigned int *celsius)
{
    static const enum metric ids[] = {
        [NVML_TEMPERATURE_THRESHOLD_SHUTDOWN] = METRIC_TEMPERATURE_SHUTDOWN,
        [NVML_TEMPERATURE_THRESHOLD_SLOWDOWN] = METRIC_TEMPERATURE_SLOWDOWN,
        [NVML_TEMPERATURE_THRESHOLD_MEM_MAX] = METRIC_TEMPERATURE_MEMORY_MAX,
        [NVML_TEMPERATURE_THRESHOLD_GPU_MAX] = METRIC_TEMPERATURE_MAX_OPERATING,
    };

    if ((unsigned int)which >= NVML_TEMPERATURE_THRESHOLD_COUNT)
        return library_check() == NVML_SUCCESS ? NVML_ERROR_INVALID_ARGUMENT
                                               : NVML_ERROR_UNINITIALIZED;
    if (which > NVML_TEMPERATURE_THRESHOLD_GPU_MAX)
        return library_unsupported();
    return get_uint(device, ids[which], celsius);
}

nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t device, nvmlMarginTemperature_v1_t *margin)
{
    int celsius;
    nvmlReturn_t result = get_int(device, METRIC_TEMPERATURE_MARGIN, &celsius);

    if (result != NVML_SUCCESS)
        return result;
    if (!margin)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (margin->version != NVML_STRUCT_VERSION(sizeof(*margin), 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    margin->marginTemperature = celsius;
    return NVML_SUCCESS;
}

/* Sensor 15 means all of them; here the GPU's, then the memory's where it has one. */
nvmlReturn_t nvmlDeviceGetThermalSettings(nvmlDevice_t device, unsigned int sensor,
                                          nvmlGpuThermalSettings_t *settings)
{
    static const struct {
        enum metric id, max;
        int target;
    } rows[] = { { METRIC_TEMPERATURE_GPU, METRIC_TEMPERATURE_SHUTDOWN, NVML_THERMAL_TARGET_GPU },
                 { METRIC_TEMPERATURE_MEMORY, METRIC_TEMPERATURE_MEMORY_MAX,
                   NVML_THERMAL_TARGET_MEMORY } };
    struct reader_gpu gpu;
    nvmlReturn_t result = device_read_gpu(device, &gpu);
    int64_t value, max;

    if (result != NVML_SUCCESS)
        return result;
    if (!settings || (sensor > 2 && sensor != NVML_THERMAL_TARGET_ALL))
        return NVML_ERROR_INVALID_ARGUMENT;
    settings->count = 0;
    for (unsigned int i = 0; i < 2; i++) {
        if (sample_value(&gpu.sample, rows[i].id, &value) < 0 ||
            (sensor != NVML_THERMAL_TARGET_ALL && sensor != i))
            continue;
        if (sample_value(&gpu.sample, rows[i].max, &max) < 0)
            max = 127;
        settings->sensor[settings->count++] = (nvmlGpuThermalSensor_t){
            NVML_THERMAL_CONTROLLER_GPU_INTERNAL, 0, (int)max, (int)value, rows[i].target
        };
    }
    return settings->count ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

/* --- fans ------------------------------------------------------------------------------------ */

nvmlReturn_t nvmlDeviceGetNumFans(nvmlDevice_t device, unsigned int *count)
{
    return give_fact(device, "fans", count);
}

nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned int *percent)
{
    return get_uint(device, METRIC_FAN_SPEED, percent);
}

static nvmlReturn_t check_fan(nvmlDevice_t device, unsigned int fan)
{
    unsigned int count;
    nvmlReturn_t result = nvmlDeviceGetNumFans(device, &count);

    if (result != NVML_SUCCESS)
        return result;
    return !count        ? NVML_ERROR_NOT_SUPPORTED
           : fan < count ? NVML_SUCCESS
                         : NVML_ERROR_INVALID_ARGUMENT;
}

/* All fans of a board turn alike. */
nvmlReturn_t nvmlDeviceGetFanSpeed_v2(nvmlDevice_t device, unsigned int fan, unsigned int *percent)
{
    nvmlReturn_t result = check_fan(device, fan);

    return result == NVML_SUCCESS ? nvmlDeviceGetFanSpeed(device, percent) : result;
}

nvmlReturn_t nvmlDeviceGetTargetFanSpeed(nvmlDevice_t device, unsigned int fan,
                                         unsigned int *percent)
{
    return nvmlDeviceGetFanSpeed_v2(device, fan, percent);
}

nvmlReturn_t nvmlDeviceGetMinMaxFanSpeed(nvmlDevice_t device, unsigned int *min, unsigned int *max)
{
    nvmlReturn_t result = check_fan(device, 0);

    if (result != NVML_SUCCESS)
        return result;
    if (!max)
        return NVML_ERROR_INVALID_ARGUMENT;
    *max = 100;
    return give_fact(device, "fan_min_percent", min);
}

nvmlReturn_t nvmlDeviceGetFanControlPolicy_v2(nvmlDevice_t device, unsigned int fan,
                                              unsigned int *policy)
{
    nvmlReturn_t result = check_fan(device, fan);

    return result == NVML_SUCCESS
               ? give_uint(device, NVML_FAN_POLICY_TEMPERATURE_CONTINOUS_SW, policy)
               : result;
}

nvmlReturn_t nvmlDeviceGetCoolerInfo(nvmlDevice_t device, nvmlCoolerInfo_t *info)
{
    nvmlReturn_t result = check_fan(device, info ? info->index : 0);

    if (result != NVML_SUCCESS)
        return result;
    if (!info)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (info->version != NVML_STRUCT_VERSION(sizeof(*info), 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    info->coolerControlType = NVML_THERMAL_COOLER_SIGNAL_VARIABLE;
    info->coolerTarget = NVML_THERMAL_COOLER_TARGET_GPU;
    return NVML_SUCCESS;
}

/* --- violations ------------------------------------------------------------------------------ */

nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t device, nvmlPerfPolicyType_t policy,
                                          nvmlViolationTime_t *time)
{
    static const enum metric ids[NVML_PERF_POLICY_COUNT] = {
        [NVML_PERF_POLICY_POWER] = METRIC_VIOLATION_POWER,
        [NVML_PERF_POLICY_THERMAL] = METRIC_VIOLATION_THERMAL,
        [NVML_PERF_POLICY_SYNC_BOOST] = METRIC_VIOLATION_SYNC_BOOST,
        [NVML_PERF_POLICY_BOARD_LIMIT] = METRIC_VIOLATION_BOARD_LIMIT,
        [NVML_PERF_POLICY_LOW_UTILIZATION] = METRIC_VIOLATION_LOW_UTILIZATION,
        [NVML_PERF_POLICY_RELIABILITY] = METRIC_VIOLATION_RELIABILITY,
        [NVML_PERF_POLICY_TOTAL_APP_CLOCKS] = METRIC_VIOLATION_APPLICATION_CLOCKS,
        [NVML_PERF_POLICY_TOTAL_BASE_CLOCKS] = METRIC_VIOLATION_BASE_CLOCKS,
    };
    int64_t ns;
    nvmlReturn_t result;

    if ((unsigned int)policy >= NVML_PERF_POLICY_COUNT || !ids[policy])
        return library_check() == NVML_SUCCESS ? NVML_ERROR_INVALID_ARGUMENT
                                               : NVML_ERROR_UNINITIALIZED;
    result = get_i64(device, ids[policy], &ns);
    if (result != NVML_SUCCESS)
        return result;
    if (!time)
        return NVML_ERROR_INVALID_ARGUMENT;
    *time = (nvmlViolationTime_t){ .referenceTime = (unsigned long long)now_us(),
                                   .violationTime = (unsigned long long)ns };
    return NVML_SUCCESS;
}
