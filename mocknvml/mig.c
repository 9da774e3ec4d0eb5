/*
 * MIG: GPU instances, compute instances and the devices they make.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mocknvml/mig.h"

#include <stdio.h>
#include <string.h>

/* --- tables ---------------------------------------------------------------------------------- */

/* One line of gpus/<i>/mig/instances. */
struct instance {
    int gi, ci; /* ci -1: the GPU instance itself */
    char profile[32];
    unsigned int start, slices, multiprocessors;
    unsigned long long memory_bytes;
    char uuid[LENGTH_UUID];
};

/* One line of gpus/<i>/mig/profiles. */
struct profile {
    unsigned int id;
    char name[32];
    unsigned int slices, count, multiprocessors, size, copy, decoders, encoders, jpeg, ofa;
    unsigned long long memory_bytes;
    char starts[64];
};

static bool parse_instance(const char *line, struct instance *i)
{
    char ci[8];

    if (sscanf(line, "%d %7s %31s %u %u %u %llu %47s", &i->gi, ci, i->profile, &i->start,
               &i->slices, &i->multiprocessors, &i->memory_bytes, i->uuid) != 8)
        return false;
    i->ci = -1;
    return !strcmp(ci, "-") || sscanf(ci, "%d", &i->ci) == 1;
}

static bool parse_profile(const char *line, struct profile *p)
{
    return sscanf(line, "%u %31s %u %u %u %llu %u %u %u %u %u %u %63s", &p->id, p->name, &p->slices,
                  &p->count, &p->multiprocessors, &p->memory_bytes, &p->size, &p->copy,
                  &p->decoders, &p->encoders, &p->jpeg, &p->ofa, p->starts) == 13;
}

/* A table in memory, read line by line. */
struct table {
    char text[TABLE_BYTES];
    char *rest;
};

static nvmlReturn_t read_table(nvmlDevice_t device, const char *file, struct table *t)
{
    nvmlReturn_t result = device_text(device, file, t->text, sizeof(t->text));

    t->rest = t->text;
    return result == NVML_ERROR_NOT_FOUND ? NVML_ERROR_NOT_SUPPORTED
                                          : result; /* no MIG on this board */
}

static bool next_instance(struct table *t, struct instance *i)
{
    char *line = table_line(&t->rest);

    return line && parse_instance(line, i);
}

static bool next_profile(struct table *t, struct profile *p)
{
    char *line = table_line(&t->rest);

    return line && parse_profile(line, p);
}

static nvmlReturn_t find_instance(nvmlDevice_t device, int gi, int ci, struct instance *i)
{
    struct table t;
    nvmlReturn_t result = read_table(device, "mig/instances", &t);

    while (result == NVML_SUCCESS && next_instance(&t, i))
        if (i->gi == gi && i->ci == ci)
            return NVML_SUCCESS;
    return result == NVML_SUCCESS ? NVML_ERROR_NOT_FOUND : result;
}

static nvmlReturn_t find_profile(nvmlDevice_t device, const char *name, struct profile *p)
{
    struct table t;
    nvmlReturn_t result = read_table(device, "mig/profiles", &t);

    while (result == NVML_SUCCESS && next_profile(&t, p))
        if (!strcmp(p->name, name))
            return NVML_SUCCESS;
    return result == NVML_SUCCESS ? NVML_ERROR_NOT_FOUND : result;
}

static nvmlReturn_t find_profile_id(nvmlDevice_t device, unsigned int id, struct profile *p)
{
    struct table t;
    nvmlReturn_t result = read_table(device, "mig/profiles", &t);

    while (result == NVML_SUCCESS && next_profile(&t, p))
        if (p->id == id)
            return NVML_SUCCESS;
    return result == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : result;
}

/* --- what other files need ------------------------------------------------------------------- */

