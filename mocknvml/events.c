/*
 * Events: waiting for what happens to GPUs, and for GPUs that come and go.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mocknvml/handles.h"
#include "mocknvml/stream.h"

enum { WATCHES_MAX = 4096 };

/* A device that a set watches, and for what. */
struct watch {
    nvmlDevice_t device;
    unsigned long long types;
};

struct nvmlEventSet_st {
    struct handle handle;
    struct stream stream;
    struct watch *watches; /* owned; with the stream's lock */
    int watch_count;
};

struct nvmlSystemEventSet_st {
    struct handle handle;
    struct stream stream;
    unsigned long long types; /* with the stream's lock */
};

static struct handle *sets, *system_sets; /* all there are */

void events_after_fork(void)
{
    for (struct handle *h = sets; h; h = h->next)
        stream_after_fork(&((struct nvmlEventSet_st *)h)->stream);
    for (struct handle *h = system_sets; h; h = h->next)
        stream_after_fork(&((struct nvmlSystemEventSet_st *)h)->stream);
}

/* Makes a set with its stream and puts it in its list. */
static nvmlReturn_t make_set(struct handle **list, size_t size, size_t stream_offset, void **made)
{
    char *set = calloc(1, size);
    nvmlReturn_t result = set ? stream_open((struct stream *)(set + stream_offset))
                              : NVML_ERROR_MEMORY;

    if (result != NVML_SUCCESS) {
        free(set);
        return result;
    }
    handle_add(list, (struct handle *)set);
    *made = set;
    return NVML_SUCCESS;
}

/* --- what happened to a GPU ------------------------------------------------------------------ */

struct event {
    nvmlEventSet_t set;
    nvmlDevice_t device;
    unsigned long long type, data;
};

/* Kinds of lines that are events of NVML's, and the word that holds their data. */
static const struct {
    const char *kind, *data;
    unsigned long long type;
} kinds[] = {
    { "xid", " xid=", nvmlEventTypeXidCriticalError },
    { "ecc_sbe", " count=", nvmlEventTypeSingleBitEccError },
    { "ecc_dbe", " count=", nvmlEventTypeDoubleBitEccError },
    { "pstate", " to=", nvmlEventTypePState },
    { "clocks", " to=", nvmlEventTypeClock },
    { "page_retired", " count=", nvmlEventTypeDramRetirementEvent },
    { "row_remap", " count=", nvmlEventTypeDramRetirementEvent },
    { "lost", " xid=", nvmlEventTypeGpuUnavailableError },
};

/* 17 12.300 xid gpu=0 pci=0000:06:00.0 xid=79 message="…" */
static bool parse_event(const char *line, struct event *e)
{
    char kind[32];
    const char *data;
    int gpu;

    if (sscanf(line, "%*s %*s %31s gpu=%d", kind, &gpu) != 2)
        return false;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (!strcmp(kind, kinds[i].kind)) {
            data = strstr(line, kinds[i].data);
            e->type = kinds[i].type;
            e->data = data ? strtoull(data + strlen(kinds[i].data), NULL, 10) : 0;
            e->device = library_device_at(gpu);
            return e->device != NULL;
        }
    return false;
}

static bool is_watched(void *argument, const char *line)
{
    struct event *e = argument;

    if (!parse_event(line, e))
        return false;
    for (int i = 0; i < e->set->watch_count; i++)
        if (e->set->watches[i].device == e->device && e->set->watches[i].types & e->type)
            return true;
    return false;
}

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
    nvmlReturn_t result = answer_check(set);
    void *made;

    if (result == NVML_SUCCESS)
        result = make_set(&sets, sizeof(**set), offsetof(struct nvmlEventSet_st, stream), &made);
    if (result == NVML_SUCCESS)
        *set = made;
    return result;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
    if (library_check() != NVML_SUCCESS || !handle_remove(&sets, set))
        return library_refuse(NVML_ERROR_INVALID_ARGUMENT);
    stream_close(&set->stream);
    free(set->watches);
    free(set);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types)
{
    struct reader_gpu gpu;
    nvmlReturn_t result = answer_check(types);
    int64_t ecc;

    if (result == NVML_SUCCESS)
        result = device_read_gpu(device, &gpu);
    if (result != NVML_SUCCESS)
        return result;
    *types = nvmlEventTypePState | nvmlEventTypeXidCriticalError | nvmlEventTypeClock |
             nvmlEventTypeGpuUnavailableError;
    if (sample_value(&gpu.sample, METRIC_ECC_MODE, &ecc) == 0)
        *types |= nvmlEventTypeSingleBitEccError | nvmlEventTypeDoubleBitEccError |
                  nvmlEventTypeDramRetirementEvent;
    return NVML_SUCCESS;
}

