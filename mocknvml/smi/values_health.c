/*
 * Values: a GPU's health: errors and what was replaced, heat, power, and the fabric it belongs to.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <string.h>

#include "mocknvml/smi/gpu.h"

/* --- numbered fields ---------------------------------------------------------------------------- */

nvmlReturn_t get_field(struct gpu *gpu, int field, char *text)
{
    long long value = 0;
    nvmlReturn_t result = gpu_field(gpu, (enum gpu_field)field, &value);

    return say(result, text, "%lld", value);
}

nvmlReturn_t get_yes_field(struct gpu *gpu, int field, char *text)
{
    long long value = 0;
    nvmlReturn_t result = gpu_field(gpu, (enum gpu_field)field, &value);

    return say_yes(result, text, value != 0);
}

/* As watts. */
nvmlReturn_t get_milliwatts(struct gpu *gpu, int field, char *text)
{
    long long mw = 0;
    nvmlReturn_t result = gpu_field(gpu, (enum gpu_field)field, &mw);

    return say(result, text, "%.2f", (double)mw / 1000);
}

/* --- errors ------------------------------------------------------------------------------------- */

/* The counters of memory inside the chip, all places together: ERRORS_… | ERRORS_…. */
nvmlReturn_t get_sram_errors(struct gpu *gpu, int which, char *text)
{
    unsigned long long count = 0;
    nvmlReturn_t result = ASK(DeviceGetMemoryErrorCounter, gpu->device,
                              which & ERRORS_UNCORRECTED ? NVML_MEMORY_ERROR_TYPE_UNCORRECTED
                                                         : NVML_MEMORY_ERROR_TYPE_CORRECTED,
                              which & ERRORS_AGGREGATE ? NVML_AGGREGATE_ECC : NVML_VOLATILE_ECC,
                              NVML_MEMORY_LOCATION_SRAM, &count);

    return say(result, text, "%llu", count);
}

nvmlReturn_t get_errors_total(struct gpu *gpu, int which, char *text)
{
    unsigned long long count = 0;
    nvmlReturn_t result = ASK(DeviceGetTotalEccErrors, gpu->device,
                              which & ERRORS_UNCORRECTED ? NVML_MEMORY_ERROR_TYPE_UNCORRECTED
                                                         : NVML_MEMORY_ERROR_TYPE_CORRECTED,
                              which & ERRORS_AGGREGATE ? NVML_AGGREGATE_ECC : NVML_VOLATILE_ECC,
                              &count);

    return say(result, text, "%llu", count);
}

static nvmlReturn_t ask_sram(struct gpu *gpu)
{
    nvmlEccSramErrorStatus_v1_t *sram = &gpu->answers.sram.value;

    sram->version = VERSION_OF(*sram, 1);
    return ASK(DeviceGetSramEccErrorStatus, gpu->device, sram);
}

nvmlReturn_t get_sram(struct gpu *gpu, int which, char *text)
{
    const nvmlEccSramErrorStatus_v1_t *s = &gpu->answers.sram.value;
    nvmlReturn_t result = ONCE(gpu, sram, ask_sram(gpu));
    const unsigned long long counts[] = {
        [SRAM_PARITY] = s->volatileUncParity,
        [SRAM_SECDED] = s->volatileUncSecDed,
        [SRAM_AGGREGATE_PARITY] = s->aggregateUncParity,
        [SRAM_AGGREGATE_SECDED] = s->aggregateUncSecDed,
        [SRAM_THRESHOLD] = s->bThresholdExceeded,
        [SRAM_L2] = s->aggregateUncBucketL2,
        [SRAM_SM] = s->aggregateUncBucketSm,
        [SRAM_MCU] = s->aggregateUncBucketMcu,
        [SRAM_PCIE] = s->aggregateUncBucketPcie,
        [SRAM_OTHER] = s->aggregateUncBucketOther,
        [SRAM_CORRECTED] = s->volatileCor,
        [SRAM_AGGREGATE_CORRECTED] = s->aggregateCor,
    };

    return which == SRAM_THRESHOLD ? say_yes(result, text, counts[which] != 0)
                                   : say(result, text, "%llu", counts[which]);
}

static nvmlReturn_t ask_repair(struct gpu *gpu)
{
    nvmlRepairStatus_t *repair = &gpu->answers.repair.value;

    repair->version = VERSION_OF(*repair, 1);
    return ASK(DeviceGetRepairStatus, gpu->device, repair);
}

