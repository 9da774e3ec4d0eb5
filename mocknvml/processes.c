/*
 * Processes: who runs on a GPU, with how much memory, and how busy each is.
 *
 * On a MIG device only those of its instance are seen.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mocknvml/tables.h"

/* What the list holds for a process without MIG instance. */
#define NO_INSTANCE 0xFFFFFFFFu

/* One line of gpus/<i>/processes. */
struct process {
    unsigned int pid;
    unsigned long long memory_bytes;
    unsigned int gi, ci;
};

/* "-" or a number. */
static unsigned int instance_number(const char *word)
{
    return strcmp(word, "-") ? (unsigned int)strtoul(word, NULL, 10) : NO_INSTANCE;
}

static bool is_on(nvmlDevice_t device, unsigned int gi, unsigned int ci)
{
    return !device->parent || ((int)gi == device->gi && (int)ci == device->ci);
}

static bool parse_process(const char *line, struct process *p)
{
    char gi[8], ci[8];

    if (sscanf(line, "%u %llu %*u %*s %*s %*s %*s %7s %7s", &p->pid, &p->memory_bytes, gi, ci) != 4)
        return false;
    p->gi = instance_number(gi);
    p->ci = instance_number(ci);
    return true;
}

/* The lists differ in what they hold of a process. */
typedef void process_filler(void *item, const struct process *process);

static void fill_v1(void *item, const struct process *p)
{
    *(nvmlProcessInfo_v1_t *)item = (nvmlProcessInfo_v1_t){ p->pid, p->memory_bytes };
}

static void fill_v2(void *item, const struct process *p)
{
    *(nvmlProcessInfo_v2_t *)item = (nvmlProcessInfo_v2_t){ p->pid, p->memory_bytes, p->gi, p->ci };
}

static void fill_detail(void *item, const struct process *p)
{
    *(nvmlProcessDetail_v1_t *)item = (nvmlProcessDetail_v1_t){ p->pid, p->memory_bytes, p->gi,
                                                                p->ci, 0 };
}

/* Callers who pass no room at all ask how much they need; nothing running is a success. */
static nvmlReturn_t list_processes(nvmlDevice_t device, process_filler *fill, size_t size,
                                   unsigned int *count, void *items)
{
    struct whole_table table = { 0 };
    nvmlReturn_t result = arguments_check(count && (!*count || items));
    struct list list = { items, size, count ? *count : 0, 0 };
    struct process process;
    nvmlProcessDetail_v1_t item;
    char *line;

    if (result == NVML_SUCCESS)
        result = table_read(device, "processes", &table);
    while (result == NVML_SUCCESS && (line = reader_line(&table.rest)))
        if (parse_process(line, &process) && is_on(device, process.gi, process.ci)) {
            fill(&item, &process);
            list_add(&list, &item);
        }
    table_release(&table);
    return result == NVML_SUCCESS ? list_end(&list, count) : result;
}

static nvmlReturn_t no_processes(nvmlDevice_t device, unsigned int *count, const void *items)
{
    nvmlReturn_t result = arguments_check(count && (!*count || items));

    if (result == NVML_SUCCESS)
        result = device_check(device);
    if (result == NVML_SUCCESS)
        *count = 0;
    return result;
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
    nvmlReturn_t result = arguments_check(list);

    if (result != NVML_SUCCESS)
        return result;
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

typedef nvmlProcessUtilizationInfo_v1_t busy_process;

/* A line of gpus/<i>/process_utilization. */
static bool parse_busy(const char *line, busy_process *p)
{
    return sscanf(line, "%llu %u %*s %*s %u %u %u %u %u %u", &p->timeStamp, &p->pid, &p->smUtil,
                  &p->memUtil, &p->encUtil, &p->decUtil, &p->jpgUtil, &p->ofaUtil) == 8;
}

static bool is_busy(const busy_process *p)
{
    return p->smUtil || p->memUtil || p->encUtil || p->decUtil || p->jpgUtil || p->ofaUtil;
}

static void fill_sample(void *item, const busy_process *p)
{
    *(nvmlProcessUtilizationSample_t *)item = (nvmlProcessUtilizationSample_t){
        p->pid, p->timeStamp, p->smUtil, p->memUtil, p->encUtil, p->decUtil
    };
}

static void fill_info(void *item, const busy_process *p)
{
    *(busy_process *)item = *p;
}

/* A GPU in MIG mode does not tell what its processes keep busy, nor do its MIG devices. */
static nvmlReturn_t check_utilization(nvmlDevice_t device)
{
    struct reader_gpu gpu;
    nvmlReturn_t result = device_read_gpu(device, &gpu);
    int64_t mig = 0;

    if (result != NVML_SUCCESS)
        return result;
    sample_value(&gpu.sample, METRIC_MIG_MODE, &mig);
    return mig ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

/* One sample of each process that kept anything busy, if it is newer than what the caller has seen. */
static nvmlReturn_t list_busy(nvmlDevice_t device, unsigned long long last_us,
                              void (*fill)(void *item, const busy_process *process),
                              struct list *list, unsigned int *count)
{
    struct whole_table table;
    nvmlReturn_t result = table_read(device, "process_utilization", &table);
    busy_process process, item;
    char *line;

    while (result == NVML_SUCCESS && (line = reader_line(&table.rest)))
        if (parse_busy(line, &process) && process.timeStamp > last_us && is_busy(&process)) {
            fill(&item, &process);
            list_add(list, &item);
        }
    table_release(&table);
    if (result != NVML_SUCCESS)
        return result;
    result = list_end(list, count);
    return list->used ? result : NVML_ERROR_NOT_FOUND;
}

/* `last_us` 0 asks for everything. */
nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                             nvmlProcessUtilizationSample_t *items,
                                             unsigned int *count, unsigned long long last_us)
{
    nvmlReturn_t result = arguments_check(count);
    struct list list = { items, sizeof(*items), count ? *count : 0, 0 };

    if (result == NVML_SUCCESS)
        result = check_utilization(device);
    return result == NVML_SUCCESS ? list_busy(device, last_us, fill_sample, &list, count) : result;
}

nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
                                                   nvmlProcessesUtilizationInfo_v1_t *info)
{
    nvmlReturn_t result = arguments_check(info);
    struct list list;

    if (result == NVML_SUCCESS && info->version != NVML_STRUCT_VERSION(sizeof(*info), 1))
        result = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (result == NVML_SUCCESS)
        result = check_utilization(device);
    if (result != NVML_SUCCESS)
        return result;
    list = (struct list){ info->procUtilArray, sizeof(*info->procUtilArray),
                          info->processSamplesCount, 0 };
    return list_busy(device, info->lastSeenTimeStamp, fill_info, &list, &info->processSamplesCount);
}
