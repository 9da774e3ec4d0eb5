/*
 * Mig: GPU instances and compute instances of a GPU whose MIG mode is on.
 *
 * An instance takes a run of memory slices (its placement) and some compute slices; which profiles there
 * are and where they can begin, the model says. Commands:
 *
 *     create 3g.20gb         a GPU instance (by profile name or number) with one compute instance on all of it
 *     create 3g.20gb at 4    at that memory slice
 *     create-gi 3g.20gb      the GPU instance alone
 *     create-ci 1 2          a compute instance of 2 slices in GPU instance 1 (all that is left when not said)
 *     create-ci 1 2 at 1     from its compute slice 1 on
 *     destroy 1              a GPU instance with its compute instances
 *     destroy 1 0            compute instance 0 of GPU instance 1
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SIM_MIG_H
#define SIM_MIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpu;
struct gpu_model;
struct why;

/* Numbers as the driver gives them out: at most 15 GPU instances of 8 compute instances. */
enum { MIG_GIS_MAX = 15, MIG_CIS_MAX = 8 };

struct mig_ci {
    uint8_t slices; /* 0: there is none */
    uint8_t start;  /* the first of them, of those of the GPU instance */
};

struct mig_gi {
    uint8_t used;
    uint8_t profile; /* position in the model's list */
    uint8_t start;   /* memory slice */
    struct mig_ci cis[MIG_CIS_MAX];
};

enum mig_verb { MIG_CREATE, MIG_CREATE_GI, MIG_CREATE_CI, MIG_DESTROY };

struct mig_command {
    enum mig_verb verb;
    char profile[16];
    int start;  /* -1: anywhere */
    int gi, ci; /* ci -1: the whole GPU instance */
    int slices; /* 0: all that is left, in one piece */
};

/* Reads one command. -EINVAL, -ERANGE with a sentence. */
int mig_parse(const char *text, struct mig_command *command, struct why *why);

/* Carries it out. -EINVAL (no such profile), -ENOSPC (no room), -ENOENT, -EOPNOTSUPP (MIG is off). */
int mig_apply(struct gpu *g, const struct gpu_model *m, const struct mig_command *command,
              struct why *why);

/* Whether there is any GPU instance. */
bool mig_any(const struct gpu *g);

/* Whether there is that compute instance, or (ci -1) that GPU instance. */
bool mig_has(const struct gpu *g, int gi, int ci);

/* The first compute instance of a GPU instance, or -1. */
int mig_first_ci(const struct gpu *g, int gi);

/* The part of the whole GPU that an instance is: of its SMs, and of its memory's bandwidth. */
double mig_compute_part(const struct gpu *g, const struct gpu_model *m, int gi, int ci);
double mig_memory_part(const struct gpu *g, const struct gpu_model *m, int gi);

/* Memory that what runs on a GPU instance can have. */
int64_t mig_memory_bytes(const struct gpu *g, const struct gpu_model *m, int gi);

/*
 * Reads GPU:GI or GPU:GI:CI, where GPU is an index or a UUID, which goes to `gpu`. False when the text is
 * nothing like it. *ci is -1 where it says none.
 */
bool mig_name_parse(const char *text, char *gpu, size_t size, int *gi, int *ci);

/* "MIG-xxxxxxxx-…", the same for the same GPU and instances. */
void mig_uuid(const char *gpu_uuid, int gi, int ci, char *uuid, size_t size);

#endif
