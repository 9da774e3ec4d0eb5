/*
 * Handles: see handles.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mocknvml/handles.h"

#include "mocknvml/library.h"
#include "mocknvml/lock.h"

void handle_add(struct handle **list, struct handle *handle)
{
    lock_alone();
    handle->next = *list;
    *list = handle;
    unlock_alone();
}

bool handle_remove(struct handle **list, const void *handle)
{
    struct handle **at = list;
    bool found;

    lock_alone();
    while (*at && *at != handle)
        at = &(*at)->next;
    found = *at != NULL;
    if (found)
        *at = (*at)->next;
    unlock_alone();
    return found;
}

nvmlReturn_t handle_check(struct handle *const *list, const void *handle)
{
    nvmlReturn_t result = library_check();
    const struct handle *found;
    unsigned int place;

    if (result != NVML_SUCCESS)
        return result;
    place = lock_shared();
    for (found = *list; found && found != handle; found = found->next)
        ;
    unlock_shared(place);
    return found ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}
