/*
 * MIG instances: GPU instances and the compute instances in them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <string.h>

#include "mocknvml/mig.h"

/* --- GPU instances --------------------------------------------------------------------------- */

nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned int id,
                                          nvmlGpuInstance_t *instance)
{
    struct mig_instance i;
    nvmlReturn_t result = answer_check(instance);

    if (result == NVML_SUCCESS)
        result = mig_find_instance(device, (int)id, -1, &i);
    if (result != NVML_SUCCESS)
        return result;
    *instance = library_gpu_instance(device->parent ? device->parent : device, (int)id);
    return *instance ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t device, unsigned int id,
                                       nvmlGpuInstance_t *instances, unsigned int *count)
{
    struct mig_profile p;
    struct table t;
    struct mig_instance i;
    struct list list = { instances, sizeof(*instances), ~0u, 0 };
    nvmlReturn_t result = arguments_check(instances && count);

    if (result == NVML_SUCCESS)
        result = mig_find_profile_id(device, id, &p);
    if (result == NVML_SUCCESS)
        result = mig_read_instances(device, &t);
    if (result != NVML_SUCCESS)
        return result;
    while (mig_next_instance(&t, &i))
        if (i.ci < 0 && !strcmp(i.profile, p.name)) {
            nvmlGpuInstance_t found = library_gpu_instance(device, i.gi);

            list_add(&list, &found);
        }
    *count = list.used;
    return NVML_SUCCESS;
}

static nvmlReturn_t check_instance(nvmlGpuInstance_t instance, struct mig_instance *i)
{
    nvmlReturn_t result = library_check();

    if (result != NVML_SUCCESS)
        return result;
    if (!library_knows_gpu_instance(instance))
        return NVML_ERROR_INVALID_ARGUMENT;
    return mig_find_instance(instance->device, instance->gi, -1, i);
}

nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t instance, nvmlGpuInstanceInfo_t *info)
{
    struct mig_instance i;
    struct mig_profile p;
    nvmlReturn_t result = answer_check(info);

    if (result == NVML_SUCCESS)
        result = check_instance(instance, &i);
    if (result == NVML_SUCCESS)
        result = mig_find_profile(instance->device, i.profile, &p);
    if (result != NVML_SUCCESS)
        return result;
    *info = (nvmlGpuInstanceInfo_t){
        instance->device, (unsigned int)i.gi, p.id, { i.start, p.size }
    };
    return NVML_SUCCESS;
}

/* Writes the command and finds what is new: the instance that was not there before. */
static nvmlReturn_t create(nvmlDevice_t device, const char *command, int within,
                           struct mig_instance *made)
{
    struct table before, after;
    struct mig_instance i, old;
    nvmlReturn_t result = mig_read_instances(device, &before);

    if (result == NVML_SUCCESS)
        result = device_write(device, "mig/instances", command);
    if (result == NVML_SUCCESS)
        result = mig_read_instances(device, &after);
    while (result == NVML_SUCCESS && mig_next_instance(&after, &i)) {
        struct table again = before;
        bool known = false;

        again.rest = again.text;
        while (mig_next_instance(&again, &old))
            known = known || (old.gi == i.gi && old.ci == i.ci);
        if (!known && (within < 0 ? i.ci < 0 : i.gi == within && i.ci >= 0)) {
            *made = i;
            return NVML_SUCCESS;
        }
    }
    return result == NVML_SUCCESS ? NVML_ERROR_UNKNOWN : result;
}

