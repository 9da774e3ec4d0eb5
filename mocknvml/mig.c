/*
 * MIG: the tables of instances and profiles, the mode, and the devices that compute instances make.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "mocknvml/mig.h"

#include <stdio.h>
#include <string.h>

/* --- tables ---------------------------------------------------------------------------------- */

static bool parse_instance(const char *line, struct mig_instance *i)
{
    char ci[8];

    if (sscanf(line, "%d %7s %31s %u %u %u %llu %47s", &i->gi, ci, i->profile, &i->start,
               &i->slices, &i->multiprocessors, &i->memory_bytes, i->uuid) != 8)
        return false;
    i->ci = -1;
    return !strcmp(ci, "-") || sscanf(ci, "%d", &i->ci) == 1;
}

static bool parse_profile(const char *line, struct mig_profile *p)
{
    return sscanf(line, "%u %31s %u %u %u %llu %u %u %u %u %u %u %63s", &p->id, p->name, &p->slices,
                  &p->count, &p->multiprocessors, &p->memory_bytes, &p->size, &p->copy,
                  &p->decoders, &p->encoders, &p->jpeg, &p->ofa, p->starts) == 13;
}

nvmlReturn_t mig_read_instances(nvmlDevice_t device, struct table *t)
{
    nvmlReturn_t result = device_text(device, "mig/instances", t->text, sizeof(t->text));

    t->rest = t->text;
    return result == NVML_ERROR_NOT_FOUND ? NVML_ERROR_NOT_SUPPORTED
                                          : result; /* no MIG on this board */
}

nvmlReturn_t mig_read_profiles(nvmlDevice_t device, struct table *t)
{
    return device_table(device, TABLE_MIG_PROFILES, t);
}

bool mig_next_instance(struct table *t, struct mig_instance *i)
{
    char *line = reader_line(&t->rest);

    return line && parse_instance(line, i);
}

bool mig_next_profile(struct table *t, struct mig_profile *p)
{
    char *line = reader_line(&t->rest);

    return line && parse_profile(line, p);
}

nvmlReturn_t mig_find_instance(nvmlDevice_t device, int gi, int ci, struct mig_instance *i)
{
    struct table t;
    nvmlReturn_t result = mig_read_instances(device, &t);

    while (result == NVML_SUCCESS && mig_next_instance(&t, i))
        if (i->gi == gi && i->ci == ci)
            return NVML_SUCCESS;
    return result == NVML_SUCCESS ? NVML_ERROR_NOT_FOUND : result;
}

nvmlReturn_t mig_find_profile(nvmlDevice_t device, const char *name, struct mig_profile *p)
{
    struct table t;
    nvmlReturn_t result = mig_read_profiles(device, &t);

    while (result == NVML_SUCCESS && mig_next_profile(&t, p))
        if (!strcmp(p->name, name))
            return NVML_SUCCESS;
    return result == NVML_SUCCESS ? NVML_ERROR_NOT_FOUND : result;
}

nvmlReturn_t mig_find_profile_id(nvmlDevice_t device, unsigned int id, struct mig_profile *p)
{
    struct table t;
    nvmlReturn_t result = mig_read_profiles(device, &t);

    while (result == NVML_SUCCESS && mig_next_profile(&t, p))
        if (p->id == id)
            return NVML_SUCCESS;
    return result == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : result;
}

bool mig_next_name(struct table *instances, unsigned int *number, struct mig_name *name)
{
    struct mig_instance i;

    do
        if (!mig_next_instance(instances, &i))
            return false;
    while (i.ci < 0);
    *name = (struct mig_name){ .number = (*number)++, .gi = i.gi, .ci = i.ci };
    memcpy(name->uuid, i.uuid, sizeof(name->uuid));
    return true;
}

/* The same, of those that this process may see. */
static bool next_visible(nvmlDevice_t parent, struct table *t, unsigned int *number,
                         struct mig_name *name)
{
    while (mig_next_name(t, number, name))
        if (library_sees_mig(parent, name))
            return true;
    return false;
}

/* --- what other files need ------------------------------------------------------------------- */

void mig_compute_name(const struct mig_instance *gpu, unsigned int slices, char *buf, size_t size)
{
    int plain = (int)strcspn(gpu->profile, "+");

    if (slices < gpu->slices)
        snprintf(buf, size, "%uc.%.*s", slices, plain, gpu->profile);
    else
        snprintf(buf, size, "%.*s", plain, gpu->profile);
}