nvmlReturn_t get_repair(struct gpu *gpu, int of_tpc, char *text)
{
    const nvmlRepairStatus_t *repair = &gpu->answers.repair.value;
    nvmlReturn_t result = ONCE(gpu, repair, ask_repair(gpu));

    return say_yes(result, text,
                   of_tpc ? repair->bTpcRepairPending : repair->bChannelRepairPending);
}

nvmlReturn_t get_unrepairable(struct gpu *gpu, int unused, char *text)
{
    nvmlUnrepairableMemory_v1_t flag = { .version = VERSION_OF(flag, 1) };
    nvmlReturn_t result = ASK(DeviceGetUnrepairableMemoryFlag_v1, gpu->device, &flag);

    (void)unused;
    return say_yes(result, text, flag.unrepairableMemory);
}

/* --- replaced pages and rows -------------------------------------------------------------------- */

nvmlReturn_t get_retired_pending(struct gpu *gpu, int unused, char *text)
{
    nvmlEnableState_t pending = NVML_FEATURE_DISABLED;
    nvmlReturn_t result = ASK(DeviceGetRetiredPagesPendingStatus, gpu->device, &pending);

    (void)unused;
    return say_yes(result, text, pending);
}

/* Whether there is a remapper: the section's value when there is none. */
nvmlReturn_t get_remapped(struct gpu *gpu, int unused, char *text)
{
    long long rows;
    nvmlReturn_t result = gpu_field(gpu, FIELD_REMAPPED_SBE, &rows);

    (void)unused;
    return say(result, text, "%s", "");
}

nvmlReturn_t get_bank(struct gpu *gpu, int which, char *text)
{
    nvmlRowRemapperHistogramValues_t *banks = &gpu->answers.banks.value;
    nvmlReturn_t result = ONCE(gpu, banks, ASK(DeviceGetRowRemapperHistogram, gpu->device, banks));
    const unsigned int counts[] = { [BANKS_MAX] = banks->max,
                                    [BANKS_HIGH] = banks->high,
                                    [BANKS_PARTIAL] = banks->partial,
                                    [BANKS_LOW] = banks->low,
                                    [BANKS_NONE] = banks->none };

    return say(result, text, "%u", counts[which]);
}

/* --- heat --------------------------------------------------------------------------------------- */

nvmlReturn_t get_temperature(struct gpu *gpu, int unused, char *text)
{
    unsigned int celsius = 0;
    nvmlReturn_t result = ASK(DeviceGetTemperature, gpu->device, NVML_TEMPERATURE_GPU, &celsius);

    (void)unused;
    return say(result, text, "%u", celsius);
}

nvmlReturn_t get_threshold(struct gpu *gpu, int which, char *text)
{
    unsigned int celsius = 0;
    nvmlReturn_t result = ASK(DeviceGetTemperatureThreshold, gpu->device,
                              (nvmlTemperatureThresholds_t)which, &celsius);

    return say(result, text, "%u", celsius);
}

static nvmlReturn_t ask_margin(struct gpu *gpu)
{
    nvmlMarginTemperature_v1_t margin = { .version = VERSION_OF(margin, 1) };
    nvmlReturn_t result = ASK(DeviceGetMarginTemperature, gpu->device, &margin);

    gpu->answers.margin.value = margin.marginTemperature;
    return result;
}

nvmlReturn_t get_margin(struct gpu *gpu, int unused, char *text)
{
    nvmlReturn_t result = ONCE(gpu, margin, ask_margin(gpu));

    (void)unused;
    return say(result, text, "%d", gpu->answers.margin.value);
}

/* The only one that is not available without brackets in CSV, besides what the fabric tells. */
nvmlReturn_t get_memory_temperature(struct gpu *gpu, int unused, char *text)
{
    nvmlReturn_t result = get_field(gpu, FIELD_MEMORY_TEMPERATURE, text);

    (void)unused;
    return result == NVML_ERROR_NOT_SUPPORTED ? say(NVML_SUCCESS, text, "N/A") : result;
}

/* --- power -------------------------------------------------------------------------------------- */

nvmlReturn_t get_power_draw(struct gpu *gpu, int unused, char *text)
{
    unsigned int mw = 0;
    nvmlReturn_t result = ASK(DeviceGetPowerUsage, gpu->device, &mw);

    (void)unused;
    return say(result, text, "%.2f", mw / 1000.0);
}

