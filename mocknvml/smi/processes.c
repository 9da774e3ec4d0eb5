/*
 * Processes: who uses a GPU, in one list. See processes.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mocknvml/smi/processes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mocknvml/smi/text.h"

typedef nvmlReturn_t process_lister(nvmlDevice_t device, unsigned int *count,
                                    nvmlProcessInfo_t *items);

/* There may be more of them by the time there is room for all. */
static nvmlReturn_t ask_processes(process_lister *lister, nvmlDevice_t device,
                                  nvmlProcessInfo_t **items, unsigned int *count)
{
    nvmlReturn_t result = NVML_ERROR_INSUFFICIENT_SIZE;

    *items = NULL;
    *count = 64;
    while (result == NVML_ERROR_INSUFFICIENT_SIZE) {
        unsigned int room = *count;

        free(*items);
        *items = calloc(room, sizeof(**items));
        if (!*items)
            return NVML_ERROR_MEMORY;
        result = lister ? lister(device, count, *items) : NVML_ERROR_FUNCTION_NOT_FOUND;
        if (result == NVML_ERROR_INSUFFICIENT_SIZE)
            *count = (*count > room ? *count : room) * 2;
    }
    if (result != NVML_SUCCESS)
        *count = 0;
    return result;
}

static bool is_same(const struct process *process, const nvmlProcessInfo_t *info)
{
    return process->pid == info->pid && process->gi == info->gpuInstanceId &&
           process->ci == info->computeInstanceId;
}

static nvmlReturn_t add_process(struct processes *list, const nvmlProcessInfo_t *info,
                                enum process_kind kind)
{
    struct process *more;

    for (unsigned int i = 0; i < list->count; i++)
        if (is_same(&list->items[i], info)) {
            list->items[i].kinds |= kind;
            return NVML_SUCCESS;
        }
    more = realloc(list->items, (list->count + 1) * sizeof(*more));
    if (!more)
        return NVML_ERROR_MEMORY;
    list->items = more;
    more[list->count++] = (struct process){ .pid = info->pid,
                                            .kinds = kind,
                                            .bytes = info->usedGpuMemory,
                                            .gi = info->gpuInstanceId,
                                            .ci = info->computeInstanceId };
    return NVML_SUCCESS;
}

static int by_pid(const void *one, const void *other)
{
    const struct process *a = one, *b = other;

    if (a->gi != b->gi)
        return a->gi < b->gi ? -1 : 1;
    return a->pid < b->pid ? -1 : a->pid > b->pid;
}

nvmlReturn_t processes_get(struct gpu *gpu, enum process_kind kinds, struct processes *list)
{
    const struct {
        enum process_kind kind;
        process_lister *lister;
    } sources[] = {
        { PROCESS_COMPUTE, api.DeviceGetComputeRunningProcesses_v3 },
        { PROCESS_GRAPHICS, api.DeviceGetGraphicsRunningProcesses_v3 },
        { PROCESS_MPS, api.DeviceGetMPSComputeRunningProcesses_v3 },
    };
    nvmlReturn_t first = NVML_SUCCESS;

    *list = (struct processes){ 0 };
    for (size_t s = 0; s < sizeof(sources) / sizeof(sources[0]); s++) {
        nvmlProcessInfo_t *items;
        unsigned int count;
        nvmlReturn_t result;

        if (!(kinds & sources[s].kind))
            continue;
        result = ask_processes(sources[s].lister, gpu->device, &items, &count);
        for (unsigned int i = 0; i < count && result == NVML_SUCCESS; i++)
            result = add_process(list, &items[i], sources[s].kind);
        free(items);
        if (s == 0)
            first = result;
    }
    if (list->count)
        qsort(list->items, list->count, sizeof(*list->items), by_pid);
    return first;
}

void processes_release(struct processes *list)
{
    free(list->items);
    *list = (struct processes){ 0 };
}

const char *process_type(const struct process *process)
{
    static const char *const types[] = { "", "C", "G", "C+G", "M", "M+C", "M+G", "M+C+G" };

    return types[process->kinds & PROCESS_ANY];
}

void process_name(unsigned int pid, char *name, size_t size)
{
    nvmlReturn_t result = ASK(SystemGetProcessName, pid, name, (unsigned int)size);

    name[size - 1] = '\0';
    if (result != NVML_SUCCESS && result != NVML_ERROR_INSUFFICIENT_SIZE)
        snprintf(name, size, "[%s]", api_error(result));
    text_make_printable(name);
}

