/*
 * Accounting: what each process used of a GPU, also after its end.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <string.h>

#include "mocknvml/tables.h"

/* Ended processes that the driver remembers, and how often it looks at those that run. */
enum { BUFFER_SIZE = 4000, SAMPLE_MS = 100 };

/* One line of gpus/<i>/accounting. */
struct account {
    unsigned int pid, running;
    double gpu_percent, memory_percent;
    unsigned long long max_memory_bytes, time_ms, start_us;
};

static bool parse_account(const char *line, struct account *a)
{
    return sscanf(line, "%u %u %lf %lf %llu %llu %llu", &a->pid, &a->running, &a->gpu_percent,
                  &a->memory_percent, &a->max_memory_bytes, &a->time_ms, &a->start_us) == 7;
}

/* The whole GPU's alone; while accounting is off the file has no data, which is NOT_SUPPORTED. */
static nvmlReturn_t read_accounts(nvmlDevice_t device, struct whole_table *table)
{
    struct reader_gpu gpu;
    nvmlReturn_t result = device_read_gpu(device, &gpu);

    *table = (struct whole_table){ 0 };
    return result == NVML_SUCCESS ? table_read(device, "accounting", table) : result;
}

/* Of processes with the same id the last one counts: it stands behind the others. */
static nvmlReturn_t find_account(nvmlDevice_t device, unsigned int pid, struct account *found)
{
    struct whole_table table;
    nvmlReturn_t result = read_accounts(device, &table);
    struct account account;
    bool any = false;
    char *line;

    while (result == NVML_SUCCESS && (line = reader_line(&table.rest)))
        if (parse_account(line, &account) && account.pid == pid) {
            *found = account;
            any = true;
        }
    table_release(&table);
    return result == NVML_SUCCESS && !any ? NVML_ERROR_NOT_FOUND : result;
}

nvmlReturn_t nvmlDeviceGetAccountingMode(nvmlDevice_t device, nvmlEnableState_t *mode)
{
    char text[16];
    nvmlReturn_t result = arguments_check(mode);

    if (result == NVML_SUCCESS)
        result = device_text(device, "control/accounting_mode", text, sizeof(text));
    if (result == NVML_SUCCESS)
        *mode = strcmp(text, "0") ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
    return result;
}

nvmlReturn_t nvmlDeviceSetAccountingMode(nvmlDevice_t device, nvmlEnableState_t mode)
{
    nvmlReturn_t result = arguments_check(mode == NVML_FEATURE_DISABLED ||
                                          mode == NVML_FEATURE_ENABLED);

    return result == NVML_SUCCESS
               ? device_write(device, "control/accounting_mode", mode ? "1" : "0")
               : result;
}

nvmlReturn_t nvmlDeviceClearAccountingPids(nvmlDevice_t device)
{
    return device_write(device, "accounting", "clear");
}

nvmlReturn_t nvmlDeviceGetAccountingBufferSize(nvmlDevice_t device, unsigned int *size)
{
    return give_uint(device, BUFFER_SIZE, size);
}

nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned int *count,
                                         unsigned int *pids)
{
    struct whole_table table = { 0 };
    nvmlReturn_t result = arguments_check(count && (!*count || pids));
    struct list list = { pids, sizeof(*pids), count ? *count : 0, 0 };
    struct account account;
    char *line;

    if (result == NVML_SUCCESS)
        result = read_accounts(device, &table);
    while (result == NVML_SUCCESS && (line = reader_line(&table.rest)))
        if (parse_account(line, &account))
            list_add(&list, &account.pid);
    table_release(&table);
    return result == NVML_SUCCESS ? list_end(&list, count) : result;
}

/* The time is told when it is over. */
static nvmlAccountingStats_t stats_of(const struct account *a)
{
    return (nvmlAccountingStats_t){ .gpuUtilization = (unsigned int)(a->gpu_percent + 0.5),
                                    .memoryUtilization = (unsigned int)(a->memory_percent + 0.5),
                                    .maxMemoryUsage = a->max_memory_bytes,
                                    .time = a->running ? 0 : a->time_ms,
                                    .startTime = a->start_us,
                                    .isRunning = a->running };
}

nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned int pid,
                                          nvmlAccountingStats_t *stats)
{
    struct account account;
    nvmlReturn_t result = arguments_check(stats);

    if (result == NVML_SUCCESS)
        result = find_account(device, pid, &account);
    if (result == NVML_SUCCESS)
        *stats = stats_of(&account);
    return result;
}

/* The process is named in the structure, which tells the sums behind the percentages as well. */
nvmlReturn_t nvmlDeviceGetAccountingStats_v2(nvmlDevice_t device, nvmlAccountingStats_v2_t *stats)
{
    nvmlReturn_t result = arguments_check(stats);
    nvmlAccountingStats_t plain;
    struct account account;
    unsigned int samples;

    if (result == NVML_SUCCESS)
        result = find_account(device, stats->pid, &account);
    if (result != NVML_SUCCESS)
        return result;
    plain = stats_of(&account);
    samples = (unsigned int)(account.time_ms / SAMPLE_MS);
    *stats = (nvmlAccountingStats_v2_t){
        .pid = account.pid,
        .isRunning = plain.isRunning,
        .gpuUtilization = plain.gpuUtilization,
        .memoryUtilization = plain.memoryUtilization,
        .maxMemoryUsage = plain.maxMemoryUsage,
        .sampleCount = samples,
        .sumGpuUtil = (unsigned long long)(account.gpu_percent * 100 * samples + 0.5),
        .sumFbUtil = (unsigned long long)(account.memory_percent * 100 * samples + 0.5),
        .time = plain.time,
        .startTime = plain.startTime,
    };
    return NVML_SUCCESS;
}
