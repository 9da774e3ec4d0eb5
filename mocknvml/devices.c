/*
 * Devices: the handles that are given out, and which GPUs this process may see.
 *
 * NVIDIA_VISIBLE_DEVICES, as it was at the first init: all, none, or words with commas between them:
 *
 *     2             GPU 2                       2:1          MIG device 1 of GPU 2
 *     GPU-5af2…     the GPU of that UUID        MIG-7c11…    the MIG device of that UUID
 *                                               MIG-GPU-5af2…/1/0    by GPU, GPU instance and compute instance
 *
 * UUIDs may be cut short. GPUs are numbered anew; of a GPU of which only MIG devices are named only those are
 * there.
 *
 * void, which CDI specifications set, names nothing: it leaves the choice to the device nodes that the container was
 * given. There are then the GPUs and MIG devices whose nodes are in /dev, as for a real driver. So it is without the
 * variable, too, for what an engine starts later on in such a container.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mocknvml/lock.h"
#include "mocknvml/mig.h"
#include "mocknvml/state.h"

/* --- what the list names --------------------------------------------------------------------- */

enum { UUID_SHORTEST = 8 };

struct word {
    const char *text;
    size_t length;
};

static bool next_word(const char **list, struct word *word)
{
    if (!**list)
        return false;
    *word = (struct word){ *list, strcspn(*list, ",") };
    *list += word->length + ((*list)[word->length] == ',');
    return true;
}

static bool is_text(const struct word *word, const char *text)
{
    return strlen(text) == word->length && !strncmp(word->text, text, word->length);
}

static bool begins(const struct word *word, const char *uuid)
{
    return word->length >= UUID_SHORTEST && !strncmp(word->text, uuid, word->length);
}

static bool names_gpu(const struct word *word, int index, const char *uuid)
{
    char number[16];

    snprintf(number, sizeof(number), "%d", index);
    return is_text(word, "all") || is_text(word, number) || begins(word, uuid);
}

static bool names_mig(const struct word *word, int index, const char *uuid,
                      const struct mig_name *m)
{
    char pair[32], triple[LENGTH_UUID + 32];

    snprintf(pair, sizeof(pair), "%d:%u", index, m->number);
    snprintf(triple, sizeof(triple), "MIG-%s/%d/%d", uuid, m->gi, m->ci);
    return is_text(word, pair) || is_text(word, triple) || begins(word, m->uuid);
}

static bool list_names_gpu(const char *list, int index, const char *uuid)
{
    struct word word;

    while (next_word(&list, &word))
        if (names_gpu(&word, index, uuid))
            return true;
    return false;
}

static bool list_names_mig(const char *list, int index, const char *uuid, const struct mig_name *m)
{
    struct word word;

    while (next_word(&list, &word))
        if (names_mig(&word, index, uuid, m))
            return true;
    return false;
}

/* Whether it names a MIG device of that GPU. */
static bool list_names_part(const char *list, struct reader *reader, int index, const char *uuid)
{
    char file[64];
    struct table t = { 0 };
    struct mig_name name;

    if (!strchr(list, ':') && !strstr(list, "MIG-"))
        return false;
    snprintf(file, sizeof(file), "gpus/%d/mig/instances", index);
    if (reader_text(reader, file, t.text, sizeof(t.text)) < 0)
        return false;
    t.rest = t.text;
    for (unsigned int number = 0; mig_next_name(&t, &number, &name);)
        if (list_names_mig(list, index, uuid, &name))
            return true;
    return false;
}

/* --- what has a device node ------------------------------------------------------------------- */

static bool list_is_void(const char *list)
{
    return list && !strcmp(list, "void");
}

static bool node_is_there(const char *name, int number)
{
    char path[64];

    snprintf(path, sizeof(path), "/dev/%s%d", name, number);
    return access(path, F_OK) == 0;
}

/* The minor number of the GPU's node, or -1. */
static int gpu_minor(struct reader *reader, int index)
{
    char file[64], text[16];
    int minor;

    snprintf(file, sizeof(file), "gpus/%d/identity/minor_number", index);
    if (reader_text(reader, file, text, sizeof(text)) < 0 || sscanf(text, "%d", &minor) != 1)
        return -1;
    return minor;
}

