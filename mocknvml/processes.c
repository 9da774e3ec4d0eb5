/*
 * Processes: who runs on a GPU, with how much memory, and how busy each is.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mocknvml/library.h"

/* One line of gpus/<i>/processes. */
struct process {
    unsigned int pid;
    unsigned long long memory_bytes;
    unsigned int utilization_percent;
};

/* What the list holds for a process without MIG instance. */
#define NO_INSTANCE 0xFFFFFFFFu

static bool parse_process(const char *line, struct process *p)
{
    return sscanf(line, "%u %llu %u", &p->pid, &p->memory_bytes, &p->utilization_percent) == 3;
}

/* The lists differ in what they hold of a process. */
typedef void process_filler(void *item, const struct process *process);

static void fill_v1(void *item, const struct process *p)
{
    *(nvmlProcessInfo_v1_t *)item = (nvmlProcessInfo_v1_t){ p->pid, p->memory_bytes };
}

static void fill_v2(void *item, const struct process *p)
{
    *(nvmlProcessInfo_v2_t *)item = (nvmlProcessInfo_v2_t){ p->pid, p->memory_bytes, NO_INSTANCE,
                                                            NO_INSTANCE };
}

static void fill_detail(void *item, const struct process *p)
{
    *(nvmlProcessDetail_v1_t *)item = (nvmlProcessDetail_v1_t){ p->pid, p->memory_bytes,
                                                                NO_INSTANCE, NO_INSTANCE, 0 };
}

/* Callers who pass no room at all ask how much they need; nothing running is a success. */
static nvmlReturn_t list_processes(nvmlDevice_t device, process_filler *fill, size_t size,
                                   unsigned int *count, void *items)
{
    char text[TABLE_BYTES], *rest = text, *line;
    nvmlReturn_t result = device_text(device, "processes", text, sizeof(text));
    struct list list = { items, size, count ? *count : 0, 0 };
    struct process process;
    nvmlProcessDetail_v1_t item;

    if (result != NVML_SUCCESS)
        return result;
    if (!count || (*count && !items))
        return NVML_ERROR_INVALID_ARGUMENT;
    while ((line = table_line(&rest)))
        if (parse_process(line, &process)) {
            fill(&item, &process);
            list_add(&list, &item);
        }
    return list_end(&list, count);
}

static nvmlReturn_t no_processes(nvmlDevice_t device, unsigned int *count, const void *items)
{
    nvmlReturn_t result = device_check(device);

    if (result != NVML_SUCCESS)
        return result;
    if (!count || (*count && !items))
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int *count,
                                                  nvmlProcessInfo_v1_t *items)
{
    return list_processes(device, fill_v1, sizeof(*items), count, items);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int *count,
                                                     nvmlProcessInfo_v2_t *items)
{
    return list_processes(device, fill_v2, sizeof(*items), count, items);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                     nvmlProcessInfo_t *items)
{
    return list_processes(device, fill_v2, sizeof(*items), count, items);
}

