/*
 * Clocks: what they are, what they can be, why they are not higher; performance states.
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
        return library_refuse(NVML_ERROR_INVALID_ARGUMENT);
    return ids[type] == METRIC_COUNT ? device_unsupported(device)
                                     : get_uint(device, ids[type], mhz);
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
    nvmlReturn_t result = device_answers_until(device, APPLICATION_CLOCKS_GONE);

    return result == NVML_SUCCESS ? clock_of(device, application_clocks, type, mhz) : result;
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
    struct table t;
    nvmlReturn_t result = device_table(device, TABLE_CLOCKS, &t);
    char *line;

    if (result != NVML_SUCCESS)
        return result;
    line = reader_line(&t.rest);
    return line && parse_clocks(line, row) ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetDefaultApplicationsClock(nvmlDevice_t device, nvmlClockType_t type,
                                                   unsigned int *mhz)
{
    struct clock_row row;
    nvmlReturn_t result = answer_check(mhz);

    if (result == NVML_SUCCESS)
        result = device_answers_until(device, APPLICATION_CLOCKS_GONE);
    if (result == NVML_SUCCESS)
        result = first_clocks(device, &row);
    if (result != NVML_SUCCESS)
        return result;
    if ((unsigned int)type >= NVML_CLOCK_COUNT)
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
    return library_refuse(NVML_ERROR_INVALID_ARGUMENT);
}

nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, unsigned int *count,
                                                unsigned int *mhz)
{
    struct table t;
    char *line;
    nvmlReturn_t result = answer_check(count);
    struct list list = { mhz, sizeof(*mhz), count ? *count : 0, 0 };
    struct clock_row row;

    if (result == NVML_SUCCESS)
        result = device_table(device, TABLE_CLOCKS, &t);
    if (result != NVML_SUCCESS)
        return result;
    while ((line = reader_line(&t.rest)))
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
    struct table t;
    char *line;
    nvmlReturn_t result = answer_check(count);
    struct list list = { mhz, sizeof(*mhz), count ? *count : 0, 0 };
    struct clock_row row;

    if (result == NVML_SUCCESS)
        result = device_table(device, TABLE_CLOCKS, &t);
    if (result != NVML_SUCCESS)
        return result;
    while ((line = reader_line(&t.rest)))
        if (parse_clocks(line, &row) && row.memory_mhz == memory_mhz)
            add_clocks(&list, &row);
    return list.used ? list_end(&list, count) : NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetMinMaxClockOfPState(nvmlDevice_t device, nvmlClockType_t type,
                                              nvmlPstates_t pstate, unsigned int *min,
                                              unsigned int *max)
{
    struct clock_row row;
    nvmlReturn_t result = arguments_check(min && max);

    if (result == NVML_SUCCESS)
        result = first_clocks(device, &row);
    if (result != NVML_SUCCESS)
        return result;
    if ((unsigned int)type >= NVML_CLOCK_COUNT)
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
    nvmlReturn_t result = answer_check(status);

    if (result == NVML_SUCCESS)
        result = device_check(device);
    if (result != NVML_SUCCESS)
        return result;
    status->bGlobalStatus = status->clkMonListSize = 0;
    return NVML_SUCCESS;
}

/* "nvclk=1410; nvclkmin=…", as the interface spells them. */
nvmlReturn_t nvmlDeviceGetCurrentClockFreqs(nvmlDevice_t device,
                                            nvmlDeviceCurrentClockFreqs_v1_t *freqs)
{
    unsigned int sm, memory;
    nvmlReturn_t result = STRUCT_CHECK(freqs, 1);

    if (result == NVML_SUCCESS)
        result = get_uint(device, METRIC_CLOCK_SM, &sm);
    if (result == NVML_SUCCESS)
        result = get_uint(device, METRIC_CLOCK_MEMORY, &memory);
    if (result != NVML_SUCCESS)
        return result;
    snprintf(freqs->str, sizeof(freqs->str), "nvclk=%u, memclk=%u", sm, memory);
    return NVML_SUCCESS;
}

/* --- offsets --------------------------------------------------------------------------------- */

/* Offsets of the SM clock and of the memory clock, in MHz. NVML_ERROR_NOT_SUPPORTED where there are none. */
static nvmlReturn_t read_offsets(nvmlDevice_t device, int offsets[2])
{
    char text[64];
    nvmlReturn_t result = device_text(device, "control/clock_offsets", text, sizeof(text));

    if (result != NVML_SUCCESS)
        return result;
    return sscanf(text, "%d %d", &offsets[0], &offsets[1]) == 2 ? NVML_SUCCESS : NVML_ERROR_UNKNOWN;
}

static nvmlReturn_t get_offset(nvmlDevice_t device, int which, int *mhz)
{
    int offsets[2];
    nvmlReturn_t result = answer_check(mhz);

    if (result == NVML_SUCCESS)
        result = read_offsets(device, offsets);
    if (result == NVML_SUCCESS)
        *mhz = offsets[which];
    return result;
}

