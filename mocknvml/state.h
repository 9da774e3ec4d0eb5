/*
 * State: what the library keeps, for the files that keep it: library.c (the mount), devices.c (handles),
 * texts.c (what was read once). Everything here is guarded by the lock, see lock.h; others ask through library.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef MOCKNVML_STATE_H
#define MOCKNVML_STATE_H

#include <limits.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "mocknvml/library.h"

/* As many as a configuration may have GPUs, and MIG devices on some of them. */
enum { DEVICES_MAX = 4096 + 1024, INSTANCES_MAX = 1024 };

struct library_state {
    atomic_int users;         /* inits without their shutdown; read without the lock */
    atomic_ullong mounts;     /* how often another one came to be read */
    struct reader *reader;    /* NULL while there is no mount */
    dev_t device;             /* of the mount that `reader` reads */
    char root[PATH_MAX];      /* where the mount is */
    char *visible_list;       /* visible_wanted() at the first init */
    atomic_llong checked_us;  /* when the mount was last seen to be the one at `root` */
    struct kept_text **texts; /* see texts.c */
    uint64_t texts_version;   /* plan version that `texts` is of */

    /* Never shrink: see struct nvmlDevice_st. */
    struct nvmlDevice_st devices[DEVICES_MAX];
    int device_count;
    struct nvmlGpuInstance_st gpu_instances[INSTANCES_MAX];
    int gpu_instance_count;
    struct nvmlComputeInstance_st compute_instances[INSTANCES_MAX];
    int compute_instance_count;

    nvmlDevice_t visible[DEVICES_MAX];
    unsigned int visible_count;
};

extern struct library_state library;

/* The GPUs of a mount that a list names. */
struct listing {
    struct listed {
        int index;
        char uuid[LENGTH_UUID];
    } * items; /* owned */
    int count;
};

/* 0 or -errno; to be released either way. */
int listing_read(struct listing *listing, struct reader *reader, const char *list);
void listing_release(struct listing *listing);

/* Makes them the visible ones; alone. -ENOMEM when there is no room for their handles. */
int listing_install(const struct listing *listing);

/* Whether it is a handle that was given out. */
bool devices_know(nvmlDevice_t device);

/* Forgets what was read; alone. */
void texts_forget(void);

#endif
