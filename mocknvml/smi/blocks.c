/*
 * Blocks: the parts of `-q` that are lists: MIG devices, processes, clocks, pages, samples.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "mocknvml/smi/mig.h"
#include "mocknvml/smi/processes.h"
#include "mocknvml/smi/rows.h"

/* A number with a unit, or what stands for it. */
__attribute__((format(printf, 6, 7))) static void value(struct out *out, int depth,
                                                        const char *label, const char *element,
                                                        nvmlReturn_t result, const char *format,
                                                        ...)
{
    char text[TEXT_BYTES];
    va_list arguments;

    va_start(arguments, format);
    if (result == NVML_SUCCESS)
        vsnprintf(text, sizeof(text), format, arguments);
    else
        value_missing(result, false, text);
    va_end(arguments);
    out_value(out, depth, label, element, text);
}

/* --- MIG devices -------------------------------------------------------------------------------- */

static void mig_attributes(struct out *out, const struct mig_device *mig, int depth)
{
    const struct {
        const char *label, *element;
        unsigned int count;
    } counts[] = {
        { "Multiprocessor count", "multiprocessor_count", mig->has.multiprocessorCount },
        { "Copy Engine count", "copy_engine_count", mig->has.sharedCopyEngineCount },
        { "Encoder count", "encoder_count", mig->has.sharedEncoderCount },
        { "Decoder count", "decoder_count", mig->has.sharedDecoderCount },
        { "OFA count", "ofa_count", mig->has.sharedOfaCount },
        { "JPG count", "jpg_count", mig->has.sharedJpegCount },
    };

    out_open(out, depth, "Device Attributes", "device_attributes");
    out_open(out, depth + 1, "Shared", "shared");
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        value(out, depth + 2, counts[i].label, counts[i].element, NVML_SUCCESS, "%u",
              counts[i].count);
    out_close(out, depth + 1, "shared");
    out_close(out, depth, "device_attributes");
}

static void mig_memory(struct out *out, const struct mig_device *mig, int depth)
{
    nvmlReturn_t result = mig->memory_result;

    out_open(out, depth, "Shared FB Memory Usage", "fb_memory_usage");
    value(out, depth + 1, "Total", "total", result, "%llu MiB", mig->memory.total >> 20);
    value(out, depth + 1, "Reserved", "reserved", result, "%llu MiB", mig->memory.reserved >> 20);
    value(out, depth + 1, "Used", "used", result, "%llu MiB", mig->memory.used >> 20);
    value(out, depth + 1, "Free", "free", result, "%llu MiB", mig->memory.free >> 20);
    out_close(out, depth, "fb_memory_usage");
    result = mig->bar1_result;
    out_open(out, depth, "Shared BAR1 Memory", "bar1_memory_usage");
    value(out, depth + 1, "Total", "total", result, "%llu MiB", mig->bar1.bar1Total >> 20);
    value(out, depth + 1, "Used", "used", result, "%llu MiB", mig->bar1.bar1Used >> 20);
    value(out, depth + 1, "Free", "free", result, "%llu MiB", mig->bar1.bar1Free >> 20);
    out_close(out, depth, "bar1_memory_usage");
}

static void mig_device(struct out *out, const struct mig_device *mig, int depth)
{
    out_open(out, depth, "MIG Device", "mig_device");
    value(out, depth + 1, "Index", "index", NVML_SUCCESS, "%u", mig->index);
    value(out, depth + 1, "GPU Instance ID", "gpu_instance_id", NVML_SUCCESS, "%u", mig->gi);
    value(out, depth + 1, "Compute Instance ID", "compute_instance_id", NVML_SUCCESS, "%u",
          mig->ci);
    mig_attributes(out, mig, depth + 1);
    out_open(out, depth + 1, "ECC Errors", "ecc_error_count");
    out_open(out, depth + 2, "Volatile", "volatile_count");
    value(out, depth + 3, "SRAM Uncorrectable", "sram_uncorrectable", mig->errors_result, "%llu",
          mig->sram_errors);
    out_close(out, depth + 2, "volatile_count");
    out_close(out, depth + 1, "ecc_error_count");
    mig_memory(out, mig, depth + 1);
    out_close(out, depth, "mig_device");
}

