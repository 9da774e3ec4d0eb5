/*
 * Events: waiting for what happens to GPUs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mocknvml/library.h"

enum { WATCHES_MAX = 4096, LINE_BYTES = 512 };

/* A device that a set watches, and for what. */
struct watch {
    nvmlDevice_t device;
    unsigned long long types;
};

/*
 * A set reads the mount's stream of events from where it stood when the set was made. Reads name their
 * offset: a child that inherits the set does not move its parent's.
 */
struct nvmlEventSet_st {
    struct nvmlEventSet_st *next;
    int fd; /* of `events`, -1 when it was lost */
    long long offset;
    unsigned long long seen; /* number of the last event that was looked at */
    struct watch *watches;   /* owned */
    int watch_count;
    char text[4096]; /* read and not yet looked at */
    size_t length;
};

static pthread_mutex_t sets_lock = PTHREAD_MUTEX_INITIALIZER;
static struct nvmlEventSet_st *sets; /* all there are */

static bool knows_set(nvmlEventSet_t set)
{
    struct nvmlEventSet_st *s;

    pthread_mutex_lock(&sets_lock);
    for (s = sets; s && s != set; s = s->next)
        ;
    pthread_mutex_unlock(&sets_lock);
    return s != NULL;
}

static nvmlReturn_t check_set(nvmlEventSet_t set)
{
    nvmlReturn_t result = library_check();

    return result == NVML_SUCCESS && !knows_set(set) ? NVML_ERROR_INVALID_ARGUMENT : result;
}

/* --- the stream ------------------------------------------------------------------------------ */

struct event {
    unsigned long long number;
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
};

/* 17 12.300 xid gpu=0 pci=0000:06:00.0 xid=79 message="…" */
static bool parse_event(const char *line, struct event *e)
{
    char kind[32];
    const char *data;
    int gpu;

    *e = (struct event){ 0 };
    if (sscanf(line, "%llu %*s %31s gpu=%d", &e->number, kind, &gpu) != 3)
        return false;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (!strcmp(kind, kinds[i].kind)) {
            data = strstr(line, kinds[i].data);
            e->type = kinds[i].type;
            e->data = data ? strtoull(data + strlen(kinds[i].data), NULL, 10) : 0;
            e->device = library_device_at(gpu);
        }
    return e->device != NULL;
}

static bool is_watched(nvmlEventSet_t set, const struct event *e)
{
    for (int i = 0; i < set->watch_count; i++)
        if (set->watches[i].device == e->device && set->watches[i].types & e->type)
            return true;
    return false;
}

/* Takes the next whole line out of the text; false when there is none. */
static bool take_line(nvmlEventSet_t set, char *line, size_t size)
{
    char *end = memchr(set->text, '\n', set->length);
    size_t used;

    if (!end)
        return false;
    used = (size_t)(end - set->text) + 1;
    snprintf(line, size, "%.*s", (int)(used - 1), set->text);
    memmove(set->text, set->text + used, set->length - used);
    set->length -= used;
    return true;
}

/* More text. 0, -EAGAIN when there is none yet, or -errno. */
static int fill(nvmlEventSet_t set)
{
    ssize_t n;

    if (set->length == sizeof(set->text))
        set->length = 0; /* no line is that long */
    n = pread(set->fd, set->text + set->length, sizeof(set->text) - set->length, set->offset);
    if (n < 0 &&
        errno == EPIPE) { /* the log began anew; what is known already is passed over by number */
        set->offset = 0;
        set->length = 0;
        return 0;
    }
    if (n < 0)
        return errno == EINTR ? 0 : -errno;
    if (n == 0)
        return -EAGAIN;
    set->length += (size_t)n;
    set->offset += n;
    return 0;
}

/* The next event that the set asked for; false when all that came was looked at. */
static bool next_event(nvmlEventSet_t set, struct event *e)
{
    char line[LINE_BYTES];

    while (take_line(set, line, sizeof(line))) {
        bool known = parse_event(line, e) && e->number > set->seen;

        if (e->number > set->seen)
            set->seen = e->number;
        if (known && is_watched(set, e))
            return true;
    }
    return false;
}

/* Opens the stream and passes over what is in it. */
static nvmlReturn_t start(nvmlEventSet_t set)
{
    struct event e;
    nvmlReturn_t result = root_open("events", &set->fd);

    if (result != NVML_SUCCESS) {
        set->fd = -1;
        return result;
    }
    set->offset = 0;
    set->length = 0;
    while (fill(set) == 0)
        while (next_event(set, &e))
            ;
    return NVML_SUCCESS;
}

