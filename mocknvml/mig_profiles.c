/*
 * MIG profiles: the GPU instances that a board can be cut into.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <string.h>

#include "mocknvml/mig.h"

/* --- profiles of GPU instances --------------------------------------------------------------- */

/* How the interface numbers profiles: by slices and by what is special about them. */
static bool is_profile(const struct mig_profile *p, unsigned int number, unsigned int smallest_mb)
{
    static const unsigned int slices[NVML_GPU_INSTANCE_PROFILE_COUNT] = { 1, 2, 3, 4, 7,
                                                                          8, 6, 1, 2, 1 };
    bool media = strstr(p->name, "+me") != NULL;
    bool large = p->slices == 1 && p->memory_bytes >> 20 > smallest_mb;

    if (number >= NVML_GPU_INSTANCE_PROFILE_COUNT || slices[number] != p->slices)
        return false;
    switch (number) {
    case 7: /* revision 1: with the media engines */
    case 8:
        return media;
    case 9: /* revision 2: one slice with twice the memory */
        return large && !media;
    default:
        return !media && !large;
    }
}

static nvmlReturn_t find_profile_number(nvmlDevice_t device, unsigned int number,
                                        struct mig_profile *found)
{
    struct table t;
    struct mig_profile p;
    unsigned int smallest_mb = ~0u;
    nvmlReturn_t result = mig_read_profiles(device, &t);

    while (result == NVML_SUCCESS && mig_next_profile(&t, &p))
        if (p.memory_bytes >> 20 < smallest_mb)
            smallest_mb = (unsigned int)(p.memory_bytes >> 20);
    if (result == NVML_SUCCESS)
        result = mig_read_profiles(device, &t);
    while (result == NVML_SUCCESS && mig_next_profile(&t, found))
        if (is_profile(found, number, smallest_mb))
            return NVML_SUCCESS;
    if (result != NVML_SUCCESS)
        return result;
    return number < NVML_GPU_INSTANCE_PROFILE_COUNT ? NVML_ERROR_NOT_SUPPORTED
                                                    : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device, unsigned int number,
                                                 nvmlGpuInstanceProfileInfo_t *info)
{
    struct mig_profile p;
    nvmlReturn_t result = answer_check(info);

    if (result == NVML_SUCCESS)
        result = find_profile_number(device, number, &p);
    if (result != NVML_SUCCESS)
        return result;
    *info = (nvmlGpuInstanceProfileInfo_t){
        p.id,       0,          p.slices, p.count, p.multiprocessors,   p.copy,
        p.decoders, p.encoders, p.jpeg,   p.ofa,   p.memory_bytes >> 20
    };
    return NVML_SUCCESS;
}

static void fill_profile(const struct mig_profile *p, nvmlGpuInstanceProfileInfo_v2_t *info)
{
    *info = (nvmlGpuInstanceProfileInfo_v2_t){ .version = info->version,
                                               .id = p->id,
                                               .sliceCount = p->slices,
                                               .instanceCount = p->count,
                                               .multiprocessorCount = p->multiprocessors,
                                               .copyEngineCount = p->copy,
                                               .decoderCount = p->decoders,
                                               .encoderCount = p->encoders,
                                               .jpegCount = p->jpeg,
                                               .ofaCount = p->ofa,
                                               .memorySizeMB = p->memory_bytes >> 20 };
    snprintf(info->name, sizeof(info->name), "MIG %s", p->name);
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t device, unsigned int number,
                                                  nvmlGpuInstanceProfileInfo_v2_t *info)
{
    struct mig_profile p;
    nvmlReturn_t result = STRUCT_CHECK(info, 2);

    if (result == NVML_SUCCESS)
        result = find_profile_number(device, number, &p);
    if (result == NVML_SUCCESS)
        fill_profile(&p, info);
    return result;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoByIdV(nvmlDevice_t device, unsigned int id,
                                                      nvmlGpuInstanceProfileInfo_v2_t *info)
{
    struct mig_profile p;
    nvmlReturn_t result = STRUCT_CHECK(info, 2);

    if (result == NVML_SUCCESS)
        result = mig_find_profile_id(device, id, &p);
    if (result == NVML_SUCCESS)
        fill_profile(&p, info);
    return result;
}

nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvmlDevice_t device, unsigned int id,
                                                           nvmlGpuInstancePlacement_t *placements,
                                                           unsigned int *count)
{
    struct mig_profile p;
    nvmlReturn_t result = answer_check(count);
    struct list list = { placements, sizeof(*placements), ~0u, 0 };

    if (result == NVML_SUCCESS)
        result = mig_find_profile_id(device, id, &p);
    if (result != NVML_SUCCESS)
        return result;
    for (const char *at = p.starts; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        nvmlGpuInstancePlacement_t one = { 0, p.size };

        if (sscanf(at, "%u", &one.start) == 1)
            list_add(&list, &one);
    }
    *count = list.used;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements(nvmlDevice_t device, unsigned int id,
                                                        nvmlGpuInstancePlacement_t *placements,
                                                        unsigned int *count)
{
    return nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, id, placements, count);
}

/* Which of the memory slices are taken, one bit each, and how many instances there are of a profile. */
static nvmlReturn_t taken_slices(nvmlDevice_t device, const char *profile, unsigned int *taken,
                                 unsigned int *there)
{
    struct table t;
    struct mig_instance i;
    nvmlReturn_t result = mig_read_instances(device, &t);

    *taken = *there = 0;
    while (result == NVML_SUCCESS && mig_next_instance(&t, &i)) {
        struct mig_profile p;

        if (i.ci >= 0 || mig_find_profile(device, i.profile, &p) != NVML_SUCCESS)
            continue;
        *there += !strcmp(i.profile, profile);
        *taken |= ((1u << p.size) - 1) << i.start;
    }
    return result;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t device, unsigned int id,
                                                       unsigned int *count)
{
    struct mig_profile p;
    unsigned int taken, there;
    nvmlReturn_t result = answer_check(count);

    if (result == NVML_SUCCESS)
        result = mig_find_profile_id(device, id, &p);
    if (result == NVML_SUCCESS)
        result = taken_slices(device, p.name, &taken, &there);
    if (result != NVML_SUCCESS)
        return result;
    *count = 0;
    for (const char *at = p.starts; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        unsigned int start, mask;

        if (sscanf(at, "%u", &start) != 1)
            continue;
        mask = ((1u << p.size) - 1) << start;
        if (!(taken & mask) && there + *count < p.count) {
            taken |= mask;
            ++*count;
        }
    }
    return NVML_SUCCESS;
}
