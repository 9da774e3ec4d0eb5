/*
 * Memory and engines: sizes, how busy, encoding and frame capture.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>

#include "mocknvml/library.h"
#include "mocknvml/mig.h"

/* --- memory ---------------------------------------------------------------------------------- */

/* An instance reserves nothing that its processes could not have. */
static nvmlReturn_t mig_memory(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    char path[64], text[32];
    nvmlReturn_t result = mig_memory_bytes(device, &memory->total);

    snprintf(path, sizeof(path), "mig/gi%d/memory_used_bytes", device->gi);
    if (result == NVML_SUCCESS)
        result = device_text(device, path, text, sizeof(text));
    if (result != NVML_SUCCESS)
        return result;
    memory->used = strtoull(text, NULL, 10);
    memory->free = memory->total - memory->used;
    memory->reserved = 0;
    return NVML_SUCCESS;
}

static nvmlReturn_t read_memory(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    static const enum metric ids[] = { METRIC_MEMORY_TOTAL, METRIC_MEMORY_RESERVED,
                                       METRIC_MEMORY_FREE, METRIC_MEMORY_USED };
    struct reader_gpu gpu;
    nvmlReturn_t result = device_read(device, &gpu);
    int64_t values[4];

    if (result != NVML_SUCCESS)
        return result;
    result = sample_values(&gpu.sample, ids, 4, values);
    if (result != NVML_SUCCESS)
        return result;
    *memory = (nvmlMemory_v2_t){ .total = (unsigned long long)values[0],
                                 .reserved = (unsigned long long)values[1],
                                 .free = (unsigned long long)values[2],
                                 .used = (unsigned long long)values[3] };
    return device->parent ? mig_memory(device, memory) : NVML_SUCCESS;
}

/* What is reserved counts as used in the old structure. */
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    nvmlMemory_v2_t now;
    nvmlReturn_t result = answer_check(memory);

    if (result == NVML_SUCCESS)
        result = read_memory(device, &now);
    if (result != NVML_SUCCESS)
        return result;
    *memory = (nvmlMemory_t){ .total = now.total, .free = now.free, .used = now.total - now.free };
    return NVML_SUCCESS;
}

/* A client in wide use gives the bare number 2 as the version. */
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    nvmlMemory_v2_t now;
    nvmlReturn_t result = answer_check(memory);

    if (result == NVML_SUCCESS && memory->version != 2)
        result = STRUCT_CHECK(memory, 2);
    if (result == NVML_SUCCESS)
        result = read_memory(device, &now);
    if (result != NVML_SUCCESS)
        return result;
    now.version = memory->version;
    *memory = now;
    return NVML_SUCCESS;
}

/* An instance has its part of what the GPU has left. */
static nvmlReturn_t mig_bar1(nvmlDevice_t device, nvmlBAR1Memory_t *memory)
{
    unsigned int slices, all;
    nvmlReturn_t result = mig_memory_slices(device, &slices, &all);

    if (result != NVML_SUCCESS)
        return result;
    memory->bar1Total = memory->bar1Free / all * slices;
    memory->bar1Used = 0;
    memory->bar1Free = memory->bar1Total;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *memory)
{
    static const enum metric ids[] = { METRIC_BAR1_TOTAL, METRIC_BAR1_FREE, METRIC_BAR1_USED };
    struct reader_gpu gpu;
    nvmlReturn_t result = answer_check(memory);
    nvmlBAR1Memory_t now;
    int64_t values[3];

    if (result == NVML_SUCCESS)
        result = device_read(device, &gpu);
    if (result == NVML_SUCCESS)
        result = sample_values(&gpu.sample, ids, 3, values);
    if (result != NVML_SUCCESS)
        return result;
    now = (nvmlBAR1Memory_t){ (unsigned long long)values[0], (unsigned long long)values[1],
                              (unsigned long long)values[2] };
    result = device->parent ? mig_bar1(device, &now) : NVML_SUCCESS;
    if (result == NVML_SUCCESS)
        *memory = now;
    return result;
}

/* Nothing is protected: the whole memory is open. */
nvmlReturn_t nvmlDeviceGetConfComputeMemSizeInfo(nvmlDevice_t device,
                                                 nvmlConfComputeMemSizeInfo_t *size)
{
    nvmlMemory_v2_t now;
    nvmlReturn_t result = answer_check(size);

    if (result == NVML_SUCCESS)
        result = read_memory(device, &now);
    if (result != NVML_SUCCESS)
        return result;
    *size = (nvmlConfComputeMemSizeInfo_t){ .protectedMemSizeKib = 0,
                                            .unprotectedMemSizeKib = now.total / 1024 };
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetConfComputeProtectedMemoryUsage(nvmlDevice_t device, nvmlMemory_t *memory)
{
    return give_zeros(device, memory, sizeof(*memory));
}

/* --- engines --------------------------------------------------------------------------------- */

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates)
{
    static const enum metric ids[] = { METRIC_UTILIZATION_GPU, METRIC_UTILIZATION_MEMORY };
    nvmlReturn_t result = answer_check(rates);
    int64_t values[2];

    if (result == NVML_SUCCESS)
        result = get_values(device, ids, 2, values);
    if (result == NVML_SUCCESS)
        *rates = (nvmlUtilization_t){ (unsigned int)values[0], (unsigned int)values[1] };
    return result;
}