static bool gpu_has_node(struct reader *reader, int index)
{
    int minor = gpu_minor(reader, index);

    return minor >= 0 && node_is_there("nvidia", minor);
}

/* Whether the capability that `part` of a GPU's mig/ is opened with has its node. */
static bool capability_has_node(struct reader *reader, int gpu, const char *part)
{
    static const char label[] = "DeviceFileMinor: ";
    char file[128], text[128];
    int minor;

    snprintf(file, sizeof(file), "proc/driver/nvidia/capabilities/gpu%d/mig/%s/access", gpu, part);
    if (reader_text(reader, file, text, sizeof(text)) < 0 ||
        strncmp(text, label, sizeof(label) - 1) ||
        sscanf(text + sizeof(label) - 1, "%d", &minor) != 1)
        return false;
    return node_is_there("nvidia-caps/nvidia-cap", minor);
}

static bool mig_has_node(struct reader *reader, int index, const struct mig_name *m)
{
    char gi[16], ci[32];
    int minor = gpu_minor(reader, index);

    snprintf(gi, sizeof(gi), "gi%d", m->gi);
    snprintf(ci, sizeof(ci), "gi%d/ci%d", m->gi, m->ci);
    return minor >= 0 && capability_has_node(reader, minor, gi) &&
           capability_has_node(reader, minor, ci);
}

/*
 * Whether this is a container that was given GPUs as device nodes: it has some, and no driver of the kernel, or of
 * `fakegpufs exec`, that they could be of.
 */
static bool nodes_decide(void)
{
    DIR *dir = access("/proc/driver/nvidia", F_OK) == 0 ? NULL : opendir("/dev");
    struct dirent *entry;
    bool found = false;

    while (dir && !found && (entry = readdir(dir)))
        found = !strncmp(entry->d_name, "nvidia", 6) && isdigit((unsigned char)entry->d_name[6]);
    if (dir)
        closedir(dir);
    return found;
}

/* --- listing --------------------------------------------------------------------------------- */

const char *listing_wanted(void)
{
    const char *said = getenv("NVIDIA_VISIBLE_DEVICES");

    if (said && *said)
        return said;
    return nodes_decide() ? "void" : NULL;
}

static bool is_visible(struct reader *reader, const char *list, int index, const char *uuid)
{
    if (list_is_void(list))
        return gpu_has_node(reader, index);
    return !list || list_names_gpu(list, index, uuid) || list_names_part(list, reader, index, uuid);
}

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
        if (result < 0 || !is_visible(reader, list, i, gpu.uuid))
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

static nvmlDevice_t visible_device(unsigned int number)
{
    unsigned int place = lock_shared();
    nvmlDevice_t found = number < library.visible_count ? library.visible[number] : NULL;

    unlock_shared(place);
    return found;
}

nvmlReturn_t library_bus_id(unsigned int number, char *text, unsigned int length)
{
    nvmlReturn_t result = answer_check(text);
    nvmlDevice_t found = result == NVML_SUCCESS ? visible_device(number) : NULL;
    char path[128], id[64];

    if (result == NVML_SUCCESS && !found)
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS) {
        gpu_path(found->parent ? found->parent : found, "identity/bus_id", path, sizeof(path));
        result = root_text(path, id, sizeof(id));
    }
    if (result == NVML_SUCCESS)
        snprintf(text, length, "%s", strlen(id) > 12 ? id + strlen(id) - 12 : id);
    return result;
}

nvmlReturn_t library_device(unsigned int number, nvmlDevice_t *device)
{
    nvmlReturn_t result = answer_check(device);
    nvmlDevice_t found;

    if (result != NVML_SUCCESS)
        return result;
    found = visible_device(number);
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
    const char *list = library.visible_list;
    int index = atomic_load(&parent->index);
    bool seen;

    if (list_is_void(list))
        seen = library.reader && mig_has_node(library.reader, index, name);
    else
        seen = !list || list_names_gpu(list, index, parent->uuid) ||
               list_names_mig(list, index, parent->uuid, name);

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