nvmlReturn_t mig_profile_name(nvmlDevice_t device, char *buf, size_t size)
{
    struct instance gpu, compute;
    nvmlReturn_t result = find_instance(device, device->gi, -1, &gpu);

    if (result == NVML_SUCCESS)
        result = find_instance(device, device->gi, device->ci, &compute);
    if (result != NVML_SUCCESS)
        return result;
    if (compute.slices < gpu.slices)
        snprintf(buf, size, "%uc.%s", compute.slices, gpu.profile);
    else
        snprintf(buf, size, "%s", gpu.profile);
    return NVML_SUCCESS;
}

nvmlReturn_t mig_device_index(nvmlDevice_t device, unsigned int *index)
{
    struct table t;
    struct instance i;
    nvmlReturn_t result = read_table(device, "mig/instances", &t);

    *index = 0;
    while (result == NVML_SUCCESS && next_instance(&t, &i)) {
        if (i.gi == device->gi && i.ci == device->ci)
            return NVML_SUCCESS;
        *index += i.ci >= 0;
    }
    return result == NVML_SUCCESS ? NVML_ERROR_NOT_FOUND : result;
}

nvmlReturn_t mig_memory_bytes(nvmlDevice_t device, unsigned long long *bytes)
{
    struct instance i;
    nvmlReturn_t result = find_instance(device, device->gi, -1, &i);

    if (result == NVML_SUCCESS)
        *bytes = i.memory_bytes;
    return result;
}

/* --- the mode -------------------------------------------------------------------------------- */

/* Takes effect at once or not at all, so what is pending is what is. */
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
    nvmlReturn_t result = get_uint(device, METRIC_MIG_MODE, current);

    if (result != NVML_SUCCESS)
        return result;
    if (!pending)
        return NVML_ERROR_INVALID_ARGUMENT;
    *pending = *current;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t device, unsigned int mode, nvmlReturn_t *activation)
{
    nvmlReturn_t result = device_check(device);

    if (result != NVML_SUCCESS)
        return result;
    if (mode > NVML_DEVICE_MIG_ENABLE || !activation)
        return NVML_ERROR_INVALID_ARGUMENT;
    result = device_write(device, "control/mig_mode", mode ? "1" : "0");
    *activation = result;
    return result;
}

/* --- devices --------------------------------------------------------------------------------- */

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *is_mig)
{
    nvmlReturn_t result = give_uint(device, 0, is_mig);

    if (result == NVML_SUCCESS)
        *is_mig = device->parent != NULL;
    return result;
}

/* As many as there can be instances of the smallest profile; none on boards without MIG. */
nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count)
{
    struct table t;
    struct profile p;
    nvmlReturn_t result = read_table(device, "mig/profiles", &t);

    if (result != NVML_SUCCESS && result != NVML_ERROR_NOT_SUPPORTED)
        return result;
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    while (result == NVML_SUCCESS && next_profile(&t, &p))
        if (p.count > *count)
            *count = p.count;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index,
                                                 nvmlDevice_t *mig)
{
    struct table t;
    struct instance i;
    nvmlReturn_t result = read_table(device, "mig/instances", &t);

    if (result != NVML_SUCCESS)
        return result;
    if (!mig || device->parent)
        return NVML_ERROR_INVALID_ARGUMENT;
    while (next_instance(&t, &i))
        if (i.ci >= 0 && index-- == 0) {
            *mig = library_mig_device(device, i.gi, i.ci, i.uuid);
            return *mig ? NVML_SUCCESS : NVML_ERROR_MEMORY;
        }
    return NVML_ERROR_NOT_FOUND;
}

static nvmlReturn_t check_mig(nvmlDevice_t device, const void *answer)
{
    nvmlReturn_t result = device_check(device);

    if (result != NVML_SUCCESS)
        return result;
    return !device->parent || !answer ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig, nvmlDevice_t *device)
{
    nvmlReturn_t result = check_mig(mig, device);

    if (result == NVML_SUCCESS)
        *device = mig->parent;
    return result;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t mig, unsigned int *id)
{
    nvmlReturn_t result = check_mig(mig, id);

    if (result == NVML_SUCCESS)
        *id = (unsigned int)mig->gi;
    return result;
}

nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t mig, unsigned int *id)
{
    nvmlReturn_t result = check_mig(mig, id);

    if (result == NVML_SUCCESS)
        *id = (unsigned int)mig->ci;
    return result;
}

nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t mig, nvmlDeviceAttributes_t *attributes)
{
    struct instance gpu, compute;
    struct profile p;
    nvmlReturn_t result = check_mig(mig, attributes);

    if (result == NVML_SUCCESS)
        result = find_instance(mig, mig->gi, -1, &gpu);
    if (result == NVML_SUCCESS)
        result = find_instance(mig, mig->gi, mig->ci, &compute);
    if (result == NVML_SUCCESS)
        result = find_profile(mig, gpu.profile, &p);
    if (result == NVML_SUCCESS)
        *attributes = (nvmlDeviceAttributes_t){ compute.multiprocessors,
                                                p.copy,
                                                p.decoders,
                                                p.encoders,
                                                p.jpeg,
                                                p.ofa,
                                                p.slices,
                                                compute.slices,
                                                gpu.memory_bytes >> 20 };
    return result;
}

nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t mig, nvmlDeviceAttributes_t *attributes)
{
    return nvmlDeviceGetAttributes_v2(mig, attributes);
}

/* --- profiles of GPU instances --------------------------------------------------------------- */

/* How the interface numbers profiles: by slices and by what is special about them. */
static bool is_profile(const struct profile *p, unsigned int number, unsigned int smallest_mb)
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
                                        struct profile *found)
{
    struct table t;
    struct profile p;
    unsigned int smallest_mb = ~0u;
    nvmlReturn_t result = read_table(device, "mig/profiles", &t);

    while (result == NVML_SUCCESS && next_profile(&t, &p))
        if (p.memory_bytes >> 20 < smallest_mb)
            smallest_mb = (unsigned int)(p.memory_bytes >> 20);
    if (result == NVML_SUCCESS)
        result = read_table(device, "mig/profiles", &t);
    while (result == NVML_SUCCESS && next_profile(&t, found))
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
    struct profile p;
    nvmlReturn_t result = find_profile_number(device, number, &p);

    if (result != NVML_SUCCESS)
        return result;
    if (!info)
        return NVML_ERROR_INVALID_ARGUMENT;
    *info = (nvmlGpuInstanceProfileInfo_t){
        p.id,       0,          p.slices, p.count, p.multiprocessors,   p.copy,
        p.decoders, p.encoders, p.jpeg,   p.ofa,   p.memory_bytes >> 20
    };
    return NVML_SUCCESS;
}