static nvmlReturn_t create_gpu_instance(nvmlDevice_t device, unsigned int id, int start,
                                        nvmlGpuInstance_t *instance)
{
    struct mig_instance made;
    struct mig_profile p;
    char command[64], at[16] = "";
    nvmlReturn_t result = answer_check(instance);

    if (result == NVML_SUCCESS)
        result = mig_find_profile_id(device, id, &p);
    if (result != NVML_SUCCESS)
        return result;
    if (start >= 0)
        snprintf(at, sizeof(at), " at %d", start);
    snprintf(command, sizeof(command), "create-gi %s%s", p.name, at);
    result = create(device, command, -1, &made);
    if (result != NVML_SUCCESS)
        return result;
    *instance = library_gpu_instance(device, made.gi);
    return *instance ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

nvmlReturn_t nvmlDeviceCreateGpuInstance(nvmlDevice_t device, unsigned int id,
                                         nvmlGpuInstance_t *instance)
{
    return create_gpu_instance(device, id, -1, instance);
}

nvmlReturn_t nvmlDeviceCreateGpuInstanceWithPlacement(nvmlDevice_t device, unsigned int id,
                                                      const nvmlGpuInstancePlacement_t *placement,
                                                      nvmlGpuInstance_t *instance)
{
    if (!placement)
        return library_refuse(NVML_ERROR_INVALID_ARGUMENT);
    return create_gpu_instance(device, id, (int)placement->start, instance);
}

nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t instance)
{
    struct mig_instance i;
    struct table t;
    char command[32];
    nvmlReturn_t result = check_instance(instance, &i);

    if (result == NVML_SUCCESS)
        result = mig_read_instances(instance->device, &t);
    while (result == NVML_SUCCESS && mig_next_instance(&t, &i))
        if (i.gi == instance->gi && i.ci >= 0)
            return NVML_ERROR_IN_USE; /* its compute instances go first */
    if (result != NVML_SUCCESS)
        return result;
    snprintf(command, sizeof(command), "destroy %d", instance->gi);
    return device_write(instance->device, "mig/instances", command);
}

/* --- profiles of compute instances ----------------------------------------------------------- */

/* Slices by the number of the profile, which is its id as well; 0: there is none. */
static const unsigned int compute_slices[NVML_COMPUTE_INSTANCE_PROFILE_COUNT] = { 1, 2, 3, 4, 7,
                                                                                  8, 6, 0, 0 };

static unsigned int compute_profile(unsigned int slices)
{
    for (unsigned int n = 0; n < NVML_COMPUTE_INSTANCE_PROFILE_COUNT; n++)
        if (compute_slices[n] == slices)
            return n;
    return 0;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_t instance,
                                                          unsigned int number, unsigned int engine,
                                                          nvmlComputeInstanceProfileInfo_t *info)
{
    struct mig_instance i;
    struct mig_profile p;
    unsigned int slices;
    nvmlReturn_t result = answer_check(info);

    if (result == NVML_SUCCESS)
        result = check_instance(instance, &i);
    if (result == NVML_SUCCESS)
        result = mig_find_profile(instance->device, i.profile, &p);
    if (result != NVML_SUCCESS)
        return result;
    if (number >= NVML_COMPUTE_INSTANCE_PROFILE_COUNT || engine)
        return NVML_ERROR_INVALID_ARGUMENT;
    slices = compute_slices[number];
    if (!slices || slices > p.slices)
        return NVML_ERROR_NOT_SUPPORTED;
    *info = (nvmlComputeInstanceProfileInfo_t){
        number, slices,     p.slices / slices, p.multiprocessors * slices / p.slices,
        p.copy, p.decoders, p.encoders,        p.jpeg,
        p.ofa
    };
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfoV(
    nvmlGpuInstance_t instance, unsigned int number, unsigned int engine,
    nvmlComputeInstanceProfileInfo_v2_t *info)
{
    nvmlComputeInstanceProfileInfo_t plain;
    struct mig_instance i;
    char name[64];
    nvmlReturn_t result = STRUCT_CHECK(info, 2);

    if (result == NVML_SUCCESS)
        result = nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, number, engine, &plain);
    if (result == NVML_SUCCESS)
        result = check_instance(instance, &i);
    if (result != NVML_SUCCESS)
        return result;
    memcpy(&info->id, &plain, sizeof(plain));
    mig_compute_name(&i, plain.sliceCount, name, sizeof(name));
    snprintf(info->name, sizeof(info->name), "MIG %s", name);
    return NVML_SUCCESS;
}

