/*
 * PCIe, ECC, retired pages and remapped rows.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mocknvml/library.h"

/* --- PCIe ------------------------------------------------------------------------------------ */

nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned int *generation)
{
    return get_uint(device, METRIC_PCIE_LINK_GENERATION, generation);
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t device, unsigned int *generation)
{
    return get_uint(device, METRIC_PCIE_LINK_GENERATION_MAX, generation);
}

nvmlReturn_t nvmlDeviceGetGpuMaxPcieLinkGeneration(nvmlDevice_t device, unsigned int *generation)
{
    return give_fact(device, "pcie_generation_device", generation);
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned int *lanes)
{
    return get_uint(device, METRIC_PCIE_LINK_WIDTH, lanes);
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t device, unsigned int *lanes)
{
    return get_uint(device, METRIC_PCIE_LINK_WIDTH_MAX, lanes);
}

nvmlReturn_t nvmlDeviceGetPcieReplayCounter(nvmlDevice_t device, unsigned int *count)
{
    return get_uint(device, METRIC_PCIE_REPLAY_TOTAL, count);
}

/* In kB/s. */
nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, nvmlPcieUtilCounter_t counter,
                                         unsigned int *kilobytes)
{
    nvmlReturn_t result;
    int64_t bytes;

    if (!kilobytes || (unsigned int)counter >= NVML_PCIE_UTIL_COUNT)
        return library_refuse(NVML_ERROR_INVALID_ARGUMENT);
    result = get_i64(device, counter == NVML_PCIE_UTIL_TX_BYTES ? METRIC_PCIE_TX : METRIC_PCIE_RX,
                     &bytes);
    if (result != NVML_SUCCESS)
        return result;
    *kilobytes = (unsigned int)(bytes / 1000);
    return NVML_SUCCESS;
}

/* In Mbit/s and lane, before encoding, by generation. */
nvmlReturn_t nvmlDeviceGetPcieSpeed(nvmlDevice_t device, unsigned int *mbps)
{
    static const unsigned int speeds[] = { 0, 2500, 5000, 8000, 16000, 32000, 64000 };
    unsigned int generation;
    nvmlReturn_t result = get_uint(device, METRIC_PCIE_LINK_GENERATION, mbps ? &generation : NULL);

    if (result == NVML_SUCCESS)
        *mbps = generation < sizeof(speeds) / sizeof(speeds[0]) ? speeds[generation] : 0;
    return result;
}

/* Speeds are numbered as the generations are. */
nvmlReturn_t nvmlDeviceGetPcieLinkMaxSpeed(nvmlDevice_t device, unsigned int *speed)
{
    return get_uint(device, METRIC_PCIE_LINK_GENERATION_MAX, speed);
}

/* --- ECC ------------------------------------------------------------------------------------- */

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t *current,
                                  nvmlEnableState_t *pending)
{
    nvmlReturn_t result = answer_check(pending);

    if (result == NVML_SUCCESS)
        result = get_state(device, METRIC_ECC_MODE, current);
    return result == NVML_SUCCESS ? get_state(device, METRIC_ECC_MODE_PENDING, pending) : result;
}

nvmlReturn_t nvmlDeviceGetDefaultEccMode(nvmlDevice_t device, nvmlEnableState_t *mode)
{
    unsigned int on;
    nvmlReturn_t result = get_uint(device, METRIC_ECC_MODE, mode ? &on : NULL);

    return result == NVML_SUCCESS ? give_fact(device, "ecc_default", (unsigned int *)mode) : result;
}

static const enum metric ecc_totals[NVML_MEMORY_ERROR_TYPE_COUNT][NVML_ECC_COUNTER_TYPE_COUNT] = {
    { METRIC_ECC_SBE_VOLATILE_TOTAL, METRIC_ECC_SBE_AGGREGATE_TOTAL },
    { METRIC_ECC_DBE_VOLATILE_TOTAL, METRIC_ECC_DBE_AGGREGATE_TOTAL },
};

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type,
                                         nvmlEccCounterType_t counter, unsigned long long *count)
{
    if ((unsigned int)type >= NVML_MEMORY_ERROR_TYPE_COUNT ||
        (unsigned int)counter >= NVML_ECC_COUNTER_TYPE_COUNT)
        return library_refuse(NVML_ERROR_INVALID_ARGUMENT);
    return get_u64(device, ecc_totals[type][counter], count);
}