nvmlReturn_t mig_profile_name(nvmlDevice_t device, char *buf, size_t size)
{
    struct mig_instance gpu, compute;
    nvmlReturn_t result = mig_find_instance(device, device->gi, -1, &gpu);

    if (result == NVML_SUCCESS)
        result = mig_find_instance(device, device->gi, device->ci, &compute);
    if (result == NVML_SUCCESS)
        mig_compute_name(&gpu, compute.slices, buf, size);
    return result;
}

nvmlReturn_t mig_device_index(nvmlDevice_t device, unsigned int *index)
{
    struct table t;
    struct mig_name name;
    unsigned int number = 0;
    nvmlReturn_t result = mig_read_instances(device, &t);

    for (*index = 0; result == NVML_SUCCESS && next_visible(device->parent, &t, &number, &name);
         ++*index)
        if (name.gi == device->gi && name.ci == device->ci)
            return NVML_SUCCESS;
    return result == NVML_SUCCESS ? NVML_ERROR_NOT_FOUND : result;
}

nvmlReturn_t mig_memory_bytes(nvmlDevice_t device, unsigned long long *bytes)
{
    struct mig_instance i;
    nvmlReturn_t result = mig_find_instance(device, device->gi, -1, &i);

    if (result == NVML_SUCCESS)
        *bytes = i.memory_bytes;
    return result;
}

nvmlReturn_t mig_memory_slices(nvmlDevice_t device, unsigned int *slices, unsigned int *all)
{
    struct mig_instance i;
    struct mig_profile p;
    struct table t;
    nvmlReturn_t result = mig_find_instance(device, device->gi, -1, &i);

    *slices = *all = 0;
    if (result == NVML_SUCCESS)
        result = mig_read_profiles(device, &t);
    while (result == NVML_SUCCESS && mig_next_profile(&t, &p)) {
        *all = p.size > *all ? p.size : *all;
        if (!strcmp(p.name, i.profile))
            *slices = p.size;
    }
    return result == NVML_SUCCESS && !*slices ? NVML_ERROR_NOT_FOUND : result;
}

/* --- the mode -------------------------------------------------------------------------------- */

/* Takes effect at once or not at all, so what is pending is what is. */
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
    nvmlReturn_t result = answer_check(pending);

    if (result == NVML_SUCCESS)
        result = get_uint(device, METRIC_MIG_MODE, current);
    if (result != NVML_SUCCESS)
        return result;
    *pending = *current;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t device, unsigned int mode, nvmlReturn_t *activation)
{
    nvmlReturn_t result = answer_check(activation);

    if (result == NVML_SUCCESS)
        result = device_check(device);
    if (result != NVML_SUCCESS)
        return result;
    if (mode > NVML_DEVICE_MIG_ENABLE)
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
    struct mig_profile p;
    nvmlReturn_t result = answer_check(count);

    if (result == NVML_SUCCESS)
        result = mig_read_profiles(device, &t);
    if (result != NVML_SUCCESS && result != NVML_ERROR_NOT_SUPPORTED)
        return result;
    *count = 0;
    while (result == NVML_SUCCESS && mig_next_profile(&t, &p))
        if (p.count > *count)
            *count = p.count;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index,
                                                 nvmlDevice_t *mig)
{
    struct table t;
    struct mig_name name;
    unsigned int number = 0;
    nvmlReturn_t result = answer_check(mig);

    if (result == NVML_SUCCESS)
        result = mig_read_instances(device, &t);
    if (result != NVML_SUCCESS)
        return result;
    if (device->parent)
        return NVML_ERROR_INVALID_ARGUMENT;
    while (next_visible(device, &t, &number, &name))
        if (index-- == 0) {
            *mig = library_mig_device(device, name.gi, name.ci, name.uuid);
            return *mig ? NVML_SUCCESS : NVML_ERROR_MEMORY;
        }
    return NVML_ERROR_NOT_FOUND;
}

static nvmlReturn_t check_mig(nvmlDevice_t device, const void *answer)
{
    nvmlReturn_t result = answer_check(answer);

    if (result == NVML_SUCCESS)
        result = device_check(device);
    return result == NVML_SUCCESS && !device->parent ? NVML_ERROR_INVALID_ARGUMENT : result;
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
    struct mig_instance gpu, compute;
    struct mig_profile p;
    nvmlReturn_t result = check_mig(mig, attributes);

    if (result == NVML_SUCCESS)
        result = mig_find_instance(mig, mig->gi, -1, &gpu);
    if (result == NVML_SUCCESS)
        result = mig_find_instance(mig, mig->gi, mig->ci, &compute);
    if (result == NVML_SUCCESS)
        result = mig_find_profile(mig, gpu.profile, &p);
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