/* "Supported", or the only value that says so in brackets of its own. */
nvmlReturn_t get_power_management(struct gpu *gpu, int unused, char *text)
{
    nvmlEnableState_t mode = NVML_FEATURE_DISABLED;
    nvmlReturn_t result = ASK(DeviceGetPowerManagementMode, gpu->device, &mode);

    (void)unused;
    if (result == NVML_ERROR_NOT_SUPPORTED || (result == NVML_SUCCESS && !mode))
        return say(NVML_SUCCESS, text, "[Not Supported]");
    return say(result, text, "Supported");
}

nvmlReturn_t get_edpp(struct gpu *gpu, int unused, char *text)
{
    long long percent = 0;
    nvmlReturn_t result = gpu_field(gpu, FIELD_EDPP_MULTIPLIER, &percent);

    (void)unused;
    return say(result, text, "%lld.00", percent);
}

/* --- the fabric --------------------------------------------------------------------------------- */

static nvmlReturn_t ask_fabric(struct gpu *gpu)
{
    nvmlGpuFabricInfo_v3_t *fabric = &gpu->answers.fabric.value;
    nvmlReturn_t result;

    fabric->version = VERSION_OF(*fabric, 3);
    result = ASK(DeviceGetGpuFabricInfoV, gpu->device, fabric);
    if (result == NVML_SUCCESS && fabric->state == NVML_GPU_FABRIC_STATE_NOT_SUPPORTED)
        result = NVML_ERROR_NOT_SUPPORTED;
    return result;
}

static nvmlReturn_t say_cluster(nvmlReturn_t result, char *text, const unsigned char *id)
{
    return say(result, text, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
               id[0], id[1], id[2], id[3], id[4], id[5], id[6], id[7], id[8], id[9], id[10], id[11],
               id[12], id[13], id[14], id[15]);
}

/* Two bits of the health mask: unknown, true, false. */
static nvmlReturn_t say_flag(nvmlReturn_t result, char *text, unsigned int mask, int shift)
{
    static const char *const flags[] = { "N/A", "True", "False", "N/A" };

    return SAY_WORD(result, text, flags, mask >> shift & 3);
}

nvmlReturn_t get_fabric(struct gpu *gpu, int which, char *text)
{
    static const char *const states[] = { "Not Supported", "Not Started", "In Progress",
                                          "Completed", "Unknown" };
    static const char *const summaries[] = { "N/A", "Healthy", "Unhealthy", "Limited Capacity",
                                             "N/A" };
    static const char *const errors[] = { "N/A",
                                          "None",
                                          "Incorrect System GUID",
                                          "Incorrect Chassis Serial Number",
                                          "No Partition",
                                          "Insufficient NVLinks",
                                          "Incompatible GPU Firmware",
                                          "Invalid Location",
                                          "Invalid GPU State",
                                          "Unknown" };
    const nvmlGpuFabricInfo_v3_t *f = &gpu->answers.fabric.value;
    nvmlReturn_t result = ONCE(gpu, fabric, ask_fabric(gpu));

    if (result == NVML_ERROR_NOT_SUPPORTED)
        return say(NVML_SUCCESS, text, "N/A"); /* in CSV it has no brackets */
    switch ((enum fabric_value)which) {
    case FABRIC_STATE:
        return SAY_WORD(result, text, states, f->state);
    case FABRIC_STATUS:
        return say(result, text, "%s",
                   f->status == NVML_SUCCESS ? "Success" : api_error((nvmlReturn_t)f->status));
    case FABRIC_CLIQUE:
        return say(result, text, "%u", f->cliqueId);
    case FABRIC_CLUSTER:
        return say_cluster(result, text, f->clusterUuid);
    case FABRIC_SUMMARY:
        return SAY_WORD(result, text, summaries, f->healthSummary);
    case FABRIC_BANDWIDTH:
        return say_flag(result, text, f->healthMask, 0);
    case FABRIC_RECOVERY:
        return say_flag(result, text, f->healthMask, 2);
    case FABRIC_UNHEALTHY:
        return say_flag(result, text, f->healthMask, 4);
    case FABRIC_TIMEOUT:
        return say_flag(result, text, f->healthMask, 6);
    case FABRIC_PARTITION:
        return say_flag(result, text, f->healthMask, 12);
    default:
        return SAY_WORD(result, text, errors, f->healthMask >> 8 & 15);
    }
}