/* Up to Volta errors were counted by cache and register file; since then those are all the chip's own memory. */
static bool counts_at(nvmlDevice_t device, nvmlMemoryLocation_t location)
{
    unsigned int architecture = 0;

    if (location == NVML_MEMORY_LOCATION_DEVICE_MEMORY)
        return true;
    nvmlDeviceGetArchitecture(device, &architecture);
    return (location == NVML_MEMORY_LOCATION_SRAM) == (architecture > NVML_DEVICE_ARCH_VOLTA);
}

/* Counters run while errors are corrected. */
static nvmlReturn_t ecc_check(nvmlDevice_t device)
{
    unsigned int on;
    nvmlReturn_t result = get_uint(device, METRIC_ECC_MODE, &on);

    return result == NVML_SUCCESS && !on ? NVML_ERROR_NOT_SUPPORTED : result;
}

/* Of a MIG device those of its part of the chip's own memory are counted, of which there are none. */
static nvmlReturn_t mig_errors(nvmlDevice_t device, nvmlMemoryLocation_t location,
                               unsigned long long *count)
{
    nvmlReturn_t result = location == NVML_MEMORY_LOCATION_SRAM ? ecc_check(device->parent)
                                                                : NVML_ERROR_NOT_SUPPORTED;

    if (result == NVML_SUCCESS)
        *count = 0;
    return result;
}

/* All errors that are simulated are of the device memory. */
nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, nvmlMemoryErrorType_t type,
                                             nvmlEccCounterType_t counter,
                                             nvmlMemoryLocation_t location,
                                             unsigned long long *count)
{
    nvmlReturn_t result = nvmlDeviceGetTotalEccErrors(device, type, counter, count);

    if (result == NVML_ERROR_NOT_SUPPORTED && device->parent)
        return mig_errors(device, location, count);
    if (result != NVML_SUCCESS)
        return result;
    if ((unsigned int)location >= NVML_MEMORY_LOCATION_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!counts_at(device, location))
        return NVML_ERROR_NOT_SUPPORTED;
    if (location != NVML_MEMORY_LOCATION_DEVICE_MEMORY)
        *count = 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetDetailedEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type,
                                            nvmlEccCounterType_t counter,
                                            nvmlEccErrorCounts_t *counts)
{
    unsigned long long memory;
    nvmlReturn_t result = nvmlDeviceGetTotalEccErrors(device, type, counter,
                                                      counts ? &memory : NULL);

    if (result == NVML_SUCCESS)
        *counts = (nvmlEccErrorCounts_t){ .deviceMemory = memory };
    return result;
}

nvmlReturn_t nvmlDeviceGetSramEccErrorStatus(nvmlDevice_t device,
                                             nvmlEccSramErrorStatus_v1_t *status)
{
    nvmlReturn_t result = STRUCT_CHECK(status, 1);

    if (result == NVML_SUCCESS)
        result = ecc_check(device);
    if (result != NVML_SUCCESS)
        return result;
    *status = (nvmlEccSramErrorStatus_v1_t){ .version = status->version };
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts(
    nvmlDevice_t device, nvmlEccSramUniqueUncorrectedErrorCounts_v1_t *counts)
{
    nvmlReturn_t result = STRUCT_CHECK(counts, 1);

    if (result == NVML_SUCCESS)
        result = ecc_check(device);
    if (result != NVML_SUCCESS)
        return result;
    counts->entryCount = 0;
    return NVML_SUCCESS;
}

/* --- retired pages --------------------------------------------------------------------------- */

static const enum metric retired[NVML_PAGE_RETIREMENT_CAUSE_COUNT] = {
    METRIC_RETIRED_PAGES_SBE_TOTAL, METRIC_RETIRED_PAGES_DBE_TOTAL
};

/* The simulation counts pages; their addresses are made up, the same for the same number. */
static nvmlReturn_t retired_pages(nvmlDevice_t device, nvmlPageRetirementCause_t cause,
                                  unsigned int *count, unsigned long long *addresses,
                                  unsigned long long *times)
{
    struct list list = { addresses, sizeof(*addresses), count ? *count : 0, 0 };
    unsigned int pages = 0;
    nvmlReturn_t result;

    if (!count || (unsigned int)cause >= NVML_PAGE_RETIREMENT_CAUSE_COUNT)
        return library_refuse(NVML_ERROR_INVALID_ARGUMENT);
    result = get_uint(device, retired[cause], &pages);
    if (result != NVML_SUCCESS)
        return result;
    for (unsigned long long i = 0; i < pages; i++) {
        unsigned long long address = (2 * i + cause + 1) * 0x10000;

        if (times && addresses && list.used < list.room)
            times[list.used] = 0;
        list_add(&list, &address);
    }
    return list_end(&list, count);
}

nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, nvmlPageRetirementCause_t cause,
                                       unsigned int *count, unsigned long long *addresses)
{
    return retired_pages(device, cause, count, addresses, NULL);
}