/* Over which time a real driver averages. */
enum { PERIOD_US = 167000 };

static nvmlReturn_t engine(nvmlDevice_t device, enum metric id, unsigned int *percent,
                           unsigned int *period)
{
    nvmlReturn_t result = answer_check(period);

    if (result == NVML_SUCCESS)
        result = get_uint(device, id, percent);
    if (result != NVML_SUCCESS)
        return result;
    *period = PERIOD_US;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned int *percent,
                                             unsigned int *period_us)
{
    return engine(device, METRIC_UTILIZATION_ENCODER, percent, period_us);
}

nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned int *percent,
                                             unsigned int *period_us)
{
    return engine(device, METRIC_UTILIZATION_DECODER, percent, period_us);
}

nvmlReturn_t nvmlDeviceGetJpgUtilization(nvmlDevice_t device, unsigned int *percent,
                                         unsigned int *period_us)
{
    return engine(device, METRIC_UTILIZATION_JPEG, percent, period_us);
}

nvmlReturn_t nvmlDeviceGetOfaUtilization(nvmlDevice_t device, unsigned int *percent,
                                         unsigned int *period_us)
{
    return engine(device, METRIC_UTILIZATION_OFA, percent, period_us);
}

/* --- sessions: nobody encodes or captures ---------------------------------------------------- */

/* All of its encoders are free, where it has some. */
nvmlReturn_t nvmlDeviceGetEncoderCapacity(nvmlDevice_t device, nvmlEncoderType_t type,
                                          unsigned int *capacity)
{
    int64_t encoders;
    nvmlReturn_t result = answer_check(capacity);

    if (result == NVML_SUCCESS)
        result = device_fact(device, "encoders", &encoders);
    if (result != NVML_SUCCESS)
        return result;
    if ((unsigned int)type > NVML_ENCODER_QUERY_AV1)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!encoders)
        return NVML_ERROR_NOT_SUPPORTED;
    *capacity = 100;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEncoderStats(nvmlDevice_t device, unsigned int *sessions,
                                       unsigned int *fps, unsigned int *latency_us)
{
    nvmlReturn_t result = arguments_check(sessions && fps && latency_us);

    if (result == NVML_SUCCESS)
        result = device_check(device);
    if (result == NVML_SUCCESS)
        *sessions = *fps = *latency_us = 0;
    return result;
}

nvmlReturn_t nvmlDeviceGetEncoderSessions(nvmlDevice_t device, unsigned int *count,
                                          nvmlEncoderSession_t *sessions)
{
    (void)sessions;
    return give_uint(device, 0, count);
}

nvmlReturn_t nvmlDeviceGetFBCStats(nvmlDevice_t device, nvmlFBCStats_t *stats)
{
    return give_zeros(device, stats, sizeof(*stats));
}

nvmlReturn_t nvmlDeviceGetFBCSessions(nvmlDevice_t device, unsigned int *count,
                                      nvmlFBCSession_t *sessions)
{
    (void)sessions;
    return give_uint(device, 0, count);
}

/* --- GRID: a host without licences ------------------------------------------------------------ */

nvmlReturn_t nvmlDeviceGetGridLicensableFeatures(nvmlDevice_t device,
                                                 nvmlGridLicensableFeatures_t *features)
{
    return give_zeros(device, features, sizeof(*features));
}

nvmlReturn_t nvmlDeviceGetGridLicensableFeatures_v2(nvmlDevice_t device,
                                                    nvmlGridLicensableFeatures_v2_t *features)
{
    return give_zeros(device, features, sizeof(*features));
}

nvmlReturn_t nvmlDeviceGetGridLicensableFeatures_v3(nvmlDevice_t device,
                                                    nvmlGridLicensableFeatures_v3_t *features)
{
    return give_zeros(device, features, sizeof(*features));
}

nvmlReturn_t nvmlDeviceGetGridLicensableFeatures_v4(nvmlDevice_t device,
                                                    nvmlGridLicensableFeatures_v4_t *features)
{
    return give_zeros(device, features, sizeof(*features));
}