static nvmlReturn_t set_offset(nvmlDevice_t device, int which, int mhz)
{
    int offsets[2];
    char text[64];
    nvmlReturn_t result = read_offsets(device, offsets);

    if (result != NVML_SUCCESS)
        return result;
    offsets[which] = mhz;
    snprintf(text, sizeof(text), "%d %d", offsets[0], offsets[1]);
    return device_write(device, "control/clock_offsets", text);
}

static nvmlReturn_t get_offset_range(nvmlDevice_t device, int which, int *min, int *max)
{
    static const char *const names[2][2] = { { "sm_offset_min_mhz", "sm_offset_max_mhz" },
                                             { "memory_offset_min_mhz", "memory_offset_max_mhz" } };
    int64_t supported, low, high;
    nvmlReturn_t result = arguments_check(min && max);

    if (result == NVML_SUCCESS)
        result = device_fact(device, "clock_offsets", &supported);
    if (result == NVML_SUCCESS && !supported)
        result = NVML_ERROR_NOT_SUPPORTED;
    if (result == NVML_SUCCESS)
        result = device_fact(device, names[which][0], &low);
    if (result == NVML_SUCCESS)
        result = device_fact(device, names[which][1], &high);
    if (result != NVML_SUCCESS)
        return result;
    *min = (int)low;
    *max = (int)high;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpcClkVfOffset(nvmlDevice_t device, int *mhz)
{
    return get_offset(device, 0, mhz);
}

nvmlReturn_t nvmlDeviceSetGpcClkVfOffset(nvmlDevice_t device, int mhz)
{
    return set_offset(device, 0, mhz);
}

nvmlReturn_t nvmlDeviceGetGpcClkMinMaxVfOffset(nvmlDevice_t device, int *min, int *max)
{
    return get_offset_range(device, 0, min, max);
}

nvmlReturn_t nvmlDeviceGetMemClkVfOffset(nvmlDevice_t device, int *mhz)
{
    return get_offset(device, 1, mhz);
}

nvmlReturn_t nvmlDeviceSetMemClkVfOffset(nvmlDevice_t device, int mhz)
{
    return set_offset(device, 1, mhz);
}

nvmlReturn_t nvmlDeviceGetMemClkMinMaxVfOffset(nvmlDevice_t device, int *min, int *max)
{
    return get_offset_range(device, 1, min, max);
}

/* Only the fastest performance state has offsets. Graphics and SM run from one clock. */
static nvmlReturn_t offset_clock(const nvmlClockOffset_t *info, int *which)
{
    nvmlReturn_t result = STRUCT_CHECK(info, 1);

    if (result != NVML_SUCCESS)
        return result;
    if (info->type >= NVML_CLOCK_COUNT || info->pstate > NVML_PSTATE_15)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (info->type == NVML_CLOCK_VIDEO || info->pstate != NVML_PSTATE_0)
        return NVML_ERROR_NOT_SUPPORTED;
    *which = info->type == NVML_CLOCK_MEM;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetClockOffsets(nvmlDevice_t device, nvmlClockOffset_t *info)
{
    int which;
    nvmlReturn_t result = offset_clock(info, &which);

    if (result == NVML_SUCCESS)
        result = get_offset(device, which, &info->clockOffsetMHz);
    return result == NVML_SUCCESS
               ? get_offset_range(device, which, &info->minClockOffsetMHz, &info->maxClockOffsetMHz)
               : result;
}

nvmlReturn_t nvmlDeviceSetClockOffsets(nvmlDevice_t device, nvmlClockOffset_t *info)
{
    int which;
    nvmlReturn_t result = offset_clock(info, &which);

    return result == NVML_SUCCESS ? set_offset(device, which, info->clockOffsetMHz) : result;
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
    nvmlReturn_t result = answer_check(states);

    if (result == NVML_SUCCESS)
        result = device_fact(device, "idle_pstate", &idle);
    if (result != NVML_SUCCESS)
        return result;
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
    nvmlReturn_t result = STRUCT_CHECK(modes, 1);

    if (result == NVML_SUCCESS)
        result = first_clocks(device, &row);
    if (result != NVML_SUCCESS)
        return result;
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
    nvmlReturn_t result = answer_check(info);
    int64_t value;

    if (result == NVML_SUCCESS)
        result = device_read_gpu(device, &gpu);
    if (result != NVML_SUCCESS)
        return result;
    memset(info, 0, sizeof(*info));
    info->flags = 1;
    for (int i = 0; i < 3; i++)
        if (sample_value(&gpu.sample, ids[i], &value) == 0) {
            info->utilization[i].bIsPresent = 1;
            info->utilization[i].percentage = (unsigned int)value;
        }
    return NVML_SUCCESS;
}
