/*
 * Instances: the GPU instances and compute instances that there are, and the profiles of both. See instances.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mocknvml/smi/instances.h"

#include <stdlib.h>
#include <string.h>

#include "mocknvml/smi/arguments.h"

/* --- profiles ----------------------------------------------------------------------------------- */

/* In the order in which the library numbers them. */
static unsigned int numbered_profiles(struct gpu *gpu, profile_t *profiles)
{
    unsigned int count = 0;

    for (unsigned int number = 0; number < PROFILES_MAX; number++) {
        profiles[count] = (profile_t){ .version = VERSION_OF(profiles[count], 2) };
        if (ASK(DeviceGetGpuInstanceProfileInfoV, gpu->device, number, &profiles[count]) ==
            NVML_SUCCESS)
            count++;
    }
    return count;
}

unsigned int instance_profiles(struct gpu *gpu, profile_t *profiles)
{
    unsigned int count = numbered_profiles(gpu, profiles);

    for (unsigned int i = 1; i < count; i++) {
        profile_t one = profiles[i];
        unsigned int at = i;

        for (; at > 0 && profiles[at - 1].sliceCount > one.sliceCount; at--)
            profiles[at] = profiles[at - 1];
        profiles[at] = one;
    }
    return count;
}

const char *profile_short_name(const char *name)
{
    return strncmp(name, "MIG ", 4) ? name : name + 4;
}

bool profile_is_named(const char *word, unsigned int id, const char *name)
{
    long number;

    return arguments_number(word, 0, 999, &number)
               ? number == (long)id
               : !strcmp(profile_short_name(word), profile_short_name(name));
}

/* Whether a list of numbers has this one. No list has all. */
static bool is_listed(const char *list, unsigned int id)
{
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strtoul(at, NULL, 10) == id)
            return true;
    return !list;
}

/* Where the profile fits. The library takes it that there is room for all: it is asked how many first. */
unsigned int instance_places(struct gpu *gpu, const profile_t *p, placement_t *places)
{
    unsigned int count = 0;

    if (ASK(DeviceGetGpuInstancePossiblePlacements_v2, gpu->device, p->id, NULL, &count) !=
            NVML_SUCCESS ||
        count > INSTANCES_MAX ||
        ASK(DeviceGetGpuInstancePossiblePlacements_v2, gpu->device, p->id, places, &count) !=
            NVML_SUCCESS)
        return 0;
    return count;
}

/* --- GPU instances ------------------------------------------------------------------------------ */

static void add_instances(struct instances *found, struct gpu *gpu, const profile_t *profile,
                          const char *list)
{
    nvmlGpuInstance_t handles[INSTANCES_MAX];
    unsigned int count = INSTANCES_MAX;

    if (profile->instanceCount > INSTANCES_MAX ||
        ASK(DeviceGetGpuInstances, gpu->device, profile->id, handles, &count) != NVML_SUCCESS)
        return;
    for (unsigned int i = 0; i < count; i++) {
        struct instance *one = &found->items[found->count];

        *one = (struct instance){ .gpu = gpu, .handle = handles[i], .profile = *profile };
        if (ASK(GpuInstanceGetInfo, handles[i], &one->info) == NVML_SUCCESS &&
            is_listed(list, one->info.id))
            found->count++;
    }
}

int instances_find(struct gpus *gpus, const char *list, struct instances *found)
{
    *found = (struct instances){ calloc(gpus->count, INSTANCES_MAX * sizeof(*found->items)), 0 };
    if (!found->items)
        return exit_status(NVML_ERROR_MEMORY);
    for (unsigned int i = 0; i < gpus->count; i++) {
        profile_t profiles[PROFILES_MAX];
        unsigned int count = numbered_profiles(&gpus->items[i], profiles);

        for (unsigned int p = 0; p < count; p++)
            add_instances(found, &gpus->items[i], &profiles[p], list);
    }
    return 0;
}

/* --- compute instances -------------------------------------------------------------------------- */

unsigned int compute_profiles(const struct instance *one, compute_profile_t *profiles)
{
    unsigned int count = 0;

    for (unsigned int number = 0; number < COMPUTES_MAX; number++) {
        profiles[count].version = VERSION_OF(profiles[count], 2);
        if (ASK(GpuInstanceGetComputeInstanceProfileInfoV, one->handle, number, 0,
                &profiles[count]) == NVML_SUCCESS)
            count++;
    }
    return count;
}

unsigned int compute_places(const struct instance *one, const compute_profile_t *profile,
                            compute_placement_t *places)
{
    unsigned int count = 0;

    if (ASK(GpuInstanceGetComputeInstancePossiblePlacements, one->handle, profile->id, NULL,
            &count) != NVML_SUCCESS ||
        count > COMPUTES_MAX ||
        ASK(GpuInstanceGetComputeInstancePossiblePlacements, one->handle, profile->id, places,
            &count) != NVML_SUCCESS)
        return 0;
    return count;
}

bool compute_is_default(const struct instance *one, const compute_profile_t *profile)
{
    return profile->sliceCount == one->profile.sliceCount;
}

unsigned int computes_find(const struct instance *one, const char *list, struct compute *computes)
{
    compute_profile_t profiles[COMPUTES_MAX];
    unsigned int kinds = compute_profiles(one, profiles), found = 0;

    for (unsigned int p = 0; p < kinds; p++) {
        nvmlComputeInstance_t handles[COMPUTES_MAX];
        unsigned int count = COMPUTES_MAX;

        if (ASK(GpuInstanceGetComputeInstances, one->handle, profiles[p].id, handles, &count) !=
            NVML_SUCCESS)
            continue;
        for (unsigned int i = 0; i < count && found < COMPUTES_MAX; i++) {
            struct compute *compute = &computes[found];

            *compute = (struct compute){ .handle = handles[i], .profile = profiles[p] };
            if (ASK(ComputeInstanceGetInfo_v2, handles[i], &compute->info) == NVML_SUCCESS &&
                is_listed(list, compute->info.id))
                found++;
        }
    }
    return found;
}