static nvmlReturn_t give_profile(const struct profile *p, nvmlGpuInstanceProfileInfo_v2_t *info)
{
    if (!info)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (info->version != NVML_STRUCT_VERSION(sizeof(*info), 2))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    *info = (nvmlGpuInstanceProfileInfo_v2_t){ info->version,
                                               p->id,
                                               0,
                                               p->slices,
                                               p->count,
                                               p->multiprocessors,
                                               p->copy,
                                               p->decoders,
                                               p->encoders,
                                               p->jpeg,
                                               p->ofa,
                                               p->memory_bytes >> 20,
                                               "" };
    snprintf(info->name, sizeof(info->name), "MIG %s", p->name);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t device, unsigned int number,
                                                  nvmlGpuInstanceProfileInfo_v2_t *info)
{
    struct profile p;
    nvmlReturn_t result = find_profile_number(device, number, &p);

    return result == NVML_SUCCESS ? give_profile(&p, info) : result;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoByIdV(nvmlDevice_t device, unsigned int id,
                                                      nvmlGpuInstanceProfileInfo_v2_t *info)
{
    struct profile p;
    nvmlReturn_t result = find_profile_id(device, id, &p);

    return result == NVML_SUCCESS ? give_profile(&p, info) : result;
}

nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvmlDevice_t device, unsigned int id,
                                                           nvmlGpuInstancePlacement_t *placements,
                                                           unsigned int *count)
{
    struct profile p;
    nvmlReturn_t result = find_profile_id(device, id, &p);
    struct list list = { placements, sizeof(*placements), ~0u, 0 };

    if (result != NVML_SUCCESS)
        return result;
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
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

/* Which of the memory slices are taken, one bit each. */
static nvmlReturn_t taken_slices(nvmlDevice_t device, unsigned int *taken)
{
    struct table t;
    struct instance i;
    nvmlReturn_t result = read_table(device, "mig/instances", &t);

    *taken = 0;
    while (result == NVML_SUCCESS && next_instance(&t, &i)) {
        struct profile p;

        if (i.ci < 0 && find_profile(device, i.profile, &p) == NVML_SUCCESS)
            *taken |= ((1u << p.size) - 1) << i.start;
    }
    return result;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t device, unsigned int id,
                                                       unsigned int *count)
{
    struct profile p;
    unsigned int taken;
    nvmlReturn_t result = find_profile_id(device, id, &p);

    if (result == NVML_SUCCESS)
        result = taken_slices(device, &taken);
    if (result != NVML_SUCCESS)
        return result;
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    for (const char *at = p.starts; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        unsigned int start, mask;

        if (sscanf(at, "%u", &start) != 1)
            continue;
        mask = ((1u << p.size) - 1) << start;
        if (!(taken & mask) && *count < p.count) {
            taken |= mask;
            ++*count;
        }
    }
    return NVML_SUCCESS;
}

/* --- GPU instances --------------------------------------------------------------------------- */

nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned int id,
                                          nvmlGpuInstance_t *instance)
{
    struct instance i;
    nvmlReturn_t result = find_instance(device, (int)id, -1, &i);

    if (result != NVML_SUCCESS)
        return result;
    if (!instance)
        return NVML_ERROR_INVALID_ARGUMENT;
    *instance = library_gpu_instance(device->parent ? device->parent : device, (int)id);
    return *instance ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t device, unsigned int id,
                                       nvmlGpuInstance_t *instances, unsigned int *count)
{
    struct profile p;
    struct table t;
    struct instance i;
    struct list list = { instances, sizeof(*instances), ~0u, 0 };
    nvmlReturn_t result = find_profile_id(device, id, &p);

    if (result == NVML_SUCCESS)
        result = read_table(device, "mig/instances", &t);
    if (result != NVML_SUCCESS)
        return result;
    if (!instances || !count)
        return NVML_ERROR_INVALID_ARGUMENT;
    while (next_instance(&t, &i))
        if (i.ci < 0 && !strcmp(i.profile, p.name)) {
            nvmlGpuInstance_t found = library_gpu_instance(device, i.gi);

            list_add(&list, &found);
        }
    *count = list.used;
    return NVML_SUCCESS;
}

static nvmlReturn_t check_instance(nvmlGpuInstance_t instance, struct instance *i)
{
    nvmlReturn_t result = library_check();

    if (result != NVML_SUCCESS)
        return result;
    if (!library_knows_gpu_instance(instance))
        return NVML_ERROR_INVALID_ARGUMENT;
    return find_instance(instance->device, instance->gi, -1, i);
}

nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t instance, nvmlGpuInstanceInfo_t *info)
{
    struct instance i;
    struct profile p;
    nvmlReturn_t result = check_instance(instance, &i);

    if (result == NVML_SUCCESS)
        result = find_profile(instance->device, i.profile, &p);
    if (result != NVML_SUCCESS)
        return result;
    if (!info)
        return NVML_ERROR_INVALID_ARGUMENT;
    *info = (nvmlGpuInstanceInfo_t){
        instance->device, (unsigned int)i.gi, p.id, { i.start, p.size }
    };
    return NVML_SUCCESS;
}