/* Simulated workloads compute; nobody draws, and no server shares the GPU out. */
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device, unsigned int *count,
                                                   nvmlProcessInfo_v1_t *items)
{
    return no_processes(device, count, items);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t device, unsigned int *count,
                                                      nvmlProcessInfo_v2_t *items)
{
    return no_processes(device, count, items);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                      nvmlProcessInfo_t *items)
{
    return no_processes(device, count, items);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses(nvmlDevice_t device, unsigned int *count,
                                                     nvmlProcessInfo_v1_t *items)
{
    return no_processes(device, count, items);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int *count,
                                                        nvmlProcessInfo_v2_t *items)
{
    return no_processes(device, count, items);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                        nvmlProcessInfo_t *items)
{
    return no_processes(device, count, items);
}

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device,
                                                   nvmlProcessDetailList_v1_t *list)
{
    nvmlReturn_t result = device_check(device);

    if (result != NVML_SUCCESS)
        return result;
    if (!list)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (list->version != NVML_STRUCT_VERSION(sizeof(*list), 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    switch (list->mode) {
    case NVML_PROCESS_MODE_COMPUTE:
    case NVML_PROCESS_MODE_ALL:
        return list_processes(device, fill_detail, sizeof(*list->procArray),
                              &list->numProcArrayEntries, list->procArray);
    case NVML_PROCESS_MODE_GRAPHICS:
    case NVML_PROCESS_MODE_MPS:
        return no_processes(device, &list->numProcArrayEntries, list->procArray);
    default:
        return NVML_ERROR_INVALID_ARGUMENT;
    }
}

/* --- how busy -------------------------------------------------------------------------------- */

/*
 * A process's share of the memory controller and of the video engines is that of its share of the GPU: the
 * simulation knows these per GPU only.
 */
struct shares {
    int64_t gpu, memory, encoder, decoder, jpeg, ofa;
};

static void read_shares(const struct metric_sample *sample, struct shares *s)
{
    *s = (struct shares){ 0 };
    sample_value(sample, METRIC_UTILIZATION_GPU, &s->gpu);
    sample_value(sample, METRIC_UTILIZATION_MEMORY, &s->memory);
    sample_value(sample, METRIC_UTILIZATION_ENCODER, &s->encoder);
    sample_value(sample, METRIC_UTILIZATION_DECODER, &s->decoder);
    sample_value(sample, METRIC_UTILIZATION_JPEG, &s->jpeg);
    sample_value(sample, METRIC_UTILIZATION_OFA, &s->ofa);
}

static unsigned int part(const struct shares *s, int64_t whole, const struct process *p)
{
    return s->gpu > 0 ? (unsigned int)(whole * p->utilization_percent / s->gpu) : 0;
}

static void fill_info(nvmlProcessUtilizationInfo_v1_t *info, const struct shares *s,
                      const struct process *p, int64_t time_us)
{
    *info = (nvmlProcessUtilizationInfo_v1_t){ .timeStamp = (unsigned long long)time_us,
                                               .pid = p->pid,
                                               .smUtil = p->utilization_percent,
                                               .memUtil = part(s, s->memory, p),
                                               .encUtil = part(s, s->encoder, p),
                                               .decUtil = part(s, s->decoder, p),
                                               .jpgUtil = part(s, s->jpeg, p),
                                               .ofaUtil = part(s, s->ofa, p) };
}

/* Sample of now, when the caller has not seen it yet; `last_us` 0 asks for everything. */
nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                             nvmlProcessUtilizationSample_t *items,
                                             unsigned int *count, unsigned long long last_us)
{
    char text[TABLE_BYTES], *rest = text, *line;
    struct reader_gpu gpu;
    nvmlReturn_t result = device_read_gpu(device, &gpu);
    struct list list = { items, sizeof(*items), count ? *count : 0, 0 };
    int64_t now = now_us();
    struct process process;
    struct shares shares;

    if (result == NVML_SUCCESS)
        result = device_text(device, "processes", text, sizeof(text));
    if (result != NVML_SUCCESS)
        return result;
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    read_shares(&gpu.sample, &shares);
    while ((line = table_line(&rest)) && last_us < (unsigned long long)now)
        if (parse_process(line, &process)) {
            nvmlProcessUtilizationInfo_v1_t info;
            nvmlProcessUtilizationSample_t item;

            fill_info(&info, &shares, &process, now);
            item = (nvmlProcessUtilizationSample_t){ info.pid,     info.timeStamp, info.smUtil,
                                                     info.memUtil, info.encUtil,   info.decUtil };
            list_add(&list, &item);
        }
    if (!list.used) {
        *count = 0;
        return NVML_ERROR_NOT_FOUND;
    }
    return list_end(&list, count);
}

nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
                                                   nvmlProcessesUtilizationInfo_v1_t *info)
{
    char text[TABLE_BYTES], *rest = text, *line;
    struct reader_gpu gpu;
    nvmlReturn_t result = device_read_gpu(device, &gpu);
    struct list list;
    struct process process;
    struct shares shares;

    if (result == NVML_SUCCESS)
        result = device_text(device, "processes", text, sizeof(text));
    if (result != NVML_SUCCESS)
        return result;
    if (!info)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (info->version != NVML_STRUCT_VERSION(sizeof(*info), 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    list = (struct list){ info->procUtilArray, sizeof(*info->procUtilArray),
                          info->processSamplesCount, 0 };
    read_shares(&gpu.sample, &shares);
    while ((line = table_line(&rest)))
        if (parse_process(line, &process)) {
            nvmlProcessUtilizationInfo_v1_t item;

            fill_info(&item, &shares, &process, now_us());
            list_add(&list, &item);
        }
    return list_end(&list, &info->processSamplesCount);
}

/* --- accounting: off, as the driver starts --------------------------------------------------- */

nvmlReturn_t nvmlDeviceGetAccountingMode(nvmlDevice_t device, nvmlEnableState_t *mode)
{
    return give_uint(device, NVML_FEATURE_DISABLED, (unsigned int *)mode);
}

nvmlReturn_t nvmlDeviceGetAccountingBufferSize(nvmlDevice_t device, unsigned int *size)
{
    return give_uint(device, 4000, size);
}

nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned int *count,
                                         unsigned int *pids)
{
    (void)pids;
    return give_uint(device, 0, count);
}

nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned int pid,
                                          nvmlAccountingStats_t *stats)
{
    nvmlReturn_t result = device_check(device);

    (void)pid, (void)stats;
    return result == NVML_SUCCESS ? NVML_ERROR_NOT_FOUND : result;
}