/* How many compute slices the GPU instance has, and which of them no compute instance has: one bit each. */
static nvmlReturn_t free_slices(nvmlGpuInstance_t instance, unsigned int *slices,
                                unsigned int *mask)
{
    struct mig_instance i;
    struct table t;
    nvmlReturn_t result = check_instance(instance, &i);

    if (result != NVML_SUCCESS)
        return result;
    *slices = i.slices;
    *mask = (1u << i.slices) - 1;
    result = mig_read_instances(instance->device, &t);
    while (result == NVML_SUCCESS && mig_next_instance(&t, &i))
        if (i.gi == instance->gi && i.ci >= 0)
            *mask &= ~(((1u << i.slices) - 1) << i.start);
    return result;
}

/* The slices that a profile takes, if the GPU instance has as many. */
static nvmlReturn_t profile_slices(nvmlGpuInstance_t instance, unsigned int number,
                                   unsigned int *size, unsigned int *slices, unsigned int *mask)
{
    nvmlReturn_t result = free_slices(instance, slices, mask);

    if (result != NVML_SUCCESS)
        return result;
    if (number >= NVML_COMPUTE_INSTANCE_PROFILE_COUNT || !compute_slices[number])
        return NVML_ERROR_INVALID_ARGUMENT;
    *size = compute_slices[number];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceRemainingCapacity(nvmlGpuInstance_t instance,
                                                                unsigned int number,
                                                                unsigned int *count)
{
    unsigned int size, slices, mask;
    nvmlReturn_t result = answer_check(count);

    if (result == NVML_SUCCESS)
        result = profile_slices(instance, number, &size, &slices, &mask);
    if (result != NVML_SUCCESS)
        return result;
    *count = 0;
    for (unsigned int start = 0; start + size <= slices;) {
        bool fits = (mask >> start & ((1u << size) - 1)) == (1u << size) - 1;

        *count += fits;
        start += fits ? size : 1;
    }
    return NVML_SUCCESS;
}

/* Everywhere that it fits, whether somebody is there or not. */
nvmlReturn_t nvmlGpuInstanceGetComputeInstancePossiblePlacements(
    nvmlGpuInstance_t instance, unsigned int number, nvmlComputeInstancePlacement_t *placements,
    unsigned int *count)
{
    unsigned int size, slices, mask;
    nvmlReturn_t result = answer_check(count);
    struct list list = { placements, sizeof(*placements), ~0u, 0 };

    if (result == NVML_SUCCESS)
        result = profile_slices(instance, number, &size, &slices, &mask);
    if (result != NVML_SUCCESS)
        return result;
    if (size > slices)
        return NVML_ERROR_NOT_SUPPORTED;
    for (unsigned int start = 0; start + size <= slices; start++)
        list_add(&list, &(nvmlComputeInstancePlacement_t){ start, size });
    *count = list.used;
    return NVML_SUCCESS;
}

/* --- compute instances ----------------------------------------------------------------------- */

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t instance, unsigned int id,
                                                   nvmlComputeInstance_t *compute)
{
    struct mig_instance i;
    nvmlReturn_t result = answer_check(compute);

    if (result == NVML_SUCCESS)
        result = check_instance(instance, &i);
    if (result == NVML_SUCCESS)
        result = mig_find_instance(instance->device, instance->gi, (int)id, &i);
    if (result != NVML_SUCCESS)
        return result;
    *compute = library_compute_instance(instance, (int)id);
    return *compute ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t instance, unsigned int number,
                                                nvmlComputeInstance_t *computes,
                                                unsigned int *count)
{
    struct table t;
    struct mig_instance i;
    struct list list = { computes, sizeof(*computes), ~0u, 0 };
    nvmlReturn_t result = arguments_check(computes && count);

    if (result == NVML_SUCCESS)
        result = check_instance(instance, &i);
    if (result == NVML_SUCCESS)
        result = mig_read_instances(instance->device, &t);
    if (result != NVML_SUCCESS)
        return result;
    while (mig_next_instance(&t, &i))
        if (i.gi == instance->gi && i.ci >= 0 && compute_profile(i.slices) == number) {
            nvmlComputeInstance_t found = library_compute_instance(instance, i.ci);

            list_add(&list, &found);
        }
    *count = list.used;
    return NVML_SUCCESS;
}