/* Writes the command and finds what is new: the instance that was not there before. */
static nvmlReturn_t create(nvmlDevice_t device, const char *command, int within,
                           struct instance *made)
{
    struct table before, after;
    struct instance i, old;
    nvmlReturn_t result = read_table(device, "mig/instances", &before);

    if (result == NVML_SUCCESS)
        result = device_write(device, "mig/instances", command);
    if (result == NVML_SUCCESS)
        result = read_table(device, "mig/instances", &after);
    while (result == NVML_SUCCESS && next_instance(&after, &i)) {
        struct table again = before;
        bool known = false;

        again.rest = again.text;
        while (next_instance(&again, &old))
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
    struct instance made;
    struct profile p;
    char command[64], at[16] = "";
    nvmlReturn_t result = find_profile_id(device, id, &p);

    if (result != NVML_SUCCESS)
        return result;
    if (!instance)
        return NVML_ERROR_INVALID_ARGUMENT;
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
        return library_check() == NVML_SUCCESS ? NVML_ERROR_INVALID_ARGUMENT
                                               : NVML_ERROR_UNINITIALIZED;
    return create_gpu_instance(device, id, (int)placement->start, instance);
}

nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t instance)
{
    struct instance i;
    struct table t;
    char command[32];
    nvmlReturn_t result = check_instance(instance, &i);

    if (result == NVML_SUCCESS)
        result = read_table(instance->device, "mig/instances", &t);
    while (result == NVML_SUCCESS && next_instance(&t, &i))
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
    struct instance i;
    struct profile p;
    unsigned int slices;
    nvmlReturn_t result = check_instance(instance, &i);

    if (result == NVML_SUCCESS)
        result = find_profile(instance->device, i.profile, &p);
    if (result != NVML_SUCCESS)
        return result;
    if (!info || number >= NVML_COMPUTE_INSTANCE_PROFILE_COUNT || engine)
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
    struct instance i;
    nvmlReturn_t result = nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, number, engine,
                                                                       &plain);

    if (result == NVML_SUCCESS)
        result = check_instance(instance, &i);
    if (result != NVML_SUCCESS)
        return result;
    if (!info)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (info->version != NVML_STRUCT_VERSION(sizeof(*info), 2))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    memcpy(&info->id, &plain, sizeof(plain));
    if (plain.sliceCount < i.slices)
        snprintf(info->name, sizeof(info->name), "MIG %uc.%s", plain.sliceCount, i.profile);
    else
        snprintf(info->name, sizeof(info->name), "MIG %s", i.profile);
    return NVML_SUCCESS;
}

