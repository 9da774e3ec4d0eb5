/*
 * Device: which GPU of the mount a device plugin means by an id. See device.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "k8s/pods/device.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sim/unit.h"

enum { ID_BYTES = 128 };

static bool begins(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

static struct device whole(const struct inventory *inventory, size_t gpu)
{
    return (struct device){ .gpu = (int)gpu, .uuid = inventory->gpus[gpu].uuid };
}

static struct device part(size_t gpu, const struct mig_device *mig)
{
    return (struct device){ .gpu = (int)gpu, .mig = mig, .uuid = mig->uuid };
}

/* --- one way to name it each; 0 or -ENODEV ---------------------------------------------------- */

static int by_uuid(const struct inventory *inventory, const char *id, struct device *found)
{
    for (size_t i = 0; i < inventory->count; i++)
        if (!strcmp(inventory->gpus[i].uuid, id)) {
            *found = whole(inventory, i);
            return 0;
        }
    return -ENODEV;
}

static int by_instance(const struct inventory *inventory, size_t gpu, int gi, int ci,
                       struct device *found)
{
    const struct gpu *g = &inventory->gpus[gpu];

    for (size_t i = 0; i < g->mig_count; i++)
        if (g->migs[i].gi == gi && g->migs[i].ci == ci) {
            *found = part(gpu, &g->migs[i]);
            return 0;
        }
    return -ENODEV;
}

static int by_mig_uuid(const struct inventory *inventory, const char *id, struct device *found)
{
    char uuid[DEVICE_UUID];
    int gi, ci, end = 0;

    for (size_t i = 0; i < inventory->count; i++)
        for (size_t k = 0; k < inventory->gpus[i].mig_count; k++)
            if (!strcmp(inventory->gpus[i].migs[k].uuid, id)) {
                *found = part(i, &inventory->gpus[i].migs[k]);
                return 0;
            }
    if (sscanf(id, "MIG-%47[^/]/%d/%d%n", uuid, &gi, &ci, &end) != 3 || id[end] ||
        by_uuid(inventory, uuid, found) < 0)
        return -ENODEV;
    return by_instance(inventory, (size_t)found->gpu, gi, ci, found);
}

static int by_minor(const struct inventory *inventory, const char *id, struct device *found)
{
    int minor, gi, end = 0, all = 0;
    bool instance = sscanf(id, "nvidia%d%n/gi%d%n", &minor, &end, &gi, &all) == 2;

    if (!end)
        sscanf(id, "gpu-%d%n", &minor, &end);
    if (!end || id[instance ? all : end])
        return -ENODEV;
    for (size_t i = 0; i < inventory->count; i++) {
        if (inventory->gpus[i].minor != minor)
            continue;
        *found = whole(inventory, i);
        return instance ? by_instance(inventory, i, gi, 0, found) : 0;
    }
    return -ENODEV;
}

static int by_index(const struct inventory *inventory, const char *id, struct device *found)
{
    int64_t index;

    if (parse_i64(id, &index) < 0 || index < 0 || (size_t)index >= inventory->count)
        return -ENODEV;
    *found = whole(inventory, (size_t)index);
    return 0;
}

typedef int finder(const struct inventory *inventory, const char *id, struct device *found);

static finder *way_of(const char *id)
{
    static const struct {
        const char *prefix;
        finder *find;
    } ways[] = {
        { "GPU-", by_uuid },
        { "MIG-", by_mig_uuid },
        { "nvidia", by_minor },
        { "gpu-", by_minor },
    };

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        if (begins(id, ways[i].prefix))
            return ways[i].find;
    return by_index;
}

bool device_is_minor(const char *id)
{
    return way_of(id) == by_minor;
}

int device_find(const struct inventory *inventory, const char *id, struct device *found)
{
    static const char *const replicas[] = { "::", "/vgpu" };
    char bare[ID_BYTES];

    if (strlen(id) >= sizeof(bare))
        return -ENODEV;
    strcpy(bare, id);
    for (size_t i = 0; i < sizeof(replicas) / sizeof(replicas[0]); i++) {
        char *replica = strstr(bare, replicas[i]);

        if (replica)
            *replica = '\0';
    }
    return way_of(bare)(inventory, bare, found);
}

static int compare(const struct device *a, const struct device *b)
{
    return a->gpu != b->gpu ? a->gpu - b->gpu : strcmp(a->uuid, b->uuid);
}

void device_add(struct device_set *set, const struct device *d)
{
    size_t at = 0;

    while (at < set->count && compare(&set->items[at], d) < 0)
        at++;
    if (at < set->count && compare(&set->items[at], d) == 0)
        return;
    memmove(&set->items[at + 1], &set->items[at], (set->count - at) * sizeof(*d));
    set->items[at] = *d;
    set->count++;
}