static nvmlReturn_t add_watch(nvmlEventSet_t set, struct watch watch)
{
    struct watch *watches;

    if (set->watch_count == WATCHES_MAX)
        return NVML_ERROR_INSUFFICIENT_RESOURCES;
    watches = realloc(set->watches, (size_t)(set->watch_count + 1) * sizeof(*watches));
    if (!watches)
        return NVML_ERROR_MEMORY;
    set->watches = watches;
    watches[set->watch_count++] = watch;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types,
                                      nvmlEventSet_t set)
{
    unsigned long long supported;
    nvmlReturn_t result = handle_check(&sets, set);

    if (result == NVML_SUCCESS)
        result = nvmlDeviceGetSupportedEventTypes(device, &supported);
    if (result != NVML_SUCCESS)
        return result;
    if (types & ~supported)
        return NVML_ERROR_NOT_SUPPORTED;
    pthread_mutex_lock(&set->stream.lock);
    result = add_watch(set, (struct watch){ device, types });
    pthread_mutex_unlock(&set->stream.lock);
    return result;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms)
{
    struct event e = { .set = set };
    nvmlReturn_t result = answer_check(data);

    if (result == NVML_SUCCESS)
        result = handle_check(&sets, set);
    if (result == NVML_SUCCESS)
        result = stream_wait(&set->stream, timeout_ms, is_watched, &e);
    if (result == NVML_SUCCESS)
        *data = (nvmlEventData_t){ .device = e.device,
                                   .eventType = e.type,
                                   .eventData = e.data,
                                   .gpuInstanceId = 0xFFFFFFFF,
                                   .computeInstanceId = 0xFFFFFFFF };
    return result;
}

/* The first structure ended before the instances. */
nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms)
{
    nvmlEventData_t whole;
    nvmlReturn_t result = nvmlEventSetWait_v2(set, data ? &whole : NULL, timeout_ms);

    if (result == NVML_SUCCESS)
        memcpy(data, &whole, offsetof(nvmlEventData_t, gpuInstanceId));
    return result;
}

/* --- GPUs that come and go ------------------------------------------------------------------- */

struct system_event {
    nvmlSystemEventSet_t set;
    nvmlSystemEventData_v1_t data;
};

/* A GPU that fell off the bus is not bound any more; one that was recovered or added is. */
static const struct {
    const char *kind;
    unsigned long long type;
} system_kinds[] = {
    { "lost", nvmlSystemEventTypeGpuDriverUnbind },
    { "gpu_removed", nvmlSystemEventTypeGpuDriverUnbind },
    { "recovered", nvmlSystemEventTypeGpuDriverBind },
    { "gpu_added", nvmlSystemEventTypeGpuDriverBind },
};

/* The number of a GPU here is made of its address, as that of its board. */
static bool is_system_event(void *argument, const char *line)
{
    struct system_event *e = argument;
    const char *pci = strstr(line, " pci=");
    unsigned int domain, bus, slot;
    char kind[32];

    if (!pci || sscanf(line, "%*s %*s %31s", kind) != 1 ||
        sscanf(pci, " pci=%x:%x:%x", &domain, &bus, &slot) != 3)
        return false;
    for (size_t i = 0; i < sizeof(system_kinds) / sizeof(system_kinds[0]); i++)
        if (!strcmp(kind, system_kinds[i].kind) && e->set->types & system_kinds[i].type) {
            e->data.eventType = system_kinds[i].type;
            e->data.gpuId = domain << 16 | bus << 8 | slot << 3;
            return true;
        }
    return false;
}

nvmlReturn_t nvmlSystemEventSetCreate(nvmlSystemEventSetCreateRequest_v1_t *request)
{
    nvmlReturn_t result = STRUCT_CHECK(request, 1);
    void *made;

    if (result == NVML_SUCCESS)
        result = make_set(&system_sets, sizeof(*request->set),
                          offsetof(struct nvmlSystemEventSet_st, stream), &made);
    if (result == NVML_SUCCESS)
        request->set = made;
    return result;
}

nvmlReturn_t nvmlSystemEventSetFree(nvmlSystemEventSetFreeRequest_v1_t *request)
{
    nvmlReturn_t result = STRUCT_CHECK(request, 1);

    if (result != NVML_SUCCESS)
        return result;
    if (!handle_remove(&system_sets, request->set))
        return NVML_ERROR_INVALID_ARGUMENT;
    stream_close(&request->set->stream);
    free(request->set);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemRegisterEvents(nvmlSystemRegisterEventRequest_v1_t *request)
{
    nvmlReturn_t result = STRUCT_CHECK(request, 1);

    if (result == NVML_SUCCESS)
        result = handle_check(&system_sets, request->set);
    if (result != NVML_SUCCESS)
        return result;
    if (request->eventTypes &
        ~(nvmlSystemEventTypeGpuDriverUnbind | nvmlSystemEventTypeGpuDriverBind))
        return NVML_ERROR_NOT_SUPPORTED;
    pthread_mutex_lock(&request->set->stream.lock);
    request->set->types |= request->eventTypes;
    pthread_mutex_unlock(&request->set->stream.lock);
    return NVML_SUCCESS;
}

/* Waits for the first, then takes what has come besides. */
nvmlReturn_t nvmlSystemEventSetWait(nvmlSystemEventSetWaitRequest_v1_t *request)
{
    struct system_event e = { 0 };
    unsigned int timeout_ms;
    nvmlReturn_t result = STRUCT_CHECK(request, 1);

    if (result == NVML_SUCCESS)
        result = handle_check(&system_sets, request->set);
    if (result != NVML_SUCCESS)
        return result;
    if (!request->data || !request->dataSize)
        return NVML_ERROR_INVALID_ARGUMENT;
    e.set = request->set;
    timeout_ms = request->timeoutms;
    for (request->numEvent = 0; request->numEvent < request->dataSize; timeout_ms = 0) {
        result = stream_wait(&request->set->stream, timeout_ms, is_system_event, &e);
        if (result != NVML_SUCCESS)
            break;
        request->data[request->numEvent++] = e.data;
    }
    return request->numEvent ? NVML_SUCCESS : result;
}
