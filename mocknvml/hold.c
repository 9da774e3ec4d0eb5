/*
 * Hold: the page that a thread's answers come from for a while. See hold.h.
 *
 * A thread that holds nothing pays for one look at a thread-local pointer.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mocknvml/hold.h"

#include <stdlib.h>

#include "mocknvml/library.h"

struct held {
    nvmlDevice_t device; /* that `gpu` is of; NULL: nothing was read yet */
    unsigned long long mount;
    struct reader_gpu gpu;
};

static _Thread_local struct held *held; /* owned; NULL: this thread does not hold */

bool hold_take(nvmlDevice_t device, struct reader_gpu *gpu)
{
    if (!held || held->device != device || held->mount != library_mount())
        return false;
    *gpu = held->gpu;
    return true;
}

void hold_keep(nvmlDevice_t device, const struct reader_gpu *gpu)
{
    if (!held)
        return;
    held->device = device;
    held->mount = library_mount();
    held->gpu = *gpu;
}

void hold_drop(void)
{
    if (held)
        held->device = NULL;
}

/* Without memory nothing is held, and each question looks anew. */
static void begin(void)
{
    if (held)
        hold_drop();
    else
        held = calloc(1, sizeof(*held));
}

static void end(void)
{
    free(held);
    held = NULL;
}

const struct hold_table hold_table = { sizeof(hold_table), begin, end };
