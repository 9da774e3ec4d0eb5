/*
 * Instances: the GPU instances and compute instances of GPUs in MIG mode, and the profiles of both.
 *
 * Everything comes by profile, from small to large; profiles of one size in the interface's order.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef SMI_INSTANCES_H
#define SMI_INSTANCES_H

#include "mocknvml/smi/smi.h"

/* Of one GPU; more than any board has. */
enum { PROFILES_MAX = 32, INSTANCES_MAX = 32, COMPUTES_MAX = 16 };

typedef nvmlGpuInstanceProfileInfo_v2_t profile_t;
typedef nvmlComputeInstanceProfileInfo_v2_t compute_profile_t;
typedef nvmlGpuInstancePlacement_t placement_t;
typedef nvmlComputeInstancePlacement_t compute_placement_t;

struct instance {
    struct gpu *gpu;
    nvmlGpuInstance_t handle;
    nvmlGpuInstanceInfo_t info;
    profile_t profile;
};

struct instances {
    struct instance *items; /* owned */
    unsigned int count;
};

struct compute {
    nvmlComputeInstance_t handle;
    nvmlComputeInstanceInfo_t info;
    compute_profile_t profile;
};

/* The profiles of a board, at most PROFILES_MAX; how many. */
unsigned int instance_profiles(struct gpu *gpu, profile_t *profiles);

/* The places where a profile fits, at most INSTANCES_MAX; how many. */
unsigned int instance_places(struct gpu *gpu, const profile_t *p, placement_t *places);

/* A profile's name without "MIG ". */
const char *profile_short_name(const char *name);

/* Whether a word of the command line names the profile: "19", "1g.5gb", "MIG 1g.5gb". */
bool profile_is_named(const char *word, unsigned int id, const char *name);

/* Those of all GPUs whose ids are in the list; NULL has all. Exit status; to be freed either way. */
int instances_find(struct gpus *gpus, const char *list, struct instances *found);

/* The profiles for compute instances of a GPU instance, at most COMPUTES_MAX; how many. */
unsigned int compute_profiles(const struct instance *one, compute_profile_t *profiles);

/* The places where one of them fits, at most COMPUTES_MAX; how many. */
unsigned int compute_places(const struct instance *one, const compute_profile_t *profile,
                            compute_placement_t *places);

/* The one that takes all of the GPU instance is made when none is named. */
bool compute_is_default(const struct instance *one, const compute_profile_t *profile);

/* Its compute instances whose ids are in the list, at most COMPUTES_MAX; how many. */
unsigned int computes_find(const struct instance *one, const char *list, struct compute *computes);

#endif