/* Slices of the GPU instance that no compute instance has. */
static nvmlReturn_t free_slices(nvmlGpuInstance_t instance, unsigned int *slices)
{
    struct instance i;
    struct table t;
    nvmlReturn_t result = check_instance(instance, &i);

    if (result != NVML_SUCCESS)
        return result;
    *slices = i.slices;
    result = read_table(instance->device, "mig/instances", &t);
    while (result == NVML_SUCCESS && next_instance(&t, &i))
        if (i.gi == instance->gi && i.ci >= 0)
            *slices -= i.slices;
    return result;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceRemainingCapacity(nvmlGpuInstance_t instance,
                                                                unsigned int number,
                                                                unsigned int *count)
{
    unsigned int slices;
    nvmlReturn_t result = free_slices(instance, &slices);

    if (result != NVML_SUCCESS)
        return result;
    if (!count || number >= NVML_COMPUTE_INSTANCE_PROFILE_COUNT || !compute_slices[number])
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = slices / compute_slices[number];
    return NVML_SUCCESS;
}

/* --- compute instances ----------------------------------------------------------------------- */

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t instance, unsigned int id,
                                                   nvmlComputeInstance_t *compute)
{
    struct instance i;
    nvmlReturn_t result = check_instance(instance, &i);

    if (result == NVML_SUCCESS)
        result = find_instance(instance->device, instance->gi, (int)id, &i);
    if (result != NVML_SUCCESS)
        return result;
    if (!compute)
        return NVML_ERROR_INVALID_ARGUMENT;
    *compute = library_compute_instance(instance, (int)id);
    return *compute ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t instance, unsigned int number,
                                                nvmlComputeInstance_t *computes,
                                                unsigned int *count)
{
    struct table t;
    struct instance i;
    struct list list = { computes, sizeof(*computes), ~0u, 0 };
    nvmlReturn_t result = check_instance(instance, &i);

    if (result == NVML_SUCCESS)
        result = read_table(instance->device, "mig/instances", &t);
    if (result != NVML_SUCCESS)
        return result;
    if (!computes || !count)
        return NVML_ERROR_INVALID_ARGUMENT;
    while (next_instance(&t, &i))
        if (i.gi == instance->gi && i.ci >= 0 && compute_profile(i.slices) == number) {
            nvmlComputeInstance_t found = library_compute_instance(instance, i.ci);

            list_add(&list, &found);
        }
    *count = list.used;
    return NVML_SUCCESS;
}

static nvmlReturn_t check_compute(nvmlComputeInstance_t compute, struct instance *i)
{
    nvmlReturn_t result = library_check();

    if (result != NVML_SUCCESS)
        return result;
    if (!library_knows_compute_instance(compute))
        return NVML_ERROR_INVALID_ARGUMENT;
    return find_instance(compute->instance->device, compute->instance->gi, compute->ci, i);
}

/* Compute slices are handed out in order, so an instance begins behind those before it. */
static unsigned int compute_start(nvmlComputeInstance_t compute)
{
    struct table t;
    struct instance i;
    unsigned int start = 0;

    if (read_table(compute->instance->device, "mig/instances", &t) != NVML_SUCCESS)
        return 0;
    while (next_instance(&t, &i))
        if (i.gi == compute->instance->gi && i.ci >= 0 && i.ci < compute->ci)
            start += i.slices;
    return start;
}

nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t compute,
                                           nvmlComputeInstanceInfo_t *info)
{
    struct instance i;
    nvmlReturn_t result = check_compute(compute, &i);

    if (result != NVML_SUCCESS)
        return result;
    if (!info)
        return NVML_ERROR_INVALID_ARGUMENT;
    *info = (nvmlComputeInstanceInfo_t){ compute->instance->device,
                                         compute->instance,
                                         (unsigned int)compute->ci,
                                         compute_profile(i.slices),
                                         { compute_start(compute), i.slices } };
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

nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t instance, unsigned int number,
                                                  nvmlComputeInstance_t *compute)
{
    struct instance made;
    char command[32];
    nvmlReturn_t result = check_instance(instance, &made);

    if (result != NVML_SUCCESS)
        return result;
    if (!compute || number >= NVML_COMPUTE_INSTANCE_PROFILE_COUNT || !compute_slices[number])
        return NVML_ERROR_INVALID_ARGUMENT;
    snprintf(command, sizeof(command), "create-ci %d %u", instance->gi, compute_slices[number]);
    result = create(instance->device, command, instance->gi, &made);
    if (result != NVML_SUCCESS)
        return result;
    *compute = library_compute_instance(instance, made.ci);
    return *compute ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t compute)
{
    struct instance i;
    char command[32];
    nvmlReturn_t result = check_compute(compute, &i);

    if (result != NVML_SUCCESS)
        return result;
    snprintf(command, sizeof(command), "destroy %d %d", compute->instance->gi, compute->ci);
    return device_write(compute->instance->device, "mig/instances", command);
}