static nvmlReturn_t check_compute(nvmlComputeInstance_t compute, struct mig_instance *i)
{
    nvmlReturn_t result = library_check();

    if (result != NVML_SUCCESS)
        return result;
    if (!library_knows_compute_instance(compute))
        return NVML_ERROR_INVALID_ARGUMENT;
    return mig_find_instance(compute->instance->device, compute->instance->gi, compute->ci, i);
}

nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t compute,
                                           nvmlComputeInstanceInfo_t *info)
{
    struct mig_instance i;
    nvmlReturn_t result = answer_check(info);

    if (result == NVML_SUCCESS)
        result = check_compute(compute, &i);
    if (result != NVML_SUCCESS)
        return result;
    *info = (nvmlComputeInstanceInfo_t){ compute->instance->device,
                                         compute->instance,
                                         (unsigned int)compute->ci,
                                         compute_profile(i.slices),
                                         { i.start, i.slices } };
    return NVML_SUCCESS;
}

/* The first structure ended before the placement. */
nvmlReturn_t nvmlComputeInstanceGetInfo(nvmlComputeInstance_t compute,
                                        nvmlComputeInstanceInfo_t *info)
{
    nvmlComputeInstanceInfo_t whole;
    nvmlReturn_t result = nvmlComputeInstanceGetInfo_v2(compute, info ? &whole : NULL);

    if (result == NVML_SUCCESS)
        memcpy(info, &whole, offsetof(nvmlComputeInstanceInfo_t, placement));
    return result;
}

static nvmlReturn_t create_compute(nvmlGpuInstance_t instance, unsigned int number, int start,
                                   nvmlComputeInstance_t *compute)
{
    struct mig_instance made;
    char command[64], at[16] = "";
    nvmlReturn_t result = answer_check(compute);

    if (result == NVML_SUCCESS)
        result = check_instance(instance, &made);
    if (result != NVML_SUCCESS)
        return result;
    if (number >= NVML_COMPUTE_INSTANCE_PROFILE_COUNT || !compute_slices[number])
        return NVML_ERROR_INVALID_ARGUMENT;
    if (start >= 0)
        snprintf(at, sizeof(at), " at %d", start);
    snprintf(command, sizeof(command), "create-ci %d %u%s", instance->gi, compute_slices[number],
             at);
    result = create(instance->device, command, instance->gi, &made);
    if (result != NVML_SUCCESS)
        return result;
    *compute = library_compute_instance(instance, made.ci);
    return *compute ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t instance, unsigned int number,
                                                  nvmlComputeInstance_t *compute)
{
    return create_compute(instance, number, -1, compute);
}

nvmlReturn_t nvmlGpuInstanceCreateComputeInstanceWithPlacement(
    nvmlGpuInstance_t instance, unsigned int number,
    const nvmlComputeInstancePlacement_t *placement, nvmlComputeInstance_t *compute)
{
    if (!placement)
        return library_refuse(NVML_ERROR_INVALID_ARGUMENT);
    return create_compute(instance, number, (int)(placement->start & 0xff), compute);
}

nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t compute)
{
    struct mig_instance i;
    char command[32];
    nvmlReturn_t result = check_compute(compute, &i);

    if (result != NVML_SUCCESS)
        return result;
    snprintf(command, sizeof(command), "destroy %d %d", compute->instance->gi, compute->ci);
    return device_write(compute->instance->device, "mig/instances", command);
}
