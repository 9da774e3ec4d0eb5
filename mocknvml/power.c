/*
 * Power and heat, and how long they held the clocks down.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mocknvml/library.h"

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
        result = device_answers_until(device, POWER_MODE_GONE);
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
    nvmlReturn_t result = answer_check(max_mw);

    if (result == NVML_SUCCESS)
        result = get_uint(device, METRIC_POWER_LIMIT_MIN, min_mw);
    return result == NVML_SUCCESS ? get_uint(device, METRIC_POWER_LIMIT_MAX, max_mw) : result;
}

/* --- heat ------------------------------------------------------------------------------------ */

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor,
                                      unsigned int *celsius)
{
    if (sensor != NVML_TEMPERATURE_GPU)
        return library_refuse(NVML_ERROR_INVALID_ARGUMENT);
    return get_uint(device, METRIC_TEMPERATURE_GPU, celsius);
}

nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_v1_t *temperature)
{
    int celsius;
    nvmlReturn_t result = STRUCT_CHECK(temperature, 1);

    if (result == NVML_SUCCESS)
        result = get_int(device, METRIC_TEMPERATURE_GPU, &celsius);
    if (result != NVML_SUCCESS)
        return result;
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
        return library_refuse(NVML_ERROR_INVALID_ARGUMENT);
    if (which > NVML_TEMPERATURE_THRESHOLD_GPU_MAX)
        return device_unsupported(device);
    return get_uint(device, ids[which], celsius);
}

nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t device, nvmlMarginTemperature_v1_t *margin)
{
    int celsius;
    nvmlReturn_t result = STRUCT_CHECK(margin, 1);

    if (result == NVML_SUCCESS)
        result = get_int(device, METRIC_TEMPERATURE_MARGIN, &celsius);
    if (result != NVML_SUCCESS)
        return result;
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
    nvmlReturn_t result = answer_check(settings);
    int64_t value, max;

    if (result == NVML_SUCCESS)
        result = device_read_gpu(device, &gpu);
    if (result != NVML_SUCCESS)
        return result;
    if ((sensor > 2 && sensor != NVML_THERMAL_TARGET_ALL))
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
        return library_refuse(NVML_ERROR_INVALID_ARGUMENT);
    result = get_i64(device, ids[policy], time ? &ns : NULL);
    if (result != NVML_SUCCESS)
        return result;
    *time = (nvmlViolationTime_t){ .referenceTime = (unsigned long long)now_us(),
                                   .violationTime = (unsigned long long)ns };
    return NVML_SUCCESS;
}