/* In XML they are inside an element of their own, which says None when there are none. */
void block_mig_devices(struct out *out, struct gpu *gpu, int depth)
{
    unsigned int index = 0;
    struct mig_device mig;
    bool any = false;

    out_open(out, depth, NULL, "mig_devices");
    while (mig_next(gpu, &index, &mig)) {
        mig_device(out, &mig, out->xml ? depth + 1 : depth);
        any = true;
    }
    if (out->xml && !any)
        out_raw(out, depth + 1, "None");
    out_close(out, depth, "mig_devices");
}

/* --- processes ---------------------------------------------------------------------------------- */

static void instance_id(struct out *out, int depth, const char *label, const char *element,
                        unsigned int id)
{
    value(out, depth, label, element, id == ~0u ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS, "%u",
          id);
}

static void process_info(struct out *out, const struct process *process, int depth)
{
    int more = out->xml ? depth : depth + 1;
    char name[4096];

    instance_id(out, depth, "GPU instance ID", "gpu_instance_id", process->gi);
    instance_id(out, depth, "Compute instance ID", "compute_instance_id", process->ci);
    value(out, depth, "Process ID", "pid", NVML_SUCCESS, "%u", process->pid);
    out_value(out, more, "Type", "type", process_type(process));
    process_name(process->pid, name, sizeof(name));
    out_value(out, more, "Name", "process_name", name);
    value(out, more, "Used GPU Memory", "used_memory",
          process->bytes == ~0ull ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS, "%llu MiB",
          process->bytes >> 20);
}

void block_processes(struct out *out, struct gpu *gpu, int depth)
{
    struct processes list;
    nvmlReturn_t result = processes_get(gpu, PROCESS_ANY, &list);

    if (!out->xml && !list.count) {
        value(out, depth, "Processes", NULL, result, "None");
        return;
    }
    out_open(out, depth, "Processes", "processes");
    out->column = OUT_COLUMN_NARROW;
    for (unsigned int i = 0; i < list.count; i++) {
        out_open(out, depth + 1, NULL, "process_info");
        process_info(out, &list.items[i], out->xml ? depth + 2 : depth + 1);
        out_close(out, depth + 1, "process_info");
    }
    out->column = OUT_COLUMN;
    out_close(out, depth, "processes");
    processes_release(&list);
}

static void accounted(struct out *out, struct gpu *gpu, unsigned int pid, int depth)
{
    int more = out->xml ? depth : depth + 1;
    nvmlAccountingStats_t stats = { 0 };
    nvmlReturn_t result = ASK(DeviceGetAccountingStats, gpu->device, pid, &stats);

    value(out, depth, "Process ID", "pid", NVML_SUCCESS, "%u", pid);
    value(out, more, "GPU Utilization", "gpu_util", result, "%u %%", stats.gpuUtilization);
    value(out, more, "Memory Utilization", "memory_util", result, "%u %%", stats.memoryUtilization);
    value(out, more, "Max memory usage", "max_memory_usage", result, "%llu MiB",
          stats.maxMemoryUsage >> 20);
    value(out, more, "Time", "time", result, "%llu ms", stats.time);
    value(out, more, "Is Running", "is_running", result, "%u", stats.isRunning);
}

void block_accounted(struct out *out, struct gpu *gpu, int depth)
{
    unsigned int *pids, count;
    nvmlReturn_t result = accounted_pids(gpu, &pids, &count);

    if (!out->xml && !count) {
        value(out, depth, "Accounted Processes", NULL, result, "None");
        free(pids);
        return;
    }
    out_open(out, depth, "Accounted Processes", "accounted_processes");
    out->column = OUT_COLUMN_NARROW;
    for (unsigned int i = 0; i < count; i++) {
        out_open(out, depth + 1, NULL, "accounted_process_info");
        accounted(out, gpu, pids[i], out->xml ? depth + 2 : depth + 1);
        out_close(out, depth + 1, "accounted_process_info");
    }
    out->column = OUT_COLUMN;
    out_close(out, depth, "accounted_processes");
    free(pids);
}