/* --- sets ------------------------------------------------------------------------------------ */

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
    struct nvmlEventSet_st *made;
    nvmlReturn_t result = library_check();

    if (result != NVML_SUCCESS)
        return result;
    if (!set)
        return NVML_ERROR_INVALID_ARGUMENT;
    made = calloc(1, sizeof(*made));
    if (!made)
        return NVML_ERROR_MEMORY;
    result = start(made);
    if (result != NVML_SUCCESS) {
        free(made);
        return result;
    }
    pthread_mutex_lock(&sets_lock);
    made->next = sets;
    sets = made;
    pthread_mutex_unlock(&sets_lock);
    *set = made;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
    nvmlReturn_t result = check_set(set);

    if (result != NVML_SUCCESS)
        return result;
    pthread_mutex_lock(&sets_lock);
    for (struct nvmlEventSet_st **s = &sets; *s; s = &(*s)->next)
        if (*s == set) {
            *s = set->next;
            break;
        }
    pthread_mutex_unlock(&sets_lock);
    if (set->fd >= 0)
        close(set->fd);
    free(set->watches);
    free(set);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types)
{
    struct reader_gpu gpu;
    nvmlReturn_t result = device_read_gpu(device, &gpu);
    int64_t ecc;

    if (result != NVML_SUCCESS)
        return result;
    if (!types)
        return NVML_ERROR_INVALID_ARGUMENT;
    *types = nvmlEventTypePState | nvmlEventTypeXidCriticalError | nvmlEventTypeClock;
    if (sample_value(&gpu.sample, METRIC_ECC_MODE, &ecc) == 0)
        *types |= nvmlEventTypeSingleBitEccError | nvmlEventTypeDoubleBitEccError;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types,
                                      nvmlEventSet_t set)
{
    unsigned long long supported;
    struct watch *watches;
    nvmlReturn_t result = check_set(set);

    if (result == NVML_SUCCESS)
        result = nvmlDeviceGetSupportedEventTypes(device, &supported);
    if (result != NVML_SUCCESS)
        return result;
    if (types & ~supported)
        return NVML_ERROR_NOT_SUPPORTED;
    if (set->watch_count == WATCHES_MAX)
        return NVML_ERROR_INSUFFICIENT_RESOURCES;
    watches = realloc(set->watches, (size_t)(set->watch_count + 1) * sizeof(*watches));
    if (!watches)
        return NVML_ERROR_MEMORY;
    set->watches = watches;
    watches[set->watch_count++] = (struct watch){ device, types };
    return NVML_SUCCESS;
}

/* --- waiting --------------------------------------------------------------------------------- */

static int64_t monotonic_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * INT64_C(1000) + ts.tv_nsec / 1000000;
}

/* Until there is an event, or -ETIMEDOUT, or -errno. */
static int wait_event(nvmlEventSet_t set, int64_t until_ms, struct event *e)
{
    for (;;) {
        struct pollfd poll_fd = { .fd = set->fd, .events = POLLIN };
        int64_t left = until_ms - monotonic_ms();
        int result;

        if (next_event(set, e))
            return 0;
        result = fill(set);
        if (result == 0)
            continue;
        if (result != -EAGAIN)
            return result;
        if (left <= 0)
            return -ETIMEDOUT;
        if (poll(&poll_fd, 1, left < 1000 ? (int)left : 1000) < 0 && errno != EINTR)
            return -errno;
    }
}

static nvmlReturn_t wait_set(nvmlEventSet_t set, unsigned int timeout_ms, struct event *e)
{
    int64_t until = monotonic_ms() + timeout_ms;
    nvmlReturn_t result = check_set(set);
    int error;

    if (result != NVML_SUCCESS)
        return result;
    if (set->fd < 0 && (result = start(set)) != NVML_SUCCESS)
        return result;
    error = wait_event(set, until, e);
    if (error == 0 || error == -ETIMEDOUT)
        return nvml_error(error);
    close(set->fd); /* the daemon went away: the next wait looks for the one that is there then */
    set->fd = -1;
    return nvml_error(error == -ENODEV ? -ENOTCONN : error);
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms)
{
    struct event e;
    nvmlReturn_t result = data ? wait_set(set, timeout_ms, &e) : check_set(set);

    if (result != NVML_SUCCESS)
        return result;
    if (!data)
        return NVML_ERROR_INVALID_ARGUMENT;
    *data = (nvmlEventData_t){ .device = e.device,
                               .eventType = e.type,
                               .eventData = e.data,
                               .gpuInstanceId = 0xFFFFFFFF,
                               .computeInstanceId = 0xFFFFFFFF };
    return NVML_SUCCESS;
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
