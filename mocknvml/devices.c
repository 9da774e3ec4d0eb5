/*
 * Devices: the handles that are given out, and the list of GPUs that have one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mocknvml/lock.h"
#include "mocknvml/state.h"
#include "mocknvml/visible.h"

/* --- listing --------------------------------------------------------------------------------- */

int listing_read(struct listing *listing, struct reader *reader, const char *list)
{
    struct reader_node node;
    struct reader_gpu gpu;
    int result = reader_node(reader, &node);

    if (result == 0)
        listing->items = calloc((size_t)node.gpu_count + 1, sizeof(*listing->items));
    if (result == 0 && !listing->items)
        return -ENOMEM;
    for (int i = 0; result == 0 && i < node.gpu_count; i++) {
        struct listed *item = &listing->items[listing->count];

        result = reader_gpu(reader, i, &gpu);
        if (result < 0 || !visible_gpu(reader, list, i, gpu.uuid))
            continue;
        item->index = i;
        memcpy(item->uuid, gpu.uuid, sizeof(item->uuid));
        listing->count++;
    }
    return result;
}

void listing_release(struct listing *listing)
{
    free(listing->items);
}

/* The handle of that UUID among the first `known`, or a new one. NULL: there is no room. */
static nvmlDevice_t intern(const char *uuid, int known, nvmlDevice_t parent, int gi, int ci)
{
    nvmlDevice_t device;

    for (int i = 0; i < known; i++)
        if (!strncmp(library.devices[i].uuid, uuid, LENGTH_UUID))
            return &library.devices[i];
    if (library.device_count == DEVICES_MAX)
        return NULL;
    device = &library.devices[library.device_count++];
    *device = (struct nvmlDevice_st){ .parent = parent, .gi = gi, .ci = ci };
    snprintf(device->uuid, sizeof(device->uuid), "%.*s", LENGTH_UUID - 1, uuid);
    return device;
}

int listing_install(const struct listing *listing)
{
    int known = library.device_count;

    library.visible_count = 0;
    for (int i = 0; i < listing->count; i++) {
        nvmlDevice_t device = intern(listing->items[i].uuid, known, NULL, -1, -1);

        if (!device)
            return -ENOMEM;
        atomic_store(&device->index, listing->items[i].index);
        device->number = (int)library.visible_count;
        library.visible[library.visible_count++] = device;
    }
    return 0;
}

/* --- handles --------------------------------------------------------------------------------- */

/* Whether the pointer is entry 0 … count-1 of the array at `base`. */
static bool is_entry(const void *pointer, const void *base, size_t size, int count)
{
    uintptr_t at = (uintptr_t)pointer, start = (uintptr_t)base;

    return at >= start && at < start + (size_t)count * size && (at - start) % size == 0;
}

bool devices_know(nvmlDevice_t device)
{
    return is_entry(device, library.devices, sizeof(library.devices[0]), library.device_count);
}

bool library_knows_gpu_instance(nvmlGpuInstance_t instance)
{
    unsigned int place = lock_shared();
    bool known = is_entry(instance, library.gpu_instances, sizeof(library.gpu_instances[0]),
                          library.gpu_instance_count);

    unlock_shared(place);
    return known;
}

bool library_knows_compute_instance(nvmlComputeInstance_t instance)
{
    unsigned int place = lock_shared();
    bool known = is_entry(instance, library.compute_instances, sizeof(library.compute_instances[0]),
                          library.compute_instance_count);

    unlock_shared(place);
    return known;
}

nvmlReturn_t library_count(unsigned int *count)
{
    nvmlReturn_t result = answer_check(count);
    unsigned int place;

    if (result != NVML_SUCCESS)
        return result;
    place = lock_shared();
    *count = library.visible_count;
    unlock_shared(place);
    return NVML_SUCCESS;
}

nvmlDevice_t library_visible(unsigned int number)
{
    unsigned int place = lock_shared();
    nvmlDevice_t found = number < library.visible_count ? library.visible[number] : NULL;

    unlock_shared(place);
    return found;
}

nvmlReturn_t library_device(unsigned int number, nvmlDevice_t *device)
{
    nvmlReturn_t result = answer_check(device);
    nvmlDevice_t found;

    if (result != NVML_SUCCESS)
        return result;
    found = library_visible(number);
    if (!found)
        return NVML_ERROR_INVALID_ARGUMENT;
    result = device_check(found);
    if (result == NVML_SUCCESS)
        *device = found;
    return result;
}

nvmlDevice_t library_device_at(int index)
{
    unsigned int place = lock_shared();
    nvmlDevice_t found = NULL;

    for (unsigned int i = 0; i < library.visible_count && !found; i++)
        if (atomic_load(&library.visible[i]->index) == index)
            found = library.visible[i];
    unlock_shared(place);
    return found;
}

bool library_sees_mig(nvmlDevice_t parent, const struct mig_name *name)
{
    unsigned int place = lock_shared();
    bool seen = visible_mig(library.reader, library.visible_list, atomic_load(&parent->index),
                            parent->uuid, name);

    unlock_shared(place);
    return seen;
}

nvmlDevice_t library_mig_device(nvmlDevice_t parent, int gi, int ci, const char *uuid)
{
    nvmlDevice_t device;

    lock_alone();
    device = intern(uuid, library.device_count, parent, gi, ci);
    unlock_alone();
    return device;
}

nvmlGpuInstance_t library_gpu_instance(nvmlDevice_t device, int gi)
{
    nvmlGpuInstance_t found = NULL;

    lock_alone();
    for (int i = 0; i < library.gpu_instance_count && !found; i++)
        if (library.gpu_instances[i].device == device && library.gpu_instances[i].gi == gi)
            found = &library.gpu_instances[i];
    if (!found && library.gpu_instance_count < INSTANCES_MAX) {
        found = &library.gpu_instances[library.gpu_instance_count++];
        *found = (struct nvmlGpuInstance_st){ device, gi };
    }
    unlock_alone();
    return found;
}

nvmlComputeInstance_t library_compute_instance(nvmlGpuInstance_t instance, int ci)
{
    nvmlComputeInstance_t found = NULL;

    lock_alone();
    for (int i = 0; i < library.compute_instance_count && !found; i++)
        if (library.compute_instances[i].instance == instance &&
            library.compute_instances[i].ci == ci)
            found = &library.compute_instances[i];
    if (!found && library.compute_instance_count < INSTANCES_MAX) {
        found = &library.compute_instances[library.compute_instance_count++];
        *found = (struct nvmlComputeInstance_st){ instance, ci };
    }
    unlock_alone();
    return found;
}