nvmlReturn_t nvmlDeviceGetRetiredPages_v2(nvmlDevice_t device, nvmlPageRetirementCause_t cause,
                                          unsigned int *count, unsigned long long *addresses,
                                          unsigned long long *times)
{
    return retired_pages(device, cause, count, addresses, times);
}

nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t device, nvmlEnableState_t *pending)
{
    return get_state(device, METRIC_RETIRED_PAGES_PENDING, pending);
}

/* --- remapped rows --------------------------------------------------------------------------- */

nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *correctable,
                                       unsigned int *uncorrectable, unsigned int *pending,
                                       unsigned int *failure)
{
    static const enum metric ids[] = { METRIC_REMAPPED_ROWS_CORRECTABLE_TOTAL,
                                       METRIC_REMAPPED_ROWS_UNCORRECTABLE_TOTAL,
                                       METRIC_REMAPPED_ROWS_PENDING, METRIC_REMAPPED_ROWS_FAILURE };
    nvmlReturn_t result = arguments_check(correctable && uncorrectable && pending && failure);
    int64_t values[4];

    if (result == NVML_SUCCESS)
        result = get_values(device, ids, 4, values);
    if (result != NVML_SUCCESS)
        return result;
    *correctable = (unsigned int)values[0];
    *uncorrectable = (unsigned int)values[1];
    *pending = (unsigned int)values[2];
    *failure = (unsigned int)values[3];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRemappedRows_v2(nvmlDevice_t device, nvmlRemappedRowsInfo_v2_t *info)
{
    nvmlRemappedRowsInfo_v2_t now = { 0 };
    nvmlReturn_t result = answer_check(info);

    if (result == NVML_SUCCESS)
        result = nvmlDeviceGetRemappedRows(device, &now.corrActiveRemaps, &now.uncActiveRemaps,
                                           &now.bPending, &now.bfailureOccurred);
    if (result == NVML_SUCCESS)
        *info = now;
    return result;
}

nvmlReturn_t nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t device,
                                               nvmlRowRemapperHistogramValues_t *banks)
{
    static const enum metric ids[] = { METRIC_REMAP_BANKS_MAX_COUNT, METRIC_REMAP_BANKS_HIGH_COUNT,
                                       METRIC_REMAP_BANKS_PARTIAL_COUNT,
                                       METRIC_REMAP_BANKS_LOW_COUNT,
                                       METRIC_REMAP_BANKS_NONE_COUNT };
    nvmlReturn_t result = answer_check(banks);
    int64_t values[5];

    if (result == NVML_SUCCESS)
        result = get_values(device, ids, 5, values);
    if (result == NVML_SUCCESS)
        *banks = (nvmlRowRemapperHistogramValues_t){
            (unsigned int)values[0], (unsigned int)values[1], (unsigned int)values[2],
            (unsigned int)values[3], (unsigned int)values[4]
        };
    return result;
}

/* A bank without spare rows has memory that stays broken; so much is known under MIG, too, but only since Hopper. */
nvmlReturn_t nvmlDeviceGetUnrepairableMemoryFlag_v1(nvmlDevice_t device,
                                                    nvmlUnrepairableMemory_v1_t *flag)
{
    unsigned int used_up;
    nvmlReturn_t result = STRUCT_CHECK(flag, 1);

    if (result == NVML_SUCCESS)
        result = get_uint(device, METRIC_REMAP_BANKS_NONE_COUNT, &used_up);
    if (result == NVML_SUCCESS)
        result = device_answers_since(device, HOPPER);
    if (result != NVML_SUCCESS)
        return result;
    flag->unrepairableMemory = used_up != 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUnrepairableMemoryFlag(nvmlDevice_t device,
                                                 nvmlUnrepairableMemory_v1_t *flag)
{
    return nvmlDeviceGetUnrepairableMemoryFlag_v1(device, flag);
}

nvmlReturn_t nvmlDeviceGetRepairStatus(nvmlDevice_t device, nvmlRepairStatus_t *status)
{
    nvmlReturn_t result = STRUCT_CHECK(status, 1);

    if (result == NVML_SUCCESS)
        result = device_check(device);
    if (result != NVML_SUCCESS)
        return result;
    status->bChannelRepairPending = status->bTpcRepairPending = 0;
    return NVML_SUCCESS;
}
