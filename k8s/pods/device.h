/*
 * Device: which GPU of the mount a device plugin means by an id.
 *
 *     GPU-<uuid>            NVIDIA's plugin
 *     3                     an index
 *     MIG-<uuid>            a MIG device; MIG-GPU-<uuid>/<gi>/<ci> with old drivers
 *     …::2                  the third replica of a GPU that is shared
 *     nvidia0               Google's plugin: a minor number
 *     nvidia0/gi1           … and a GPU instance of it
 *     nvidia0/vgpu2         … and a replica of it
 *     gpu-0                 NVIDIA's driver of dynamic resources: a minor number
 *
 * Pure: the inventory is somebody else's to read.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef K8S_PODS_DEVICE_H
#define K8S_PODS_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

enum { DEVICE_UUID = 48 };

struct mig_device {
    int gi, ci;
    char uuid[DEVICE_UUID];
};

struct gpu {
    int minor;
    bool lost; /* fallen off the bus */
    char uuid[DEVICE_UUID];
    struct mig_device *migs; /* in somebody's arena */
    size_t mig_count;
};

/* The mount's GPUs; the position is the index. */
struct inventory {
    struct gpu *gpus;
    size_t count;
};

/* A GPU, or a MIG device of it. */
struct device {
    int gpu;                      /* position; sets are in the order of it */
    const struct mig_device *mig; /* NULL: the whole GPU */
    const char *uuid;             /* of one or the other */
};

struct device_set {
    struct device *items;
    size_t count;
};

/* Whether the id has a minor number: only then must the inventory have them. */
bool device_is_minor(const char *id);

/* 0, or -ENODEV when there is none of that id. */
int device_find(const struct inventory *inventory, const char *id, struct device *found);

/* Puts it where it belongs, unless it is there: replicas of one GPU are one. `items` must have room. */
void device_add(struct device_set *set, const struct device *d);

#endif