/* --- clocks that can be set --------------------------------------------------------------------- */

enum { CLOCKS_MAX = 1024 };

static void graphics_clocks(struct out *out, struct gpu *gpu, unsigned int memory_mhz, int depth)
{
    unsigned int mhz[CLOCKS_MAX], count = CLOCKS_MAX;
    nvmlReturn_t result = ASK(DeviceGetSupportedGraphicsClocks, gpu->device, memory_mhz, &count,
                              mhz);

    if (result != NVML_SUCCESS) {
        value(out, depth, "Graphics", "supported_graphics_clock", result, "%s", "");
        return;
    }
    for (unsigned int i = 0; i < count; i++)
        value(out, depth, "Graphics", "supported_graphics_clock", NVML_SUCCESS, "%u MHz", mhz[i]);
}

void block_supported_clocks(struct out *out, struct gpu *gpu, int depth)
{
    unsigned int mhz[CLOCKS_MAX], count = CLOCKS_MAX;
    nvmlReturn_t result = ASK(DeviceGetSupportedMemoryClocks, gpu->device, &count, mhz);

    if (result != NVML_SUCCESS) {
        value(out, depth, "Supported Clocks", "supported_clocks", result, "%s", "");
        return;
    }
    out_open(out, depth, "Supported Clocks", "supported_clocks");
    for (unsigned int i = 0; i < count; i++) {
        out_open(out, depth + 1, NULL, "supported_mem_clock");
        value(out, out->xml ? depth + 2 : depth + 1, "Memory", "value", NVML_SUCCESS, "%u MHz",
              mhz[i]);
        graphics_clocks(out, gpu, mhz[i], depth + 2);
        out_close(out, depth + 1, "supported_mem_clock");
    }
    out_close(out, depth, "supported_clocks");
}

/* --- retired pages ------------------------------------------------------------------------------ */

static void page_list(struct out *out, struct gpu *gpu, nvmlPageRetirementCause_t cause, int depth)
{
    unsigned long long pages[512], times[512];
    unsigned int count = sizeof(pages) / sizeof(pages[0]);
    nvmlReturn_t result = ASK(DeviceGetRetiredPages_v2, gpu->device, cause, &count, pages, times);

    if (result != NVML_SUCCESS) {
        value(out, depth, NULL, "retired_pagelist", result, "%s", "");
        return;
    }
    out_open(out, depth, NULL, "retired_pagelist");
    for (unsigned int i = 0; i < count; i++)
        value(out, depth + 1, NULL, "retired_page_address", NVML_SUCCESS, "0x%016llx", pages[i]);
    out_close(out, depth, "retired_pagelist");
}

void block_retired_pages(struct out *out, struct gpu *gpu, int depth)
{
    static const struct {
        const char *label, *element;
        enum gpu_field field;
        nvmlPageRetirementCause_t cause;
    } causes[] = {
        { "Single Bit ECC", "multiple_single_bit_retirement", FIELD_RETIRED_SBE,
          NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS },
        { "Double Bit ECC", "double_bit_retirement", FIELD_RETIRED_DBE,
          NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR },
    };
    char pending[TEXT_BYTES] = "";
    nvmlReturn_t result;

    out_open(out, depth, "Retired Pages", "retired_pages");
    for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
        int below = out->xml ? depth + 2 : depth + 1;
        long long count = 0;

        result = gpu_field(gpu, causes[i].field, &count);
        out_open(out, depth + 1, NULL, causes[i].element);
        value(out, below, causes[i].label, "retired_count", result, "%lld", count);
        if (out->xml)
            page_list(out, gpu, causes[i].cause, below);
        out_close(out, depth + 1, causes[i].element);
    }
    result = get_retired_pending(gpu, 0, pending);
    value(out, depth + 1, "Pending Page Blacklist", "pending_blacklist", result, "%s", pending);
    value(out, depth + 1, NULL, "pending_retirement", result, "%s", pending);
    out_close(out, depth, "retired_pages");
}

/* --- samples ------------------------------------------------------------------------------------ */