const char *process_command(const char *name)
{
    const char *slash = *name == '[' ? NULL : strrchr(name, '/');

    return slash && slash[1] ? slash + 1 : name;
}

nvmlReturn_t accounted_pids(struct gpu *gpu, unsigned int **pids, unsigned int *count)
{
    nvmlReturn_t result;

    *pids = NULL;
    *count = 0;
    result = ASK(DeviceGetAccountingBufferSize, gpu->device, count);
    if (result != NVML_SUCCESS)
        return result;
    *pids = calloc(*count ? *count : 1, sizeof(**pids));
    if (!*pids)
        return NVML_ERROR_MEMORY;
    result = ASK(DeviceGetAccountingPids, gpu->device, count, *pids);
    if (result != NVML_SUCCESS)
        *count = 0;
    return result;
}

/* --- utilization -------------------------------------------------------------------------------- */

static struct usage *room_for(struct usages *list, unsigned int count)
{
    usages_release(list);
    list->items = calloc(count ? count : 1, sizeof(*list->items));
    return list->items;
}

/* The newer function, which also knows the JPEG and optical flow engines. */
static nvmlReturn_t ask_infos(struct gpu *gpu, unsigned long long after_us, struct usages *list)
{
    nvmlProcessesUtilizationInfo_v1_t info = { .version = VERSION_OF(info, 1),
                                               .lastSeenTimeStamp = after_us };
    nvmlReturn_t result = ASK(DeviceGetProcessesUtilizationInfo, gpu->device, &info);

    if (result != NVML_ERROR_INSUFFICIENT_SIZE)
        return result;
    info.procUtilArray = calloc(info.processSamplesCount + 1, sizeof(*info.procUtilArray));
    if (!info.procUtilArray || !room_for(list, info.processSamplesCount)) {
        free(info.procUtilArray);
        return NVML_ERROR_MEMORY;
    }
    result = ASK(DeviceGetProcessesUtilizationInfo, gpu->device, &info);
    for (unsigned int i = 0; result == NVML_SUCCESS && i < info.processSamplesCount; i++) {
        const nvmlProcessUtilizationInfo_v1_t *p = &info.procUtilArray[i];

        list->items[list->count++] = (struct usage){ p->pid,     p->timeStamp, p->smUtil,
                                                     p->memUtil, p->encUtil,   p->decUtil,
                                                     p->jpgUtil, p->ofaUtil };
    }
    free(info.procUtilArray);
    return result;
}

static nvmlReturn_t ask_samples(struct gpu *gpu, unsigned long long after_us, struct usages *list)
{
    nvmlProcessUtilizationSample_t *samples;
    unsigned int count = 0;
    nvmlReturn_t result = ASK(DeviceGetProcessUtilization, gpu->device, NULL, &count, after_us);

    if (result != NVML_ERROR_INSUFFICIENT_SIZE)
        return result;
    samples = calloc(count + 1, sizeof(*samples));
    if (!samples || !room_for(list, count)) {
        free(samples);
        return NVML_ERROR_MEMORY;
    }
    result = ASK(DeviceGetProcessUtilization, gpu->device, samples, &count, after_us);
    for (unsigned int i = 0; result == NVML_SUCCESS && i < count; i++)
        list->items[list->count++] = (struct usage){ samples[i].pid,
                                                     samples[i].timeStamp,
                                                     samples[i].smUtil,
                                                     samples[i].memUtil,
                                                     samples[i].encUtil,
                                                     samples[i].decUtil,
                                                     ~0u,
                                                     ~0u };
    free(samples);
    return result;
}

nvmlReturn_t usages_get(struct gpu *gpu, unsigned long long after_us, struct usages *list)
{
    nvmlReturn_t result;

    *list = (struct usages){ 0 };
    result = ask_infos(gpu, after_us, list);
    if (result == NVML_ERROR_FUNCTION_NOT_FOUND || result == NVML_ERROR_NOT_SUPPORTED ||
        result == NVML_ERROR_ARGUMENT_VERSION_MISMATCH)
        result = ask_samples(gpu, after_us, list);
    return result;
}

void usages_release(struct usages *list)
{
    free(list->items);
    *list = (struct usages){ 0 };
}
