/*
 * Nvml_calls: calling any function of the library by its row, with arguments made by their kinds.
 *
 * The rows come from nvml_calls.sh. Every argument of the interface is a number or a pointer, so one way of calling
 * serves all of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TESTS_NVML_CALLS_H
#define TESTS_NVML_CALLS_H

#include <stdint.h>
#include <string.h>

#include "mocknvml/nvml.h"

enum { ARGUMENTS = 6, ROOM_BYTES = 65536 };

struct call {
    const char *name, *kinds;
    unsigned int version; /* of the structure it takes; 0: it takes none */
};

static const struct call calls[] = {
#define ROW(name, kinds, version) { #name, kinds, version },
#include "nvml_calls.inc"
#undef ROW
};

enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

/* Memory for the pointers of a call, each with room for the largest structure. */
static uint64_t rooms[ARGUMENTS][ROOM_BYTES / 8];

static inline nvmlReturn_t invoke(void *function, const uintptr_t *a)
{
    typedef nvmlReturn_t any(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

    return ((any *)function)(a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* What handles a call may use. */
struct handles {
    nvmlDevice_t device;
    nvmlGpuInstance_t gpu_instance;
    nvmlComputeInstance_t compute_instance;
    nvmlEventSet_t events;
    nvmlGpmSample_t sample;
};

/* Empty structures of the right version, the handles, and 0 for every number. */
static inline void make_arguments(const struct call *call, const struct handles *h, uintptr_t *a)
{
    memset(rooms, 0, sizeof(rooms));
    memset(a, 0, ARGUMENTS * sizeof(*a));
    for (int i = 0; call->kinds[i]; i++)
        switch (call->kinds[i]) {
        case 'd':
            a[i] = (uintptr_t)h->device;
            break;
        case 'g':
            a[i] = (uintptr_t)h->gpu_instance;
            break;
        case 'c':
            a[i] = (uintptr_t)h->compute_instance;
            break;
        case 'e':
            a[i] = (uintptr_t)h->events;
            break;
        case 'm':
            a[i] = (uintptr_t)h->sample;
            break;
        case 'v':
            memcpy(rooms[i], &call->version, sizeof(call->version));
            a[i] = (uintptr_t)rooms[i];
            break;
        case 'p':
        case 't':
            a[i] = (uintptr_t)rooms[i];
            break;
        }
}

#endif