struct sample_kind {
    const char *title;
    nvmlSamplingType_t type;
    const char *unit;
    unsigned int parts; /* of the unit that one of the sample's is */
};

static unsigned long long sample_number(const nvmlSample_t *sample, nvmlValueType_t type)
{
    switch (type) {
    case NVML_VALUE_TYPE_DOUBLE:
        return (unsigned long long)sample->sampleValue.dVal;
    case NVML_VALUE_TYPE_UNSIGNED_INT:
        return sample->sampleValue.uiVal;
    default:
        return sample->sampleValue.ullVal;
    }
}

static void statistic(struct out *out, int depth, const char *label, const struct sample_kind *kind,
                      nvmlReturn_t result, double number)
{
    value(out, depth, label, NULL, result, "%.*f %s", kind->parts > 1 ? 2 : 0, number / kind->parts,
          kind->unit);
}

static void samples(struct out *out, struct gpu *gpu, const struct sample_kind *kind, int depth)
{
    nvmlSample_t items[512];
    nvmlValueType_t type = NVML_VALUE_TYPE_UNSIGNED_INT;
    unsigned int count = sizeof(items) / sizeof(items[0]);
    nvmlReturn_t result = ASK(DeviceGetSamples, gpu->device, kind->type, 0, &type, &count, items);
    unsigned long long most = 0, least = ULLONG_MAX, first = ULLONG_MAX, last = 0;
    double sum = 0;

    if (result == NVML_SUCCESS && count == 0)
        result = NVML_ERROR_NOT_FOUND;
    for (unsigned int i = 0; result == NVML_SUCCESS && i < count; i++) {
        unsigned long long number = sample_number(&items[i], type), at = items[i].timeStamp;

        most = number > most ? number : most;
        least = number < least ? number : least;
        first = at < first ? at : first;
        last = at > last ? at : last;
        sum += (double)number;
    }
    out_open(out, depth, kind->title, NULL);
    value(out, depth + 1, "Duration", NULL, result, "%.2f sec", (double)(last - first) / 1e6);
    value(out, depth + 1, "Number of Samples", NULL, result, "%u", count);
    statistic(out, depth + 1, "Max", kind, result, (double)most);
    statistic(out, depth + 1, "Min", kind, result, (double)least);
    statistic(out, depth + 1, "Avg", kind, result, count ? sum / count : 0);
}

static void sample_blocks(struct out *out, struct gpu *gpu, const struct sample_kind *kinds,
                          size_t count, int depth)
{
    for (size_t i = 0; i < count && !out->xml; i++)
        samples(out, gpu, &kinds[i], depth);
}

void block_power_samples(struct out *out, struct gpu *gpu, int depth)
{
    static const struct sample_kind kinds[] = { { "Power Samples", NVML_TOTAL_POWER_SAMPLES, "W",
                                                  1000 } };

    sample_blocks(out, gpu, kinds, 1, depth);
}

void block_utilization_samples(struct out *out, struct gpu *gpu, int depth)
{
    static const struct sample_kind kinds[] = {
        { "GPU Utilization Samples", NVML_GPU_UTILIZATION_SAMPLES, "%", 1 },
        { "Memory Utilization Samples", NVML_MEMORY_UTILIZATION_SAMPLES, "%", 1 },
        { "ENC Utilization Samples", NVML_ENC_UTILIZATION_SAMPLES, "%", 1 },
        { "DEC Utilization Samples", NVML_DEC_UTILIZATION_SAMPLES, "%", 1 },
    };

    sample_blocks(out, gpu, kinds, sizeof(kinds) / sizeof(kinds[0]), depth);
}

void block_clock_samples(struct out *out, struct gpu *gpu, int depth)
{
    static const struct sample_kind kinds[] = {
        { "SM Clock Samples", NVML_PROCESSOR_CLK_SAMPLES, "MHz", 1 },
        { "Memory Clock Samples", NVML_MEMORY_CLK_SAMPLES, "MHz", 1 },
    };

    sample_blocks(out, gpu, kinds, sizeof(kinds) / sizeof(kinds[0]), depth);
}
