/*
 * Values: what a GPU does now: its link, clocks, memory and engines.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>

#include "mocknvml/smi/gpu.h"

/* --- PCIe --------------------------------------------------------------------------------------- */

nvmlReturn_t get_throughput(struct gpu *gpu, int counter, char *text)
{
    unsigned int kilobytes = 0;
    nvmlReturn_t result = ASK(DeviceGetPcieThroughput, gpu->device, (nvmlPcieUtilCounter_t)counter,
                              &kilobytes);

    return say(result, text, "%u", kilobytes);
}

/* A mask of the atomic operations that the link carries, as a list with a blank after each. */
nvmlReturn_t get_atomics(struct gpu *gpu, int field, char *text)
{
    static const char *const names[] = { "FETCHADD_32", "FETCHADD_64", "SWAP_32",
                                         "SWAP_64",     "CAS_32",      "CAS_64" };
    long long mask = 0;
    nvmlReturn_t result = gpu_field(gpu, (enum gpu_field)field, &mask);
    size_t used = 0;

    if (result == NVML_SUCCESS && mask == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    for (size_t i = 0; result == NVML_SUCCESS && i < sizeof(names) / sizeof(names[0]); i++)
        if (mask >> i & 1)
            used += (size_t)snprintf(text + used, TEXT_BYTES - used, "%s ", names[i]);
    return result;
}

/* --- clocks ------------------------------------------------------------------------------------- */

nvmlReturn_t get_pstate(struct gpu *gpu, int unused, char *text)
{
    nvmlPstates_t *state = &gpu->answers.pstate.value;
    nvmlReturn_t result = ONCE(gpu, pstate, ASK(DeviceGetPerformanceState, gpu->device, state));

    (void)unused;
    if (result == NVML_SUCCESS && *state > NVML_PSTATE_15)
        return NVML_ERROR_NOT_SUPPORTED;
    return say(result, text, "P%d", *state);
}

nvmlReturn_t get_reason(struct gpu *gpu, int bit, char *text)
{
    unsigned long long reasons = 0;
    nvmlReturn_t result = gpu_reasons(gpu, &reasons);

    return say_active(result, text, reasons >> bit & 1);
}

nvmlReturn_t get_reasons(struct gpu *gpu, int unused, char *text)
{
    unsigned long long reasons = 0;
    nvmlReturn_t result = gpu_reasons(gpu, &reasons);

    (void)unused;
    return say(result, text, "0x%016llX", reasons);
}

nvmlReturn_t get_reasons_supported(struct gpu *gpu, int unused, char *text)
{
    unsigned long long reasons = 0;
    nvmlReturn_t result = ASK(DeviceGetSupportedClocksEventReasons, gpu->device, &reasons);

    (void)unused;
    return say(result, text, "0x%016llX", reasons);
}

nvmlReturn_t get_counter_us(struct gpu *gpu, int field, char *text)
{
    long long ns = 0;
    nvmlReturn_t result = gpu_field(gpu, (enum gpu_field)field, &ns);

    return say(result, text, "%lld", ns / 1000);
}

nvmlReturn_t get_clock(struct gpu *gpu, int which, char *text)
{
    nvmlClockType_t type = (nvmlClockType_t)(which % NVML_CLOCK_COUNT);
    nvmlDevice_t device = gpu->device;
    unsigned int mhz = 0;
    nvmlReturn_t result;

    switch ((enum clock_value)(which / NVML_CLOCK_COUNT)) {
    case CLOCK_CURRENT:
        result = ASK(DeviceGetClockInfo, device, type, &mhz);
        break;
    case CLOCK_APPLICATION:
        result = ASK(DeviceGetApplicationsClock, device, type, &mhz);
        break;
    case CLOCK_DEFAULT:
        result = ASK(DeviceGetDefaultApplicationsClock, device, type, &mhz);
        break;
    case CLOCK_MAX:
        result = ASK(DeviceGetMaxClockInfo, device, type, &mhz);
        break;
    default:
        result = ASK(DeviceGetMaxCustomerBoostClock, device, type, &mhz);
        break;
    }
    return say(result, text, "%u", mhz);
}

/* --- memory ------------------------------------------------------------------------------------- */

static nvmlReturn_t say_mib(nvmlReturn_t result, char *text, unsigned long long bytes)
{
    return say(result, text, "%llu", bytes >> 20);
}

nvmlReturn_t get_memory(struct gpu *gpu, int which, char *text)
{
    nvmlMemory_v2_t memory;
    nvmlReturn_t result = gpu_memory(gpu, &memory);
    const unsigned long long bytes[] = { [MEMORY_TOTAL] = memory.total,
                                         [MEMORY_RESERVED] = memory.reserved,
                                         [MEMORY_USED] = memory.used,
                                         [MEMORY_FREE] = memory.free };

    return say_mib(result, text, bytes[which]);
}

nvmlReturn_t get_bar1(struct gpu *gpu, int which, char *text)
{
    const nvmlBAR1Memory_t *bar1 = &gpu->answers.bar1.value;
    nvmlReturn_t result = ONCE(gpu, bar1,
                               ASK(DeviceGetBAR1MemoryInfo, gpu->device, &gpu->answers.bar1.value));
    const unsigned long long bytes[] = { [MEMORY_TOTAL] = bar1->bar1Total,
                                         [MEMORY_USED] = bar1->bar1Used,
                                         [MEMORY_FREE] = bar1->bar1Free };

    return say_mib(result, text, bytes[which]);
}

nvmlReturn_t get_protected(struct gpu *gpu, int which, char *text)
{
    nvmlMemory_t *memory = &gpu->answers.protected.value;
    nvmlReturn_t result = ONCE(gpu, protected,
                               ASK(DeviceGetConfComputeProtectedMemoryUsage, gpu->device, memory));
    const unsigned long long bytes[] = {
        [MEMORY_TOTAL] = memory->total, [MEMORY_USED] = memory->used, [MEMORY_FREE] = memory->free
    };

    return say_mib(result, text, bytes[which]);
}

nvmlReturn_t get_compute_mode(struct gpu *gpu, int unused, char *text)
{
    static const char *const modes[] = { "Default", "Exclusive_Thread", "Prohibited",
                                         "Exclusive_Process", "Unknown" };
    nvmlComputeMode_t mode = NVML_COMPUTEMODE_DEFAULT;
    nvmlReturn_t result = ASK(DeviceGetComputeMode, gpu->device, &mode);

    (void)unused;
    return SAY_WORD(result, text, modes, mode);
}

/* --- engines ------------------------------------------------------------------------------------ */

nvmlReturn_t get_engine(struct gpu *gpu, int which, char *text)
{
    nvmlUtilization_t rates = { 0 };
    nvmlReturn_t result = gpu_utilization(gpu, &rates);

    return say(result, text, "%u", which == ENGINE_GPU ? rates.gpu : rates.memory);
}

nvmlReturn_t get_encoder(struct gpu *gpu, int which, char *text)
{
    struct answers *a = &gpu->answers;
    nvmlReturn_t result = ONCE(gpu, encoder,
                               ASK(DeviceGetEncoderStats, gpu->device, &a->encoder.sessions,
                                   &a->encoder.fps, &a->encoder.latency_us));
    const unsigned int numbers[] = { [SESSION_COUNT] = a->encoder.sessions,
                                     [SESSION_FPS] = a->encoder.fps,
                                     [SESSION_LATENCY] = a->encoder.latency_us };

    return say(result, text, "%u", numbers[which]);
}

nvmlReturn_t get_capture(struct gpu *gpu, int which, char *text)
{
    nvmlFBCStats_t *stats = &gpu->answers.capture.value;
    nvmlReturn_t result = ONCE(gpu, capture, ASK(DeviceGetFBCStats, gpu->device, stats));
    const unsigned int numbers[] = { [SESSION_COUNT] = stats->sessionsCount,
                                     [SESSION_FPS] = stats->averageFPS,
                                     [SESSION_LATENCY] = stats->averageLatency };

    return say(result, text, "%u", numbers[which]);
}
